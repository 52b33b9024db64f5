//go:build linux && !rooted

package engine_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// dirsOf says what became of directories in a restore.
func (x *tree) dirsOf(done *engine.Restored) string {
	var kept []string
	for _, k := range done.Kept {
		kept = append(kept, k.Path)
	}
	return strings.ReplaceAll(fmt.Sprintf("made %v removed %v kept %v skipped %d", done.Made, done.Dropped, kept, len(done.Skipped)), x.ws, "")
}

// both is a dry run and then the restore, which says the same of the directories and has nothing in its checkpoint of those that stay.
func (x *tree) both(r checkpoint.Restore, how, want string) {
	x.t.Helper()
	before := x.looks()
	for _, dry := range []bool{true, false} {
		done, err := x.call("s").Restore(ctx, r, engine.RestoreOptions{OnConflict: how, DryRun: dry})
		must(x.t, err)
		if got := x.dirsOf(done); got != want {
			x.t.Errorf("dry run %v: %s\nwant %s", dry, got, want)
		}
		if dry && x.looks() != before {
			x.t.Errorf("a dry run changed something:\n%s", x.looks())
		}
		if done.Checkpoint == "" {
			continue
		}
		op, err := x.call("s").Checkpoint(ctx, checkpoint.ID(done.Checkpoint))
		must(x.t, err)
		for _, c := range op.Changes {
			_, err := os.Lstat(c.Path)
			if there := err == nil; there != (c.After.Kind != checkpoint.Absent) {
				x.t.Errorf("the checkpoint says that %s became %s; there: %v", c.Path, c.After.Kind, there)
			}
		}
	}
}

func TestDirsOfARestore(t *testing.T) {
	t.Run("what comes back holds its directories", func(t *testing.T) {
		x := grow(t, nil)
		x.puts("t", "b/g", "g\n")
		x.write("b/f", "theirs\n")
		x.puts("t", "b/f", "f\n")
		x.unput(x.call("s"), "b/f")
		x.both(rewindTo("t"), engine.OnConflictForce, "made [] removed [] kept [/b] skipped 0")
		x.has("b/f", "theirs\n")
	})
	t.Run("none is made for what is skipped", func(t *testing.T) {
		x := grow(t, nil)
		x.puts("t", "c/d/x", "x\n")
		x.puts("t", "c/y", "y\n")
		for range 2 {
			must(t, x.does(undoes))
		}
		done, err := x.call("s").Redo(ctx, engine.RestoreOptions{DryRun: true})
		if err != nil || x.dirsOf(done) != "made [/c /c/d] removed [] kept [] skipped 0" {
			t.Errorf("%s %v", x.dirsOf(done), err)
		}
		x.put("other", "c/d/x", "theirs\n")
		must(t, os.RemoveAll(x.ws+"/c"))
		row, err := x.call("s").Checkpoints(ctx, checkpoint.Filter{Limit: 1, Session: "s"})
		must(t, err)
		r := checkpoint.Restore{ID: row.Checkpoints[0].ID}
		x.both(r, engine.OnConflictSkip, "made [] removed [] kept [] skipped 1")
		x.has("c", "-")
		x.both(r, engine.OnConflictForce, "made [/c /c/d] removed [] kept [] skipped 0")
	})
	t.Run("it says what it removes", func(t *testing.T) {
		x := grow(t, nil)
		x.puts("t", "c/x", "x\n")
		must(t, os.RemoveAll(x.ws+"/c"))
		must(t, os.Mkdir(x.ws+"/c", 0o755))
		x.both(rewindTo("t"), "", "made [] removed [/c] kept [] skipped 0")
	})
}

// Paths that can't be there together, because one was a file when the other was not below it yet, are a conflict in the dry run as in the restore.
func TestAFileAndWhatIsBelowIt(t *testing.T) {
	x := grow(t, nil)
	x.puts("t", "b", "b\n")
	must(t, errors.Join(os.Remove(x.ws+"/b"), os.Mkdir(x.ws+"/b", 0o755)))
	x.puts("t", "b/c", "c\n")
	must(t, os.RemoveAll(x.ws+"/b"))
	c := x.turn("s", "u")
	row, err := c.Checkpoints(ctx, checkpoint.Filter{Limit: 1})
	if err != nil || len(row.Checkpoints) != 1 || row.Checkpoints[0].Kind != checkpoint.KindExternal {
		t.Fatalf("%+v %v", row, err)
	}
	r := checkpoint.Restore{ID: row.Checkpoints[0].ID}
	before := x.looks()
	for _, how := range []string{"", engine.OnConflictForce, engine.OnConflictMerge} {
		for _, dry := range []bool{true, false} {
			_, err := x.call("s").Restore(ctx, r, engine.RestoreOptions{OnConflict: how, DryRun: dry})
			no, ok := factsOf[[]engine.Blocked](err, engine.Conflicts)
			if !ok || len(no) != 1 || no[0].Path != x.ws+"/b" || no[0].Why != engine.WasDirOf.Of(x.ws+"/b/c") || x.looks() != before {
				t.Errorf("%q, dry run %v: %v\n%s", how, dry, err, x.looks())
			}
		}
	}
	x.both(r, engine.OnConflictSkip, "made [/b] removed [] kept [] skipped 1")
	x.has("b/c", "c\n")
}

