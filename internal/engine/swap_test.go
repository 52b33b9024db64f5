//go:build linux && !rooted

package engine_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// puts writes a file by way of the engine, in a turn.
func (x *tree) puts(turn, name, content string) {
	x.t.Helper()
	c := x.call("s")
	c.Turn = turn
	_, err := x.Mutate(ctx, c, engine.Mutation{Paths: []string{x.ws + "/" + name}, CreateParents: true, Blind: true, Next: func(ts []*engine.Target) error {
		ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte(content)}
		return nil
	}})
	must(x.t, err)
}

// trade makes, in turn t, a directory of the file "file" and of the link "link", and files of the directories "dir" and "hollow". It returns the tree before and after.
func (x *tree) trade() (old, traded string) {
	x.t.Helper()
	for _, f := range []string{"file", "dir/a", "dir/sub/b", "same"} {
		x.write(f, f+"\n")
	}
	must(x.t, errors.Join(os.Mkdir(x.ws+"/hollow", 0o750), os.Symlink("same", x.ws+"/link"), os.Symlink("a", x.ws+"/dir/l")))
	old = x.looks()
	c := x.call("s")
	c.Turn = "t"
	x.BeginTurn(ctx, c)
	for _, name := range []string{"file", "dir", "hollow", "link"} {
		_, err := x.Delete(ctx, c, x.ws+"/"+name, engine.DeleteOptions{Recursive: true})
		must(x.t, err)
	}
	for _, name := range []string{"file/1", "file/deep/2", "dir", "hollow", "link/3"} {
		x.puts("t", name, "new "+name+"\n")
	}
	return old, x.looks()
}

// A rewind over a file that became a directory, and a directory that became a file, goes in one step, and can be undone and redone.
func TestRewindOfTradedPlaces(t *testing.T) {
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

// What the session made and made into something else goes, whatever it was in between.
func TestRewindOfWhatWasBoth(t *testing.T) {
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
