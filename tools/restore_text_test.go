package tools_test

import (
	"slices"
	"strings"
	"testing"

	"moltisfs/tools"
)

// The line of a restored file tells all that is not as it was.
func TestRestoredFileTellsAll(t *testing.T) {
	for _, c := range []struct {
		file tools.RestoredFile
		want string
	}{
		{tools.RestoredFile{Path: "/w/a", Action: "restored", Added: 1, Removed: 2}, "restored /w/a +1 -2"},
		{tools.RestoredFile{Path: "/w/a", Action: "restored", LinksBroken: 1}, "restored /w/a +0 -0; 1 other hard links keep what it was"},
		{tools.RestoredFile{Path: "/w/a", Action: "merged", MetadataSet: []string{"mode", "owner"}, MetadataStays: []string{"group"}, MetadataDropped: []string{"xattr:user.x"}},
			"merged /w/a +0 -0; also restored: mode, owner; changed by others since, and left so: group; could not be restored: xattr:user.x"},
	} {
		p := &tools.CheckpointRestore{Files: []tools.RestoredFile{c.file}}
		if lines := strings.Split(p.Text(), "\n"); !slices.Contains(lines, c.want) {
			t.Errorf("%+v: %q is not among %q", c.file, c.want, lines)
		}
	}
}
