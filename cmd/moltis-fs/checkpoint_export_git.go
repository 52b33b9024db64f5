package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit/diff"
)

func (in *invocation) exportGit(ctx context.Context, db *checkpoint.DB, ops []checkpoint.Checkpoint) (err error) {
	dir := in.option("git")
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return misuse("name one that does not exist yet", "%s is not empty", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return misuse("name a directory that does not exist yet", "%v", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("finding the directory: %w", err)
	}
	root := string(filepath.Separator)
	if in.given("root") {
		if root, err = trueDir(in.option("root")); err != nil {
			return err
		}
	}
	x := &gitExport{ctx: ctx, db: db, root: root, progress: progressOn(in.err)}
	if err := x.repository(ops, dir, in); err != nil {
		return err
	}
	if in.given("json") {
		return writeJSON(in, struct {
			Dir     string `json:"dir"`
			Commits int    `json:"commits"`
			Missing int    `json:"missing"`
			Outside int    `json:"outside"`
			Refused int    `json:"refused"` // paths that git does not take
		}{dir, x.commits, x.missing, x.outside, x.refused})
	}
	text := fmt.Sprintf("wrote %s into %s", plural(x.commits, "commit", "commits"), visible(dir))
	if x.missing > 0 {
		text += "; " + plural(x.missing, "content was", "contents were") + " not in the store"
	}
	if x.outside > 0 {
		text += "; " + plural(x.outside, "change was", "changes were") + " outside of " + visible(root)
	}
	if x.refused > 0 {
		text += "; " + plural(x.refused, "change was", "changes were") + " left out: " + refusedByGit
	}
	return in.write([]byte(text + "\n"))
}

// repository makes the repository in dir, which is empty or not there: aside in it, so that half a repository looks like none, and what goes where it
// failed is its own alone, whatever others put there meanwhile.
func (x *gitExport) repository(ops []checkpoint.Checkpoint, dir string, in *invocation) (err error) {
	var made []string // directories, dir first
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = append(made, at)
	}
	defer func() {
		if err == nil {
			return
		}
		for _, at := range made {
			if os.Remove(at) != nil { // others have put something there
				break
			}
		}
	}()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return misuse("name a directory that can be made", "there can be no repository in %s: %v", visible(dir), err)
	}
	aside, err := os.MkdirTemp(dir, ".export-")
	if err != nil {
		return misuse("name a directory that you can write to", "there can be no repository in %s: %v", visible(dir), err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(aside)) }()
	git, err := in.git(x.ctx, aside)
	if err != nil {
		return err
	}
	err = git.fastImport(func(w *bufio.Writer) error {
		x.w = w
		return x.write(ops)
	})
	if err != nil {
		return err
	}
	return moved(aside, dir)
}

// moved moves what is in from into dir beside it, where nothing of these names may be; all of it or nothing.
func moved(from, dir string) (err error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("looking at the repository: %w", err)
	}
	var back []func() error
	defer func() {
		for i := len(back) - 1; err != nil && i >= 0; i-- {
			err = errors.Join(err, back[i]())
		}
	}()
	for _, e := range entries {
		at, to := filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())
		if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			return misuse("name a directory that nobody else works in", "%s was put there meanwhile", visible(to))
		}
		if err := os.Rename(at, to); err != nil {
			return fmt.Errorf("moving the repository to its place: %w", err)
		}
		back = append(back, func() error { return os.Rename(to, at) })
	}
	return nil
}

// gitExport writes the stream that git fast-import reads.
type gitExport struct {
	ctx      context.Context
	db       *checkpoint.DB
	root     string
	w        *bufio.Writer
	progress func(string, int, int)

	commits, missing, outside, refused int
}

