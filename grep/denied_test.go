package grep

import (
	"testing"
	"testing/fstest"

	"moltisfs/grep/match"
)

// secondName lists the second name of a hidden file, which is denied when it is opened or looked
// at.
type secondName struct{ Dir }

func (d secondName) Stat(name string) (Info, error) {
	if name == "second.txt" {
		return Info{}, ErrDenied
	}
	return d.Dir.Stat(name)
}

func (d secondName) OpenFile(name string) (File, error) {
	if name == "second.txt" {
		return nil, ErrDenied
	}
	return d.Dir.OpenFile(name)
}

// TestDeniedTellsNoName: how many are denied does not depend on which names a glob guesses.
func TestDeniedTellsNoName(t *testing.T) {
	d := secondName{FS(fstest.MapFS{"second.txt": {Data: []byte("needle\n")}, "b.txt": {Data: []byte("needle\n")}})}
	m := compile(t, "needle", match.Options{})
	for glob, want := range map[string]int{"second.txt": 0, "s*": 0, "*.txt": 0, "/*": 0, "!b.txt": 0, "**/*,s*": 0, "none": 0,
		"*": 1, "**": 1, "**/*": 1, "./**": 1} { // what all names fit asks for none of them
		r, err := Files(t.Context(), Walk{Dir: d}, GlobQuery{Pattern: glob})
		if err != nil || r.Skipped.Denied != want {
			t.Errorf("Files %s: %+v, %v", glob, r, err)
		}
		s, err := Search(t.Context(), Walk{Dir: d}, Query{Matcher: m, Glob: []string{glob}})
		if err != nil || s.Skipped.Denied != want {
			t.Errorf("Search %s: %+v, %v", glob, s, err)
		}
	}
	s, err := Search(t.Context(), Walk{Dir: d}, Query{Matcher: m})
	if err != nil || s.Skipped.Denied != 1 || s.Totals.Files != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}