// Where only the owner, the group or an attribute is another one, a restore gives it back, or says that it stays because somebody else set it.
func TestRestoreOfMetadataOnly(t *testing.T) {
	x := grow(t, nil)
	path := x.write("f", "same\n")
	set := func(value string) {
		t.Helper()
		if err := unix.Setxattr(path, "user.x", []byte(value), 0); err != nil {
			t.Skip("SKIPPED: no extended attributes here: ", err)
		}
	}
	set("first")
	must(t, os.Chmod(path, 0o750))
	pieces, uid := []string{"mode", "xattr:user.x"}, uint32(os.Getuid())
	if os.Getuid() == 0 {
		if err := os.Chown(path, 1000, 1001); err != nil {
			t.Skip("SKIPPED: root may not give files away: ", err)
		}
		pieces, uid = []string{"mode", "owner", "group", "xattr:user.x"}, 1000
	}
	id := x.unput(x.call("s"), "f")
	x.put("s", "f", "same\n")
	if _, u, _, attr := x.meta("f"); int(u) != os.Getuid() || attr != "" {
		t.Fatalf("made anew it has the owner %d and %q", u, attr)
	}
	dry, err := x.call("s").Restore(ctx, checkpoint.Restore{ID: id}, engine.RestoreOptions{DryRun: true})
	if err != nil || dry.Idle || !slices.Equal(dry.Metadata[path].Set, pieces) {
		t.Errorf("a dry run says what would be set: %+v %v", dry, err)
	}
	got, err := x.restore(id, "")
	must(t, err)
	if of := got.Metadata[path]; !slices.Equal(of.Set, pieces) || of.Stays != nil || of.Dropped != nil {
		t.Errorf("%+v is said to have been set", of)
	}
	if _, u, _, attr := x.meta("f"); u != uid || attr != "first" {
		t.Errorf("it has the owner %d and %q", u, attr)
	}
	if got, err = x.restore(id, ""); err != nil || !got.Idle {
		t.Errorf("once more there is nothing to do: %+v %v", got, err)
	}
	set("theirs")
	if got, err = x.restore(id, ""); err != nil || !slices.Equal(got.Metadata[path].Stays, []string{"xattr:user.x"}) || !got.Idle {
		t.Errorf("what others set stays, and is said: %+v %v", got, err)
	}
	if _, _, _, attr := x.meta("f"); attr != "theirs" {
		t.Errorf("it has %q", attr)
	}
}

// A read-only file that the session made by a copy goes again with the undo.
func TestUndoOfAReadOnlyCopy(t *testing.T) {
	x := grow(t, nil)
	path := x.write("from", "f\n")
	must(t, os.Chmod(path, 0o444))
	must(t, errOf(x.call("s").Copy(ctx, engine.CopyArgs{From: path, To: x.ws + "/f"})))
	if mode, _, _, _ := x.meta("f"); mode.Perm() != 0o444 {
		t.Fatalf("it was made as %v", mode)
	}
	for range 2 {
		must(t, x.does(undoes))
		x.has("f", "-")
		must(t, x.does(redoes))
		x.has("f", "f\n")
	}
}

var update = flag.Bool("update", false, "write down what TestBlocked answers")

// A did is what the session did to the path p, which the restore takes back. It may use p + "/in" too.
type did struct {
	name   string
	before func(x *tree, p string)
	do     func(x *tree, s, p string)
}

