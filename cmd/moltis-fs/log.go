package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit/diff"
)

func logCommand() *command {
	return &command{
		name: "log", args: "[PATH...]", max: maxPaths, run: showLog,
		short: "list changes, newest first, with their files",
		long: `It lists what tools changed below the root or the working directory, of all sessions, or only at
the PATHs and below them: when, by which tool, for whom, and how many lines came and went in each file.` + timesTaken,
		options: options("contains since until limit cursor principal session root"+onStore,
			opt("all", "", "list changes everywhere, not only below the working directory"),
			opt("turn", "NAME", "only of this turn"),
			opt("tool", "NAME", "only of this tool, or of this kind, as external"),
			opt("label", "TEXT", "only with this label"),
			opt("name-only", "", "list the names of the files alone, each once, of the last 1000 changes unless --limit says otherwise")),
		examples: []string{"moltis-fs log", "moltis-fs log --since 1h src", "moltis-fs log --session s1 --name-only"},
	}
}

// A logRow is one change in the log.
type logRow struct {
	ID        checkpoint.ID `json:"id"`
	Time      time.Time     `json:"time"`
	Tool      string        `json:"tool"` // else the kind, as external
	Kind      string        `json:"kind"`
	Principal string        `json:"principal"`
	Session   string        `json:"session"`
	Turn      string        `json:"turn,omitempty"`
	Label     string        `json:"label,omitempty"`
	Pinned    bool          `json:"pinned,omitempty"`
	Outcome   string        `json:"outcome,omitempty"` // aborted: it was not made
	UndoOf    checkpoint.ID `json:"undo_of,omitempty"`
	UndoneBy  checkpoint.ID `json:"undone_by,omitempty"`
	RestoreOf checkpoint.ID `json:"restore_of,omitempty"`
	Files     []logFile     `json:"files"`
}

// A logFile is one path of a change.
type logFile struct {
	Path   string `json:"path"`
	Change string `json:"change"` // created, changed, deleted, moved
	To     string `json:"to,omitempty"`
	// Lines that came and went; both are left out where the contents are no text, too large, or not stored.
	Added   *int `json:"added,omitempty"`
	Removed *int `json:"removed,omitempty"`
}

func showLog(ctx context.Context, in *invocation) error {
	f, err := in.filter()
	if err != nil {
		return err
	}
	most := 20
	if in.given("name-only") {
		most = 1000
	}
	limit, err := in.number("limit", most, 1000)
	if err != nil {
		return err
	}
	dirs, here, err := in.logged()
	if err != nil {
		return err
	}
	if len(dirs) == 1 && f.PathContains == "" {
		f.PathContains = dirs[0]
	}
	rows, notes := []logRow{}, []string{}
	list := func(ctx context.Context, db *checkpoint.DB) error {
		for len(rows) < limit {
			f.Limit = limit - len(rows)
			page, err := db.List(ctx, f)
			if err != nil {
				return err
			}
			for i := range page.Checkpoints {
				c := &page.Checkpoints[i]
				if len(dirs) > 0 && !slices.ContainsFunc(c.Changes, func(ch checkpoint.Recorded) bool {
					return slices.ContainsFunc(dirs, func(dir string) bool { return liesIn(dir, ch.Path) })
				}) {
					continue
				}
				rows, notes = append(rows, logged(ctx, db, c)), append(notes, notesOf(c))
			}
			if f.Cursor = page.Next; f.Cursor == "" {
				break
			}
		}
		return nil
	}
	if err := in.withStoreIfAny(ctx, list); err != nil {
		return err
	}
	if len(rows) == 0 && !in.given("json") {
		what := "nothing was changed yet"
		if len(dirs) > 0 {
			what += " below " + visible(strings.Join(dirs, ", "))
		}
		in.empty(strings.TrimSuffix(what+"; "+in.elsewhere(), "; "))
	}
	return in.answer(struct {
		Changes []logRow `json:"changes"`
		Next    string   `json:"next_cursor,omitempty"`
	}{rows, f.Cursor}, "%s", in.logText(rows, notes, here, f.Cursor))
}

// here is the directory that a command is about where nobody names one: that of --root, or the working directory, by its true name. "": it is
// gone.
func (in *invocation) here() (string, error) {
	dir, err := in.root()
	if err == nil && dir == "" {
		dir, _ = os.Getwd() // "" where it is gone
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir, err
}

// logged gives the paths that the log is about, none for everything, and the directory that names are relative to.
func (in *invocation) logged() (dirs []string, here string, err error) {
	if here, err = in.here(); err != nil || here == "" { // it is gone: everything, by whole names
		return nil, "", err
	}
	for _, p := range in.args {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, "", fmt.Errorf("finding the path: %w", err)
		}
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			abs = real
		}
		dirs = append(dirs, abs)
	}
	if len(dirs) == 0 && !in.given("all") && in.remote == nil && filepath.Dir(here) != here {
		dirs = []string{here}
	}
	return dirs, here, nil
}

