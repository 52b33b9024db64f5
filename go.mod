module moltisfs

go 1.26.0

require (
	github.com/wlynxg/chardet v1.0.5
	golang.org/x/text v0.43.0
)
