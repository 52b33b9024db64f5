package moltis_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/moltis"
)

var ctx = context.Background()

func open(t *testing.T, dir string, o checkpoint.Options) *checkpoint.DB {
	t.Helper()
	d, err := checkpoint.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func sound(t *testing.T, d *checkpoint.DB) {
	t.Helper()
	if r, err := d.Check(ctx, true); err != nil || len(r.Problems) > 0 {
		t.Errorf("the store must be sound: %+v %v", r, err)
	}
}

func randomText(n int, seed int64) string {
	rng := rand.New(rand.NewSource(seed))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(' ' + rng.Intn(95))
	}
	return string(b)
}

// Of imports of one folder at the same time, each checkpoint is taken over by one, which counts it.
func TestImportsAtOnce(t *testing.T) {
	const n = 20
	f, dir := &moltisFolder{t: t, dir: t.TempDir()}, t.TempDir()
	for i := range n {
		f.file("/w/a", fmt.Sprint("version ", i))
	}
	got := make(chan moltis.Imported)
	for range 4 {
		d := open(t, dir, checkpoint.Options{})
		go func() {
			r, err := moltis.Import(ctx, d, f.dir, "local")
			if err != nil || r.Imported+r.Known != n {
				t.Error(r, err)
			}
			got <- r
		}()
	}
	imported := 0
	for range 4 {
		imported += (<-got).Imported
	}
	d := open(t, dir, checkpoint.Options{})
	if p, err := d.List(ctx, checkpoint.Filter{AllSessions: true, Limit: 1000}); err != nil || len(p.Checkpoints) != n || imported != n {
		t.Errorf("%d were counted, %d are there, of %d: %v", imported, len(p.Checkpoints), n, err)
	}
	sound(t, d)
}

// moltisFolder is a Moltis folder that a test fills.
type moltisFolder struct {
	t   *testing.T
	dir string
	n   int
	at  int64 // the time of the next ones, if not 0
}

// add writes a checkpoint of path, a second after the one before, with files below its directory, and returns its id.
func (f *moltisFolder) add(path, backup string, files map[string]string) string {
	f.t.Helper()
	f.n++
	id := fmt.Sprintf("%032x", f.n)
	if err := os.MkdirAll(filepath.Join(f.dir, id), 0o700); err != nil {
		f.t.Fatal(err)
	}
	at := cmp.Or(f.at, 1_700_000_000+int64(f.n))
	manifest, err := json.Marshal(map[string]any{"id": id, "created_at": at, "reason": "Edit", "source_path": path, "existed": backup != "", "backup_path": backup})
	if err != nil {
		f.t.Fatal(err)
	}
	f.write(id+"/manifest.json", string(manifest))
	for name, text := range files {
		f.write(id+"/"+name, text)
	}
	return id
}

func (f *moltisFolder) file(path, text string) string {
	return f.add(path, "snapshot/file", map[string]string{"snapshot/file": text})
}

func (f *moltisFolder) write(name, text string) {
	f.t.Helper()
	name = filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// imports takes the folder over for principal and compares what became of it; skipped has a part of the reason for each name.
func (f *moltisFolder) imports(d *checkpoint.DB, principal string, imported, known int, skipped map[string]string) {
	f.t.Helper()
	r, err := moltis.Import(ctx, d, f.dir, principal)
	if err != nil || r.Imported != imported || r.Known != known || len(r.Skipped) != len(skipped) {
		f.t.Fatalf("imported %+v %v, want %d, %d known and %d skipped", r, err, imported, known, len(skipped))
	}
	for _, s := range r.Skipped {
		if why, ok := skipped[s.Path]; !ok || !strings.Contains(s.Why, why) || len(s.Why) > 400 {
			f.t.Errorf("%s was skipped: %s, want %q", s.Path, s.Why, why)
		}
	}
	sound(f.t, d)
}

// A checkpoint that does not fit into the store costs itself only, however often it is tried.
func TestImportGoesOnAfterWhatDoesNotFit(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{MaxBytes: 3 << 20, KeepWithin: 1_000_000 * time.Hour})
	f := &moltisFolder{t: t, dir: t.TempDir()}
	f.file("/w/a", "first")
	files := map[string]string{}
	for i := range 5 {
		files[fmt.Sprint("snapshot/dir/", i)] = randomText(900<<10, int64(i))
	}
	large := f.add("/w/d", "snapshot/dir", files)
	f.file("/w/a", "second")
	f.file("/w/b", "third")
	f.imports(d, "local", 3, 0, map[string]string{large: "full"})
	f.imports(d, "local", 0, 3, map[string]string{large: "full"})
}