func logged(ctx context.Context, db *checkpoint.DB, c *checkpoint.Checkpoint) logRow {
	row := logRow{ID: c.ID, Time: c.Time, Tool: toolOf(c), Kind: c.Kind, Pinned: c.Pinned, UndoneBy: c.UndoneBy, Principal: c.Principal, Session: c.Session, Turn: c.Turn,
		Label: c.Label, UndoOf: c.UndoOf, RestoreOf: c.RestoreOf, Files: []logFile{}}
	if c.Outcome == checkpoint.Aborted || c.Outcome == checkpoint.Foreign {
		row.Outcome = string(c.Outcome)
	}
	for i := range c.Changes {
		ch := &c.Changes[i]
		if ch.Role == checkpoint.RoleParent && len(c.Changes) > 1 || ch.From != "" {
			continue // the file in it, or the old name, has the row
		}
		file := logFile{Path: ch.Path, To: ch.To, Change: "changed"}
		switch {
		case ch.To != "":
			file.Change = "moved"
		case ch.Before.Kind == checkpoint.Absent:
			file.Change = "created"
		case ch.After.Kind == checkpoint.Absent:
			file.Change = "deleted"
		}
		if added, removed, ok := lineCounts(ctx, db, ch); ok {
			file.Added, file.Removed = &added, &removed
		}
		row.Files = append(row.Files, file)
	}
	return row
}

// countedBytes is the largest content of which the log counts lines.
const countedBytes = 1 << 20

// lineCounts counts the lines that a change added to a file and removed from it. It is not ok where that can't be told, as of a content that is not stored or can't be read.
func lineCounts(ctx context.Context, db *checkpoint.DB, ch *checkpoint.Recorded) (added, removed int, ok bool) {
	text := func(s checkpoint.State, stored bool) (content []byte, ok bool) {
		hash := s.Hash
		if s.Tail != "" {
			hash, stored = s.Tail, true
		}
		switch {
		case ch.To != "" || ch.From != "":
			return nil, false
		case s.Kind == checkpoint.Absent, s.Tail == "" && ch.Before.Tail+ch.After.Tail != "":
			return nil, true // of an append only the tail counts
		case s.Kind != checkpoint.File || !stored || s.Tail == "" && s.Size > countedBytes:
			return nil, false
		}
		content, err := db.Content(ctx, hash)
		return content, err == nil && len(content) <= countedBytes && bytes.IndexByte(content[:min(len(content), 8000)], 0) < 0
	}
	before, ok := text(ch.Before, ch.Stored)
	after, also := text(ch.After, ch.AfterStored)
	if !ok || !also {
		return 0, 0, false
	}
	added, removed = diff.Count(before, after)
	return added, removed, true
}

// logText is the log for people, with the notes on each row, and names relative to the directory here where they lie in it.
func (in *invocation) logText(rows []logRow, notes []string, here, next string) string {
	var b strings.Builder
	named := map[string]bool{}
	for i, r := range rows {
		if !in.given("name-only") {
			head := fmt.Sprintf("%s  %s  %s  %s/%s  %s", r.ID, r.Tool, ageText(time.Since(r.Time)), visible(r.Principal), visible(r.Session), notes[i])
			b.WriteString(strings.TrimSpace(head) + "\n")
		}
		for _, f := range r.Files {
			name := fromHere(here, f.Path)
			if in.given("name-only") {
				if !named[f.Path] {
					b.WriteString(name + "\n")
				}
				named[f.Path] = true
				continue
			}
			fmt.Fprintf(&b, "    %s", name)
			switch {
			case f.To != "":
				fmt.Fprintf(&b, " -> %s", fromHere(here, f.To))
			case f.Added != nil:
				fmt.Fprintf(&b, "  +%d -%d", *f.Added, *f.Removed)
			}
			if f.Change == "created" || f.Change == "deleted" {
				b.WriteString("  (" + f.Change + ")")
			}
			b.WriteByte('\n')
		}
	}
	if next != "" && in.given("name-only") {
		fmt.Fprintf(in.err, "%s: older changes: --cursor %s\n", program, next)
		return b.String()
	}
	return b.String() + more(next)
}

// fromHere is a path for people: relative to the directory here where it lies in it.
func fromHere(here, path string) string {
	if rel, err := filepath.Rel(here, path); here != "" && err == nil && filepath.IsLocal(rel) {
		return visible(rel)
	}
	return visible(path)
}

// ageText says how long ago something was, as in "3 minutes ago".
func ageText(d time.Duration) string {
	for _, u := range []struct {
		of        time.Duration
		one, many string
	}{{24 * time.Hour, "day", "days"}, {time.Hour, "hour", "hours"}, {time.Minute, "minute", "minutes"}} {
		if n := int(d / u.of); n > 0 {
			return plural(n, u.one, u.many) + " ago"
		}
	}
	return "just now"
}
