package policy

import (
	"strings"
	"testing"

	"moltisfs/internal/guardfs"
)

// TestTooManyReadings: a path that may stand for more names than are tried is denied, whatever the
// rules speak of.
func TestTooManyReadings(t *testing.T) {
	p := mustNew(t, Options{Deny: []string{"/other/longname1.json", "/other/longname2.json", "/other/longname3.json"}})
	for name, want := range map[string]string{
		"/ws" + strings.Repeat("/longna~1.jso", 3):     "", // 4 × 4 × 4
		"/ws" + strings.Repeat("/longna~1.jso", 4):     ruleDeny,
		"/ws" + strings.Repeat("/dotted.", 6):          "",
		"/ws" + strings.Repeat("/dotted.", 7) + "/end": ruleDeny,
	} {
		if got := ruleOf(p.Judge(file(name), guardfs.Read)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
