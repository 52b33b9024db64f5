module moltisfs

go 1.26

require (
	github.com/dlclark/regexp2 v1.12.0 // indirect
	golang.org/x/sys v0.38.0 // indirect
)
