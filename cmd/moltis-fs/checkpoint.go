package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
)

func checkpointCommand() *command {
	c := &command{
		name:  "checkpoint",
		short: "list checkpoints, rewind to one, pin one",
		below: []*command{
			{
				name: "list", short: "list checkpoints, newest first, with what is stored of each path", run: listCheckpoints,
				long: "All sessions, unless --session or --principal says otherwise." + timesTaken,
				options: options("contains since until limit cursor principal session"+onStore,
					opt("path", "PATH", "only this path"),
					opt("turn", "NAME", "only this turn"),
					opt("tool", "NAME", "only this tool or kind"),
					opt("label", "TEXT", "only this label"),
				),
				examples: []string{"moltis-fs checkpoint list", "moltis-fs checkpoint list --path ./main.go --since 24h", "moltis-fs checkpoint list --session s1 --json"},
			},
			{
				ids: changesOf, name: "show", args: "ID", min: 1, max: 1, run: showCheckpoint,
				short:    "show one checkpoint with all its paths",
				options:  options("principal session" + onStore),
				examples: []string{"moltis-fs checkpoint show ck-1H0"},
			},
			checkpointRewindCommand(),
			{
				records: "pin", ids: changesOf, name: "pin", args: "ID", min: 1, max: 1, run: pinCheckpoint,
				short: "never let a checkpoint expire",
				options: options("principal session"+onStore,
					opt("label", "TEXT", "a name, to find it and to rewind to it")),
				examples: []string{"moltis-fs checkpoint pin ck-1H0 --label before-cleanup"},
			},
			{
				records: "unpin", ids: changesOf, name: "unpin", args: "ID", min: 1, max: 1, run: pinCheckpoint,
				short:    "let the checkpoint expire again",
				options:  options("principal session"+onStore, opt("no-label", "", "also remove its label")),
				examples: []string{"moltis-fs checkpoint unpin ck-1H0"},
			},
		},
	}
	// their longer names
	again := append([]*command{diffCommand(), restoreCommand(), walkCommand("undo", ""), walkCommand("redo", "")}, storeCommand().below...)
	for _, twin := range again {
		if twin.hidden = true; twin.name == "import" {
			twin.name = "import-moltis"
		}
	}
	c.below = slices.Concat(again, c.below)
	return c
}

func listCheckpoints(ctx context.Context, in *invocation) error {
	f, err := in.filter()
	if err != nil {
		return err
	}
	f.NoReads = false
	if p := in.option("path"); p != "" {
		abs, err := filepath.Abs(p)
		if err != nil {
			return fmt.Errorf("finding the path: %w", err)
		}
		names := engine.Names(abs)
		f.Path, f.Also = names[0], names[1:]
	}
	if f.Limit, err = in.number("limit", 20, 1000); err != nil {
		return err
	}
	return in.withStore(ctx, func(ctx context.Context, db *checkpoint.DB) error {
		page, err := db.List(ctx, f)
		if err != nil {
			return err
		}
		rows, text := []checkpointRow{}, [][]string{}
		for i := range page.Checkpoints {
			c := &page.Checkpoints[i]
			rows = append(rows, rowOf(c))
			text = append(text, []string{string(c.ID), timeText(c.Time), toolOf(c), visible(c.Session), pathsOf(c), notesOf(c)})
		}
		return in.table(struct {
			Checkpoints []checkpointRow `json:"checkpoints"`
			Next        string          `json:"next_cursor,omitempty"`
		}{rows, page.Next}, text, page.Next, "there are no checkpoints")
	})
}

func showCheckpoint(ctx context.Context, in *invocation) error {
	return in.withStore(ctx, func(ctx context.Context, db *checkpoint.DB) error {
		c, err := in.find(ctx, db)
		if err != nil {
			return err
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s  %s  %s  principal %s, session %s\n", c.ID, timeText(c.Time), toolOf(c),
			visible(c.Principal), visible(c.Session))
		if n := notesOf(c); n != "" {
			b.WriteString(n + "\n")
		}
		for _, ch := range c.Changes {
			fmt.Fprintf(&b, "  %s\n    was %s%s\n    became %s%s%s\n", visible(ch.Path),
				describe(ch.Before), absence(ch.Skipped), describe(ch.After), absence(ch.AfterSkipped), otherName(&ch))
		}
		return in.answer(rowOf(c), "%s", b.String())
	})
}