// A checkpoint is in memory as a whole while it is saved: one that is too large for that is skipped, and says so.
func TestImportSkipsLargeDirectories(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	f := &moltisFolder{t: t, dir: t.TempDir()}
	id := f.add("/w/d", "snapshot/dir", map[string]string{"snapshot/dir/sub/x": "x"})
	for i := range 2 {
		name := fmt.Sprint(id, "/snapshot/dir/", i)
		f.write(name, fmt.Sprint("file ", i))
		if err := os.Truncate(filepath.Join(f.dir, name), 128<<20); err != nil {
			t.Fatal(err)
		}
	}
	f.add("/w/e", "snapshot/dir", map[string]string{"snapshot/dir/sub/x": "x", "snapshot/dir/sub/again": "x", "snapshot/dir/empty": ""})
	f.imports(d, "local", 1, 0, map[string]string{id: "it holds more than 256 MiB"})
	p, err := d.List(ctx, checkpoint.Filter{Principal: "local", AllSessions: true})
	if err != nil || len(p.Checkpoints) != 1 || len(p.Checkpoints[0].Changes) != 5 {
		t.Fatalf("%+v %v", p, err)
	}
	for _, c := range p.Checkpoints[0].Changes {
		if c.Before.Kind == checkpoint.File && (!c.Stored || c.Skipped != "") {
			t.Errorf("%s is not in the store: %s", c.Path, c.Skipped)
		}
	}
}

// A file that the store excludes, or that is too large for it, is told and not kept.
func TestImportKeepsOutWhatIsExcluded(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{MaxFileBytes: 10, Exclude: func(p string) bool { return strings.HasSuffix(p, ".env") }})
	f := &moltisFolder{t: t, dir: t.TempDir()}
	f.add("/w", "snapshot/dir", map[string]string{"snapshot/dir/a.env": "key", "snapshot/dir/big": "more than ten", "snapshot/dir/fine": "fine"})
	f.imports(d, "local", 1, 0, nil)
	p, err := d.List(ctx, checkpoint.Filter{Principal: "local", AllSessions: true})
	if err != nil || len(p.Checkpoints) != 1 {
		t.Fatal(p, err)
	}
	got := map[string]string{}
	for _, c := range p.Checkpoints[0].Changes {
		got[c.Path] = fmt.Sprint(c.Stored, " ", c.Skipped)
	}
	for path, want := range map[string]string{"/w/a.env": "false excluded", "/w/big": "false too_large", "/w/fine": "true "} {
		if got[path] != want {
			t.Errorf("%s: %q, want %q", path, got[path], want)
		}
	}
}

// A path that no tool could restore is not taken over: it would be in the way of every rewind and export that comes by it.
func TestImportSkipsUnusablePaths(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	f := &moltisFolder{t: t, dir: t.TempDir()}
	want := map[string]string{}
	for path, why := range map[string]string{
		"/": "is the root directory", "": "is not an absolute path", "w/a": "is not an absolute path", "/w/../a": "is not an absolute path", "/w/": "is not an absolute path",
		"/" + strings.Repeat("long/", 2000) + "a": "longer than 4095 bytes", "/w/" + strings.Repeat("n", 256): "longer than 255 bytes", "/w/\x00": "NUL",
	} {
		want[f.file(path, "x")] = why
	}
	want[f.add("/", "snapshot/dir", map[string]string{"snapshot/dir/x": "x"})] = "is the root directory"
	want[f.add("/"+strings.Repeat("long/", 817)+"abcdef", "snapshot/dir", map[string]string{"snapshot/dir/0123456789": "x"})] = "longer than 4095 bytes"
	f.file("/w/"+strings.Repeat("n", 255), "x")
	f.imports(d, "local", 1, 0, want)
}

