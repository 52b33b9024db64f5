package policy_test

import (
	"errors"
	"strings"
	"testing"

	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

const temporary = ".moltis-0123456789abcdef-1-0123456789abcdef.tmp"

// TestTrashIsOurs: trees in the trash and temporary files are refused on
// every volume and in every spelling, whatever the lists say, and not listed.
func TestTrashIsOurs(t *testing.T) {
	for _, allow := range [][]string{nil, {"/**"}, {"/w/**"}} {
		p, err := policy.New(policy.Options{Allow: allow})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"/w/.moltis-trash-0", "/w/.moltis-trash-1000/files/X/a.txt", "/w/.Moltis-TRASH-0/files", "/w/d/.moltis-trash",
			"/w/" + temporary, "/w/" + strings.ToUpper(temporary), "/w/" + temporary + "/x"} {
			var denied *policy.Denied
			if err := p.Judge(guardfs.Object{Spelled: name, True: name}, guardfs.Look); !errors.As(err, &denied) || denied.Rule != "hard" {
				t.Errorf("allow %v: %s: %v", allow, name, err)
			}
		}
		for _, name := range []string{"/w/moltis-trash", "/w/.moltis-notes.tmp", "/w/.moltis-0123456789abcdef01234567.kept"} {
			if err := p.Judge(guardfs.Object{Spelled: name, True: name}, guardfs.Look); err != nil {
				t.Error(err)
			}
		}
		if v := p.Dir("/w"); v.Entry != nil && (v.Entry(".moltis-trash-0", guardfs.KindDir) || v.Entry(temporary, guardfs.KindFile)) {
			t.Errorf("allow %v: listed", allow)
		}
		if v := p.Dir("/w/.moltis-trash-0/files"); v.All || v.Entry != nil {
			t.Errorf("allow %v: what is in it is listed", allow)
		}
	}
}
