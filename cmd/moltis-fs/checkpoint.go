package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/tools"
)

func checkpointCommand() *command {
	return &command{
		name: "checkpoint", payload: true,
		short: "look at the history of changes, take them back, look after the store",
		below: []*command{
			{
				name: "list", short: "list checkpoints, newest first", run: listCheckpoints,
				long: "All sessions, unless --session or --principal says otherwise. Times are RFC 3339, or an age like 2h.",
				options: storeOptions(append(whose(),
					option{name: "path", value: "PATH", doc: "of this path"},
					option{name: "contains", value: "TEXT", doc: "of paths that hold this, letters of either case"},
					option{name: "turn", value: "NAME", doc: "of this turn"},
					option{name: "tool", value: "NAME", doc: "of this tool"},
					option{name: "kind", value: "NAME", words: kinds(), doc: "of this kind"},
					option{name: "label", value: "TEXT", doc: "with this label"},
					option{name: "since", value: "TIME", doc: "not before"},
					option{name: "until", value: "TIME", doc: "before"},
					option{name: "limit", value: "N", doc: "so many; 20 unless told, at most 1000"},
					option{name: "cursor", value: "ID", doc: "go on behind this one"},
				)...),
				examples: []string{"moltis-fs checkpoint list", "moltis-fs checkpoint list --path ./main.go --since 24h", "moltis-fs checkpoint list --session s1 --json"},
			},
			{
				name: "show", args: "ID", min: 1, max: 1, short: "show one checkpoint with all its paths", run: showCheckpoint,
				options: storeOptions(whose()...), examples: []string{"moltis-fs checkpoint show ck-1H0"},
			},
			checkpointDiffCommand(), checkpointRestoreCommand(), checkpointRewindCommand(), checkpointUndoCommand(), checkpointRedoCommand(),
			{
				name: "pin", args: "ID", min: 1, max: 1, short: "keep a checkpoint whatever retention says", run: pinCheckpoint,
				options:  storeOptions(append(whose(), option{name: "label", value: "TEXT", doc: "give it a name to find it and rewind to it by"})...),
				examples: []string{"moltis-fs checkpoint pin ck-1H0 --label before-cleanup"},
			},
			{
				name: "unpin", args: "ID", min: 1, max: 1, short: "let retention have it again", run: unpinCheckpoint,
				options: storeOptions(append(whose(), option{name: "no-label", doc: "take its name away too"})...), examples: []string{"moltis-fs checkpoint unpin ck-1H0"},
			},
			checkpointExportCommand(), checkpointImportCommand(), checkpointGCCommand(), checkpointCheckCommand(), checkpointStatsCommand(), checkpointPurgeCommand(),
		},
	}
}

func kinds() []string {
	return []string{
		checkpoint.KindWrite, checkpoint.KindEdit, checkpoint.KindMultiEdit, checkpoint.KindAppend, checkpoint.KindDelete, checkpoint.KindMove, checkpoint.KindCopy,
		checkpoint.KindMkdir, checkpoint.KindRestore, checkpoint.KindExternal, checkpoint.KindRead, checkpoint.KindManual, checkpoint.KindImport,
	}
}

// storeOptions are those of every command that works on the store itself.
func storeOptions(more ...option) []option {
	return append(more,
		option{name: "json", doc: "answer in JSON"},
		configOption(),
		option{name: "data-dir", value: "DIR", doc: "where checkpoints are kept; else $MOLTIS_DATA_DIR, else ~/.moltis"},
	)
}

// whose are the options of a command that can do its work for one session alone. Others don't take them: what is ignored is taken for done.
func whose() []option {
	return []option{
		{name: "principal", value: "NAME", doc: "only of this principal"},
		{name: "session", value: "NAME", doc: "only of this session"},
	}
}

// identityOption is for commands that read contents.
func identityOption() option {
	return option{name: "identity", value: "FILE", doc: "the age identity that encrypted content can be read with"}
}

// openStore opens the store as the configuration says. One that is not there is not made, unless create is set.
func (in *invocation) openStore(create bool) (*checkpoint.DB, error) {
	dir, o, err := in.storeOptions(create)
	if err != nil {
		return nil, err
	}
	db, err := checkpoint.Open(dir, o)
	if err != nil {
		return nil, storeError(err)
	}
	return db, nil
}

