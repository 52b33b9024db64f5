package ids

import (
	"strings"
	"testing"
)

func FuzzParse(f *testing.F) {
	for _, s := range []string{"ck-1H0", "ck-0123456789", "", "CK-ooillo", "ck-UUUUUUUUUU", " ck-zzzzzzzzzz\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, why := Parse("ck-", s)
		if (id == "") != (why != "") {
			t.Fatalf("%q is %q and %q", s, id, why)
		}
		if again, _ := Parse("ck-", strings.ToLower(id)); again != id {
			t.Errorf("%q is %q, and that is %q", s, id, again)
		}
	})
}

func TestNew(t *testing.T) {
	seen := map[string]bool{}
	for i := range 1000 {
		id := New("tr-", int64(i))
		if got, why := Parse("tr-", id); got != id || len(id) != 13 || seen[id] {
			t.Fatalf("%q: %q %s", id, got, why)
		}
		seen[id] = true
	}
}
