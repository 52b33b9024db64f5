package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit/diff"
	"moltisfs/tools"
)

func checkpointExportCommand() *command {
	return &command{
		name: "export", short: "write the history as a patch",
		long: `--patch writes one diff for each path that the calls changed. A diff goes from
before the path's first change to after its last one. git apply takes the patch in the tree as it
was, and git apply -R in the tree as it is. If others changed such a path in between, the diff has
their changes too, and the comments and standard error say so. Paths are relative to --root.
Without it they are relative to the git repository or the directory that you are in, if it holds
every path, and else to /. The first line says to which.

Left out are paths outside of --root, paths that git refuses (such as .git), and what the store does
not hold. The command says how many changes that are. It needs the git program, and does not touch
your own repositories. Meanwhile the contents are in a temporary directory, which nobody else can
read.` + timesTaken,
		options: storeOptions(append(whose(),
			opt("patch", "", "as diffs for git apply, binary ones too"),
			opt("root", "DIR", "only what is below, and paths relative to it"),
			opt("turn", "NAME", "only of this turn"),
			opt("since", "TIME", "not before"), opt("until", "TIME", "before"),
			identityOption(),
		)...),
		examples: []string{"moltis-fs checkpoint export --session s1 --turn t7 --patch > t7.patch"},
		run:      exportCheckpoints,
	}
}

func exportCheckpoints(ctx context.Context, in *invocation) error {
	if !in.given("patch") {
		return misuse(seeHelp(in.command), "export needs --patch")
	}
	if in.given("json") {
		return misuse("leave --json out", "a patch has no form in JSON")
	}
	f := checkpoint.Filter{
		Turn: in.option("turn"), NoReads: true, Limit: 1000,
		Principal: in.option("principal"), Session: in.option("session"), AllSessions: true,
	}
	var err error
	if f.Since, err = in.when("since"); err != nil {
		return err
	}
	if f.Until, err = in.when("until"); err != nil {
		return err
	}
	return in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
		ops, err := history(ctx, db, f)
		if err != nil {
			return err
		}
		if len(ops) == 0 && in.count("turn", "since", "until", "session", "principal") > 0 {
			return &exitError{exitRefused, "no change is in what you ask for",
				program + " checkpoint list shows turns, sessions and times", tools.KindNotFound}
		}
		x := &export{ctx: ctx, db: db, left: map[string]int{}}
		if x.root, err = in.exportRoot(ops); err != nil {
			return err
		}
		return x.patch(in, ops)
	})
}

