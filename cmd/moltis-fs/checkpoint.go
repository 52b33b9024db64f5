package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/nearest"
	"moltisfs/tools"
)

func checkpointCommand() *command {
	return &command{
		name: "checkpoint", payload: true,
		short: "look at the history of changes, take them back, look after the store",
		below: []*command{
			{
				name: "list", short: "list checkpoints, newest first", run: listCheckpoints,
				long: "All sessions, unless --session or --principal says otherwise." + timesTaken,
				options: storeOptions(append(whose(),
					opt("path", "PATH", "of this path"),
					opt("contains", "TEXT", "of paths that hold this, letters of either case"),
					opt("turn", "NAME", "of this turn"),
					opt("tool", "NAME", "of this tool or kind"),
					opt("kind", "NAME", "of this kind", kinds()...),
					opt("label", "TEXT", "with this label"),
					opt("since", "TIME", "not before"), opt("until", "TIME", "before"),
					opt("limit", "N", "so many, up to 1000; else 20"), opt("cursor", "ID", "go on after it"),
				)...),
				examples: []string{
					"moltis-fs checkpoint list",
					"moltis-fs checkpoint list --path ./main.go --since 24h",
					"moltis-fs checkpoint list --session s1 --json",
				},
			},
			{
				name: "show", args: "ID", min: 1, max: 1, run: showCheckpoint,
				short:    "show one checkpoint with all its paths",
				options:  storeOptions(whose()...),
				examples: []string{"moltis-fs checkpoint show ck-1H0"},
			},
			checkpointDiffCommand(), checkpointRestoreCommand(), checkpointRewindCommand(),
			checkpointWalkCommand("undo", "take back a session's newest change that is not undone"),
			checkpointWalkCommand("redo", "take back a session's newest undo"),
			{
				name: "pin", args: "ID", min: 1, max: 1, run: pinCheckpoint,
				short: "keep a checkpoint whatever retention says",
				options: storeOptions(append(whose(),
					opt("label", "TEXT", "give it a name to find it and rewind to it by"))...),
				examples: []string{"moltis-fs checkpoint pin ck-1H0 --label before-cleanup"},
			},
			{
				name: "unpin", args: "ID", min: 1, max: 1, run: pinCheckpoint,
				short:    "let retention have it again",
				options:  storeOptions(append(whose(), opt("no-label", "", "take its name away too"))...),
				examples: []string{"moltis-fs checkpoint unpin ck-1H0"},
			},
			checkpointExportCommand(), checkpointImportCommand(), checkpointBackupCommand(),
			checkpointGCCommand(),
			checkpointCheckCommand(), checkpointStatsCommand(), checkpointPurgeCommand(),
		},
	}
}

// timesTaken is what options that are a TIME take.
const timesTaken = `

A TIME is one as listed, with its zone. Without a zone, or a day alone, it is local. It may
also be an age like 2h, 7d or 2w.`

func kinds() []string {
	return []string{
		checkpoint.KindWrite, checkpoint.KindEdit, checkpoint.KindMultiEdit, checkpoint.KindAppend,
		checkpoint.KindDelete, checkpoint.KindMove, checkpoint.KindCopy, checkpoint.KindMkdir,
		checkpoint.KindRestore, checkpoint.KindExternal, checkpoint.KindRead, checkpoint.KindManual,
		checkpoint.KindImport,
	}
}

// find is the checkpoint that the first argument names, within --principal and --session.
func (in *invocation) find(ctx context.Context, db *checkpoint.DB) (*checkpoint.Checkpoint, error) {
	c, err := db.Get(ctx, checkpoint.ID(in.arg(0)), in.operator()) // which looks at no session
	if err == nil && in.given("session") && c.Session != in.option("session") {
		return nil, checkpoint.ErrNotFound
	}
	return c, err
}

