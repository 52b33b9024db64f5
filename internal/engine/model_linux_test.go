//go:build linux && !rooted

package engine_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

var (
	modelSteps = flag.Int("steps", 500, "steps of TestHistoryAgainstModel; a million in a soak")
	modelSeed  = flag.Int("seed", 0, "its first seed, to see one history again")
)

// Random histories of two sessions and an outsider, compared with the model after each step: writes, moves, deletions of files, directories and of a
// tree that is moved as a whole, restores of any checkpoint as state and inverse, rewinds, undo and redo under every rule for conflicts, entries of
// the trash, edits behind the tools' back, restarts.
func TestHistoryAgainstModel(t *testing.T) {
	t.Parallel()
	const perTree = 250
	steps, most := *modelSteps, 0
	if testing.Short() {
		steps = min(steps, 2*perTree)
	}
	for from := 0; from < steps; from += perTree {
		r := &modelRun{t: t, seed: int64(*modelSeed + from)}
		if !r.run(min(perTree, steps-from)) {
			return
		}
		most = max(most, r.most)
	}
	if steps == 500 && most < 3 {
		t.Errorf("no undo took back more than %d changes", most)
	}
}

// modelRun is one history.
type modelRun struct {
	t      *testing.T
	seed   int64
	rng    *rand.Rand
	x      *tree
	m      *model
	names  []string
	turns  int
	last   map[string]string // session to its turn
	runs   int64
	script map[string]int64 // session to its script that runs
	most   int              // how many changes an undo took back at most
	log    []string
}

// modelText is a content as the files have it: three lines with a digit, and as many at the end as the
// fourth says.
func modelText(c string) string {
	text := fmt.Sprintf("first %c\n1\n2\n3\n4\nsecond %c\n5\n6\n7\n8\nthird %c\n9\n10\n11\n12\n", c[0], c[1], c[2])
	for n := '1'; n <= rune(c[3]); n++ {
		text += modelTail(n)
	}
	return text
}

func modelTail(n rune) string { return fmt.Sprintf("more %c\n", n) }

// edited is c with one of its digits another, sometimes all.
func (r *modelRun) edited(c string) string {
	digits := []byte(c)
	if c == "-" || r.rng.Intn(4) == 0 {
		digits = []byte("0000")
		for i := range digits {
			digits[i] += byte(r.rng.Intn(4))
		}
	} else {
		digits[r.rng.Intn(4)] = '0' + byte(r.rng.Intn(4))
	}
	return string(digits)
}

// big makes the tree, with a file that is too large for the store in it.
func (r *modelRun) big() {
	dir := r.x.ws + "/" + treePath
	if r.m.at(treePath) == "-" {
		r.m.trees++
		r.m.born, r.m.tree = len(r.m.ops), r.m.trees
	}
	must(r.t, errors.Join(os.MkdirAll(dir+"/sub", 0o777), os.WriteFile(dir+"/sub/big", []byte(strings.Repeat("b", 2000)), 0o666), os.WriteFile(dir+"/f", nil, 0o666)))
	r.m.set(treePath, treeContent)
}

// read is the disk as the model has it.
func (r *modelRun) read(name string) string {
	path := r.x.ws + "/" + name
	if name == treePath {
		path += "/sub/big"
	}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "-"
	case err != nil:
		r.t.Fatal(err)
	case name == treePath:
		return treeContent
	}
	c := [4]byte{3: '0' + byte(strings.Count(string(b), "more"))}
	if _, err := fmt.Sscanf(strings.ReplaceAll(string(b), "\n", " "), "first %c 1 2 3 4 second %c 5 6 7 8 third %c", &c[0], &c[1], &c[2]); err != nil || modelText(string(c[:])) != string(b) {
		return fmt.Sprintf("%q", b)
	}
	return string(c[:])
}