// storeOptions are where the store is and what the configuration says of it. One that is not there is misuse, unless create is set.
func (in *invocation) storeOptions(create bool) (dir string, o checkpoint.Options, err error) {
	cfg, from, err := in.loadConfig(in.option("config"))
	if err != nil {
		return "", o, unusableConfig(err, from)
	}
	if dir, err = in.dataDir(); err != nil {
		return "", o, err
	}
	dir = filepath.Join(dir, "checkpoints")
	if !create {
		if err := thereIsAStore(dir); err != nil {
			return "", o, err
		}
	}
	if o, err = engine.StoreOptions(cfg.Tools.FS.Checkpoint); err != nil {
		return "", o, misuse("", "%v", err)
	}
	if o.Identities, err = in.identities(); err != nil {
		return "", o, err
	}
	o.Progress = progressOn(in.err)
	return dir, o, nil
}

// thereIsAStore is misuse where dir has none. One that lost its catalog is there: its blobs are.
func thereIsAStore(dir string) error {
	for _, name := range []string{"checkpoints.db", "blobs"} {
		_, err := os.Lstat(filepath.Join(dir, name))
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return misuse("name a directory of your own with --data-dir or MOLTIS_DATA_DIR", "looking for checkpoints: %v", err)
		}
	}
	return misuse("checkpoints are taken with checkpoint_before_mutation = true; --data-dir names another place", "there are no checkpoints in %s", dir)
}

// identities are the lines of the identity file that are one.
func (in *invocation) identities() ([]string, error) {
	file := in.option("identity")
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, misuse("name a file as age-keygen writes it", "reading the identity: %v", err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	if !slices.ContainsFunc(out, func(line string) bool { return strings.HasPrefix(line, "AGE-") }) {
		return nil, misuse("name a file as age-keygen writes it", "there is no age identity in %s", visible(file))
	}
	return out, nil
}

// withStore runs use on the store and closes it.
func (in *invocation) withStore(ctx context.Context, create bool, use func(context.Context, *checkpoint.DB) error) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	db, err := in.openStore(create)
	if err != nil {
		return storeError(err)
	}
	err = use(ctx, db)
	if cerr := db.Close(); cerr != nil && (err == nil || readerWentAway(err)) {
		err = fmt.Errorf("closing the store: %w", cerr)
	}
	return storeError(err)
}

// worksReadOnly is what can be done with a data directory on a read-only file system: what makes no call, which would be recorded.
const worksReadOnly = "checkpoint list, show, stats, check and export and trash list work there; for the rest use a copy of the data directory"