func listCheckpoints(ctx context.Context, in *invocation) error {
	who := in.operator()
	f := checkpoint.Filter{
		PathContains: in.option("contains"), Turn: in.option("turn"), Tool: in.option("tool"),
		Kind: in.option("kind"), Label: in.option("label"), Cursor: in.option("cursor"),
		Principal: who.Principal, Session: who.Session, AllSessions: true,
	}
	var err error
	if p := in.option("path"); p != "" {
		abs, err := filepath.Abs(p)
		if err != nil {
			return fmt.Errorf("finding the path: %w", err)
		}
		names := engine.Names(abs)
		f.Path, f.Also = names[0], names[1:]
	}
	if f.Since, err = in.when("since"); err != nil {
		return err
	}
	if f.Until, err = in.when("until"); err != nil {
		return err
	}
	if f.Limit, err = in.number("limit", 20, 1000); err != nil {
		return err
	}
	return in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
		page, err := db.List(ctx, f)
		if err != nil {
			return err
		}
		if in.given("json") {
			rows := []checkpointRow{}
			for i := range page.Checkpoints {
				rows = append(rows, rowOf(&page.Checkpoints[i]))
			}
			return writeJSON(in, struct {
				Checkpoints []checkpointRow `json:"checkpoints"`
				Next        string          `json:"next_cursor,omitempty"`
			}{rows, page.Next})
		}
		if len(page.Checkpoints) == 0 {
			in.empty("there are no checkpoints", "principal", "session", "path", "contains", "turn",
				"tool", "kind", "label", "since", "until", "cursor")
		}
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		wide := 0 // of the paths, but for those that would push all notes out of sight
		for i := range page.Checkpoints {
			if n := utf8.RuneCountInString(pathsOf(&page.Checkpoints[i])); n <= 80 {
				wide = max(wide, n)
			}
		}
		for i := range page.Checkpoints {
			c := &page.Checkpoints[i]
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%-*s  %s\n", c.ID, timeText(c.Time), toolOf(c),
				visible(c.Session), wide, pathsOf(c), notesOf(c))
		}
		w.Flush()
		for line := range strings.Lines(b.String()) {
			if err := in.write([]byte(strings.TrimRight(line, " \n") + "\n")); err != nil {
				return err
			}
		}
		if page.Next != "" {
			return in.write([]byte("more: --cursor " + page.Next + "\n"))
		}
		return nil
	})
}

func showCheckpoint(ctx context.Context, in *invocation) error {
	return in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
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
			fmt.Fprintf(&b, "  %s\n    was %s%s\n    became %s%s\n", visible(ch.Path),
				describe(ch.Before), absence(ch.Skipped), describe(ch.After), absence(ch.AfterSkipped))
		}
		return in.answer(rowOf(c), "%s", b.String())
	})
}

// pinCheckpoint is pin and unpin.
func pinCheckpoint(ctx context.Context, in *invocation) error {
	return in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
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
		if err == nil && in.given("label") {
			err = in.sameLabel(ctx, db, c)
		}
		if err != nil {
			return err
		}
		return in.answer(rowOf(c), "%s %sned\n", c.ID, in.command.name)
	})
}

// sameLabel warns of others of its session with the label of c: nobody can rewind to it then.
func (in *invocation) sameLabel(ctx context.Context, db *checkpoint.DB,
	c *checkpoint.Checkpoint) error {
	page, err := db.List(ctx, checkpoint.Filter{
		Label: c.Label, Principal: c.Principal, Session: c.Session, Limit: 20,
	})
	for _, o := range page.Checkpoints {
		if o.ID != c.ID {
			fmt.Fprintf(in.err, "%s: %s has that label too; rewind --label is refused until one of them "+
				"has another, or none (unpin --no-label)\n", program, o.ID)
		}
	}
	return err
}

// empty says on standard error that a list is, and what narrows it.
func (in *invocation) empty(what string, narrowing ...string) {
	var by []string
	for _, name := range narrowing {
		if in.given(name) {
			by = append(by, "--"+name+" "+visible(in.option(name)))
		}
	}
	if len(by) > 0 {
		what += " with " + strings.Join(by, ", ")
	}
	fmt.Fprintf(in.err, "%s: %s\n", program, what)
	if tool := in.option("tool"); tool != "" {
		var names []string
		for _, d := range tools.Definitions() {
			names = append(names, d.Name)
		}
		if near := nearest.Of(tool, names); near != "" && near != tool {
			fmt.Fprintf(in.err, "hint: did you mean --tool %s?\n", near)
		}
	}
}

// when reads an option that is a time or an age.
func (in *invocation) when(name string) (time.Time, error) {
	s := in.option(name)
	if s == "" {
		return time.Time{}, nil
	}
	t, err := tools.ParseTime(s, time.Now())
	if err != nil {
		return t, misuse("write a time as it is listed, like 2026-11-21T10:00:00+01:00, in local time "+
			"2026-11-21 10:00 or 2026-11-21, or an age like 2h, 7d or 2w",
			"--%s is %.200q, %v", name, s, err)
	}
	return t, nil
}

// timeText is a time for people, in their zone and with it: as --since and --until take it.
func timeText(t time.Time) string { return t.Local().Format(time.RFC3339) }

// number reads an option that is a number from 1 to most.
func (in *invocation) number(name string, fallback, most int) (int, error) {
	s := in.option(name)
	if s == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, misuse(fmt.Sprintf("write a number from 1 to %d", most), "--%s can't be %q", name, s)
	}
	return n, nil
}