var dids = []did{
	{"made", nil, func(x *tree, s, p string) { x.sets(s, p, "1\n2\n3\n4\nmine\n") }},
	{"made in a new directory", nil, func(x *tree, s, p string) { x.sets(s, p+"/in", "mine\n") }},
	{"made large", nil, func(x *tree, s, p string) { x.sets(s, p, strings.Repeat("large\n", 40)) }},
	{"edited", text("1\n2\n3\n4\n5\n"), func(x *tree, s, p string) { x.sets(s, p, "1\n2\n3\n4\nmine\n") }},
	{"edited, then by others", text("1\n2\n3\n4\n5\n"), func(x *tree, s, p string) {
		x.sets(s, p, "1\n2\n3\n4\nmine\n")
		x.sets("other", p, "0\n1\n2\n3\n4\nmine\n")
	}},
	{"edited, and purged", func(x *tree, p string) { text("old\n"+filepath.Base(filepath.Dir(p)))(x, p) }, func(x *tree, s, p string) {
		x.sets(s, p, "1\n2\n3\n4\nmine\n")
		db, err := checkpoint.Open(x.data+"/checkpoints", checkpoint.Options{})
		must(x.t, err)
		_, err = db.Purge(ctx, checkpoint.Purge{Hash: engine.HashOf([]byte("old\n" + filepath.Base(filepath.Dir(p))))})
		must(x.t, errors.Join(err, db.Close()))
	}},
	{"deleted", text("1\n2\n3\n4\n5\n"), (*tree).deletes},
	{"deleted a link", func(x *tree, p string) { must(x.t, os.Symlink("keep", p)) }, (*tree).deletes},
	{"deleted a directory", func(x *tree, p string) { must(x.t, os.WriteFile(x.dirFor(p)+"/in", []byte("in\n"), 0o640)) }, (*tree).deletes},
	{"deleted a large tree", func(x *tree, p string) {
		must(x.t, os.WriteFile(x.dirFor(p)+"/in", []byte(strings.Repeat("large\n", 40)), 0o640))
	}, (*tree).deletes},
	{"file to directory", text("1\n2\n3\n4\n5\n"), func(x *tree, s, p string) {
		x.deletes(s, p)
		x.sets(s, p+"/in", "mine\n")
	}},
	{"link to directory", func(x *tree, p string) { must(x.t, os.Symlink("keep", p)) }, func(x *tree, s, p string) {
		x.deletes(s, p)
		x.sets(s, p+"/in", "mine\n")
	}},
	{"directory to file", func(x *tree, p string) { must(x.t, os.WriteFile(x.dirFor(p)+"/in", []byte("in\n"), 0o640)) }, func(x *tree, s, p string) {
		x.deletes(s, p)
		x.sets(s, p, "1\n2\n3\n4\nmine\n")
	}},
}

// A now is what somebody outside made of the path since.
type now struct {
	name string
	make func(x *tree, p string) error
}

var nows = []now{
	{"as it was left", func(*tree, string) error { return nil }},
	{"gone", func(_ *tree, p string) error { return os.RemoveAll(p) }},
	{"other text", over(func(p string) error { return os.WriteFile(p, []byte("theirs\n"), 0o640) })},
	{"a line more", over(func(p string) error { return os.WriteFile(p, []byte("theirs\n1\n2\n3\n4\nmine\n"), 0o640) })},
	{"the old text", over(func(p string) error { return os.WriteFile(p, []byte("1\n2\n3\n4\n5\n"), 0o640) })},
	{"large text", over(func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("theirs\n", 40)), 0o640) })},
	{"a link to nothing", over(func(p string) error { return os.Symlink("nothing", p) })},
	{"a link to a directory", over(func(p string) error { return os.Symlink(".", p) })},
	{"an empty directory", over(func(p string) error { return os.Mkdir(p, 0o750) })},
	{"a directory of theirs", over(func(p string) error {
		return errors.Join(os.Mkdir(p, 0o750), os.WriteFile(p+"/theirs", []byte("theirs\n"), 0o640))
	})},
	{"theirs in it", func(_ *tree, p string) error { return where(os.WriteFile(p+"/theirs", []byte("theirs\n"), 0o640)) }},
	{"theirs of what is in it", func(_ *tree, p string) error { return where(os.WriteFile(p+"/in", []byte("theirs\n"), 0o640)) }},
	{"a pipe", over(func(p string) error { return syscall.Mkfifo(p, 0o640) })},
	{"read-only", func(_ *tree, p string) error { return where(os.Chmod(p, 0o440)) }},
	{"a second name", func(_ *tree, p string) error { return where(os.Link(p, p+"2")) }},
	{"its directory gone", func(_ *tree, p string) error { return os.RemoveAll(filepath.Dir(p)) }},
	{"its directory a file", func(_ *tree, p string) error {
		return errors.Join(os.RemoveAll(filepath.Dir(p)), os.WriteFile(filepath.Dir(p), []byte("theirs\n"), 0o640))
	}},
	{"its directory a link", func(_ *tree, p string) error {
		d := filepath.Dir(p)
		return errors.Join(os.Rename(d, d+"-real"), os.Symlink(d+"-real", d))
	}},
	{"denied", func(x *tree, p string) error { x.Close(); x.deny = p; x.open(); return nil }},
}

