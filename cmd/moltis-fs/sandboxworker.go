package main

import (
	"context"
	"fmt"

	"moltisfs/internal/confine"
	"moltisfs/internal/sandbox"
)

// sandboxWorkerCommand makes the system calls of sandboxed sessions where it runs. The program that
// serves the sessions starts it by what [tools.sandbox] says.
func sandboxWorkerCommand() *command {
	return &command{
		name: "worker", hidden: true, short: "make the system calls of a sandboxed session",
		options: []option{opt("root", "DIR", "nothing outside of it is opened")},
		run: func(_ context.Context, in *invocation) error {
			w := sandbox.Work{Root: in.values["root"], Build: readBuild().id(), Confine: confineWorker}
			return w.Run(0, 1)
		},
	}
}

// confineWorker has the kernel keep the process in the root, where it can.
func confineWorker(root string) (bool, error) {
	if confine.ABI() == 0 {
		return false, nil
	}
	return true, confine.Restrict([]confine.Rule{{Path: root, Right: confine.Write, Dir: true},
		{Path: "/proc/self/mountinfo", Right: confine.Read}}, false, nil) // searches look at that
}

// id tells builds apart.
func (b build) id() string {
	return fmt.Sprintf("%s %s %v %s/%s", b.Version, b.Revision, b.Modified, b.OS, b.Arch)
}
