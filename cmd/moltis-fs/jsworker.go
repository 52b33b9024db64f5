package main

import (
	"context"

	"moltisfs/internal/confine"
	"moltisfs/internal/js"
)

// jsWorkerCommand runs one script. We start it; it bounds itself, and the kernel keeps it from
// every file and every connection where it can.
func jsWorkerCommand() *command {
	return &command{
		name: "js-worker", hidden: true, short: "run one script in a process of its own",
		run: func(_ context.Context, in *invocation) error {
			if confine.ABI() > 0 {
				if err := confine.Restrict(nil, false, nil); err != nil {
					return err
				}
			}
			return js.Work(in.in, in.out)
		},
	}
}

// jsProgram is the command that runs it.
func jsProgram() (js.Program, error) {
	self, err := ownProgram()
	return js.Program{self, jsWorkerCommand().name}, err
}
