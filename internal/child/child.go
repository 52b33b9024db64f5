// Package child starts processes of our own program that work on strangers' input, and bounds
// them from within. It touches no file.
package child

import (
	"context"
	"os/exec"
)

// Command is the program as a child that dies with us, and that ctx kills. It has no environment of
// ours, and our terminal's signals don't reach it.
func Command(ctx context.Context, program []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program[0], program[1:]...)
	cmd.Env = []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}
	separate(cmd)
	return cmd
}
