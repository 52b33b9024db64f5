//go:build linux && !rooted

package engine_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"syscall"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// A rewind over a file that became a directory, and a directory that became a file, goes in one step, and can be undone and redone.
func TestRewindOfTradedPlaces(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"", engine.OnConflictSkip, engine.OnConflictForce, engine.OnConflictMerge} {
		x := grow(t, nil)
		old, traded := x.trade()
		o := engine.RestoreOptions{OnConflict: how}
		dry := o
		dry.DryRun = true
		if _, err := x.Restore(ctx, x.call("s"), rewindTo("t"), dry); err != nil || x.looks() != traded {
			t.Fatalf("%q, dry: %v\n%s", how, err, x.looks())
		}
		done, err := x.Restore(ctx, x.call("s"), rewindTo("t"), o)
		if err != nil || x.looks() != old {
			t.Fatalf("%q: %v\n%s\nwant\n%s", how, err, x.looks(), old)
		}
		if len(done.Skipped)+len(done.Kept) > 0 || done.Done.Skipped != "" {
			t.Errorf("%q: skipped %v, kept %v, %s", how, done.Skipped, done.Kept, done.Done.Skipped)
		}
		page, err := x.Trash(ctx, x.call("s"), checkpoint.TrashFilter{})
		must(t, err)
		for _, gone := range []string{"/file/1", "/file/deep/2", "/dir", "/hollow", "/link/3"} {
			found := false
			for _, e := range page.Entries {
				found = found || e.Path == x.ws+gone
			}
			if !found {
				t.Errorf("%q: %s is not in the trash", how, gone)
			}
		}
		for range 2 {
			if _, err := x.Undo(ctx, x.call("s"), o); err != nil || bare(x.looks()) != bare(traded) {
				t.Fatalf("%q, undone: %v\n%s\nwant\n%s", how, err, x.looks(), traded)
			}
			if _, err := x.Redo(ctx, x.call("s"), o); err != nil || x.looks() != old {
				t.Fatalf("%q, redone: %v\n%s\nwant\n%s", how, err, x.looks(), old)
			}
		}
	}
}