func (r *modelRun) run(steps int) bool {
	r.rng = rand.New(rand.NewSource(r.seed))
	r.x = grow(r.t, func(fs *config.FS) { fs.Checkpoint.MaxFileBytes = 1000 })
	defer func() { // before the test ends: a soak would run out of descriptors and disk
		r.x.Close()
		os.RemoveAll(filepath.Dir(r.x.ws))
	}()
	r.m, r.last, r.script, r.names = newModel(), map[string]string{}, map[string]int64{}, []string{"a", "b", "d/a", "d/e/a", "d/e/b"}
	r.big()
	for range steps {
		if bad := r.step(); bad != "" {
			for _, l := range r.log[max(0, len(r.log)-60):] {
				r.t.Log(l)
			}
			r.t.Errorf("seed %d, step %d: %s", r.seed, len(r.log), bad)
			return false
		}
	}
	return true
}

// modelStep is what one step did to both.
type modelStep struct {
	what    string
	id      string // of the checkpoint that was taken
	err     error
	wantErr bool
	op      *modelOp // what the model did; nil: nothing
}

// took takes over the answer to a change.
func (s *modelStep) took(done *engine.Done, err error) {
	if s.err = err; err == nil {
		s.id = done.Checkpoint
	}
}

// applied has the model make the paths so, as an ordinary change.
func (r *modelRun) applied(s *modelStep, c *engine.Call, want map[string]string) {
	s.op = r.m.apply(c.Session, want)
	r.m.did(s.op)
}

// step does one thing to the tree and to the model, and says what differs.
func (r *modelRun) step() (bad string) {
	m, x := r.m, r.x
	session := []string{"s", "s", "u"}[r.rng.Intn(3)]
	c := x.call(session)
	c.Turn = r.last[session]
	var s modelStep
	if r.rng.Intn(6) == 0 || r.script[session] == 0 && r.rng.Intn(2) == 0 {
		r.runs++
		r.script[session] = []int64{0, r.runs, r.runs}[r.rng.Intn(3)]
	}
	c.Run = r.script[session]
	k := r.rng.Intn(30)
	if k >= 15 && k < 25 {
		c.Run, r.script[session] = 0, 0
	}
	switch {
	case k < 7:
		s = r.write(c)
	case k >= 28:
		s = r.copy(c)
	case k >= 26:
		s = r.append(c)
	case k < 9:
		s = r.remove(c)
	case k < 11:
		s = r.move(c)
	case k < 13:
		r.outsider(&s)
	case k < 15:
		r.turns++
		c.Turn = fmt.Sprint("t", r.turns)
		s.what = "turn " + c.Turn
		r.last[session], m.turn[c.Turn+session] = c.Turn, len(m.ops)
		c.BeginTurn(ctx)
		m.outside(session)
	case k < 18 && len(m.ops) > 0:
		s = r.restore(c)
	case k < 19 && r.turns > 0:
		s = r.rewind(c)
	case k < 23:
		s = r.walk(c, k == 22)
	case k < 25:
		s = r.untrash(c)
	default:
		s.what = "restart"
		must(r.t, x.Close())
		x.open()
		x.Begin(c)
	}
	if s.op != nil {
		s.op.id, s.op.run = checkpoint.ID(s.id), c.Run
	}
	r.log = append(r.log, fmt.Sprintf("%s %s -> %v (%s)", session, s.what, s.err, s.id))
	if (s.err != nil) != s.wantErr {
		bad = fmt.Sprintf("error %v, and an error is expected: %v", s.err, s.wantErr)
	} else if s.op != nil && s.id == "" {
		bad = "changed without a checkpoint"
	}
	for _, name := range append(slices.Clone(r.names), treePath) {
		if got, want := r.read(name), m.at(name); got != want {
			bad += fmt.Sprintf("; %s holds %s, want %s", name, got, want)
		}
	}
	page, err := c.Trash(ctx, checkpoint.TrashFilter{Limit: 1000})
	must(r.t, err)
	if len(page.Entries) != len(m.trash) {
		bad += fmt.Sprintf("; %d entries in the trash, want %d", len(page.Entries), len(m.trash))
	}
	return bad
}

func (r *modelRun) name() string { return r.names[r.rng.Intn(len(r.names))] }

