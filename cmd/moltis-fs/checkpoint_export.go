package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
		name: "export", short: "write the history as a patch, or as a git repository",
		long: `--patch writes to standard output one diff for each path that the calls changed, from before their first change to after their last: git apply takes it in the tree
as it was, git apply -R in the tree as it is. What others changed in such a path in between is in it too; the comments and standard error say so. --git has each call's
share of its own.
Paths are relative to --root; else to the git repository that you are in, the directory that you are in or the workspace_root, whichever is the first to hold every path; else
to the root directory. The first line says to which. What is outside of --root is left out, and so are paths that git refuses (.git is one, by whatever
name) and what the store does not hold; all of that is said.
--git makes a bare repository in a directory that does not exist yet: the first commit holds what the files were, and each turn, or call
without a turn, is one more on the branch "checkpoints", with paths relative to --root, else to the root directory. Commits are in the order of the calls: a turn
with calls of other turns in between is several, called parts. When it fails nothing stays. Both take the git program; for a patch the contents are in a temporary
directory meanwhile, which nobody else can read. Your own repositories are not
touched. ` + timesTaken,
		options: storeOptions(append(whose(),
			option{name: "patch", doc: "as diffs for git apply, binary ones too"},
			option{name: "git", value: "DIR", doc: "as a bare repository"},
			option{name: "root", value: "DIR", doc: "only what is below, and paths relative to it"},
			option{name: "turn", value: "NAME", doc: "only of this turn"},
			option{name: "since", value: "TIME", doc: "not before"},
			option{name: "until", value: "TIME", doc: "before"},
			identityOption(),
		)...),
		examples: []string{"moltis-fs checkpoint export --session s1 --turn t7 --patch > t7.patch", "moltis-fs checkpoint export --git history.git"},
		run:      exportCheckpoints,
	}
}

func exportCheckpoints(ctx context.Context, in *invocation) error {
	if in.given("patch") == in.given("git") {
		return misuse(seeHelp(in.command), "export needs either --patch or --git")
	}
	if in.given("patch") && in.given("json") {
		return misuse("leave --json out", "a patch has no form in JSON")
	}
	f := checkpoint.Filter{Turn: in.option("turn"), NoReads: true, Limit: 1000, Principal: in.option("principal"), Session: in.option("session"), AllSessions: true}
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
			return &exitError{exitRefused, "no change is in what you ask for", program + " checkpoint list shows turns, sessions and times", tools.KindNotFound}
		}
		if in.given("git") {
			return in.exportGit(ctx, db, ops)
		}
		root, err := in.exportRoot(ops)
		if err != nil {
			return err
		}
		return in.exportPatch(ctx, db, ops, root)
	})
}

