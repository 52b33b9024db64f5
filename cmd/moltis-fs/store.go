package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/refusal"
	"moltisfs/tools"
)

// How the commands come to a store: options that name one, opening it, and what is said of
// failures.

// storePlace gives the directory of the store, and the options to open it, which name the store of a fleet instead if there is one. A
// missing one is misuse, unless the command creates it.
func (in *invocation) storePlace() (dir string, o checkpoint.Options, err error) {
	cfg, from, err := in.loadConfig(in.option("config"))
	if err != nil {
		return "", o, unusableConfig(err, from)
	}
	data, err := in.dataDir()
	if err != nil {
		return "", o, err
	}
	f, err := in.join(cfg)
	if err != nil {
		return "", o, err
	}
	if f.HasStore() {
		if err := f.Unreachable(false); err != nil { // it has been tried
			return "", o, storeError(err)
		}
	}
	dir = filepath.Join(data, "checkpoints")
	switch {
	case in.command.creates, f.Ships(): // what other gateways have made may come
		err = in.takeDataDir()
	case f == nil:
		err = in.thereIsAHistory(dir, cfg)
	}
	if err != nil {
		return "", o, err
	}
	if o, err = engine.StoreOptions(cfg.Tools.FS.Checkpoint, f); err != nil {
		return "", o, misuse("", "%v", err)
	}
	if o.Identities, err = in.identities(); err != nil {
		return "", o, err
	}
	o.Logger = in.logger(slog.LevelWarn)
	o.Alive = func(tag string) bool { // looked at only when asked: it may be a place to read only
		alive := engine.Alive(data, f)
		return alive == nil || alive(tag)
	}
	return dir, o, nil
}

// thereIsAHistory is thereIsAStore, and says so where the configuration cfg keeps no history.
func (in *invocation) thereIsAHistory(dir string, cfg config.Config) error {
	err := thereIsAStore(dir)
	if off := in.undoOff(cfg); err != nil && off != "" && !cfg.Tools.FS.ReadOnly {
		return misuse(off+"; --data-dir names another place", "undo is off: there are no checkpoints in %s", visible(dir))
	}
	return err
}

// thereIsAStore gives an error where dir has no store. A store that lost its catalog still has its blobs.
func thereIsAStore(dir string) error {
	for _, name := range []string{"checkpoints.db", "blobs"} {
		_, err := os.Lstat(filepath.Join(dir, name))
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return misuse("name a directory of your own with --data-dir or MOLTIS_DATA_DIR",
				"looking for checkpoints: %v", err)
		}
	}
	return misuse(program+" status says whether undo is on; --data-dir names another place",
		"nothing was changed yet: there are no checkpoints in %s", visible(dir))
}

// withStore runs use on the store and closes it.
func (in *invocation) withStore(ctx context.Context, use func(context.Context, *checkpoint.DB) error) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	dir, o, err := in.storePlace()
	if err != nil {
		return err
	}
	db, err := checkpoint.Open(dir, o)
	if err != nil {
		return storeError(err)
	}
	f, err := in.fleet() // which is joined
	in.shipping = f.Ship(db, o)
	if err == nil && in.given("session") {
		if _, ferr := in.shipping.Fetch(ctx, cmp.Or(in.option("principal"), "local"), in.option("session")); ferr != nil {
			fmt.Fprintf(in.err, "%s: warning: what other gateways have made in this session is not here: %v\n", program, ferr)
		}
	}
	if err == nil && !in.command.creates && in.count("principal", "session") > 0 {
		err = in.seen(ctx, db, in.option("principal"), in.option("session"))
	}
	if err == nil {
		err = in.recorded(func() error { return use(ctx, db) })
	}
	in.shipping.Close() //nolint:errcheck // what was not sent is in the store that it waits in
	return storeError(closing(db, err))
}

// withStoreIfAny is withStore, and does nothing where nothing was changed yet.
func (in *invocation) withStoreIfAny(ctx context.Context, use func(context.Context, *checkpoint.DB) error) error {
	dir, err := in.dataDir()
	if err != nil {
		return err
	}
	f, err := in.fleet()
	if err != nil || !f.HasStore() && thereIsAStore(filepath.Join(dir, "checkpoints")) != nil && (f == nil || !in.given("session")) {
		return err
	}
	return in.withStore(ctx, use)
}

