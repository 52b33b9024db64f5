//go:build linux && !rooted

package engine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/testdir"
)

func renewed(ts []*engine.Target) error {
	ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte("new\n")}
	return nil
}

// synced grows a tree where everything is on stable storage before it counts; meet sees every call to the tree.
func synced(t *testing.T, meet func(op string) *guardfs.Fault) *tree {
	x := grow(t, nil)
	x.Close()
	x.fault = meet
	x.open()
	return x
}

// An edit writes the new file, saves the checkpoint and syncs both, and only then swaps. What was
// there goes before the directory is synced, so that one sync does for both names.
func TestOrderOfAnEdit(t *testing.T) {
	var mu sync.Mutex
	var ops []string
	x := synced(t, func(op string) *guardfs.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch op {
		case "write", "fsync", "link", "rename", "unlink":
			ops = append(ops, op)
		}
		return nil
	})
	for name, want := range map[string]string{"old.txt": "write fsync link rename unlink fsync", "new.txt": "write fsync link rename fsync"} {
		if name == "old.txt" {
			x.write(name, "old\n")
		}
		ops = nil
		must(t, errOf(x.call("s").ChangeFiles(ctx, engine.Files{Paths: []string{x.ws + "/" + name}, Next: renewed})))
		if got := strings.Join(ops, " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A small file that can't be written leaves no checkpoint of a change that was not made; one that can't be synced leaves no change.
func TestSmallFileThatCannotBeWritten(t *testing.T) {
	for _, bad := range []string{"write", "fsync"} {
		t.Run(bad, func(t *testing.T) {
			fail := false
			x := synced(t, func(op string) *guardfs.Fault {
				if fail && op == bad {
					return &guardfs.Fault{Err: syscall.EIO}
				}
				return nil
			})
			x.write("f", "old\n")
			before := x.looks()
			fail = true
			if _, err := x.call("s").ChangeFiles(ctx, engine.Files{Paths: []string{x.ws + "/f"}, Next: renewed}); err == nil {
				t.Fatal("it was changed all the same")
			}
			fail = false
			x.same("left behind", before)
			x.Close()
			db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
			must(t, err)
			defer db.Close()
			page, err := db.List(ctx, checkpoint.Filter{AllSessions: true, Principal: "p"})
			must(t, err)
			for _, c := range page.Checkpoints {
				if bad == "write" || c.Outcome != checkpoint.Aborted {
					t.Errorf("a checkpoint of a change that was not made: %+v", c)
				}
			}
		})
	}
}

// openFiles lets the process have so many files open until the test ends; with more, so many beside those that are open now.
func openFiles(t testing.TB, more bool, files int) {
	t.Helper()
	var was syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
	if more {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("SKIPPED: open files can't be counted: ", err)
		}
		files += len(fds)
	}
	now := was
	if now.Cur = uint64(files); now.Cur > was.Max {
		t.Skipf("SKIPPED: no more than %d files may be open here", was.Max)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &now); err != nil {
		t.Skip("SKIPPED: the limit can't be set: ", err)
	}
	t.Cleanup(func() { syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) }) //nolint:errcheck // it was so before
}

// unlittered fails where a temporary file is left.
func (x *tree) unlittered() {
	x.t.Helper()
	err := filepath.WalkDir(x.ws, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), ".moltis-") && !d.IsDir() {
			x.t.Errorf("%s is left", path)
		}
		return err
	})
	must(x.t, err)
}