func text(content string) func(*tree, string) {
	return func(x *tree, p string) { must(x.t, os.WriteFile(p, []byte(content), 0o640)) }
}

func (x *tree) dirFor(p string) string { must(x.t, os.Mkdir(p, 0o750)); return p }

// sets gives a file this content in the session s and its turn t.
func (x *tree) sets(s, p, content string) {
	x.t.Helper()
	c := x.call(s)
	c.Turn = "t"
	must(x.t, errOf(c.ChangeFiles(ctx, engine.Files{Paths: []string{p}, Parents: true, Next: holding(content)})))
}

func (x *tree) deletes(s, p string) {
	x.t.Helper()
	c := x.call(s)
	c.Turn = "t"
	must(x.t, errOf(c.Delete(ctx, p, engine.DeleteOptions{Recursive: true})))
}

// over puts something in the place of what is there.
func over(put func(p string) error) func(*tree, string) error {
	return func(_ *tree, p string) error { return errors.Join(os.RemoveAll(p), put(p)) }
}

var errNot = errors.New("it does not go with what is there")

// where says that something is not possible with what is there.
func where(err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, os.ErrPermission) {
		return errNot
	}
	return err
}

// Each change of a path by the session, each thing that may be there now, and each rule: testdata/blocked.txt
// has what a restore answers. A refused one and a dry run change nothing, and a dry run answers what the
// restore does.
func TestBlocked(t *testing.T) {
	t.Parallel()
	const golden = "testdata/blocked.txt"
	var got strings.Builder
	for _, what := range dids {
		x := grow(t, small)
		n := 0
		for _, is := range nows {
			var answers []string
			rules := map[string][]string{} // by answer
			for _, how := range []string{engine.OnConflictRefuse, engine.OnConflictSkip, engine.OnConflictMerge, engine.OnConflictForce, "inverse"} {
				n++
				answer := x.blocked(what, is, how, n)
				if answer != "" && rules[answer] == nil {
					answers = append(answers, answer)
				}
				rules[answer] = append(rules[answer], how)
			}
			if answers != nil {
				fmt.Fprintf(&got, "%s, %s\n", what.name, is.name)
			}
			for _, answer := range answers {
				fmt.Fprintf(&got, "\t%s: %s\n", strings.Join(rules[answer], ", "), answer)
			}
		}
	}
	if *update {
		must(t, os.WriteFile(golden, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	is, was := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	row, bad := "", 0
	for i := range max(len(is), len(was)) {
		a, b := at(is, i), at(was, i)
		if a == b {
			if !strings.HasPrefix(a, "\t") {
				row = a
			}
			continue
		}
		if bad++; bad < 20 {
			t.Errorf("line %d, %s\n\tgot:  %s\n\twant: %s", i+1, row, a, b)
		}
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}

// blocked plays one scene in a directory of its own, and says what became of it; "" where there is
// no such scene.
func (x *tree) blocked(what did, is now, how string, n int) string {
	x.t.Helper()
	s, dir := fmt.Sprintf("s%d", n), fmt.Sprintf("%s/%d", x.ws, n)
	p := dir + "/p"
	must(x.t, errors.Join(os.Mkdir(dir, 0o750), os.WriteFile(dir+"/keep", []byte("keep\n"), 0o640)))
	if what.before != nil {
		what.before(x, p)
	}
	c := x.call(s)
	c.Turn = "t"
	c.BeginTurn(ctx)
	what.do(x, s, p)
	err := is.make(x, p)
	if errors.Is(err, errNot) {
		return ""
	}
	must(x.t, err)
	x.Begin(c) // it may have been opened anew
	defer func() {
		if x.deny != "" {
			x.deny = ""
			x.reopen()
		}
	}()
	r, o := rewindTo("t"), engine.RestoreOptions{OnConflict: how}
	if how == "inverse" {
		list, err := c.Checkpoints(ctx, checkpoint.Filter{Session: c.Session})
		must(x.t, err)
		did := slices.IndexFunc(list.Checkpoints, func(c checkpoint.Checkpoint) bool { return c.Kind != checkpoint.KindRead })
		r, o.OnConflict = checkpoint.Restore{ID: list.Checkpoints[did].ID, Mode: checkpoint.ModeInverse}, ""
	}
	before := x.below(dir)
	o.DryRun = true
	would := x.answer(dir, r, o, s)
	if x.below(dir) != before {
		x.t.Errorf("%s, %s, %s: a dry run changed\n%s\nto\n%s", what.name, is.name, how, before, x.below(dir))
	}
	o.DryRun = false
	answer := x.answer(dir, r, o, s)
	after := x.below(dir)
	switch {
	case answer != would:
		answer += "; foreseen: " + would
	case strings.HasPrefix(answer, "refused") && after != before:
		x.t.Errorf("%s, %s, %s: it was refused, and changed\n%s\nto\n%s", what.name, is.name, how, before, after)
	}
	if after == before {
		return answer
	}
	return answer + "; now " + cmp.Or(after, "nothing")
}

// answer is what a restore says.
func (x *tree) answer(dir string, r checkpoint.Restore, o engine.RestoreOptions, s string) string {
	show := func(all []engine.Blocked) string {
		var out []string
		for _, b := range all {
			line := strings.ReplaceAll(strings.TrimPrefix(b.Path, dir+"/")+" "+b.Why.Name, x.ws, "")
			if b.Why.Fact != nil {
				line += fmt.Sprintf("(%s)", strings.ReplaceAll(fmt.Sprint(b.Why.Fact), dir+"/", ""))
			}
			out = append(out, line)
		}
		slices.Sort(out)
		return strings.Join(out, ", ")
	}
	done, err := x.call(s).Restore(ctx, r, o)
	if err != nil {
		no := engine.Reason(err)
		if no == nil {
			return "broken: " + err.Error()
		}
		switch facts := no.Facts.(type) {
		case []engine.Blocked:
			return "refused " + no.Cause.Name + ": " + show(facts)
		case engine.Why:
			return "refused " + no.Cause.Name + ": " + show([]engine.Blocked{{Path: no.Path, Why: facts}})
		}
		return strings.TrimSpace("refused " + no.Cause.Name + " " + strings.TrimPrefix(strings.TrimPrefix(no.Path, dir+"/"), x.ws))
	}
	var out []string
	add := func(word, what string) {
		if what != "" {
			out = append(out, word+" "+what)
		}
	}
	if done.Idle {
		out = append(out, "nothing to do")
	}
	add("left", show(done.Skipped))
	add("stays", show(done.Kept))
	for path := range done.Merged {
		add("merged", strings.TrimPrefix(path, dir+"/"))
	}
	if done.Denied > 0 {
		add("denied", fmt.Sprint(done.Denied))
	}
	return cmp.Or(strings.Join(out, "; "), "done")
}

// below is what is in the directory of a scene, in short.
func (x *tree) below(dir string) string {
	var out []string
	_ = filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || p == dir || p == dir+"/keep" {
			return nil //nolint:nilerr // what can't be looked at is left out
		}
		name, kind := p[len(dir)+1:], e.Type()
		switch {
		case e.IsDir():
			name += "/"
		case kind&os.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			name += " -> " + to
		case kind.IsRegular():
			b, _ := os.ReadFile(p)
			name += fmt.Sprintf(" %.12q", b)
		default:
			name += " " + kind.String()
		}
		out = append(out, name)
		return nil
	})
	return strings.Join(out, ", ")
}

// A directory that was not open to all comes back so, whoever removed it, also in another process; of one that nobody recorded only what its files and
// the directory above allow.
func TestRestoredDirectoriesStayClosed(t *testing.T) {
	for _, c := range []struct {
		name               string
		outer, inner, file fs.FileMode
		wantOut, wantIn    fs.FileMode
	}{
		{"closed", 0o700, 0o755, 0o644, 0o700, 0o755},
		{"closed within", 0o755, 0o700, 0o644, 0o755, 0o700},
		{"for a group", 0o750, 0o710, 0o644, 0o750, 0o710},
		{"open", 0o755, 0o755, 0o644, 0o755, 0o755},
		{"unknown with a private file", 0o755, 0o755, 0o600, 0o700, 0o700},
	} {
		for _, later := range []bool{false, true} {
			x := grow(t, nil)
			must(t, os.Chmod(x.ws, 0o755))
			x.cfg.WorkspaceRoot = x.ws
			x.reopen()
			path := x.write("d/x/f", "old\n")
			for name, mode := range map[string]fs.FileMode{path: c.file, x.ws + "/d/x": c.inner, x.ws + "/d": c.outer} {
				must(t, os.Chmod(name, mode))
			}
			id := x.put("s", "d/x/f", "new\n")
			if later { // the same mode is not recorded again
				x.reopen()
				id = x.put("s", "d/x/f", "newer\n")
			}
			must(t, os.RemoveAll(x.ws+"/d"))
			if _, err := x.call("s").Restore(ctx, checkpoint.Restore{ID: id}, engine.RestoreOptions{OnConflict: engine.OnConflictForce}); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			for name, want := range map[string]fs.FileMode{"/d": c.wantOut, "/d/x": c.wantIn} {
				if i, err := os.Stat(x.ws + name); err != nil || i.Mode().Perm() != want {
					t.Errorf("%s: %s is %v, want %v (%v)", c.name, name, i.Mode(), want, err)
				}
			}
			must(t, x.does(undoes))
			x.has("d", "-")
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
		shown, left, denied, err := x.call("s").Compare(ctx, rewindTo("t"), now)
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
	must(t, x.does(rewinds))
	kinds("back", true, "file", "file file", "file/1", "absent absent", "file/deep/2", "absent absent", "dir/sub/b", "file file")
	must(t, errors.Join(os.Remove(x.ws+"/file"), os.Symlink("file", x.ws+"/file")))
	kinds("a loop", true, "file/1", engine.NotLookedAt.Name, "dir/sub/b", "file file")
}

// A file that others put into a directory in whose place a file was, or wrote into a file in the place of a directory, stays, and so does what
// is in its way.
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
			if _, err := x.call("s").Restore(ctx, rewindTo("t"), engine.RestoreOptions{}); err == nil && name != "a directory instead" {
				t.Fatalf("%v\n%s\nwas\n%s", err, x.looks(), now)
			}
			if name == "a directory instead" { // it was to be one
				return
			}
			done, err := x.call("s").Restore(ctx, rewindTo("t"), engine.RestoreOptions{OnConflict: engine.OnConflictSkip})
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

var histories = flag.Int64("histories", 4, "how many histories TestTradesAgainstSnapshots has")

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
			call().BeginTurn(ctx)
		}
		begin()
		for step := range 60 {
			name := names[rng.Intn(len(names))]
			info, err := os.Lstat(x.ws + "/" + name)
			switch k := rng.Intn(10); {
			case k < 4 && err == nil && (info.IsDir() || rng.Intn(2) == 0): // what is there goes, and its place may be taken
				log = append(log, "delete "+name)
				_, err := call().Delete(ctx, x.ws+"/"+name, engine.DeleteOptions{Recursive: true})
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
				done, err := call().Restore(ctx, rewindTo(turns[to]), engine.RestoreOptions{})
				if err != nil || x.looks() != snapshots[to] {
					bad("rewound", snapshots[to], err)
				}
				if done.Checkpoint == "" {
					continue
				}
				for _, name := range []string{"/d ", "/d/e ", "/x ", "/x/y "} {
					if strings.Contains(now, name+"d") && strings.Contains(snapshots[to], name+"-") || strings.Contains(now, name+"-") && strings.Contains(snapshots[to], name+"d") {
						trades++
					}
				}
				if _, err := call().Undo(ctx, engine.RestoreOptions{}); err != nil || x.looks() != now {
					bad("undone", now, err)
				}
				if rng.Intn(2) == 0 {
					log = append(log, "undo")
					continue
				}
				if _, err := call().Redo(ctx, engine.RestoreOptions{}); err != nil || x.looks() != snapshots[to] {
					bad("redone", snapshots[to], err)
				}
			}
		}
	}
	t.Logf("%d traded places", trades)
	if trades < int(*histories)/8 {
		t.Error("too few traded places to tell anything")
	}
}

// A file and a link trade places before any one system call of a deletion: what is deleted is what
// was looked at, or nothing is, and the other one stays.
func TestDeleteWhileALinkIsSwappedIn(t *testing.T) {
	for _, path := range []string{"d/f", "d/l", "d"} {
		x := grow(t, nil)
		system := callsOf(x)
		for n := int64(1); ; n++ {
			must(t, os.RemoveAll(x.ws+"/d"))
			x.write("d/f", "old\n")
			must(t, os.Symlink("f", x.ws+"/d/l"))
			var done *engine.Done
			met, err := system.beside(n, func() {
				err := unix.Renameat2(unix.AT_FDCWD, x.ws+"/d/f", unix.AT_FDCWD, x.ws+"/d/l", unix.RENAME_EXCHANGE)
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Error(err)
				}
			}, func() (err error) {
				done, err = x.call("s").Delete(ctx, x.ws+"/"+path, engine.DeleteOptions{Recursive: true})
				return err
			})
			if !met {
				must(t, err)
				break
			}
			now := x.looks()
			file, link := strings.Contains(now, " old\n"), strings.Contains(now, "-> f")
			switch {
			case path == "d" && err == nil && !file && !link && len(done.Trashed) == 1:
			case path != "d" && err == nil && done.Trashed[0].Size == 4 && !file && link: // the size that was looked at
			case path != "d" && err == nil && done.Trashed[0].Size == 1 && file && !link:
			case err != nil && file && link:
			default:
				t.Errorf("%s, swapped before call %d: %v\n%s", path, n, err, now)
			}
		}
	}
}