// pinCheckpoint is pin and unpin.
func pinCheckpoint(ctx context.Context, in *invocation) error {
	return in.withStore(ctx, func(ctx context.Context, db *checkpoint.DB) error {
		who, set := in.operator(), db.Pin
		if in.command.name == "unpin" {
			set = db.Unpin
		}
		c, err := in.find(ctx, db)
		if err == nil {
			err = set(ctx, c.ID, who)
		}
		if err == nil && in.count("label", "no-label") > 0 {
			err = db.Label(ctx, c.ID, who, in.option("label"))
		}
		if err == nil {
			c, err = db.Get(ctx, c.ID, who)
		}
		if err != nil {
			return err
		}
		return in.answer(rowOf(c), "%s %sned\n", c.ID, in.command.name)
	})
}

// How a checkpoint is written: a row of JSON, and the words for people.

// checkpointRow is a checkpoint as the commands write it in JSON.
type checkpointRow struct {
	ID        checkpoint.ID   `json:"id"`
	Time      time.Time       `json:"time"`
	Tool      string          `json:"tool,omitempty"`
	Kind      string          `json:"kind"`
	Principal string          `json:"principal"`
	Session   string          `json:"session"`
	Turn      string          `json:"turn,omitempty"`
	Label     string          `json:"label,omitempty"`
	Outcome   string          `json:"outcome,omitempty"`
	Pinned    bool            `json:"pinned"`
	UndoOf    checkpoint.ID   `json:"undo_of,omitempty"`
	RestoreOf checkpoint.ID   `json:"restore_of,omitempty"`
	Changes   []checkpointWas `json:"changes"`
}

type checkpointWas struct {
	Path    string          `json:"path"`
	Role    string          `json:"role,omitempty"`
	Before  checkpointState `json:"before"`
	After   checkpointState `json:"after"`
	Stored  bool            `json:"stored"` // the content of before
	Skipped string          `json:"skipped,omitempty"`
	// AfterSkipped is why the content of after, once stored, is not any more.
	AfterSkipped string `json:"after_skipped,omitempty"`
}

type checkpointState struct {
	Kind   checkpoint.Kind `json:"kind"`
	Mode   string          `json:"mode,omitempty"`
	Size   int64           `json:"size,omitempty"`
	SHA256 string          `json:"sha256,omitempty"`
	Target string          `json:"target,omitempty"`
	MTime  *time.Time      `json:"mtime,omitempty"`
	UID    *uint32         `json:"uid,omitempty"`
	GID    *uint32         `json:"gid,omitempty"`
	Xattrs []string        `json:"xattrs,omitempty"` // their names
}

func stateRow(s checkpoint.State) checkpointState {
	out := checkpointState{Kind: s.Kind, Size: s.Size, SHA256: s.Hash, Target: s.Target}
	if s.Kind == checkpoint.File || s.Kind == checkpoint.Dir {
		out.Mode = fmt.Sprintf("%04o", s.Mode.Perm())
	}
	// a state that was looked at; what was only announced has neither time nor owner
	if !s.ModTime.IsZero() {
		out.MTime, out.UID, out.GID = &s.ModTime, &s.UID, &s.GID
	}
	out.Xattrs = slices.Sorted(maps.Keys(s.Xattrs))
	return out
}

func rowOf(c *checkpoint.Checkpoint) checkpointRow {
	r := checkpointRow{c.ID, c.Time, c.Tool, c.Kind, c.Principal, c.Session, c.Turn, c.Label,
		string(c.Outcome), c.Pinned, c.UndoOf, c.RestoreOf, []checkpointWas{}}
	for _, ch := range c.Changes {
		r.Changes = append(r.Changes,
			checkpointWas{ch.Path, ch.Role, stateRow(ch.Before), stateRow(ch.After), ch.Stored,
				ch.Skipped, ch.AfterSkipped})
	}
	return r
}