// With a fraction as many open files, hundreds of files are changed, rewound, and made anew after
// they were removed, all in one go; in soak it is ten thousand with a thousand.
func TestThousandsWithinOpenFiles(t *testing.T) {
	for name, c := range map[string]struct{ files, each int }{
		"one directory": {*manyFiles, *manyFiles}, "many directories": {*manyFiles / 5, 4},
	} {
		t.Run(name, func(t *testing.T) {
			x := grow(t, nil)
			var names []string
			for i := range c.files {
				names = append(names, fmt.Sprintf("d%d/f%d", i/c.each, i))
				x.write(names[i], "old\n")
			}
			openFiles(t, false, max(128, *manyFiles/10))
			call := x.turn("s", "t1")
			all := func(want string) {
				t.Helper()
				x.haveAll(want, names...)
				x.unlittered()
			}
			must(t, errOf(call.ChangeFiles(ctx, x.becomes("new\n", names...))))
			all("new\n")
			if done, err := call.Restore(ctx, rewindTo("t1"), engine.RestoreOptions{}); err != nil || done.Checkpoint == "" {
				t.Fatal(err)
			}
			all("old\n")
			must(t, errOf(call.Undo(ctx, engine.RestoreOptions{})))
			all("new\n")
			for i := range (c.files + c.each - 1) / c.each {
				must(t, os.RemoveAll(fmt.Sprintf("%s/d%d", x.ws, i)))
			}
			must(t, errOf(call.Restore(ctx, rewindTo("t1"), engine.RestoreOptions{OnConflict: engine.OnConflictForce})))
			all("old\n")
		})
	}
}

// With however few open files, a restore of what was removed is refused or goes, and never fails half-way. A refusal comes before anything changes, and
// says in how many directories the paths may be.
func TestRestoreWithinOpenFiles(t *testing.T) {
	const files = 120
	for _, c := range []struct {
		name string
		gone bool
	}{{"d/f%d", false}, {"d%d/f", false}, {"d%d/f", true}} { // one directory; many; and many that have to be made
		refused := 0
		x := grow(t, nil)
		who := x.turn("s", "t1")
		var names []string
		for i := range files {
			names = append(names, fmt.Sprintf(c.name, i))
			x.write(names[i], "old\n")
		}
		must(t, errOf(who.ChangeFiles(ctx, x.becomes("new\n", names...))))
		for _, name := range names {
			must(t, os.Remove(x.ws+"/"+name))
			if c.gone {
				must(t, os.Remove(filepath.Dir(x.ws+"/"+name)))
			}
		}
		for more := 20; ; more += 20 {
			var err error
			t.Run(fmt.Sprintf("%s %v %d more", c.name, c.gone, more), func(t *testing.T) {
				openFiles(t, true, more)
				_, err = who.Restore(ctx, rewindTo("t1"), engine.RestoreOptions{OnConflict: engine.OnConflictForce})
			})
			if err == nil {
				break
			}
			limit, ok := factsOf[engine.CountFacts](err, engine.TooManyPaths)
			if refused++; !ok || limit.Dirs && limit.Most < 8 {
				t.Fatalf("%s: with %d open files more: %v", c.name, more, err)
			}
			if more > 2*files {
				t.Fatalf("%s: %d open files more are not enough: %v", c.name, more, err)
			}
			x.has(names[0], "-")
		}
		if refused == 0 {
			t.Errorf("%s: nothing was refused: the test tests nothing", c.name)
		}
		x.haveAll("old\n", names...)
		x.unlittered()
	}
}

// A restore of many files has what it brings back from the store: the question shows it, all of it comes, and an undo takes it away again. Where the
// store loses one of them while somebody thinks, nothing changes.
func TestRestoreOfMany(t *testing.T) {
	x, a := asking(t)
	var names []string
	for i := range 120 {
		names = append(names, fmt.Sprintf("f%d", i))
		x.write(names[i], fmt.Sprintf("old %d\n", i))
	}
	restore := func(r checkpoint.Restore) error {
		c := x.turn("s", "")
		c.Approver, a.asked = a, nil
		return errOf(c.Restore(ctx, r, engine.RestoreOptions{}))
	}
	who := x.turn("s", "t1")
	who.Approver = a
	must(t, errOf(who.ChangeFiles(ctx, x.becomes("new\n", names...))))
	must(t, restore(rewindTo("t1")))
	if q := a.asked[0]; q.Added != 120 || q.Removed != 120 || !strings.Contains(q.Diff, "-new\n+old 119\n") {
		t.Errorf("the question has +%d -%d:\n%.300s", q.Added, q.Removed, q.Diff)
	}
	x.has("f0", "old 0\n")
	x.has("f119", "old 119\n")
	c := x.turn("s", "")
	c.Approver = a
	must(t, errOf(c.Undo(ctx, engine.RestoreOptions{})))
	x.haveAll("new\n", names...)
	a.while = func() {
		db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
		must(t, err)
		_, err = db.Purge(ctx, checkpoint.Purge{Hash: engine.HashOf([]byte("old 77\n"))})
		must(t, errors.Join(err, db.Close()))
	}
	err := restore(rewindTo("t1"))
	if r := engine.Reason(err); r == nil || r.Cause != engine.NotStored {
		t.Errorf("with a content that is gone: %v", err)
	}
	x.haveAll("new\n", names...)
	x.unlittered()
}

