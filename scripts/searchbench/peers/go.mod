module moltisfs/scripts/searchbench/peers

go 1.26.0

require (
	github.com/boyter/gocodewalker v1.5.1
	github.com/sabhiram/go-gitignore v0.0.0-20210923224102-525f6e181f06
)

require (
	github.com/danwakefield/fnmatch v0.0.0-20160403171240-cbb64ac3d964 // indirect
	golang.org/x/sync v0.12.0 // indirect
)