func (x *gitExport) write(ops []checkpoint.Checkpoint) error {
	if err := x.origin(ops); err != nil {
		return err
	}
	type turn struct{ principal, session, name string }
	turnOf := func(c *checkpoint.Checkpoint) turn { return turn{c.Principal, c.Session, c.Turn} }
	var runs [][]checkpoint.Checkpoint
	parts, part := map[turn]int{}, map[turn]int{}
	for i := 0; i < len(ops); {
		n := i + 1
		for n < len(ops) && ops[i].Turn != "" && turnOf(&ops[n]) == turnOf(&ops[i]) {
			n++
		}
		runs = append(runs, ops[i:n])
		parts[turnOf(&ops[i])]++
		i = n
	}
	done := 0
	for _, run := range runs {
		title, t := "", turnOf(&run[0])
		part[t]++
		switch {
		case t.name != "" && parts[t] > 1:
			title = fmt.Sprintf("turn %s, part %d of %d: ", visible(t.name), part[t], parts[t])
		case len(run) > 1:
			title = "turn " + visible(t.name) + ": "
		}
		if err := x.commit(title, run); err != nil {
			return err
		}
		if done += len(run); x.progress != nil {
			x.progress("exporting", done, len(ops))
		}
	}
	return nil
}

// origin is the commit of what every path was before its first change.
func (x *gitExport) origin(ops []checkpoint.Checkpoint) error {
	if len(ops) == 0 {
		return nil
	}
	x.header("before the first checkpoint", "", ops[0].Time)
	seen := map[string]bool{}
	for i := range ops {
		for _, ch := range ops[i].Changes {
			if !seen[ch.Path] {
				seen[ch.Path] = true
				if err := x.put(ch.Path, ch.Before, false); err != nil {
					return err
				}
			}
		}
	}
	x.w.WriteByte('\n')
	return nil
}

func (x *gitExport) header(subject, body string, t time.Time) {
	x.commits++
	message := subject + "\n" + body
	fmt.Fprintf(x.w, "commit refs/heads/checkpoints\ncommitter %s %d +0000\ndata %d\n%s\n", committer, t.Unix(), len(message), message)
}

// commit writes calls as one commit. Its subject begins with title.
func (x *gitExport) commit(title string, ops []checkpoint.Checkpoint) error {
	c := &ops[0]
	subject := title + visible(cmp.Or(c.Tool, c.Kind)) + " " + pathsOf(c)
	if len(ops) > 1 {
		subject = title + plural(len(ops), "call", "calls")
	}
	var trailers strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&trailers, "%s: %s\n", name, value)
		}
	}
	line("\nPrincipal", visible(c.Principal))
	line("Session", visible(c.Session))
	line("Turn", visible(c.Turn))
	for i := range ops {
		line("Checkpoint", string(ops[i].ID)+" "+visible(cmp.Or(ops[i].Tool, ops[i].Kind)))
	}
	x.header(subject, trailers.String(), ops[len(ops)-1].Time)
	for i := range ops {
		for _, ch := range goneFirst(&ops[i]) {
			after := ch.After
			if after.Kind == checkpoint.Dir && gitMode(ch.Before) != "" {
				after = checkpoint.State{Kind: checkpoint.Absent} // git knows of no directories, only that the file is gone
			}
			if err := x.put(ch.Path, after, true); err != nil {
				return err
			}
		}
	}
	x.w.WriteByte('\n')
	return nil
}

// put writes one path. What is absent is only removed where it may be there.
func (x *gitExport) put(path string, s checkpoint.State, remove bool) error {
	rel, below := relative(path, x.root)
	name := diff.QuotePath(rel)
	switch {
	case s.Kind == checkpoint.Dir:
		return nil
	case !below:
		if remove { // told once, not for its origin too
			x.outside++
		}
		return nil
	case gitRefuses(rel, s.Kind == checkpoint.Symlink):
		if remove {
			x.refused++
		}
		return nil
	}
	switch s.Kind {
	case checkpoint.Absent, "":
		if remove {
			fmt.Fprintf(x.w, "D %s\n", name)
		}
		return nil
	}
	content, ok, err := contentOf(x.ctx, x.db, s)
	if err != nil {
		return err
	}
	if !ok {
		x.missing++
		return nil
	}
	fmt.Fprintf(x.w, "M %s inline %s\ndata %d\n", gitMode(s), name, len(content))
	x.w.Write(content)
	return x.w.WriteByte('\n')
}