// Two directories trade places while the path of a deletion is looked up, and back again when its
// file is looked at: what is deleted has its entry in the trash, and the other one stays.
func TestDeleteWhileItsDirectoryIsSwapped(t *testing.T) {
	x := grow(t, nil)
	system := callsOf(x)
	swap := func() error {
		return unix.Renameat2(unix.AT_FDCWD, x.ws+"/d", unix.AT_FDCWD, x.ws+"/e", unix.RENAME_EXCHANGE)
	}
	for first := 1; first < 12; first++ {
		for second := first + 8; second < first+24; second++ {
			must(t, errors.Join(os.RemoveAll(x.ws+"/d"), os.RemoveAll(x.ws+"/e")))
			x.write("d/f", "this\n")
			x.write("e/f", "that\n")
			count := 0
			hook := func(string) *guardfs.Fault {
				if count++; count == first || count == second {
					must(t, swap())
				}
				return nil
			}
			system.hook.Store(&hook)
			done, err := x.call("s").Delete(ctx, x.ws+"/d/f", engine.DeleteOptions{})
			system.hook.Store(nil)
			if err == nil && len(done.Trashed) == 1 {
				if _, err = x.call("s").Untrash(ctx, done.Trashed[0].ID, false); engine.Conflicts.In(err) {
					must(t, swap()) // the other one had its name
					_, err = x.call("s").Untrash(ctx, done.Trashed[0].ID, false)
				}
				must(t, err)
			} else if err == nil {
				t.Errorf("swapped before calls %d and %d: the trash has %v", first, second, done.Trashed)
			}
			if now := x.looks(); strings.Count(now, " this\n") != 1 || strings.Count(now, " that\n") != 1 {
				t.Errorf("swapped before calls %d and %d: %v\n%s", first, second, err, now)
			}
		}
	}
}