// seen refuses a session that the store does not know, such as a mistyped one. "" stands for any.
func (in *invocation) seen(ctx context.Context, db *checkpoint.DB, principal,
	session string) error {
	seen, err := db.Seen(ctx, principal, session)
	if err != nil || seen {
		return err
	}
	var names []string
	for _, n := range []struct{ what, name string }{{"principal", principal}, {"session", session}} {
		if n.name != "" {
			names = append(names, n.what+" "+visible(n.name))
		}
	}
	if any, err := db.Seen(ctx, "", ""); err != nil || !any {
		return cmp.Or(err, in.nothingYet())
	}
	return &exitError{exitRefused, "there are no checkpoints of " + strings.Join(names, ", "),
		program + " log --all shows what was changed, and in which sessions", tools.KindNotFound}
}

// nothingYet is the refusal of a command about the newest change where the store has none.
func (in *invocation) nothingYet() error {
	return &exitError{exitRefused, "nothing was changed yet", cmp.Or(in.elsewhere(), program+" status says whether undo is on"), tools.KindNotFound}
}

// elsewhere says how to see the changes that other gateways of a fleet have made and that this machine has not fetched; "" where it has all.
func (in *invocation) elsewhere() string {
	if f, err := in.fleet(); err != nil || !f.Ships() || in.given("session") {
		return ""
	}
	return "that is on this machine: --session NAME fetches what was changed elsewhere"
}

// worksReadOnly names the commands that work on a read-only file system. Calls do not: they are recorded.
const worksReadOnly = "log, checkpoint list and show, store stats, check and export and trash list work there; " +
	"for the rest use a copy of the data directory"

// storeErrors is the table of errors of a store, with the words for each. No message: the error's.
var storeErrors = []struct {
	is            func(error) bool
	status        int
	message, hint string
	kind          string
}{
	{isType[*checkpoint.BadIDError], exitMisuse, "", program + " log --all shows the ids", ""},
	{isType[*checkpoint.BadOpError], exitMisuse, "", "", ""},
	{isType[*checkpoint.DiskFullError], exitRefused, "",
		"free space there: with trash empty, or with lower numbers for keep_within, keep_last or " +
			"max_bytes in [tools.fs.checkpoint] and then store gc --config FILE; and try again",
		tools.KindIOError},
	{isErr(checkpoint.ErrNotFound), exitRefused, "there is no such checkpoint",
		program + " log --all shows the ids", tools.KindNotFound},
	{isErr(checkpoint.ErrSealed), exitRefused, "",
		"give the age identity of that key with --identity FILE", tools.KindUnsupported},
	{isErr(checkpoint.ErrIdentity), exitMisuse, "", "name a file as age-keygen writes it", ""},
	{isErr(checkpoint.ErrUnderWay), exitRefused, "", "", tools.KindConflict},
	{isErr(checkpoint.ErrCutOff), exitRefused, "",
		"if deny_paths or another root keeps every call from taking it back, purge with --cut-off: " +
			"its paths may stay half-way then", tools.KindConflict},
	{isType[*checkpoint.FullError], exitRefused, "",
		program + " checkpoint unpin and gc make room, with lower numbers for keep_within or " +
			"keep_last, or a larger max_bytes", tools.KindIOError},
	{isType[*checkpoint.NetworkError], exitMisuse, "", "name another: --data-dir or MOLTIS_DATA_DIR", ""},
	{noPlace, exitMisuse, "", "name a directory of your own with --data-dir or MOLTIS_DATA_DIR", ""},
	{isErr(checkpoint.ErrDamaged), exitBroken, "",
		"stop every " + program + " that uses this data directory and try again: then it is moved aside " +
			"and a new store is begun", ""},
	{isErr(checkpoint.ErrBusy), exitBroken, "",
		"a stopped process may hold this data directory: let it go on (kill -CONT) or end it", ""},
	{isErr(checkpoint.ErrReadOnly), exitRefused, "", worksReadOnly, ""},
	{engine.CutOff, exitBroken, "", refusal.Clause(refusal.Of(engine.FleetGone).Person), ""},
	{isType[*checkpoint.SettingError], exitMisuse, "", "", ""},
	{isErr(checkpoint.ErrInUse), exitMisuse, "",
		"stop the servers that use this data directory and try again", ""},
}

func noPlace(err error) bool {
	e, ok := errors.AsType[*fs.PathError](err)
	return ok && e.Op == "mkdir"
}