func (r *modelRun) write(c *engine.Call) (s modelStep) {
	name := r.name()
	content := r.edited(r.m.at(name))
	s.what = "write " + content + " to " + name
	s.took(c.ChangeFiles(ctx, engine.Files{Paths: []string{r.x.ws + "/" + name}, Parents: true, Next: holding(modelText(content))}))
	r.applied(&s, c, map[string]string{name: content})
	return s
}

// append adds a line at the end of a file.
func (r *modelRun) append(c *engine.Call) (s modelStep) {
	name := r.name()
	content := r.m.at(name)
	s.what = "append to " + name
	if content == "-" || content[3] > '3' {
		s.what += ", which is no file or long enough"
		return s
	}
	next := rune(content[3]) + 1
	s.took(c.Append(ctx, r.x.ws+"/"+name, []byte(modelTail(next)), engine.Rules{}))
	r.applied(&s, c, map[string]string{name: content[:3] + string(next)})
	return s
}

// copy makes one file as another is, where its directory is there.
func (r *modelRun) copy(c *engine.Call) (s modelStep) {
	from, to := r.name(), r.name()
	content := r.m.at(from)
	s.what = "copy " + from + " to " + to
	if _, err := os.Stat(filepath.Dir(r.x.ws + "/" + to)); content == "-" || from == to || err != nil {
		s.what += ", which is nothing to copy, or nowhere"
		return s
	}
	s.took(c.Copy(ctx, engine.CopyArgs{From: r.x.ws + "/" + from, To: r.x.ws + "/" + to, Overwrite: true}))
	r.applied(&s, c, map[string]string{to: content})
	return s
}

func (r *modelRun) move(c *engine.Call) (s modelStep) {
	from, to := r.name(), r.name()
	content := r.m.at(from)
	s.what = "move " + from + " to " + to
	if content == "-" || from == to {
		s.what += ", which is nothing to move"
		return s
	}
	s.took(c.ChangeFiles(ctx, engine.Files{Paths: []string{r.x.ws + "/" + from, r.x.ws + "/" + to}, Parents: true,
		Op: checkpoint.Op{Kind: checkpoint.KindMove}, Next: func(ts []*engine.Target) error {
			ts[0].After = engine.After{Kind: guardfs.KindAbsent}
			ts[1].After = engine.After{Kind: guardfs.KindFile, Content: []byte(modelText(content))}
			return nil
		}}))
	r.applied(&s, c, map[string]string{from: "-", to: content})
	return s
}

// remove removes a file as a restore does, or deletes the tree.
func (r *modelRun) remove(c *engine.Call) (s modelStep) {
	name := append(slices.Clone(r.names), treePath, treePath)[r.rng.Intn(len(r.names)+2)]
	s.what = "delete " + name
	_, err := os.Lstat(r.x.ws + "/" + name)
	if name != treePath {
		if err == nil {
			s.id = string(r.x.unput(c, name))
			r.applied(&s, c, map[string]string{name: "-"})
		}
		return s
	}
	s.wantErr = err != nil
	s.took(c.Delete(ctx, r.x.ws+"/"+name, engine.DeleteOptions{Recursive: true}))
	if s.wantErr {
		return s
	}
	r.applied(&s, c, map[string]string{treePath: "-"})
	r.m.trash = append(r.m.trash, &modelEntry{of: s.op, path: name})
	return s
}

// outsider changes something behind the tools' back.
func (r *modelRun) outsider(s *modelStep) {
	name := r.name()
	path := r.x.ws + "/" + name
	switch k := r.rng.Intn(8); {
	case k == 0:
		s.what = "outside: remove the tree"
		must(r.t, os.RemoveAll(r.x.ws+"/"+treePath))
		r.m.set(treePath, "-")
	case k == 1:
		s.what = "outside: make the tree"
		r.big()
	case k < 4:
		s.what = "outside: remove " + name
		os.Remove(path)
		r.m.set(name, "-")
	default:
		content := r.edited(r.m.at(name))
		s.what = "outside: write " + content + " to " + name
		// With the mode that the tools' new files have: the model knows nothing of modes.
		must(r.t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(modelText(content)), 0o666)))
		r.m.set(name, content)
	}
}

