//go:build linux

package grep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"moltisfs/grep/match"
	"moltisfs/internal/guardfs"
)

// ways allows the directory that it names, and below it files of whatever name but *.txt. All other
// directories there are only passed through.
type ways string

func (root ways) Judge(o guardfs.Object, a guardfs.Access) error {
	dir := o.Info.Kind == guardfs.KindDir
	inside := o.True == string(root) || strings.HasPrefix(o.True, string(root)+"/")
	if !inside || !dir && strings.HasSuffix(o.True, ".txt") || dir && a != guardfs.Walk && o.True != string(root) {
		return errHidden
	}
	return nil
}

func (root ways) Dir(string, ...string) guardfs.DirVerdict {
	return guardfs.DirVerdict{
		Entry: func(name string, k guardfs.Kind) bool {
			return k != guardfs.KindDir && !strings.HasSuffix(name, ".txt")
		},
		Way: func(name string) bool { return name != "closed" },
	}
}

// A directory that is only passed through counts as one that is denied and in no other way,
// whatever is in it and whatever is asked for: nobody can find out by the counts that it is there.
func TestWays(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	root := filepath.Join(top, "root")
	for _, name := range []string{
		"a.go", "n.txt", "hr/s1.txt", "hr/s2.txt", "hr/deep/s3.txt", "hr/.git/HEAD", "pkg/b.go", "pkg/c.txt", "pkg/deep/d.go", "pkg/x.gen.go", "skip/e.go", "closed/f.go",
	} {
		p := filepath.Join(root, name)
		os.MkdirAll(filepath.Dir(p), 0o755)
		os.WriteFile(p, []byte("needle "+name+"\n"), 0o644)
	}
	os.WriteFile(filepath.Join(root, ".gitignore"), []byte("*.gen.go\nskip/\nhr/\nmissing/\n"), 0o644)
	os.Mkdir(filepath.Join(root, "shut"), 0)
	fs, err := guardfs.New(guardfs.Options{Judge: ways(root)})
	must(t, err)
	defer fs.Close()

	rel := func(hits []FileHit) (names []string) {
		for _, h := range hits {
			names = append(names, strings.TrimPrefix(h.Path, root+"/"))
		}
		return names
	}
	open := func(t *testing.T, path string) Walk {
		d, err := openGuarded(fs, path)
		must(t, err)
		t.Cleanup(func() { d.Close() })
		return Walk{Dir: d}
	}
	const hidden = 6 // n.txt, hr, pkg, skip, closed, shut
	for _, c := range []struct {
		glob    string
		files   int
		ignored int
	}{
		{"", 4, 1}, {"**/*.go", 3, 1}, {"pkg/**", 2, 1}, {"hr/**", 0, 0}, {"hr/*", 0, 0}, {"hr/deep/**", 0, 0}, {"hr/.git/*", 0, 0},
		{"missing/**", 0, 0}, {"missing/*", 0, 0}, {"skip/**", 0, 0}, {"closed/**", 0, 0}, {"shut/**", 0, 0}, {"*.txt", 0, 0}, {"hr", 0, 0},
	} {
		want := Skipped{Denied: hidden, Ignored: c.ignored}
		r, err := Files(context.Background(), open(t, root), GlobQuery{Pattern: c.glob})
		if err != nil || r.Total != c.files || r.Skipped != want {
			t.Errorf("%q: %v, skipped %+v, want %d and %+v (%v)", c.glob, rel(r.Files), r.Skipped, c.files, want, err)
		}
		q := Query{Matcher: compile(t, "needle", match.Options{})}
		if c.glob != "" {
			q.Glob = []string{c.glob}
		}
		plain := searchIn(t, fs, root, Walk{}, q)
		if plain.Skipped != want {
			t.Errorf("%q: %v %+v", c.glob, rel(plain.Files), plain.Skipped)
		}
	}

	for name, want := range map[string]bool{"": true, "pkg": true, "pkg/deep": true, "skip": true, "hr": false, "hr/deep": false} {
		if got := Any(context.Background(), open(t, filepath.Join(root, name))); got != want {
			t.Errorf("a file in %q: %v", name, got)
		}
	}
}

// Root may read what others may not, so that TestWays shows less when it runs as root. Here it is
// run once more, as somebody else.
func TestWaysAsNobody(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: TestWays runs as somebody else already")
	}
	program, err := os.ReadFile(os.Args[0])
	must(t, err)
	dir := t.TempDir()
	copied := filepath.Join(dir, "test") // the one that runs lies where only root may go
	must(t, errors.Join(os.WriteFile(copied, program, 0o755), os.Chmod(copied, 0o755), os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o777)))
	cmd := exec.Command(copied, "-test.run=^TestWays$")
	cmd.Dir, cmd.Env = dir, []string{"TMPDIR=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// Any does not go on when it has found something.
func TestAnyStops(t *testing.T) {
	tree := fstest.MapFS{}
	for i := range 2000 {
		tree[fmt.Sprintf("d%d/f", i)] = &fstest.MapFile{}
	}
	var opened int
	if !Any(context.Background(), Walk{Dir: FS(counting{tree, &opened}), Workers: 1}) || opened > 100 {
		t.Errorf("%d directories were read", opened)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if Any(ctx, Walk{Dir: FS(tree)}) {
		t.Error("found after the end")
	}
}

type counting struct {
	fs.FS
	read *int
}

func (c counting) ReadDir(name string) ([]fs.DirEntry, error) {
	*c.read++
	return fs.ReadDir(c.FS, name)
}