// restore restores the checkpoint; what to do with conflicts is how.
func (x *tree) restore(id checkpoint.ID, how string) (*engine.Restored, error) {
	return x.call("s").Restore(ctx, checkpoint.Restore{ID: id}, engine.RestoreOptions{OnConflict: how})
}

// A restore that removes what the store can't or must not hold parks it, whether the tools made it or somebody outside changed it, and undo, redo
// and the trash bring it back.
func TestRestoreParksWhatTheStoreDoesNotHold(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("b", 500)
	for _, c := range []struct {
		name, file, made, outside, how string
		restore                        func(x *tree, id checkpoint.ID, o engine.RestoreOptions) (*engine.Restored, error)
	}{
		{name: "too large", file: "d/big", made: big},
		{name: "excluded", file: "d/new.env", made: "KEY=1\n"},
		{name: "made too large outside", file: "d/n", made: "n\n", outside: big, how: engine.OnConflictForce},
	} {
		for _, by := range []string{"id", "undo", "turn"} {
			t.Run(c.name+" by "+by, func(t *testing.T) {
				x := grow(t, func(fs *config.FS) { small(fs); fs.Checkpoint.Exclude = []string{"*.env"} })
				call := x.turn("s", "t1")
				id := x.put("s", c.file, c.made)
				content := c.made
				if c.outside != "" {
					content = c.outside
					x.write(c.file, content)
				}
				restore := func(o engine.RestoreOptions) (*engine.Restored, error) {
					switch by {
					case "id":
						return call.Restore(ctx, checkpoint.Restore{ID: id}, o)
					case "turn":
						return call.Restore(ctx, checkpoint.Restore{Turn: "t1"}, o)
					}
					return call.Undo(ctx, o)
				}
				if c.how != "" {
					for _, how := range []string{"", engine.OnConflictMerge} {
						if _, err := restore(engine.RestoreOptions{OnConflict: how}); !engine.Conflicts.In(err) {
							t.Fatalf("%q must be a conflict: %v", how, err)
						}
					}
					if done, err := restore(engine.RestoreOptions{OnConflict: engine.OnConflictSkip}); err != nil || len(done.Skipped) != 1 {
						t.Fatalf("skip: %+v %v", done, err)
					}
					if by == "undo" { // that was walked over
						return
					}
				}
				dry, err := restore(engine.RestoreOptions{OnConflict: c.how, DryRun: true})
				if err != nil || len(dry.Moved) != 1 {
					t.Fatalf("a dry run says %+v %v", dry, err)
				}
				x.has(c.file, content)
				done, err := restore(engine.RestoreOptions{OnConflict: c.how})
				if err != nil || len(done.Moved) != 1 || len(done.Trashed) != 1 || done.Done.Skipped != "" {
					t.Fatalf("restored %+v %v", done, err)
				}
				x.has("d", "-")
				if files, _ := x.trashed(); len(files) != 1 {
					t.Fatalf("in the trash: %v", files)
				}
				if by == "turn" {
					must(t, errOf(call.Untrash(ctx, done.Trashed[0].ID, false)))
				} else {
					must(t, errOf(call.Restore(ctx, checkpoint.Restore{ID: checkpoint.ID(done.Checkpoint)}, engine.RestoreOptions{})))
				}
				x.has(c.file, content)
				if _, err := call.Undo(ctx, engine.RestoreOptions{}); err != nil { // of the restore: it goes again
					t.Fatal(err)
				}
				x.has("d", "-") // with the directory that was made for it
				must(t, errOf(call.Redo(ctx, engine.RestoreOptions{})))
				x.has(c.file, content)
			})
		}
	}
}

