package main

import (
	"context"

	"moltisfs/readers"
)

// workerCommand reads files whose reader may crash or run away. We start it; it bounds itself.
func workerCommand() *command {
	return &command{
		name: "reader-worker", hidden: true, short: "read one file in a process of its own",
		run: func(_ context.Context, in *invocation) error { return readers.RunWorker(in.in, in.out) },
	}
}
