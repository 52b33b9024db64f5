package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/tools"
)

// The commands that touch the agent's tree make ordinary calls: today's policy, approval, audit and
// locks hold for the operator too. Beyond a session, he sees the checkpoints of all sessions.

// maxPaths bounds the paths on a command line.
const maxPaths = 10_000

// onRestore are the shared options of every restore.
const onRestore = " dry-run yes json identity" + onSuite + " sandbox"

func restoreOptions(more ...option) []option {
	return options(onRestore, append(more,
		opt("on-conflict", "HOW", "what to do with paths that others changed (default: refuse)",
			"refuse", "merge", "force", "skip"),
		opt("keep-times", "", "restore the old modification times too (by default build tools notice the restore)"))...)
}

// Whose history it is where the command line does not say.
const (
	ofAnySession = `

ID may be of any session of any principal. With --session or --principal it has to be of that one. The
restore is a call of its principal, in that session or in "default".`
	ofNewestSession = `Without --session it is the session that changed something here last. Without
--principal it is one of the principal local; with --session alone, where local has none of that
name, the one that changed something last.`
)

func restoreCommand() *command {
	return &command{
		ids: changesOf, name: "restore", args: "ID [PATH...]", min: 1, max: maxPaths, short: "bring files back to what they were before a change",
		long: `All its paths or none, or only the PATHs and what is below them. The restore has a
checkpoint of its own and can be undone. ID may also be an entry of the trash.` + ofAnySession,
		options: restoreOptions(opt("mode", "MODE",
			"inverse takes back this change and keeps later ones (default: state)", "state", "inverse")),
		examples: []string{
			"moltis-fs restore ck-1H0",
			"moltis-fs restore ck-1H0 --mode inverse --dry-run",
			"moltis-fs restore --on-conflict merge ck-1H0 src/main.go",
		},
		run: func(ctx context.Context, in *invocation) error {
			return in.restore(ctx, map[string]any{"id": in.arg(0), "mode": in.option("mode")}, in.args[1:])
		},
	}
}

func checkpointRewindCommand() *command {
	return &command{
		name: "rewind", args: "[PATH...]", max: maxPaths, short: "undo everything that a session " +
			"changed since a point in time",
		long: `Exactly one of --turn, --since and --label says since when. What other sessions
changed is left alone. ` + ofNewestSession + timesTaken,
		options: restoreOptions(pointOptions()...),
		examples: []string{
			"moltis-fs checkpoint rewind --session s1 --turn t7 --dry-run",
			"moltis-fs checkpoint rewind --session s1 --since 30m src",
		},
		run: func(ctx context.Context, in *invocation) error {
			if n := in.count("turn", "since", "label"); n != 1 {
				return misuse(seeHelp(in.command),
					"rewind needs exactly one of --turn, --since and --label, and got %d", n)
			}
			if _, err := in.when("since"); err != nil { // as in list: a mistake on the command line
				return err
			}
			return in.restore(ctx, in.point(), in.args)
		},
	}
}

// pointOptions say since when.
func pointOptions() []option {
	return []option{
		opt("turn", "NAME", "since this turn began"),
		opt("since", "TIME", "since this time, or an age like 2h"),
		opt("label", "TEXT", "since the one checkpoint of the session with this label"),
	}
}

// point gives the options of pointOptions as arguments of a call.
func (in *invocation) point() map[string]any {
	return map[string]any{"turn": in.option("turn"), "since": in.option("since"),
		"label": in.option("label")}
}

// walkCommand is undo or redo.
func walkCommand(name, short string) *command {
	c := &command{
		name: name, short: short, long: ofNewestSession, options: restoreOptions(),
		examples: []string{"moltis-fs " + name, "moltis-fs " + name + " --session s1"},
		run: func(ctx context.Context, in *invocation) error {
			if in.given("all") {
				return in.restore(ctx, map[string]any{"since": "1970-01-01"}, nil)
			}
			return in.restore(ctx, map[string]any{"id": name}, nil)
		},
	}
	if name == "undo" {
		c.options = append([]option{opt("all", "", "undo everything that the session changed")}, c.options...)
		c.examples = append(c.examples, "moltis-fs undo --session s1 --all")
	}
	return c
}

func diffCommand() *command {
	return &command{
		ids: changesOf, name: "diff", args: "[ID] [PATH...]", max: maxPaths, short: "show what a change did, and what came after it",
		long: `It shows what has become of the files until now, whoever changed them. With --after
it shows only what that call changed. Instead of ID, --turn, --since or --label may say since
when, in one session; then all arguments are PATHs. Without any of them it is about the newest change
here, whoever made it. ` + ofNewestSession + timesTaken,
		options: options("json identity"+onSuite+" sandbox", append(pointOptions(),
			opt("after", "", "show only what the call itself changed, not what came later"))...),
		examples: []string{
			"moltis-fs diff ck-1H0",
			"moltis-fs diff ck-1H0 --after",
			"moltis-fs diff --session s1 --turn t7",
		},
		run: func(ctx context.Context, in *invocation) error {
			if _, err := in.when("since"); err != nil { // as in list: a mistake on the command line
				return err
			}
			args, paths := in.point(), in.args
			switch n := in.count("turn", "since", "label"); {
			case n > 1:
				return misuse(seeHelp(in.command),
					"diff takes one of --turn, --since and --label, and got %d", n)
			case n == 0 && len(paths) > 0:
				args["id"], paths = paths[0], paths[1:]
			}
			if in.given("after") {
				args["against"] = "after"
			}
			return in.operate(ctx, "checkpoint_diff", args, paths)
		},
	}
}

