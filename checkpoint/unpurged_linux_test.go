package checkpoint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What others are still to forget stays noted whatever becomes of the next note.
func TestNotedHashesOutliveAFailedNote(t *testing.T) {
	dir := t.TempDir()
	if err := noteUnpurged(dir, []string{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	again := noWrites(t)
	err := noteUnpurged(dir, []string{strings.Repeat("c", 1000)}) // longer than what can be written
	again()
	if err == nil {
		t.Error("a note that can't be written must fail")
	}
	if have, err := readUnpurged(dir); err != nil || !slices.Equal(have, []string{"a", "b"}) {
		t.Errorf("noted are %v, not what was: %v", have, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, unpurgedNew)); !os.IsNotExist(err) {
		t.Errorf("the failed note is left: %v", err)
	}
	if err := noteUnpurged(dir, []string{"c", "a"}); err != nil {
		t.Fatal(err)
	}
	if have, err := readUnpurged(dir); err != nil || !slices.Equal(have, []string{"a", "b", "c"}) {
		t.Errorf("noted are %v: %v", have, err)
	}
}