// storeError tells misuse from a broken store.
func storeError(err error) error {
	if e, ok := errors.AsType[*checkpoint.BadIDError](err); ok {
		return misuse(program+" checkpoint list shows the ids", "%v", e)
	}
	if e, ok := errors.AsType[*checkpoint.BadOpError](err); ok {
		return misuse("", "%v", e)
	}
	if _, full := errors.AsType[*checkpoint.DiskFullError](err); full {
		return &exitError{exitRefused, err.Error(), program + " checkpoint gc and " + program + " trash empty free what they can; free some space there, then run it again", tools.KindIOError}
	}
	if errors.Is(err, checkpoint.ErrNotFound) {
		return &exitError{exitRefused, "there is no such checkpoint", program + " checkpoint list shows the ids", tools.KindNotFound}
	}
	if errors.Is(err, checkpoint.ErrSealed) {
		return &exitError{exitRefused, err.Error(), "give the age identity of that key with --identity FILE", tools.KindUnsupported}
	}
	if errors.Is(err, checkpoint.ErrIdentity) {
		return misuse("name a file as age-keygen writes it", "%v", err)
	}
	if errors.Is(err, checkpoint.ErrUnderWay) {
		return &exitError{exitRefused, err.Error(), "", tools.KindConflict}
	}
	if e, ok := errors.AsType[*checkpoint.FullError](err); ok {
		return &exitError{exitRefused, e.Error(), program + " checkpoint unpin and gc make room, or a larger max_bytes", tools.KindIOError}
	}
	if e, ok := errors.AsType[*checkpoint.NetworkError](err); ok {
		return misuse("name another with --data-dir or MOLTIS_DATA_DIR", "%v", e)
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Op == "mkdir" {
		return misuse("name a directory of your own with --data-dir or MOLTIS_DATA_DIR", "%v", err)
	}
	if errors.Is(err, checkpoint.ErrDamaged) {
		return &exitError{exitBroken, err.Error(), program + " checkpoint check --repair saves what can still be read, and keeps the damaged file", ""}
	}
	if errors.Is(err, checkpoint.ErrBusy) {
		return &exitError{exitBroken, err.Error(), "look which process works on this data directory; while one that writes is stopped, nobody else can", ""}
	}
	if errors.Is(err, checkpoint.ErrReadOnly) {
		return &exitError{exitRefused, err.Error(), worksReadOnly, ""}
	}
	if errors.Is(err, checkpoint.ErrInUse) {
		return misuse("stop the servers that use this data directory, or wait until the repair has ended, and try again", "%v", err)
	}
	return err
}

// operator is the view of all sessions, narrowed by --principal and --session.
func (in *invocation) operator() checkpoint.Scope {
	return checkpoint.Scope{Principal: in.option("principal"), Session: in.option("session"), AllSessions: true}
}

// find is the checkpoint that the command line names first, if it is one of --principal and --session.
func (in *invocation) find(ctx context.Context, db *checkpoint.DB) (*checkpoint.Checkpoint, error) {
	c, err := db.Get(ctx, checkpoint.ID(in.arg(0)), in.operator())
	if err == nil && in.given("session") && c.Session != in.option("session") { // the scope of all sessions does not look at one
		return nil, checkpoint.ErrNotFound
	}
	return c, err
}

// row is a checkpoint as the commands write it in JSON.
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
	if !s.ModTime.IsZero() { // a state that was looked at; what was only announced has neither time nor owner
		out.MTime, out.UID, out.GID = &s.ModTime, &s.UID, &s.GID
	}
	out.Xattrs = slices.Sorted(maps.Keys(s.Xattrs))
	return out
}

func rowOf(c *checkpoint.Checkpoint) checkpointRow {
	r := checkpointRow{c.ID, c.Time, c.Tool, c.Kind, c.Principal, c.Session, c.Turn, c.Label, string(c.Outcome), c.Pinned, c.UndoOf, c.RestoreOf, []checkpointWas{}}
	for _, ch := range c.Changes {
		r.Changes = append(r.Changes, checkpointWas{ch.Path, ch.Role, stateRow(ch.Before), stateRow(ch.After), ch.Stored, ch.Skipped, ch.AfterSkipped})
	}
	return r
}

