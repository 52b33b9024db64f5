package tools

import (
	"moltisfs/config"
	"moltisfs/internal/guardfs"
)

// OpenFaulty is Open with system calls on the tree that come to what fault says.
func OpenFaulty(cfg config.Config, o Options, fault func(op string) *guardfs.Fault) (*Suite, error) {
	return open(cfg, o, fault)
}