func (in *invocation) restore(ctx context.Context, args map[string]any, paths []string) error {
	debug.SetGCPercent(25) // of many files memory is dearer than time
	if in.given("on-conflict") {
		args["on_conflict"] = in.option("on-conflict")
	}
	for option, arg := range map[string]string{"dry-run": "dry_run", "keep-times": "keep_times"} {
		if in.given(option) {
			args[arg] = true
		}
	}
	return in.operate(ctx, "checkpoint_restore", args, paths)
}

// operate makes one call with the operator's rights and writes its answer.
func (in *invocation) operate(ctx context.Context, tool string, args map[string]any,
	paths []string) error {
	for name, v := range args {
		if v == "" {
			delete(args, name)
		}
	}
	var abs []string
	for _, p := range paths {
		if p == "" { // as of a variable that is not set; it would mean the whole current directory
			return misuse("leave it out to mean all paths", "a PATH is empty")
		}
		a, err := filepath.Abs(p)
		if err != nil {
			return fmt.Errorf("finding the path: %w", err)
		}
		abs = append(abs, a)
	}
	if abs != nil {
		args["paths"] = abs
	}
	err := in.withStore(ctx, func(ctx context.Context, db *checkpoint.DB) error {
		id, _ := args["id"].(string)
		ofNewest := tool == "checkpoint_diff" && in.count("turn", "since", "label") == 0
		newest, err := in.whose(ctx, db, id, ofNewest)
		if newest != nil && ofNewest {
			args["id"] = newest.ID
		}
		return err
	})
	if err != nil {
		return err
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return fmt.Errorf("encoding the arguments: %w", err)
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	approver, err := in.approver("run it with --yes", "run it in a terminal")
	if err != nil {
		return err
	}
	e, _, err := in.openEngineAs(approver,
		func(cfg *config.Config, o *tools.Options) {
			o.RootMayBeGone = true // it may be what is to come back
			o.Program.Guest = in.remote != nil
			cfg.Tools.Policy = config.Policy{} // which tools agents have is no rule for the operator
		})
	if errors.Is(err, syscall.EROFS) { // every call is recorded, also one that only looks
		return &exitError{exitRefused, err.Error(), worksReadOnly, tools.KindIOError}
	}
	if err != nil {
		return storeError(err)
	}
	p, err := tools.Over(e).Call(ctx, tools.Call{
		Principal: in.option("principal"), Session: in.option("session"),
		Tool: tool, Args: raw, ByUser: true, Client: in.client(),
	})
	if _, none := errors.AsType[*dialect.UnknownToolError](err); none {
		err = &exitError{exitRefused, "nothing is restored: read_only is true in [tools.fs]",
			"take it out of the configuration, or name another with --config", tools.KindPermissionDenied}
	}
	switch {
	case err == nil && !in.given("json"):
		err = in.showPayload(p, "")
	case err == nil:
		if raw, err = tools.Encode(in.forOperator(p)); err == nil {
			err = ending(in.write(append(raw, '\n')), refusedIf(tools.Refused(p)))
		}
	}
	return closing(e, storeError(err))
}

// client names the command, or the operator who sent it, for the record.
func (in *invocation) client() string {
	if in.remote != nil {
		return "operator " + in.remote.by
	}
	return program + " " + in.command.path
}

// whose sets --principal, and --session where it is needed, to those whose history a call is about: of an id those of its checkpoint or
// entry of the trash, and else those of the newest change here, or anywhere where none is here. It gives that change, nil where there is an
// id. Without --principal it is local, unless a session is named that local does not have, or anybody's changes count.
func (in *invocation) whose(ctx context.Context, db *checkpoint.DB, id string, anybody bool) (*checkpoint.Checkpoint, error) {
	switch {
	case isTrashID(id):
		t, err := in.findTrashed(ctx, db, id)
		if err == nil && t.Principal != "" {
			in.values["principal"] = t.Principal
		}
		return nil, err
	case len(id) == 32: // of Moltis
		return nil, nil
	case id != "" && id != "undo" && id != "redo":
		c, err := in.find(ctx, db)
		if err == nil && c.Principal != "" {
			in.values["principal"] = c.Principal
		}
		return nil, err
	}
	here, err := in.here()
	if err != nil {
		return nil, err
	}
	principal, session := in.option("principal"), in.option("session")
	if !in.given("principal") && !anybody {
		principal = "local"
		known, err := db.Seen(ctx, principal, session)
		if err != nil {
			return nil, err
		}
		if !known && session != "" {
			principal = ""
		}
	}
	for _, dir := range []string{here, ""} {
		page, err := db.List(ctx, checkpoint.Filter{Principal: principal, Session: session,
			AllSessions: true, NoReads: true, PathContains: dir, Limit: 100})
		if err != nil {
			return nil, err
		}
		for i := range page.Checkpoints {
			c := &page.Checkpoints[i]
			if slices.Contains(notByCalls, c.Kind) ||
				dir != "" && !slices.ContainsFunc(c.Changes, func(ch checkpoint.Recorded) bool { return liesIn(dir, ch.Path) }) {
				continue
			}
			if c.Session != "default" && !in.given("session") {
				in.values["session"] = c.Session
				fmt.Fprintf(in.err, "%s: of session %s, which changed something last\n", program, visible(c.Session))
			}
			if c.Principal != "local" && !in.given("principal") {
				in.values["principal"] = c.Principal
				fmt.Fprintf(in.err, "%s: of principal %s\n", program, visible(c.Principal))
			}
			return c, nil
		}
	}
	if !anybody { // of one that was seen the call says what became of its changes
		return nil, in.seen(ctx, db, principal, session)
	}
	return nil, in.nothingYet()
}

// notByCalls are the kinds of checkpoints that no call of a tool made.
var notByCalls = []string{checkpoint.KindExternal, checkpoint.KindRead, checkpoint.KindManual, checkpoint.KindImport}
