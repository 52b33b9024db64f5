package engine_test

import (
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
)

// What the operator wrote as zero reaches the store as zero.
func TestZeroOfRetentionIsMeant(t *testing.T) {
	c := config.Default().Tools.FS.Checkpoint
	c.KeepWithin, c.KeepLast = 0, 5
	if o, err := engine.StoreOptions(c); err != nil || o.KeepWithin != checkpoint.KeepNone || o.KeepLast != 5 {
		t.Errorf("%+v %v", o, err)
	}
	c.KeepWithin, c.KeepLast = config.Duration(time.Hour), 0
	if o, err := engine.StoreOptions(c); err != nil || o.KeepWithin != time.Hour || o.KeepLast != checkpoint.KeepNone {
		t.Errorf("%+v %v", o, err)
	}
}
