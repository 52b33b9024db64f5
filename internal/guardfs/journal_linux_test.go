//go:build !rooted

package guardfs

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	if file := os.Getenv("GUARDFS_COUNT"); file != "" {
		count(file, os.Getenv("GUARDFS_LOCKS"))
		return
	}
	os.Exit(m.Run())
}

// Temporary names are left out of a listing while their operation is on record or under way. Names that only look like it are counted:
// nothing is hidden.
func TestListCountsWhatLooksTemporary(t *testing.T) {
	b := base(t)
	noted, live := strings.Repeat("a", TagLen), strings.Repeat("b", TagLen)
	journal := OpenJournal(b + "/record")
	f, err := New(Options{Judge: &fence{root: b}, Journal: journal, Underway: func(tag string) bool { return tag == live }})
	must(t, err)
	defer f.Close()
	must(t, journal.give(b+"/d/f", TempName(noted, 1)))
	lay(t, b, "d/f", "d/"+TempName(noted, 1)+" = ours", "d/"+TempName(live, 0)+" = ours", "d/"+OldName(TempName(someTag, 1))+" = theirs", "d/"+keptName()+" = kept")
	d := dirOf(t, f, b+"/d")
	entries, denied, err := d.List(nil)
	must(t, err)
	if len(entries) != 2 || denied != 1 {
		t.Errorf("%v, and %d denied", entries, denied)
	}
}

func TestReserved(t *testing.T) {
	for name, want := range map[string]bool{
		TempName(someTag, 0): true, OldName(TempName(someTag, 1)): true, strings.ToUpper(NewName(TempName(someTag, 1))): true,
		TrashPrefix + "-0": true, ".Moltis-Trash": true, keptName(): false, "f": false, ".moltis-notes.tmp": false, ".moltis-": false, ".moltis": false,
	} {
		folded := strings.ToLower(name)
		if Reserved(name) != want || ReservedPath("/a/"+folded) != want || ReservedPath("/.moltis-x/"+folded+"/b") != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// Each name that is given in a directory is on record before it is there, with the path that was judged; a line that is cut is none.
func TestJournal(t *testing.T) {
	b := base(t)
	j := OpenJournal(b + "/record")
	f, err := New(Options{Judge: &fence{root: b}, Journal: j})
	must(t, err)
	defer f.Close()
	p, err := f.EntryLink(b + "/a \"b\n")
	must(t, err)
	defer p.Close()
	for n, what := range []NewObject{{Kind: KindFile}, {Kind: KindDir}, {Kind: KindSymlink, Content: []byte("x")}, {Kind: KindFile, Open: true}} {
		named := !what.Open // else as where a file can't be made without a name
		f.kernel.hook = func(op string) *Fault {
			if named || op != "openat" {
				return nil
			}
			named = true
			return &Fault{Err: unix.EOPNOTSUPP}
		}
		h, made, err := p.Stage(t.Context(), TempName(someTag, n), what)
		must(t, err)
		must(t, errors.Join(h.Drop(made.Precondition()), h.Close()))
	}
	must(t, j.Note(someTag, `{"a": "b c"}`))
	file, err := os.OpenFile(b+"/record/"+someTag, os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = file.WriteString(`"/cut`)
	must(t, errors.Join(err, file.Close()))
	names, notes, err := j.Names(someTag)
	must(t, err)
	if len(names) != 4 || names[3] != (GivenName{b + "/a \"b\n", TempName(someTag, 3)}) || len(notes) != 1 || notes[0] != `{"a": "b c"}` {
		t.Errorf("%q %q", names, notes)
	}
	if tags := j.Tags(); len(tags) != 1 || tags[0] != someTag || !j.Has(someTag) {
		t.Errorf("%v", tags)
	}
	if j.Forget(someTag); j.Has(someTag) || j.Tags() != nil {
		t.Error("it is on record still")
	}
}
