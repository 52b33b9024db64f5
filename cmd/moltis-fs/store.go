package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/tools"
)

// How the commands come to a store: options that name one, opening it, and what is said of
// failures.

// openStore opens the store as the configuration says. One that is not there is not made, unless
// create is set, for which there has to be a data directory.
func (in *invocation) openStore(create bool) (*checkpoint.DB, error) {
	dir, o, err := in.storePlace(create)
	if err != nil {
		return nil, err
	}
	db, err := checkpoint.Open(dir, o)
	if err != nil {
		return nil, storeError(err)
	}
	return db, nil
}

// storePlace is where the store is and how to open it. A missing one is misuse, unless create is
// set.
func (in *invocation) storePlace(create bool) (dir string, o checkpoint.Options, err error) {
	cfg, from, err := in.loadConfig(in.option("config"))
	if err != nil {
		return "", o, unusableConfig(err, from)
	}
	data, err := in.dataDir()
	if err != nil {
		return "", o, err
	}
	dir = filepath.Join(data, "checkpoints")
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
	o.Alive = func(tag string) bool { // looked at only when asked: it may be a place to read only
		alive := engine.Alive(data)
		return alive == nil || alive(tag)
	}
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
			return misuse("name a directory of your own with --data-dir or MOLTIS_DATA_DIR",
				"looking for checkpoints: %v", err)
		}
	}
	return misuse("checkpoints are taken with checkpoint_before_mutation = true; --data-dir "+
		"names another place", "there are no checkpoints in %s", dir)
}

// identities are the lines of the identity file that are one.
func (in *invocation) identities() ([]string, error) {
	file := in.option("identity")
	if file == "" {
		return nil, nil
	}
	data, err := readAtMost(file, maxKeyFile)
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
		return nil, misuse("name a file as age-keygen writes it", "there is no age identity in %s",
			visible(file))
	}
	return out, nil
}

// withStore runs use on the store and closes it.
func (in *invocation) withStore(ctx context.Context, create bool,
	use func(context.Context, *checkpoint.DB) error) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	if create { // what makes a data directory, or refuses one, is the start of a suite
		e, _, err := in.openEngine(nil, "")
		if err == nil {
			err = e.Close()
		}
		if err != nil {
			return storeError(err)
		}
	}
	db, err := in.openStore(create)
	if err != nil {
		return storeError(err)
	}
	if !create && in.count("principal", "session") > 0 {
		err = in.seen(ctx, db, in.option("principal"), in.option("session"))
	}
	if err == nil {
		err = in.recorded(func() error { return use(ctx, db) })
	}
	return storeError(closing(db, err))
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
	return &exitError{exitRefused, "the store has never seen " + strings.Join(names, ", "),
		program + " checkpoint list --json shows those that it knows", tools.KindNotFound}
}

// worksReadOnly is what works on a read-only file system: a call would have to be recorded.
const worksReadOnly = "checkpoint list, show, stats, check and export and trash list work there; " +
	"for the rest use a copy of the data directory"

// storeErrors are what goes wrong with a store, and what is said of it. No message: the error's.
var storeErrors = []struct {
	is            func(error) bool
	status        int
	message, hint string
	kind          string
}{
	{as[*checkpoint.BadIDError], exitMisuse, "", program + " checkpoint list shows the ids", ""},
	{as[*checkpoint.BadOpError], exitMisuse, "", "", ""},
	{as[*checkpoint.DiskFullError], exitRefused, "",
		"free space there: with trash empty, or with lower numbers for keep_within, keep_last or " +
			"max_bytes in [tools.fs.checkpoint] and then checkpoint gc --config FILE; and try again",
		tools.KindIOError},
	{is(checkpoint.ErrNotFound), exitRefused, "there is no such checkpoint",
		program + " checkpoint list shows the ids", tools.KindNotFound},
	{is(checkpoint.ErrSealed), exitRefused, "",
		"give the age identity of that key with --identity FILE", tools.KindUnsupported},
	{is(checkpoint.ErrIdentity), exitMisuse, "", "name a file as age-keygen writes it", ""},
	{is(checkpoint.ErrUnderWay), exitRefused, "", "", tools.KindConflict},
	{is(checkpoint.ErrCutOff), exitRefused, "",
		"if deny_paths or another root keeps every call from taking it back, purge with --cut-off: " +
			"its paths may stay half-way then", tools.KindConflict},
	{as[*checkpoint.FullError], exitRefused, "",
		program + " checkpoint unpin and gc make room, with lower numbers for keep_within or " +
			"keep_last, or a larger max_bytes", tools.KindIOError},
	{as[*checkpoint.NetworkError], exitMisuse, "", "name another: --data-dir or MOLTIS_DATA_DIR", ""},
	{noPlace, exitMisuse, "", "name a directory of your own with --data-dir or MOLTIS_DATA_DIR", ""},
	{is(checkpoint.ErrDamaged), exitBroken, "",
		program + " checkpoint check --repair saves what it can, and keeps the damaged file", ""},
	{is(checkpoint.ErrBusy), exitBroken, "",
		"a stopped process may hold this data directory: let it go on (kill -CONT) or end it", ""},
	{is(checkpoint.ErrReadOnly), exitRefused, "", worksReadOnly, ""},
	{is(checkpoint.ErrInUse), exitMisuse, "",
		"stop the servers that use this data directory, or wait for the repair, and try again", ""},
}

func noPlace(err error) bool {
	e, ok := errors.AsType[*fs.PathError](err)
	return ok && e.Op == "mkdir"
}

func as[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

func is(target error) func(error) bool {
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

// deeds are the commands that are on record in the audit log, by the name that they have there:
// those that change our own files, or take contents out of the store.
var deeds = map[string]string{
	"checkpoint pin": "pin", "checkpoint unpin": "unpin", "checkpoint gc": "gc",
	"checkpoint purge": "purge", "checkpoint export": "export", "checkpoint backup": "backup",
	"checkpoint import-moltis": "import", "checkpoint check": "repair", "trash empty": "empty_trash",
	"token create": "token_create", "token revoke": "token_revoke",
}

// recorded runs do, between two records where the command is one of deeds. A dry run is none.
func (in *invocation) recorded(do func() error) error {
	name := deeds[in.command.path]
	if name == "" || in.given("dry-run") || name == "repair" && !in.given("repair") {
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
	d := engine.Deed{Name: name, Principal: in.option("principal"), Session: in.option("session"),
		What: strings.Join(append(given, in.args...), " ")}
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