// So many directories as a refusal names do go.
func TestRestoreInParts(t *testing.T) {
	const dirs, each = 300, 1
	x := grow(t, nil)
	who := x.turn("s", "t1")
	var names []string
	for i := range dirs * each {
		names = append(names, fmt.Sprintf("d%d/f%d", i/each, i%each))
		x.write(names[i], "old\n")
	}
	must(t, errOf(who.ChangeFiles(ctx, x.becomes("new\n", names...))))
	openFiles(t, true, 150)
	for _, o := range []engine.RestoreOptions{{DryRun: true}, {}} {
		_, err := who.Restore(ctx, rewindTo("t1"), o)
		limit, ok := factsOf[engine.CountFacts](err, engine.TooManyPaths)
		if !ok || !limit.Dirs || limit.Most < 50 || limit.Most > 150 {
			t.Fatalf("%+v: it must be refused: %v", o, err)
		}
		if o.DryRun {
			continue
		}
		r := checkpoint.Restore{Turn: "t1"}
		for i := range limit.Most {
			r.Paths = append(r.Paths, fmt.Sprintf("%s/d%d", x.ws, i))
		}
		if _, err := who.Restore(ctx, r, engine.RestoreOptions{}); err != nil {
			t.Fatalf("%d directories must go: %v", limit.Most, err)
		}
		x.has("d0/f0", "old\n")
		x.has(fmt.Sprintf("d%d/f0", limit.Most), "new\n")
	}
}

// A directory that a change made and that can't go with it is told, with the reason: in a dry run too, as far as that can tell.
func TestDirectoriesThatStayAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		op     string // the call that goes wrong, on whichever directory it comes to first
		err    error
		inside bool
		why    engine.Why
		dry    bool // a dry run knows it
	}{
		"something is in it":    {inside: true, why: engine.InUse, dry: true},
		"it may not be listed":  {op: "getdents", err: syscall.EACCES, why: engine.Unlisted, dry: true},
		"it can't be listed":    {op: "getdents", err: syscall.EIO, why: engine.NotListed.Of(syscall.EIO), dry: true},
		"it can't be removed":   {op: "rmdir", err: syscall.EBUSY, why: engine.NotRemoved.Of(syscall.EBUSY)},
		"it may not be removed": {op: "rmdir", err: syscall.EPERM, why: engine.NotRemoved.Of(syscall.EPERM)},
	} {
		t.Run(name, func(t *testing.T) {
			x := grow(t, nil)
			system := callsOf(x)
			id := x.put("s", "d/f", "f\n")
			if c.inside {
				x.write("d/theirs", "t\n")
			}
			hook := func(op string) *guardfs.Fault {
				if c.op != "" && op == c.op {
					return &guardfs.Fault{Err: c.err}
				}
				return nil
			}
			for _, dry := range []bool{true, false} {
				system.hook.Store(&hook)
				done, err := x.call("s").Restore(ctx, checkpoint.Restore{ID: id}, engine.RestoreOptions{DryRun: dry})
				system.hook.Store(nil)
				must(t, err)
				told := len(done.Kept) == 1 && done.Kept[0].Path == x.ws+"/d" && done.Kept[0].Why == c.why
				if want := !dry || c.dry; told != want || !want && done.Kept != nil {
					t.Errorf("dry run %v: %+v", dry, done.Kept)
				}
			}
			x.has("d/f", "-")
			must(t, errOf(os.Stat(x.ws+"/d")))
		})
	}
}