func pathsOf(c *checkpoint.Checkpoint) string {
	var paths []string
	for _, ch := range c.Changes {
		if ch.Role != checkpoint.RoleParent || len(paths) == 0 {
			paths = append(paths, ch.Path)
		}
	}
	return pathsText(paths)
}

func notesOf(c *checkpoint.Checkpoint) string {
	var notes []string
	if c.Turn != "" {
		notes = append(notes, "turn "+visible(c.Turn))
	}
	if c.Label != "" {
		notes = append(notes, "label "+visible(c.Label))
	}
	if c.Pinned {
		notes = append(notes, "pinned")
	}
	if c.Outcome == checkpoint.Aborted || c.Outcome == checkpoint.Foreign {
		notes = append(notes, string(c.Outcome))
	}
	if n := purged(c); n > 0 {
		notes = append(notes, plural(n, "content purged", "contents purged"))
	}
	for _, ch := range c.Changes {
		if n := ch.After.Size - ch.Before.Size; ch.Role == checkpoint.RoleAppended && n > 0 {
			notes = append(notes, plural(int(n), "byte appended", "bytes appended"))
		} else if ch.Role == checkpoint.RoleAppended {
			notes = append(notes, plural(int(-n), "appended byte taken back", "appended bytes taken back"))
		}
		if ch.Skipped != "" && ch.Skipped != checkpoint.SkipPurged &&
			ch.Skipped != checkpoint.SkipParked && ch.Skipped != checkpoint.SkipAppended {
			notes = append(notes, "content not stored ("+ch.Skipped+")")
			break
		}
	}
	switch {
	case c.UndoOf != "" && c.RestoreOf != "":
		notes = append(notes, "undoes the run from "+string(c.RestoreOf)+" to "+string(c.UndoOf))
	case c.UndoOf != "":
		notes = append(notes, "undoes "+string(c.UndoOf))
	}
	if c.UndoneBy != "" {
		notes = append(notes, "undone by "+string(c.UndoneBy))
	}
	return strings.Join(notes, ", ")
}

// purged counts the contents that were purged, old and new ones.
func purged(c *checkpoint.Checkpoint) (n int) {
	for _, ch := range c.Changes {
		for _, why := range []string{ch.Skipped, ch.AfterSkipped} {
			if why == checkpoint.SkipPurged {
				n++
			}
		}
	}
	return n
}

// otherName tells, of the change of a path that was moved, the name that it got or had.
func otherName(ch *checkpoint.Recorded) string {
	switch {
	case ch.To != "":
		return "; moved to " + visible(ch.To)
	case ch.From != "":
		return "; moved here from " + visible(ch.From)
	}
	return ""
}

// absence says why a content is not in the store; "" when it is.
func absence(why string) string {
	switch why {
	case "":
		return ""
	case checkpoint.SkipPurged:
		return "; its content was purged"
	case checkpoint.SkipParked:
		return "; not stored, it is in the trash or has another name"
	}
	return "; its content is not stored (" + why + ")"
}

func describe(s checkpoint.State) string {
	switch s.Kind {
	case checkpoint.File:
		what := fmt.Sprintf("a file of %s, mode %04o", plural(int(s.Size), "byte", "bytes"),
			s.Mode.Perm())
		if s.Hash != "" {
			what += fmt.Sprintf(", sha256 %.12s", s.Hash)
		}
		if !s.ModTime.IsZero() {
			what += ", modified " + timeText(s.ModTime)
		}
		return what
	case checkpoint.Symlink:
		return "a link to " + visible(s.Target)
	case checkpoint.Dir:
		if s.Mode == 0 { // nobody looked
			return "a directory"
		}
		return fmt.Sprintf("a directory, mode %04o", s.Mode.Perm())
	}
	return "absent"
}