// Links in the folder are not followed, though they lead to what is in it too.
func TestImportFollowsNoLinks(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	f := &moltisFolder{t: t, dir: t.TempDir()}
	good := f.add("/w/d", "snapshot/dir", map[string]string{"snapshot/dir/x": "x", "snapshot/file": "x"})
	want := map[string]string{}
	for _, link := range []struct{ backup, name, to string }{
		{"snapshot/dir", "snapshot/dir", "../../" + good + "/snapshot/dir"},
		{"snapshot/dir", "snapshot", "../" + good + "/snapshot"},
		{"snapshot/file", "snapshot", "../" + good + "/snapshot"},
		{"snapshot/file", "snapshot/file", "../../" + good + "/snapshot/file"},
		{"snapshot/dir", "snapshot/dir/x", "../../../" + good + "/snapshot"},
	} {
		id := f.add("/w/e", link.backup, nil)
		name := filepath.Join(f.dir, id, link.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(link.to, name); err != nil {
			t.Skip("SKIPPED: no symbolic links:", err)
		}
		want[id] = "is not a "
	}
	whole := fmt.Sprintf("%032x", 0xabc)
	if err := os.Symlink(good, filepath.Join(f.dir, whole)); err != nil {
		t.Fatal(err)
	}
	want[whole] = "is not a directory"
	f.imports(d, "local", 1, 0, want)
}

// The content that a row of the folder names has to be in its own directory.
func TestImportReadsNothingElse(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	f := &moltisFolder{t: t, dir: filepath.Join(t.TempDir(), "checkpoints")}
	good := f.file("/w/a", "fine")
	secret := filepath.Join(filepath.Dir(f.dir), "secret")
	if err := os.WriteFile(secret, []byte("SECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, backup := range []string{secret, "../../secret", "../" + good + "/snapshot/file", "snapshot/../../../secret",
		"/etc/passwd", "..", ".", "snapshot\\..\\..\\..\\secret", "manifest.json/../../../secret", "snapshot/file/../../../../secret"} {
		want[f.add("/w/b", backup, map[string]string{"snapshot/file": "fine"})] = ""
	}
	f.imports(d, "local", 1, 0, want)
	if _, err := d.Content(ctx, fmt.Sprintf("%x", sha256.Sum256([]byte("SECRET")))); err == nil {
		t.Error("it is in the store")
	}
}

// A second principal may take over the checkpoints that one has taken over.
func TestImportIsOfItsPrincipal(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	f := &moltisFolder{t: t, dir: t.TempDir()}
	f.file("/w/a", "1")
	f.file("/w/a", "2")
	f.imports(d, "local", 2, 0, nil)
	f.imports(d, "bob", 2, 0, nil)
	f.imports(d, "bob", 0, 2, nil)
	if p, err := d.List(ctx, checkpoint.Filter{Principal: "bob", Session: "moltis"}); err != nil || len(p.Checkpoints) != 2 {
		t.Errorf("%+v %v", p, err)
	}
}

// No created_at is taken for now, that of Go's zero time neither.
func TestImportRefusesWhatIsNoTime(t *testing.T) {
	d := open(t, t.TempDir(), checkpoint.Options{})
	f := &moltisFolder{t: t, dir: t.TempDir()}
	want := map[string]string{}
	for _, at := range []int64{-62135596800, -62135596801, -1 << 63, 1<<63 - 1, 1 << 40} {
		f.at = at
		want[f.file("/w/a", "x")] = fmt.Sprintf("created_at %d is out of range", at)
	}
	f.at = 0
	f.file("/w/a", "y")
	f.imports(d, "local", 1, 0, want)
}