// A new file below directories that are to be made goes by no link, and no other way than the one that was looked at.
func TestMadeDirectoriesAreWhereTheyWereLookedAt(t *testing.T) {
	for name, c := range map[string]struct {
		others func(dir string)
		ok     bool
	}{
		"nobody interferes": {func(string) {}, true},
		"somebody makes it": {func(dir string) { _ = os.MkdirAll(dir+"/a/b", 0o755) }, false},
		"a link appears":    {func(dir string) { _ = os.Symlink("other", dir+"/a") }, false},
		"a file appears":    {func(dir string) { _ = os.WriteFile(dir+"/a", nil, 0o644) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			x := grow(t, nil)
			must(t, os.Mkdir(x.ws+"/other", 0o755))
			hook := onceBefore("mkdir", func() { c.others(x.ws) })
			err := callsOf(x).meet(hook, func() error { return x.does(writes("f", "a/b/f")) })
			if (err == nil) != c.ok {
				t.Errorf("%v", err)
			}
			names := strings.Fields(x.looks())
			if slices.Contains(names, "/a/b/f") != c.ok || slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "/other/") }) {
				t.Errorf("%v\n%s", err, x.looks())
			}
			x.settled()
		})
	}
}

// A file that somebody else makes is his, also if it is, byte for byte, what a call is about to make: whichever system call of ours he is there before, what he made
// stays where our call failed.
func TestTheSameMadeByOthers(t *testing.T) {
	t.Parallel()
	made := func(x *tree, name, content string) os.FileInfo { // in one step, and never in the place of something else
		path := x.ws + "/" + name
		temp := x.data + "/others"
		_ = os.MkdirAll(filepath.Dir(path), 0o755)
		if os.WriteFile(temp, []byte(content), 0o644) != nil || os.Link(temp, path) != nil {
			return nil
		}
		_ = os.Remove(temp)
		fi, _ := os.Lstat(path)
		return fi
	}
	replaced := func(x *tree, name, content string) os.FileInfo {
		temp := x.data + "/others"
		if os.WriteFile(temp, []byte(content), 0o644) != nil || os.Rename(temp, x.ws+"/"+name) != nil {
			return nil
		}
		fi, _ := os.Lstat(x.ws + "/" + name)
		return fi
	}
	link := func(x *tree, name string) os.FileInfo {
		if os.Symlink("away", x.ws+"/"+name) != nil {
			return nil
		}
		fi, _ := os.Lstat(x.ws + "/" + name)
		return fi
	}
	for _, c := range []struct {
		name, path string
		before     func(x *tree, d string)
		step       func(d string) act
		other      func(x *tree, d string) os.FileInfo
	}{
		{"a new file", "f", nil,
			func(d string) act { return writes("same", d+"f") },
			func(x *tree, d string) os.FileInfo { return made(x, d+"f", "same") }},
		{"a new file in new directories", "d/e/f", nil,
			func(d string) act { return writes("same", d+"d/e/f") },
			func(x *tree, d string) os.FileInfo { return made(x, d+"d/e/f", "same") }},
		{"an edit", "f", func(x *tree, d string) { x.put("s", d+"f", "old") },
			func(d string) act { return writes("same", d+"f") },
			func(x *tree, d string) os.FileInfo { return replaced(x, d+"f", "same") }},
		{"the first of two, when the second fails", "f", func(x *tree, d string) { x.put("s", d+"f", "old") },
			func(d string) act { return writes("same", d+"f", d+"g") },
			func(x *tree, d string) os.FileInfo {
				made(x, d+"g", "another")
				return replaced(x, d+"f", "same")
			}},
		{"a link that comes back", "l", func(x *tree, d string) {
			if link(x, d+"l") == nil {
				x.t.Fatal("no link")
			}
			must(x.t, x.does(deletes(d+"l")))
		},
			func(string) act { return undoes },
			func(x *tree, d string) os.FileInfo { return link(x, d+"l") }},
		{"a file that goes", "f", func(x *tree, d string) { x.put("s", d+"f", "old") },
			func(d string) act { return deletes(d + "f") },
			func(x *tree, d string) os.FileInfo { _ = os.Remove(x.ws + "/" + d + "f"); return nil }},
	} {
		for _, checkpoints := range []bool{true, false} {
			if c.before != nil && !checkpoints {
				continue
			}
			t.Run(fmt.Sprintf("%s, checkpoints %v", c.name, checkpoints), func(t *testing.T) {
				x := grow(t, func(fs *config.FS) { fs.CheckpointBeforeMutation = checkpoints })
				system := callsOf(x)
				failures := 0
				for n := int64(1); ; n++ {
					d := fmt.Sprintf("%d/", n)
					must(t, os.Mkdir(x.ws+"/"+d, 0o755))
					if c.before != nil {
						c.before(x, d)
					}
					var theirs os.FileInfo
					met, err := system.beside(n, func() { theirs = c.other(x, d) }, func() error { return x.does(c.step(d)) })
					if !met {
						break
					}
					if err == nil {
						continue
					}
					failures++
					now, lerr := os.Lstat(x.ws + "/" + d + c.path)
					switch {
					case c.name == "a file that goes" && lerr == nil:
						t.Errorf("before call %d somebody removed it, the answer was %v, and it is back", n, err)
					case theirs != nil && (lerr != nil || !os.SameFile(now, theirs)):
						t.Errorf("before call %d somebody made it, the answer was %v, and now it is gone: %v", n, err, lerr)
					}
				}
				if failures == 0 {
					t.Error("nobody was in the way of anybody: nothing was tested")
				}
			})
		}
	}
}

