package engine

import (
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/approval"
)

// An approver has all of his time beside that of the call.
func TestTimeFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		asked, changes bool
		tier           approval.Tier
		want           time.Duration
	}{
		{true, true, "", 3 * time.Minute}, {true, false, "", time.Minute},
		{false, true, "", time.Minute}, {false, true, approval.TierAsk, 3 * time.Minute},
	} {
		e := &Engine{shared: &shared{cfg: config.FS{RequireApproval: c.asked,
			ApprovalTimeout: config.Duration(2 * time.Minute)}}}
		if got := e.TimeFor(c.changes, c.tier); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
