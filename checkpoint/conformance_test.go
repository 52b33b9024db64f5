package checkpoint_test

import (
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/checkpointtest"
)

func TestMemConforms(t *testing.T) {
	checkpointtest.Run(t, func(t *testing.T) checkpoint.Store {
		s, err := checkpoint.NewMem(checkpoint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

func TestDBConforms(t *testing.T) {
	checkpointtest.Run(t, func(t *testing.T) checkpoint.Store { return open(t, t.TempDir(), checkpoint.Options{}) })
}

func TestRelaxedDBConforms(t *testing.T) {
	checkpointtest.Run(t, func(t *testing.T) checkpoint.Store {
		return open(t, t.TempDir(), checkpoint.Options{Durability: checkpoint.Relaxed})
	})
}

func open(t testing.TB, dir string, o checkpoint.Options) *checkpoint.DB {
	t.Helper()
	d, err := checkpoint.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
