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

// Names stay in their line, and thousands of files that were the same already are a number.
func TestRestoreTextSaysWhatWasDone(t *testing.T) {
	p := &tools.CheckpointRestore{Skipped: []tools.Left{{Path: "/w/\x1b\nb", Why: "why"}}, DirsMade: []string{"/w/\r"}, DirsGone: []string{"/w/\t"}, DirsKept: []tools.Left{{Path: "/w/\n", Why: "why"}}}
	for i := range 3000 {
		p.Files = append(p.Files, tools.RestoredFile{Path: "/w/same", Action: "unchanged"})
		if i == 1500 {
			p.Files = append(p.Files, tools.RestoredFile{Path: "/w/a\nremoved /w/b +0 -0", Action: "restored"})
		}
	}
	want := strings.Repeat("unchanged /w/same +0 -0\n", 10) + `restored "/w/a\nremoved /w/b +0 -0" +0 -0
and 2990 more unchanged
skipped "/w/\x1b\nb" (why)
made the directory "/w/\r"
removed the directory "/w/\t"
kept "/w/\n" (why)`
	if got := p.Text(); got != want {
		t.Errorf("got %s", got)
	}
}
