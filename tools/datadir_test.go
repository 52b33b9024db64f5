package tools_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/datadir"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

// TestTheDataDirOfOthersIsRefused: the suite takes no data directory that package datadir refuses, and leaves it as it is.
func TestTheDataDirOfOthersIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	write(t, dir+"/.profile", "theirs")
	before := toolstest.Snapshot(t, dir)
	_, err := tools.Open(config.Default(), tools.Options{DataDir: dir})
	var no *tools.DataDirError
	if !errors.As(err, &no) || !strings.Contains(no.Error(), "no data directory of moltis-fs") || no.Hint() == "" {
		t.Errorf("%v", err)
	}
	if after := toolstest.Snapshot(t, dir); !equalTrees(before, after) {
		t.Errorf("it was changed: %v, then %v", before, after)
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

func TestNoDataDir(t *testing.T) {
	_, err := tools.Open(config.Default(), tools.Options{})
	if e, ok := errors.AsType[*tools.DataDirError](err); !ok || e.Hint() == "" {
		t.Errorf("%v", err)
	}
}