// history lists every checkpoint that took place, oldest first.
func history(ctx context.Context, db *checkpoint.DB, f checkpoint.Filter) ([]checkpoint.Checkpoint, error) {
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

// contentOf is the content of a state; ok is false where it is not in the store.
func contentOf(ctx context.Context, db *checkpoint.DB, s checkpoint.State) (content []byte, ok bool, err error) {
	switch s.Kind {
	case checkpoint.Symlink:
		return []byte(s.Target), true, nil
	case checkpoint.File:
		content, err = db.Content(ctx, s.Hash)
		if errors.Is(err, checkpoint.ErrSealed) { // half a history would look like a whole one
			return nil, false, misuse("--identity names the file with the key", "%v", err)
		}
		if s.Hash == "" || errors.Is(err, checkpoint.ErrNoContent) {
			return nil, false, nil
		}
		return content, err == nil, err
	}
	return nil, true, nil
}

// A series is all changes of a path, which a patch tells as one: git apply takes a path once only, and forgets of one that comes twice that it was
// created or removed.
type series struct {
	path    string
	by      []*checkpoint.Checkpoint
	changes []*checkpoint.Recorded // one of each of by
}

// seriesOf are in the order in which they began.
func seriesOf(ops []checkpoint.Checkpoint) []*series {
	var out []*series
	at := map[string]*series{}
	for i := range ops {
		for j := range ops[i].Changes {
			ch := &ops[i].Changes[j]
			r := at[ch.Path]
			if r == nil {
				r = &series{path: ch.Path}
				at[ch.Path] = r
				out = append(out, r)
			}
			r.by, r.changes = append(r.by, &ops[i]), append(r.changes, ch)
		}
	}
	return out
}

// told is the part of the series that can be told: changes[from:to], from the first state whose content is in the store to the last one. Contents in
// between may have gone.
func (r *series) told() (from, to int) {
	for from < len(r.changes) && r.changes[from].Before.Kind == checkpoint.File && !r.changes[from].Stored {
		from++
	}
	to = len(r.changes)
	for to > from && r.changes[to-1].After.Kind == checkpoint.File && !r.changes[to-1].AfterStored {
		to--
	}
	return from, to
}

// others reports whether something else than the calls changed the path in change i, or between it and the one before.
func (r *series) others(i int) bool {
	return r.by[i].Kind == checkpoint.KindExternal || i > 0 && !follows(&r.changes[i-1].After, &r.changes[i].Before)
}

// follows reports whether a path was still what a change left behind when the next one found it. What was purged, or not hashed, may have been.
func follows(after, before *checkpoint.State) bool {
	unknown := func(s *checkpoint.State) bool { return s.Kind == checkpoint.File && s.Hash == "" }
	return after.Same(*before) || unknown(after) && before.Kind == checkpoint.File || unknown(before) && after.Kind == checkpoint.File
}

// exportPatch writes a patch for git apply: git's own diff of two trees, of what each path was before its first change and after its last one, so
// that it fits the tree as it was and, taken back, the tree as it is. What others did to the path in between is in it, and that is said.
func (in *invocation) exportPatch(ctx context.Context, db *checkpoint.DB, ops []checkpoint.Checkpoint, root string) (err error) {
	dir, err := os.MkdirTemp("", "moltis-fs-export-")
	if err != nil {
		return fmt.Errorf("making a directory for the patch: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	git, err := in.git(ctx, dir)
	if err != nil {
		return err
	}
	left, mixed := map[string]int{}, 0
	out := bufio.NewWriter(in.out)
	fmt.Fprintf(out, "# paths are relative to %s\n", visible(root))
	err = git.fastImport(func(w *bufio.Writer) error {
		t := &twoTrees{w: w}
		for _, r := range seriesOf(ops) {
			foreign, err := r.tell(ctx, db, root, t, out, left)
			if err != nil {
				return err
			}
			if foreign {
				mixed++
			}
		}
		return t.commit()
	})
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = git.diff(in.out)
	}
	if err != nil {
		return fmt.Errorf("writing the patch: %w", err)
	}
	for _, why := range slices.Sorted(maps.Keys(left)) {
		fmt.Fprintf(in.err, "%s: %s not in the patch: %s\n", program, plural(left[why], "change is", "changes are"), why)
	}
	if mixed > 0 {
		fmt.Fprintf(in.err, "%s: %s also changed by others in between, and the patch has that too: its comments say where\n", program, plural(mixed, "path was", "paths were"))
	}
	return nil
}

// tell puts the series into the two trees and writes a comment for each of its changes. foreign says that others changed the path in between.
func (r *series) tell(ctx context.Context, db *checkpoint.DB, root string, t *twoTrees, comments io.Writer, left map[string]int) (foreign bool, err error) {
	from, to := r.told()
	whole := *r.changes[0]
	if from < to {
		whole = *r.changes[from]
		whole.After = r.changes[to-1].After
	}
	why, some, err := t.put(ctx, db, &whole, root)
	if err != nil || !some && why == "" && from == 0 && to == len(r.changes) {
		return false, err
	}
	for i, c := range r.by {
		note := ""
		switch {
		case i < from || i >= to:
			left[cmp.Or(why, notStored)]++
			note = ": left out, " + cmp.Or(why, notStored)
		case why != "":
			left[why]++
			note = ": left out, " + why
		case r.others(i) && (i > from || c.Kind == checkpoint.KindExternal):
			foreign = true
			note = ": not of the calls alone, what others changed is in the diff too"
		}
		fmt.Fprintf(comments, "# %s %s %s %s%s\n", c.ID, c.Time.UTC().Format(time.RFC3339), visible(cmp.Or(c.Tool, c.Kind)), visible(r.path), note)
	}
	return foreign, nil
}

// twoTrees are what paths were and what they became, as a stream for git fast-import.
type twoTrees struct {
	w             *bufio.Writer
	before, after []string // lines that put a blob at its path
}

// put adds one path; some is false where there is nothing to say of it or, with why, where that can't be said.
func (t *twoTrees) put(ctx context.Context, db *checkpoint.DB, ch *checkpoint.Recorded, root string) (why string, some bool, err error) {
	oldMode, newMode := gitModes(ch)
	if oldMode == "" && newMode == "" {
		if ch.Role == checkpoint.RoleTree {
			return "a directory was moved as a whole", false, nil
		}
		return "", false, nil // git knows of no directories
	}
	name, ok := relative(ch.Path, root)
	if !ok {
		return "it is outside of " + visible(root), false, nil
	}
	if gitRefuses(name, oldMode == gitLink || newMode == gitLink) {
		return refusedByGit, false, nil
	}
	before, ok, err := contentOf(ctx, db, ch.Before)
	if err != nil || !ok {
		return notStored, false, err
	}
	after, ok, err := contentOf(ctx, db, ch.After)
	if err != nil || !ok {
		return notStored, false, err
	}
	t.add(name, oldMode, newMode, before, after)
	return "", true, nil
}

// add writes the contents of both sides of a path; the mode "" is a side without a file.
func (t *twoTrees) add(name, oldMode, newMode string, before, after []byte) {
	for _, side := range []struct {
		mode    string
		content []byte
		tree    *[]string
	}{{oldMode, before, &t.before}, {newMode, after, &t.after}} {
		if side.mode == "" {
			continue
		}
		mark := len(t.before) + len(t.after) + 1
		fmt.Fprintf(t.w, "blob\nmark :%d\ndata %d\n%s\n", mark, len(side.content), side.content)
		*side.tree = append(*side.tree, fmt.Sprintf("M %s :%d %s\n", side.mode, mark, diff.QuotePath(name)))
	}
}

// commit names the trees.
func (t *twoTrees) commit() error {
	fmt.Fprintf(t.w, "commit refs/heads/before\ncommitter %s 0 +0000\ndata 0\n%s\n", committer, strings.Join(t.before, ""))
	_, err := fmt.Fprintf(t.w, "commit refs/heads/after\ncommitter %s 0 +0000\ndata 0\n%s\n", committer, strings.Join(t.after, ""))
	return err
}

// goneFirst are the changes of a call in an order in which they can be made one by one: where a directory was a file may be now, or the other way
// round, and what is in the way has to go first.
func goneFirst(c *checkpoint.Checkpoint) []checkpoint.Recorded {
	stays := func(ch checkpoint.Recorded) int { return min(len(gitMode(ch.After)), 1) }
	out := slices.Clone(c.Changes)
	slices.SortStableFunc(out, func(a, b checkpoint.Recorded) int { return stays(a) - stays(b) })
	return out
}

// Why a change is left out.
const (
	refusedByGit = "git takes no path with a name that stands for a repository"
	notStored    = "its content is not in the store"
)

// relative is path as seen from root, with slashes.
func relative(path, root string) (string, bool) {
	path, root = filepath.ToSlash(path), strings.TrimRight(filepath.ToSlash(root), "/")
	rest, ok := strings.CutPrefix(path, root+"/")
	if root == "" { // also for what another system recorded: C:/x
		return strings.TrimLeft(path, "/"), true
	}
	return rest, ok && rest != ""
}

// exportRoot is the directory that exported paths are relative to: --root; else the repository that we are in, the directory that we are in or
// the workspace, whichever is the first that holds every path; else the root of all.
func (in *invocation) exportRoot(ops []checkpoint.Checkpoint) (string, error) {
	if root := in.option("root"); root != "" {
		return trueDir(root)
	}
	var places []string
	here, err := trueDir(".")
	if err == nil {
		for dir := here; ; dir = filepath.Dir(dir) {
			if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
				places = append(places, dir)
				break
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
		places = append(places, here)
	}
	cfg, _, err := in.loadConfig(in.option("config"))
	if err != nil {
		return "", err
	}
	if root := cfg.Tools.FS.WorkspaceRoot; root != "" {
		if root, err = trueDir(root); err != nil {
			return "", err
		}
		places = append(places, root)
	}
	for _, root := range places {
		holds := func(c checkpoint.Checkpoint) bool {
			return !slices.ContainsFunc(c.Changes, func(ch checkpoint.Recorded) bool {
				_, ok := relative(ch.Path, root)
				return !ok && ch.Role != checkpoint.RoleParent
			})
		}
		if !slices.ContainsFunc(ops, func(c checkpoint.Checkpoint) bool { return !holds(c) }) {
			return root, nil
		}
	}
	return string(filepath.Separator), nil
}

// trueDir is a directory as the store names it. One that is gone by now has the name that it is given.
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
