package tools_test

import (
	"path/filepath"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// TestAnEditOfAStaleFileShowsNothing: an edit that goes ahead in a file that others changed since it was read whole does not make what they
// changed count as read. To write over it takes another Read.
func TestAnEditOfAStaleFileShowsNothing(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) { fs.TrackReads, fs.MustReadBeforeWrite = true, true }, tools.Options{})
	file := write(t, filepath.Join(root, "f.txt"), "one\ntwo\nthree\n")
	call(t, s, "Read", map[string]any{"file_path": file})
	write(t, file, "one\ntwo\nthree\nsomebody's own work\n")
	if p := call(t, s, "Edit", map[string]any{"file_path": file, "old_string": "two", "new_string": "2"}); tools.Refused(p) {
		t.Fatal(mustEncode(t, p))
	}
	over := map[string]any{"file_path": file, "content": "one\n2\n3\n4\n"}
	if p := call(t, s, "Write", over); p.Kind() != tools.KindMustRead {
		t.Errorf("what was never shown is overwritten: %s", mustEncode(t, p))
	}
	call(t, s, "Read", map[string]any{"file_path": file})
	if p := call(t, s, "Write", over); tools.Refused(p) {
		t.Error(mustEncode(t, p))
	}
}