// Two who make the same new file in the same new directories wait for each other: both have made it, and nothing goes.
func TestTwoMakeTheSame(t *testing.T) {
	t.Parallel()
	for _, same := range []bool{true, false} {
		x := grow(t, nil)
		other := x.open2(x.ws).Engine
		for i := range 40 {
			var wg sync.WaitGroup
			errs := make([]error, 4)
			for k := range errs {
				e, content := x.Engine, "same"
				if k%2 == 1 {
					e = other
				}
				if !same {
					content = fmt.Sprint("of ", k)
				}
				wg.Go(func() {
					_, errs[k] = e.Begin(x.call(fmt.Sprint("s", k))).ChangeFiles(ctx, engine.Files{Paths: []string{fmt.Sprintf("%s/d%d/e/f", x.ws, i)}, Parents: true,
						Next: holding(content)})
				})
			}
			wg.Wait()
			for k, err := range errs {
				if err != nil {
					t.Errorf("round %d, same %v: %d: %v", i, same, k, err)
				}
			}
			if _, err := os.Stat(fmt.Sprintf("%s/d%d/e/f", x.ws, i)); err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
		}
	}
}

// Two who take the same back at the same time wait for each other: everything is back, one of them has nothing left to do and says so, and what the other
// did is one step of the history.
func TestTwoRestoreTheSame(t *testing.T) {
	t.Parallel()
	const files = 8
	for round := range 6 {
		x := grow(t, nil)
		other := x.open2(x.ws).Engine
		c := x.turn("s", "t")
		for i := range files {
			x.put("s", fmt.Sprintf("n/%d/x", i), "new\n")
		}
		full := x.looks()
		both := func(r checkpoint.Restore) {
			t.Helper()
			var wg sync.WaitGroup
			var points [2]string
			for i, e := range []*engine.Engine{x.Engine, other} {
				wg.Go(func() {
					done, err := e.Begin(x.call("s")).Restore(ctx, r, engine.RestoreOptions{})
					if err != nil {
						t.Errorf("round %d: %v", round, err)
						return
					}
					points[i] = done.Checkpoint
					if len(done.Kept) > 0 || done.Idle != (done.Checkpoint == "") {
						t.Errorf("round %d: kept %v, idle %v, checkpoint %q", round, done.Kept, done.Idle, done.Checkpoint)
					}
				})
			}
			wg.Wait()
			if points[0] != "" && points[1] != "" {
				t.Errorf("round %d: both have changed something: %v", round, points)
			}
		}
		both(rewindTo("t"))
		x.has("n/0/x", "-")
		if _, err := c.Undo(ctx, engine.RestoreOptions{}); err != nil || x.looks() != full {
			t.Fatalf("round %d: %v\n%s\nwant\n%s", round, err, x.looks(), full)
		}
		done, err := c.Redo(ctx, engine.RestoreOptions{})
		must(t, err)
		both(checkpoint.Restore{ID: checkpoint.ID(done.Checkpoint)})
		if x.looks() != full {
			t.Errorf("round %d:\n%s\nwant\n%s", round, x.looks(), full)
		}
	}
}