// history lists every checkpoint that took place, oldest first.
func history(ctx context.Context, db *checkpoint.DB,
	f checkpoint.Filter) ([]checkpoint.Checkpoint, error) {
	var out []checkpoint.Checkpoint
	for {
		page, err := db.List(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, c := range page.Checkpoints {
			if c.Outcome != checkpoint.Aborted {
				out = append(out, c)
			}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			slices.Reverse(out)
			return out, nil
		}
	}
}

// An export is a history on its way into a patch.
type export struct {
	ctx  context.Context
	db   *checkpoint.DB
	root string         // paths are relative to it
	left map[string]int // changes that are left out, by the reason
}

// Why a change is left out.
const (
	refusedByGit = "git takes no path with a name that stands for a repository"
	notStored    = "its content is not in the store"
)

func (x *export) outside() string { return "it is outside of " + visible(x.root) }

// refuses says why no side of a change can be in git; "" where it can.
func (x *export) refuses(ch *checkpoint.Recorded) string {
	name, below := relative(ch.Path, x.root)
	switch before, after := gitModes(ch); {
	case !below:
		return x.outside()
	case gitRefuses(name, before == gitLink || after == gitLink):
		return refusedByGit
	}
	return ""
}

// put writes into the current commit of w that path is a file or a link.
func (x *export) put(w *bufio.Writer, path, mode string, s checkpoint.State) error {
	content := []byte(s.Target)
	if s.Kind == checkpoint.File {
		var err error
		content, err = x.db.Content(x.ctx, s.Hash)
		if errors.Is(err, checkpoint.ErrSealed) { // half a history would look like a whole one
			return misuse("--identity names the file with the key", "%v", err)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", visible(path), err)
		}
	}
	name, _ := relative(path, x.root)
	return putFile(w, name, mode, content)
}

func putFile(w *bufio.Writer, name, mode string, content []byte) error {
	_, err := fmt.Fprintf(w, "M %s inline %s\ndata %d\n%s\n", mode, diff.QuotePath(name),
		len(content), content)
	return err
}

// sayLeft says on standard error which changes are not in the patch.
func (x *export) sayLeft(in *invocation) {
	for _, why := range slices.Sorted(maps.Keys(x.left)) {
		n := plural(x.left[why], "change is", "changes are")
		fmt.Fprintf(in.err, "%s: %s not in the patch: %s\n", program, n, why)
	}
}

// A series is all changes of a path. changes[from:to] can be told: they go from the first state
// whose content is in the store to the last one. Contents in between may have gone.
type series struct {
	path     string
	by       []*checkpoint.Checkpoint
	changes  []*checkpoint.Recorded // one of each of by
	from, to int
}

// seriesOf are in the order in which they began.
func seriesOf(ops []checkpoint.Checkpoint) []*series {
	var out []*series
	at := map[string]*series{}
	for i := range ops {
		for j := range ops[i].Changes {
			ch := &ops[i].Changes[j]
			s := at[ch.Path]
			if s == nil {
				s = &series{path: ch.Path}
				at[ch.Path] = s
				out = append(out, s)
			}
			s.by, s.changes = append(s.by, &ops[i]), append(s.changes, ch)
		}
	}
	for _, s := range out {
		s.to = len(s.changes)
		for s.from < s.to && s.changes[s.from].Before.Kind == checkpoint.File &&
			!s.changes[s.from].Stored {
			s.from++
		}
		for s.to > s.from && s.changes[s.to-1].After.Kind == checkpoint.File &&
			!s.changes[s.to-1].AfterStored {
			s.to--
		}
	}
	return out
}

// whole is the series as one change.
func (s *series) whole() *checkpoint.Recorded {
	whole := *s.changes[min(s.from, len(s.changes)-1)]
	if s.from < s.to {
		whole.After = s.changes[s.to-1].After
	}
	return &whole
}

// others reports whether others changed the path in change i, or between it and the one before.
func (s *series) others(i int) bool {
	return s.by[i].Kind == checkpoint.KindExternal ||
		i > 0 && !follows(&s.changes[i-1].After, &s.changes[i].Before)
}

// follows reports whether a path was still what a change left behind when the next one found it.
// What was purged, or not hashed, may have been.
func follows(after, before *checkpoint.State) bool {
	unknown := func(s *checkpoint.State) bool { return s.Kind == checkpoint.File && s.Hash == "" }
	return after.Same(*before) || unknown(after) && before.Kind == checkpoint.File ||
		unknown(before) && after.Kind == checkpoint.File
}

// patch writes what git finds between two trees: each path as it was before its first change, and
// as it was after its last. So it fits the tree as it was and, taken back, the tree as it is. git
// apply wants each path once: of one that comes twice it forgets that it was created or removed.
func (x *export) patch(in *invocation, ops []checkpoint.Checkpoint) error {
	all := seriesOf(ops)
	mixed := 0
	comments := []byte("# paths are relative to " + visible(x.root) + "\n")
	for _, s := range all {
		var others bool
		if comments, others = s.comment(x, comments); others {
			mixed++
		}
	}
	sides := func(w *bufio.Writer) error {
		for side, branch := range []string{"before", "after"} {
			beginCommit(w, branch)
			for _, s := range all {
				ch := s.whole()
				before, after := gitModes(ch)
				mode, state := []string{before, after}[side], []checkpoint.State{ch.Before, ch.After}[side]
				if mode == "" || s.from == s.to || x.refuses(ch) != "" {
					continue
				}
				if err := x.put(w, s.path, mode, state); err != nil {
					return err
				}
			}
			w.WriteByte('\n')
		}
		return nil
	}
	git, err := newScratch(x.ctx, in.env("PATH"))
	if err != nil {
		return err
	}
	defer os.RemoveAll(git.dir) //nolint:errcheck // nobody can do anything about it
	if err = git.take(sides); err == nil {
		err = in.write(comments)
	}
	if err == nil {
		err = git.diff(in.out)
	}
	if err != nil {
		return fmt.Errorf("writing the patch: %w", err)
	}
	x.sayLeft(in)
	if mixed > 0 {
		fmt.Fprintf(in.err, "%s: %s also changed by others in between, and the patch has that too: "+
			"its comments say where\n", program, plural(mixed, "path was", "paths were"))
	}
	return nil
}

// comment adds a line for each change and counts what is left out. others: others changed it too.
func (s *series) comment(x *export, b []byte) (_ []byte, others bool) {
	ch := s.whole()
	why := x.refuses(ch)
	if before, after := gitModes(ch); before == "" && after == "" && s.to-s.from == len(s.changes) {
		if ch.Role != checkpoint.RoleTree {
			return b, false // git knows of no directories
		}
		why = "a directory was moved as a whole"
	}
	for i, c := range s.by {
		note, reason := "", why
		if reason == "" && (i < s.from || i >= s.to) {
			reason = notStored
		}
		switch {
		case reason != "":
			x.left[reason]++
			note = ": left out, " + reason
		case s.others(i) && (i > s.from || c.Kind == checkpoint.KindExternal):
			others = true
			note = ": not of the calls alone, what others changed is in the diff too"
		}
		b = fmt.Appendf(b, "# %s %s %s %s%s\n", c.ID, c.Time.UTC().Format(time.RFC3339), toolOf(c),
			visible(s.path), note)
	}
	return b, others
}

// gitMode is the mode of what git would store, "" for nothing.
func gitMode(s checkpoint.State) string {
	switch {
	case s.Kind == checkpoint.Symlink:
		return gitLink
	case s.Kind != checkpoint.File:
		return ""
	case s.Mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// gitModes are those of both sides of a change. A mode that nobody recorded is that of the other.
func gitModes(c *checkpoint.Recorded) (before, after string) {
	b, a := c.Before, c.After
	if b.Kind == checkpoint.File && a.Kind == checkpoint.File {
		b.Mode, a.Mode = cmp.Or(b.Mode, a.Mode), cmp.Or(a.Mode, b.Mode)
	}
	return gitMode(b), gitMode(a)
}

// relative is path as seen from root, with slashes.
func relative(path, root string) (string, bool) {
	path, root = filepath.ToSlash(path), strings.TrimRight(filepath.ToSlash(root), "/")
	rest, ok := strings.CutPrefix(path, root+"/")
	if root == "" { // also for what another system recorded: C:/x
		return strings.TrimLeft(path, "/"), true
	}
	return rest, ok && rest != ""
}

// exportRoot is the directory that exported paths are relative to: --root. Without it they are
// relative to the repository that we are in, or the directory, if it holds every path.
func (in *invocation) exportRoot(ops []checkpoint.Checkpoint) (string, error) {
	if root := in.option("root"); root != "" {
		return trueDir(root)
	}
	here, err := trueDir(".")
	if err != nil {
		return "", err
	}
	places := []string{here}
	for dir := here; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			places = []string{dir, here}
			break
		}
	}
	for _, root := range places {
		beyond := func(ch checkpoint.Recorded) bool {
			_, ok := relative(ch.Path, root)
			return !ok && ch.Role != checkpoint.RoleParent
		}
		if !slices.ContainsFunc(ops, func(c checkpoint.Checkpoint) bool {
			return slices.ContainsFunc(c.Changes, beyond)
		}) {
			return root, nil
		}
	}
	return string(filepath.Separator), nil
}

// trueDir is a directory as the store names it. One that is gone keeps the name it is given.
func trueDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the directory: %w", err)
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real, nil
	}
	return abs, nil
}
