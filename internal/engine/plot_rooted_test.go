//go:build linux && rooted

package engine_test

import (
	"testing"

	"moltisfs/internal/guardfs"
)

func (*plot) calls(*testing.T) (none guardfs.Calls) { return none }
