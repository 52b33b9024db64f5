module moltisfs

go 1.26.0

require (
	github.com/wlynxg/chardet v1.0.5 // indirect
	golang.org/x/sys v0.38.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)