// swap makes a link to another directory of the place where dir was.
func (x *tree) swap(dir, to string) {
	x.t.Helper()
	must(x.t, errors.Join(os.Rename(x.ws+"/"+dir, x.ws+"/"+to), os.Symlink(to, x.ws+"/"+dir)))
}

// A start takes back a change that was cut off in the directory where it was made, or not at all.
func TestTakenBackByNoLink(t *testing.T) {
	for n := int64(41); n < 400; n += 2 {
		x := grow(t, nil)
		system := callsOf(x)
		paths := []string{x.write("d/a", "old\n"), x.write("e/b", "old\n")}
		system.fail(n, badCalls()["EIO ever after"], func() error {
			return errOf(x.call("s").ChangeFiles(ctx, engine.Files{Paths: paths, Next: holding("new\n")}))
		})
		marks := x.halfWay()
		if a, err := os.ReadFile(x.ws + "/d/a"); err != nil || string(a) != "new\n" || marks == nil {
			x.Close()
			continue
		}
		x.Close()
		x.swap("d", "real")
		x.open()
		x.has("real/a", "new\n")
		return
	}
	t.Error("no change was cut off half-way: the test tests nothing")
}

// A directory with the name of our trash that others may write to is none of ours.
func TestTrashOfOthersIsNotUsed(t *testing.T) {
	x := grow(t, small)
	x.write("t/big.bin", strings.Repeat("b", 101))
	planted := x.data + "/" + guardfs.TrashPrefix + "-" + strconv.Itoa(os.Getuid())
	must(t, errors.Join(os.Mkdir(planted, 0o700), os.Chmod(planted, 0o777)))
	before := x.looks()
	if _, err := x.call("s").Delete(ctx, x.ws+"/t", engine.DeleteOptions{Recursive: true}); !errors.Is(err, fs.ErrPermission) || x.looks() != before {
		t.Errorf("%v\n%s", err, x.looks())
	}
}

// A store through a memory mapping moves no time of a page that is dirty already. So as long as a
// mapping is there, no hash is remembered.
func TestNoHashIsRememberedUnderAMapping(t *testing.T) {
	x := growIn(t, testdir.Disk(t), nil)
	path := x.write("f", strings.Repeat("0123456789", engine.InMemory/5))
	x.SetClock(func() time.Time { return time.Now().Add(time.Hour) })
	if x.hashOf(path); x.Sums() != 1 {
		t.Skip("SKIPPED: no hash is remembered on this file system")
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	m, err := syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	must(t, err)
	defer syscall.Munmap(m) //nolint:errcheck // the test is over
	f.Close()
	for i := range 50 {
		time.Sleep(time.Duration(i%3) * 5 * time.Millisecond) // a store comes in the same tick of the clock as the hash, or later
		m[7] = byte(i)
		now, err := os.ReadFile(path)
		must(t, err)
		if x.hashOf(path) != engine.HashOf(now) {
			t.Fatalf("an old hash after %d stores", i+1)
		}
	}
}