func (r *modelRun) rule() string {
	return []string{"", engine.OnConflictSkip, engine.OnConflictForce, engine.OnConflictMerge}[r.rng.Intn(4)]
}

// restored takes over what a restore that is an ordinary change did.
func (r *modelRun) restored(s *modelStep, done *engine.Restored, mr *modelRestore) {
	if s.err == nil {
		s.id = done.Checkpoint
	}
	if s.wantErr {
		return
	}
	s.wantErr, s.op = r.m.restore(mr)
	if s.op == nil && s.id != "" { // it took empty directories away or made some, which the model knows nothing of
		s.op = r.m.nothing(mr.session)
	}
	r.m.did(s.op)
}

func (r *modelRun) restore(c *engine.Call) (s modelStep) {
	of := r.m.ops[r.rng.Intn(len(r.m.ops))]
	how, inverse := r.rule(), r.rng.Intn(3) == 0
	if of.external || of.session != c.Session { // the model has no ids of those, and no view of another session's
		return s
	}
	s.what = fmt.Sprintf("restore %s %q, inverse %v", of.id, how, inverse)
	in := checkpoint.Restore{ID: of.id}
	if inverse {
		in.Mode = checkpoint.ModeInverse
	}
	done, err := c.Restore(ctx, in, engine.RestoreOptions{OnConflict: how})
	s.err = err
	r.restored(&s, done, restoreOf(c.Session, how, inverse, of))
	return s
}

// made are the session's checkpoints since the one before, oldest first.
func (r *modelRun) made(c *engine.Call, before checkpoint.ID) (made []checkpoint.Checkpoint) {
	page, err := c.Checkpoints(ctx, checkpoint.Filter{Principal: c.Principal, Session: c.Session, NoReads: true, Limit: 100})
	must(r.t, err)
	for _, ck := range page.Checkpoints {
		if ck.ID == before {
			break
		}
		if ck.Kind != checkpoint.KindExternal {
			made = append(made, ck)
		}
	}
	slices.Reverse(made)
	return made
}

func (r *modelRun) newest(c *engine.Call) checkpoint.ID {
	page, err := c.Checkpoints(ctx, checkpoint.Filter{Principal: c.Principal, Session: c.Session, NoReads: true, Limit: 1})
	must(r.t, err)
	if len(page.Checkpoints) == 0 {
		return ""
	}
	return page.Checkpoints[0].ID
}

// rewind goes piece by piece, as an undo of a run does. A piece that is a conflict leaves those before it.
func (r *modelRun) rewind(c *engine.Call) (s modelStep) {
	name, how := fmt.Sprint("t", 1+r.rng.Intn(r.turns)), r.rule()
	start, ok := r.m.turn[name+c.Session]
	s.what = fmt.Sprintf("rewind to %s %q", name, how)
	before := r.newest(c)
	_, err := c.Restore(ctx, checkpoint.Restore{Turn: name}, engine.RestoreOptions{OnConflict: how})
	s.err, s.wantErr = err, !ok
	if !ok {
		return s
	}
	var made []*modelOp
	var left []string
	for until := len(r.m.ops); until > 0 && !s.wantErr; {
		var of []*modelOp
		for _, o := range r.m.ops[start:] {
			if o.session == c.Session && !o.external {
				of = append(of, o)
			}
		}
		moved := treeMoves(of, true)
		of = slices.DeleteFunc(of, func(o *modelOp) bool { return o.n >= until })
		i := newestPiece(of, moved)
		until = 0
		if i > 0 {
			until = of[i-1].n + 1
		}
		mr := restoreOf(c.Session, how, false, of[i:]...)
		delete(mr.want, treePath)
		for _, o := range of[i:] {
			if slices.Contains(moved, o) {
				mr.want[treePath], mr.since[treePath] = o.before[treePath], o.n
			}
		}
		for _, p := range left {
			delete(mr.want, p)
		}
		var op *modelOp
		if s.wantErr, op = r.m.restore(mr); op != nil {
			made = append(made, op)
		}
		left = append(left, mr.skipped...)
	}
	r.runs++
	for _, ck := range r.made(c, before) {
		o := r.m.nothing(c.Session) // it took empty directories away or made some, which the model knows nothing of
		if len(made) > 0 && slices.ContainsFunc(ck.Changes, func(ch checkpoint.Recorded) bool { return ch.Role != checkpoint.RoleParent }) {
			o, made = made[0], made[1:]
		}
		o.id, o.run = ck.ID, r.runs
		r.m.did(o)
	}
	if len(made) > 0 {
		s.what += ", which made fewer checkpoints than were expected"
		s.wantErr = !s.wantErr
	}
	if err == nil {
		r.m.outside(c.Session) // what others changed beside it is recorded
	}
	return s
}

