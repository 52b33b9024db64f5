package main

import (
	"context"
	"runtime"
	"runtime/debug"
)

func versionCommand() *command {
	return &command{
		name: "version", short: "say which version this is",
		options:  []option{opt("json", "", "answer with one JSON object")},
		examples: []string{"moltis-fs version", "moltis-fs version --json"},
		run:      writeVersion,
	}
}

// build is what the program knows of how it was made.
type build struct {
	Version  string `json:"version"`            // "(devel)" when it was built from a working tree
	Revision string `json:"revision,omitempty"` // of the source
	Time     string `json:"time,omitempty"`     // of that revision, RFC 3339
	Modified bool   `json:"modified,omitempty"` // the source had changes that are in no revision
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func readBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func writeVersion(_ context.Context, in *invocation) error {
	b := readBuild()
	return in.answer(b, "%s %s %s %s/%s\n", program, b.Version, b.Go, b.OS, b.Arch)
}