// An undo that has to leave everything alone is walked over, so that those beyond it are in reach; its redo walks back.
func TestUndoGoesOnBeyondWhatItSkips(t *testing.T) {
	x := grow(t, small)
	x.put("s", "a", "a\n")
	x.put("s", "g", "old\n")
	id := x.put("s", "g", strings.Repeat("b\n", 200))
	c := x.call("s")
	skip := engine.RestoreOptions{OnConflict: engine.OnConflictSkip}
	dry := skip
	dry.DryRun = true
	for range 2 {
		if done, err := c.Undo(ctx, dry); err != nil || done.Passed || done.Plan.UndoOf != id {
			t.Fatalf("a dry run walks over it: %+v %v", done, err)
		}
	}
	done, err := c.Undo(ctx, skip)
	if err != nil || !done.Passed || done.Checkpoint != "" || len(done.Skipped) != 1 {
		t.Fatalf("%+v %v", done, err)
	}
	if done, err = c.Redo(ctx, skip); err != nil || done.Checkpoint == "" || len(done.Skipped) != 0 {
		t.Fatalf("the redo of nothing: %+v %v", done, err)
	}
	if done, err = c.Undo(ctx, skip); err != nil || !done.Passed {
		t.Fatalf("again: %+v %v", done, err)
	}
	x.has("g", strings.Repeat("b\n", 200))
	for _, name := range []string{"g", "a"} { // the making of g, by which what it is now is parked, and then that of a
		must(t, errOf(c.Undo(ctx, skip)))
		x.has(name, "-")
	}
}

