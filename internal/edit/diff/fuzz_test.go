package diff

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

func normal(hs []Hunk) string { b, _ := json.Marshal(hs); return string(b) }

// FuzzPatch: a patch makes the one text of the other, and is what comparing whole texts gives.
func FuzzPatch(f *testing.F) {
	seeds := []string{"", "a", "a\n", "a\nb\nc\n", "a\r\nb\r\n", "a\rb\r", "a\r\nb\nc", "a\nx\nc\n", "\n\n"}
	for _, a := range seeds {
		for _, b := range seeds {
			f.Add([]byte(a), []byte(b))
		}
	}
	f.Fuzz(func(t *testing.T, before, after []byte) {
		hs := Patch(before, after)
		a, b := Lines(before), Lines(after)
		if whole := hunks(a, b, Changes(a, b)); !reflect.DeepEqual(normal(whole), normal(hs)) {
			t.Fatalf("%v\nof the whole\n%v", hs, whole)
		}
		if (len(hs) == 0) != bytes.Equal(before, after) {
			t.Fatalf("%d hunks", len(hs))
		}
		if got := applyHunks(t, before, hs); !bytes.Equal(got, after) {
			t.Fatalf("%q, want %q", got, after)
		}
		added, removed := Counts(hs)
		if added-removed != len(b)-len(a) {
			t.Fatalf("+%d -%d for %d → %d lines", added, removed, len(a), len(b))
		}
		if a, r := Count(before, after); a != added || r != removed {
			t.Fatalf("+%d -%d counted, +%d -%d in the patch", a, r, added, removed)
		}
		Unified("name", Edited, hs)
		Snippet(hs, nil)
	})
}

// FuzzMerge: where one side did nothing, the other side wins; no line of either is made up.
func FuzzMerge(f *testing.F) {
	f.Add([]byte("a\nb\nc\n"), []byte("a\nB\nc\n"), []byte("a\nb\nC\n"))
	f.Add([]byte("a\nb\nc\n"), []byte("a\nB\nc\n"), []byte("a\nX\nc\n"))
	f.Fuzz(func(t *testing.T, base, ours, theirs []byte) {
		for _, c := range []struct{ a, b, want []byte }{{base, theirs, theirs}, {ours, base, ours}, {ours, ours, ours}} {
			if got, conflicts := Merge(base, c.a, c.b); len(conflicts) > 0 || !bytes.Equal(got, c.want) {
				t.Fatalf("merged %q, want %q (%v)", got, c.want, conflicts)
			}
		}
		got, conflicts := Merge(base, ours, theirs)
		other, back := Merge(base, theirs, ours)
		if (len(conflicts) == 0) != (len(back) == 0) {
			t.Fatalf("%d conflicts, the other way round %d", len(conflicts), len(back))
		}
		if len(conflicts) == 0 && !bytes.Equal(got, other) {
			t.Fatalf("%q, the other way round %q", got, other)
		}
	})
}
