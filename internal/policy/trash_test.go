package policy_test

import (
	"errors"
	"testing"

	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// What was moved to the trash as a whole is refused on every volume and in every spelling, whatever the lists say, and not listed.
func TestTrashIsOurs(t *testing.T) {
	for _, allow := range [][]string{nil, {"/**"}, {"/w/**"}} {
		p, err := policy.New(policy.Options{Allow: allow})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"/w/.moltis-trash-0", "/w/.moltis-trash-1000/files/X/a.txt", "/w/.Moltis-TRASH-0/files", "/w/d/.moltis-trash"} {
			var denied *policy.Denied
			if err := p.Judge(guardfs.Object{Spelled: name, True: name}, guardfs.Look); !errors.As(err, &denied) || denied.Rule != "protected" {
				t.Errorf("allow %v: %s: %v", allow, name, err)
			}
		}
		if err := p.Judge(guardfs.Object{Spelled: "/w/moltis-trash", True: "/w/moltis-trash"}, guardfs.Look); err != nil {
			t.Error(err)
		}
		if v := p.Dir("/w"); v.Entry != nil && v.Entry(".moltis-trash-0", guardfs.KindDir) {
			t.Errorf("allow %v: listed", allow)
		}
		if v := p.Dir("/w/.moltis-trash-0/files"); v.All || v.Entry != nil {
			t.Errorf("allow %v: what is in it is listed", allow)
		}
	}
}
