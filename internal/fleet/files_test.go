package fleet

import (
	"testing"

	"moltisfs/internal/fleetbox"
	"moltisfs/internal/state"
	"moltisfs/internal/state/statetest"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	statetest.Run(t, func(t *testing.T) func() state.Files {
		database := fleetbox.Database(t)
		return func() state.Files { return join(t, Options{Database: database}).Files("dir") }
	})
}
