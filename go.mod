module moltisfs

go 1.26.0

require (
	github.com/dlclark/regexp2 v1.12.0
	github.com/wlynxg/chardet v1.0.5
	golang.org/x/sys v0.38.0
	golang.org/x/text v0.43.0
)
