package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/gitrepo"
)

// repository is export --git.
func (x *export) repository(in *invocation, ops []checkpoint.Checkpoint) error {
	dir := in.option("git")
	entries, err := os.ReadDir(dir)
	switch {
	case len(entries) > 0:
		return misuse("name one that does not exist yet", "%s is not empty", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return misuse("name a directory that does not exist yet", "%v", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return fmt.Errorf("finding the directory: %w", err)
	}
	progress := progressOn(in.err)
	err = gitrepo.Create(x.ctx, in.env("PATH"), dir, func(w *bufio.Writer) error {
		x.w = w
		return x.write(ops, progress)
	})
	if err != nil {
		return err
	}
	x.sayLeft(in, "repository")
	return in.answer(struct {
		Dir     string `json:"dir"`
		Commits int    `json:"commits"`
		Missing int    `json:"missing"`
		Outside int    `json:"outside"`
		Refused int    `json:"refused"` // paths that git does not take
	}{dir, x.commits, x.left[notStored], x.left[x.outside()], x.left[refusedByGit]},
		"wrote %s into %s\n", plural(x.commits, "commit", "commits"), visible(dir))
}

// write makes a commit of what the files were, and one of each turn, or call without a turn.
func (x *export) write(ops []checkpoint.Checkpoint, progress func(string, int, int)) error {
	if len(ops) == 0 {
		return nil
	}
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
		if err := x.calls(title, run); err != nil {
			return err
		}
		if done += len(run); progress != nil {
			progress("exporting", done, len(ops))
		}
	}
	return nil
}

// committer is who makes the commits of an export.
const committer = "moltis-fs <moltis-fs@localhost>"

// begin begins a commit.
func (x *export) begin(branch, message string, t time.Time) {
	x.commits++
	fmt.Fprintf(x.w, "commit refs/heads/%s\ncommitter %s %d +0000\ndata %d\n%s\n",
		branch, committer, t.Unix(), len(message), message)
}

// origin is the commit of what every path was before its first change.
func (x *export) origin(ops []checkpoint.Checkpoint) error {
	x.begin("checkpoints", "before the first checkpoint\n", ops[0].Time)
	for _, s := range seriesOf(ops) {
		ch := s.changes[0]
		mode, _ := gitModes(ch)
		switch {
		case mode == "" || x.refuses(ch) != "":
			continue
		case s.from > 0:
			x.left[notStored]++
			continue
		}
		if err := x.put(s.path, mode, ch.Before); err != nil {
			return err
		}
	}
	return x.w.WriteByte('\n')
}

// calls writes calls as one commit. Its subject begins with title.
func (x *export) calls(title string, ops []checkpoint.Checkpoint) error {
	c := &ops[0]
	subject := title + toolOf(c) + " " + pathsOf(c)
	if len(ops) > 1 {
		subject = title + plural(len(ops), "call", "calls")
	}
	var b strings.Builder
	b.WriteString(subject + "\n")
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s: %s\n", name, value)
		}
	}
	line("\nPrincipal", visible(c.Principal))
	line("Session", visible(c.Session))
	line("Turn", visible(c.Turn))
	for i := range ops {
		line("Checkpoint", string(ops[i].ID)+" "+toolOf(&ops[i]))
	}
	x.begin("checkpoints", b.String(), ops[len(ops)-1].Time)
	for i := range ops {
		if err := x.changes(&ops[i]); err != nil {
			return err
		}
	}
	return x.w.WriteByte('\n')
}

// changes writes what a call changed. What is gone comes first: a directory may be where a file
// was, or a file where a directory was.
func (x *export) changes(c *checkpoint.Checkpoint) error {
	stays := func(ch checkpoint.Recorded) int { return min(len(gitMode(ch.After)), 1) }
	changes := slices.Clone(c.Changes)
	slices.SortStableFunc(changes, func(a, b checkpoint.Recorded) int { return stays(a) - stays(b) })
	for i := range changes {
		ch := &changes[i]
		before, mode := gitModes(ch)
		if ch.After.Kind == checkpoint.Dir && before == "" {
			continue // git knows of no directories, only that a file is gone
		}
		why := x.refuses(ch)
		if why == "" && ch.After.Kind == checkpoint.File && !ch.AfterStored {
			why = notStored
		}
		switch {
		case why != "":
			x.left[why]++
		case mode == "":
			name, _ := relative(ch.Path, x.root)
			fmt.Fprintf(x.w, "D %s\n", diff.QuotePath(name))
		default:
			if err := x.put(ch.Path, mode, ch.After); err != nil {
				return err
			}
		}
	}
	return nil
}