func isType[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

func isErr(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// storeError tells misuse from a broken store.
func storeError(err error) error {
	for _, e := range storeErrors {
		if err != nil && e.is(err) {
			return &exitError{e.status, cmp.Or(e.message, err.Error()), e.hint, e.kind}
		}
	}
	return err
}

// operator is the view of all sessions, narrowed by --principal and --session.
func (in *invocation) operator() checkpoint.Scope {
	return checkpoint.Scope{Principal: in.option("principal"), Session: in.option("session"),
		AllSessions: true}
}

// filter gives what the options choose: whose changes, of which time, and, where the command takes them, which turn, tool, label and paths.
func (in *invocation) filter() (f checkpoint.Filter, err error) {
	f = checkpoint.Filter{Principal: in.option("principal"), Session: in.option("session"), AllSessions: true, NoReads: true,
		Turn: in.option("turn"), Tool: in.option("tool"), Label: in.option("label"), PathContains: in.option("contains"), Cursor: in.option("cursor")}
	f.Since, f.Until, err = in.sinceUntil()
	return f, err
}

// recorded runs do, between two records where the command has a name in the audit log. A dry run has none.
func (in *invocation) recorded(do func() error) error {
	name := in.command.records
	if name == "" || in.given("dry-run") {
		return do()
	}
	cfg, from, err := in.loadConfig(in.option("config"))
	if name == "token_revoke" && err != nil { // that must not wait for a configuration
		cfg, err = config.Default(), nil
	}
	if err != nil {
		return unusableConfig(err, from)
	}
	dir, err := in.dataDir()
	if err != nil {
		return err
	}
	var given []string
	for _, key := range slices.Sorted(maps.Keys(in.values)) {
		switch key {
		case "config", "data-dir", "json", "identity":
		case "sha256": // a purge is not to leave it behind whole
			given = append(given, fmt.Sprintf("--%s %.12s…", key, in.values[key]))
		default:
			given = append(given, strings.TrimSuffix("--"+key+" "+in.values[key], " true")) // a switch
		}
	}
	d := engine.OperatorAction{Name: name, Principal: in.option("principal"), Session: in.option("session"),
		What: strings.Join(append(given, in.args...), " "), Client: in.client()}
	if id, err := checkpoint.ParseID(in.arg(0)); err == nil {
		d.Checkpoint = string(id)
	}
	ran := false
	err = d.Recorded(dir, cfg.Tools.FS.Audit, func() error { ran = true; return do() }, refusalOf)
	switch readOnly := errors.Is(err, syscall.EROFS); {
	case ran || err == nil:
		return err
	case readOnly && name == "export": // it changes nothing there
		fmt.Fprintf(in.err, "%s: warning: this is not on record: %v\n", program, err)
		return do()
	case readOnly:
		return &exitError{exitRefused, err.Error(), worksReadOnly, ""}
	}
	return &exitError{exitBroken, err.Error(), "without its record nothing is done", ""}
}

// refusalOf is the outcome of an error for the record; "" is a broken host.
func refusalOf(err error) string {
	switch e := exitOf(storeError(err)); {
	case e.kind != "":
		return e.kind
	case e.status == exitRefused:
		return "refused"
	case e.status == exitMisuse:
		return "bad_request"
	}
	return ""
}

// findTrashed is the entry of the trash with this id, if it is one of --principal and --session.
func (in *invocation) findTrashed(ctx context.Context, db *checkpoint.DB,
	id string) (t checkpoint.Trashed, err error) {
	t, err = db.TrashGet(ctx, checkpoint.TrashID(id), in.option("principal"), !in.given("principal"))
	if e, ok := errors.AsType[*checkpoint.BadIDError](err); ok {
		return t, misuse(program+" trash list shows the ids", "%v", e)
	}
	if errors.Is(err, checkpoint.ErrNotFound) ||
		err == nil && in.given("session") && t.Session != in.option("session") {
		return t, &exitError{exitRefused, "there is no such entry in the trash: " + id,
			program + " trash list shows the ids", tools.KindNotFound}
	}
	return t, err
}

// trashed lists every entry of the trash that matches f.
func trashed(ctx context.Context, db *checkpoint.DB,
	f checkpoint.TrashFilter) ([]checkpoint.Trashed, error) {
	var all []checkpoint.Trashed
	f.Limit = 1000
	for {
		page, err := db.TrashList(ctx, f)
		all = append(all, page.Entries...)
		if f.Cursor = page.Next; err != nil || f.Cursor == "" {
			return all, err
		}
	}
}

func isTrashID(id string) bool { return strings.HasPrefix(strings.ToLower(id), "tr-") }

// find is the checkpoint that the first argument names, within --principal and --session.
func (in *invocation) find(ctx context.Context, db *checkpoint.DB) (*checkpoint.Checkpoint, error) {
	c, err := db.Get(ctx, checkpoint.ID(in.arg(0)), in.operator()) // which looks at no session
	if err == nil && in.given("session") && c.Session != in.option("session") {
		return nil, checkpoint.ErrNotFound
	}
	return c, err
}