// Nothing is put in the place of what the store does not hold.
func TestRestoreDoesNotOverwriteWhatTheStoreDoesNotHold(t *testing.T) {
	big := strings.Repeat("b\n", 200)
	x := grow(t, small)
	x.put("s", "g", "old\n")
	mine := x.put("s", "g", big) // by the tools; nobody else touched it
	if _, err := x.restore(mine, ""); !engine.WouldLose.In(err) {
		t.Errorf("what the tools made too large: %v", err)
	}
	must(t, x.does(deletes("g")))
	if _, err := x.restore(mine, ""); err != nil {
		t.Errorf("and after it went to the trash: %v", err)
	}
	x.has("g", "old\n")
}

// The directories that a change makes are recorded as they were made.
func TestMadeDirectoriesAreRecordedWhole(t *testing.T) {
	x := grow(t, small)
	id := x.put("s", "made/deep/f", "f\n")
	done, err := x.restore(id, engine.OnConflictRefuse)
	must(t, err)
	if done, err = x.restore(checkpoint.ID(done.Checkpoint), engine.OnConflictRefuse); err != nil {
		t.Fatal(err)
	}
	for _, id := range []checkpoint.ID{id, checkpoint.ID(done.Checkpoint)} {
		op, err := x.call("s").Checkpoint(ctx, id)
		must(t, err)
		dirs := 0
		for _, c := range op.Changes {
			if c.After.Kind != checkpoint.Dir {
				continue
			}
			dirs++
			if fi, err := os.Stat(c.Path); err != nil || c.After.Mode.Perm() != fi.Mode().Perm() {
				t.Errorf("%s: recorded with mode %v, is %v %v", c.Path, c.After.Mode, fi, err)
			}
		}
		if dirs != 2 {
			t.Errorf("%d directories are recorded, not 2", dirs)
		}
	}
}