func listCheckpoints(ctx context.Context, in *invocation) error {
	who := in.operator()
	f := checkpoint.Filter{
		PathContains: in.option("contains"), Turn: in.option("turn"), Tool: in.option("tool"), Kind: in.option("kind"), Label: in.option("label"),
		Cursor: in.option("cursor"), Principal: who.Principal, Session: who.Session, AllSessions: true,
	}
	var err error
	if p := in.option("path"); p != "" {
		if f.Path, err = filepath.Abs(p); err != nil {
			return fmt.Errorf("finding the path: %w", err)
		}
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
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%-*s  %s\n", c.ID, c.Time.Local().Format(time.DateTime), visible(first(c.Tool, c.Kind)), visible(c.Session), wide, pathsOf(c), notesOf(c))
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

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

func pathsOf(c *checkpoint.Checkpoint) string {
	n, path := 0, ""
	for _, ch := range c.Changes {
		if ch.Role != checkpoint.RoleParent || path == "" {
			if path == "" {
				path = ch.Path
			} else {
				n++
			}
		}
	}
	if n > 0 {
		return fmt.Sprintf("%s and %d more", visible(path), n)
	}
	return visible(path)
}

// visible writes a name, which an agent may have chosen, so that it stays in its line and no terminal obeys it.
func visible(name string) string { return edit.ShownPath(name) }

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
		if ch.Skipped != "" && ch.Skipped != checkpoint.SkipPurged && ch.Skipped != checkpoint.SkipParked {
			notes = append(notes, "content not stored ("+ch.Skipped+")")
			break
		}
	}
	if c.UndoOf != "" {
		notes = append(notes, "undoes "+string(c.UndoOf))
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

func showCheckpoint(ctx context.Context, in *invocation) error {
	return in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
		c, err := in.find(ctx, db)
		if err != nil {
			return err
		}
		if in.given("json") {
			return writeJSON(in, rowOf(c))
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s  %s  %s  principal %s, session %s\n", c.ID, c.Time.Local().Format(time.RFC3339), visible(first(c.Tool, c.Kind)), visible(c.Principal), visible(c.Session))
		if n := notesOf(c); n != "" {
			b.WriteString(n + "\n")
		}
		for _, ch := range c.Changes {
			fmt.Fprintf(&b, "  %s\n    was %s%s\n    became %s%s\n", visible(ch.Path), describe(ch.Before), absence(ch.Skipped), describe(ch.After), absence(ch.AfterSkipped))
		}
		return in.write([]byte(b.String()))
	})
}

// absence says why a content is not in the store; "" when it is.
func absence(why string) string {
	switch why {
	case "":
		return ""
	case checkpoint.SkipPurged:
		return "; its content was purged"
	}
	return "; its content is not stored (" + why + ")"
}

func describe(s checkpoint.State) string {
	switch s.Kind {
	case checkpoint.File:
		what := fmt.Sprintf("a file of %s, mode %04o", plural(int(s.Size), "byte", "bytes"), s.Mode.Perm())
		if s.Hash != "" {
			what += fmt.Sprintf(", sha256 %.12s", s.Hash)
		}
		if !s.ModTime.IsZero() {
			what += ", modified " + s.ModTime.Local().Format(time.DateTime)
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

func pinCheckpoint(ctx context.Context, in *invocation) error {
	return in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
		c, err := in.find(ctx, db)
		if err != nil {
			return err
		}
		id := c.ID
		err = db.Pin(ctx, id, in.operator())
		if err == nil && in.given("label") {
			err = db.Label(ctx, id, in.operator(), in.option("label"))
		}
		if err == nil && in.option("label") != "" {
			err = in.sameLabel(ctx, db, id)
		}
		if err != nil {
			return err
		}
		return in.answerRow(ctx, db, id, "pinned")
	})
}

// sameLabel says on standard error which others of its session carry the label of id, because nobody can rewind to it then.
func (in *invocation) sameLabel(ctx context.Context, db *checkpoint.DB, id checkpoint.ID) error {
	c, err := db.Get(ctx, id, in.operator())
	if err != nil {
		return err
	}
	page, err := db.List(ctx, checkpoint.Filter{Label: c.Label, Principal: c.Principal, Session: c.Session, Limit: 20})
	for _, o := range page.Checkpoints {
		if o.ID != c.ID {
			fmt.Fprintf(in.err, "%s: %s has that label too; rewind --label is refused until one of them has another, or none (unpin --no-label)\n", program, o.ID)
		}
	}
	return err
}

func unpinCheckpoint(ctx context.Context, in *invocation) error {
	return in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
		c, err := in.find(ctx, db)
		if err != nil {
			return err
		}
		id := c.ID
		err = db.Unpin(ctx, id, in.operator())
		if err == nil && in.given("no-label") {
			err = db.Label(ctx, id, in.operator(), "")
		}
		if err != nil {
			return err
		}
		return in.answerRow(ctx, db, id, "unpinned")
	})
}

func (in *invocation) answerRow(ctx context.Context, db *checkpoint.DB, id checkpoint.ID, did string) error {
	c, err := db.Get(ctx, id, in.operator())
	if err != nil {
		return err
	}
	if in.given("json") {
		return writeJSON(in, rowOf(c))
	}
	return in.write([]byte(fmt.Sprintf("%s %s\n", c.ID, did)))
}

// when reads an option that is a time or an age.
func (in *invocation) when(name string) (time.Time, error) {
	s := in.option(name)
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		if t.IsZero() { // which elsewhere means that none is given
			t = t.Add(1)
		}
		return t, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return time.Now().Add(-d), nil
	}
	return time.Time{}, misuse("write a time like 2026-11-21T10:00:00Z, or an age like 2h", "--%s can't be %q", name, s)
}

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
