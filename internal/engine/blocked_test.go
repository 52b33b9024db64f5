//go:build linux && !rooted

package engine_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

var update = flag.Bool("update", false, "write down what TestBlocked answers")

// A did is what the session did to the path p, which the restore takes back. It may use p + "/in" too.
type did struct {
	name   string
	before func(x *tree, p string)
	do     func(x *tree, s, p string)
}

var dids = []did{
	{"made", nil, func(x *tree, s, p string) { x.does(s, p, "1\n2\n3\n4\nmine\n") }},
	{"made in a new directory", nil, func(x *tree, s, p string) { x.does(s, p+"/in", "mine\n") }},
	{"made large", nil, func(x *tree, s, p string) { x.does(s, p, strings.Repeat("large\n", 40)) }},
	{"edited", text("1\n2\n3\n4\n5\n"), func(x *tree, s, p string) { x.does(s, p, "1\n2\n3\n4\nmine\n") }},
	{"edited, then by others", text("1\n2\n3\n4\n5\n"), func(x *tree, s, p string) {
		x.does(s, p, "1\n2\n3\n4\nmine\n")
		x.does("other", p, "0\n1\n2\n3\n4\nmine\n")
	}},
	{"edited, and purged", func(x *tree, p string) { text("old\n"+filepath.Base(filepath.Dir(p)))(x, p) }, func(x *tree, s, p string) {
		x.does(s, p, "1\n2\n3\n4\nmine\n")
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
		x.does(s, p+"/in", "mine\n")
	}},
	{"link to directory", func(x *tree, p string) { must(x.t, os.Symlink("keep", p)) }, func(x *tree, s, p string) {
		x.deletes(s, p)
		x.does(s, p+"/in", "mine\n")
	}},
	{"directory to file", func(x *tree, p string) { must(x.t, os.WriteFile(x.dirFor(p)+"/in", []byte("in\n"), 0o640)) }, func(x *tree, s, p string) {
		x.deletes(s, p)
		x.does(s, p, "1\n2\n3\n4\nmine\n")
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

// does writes a file in the session s and its turn t.
func (x *tree) does(s, p, content string) {
	x.t.Helper()
	c := x.call(s)
	c.Turn = "t"
	_, err := x.ChangeFiles(ctx, c, engine.Files{Paths: []string{p}, Parents: true, Next: func(ts []*engine.Target) error {
		ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte(content)}
		return nil
	}})
	must(x.t, err)
}

func (x *tree) deletes(s, p string) {
	x.t.Helper()
	c := x.call(s)
	c.Turn = "t"
	_, err := x.Delete(ctx, c, p, engine.DeleteOptions{Recursive: true})
	must(x.t, err)
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

// Whatever the session did to a path, whatever is there now, and whichever rule holds: testdata/blocked.txt
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
	x.BeginTurn(ctx, c)
	what.do(x, s, p)
	err := is.make(x, p)
	if errors.Is(err, errNot) {
		return ""
	}
	must(x.t, err)
	defer func() {
		if x.deny != "" {
			x.Close()
			x.deny = ""
			x.open()
		}
	}()
	r, o := rewindTo("t"), engine.RestoreOptions{OnConflict: how}
	if how == "inverse" {
		list, err := x.Checkpoints(ctx, c, checkpoint.Filter{Session: c.Session})
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
			if b.Stays {
				line += "!"
			}
			out = append(out, line)
		}
		slices.Sort(out)
		return strings.Join(out, ", ")
	}
	done, err := x.Restore(ctx, x.call(s), r, o)
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
