package checkpoint_test

import (
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/blob"
	"moltisfs/checkpoint/checkpointtest"
	"moltisfs/internal/fleetbox"
)

func TestPostgresConforms(t *testing.T) {
	t.Parallel()
	checkpointtest.Store(t, func(t *testing.T) *checkpoint.DB { return inDatabase(t, fleetbox.Database(t), checkpoint.Options{}) })
}

// inDatabase opens a store in the database.
func inDatabase(t testing.TB, database string, o checkpoint.Options) *checkpoint.DB {
	t.Helper()
	o.Database = database
	if o.Blobs == nil {
		o.Blobs = &blob.Files{Dir: t.TempDir()}
	}
	return open(t, "", o)
}
