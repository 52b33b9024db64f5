package tools_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/datadir"
	"moltisfs/tools"
	"moltisfs/tools/toolstest"
)

// TestTheDataDirIsOurs: a directory of somebody else is refused and left as it is, mode and all; so is one in which others may
// write, and a new one is for us alone.
func TestTheDataDirIsOurs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: no mode bits on this system")
	}
	for name, c := range map[string]struct {
		mode fs.FileMode // 0: it is not there
		has  string      // a file in it
		why  string      // of the refusal; "" for none
	}{
		"new":                       {0, "", ""},
		"empty":                     {0o700, "", ""},
		"empty, others may look":    {0o755, "", ""},
		"empty, the group may":      {0o775, "", "others may write"},
		"empty, anybody may":        {0o777, "", "others may write"},
		"/tmp":                      {0o777 | fs.ModeSticky, "theirs", "no data directory of moltis-fs"},
		"a home":                    {0o755, ".profile", "no data directory of moltis-fs"},
		"Moltis' own":               {0o755, "checkpoints/0a1b/manifest.json", "no data directory of moltis-fs"},
		"ours":                      {0o700, "moltis-fs-data", ""},
		"ours, of before markers":   {0o700, "audit/audit.jsonl", ""},
		"ours, with others' beside": {0o755, "checkpoints/checkpoints.db", ""},
		"ours, anybody may":         {0o777, "locks/bytes", "others may write"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			if c.mode != 0 {
				must(t, os.Mkdir(dir, 0o700))
			}
			if c.has != "" {
				write(t, filepath.Join(dir, c.has), "")
			}
			if c.mode != 0 {
				must(t, os.Chmod(dir, c.mode))
			}
			before := toolstest.Snapshot(t, filepath.Dir(dir))
			s, err := tools.Open(config.Default(), tools.Options{DataDir: dir})
			if err == nil {
				must(t, s.Close())
			}
			var no *tools.DataDirError
			switch {
			case c.why == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.why != "" && (!errors.As(err, &no) || !strings.Contains(no.Error(), c.why) || no.Hint() == ""):
				t.Errorf("%v", err)
			}
			if c.why != "" {
				if after := toolstest.Snapshot(t, filepath.Dir(dir)); !equalTrees(before, after) {
					t.Errorf("it was changed: %v, then %v", before, after)
				}
			}
			want := fs.ModeDir | c.mode
			if c.mode == 0 {
				want = fs.ModeDir | 0o700
			}
			if info, err := os.Stat(dir); err != nil || info.Mode() != want {
				t.Errorf("its mode is %v, not %v: %v", info.Mode(), want, err)
			}
		})
	}
}

func equalTrees(a, b map[string]string) bool {
	for name, c := range a {
		if b[name] != c {
			return false
		}
	}
	return len(a) == len(b)
}

// TestDataIn: of a directory that is Moltis' as well, what is ours is told from what is not.
func TestDataIn(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/files/doc.txt", "theirs")
	write(t, dir+"/checkpoints/0a1b/manifest.json", "theirs")
	if got := datadir.In(dir); got != nil {
		t.Errorf("a directory of Moltis is taken for ours: %q", got)
	}
	s, root := suite(t, func(fs *config.FS) { fs.CheckpointBeforeMutation, fs.TrackReads = true, true }, tools.Options{})
	call(t, s, "Write", map[string]any{"file_path": root + "/a.txt", "content": "one\n"})
	must(t, s.Close())
	must(t, os.CopyFS(dir, os.DirFS(filepath.Join(filepath.Dir(root), "data"))))
	var want []string
	for _, below := range []string{"", "checkpoints"} {
		entries, err := os.ReadDir(filepath.Join(filepath.Dir(root), "data", below))
		must(t, err)
		for _, e := range entries {
			if name := filepath.Join(below, e.Name()); name != "checkpoints" {
				want = append(want, name)
			}
		}
	}
	slices.Sort(want)
	if got := datadir.In(dir); !slices.Equal(got, want) || len(got) < 8 {
		t.Errorf("ours is %q, not %q", want, got)
	}
}

// TestOurNames: what is ours is off limits under each name that leads to it, so that no link on the way can be put elsewhere.
func TestOurNames(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	ws, far := dir+"/ws", dir+"/far"
	conf := write(t, far+"/etc/conf.toml", "")
	must(t, os.MkdirAll(ws+"/sub", 0o755))
	must(t, os.Mkdir(far+"/data", 0o700))
	for _, l := range [][2]string{
		{conf, ws + "/hop.toml"}, {"hop.toml", ws + "/conf.toml"}, // a chain
		{far + "/etc", ws + "/etc"}, {"etc", ws + "/way"}, // of directories
		{far + "/data", ws + "/data"},
	} {
		must(t, os.Symlink(l[0], l[1]))
	}
	cfg := config.Default()
	cfg.Tools.FS.RequireApproval = false
	s, err := tools.Open(cfg, tools.Options{DataDir: ws + "/data", Protect: []string{ws + "/conf.toml", ws + "/way/conf.toml"}})
	must(t, err)
	defer s.Close()
	for _, p := range []string{
		"ws/conf.toml", "ws/hop.toml", "far/etc/conf.toml", "ws/CONF.toml", "ws/sub/../conf.toml",
		"ws/way", "ws/etc", "ws/way/conf.toml", "ws/etc/conf.toml", "ws/data", "ws/data/audit", "far/data/new",
	} {
		p := call(t, s, "Write", map[string]any{"file_path": dir + "/" + p, "content": "theirs"})
		if r, ok := p.(*tools.Refusal); !ok || r.Reason != tools.KindPathDenied {
			t.Errorf("%s", mustEncode(t, p))
		}
	}
	for _, p := range []string{"ws/sub/a.txt", "far/etc/other.toml", "ws/etc/another.toml"} { // what is beside is not ours
		if p := call(t, s, "Write", map[string]any{"file_path": dir + "/" + p, "content": "x"}); tools.Refused(p) {
			t.Errorf("%s", mustEncode(t, p))
		}
	}
}

// TestPartsAreNoLinks: a part of the data directory that leads elsewhere would be out of what is protected.
func TestPartsAreNoLinks(t *testing.T) {
	for _, part := range []string{"locks", "ledger", "audit", "checkpoints", "cache"} {
		dir := t.TempDir() + "/data"
		write(t, dir+"/moltis-fs-data", "")
		must(t, os.Chmod(dir, 0o700))
		must(t, os.Symlink(t.TempDir(), filepath.Join(dir, part)))
		_, err := tools.Open(config.Default(), tools.Options{DataDir: dir})
		var no *tools.DataDirError
		if !errors.As(err, &no) || !strings.Contains(err.Error(), "its "+part+" is a link") {
			t.Errorf("%s: %v", part, err)
		}
	}
}
