package main

import (
	"context"

	"moltisfs/readers"
)

// workerCommand is what we start ourselves for files whose reader may crash or run away; it bounds its own process.
func workerCommand() *command {
	return &command{
		name: "reader-worker", hidden: true, short: "read one file in a process of its own",
		run: func(_ context.Context, in *invocation) error { return readers.RunWorker(in.in, in.out) },
	}
}