// walk is undo, or redo.
func (r *modelRun) walk(c *engine.Call, redo bool) (s modelStep) {
	how := r.rule()
	if how == engine.OnConflictSkip {
		how = ""
	}
	m := r.m
	from, to, name, carry := m.undo, m.redo, "undo", (*engine.Call).Undo
	if redo {
		from, to, name, carry = m.redo, m.undo, "redo", (*engine.Call).Redo
	}
	s.what = fmt.Sprintf("%s %q", name, how)
	before := r.newest(c)
	_, s.err = carry(c, ctx, engine.RestoreOptions{OnConflict: how})
	made, n := r.made(c, before), 0
	for more := true; more && !s.wantErr; n++ {
		all := from[c.Session]
		if s.wantErr = len(all) == 0; s.wantErr {
			return s
		}
		of := all[len(all)-1:]
		if !redo {
			run := m.newest(c.Session)
			i := newestPiece(run, treeMoves(run, false))
			of, more = run[i:], i > 0
		}
		var op *modelOp
		if s.wantErr, op = m.restore(restoreOf(c.Session, how, false, of...)); s.wantErr {
			return s
		}
		r.most = max(r.most, len(of))
		from[c.Session] = all[:len(all)-len(of)]
		if op == nil { // it was so already; that is walked over
			op = m.nothing(c.Session)
		}
		if n < len(made) {
			op.id = made[n].ID
		}
		back := of[0].takes // a redo puts the changes themselves back
		if redo {
			run := back[len(back)-1].run
			next := len(all) - 2
			more = run != 0 && next >= 0 && all[next].takes[len(all[next].takes)-1].run == run
		} else {
			op.takes = of
			back = []*modelOp{op}
		}
		to[c.Session] = append(to[c.Session], back...)
	}
	return s
}

// untrash brings any entry of the trash back.
func (r *modelRun) untrash(c *engine.Call) (s modelStep) {
	page, err := c.Trash(ctx, checkpoint.TrashFilter{Limit: 1000})
	must(r.t, err)
	if s.what = "nothing in the trash"; len(page.Entries) == 0 {
		return s
	}
	t := page.Entries[r.rng.Intn(len(page.Entries))]
	i := slices.IndexFunc(r.m.trash, func(e *modelEntry) bool { return e.of.id == t.Checkpoint && r.x.ws+"/"+e.path == t.Path })
	if i < 0 {
		s.wantErr = true
		s.what = fmt.Sprintf("the model does not know %+v", t)
		return s
	}
	e := r.m.trash[i]
	s.what = fmt.Sprintf("untrash %s %s", t.ID, e.path)
	_, there := os.Lstat(t.Path)
	done, err := c.Untrash(ctx, t.ID, false)
	if s.err = err; err == nil {
		s.id = done.Checkpoint
	}
	want := map[string]string{treePath: treeContent}
	if s.wantErr = there == nil; s.wantErr {
		return s
	}
	r.m.forget(e)
	r.m.born, r.m.tree = e.of.born, e.of.tree
	if s.op = r.m.apply(c.Session, maps.Clone(want)); s.op == nil && s.id != "" {
		s.op = r.m.nothing(c.Session)
	}
	if s.op != nil {
		s.op.born, s.op.tree = r.m.born, r.m.tree
	}
	r.m.did(s.op)
	return s
}