// A diff shows every path of a history in which files and directories have traded places; what can't be looked at any more is left out with a reason.
func TestDiffOfTradedPlaces(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	x.trade()
	kinds := func(when string, now bool, want ...string) {
		t.Helper()
		shown, left, denied, err := x.Compare(ctx, x.call("s"), rewindTo("t"), now)
		got := map[string]string{}
		for _, c := range shown {
			got[strings.TrimPrefix(c.Path, x.ws+"/")] = string(c.Before) + " " + string(c.After)
		}
		for _, l := range left {
			got[strings.TrimPrefix(l.Path, x.ws+"/")] = l.Why.Name
		}
		for i := 0; i < len(want); i += 2 {
			if !strings.Contains(got[want[i]], want[i+1]) || got[want[i]] == "" {
				t.Errorf("%s: %s is %q, want %q", when, want[i], got[want[i]], want[i+1])
			}
		}
		if err != nil || denied > 0 {
			t.Errorf("%s: %d denied, %v", when, denied, err)
		}
	}
	did := []string{"file", "file ", "file/1", "absent file", "file/deep/2", "absent file", "dir/sub/b", "file absent", "dir", " file"}
	kinds("did", false, did...)
	kinds("now", true, did...)
	if _, err := x.Restore(ctx, x.call("s"), rewindTo("t"), engine.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	kinds("back", true, "file", "file file", "file/1", "absent absent", "file/deep/2", "absent absent", "dir/sub/b", "file file")
	must(t, errors.Join(os.Remove(x.ws+"/file"), os.Symlink("file", x.ws+"/file")))
	kinds("a loop", true, "file/1", engine.NotLookedAt.Name, "dir/sub/b", "file file")
}

// A change by others of a file that has taken a directory's place is noticed as that of any other.
func TestOutsideChangeOfATradedFile(t *testing.T) {
	x := grow(t, nil)
	x.trade()
	if _, err := x.Restore(ctx, x.call("s"), rewindTo("t"), engine.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	x.write("file", "theirs\n")
	c := x.call("s")
	c.Turn = "t2"
	x.BeginTurn(ctx, c)
	row, err := x.Checkpoints(ctx, c, checkpoint.Filter{Limit: 1})
	if err != nil || len(row.Checkpoints) != 1 || row.Checkpoints[0].Kind != checkpoint.KindExternal || len(row.Checkpoints[0].Changes) != 1 || row.Checkpoints[0].Changes[0].Path != x.ws+"/file" {
		t.Errorf("%+v, %v", row, err)
	}
}

// What the session made and made into something else goes, whatever it was in between.
func TestRewindOfWhatWasBoth(t *testing.T) {
	t.Parallel()
	for _, steps := range [][]string{{"x/f", "x"}, {"x", "x/f"}, {"x/f", "x", "x/g/h"}, {"x", "x/f", "x"}} {
		x := grow(t, nil)
		old := x.looks()
		c := x.call("s")
		c.Turn = "t"
		x.BeginTurn(ctx, c)
		for i, name := range steps {
			if i > 0 {
				_, err := x.Delete(ctx, c, x.ws+"/x", engine.DeleteOptions{Recursive: true})
				must(t, err)
			}
			x.puts("t", name, name+"\n")
		}
		traded := x.looks()
		done, err := x.Restore(ctx, x.call("s"), rewindTo("t"), engine.RestoreOptions{})
		if err != nil || x.looks() != old || len(done.Kept) > 0 {
			t.Fatalf("%v: %v, kept %v\n%s", steps, err, done.Kept, x.looks())
		}
		if _, err := x.Undo(ctx, x.call("s"), engine.RestoreOptions{}); err != nil || bare(x.looks()) != bare(traded) {
			t.Fatalf("%v, undone: %v\n%s\nwant\n%s", steps, err, x.looks(), traded)
		}
	}
}

// What others put into a directory that should give way, or wrote into a file that should, stays: nothing of the rewind is made, or with skip all but that.
func TestTradedPlacesThatOthersUse(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(x *tree){
		"file in the directory":      func(x *tree) { x.write("file/theirs", "t\n") },
		"file below":                 func(x *tree) { x.write("file/deep/theirs", "t\n") },
		"directory in the directory": func(x *tree) { must(x.t, os.Mkdir(x.ws+"/file/theirs", 0o750)) },
		"a changed one in it":        func(x *tree) { x.write("file/1", "t\n") },
		"the file":                   func(x *tree) { x.write("dir", "t\n") },
		"a directory instead":        func(x *tree) { must(x.t, os.Remove(x.ws+"/dir")); x.write("dir/theirs", "t\n") },
		"a link":                     func(x *tree) { must(x.t, os.Remove(x.ws+"/dir")); must(x.t, os.Symlink("same", x.ws+"/dir")) },
	} {
		t.Run(name, func(t *testing.T) {
			x := grow(t, nil)
			old, _ := x.trade()
			use(x)
			now := x.looks()
			if _, err := x.Restore(ctx, x.call("s"), rewindTo("t"), engine.RestoreOptions{}); (err == nil || x.looks() != now) && name != "a directory instead" {
				t.Fatalf("%v\n%s\nwas\n%s", err, x.looks(), now)
			}
			if name == "a directory instead" { // it was to be one
				return
			}
			done, err := x.Restore(ctx, x.call("s"), rewindTo("t"), engine.RestoreOptions{OnConflict: engine.OnConflictSkip})
			if err != nil || len(done.Skipped) == 0 {
				t.Fatalf("skip: %v %+v", err, done)
			}
			for line := range strings.Lines(now) { // theirs stays as it is
				path, _, _ := strings.Cut(line, " ")
				if strings.Contains(line, "theirs") && !strings.Contains(x.looks(), line) {
					t.Errorf("%s is not as it was\n%s", path, x.looks())
				}
			}
			for line := range strings.Lines(old) {
				if strings.HasPrefix(line, "/hollow") && !strings.Contains(x.looks(), line) {
					t.Errorf("%q has to be back\n%s", line, x.looks())
				}
			}
		})
	}
}

var histories = flag.Int64("histories", 10, "how many histories TestTradesAgainstSnapshots has")

// Random histories of one session in which files and directories trade places all the time: a rewind to any turn gives what the tree was at its beginning, its
// undo what it was before the rewind, its redo the same again. TestHistoryAgainstModel, which has two sessions and an outsider, has no name that is both: its model
// knows of no directories.
func TestTradesAgainstSnapshots(t *testing.T) {
	t.Parallel()
	trades := 0
	for seed := range *histories {
		rng := rand.New(rand.NewSource(seed))
		x := grow(t, nil)
		names := []string{"d", "d/e", "d/e/a", "d/e/b", "d/b", "x", "x/y", "x/y/z"}
		var log, turns []string
		var snapshots []string
		bad := func(what, want string, err error) {
			t.Helper()
			t.Fatalf("seed %d: %s\n%s: %v\n%s\nwant\n%s", seed, strings.Join(log, "\n"), what, err, x.looks(), want)
		}
		call := func() *engine.Call {
			c := x.call("s")
			c.Turn = turns[len(turns)-1]
			return c
		}
		begin := func() {
			turns, snapshots = append(turns, fmt.Sprint("t", len(turns))), append(snapshots, x.looks())
			x.BeginTurn(ctx, call())
		}
		begin()
		for step := range 60 {
			name := names[rng.Intn(len(names))]
			info, err := os.Lstat(x.ws + "/" + name)
			switch k := rng.Intn(10); {
			case k < 4 && err == nil && (info.IsDir() || rng.Intn(2) == 0): // what is there goes, and its place may be taken
				log = append(log, "delete "+name)
				_, err := x.Delete(ctx, call(), x.ws+"/"+name, engine.DeleteOptions{Recursive: true})
				must(t, err)
			case k < 7 && !errors.Is(err, syscall.ENOTDIR) && (err != nil || !info.IsDir()):
				log = append(log, "write "+name)
				x.puts(turns[len(turns)-1], name, fmt.Sprintln(name, step))
			case k == 7:
				log = append(log, "turn")
				begin()
			case k == 8:
				to := rng.Intn(len(turns))
				log = append(log, "rewind to "+turns[to])
				now := x.looks()
				done, err := x.Restore(ctx, call(), rewindTo(turns[to]), engine.RestoreOptions{})
				if err != nil || x.looks() != snapshots[to] {
					bad("rewound", snapshots[to], err)
				}
				if done.Checkpoint == "" {
					continue
				}
				for _, target := range done.Targets {
					if target.Before.Exists && target.After.Kind != guardfs.KindAbsent && (target.Before.Info.Kind == guardfs.KindDir) != (target.After.Kind == guardfs.KindDir) {
						trades++
					}
				}
				if _, err := x.Undo(ctx, call(), engine.RestoreOptions{}); err != nil || x.looks() != now {
					bad("undone", now, err)
				}
				if rng.Intn(2) == 0 {
					log = append(log, "undo")
					continue
				}
				if _, err := x.Redo(ctx, call(), engine.RestoreOptions{}); err != nil || x.looks() != snapshots[to] {
					bad("redone", snapshots[to], err)
				}
			}
		}
	}
	t.Logf("%d traded places", trades)
	if trades < int(*histories)/3 {
		t.Error("too few traded places to tell anything")
	}
}

// A directory that gave way comes back with mode, owner and attributes as they were, whatever the umask: by undo and redo, and when the change fails half-way or is
// cut off there.
func TestTradedDirectoryIsAsItWas(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	for name, bad := range badCalls() {
		t.Run(name, func(t *testing.T) {
			x := grow(t, nil)
			system := callsOf(x)
			x.write("x", "a file\n")
			c := x.call("s")
			c.Turn = "t"
			x.BeginTurn(ctx, c)
			_, err := x.Delete(ctx, c, x.ws+"/x", engine.DeleteOptions{})
			must(t, err)
			x.puts("t", "x/sub/a", "new\n")
			for dir, mode := range map[string]uint32{"/x/sub": 0o775, "/x": 0o2770} {
				if os.Geteuid() == 0 {
					must(t, os.Chown(x.ws+dir, 1000, 1000))
				}
				must(t, syscall.Chmod(x.ws+dir, mode))
				if err := syscall.Setxattr(x.ws+dir, "user.x", []byte(dir), 0); err != nil && !errors.Is(err, syscall.ENOTSUP) {
					t.Fatal(err)
				}
			}
			look := func() (s string) {
				for _, dir := range []string{"x", "x/sub"} {
					mode, uid, gid, attr := x.meta(dir)
					s += fmt.Sprintln(dir, mode, uid, gid, attr)
				}
				return s
			}
			was, back := look(), 0
			stride := cmp.Or(*every, 13)
			for n := first(stride); ; n += stride {
				call, err := system.fail(n, bad, func() error {
					_, err := x.Restore(ctx, x.call("s"), rewindTo("t"), engine.RestoreOptions{})
					return err
				})
				if bad.lasting {
					x.Close()
					x.open()
				}
				if info, lerr := os.Lstat(x.ws + "/x"); lerr != nil || !info.IsDir() {
					_, err = x.Undo(ctx, x.call("s"), engine.RestoreOptions{})
				} else if err != nil {
					back++
					err = nil
				}
				if now := look(); err != nil || now != was {
					t.Fatalf("call %d (%s): %v\n%swas\n%s", n, call, err, now, was)
				}
				if call == "" {
					break
				}
			}
			if back == 0 {
				t.Error("no fault did what this is about")
			}
		})
	}
}

// Of a directory that can't give way it is said that force does not help either.
func TestConflictThatStays(t *testing.T) {
	x := grow(t, nil)
	x.trade()
	x.write("file/theirs", "t\n")
	_, err := x.Restore(ctx, x.call("s"), rewindTo("t"), engine.RestoreOptions{OnConflict: engine.OnConflictForce})
	no, ok := factsOf[[]engine.Blocked](err, engine.Conflicts)
	if !ok || len(no) != 1 || !no[0].Stays {
		t.Errorf("%v %+v", err, no)
	}
}
