package state_test

import (
	"testing"

	"moltisfs/internal/state"
	"moltisfs/internal/state/statetest"
)

func TestDir(t *testing.T) {
	for name, d := range map[string]state.Dir{"synced": {Temp: "temp"}, "journals": {}, "private": {Temp: "temp", Private: true, Most: 9 << 20}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			statetest.Run(t, func(t *testing.T) func() state.Files {
				d := d
				d.Path = t.TempDir()
				return func() state.Files { return d }
			})
		})
	}
}
