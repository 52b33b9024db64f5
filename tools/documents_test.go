package tools_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

// TestDocumentsAreKept: where the texts of documents are kept, for whom, and that they are never taken for those of another content.
func TestDocumentsAreKept(t *testing.T) {
	t.Parallel()
	packed := func(s string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write([]byte(s))
		w.Close()
		return b.String()
	}
	var z bytes.Buffer
	w := zip.NewWriter(&z)
	f, _ := w.CreateRaw(&zip.FileHeader{Name: "locked.txt", Flags: 1, CompressedSize64: 5, UncompressedSize64: 5})
	f.Write([]byte("xxxxx"))
	w.Close()
	for name, c := range map[string]struct {
		change func(*config.FS)
		found  bool
		files  int // that are kept
	}{
		"as it is": {func(*config.FS) {}, true, 2},
		"encrypted": {func(fs *config.FS) {
			fs.Checkpoint.EncryptTo = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
		}, true, 0},
		"excluded": {func(fs *config.FS) { fs.Checkpoint.Exclude = []string{"*.gz"} }, true, 1},
		"off":      {func(fs *config.FS) { fs.SearchDocuments = false }, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := toolstest.Tree(t)
			toolstest.Layout(t, dir, "ws/\ndata/")
			log := dir + "/ws/a.gz"
			put := func(name, content string) {
				must(t, os.WriteFile(name, []byte(content), 0o600))
				then := time.Now().Add(-time.Hour)
				must(t, os.Chtimes(name, then, then))
			}
			put(log, packed("one\nneedle\n"))
			put(dir+"/ws/b.zip", z.String())
			open := func() *tools.Suite {
				cfg := config.Default()
				cfg.Tools.FS.WorkspaceRoot, cfg.Tools.FS.AllowPaths = dir+"/ws", []string{dir + "/ws/**"}
				c.change(&cfg.Tools.FS)
				s, err := tools.Open(cfg, tools.Options{DataDir: dir + "/data"})
				must(t, err)
				t.Cleanup(func() { s.Close() })
				return s
			}
			s := open()
			grep := func(pattern, path string) *tools.Grep {
				t.Helper()
				p := callAs(t, s, "a", "", "Grep", map[string]any{"pattern": pattern, "path": path, "output_mode": "content"})
				g, ok := p.(*tools.Grep)
				if !ok {
					t.Fatalf("%+v", p)
				}
				return g
			}
			has := func(what string, g *tools.Grep, rows int) {
				t.Helper()
				if len(g.Matches) != rows {
					t.Errorf("%s: %+v", what, g)
				}
			}
			want := 0
			if c.found {
				want = 1
			}
			has("at first", grep("needle", dir+"/ws"), want)
			texts, _ := filepath.Glob(dir + "/data/texts/*")
			if len(texts) != c.files {
				t.Errorf("%d texts are kept: %q", len(texts), texts)
			}
			for _, name := range texts {
				must(t, os.WriteFile(name, []byte("needle\nneedle\nneedle\n"), 0o600)) // of somebody else
			}
			must(t, s.Close())
			s = open()
			has("with corrupt texts", grep("needle", dir+"/ws"), want)
			put(log, packed("one\nneedle\nneedle\n"))
			has("after a change", grep("needle", dir+"/ws"), 2*want)
			one := grep("nothing", log)
			if why := strings.Contains(one.Note, "search_documents is false"); why == c.found {
				t.Errorf("one that is not searched: %q", one.Note)
			}
			if one = grep("nothing", dir+"/ws/b.zip"); c.found && (one.Skipped["documents"].Count != 1) {
				t.Errorf("one that is encrypted: %+v", one)
			}
			err := engine.PurgeKept(dir + "/data")
			must(t, err)
			if left, _ := filepath.Glob(dir + "/data/texts/*"); len(left) > 0 {
				t.Errorf("a purge leaves %q", left)
			}
			has("after a purge", grep("needle", dir+"/ws"), 2*want)
		})
	}
}
