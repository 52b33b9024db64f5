package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"moltisfs/approval"
	"moltisfs/checkpoint"
	"moltisfs/checkpoint/moltis"
	"moltisfs/config"
)

func checkpointGCCommand() *command {
	return &command{
		name: "gc", short: "remove now what retention lets go",
		long: `It runs by itself in processes that save, and saves go on meanwhile. By itself, and here without a configuration, the widest keep_within, keep_last
and max_bytes hold that anybody has saved under in the last 30 days, or in the last keep_within if that is longer: several projects may share
a store. With a configuration its limits hold, now and from now on. The answer says which ones it kept to.`,
		options:  storeOptions(option{name: "dry-run", doc: "only count"}),
		examples: []string{"moltis-fs checkpoint gc --dry-run"},
		run: func(ctx context.Context, in *invocation) error {
			return in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
				r, err := db.GC(ctx, checkpoint.GCOptions{DryRun: in.given("dry-run"), Shared: !in.configured()})
				if err != nil {
					return err
				}
				if in.given("json") {
					return writeJSON(in, struct {
						checkpoint.GCResult
						DryRun bool `json:"dry_run"`
						// What was kept to.
						KeepWithin string `json:"keep_within"`
						KeepLast   int    `json:"keep_last"`
						MaxBytes   int64  `json:"max_bytes"`
					}{r, in.given("dry-run"),
						config.Duration(r.Limits.KeepWithin).String(), r.Limits.KeepLast, r.Limits.MaxBytes})
				}
				verb := "removed"
				if in.given("dry-run") {
					verb = "would remove"
				}
				whose := "the widest in use here"
				if in.configured() {
					whose = "as configured"
				}
				return in.write([]byte(fmt.Sprintf("%s %s (%d for lack of room) and %s, %s; limits, %s: keep_within %v, keep_last %d, max_bytes %s\n", verb,
					plural(r.Checkpoints, "checkpoint", "checkpoints"), r.Evicted, plural(r.Contents, "content", "contents"), bytesText(r.Bytes),
					whose, config.Duration(r.Limits.KeepWithin), r.Limits.KeepLast, bytesText(r.Limits.MaxBytes))))
			})
		},
	}
}

func checkpointCheckCommand() *command {
	return &command{
		name: "check", short: "look whether the store is sound",
		long: `The exit status is 1 when something is wrong with it. Nothing is changed without --repair, which makes a sound store of what can
still be read, says what can't, and keeps the old database beside it. Stop every server first: it needs the store to itself.
A change of several paths that a crash cut off half-way is named, and is no fault of the store: the next start takes it back. Where allow or deny rules keep that
start from one of its paths, which checkpoint show lists, it stays until any moltis-fs that may reach them all has started once, such as checkpoint undo --dry-run
with a --config without that rule.`,
		options: storeOptions(
			option{name: "data", doc: "read every content and compare it with its hash"},
			option{name: "repair", doc: "mend the store if it is damaged; reads every content"},
			identityOption(),
		),
		examples: []string{"moltis-fs checkpoint check --data", "moltis-fs checkpoint check --repair"},
		run: func(ctx context.Context, in *invocation) error {
			if in.given("repair") {
				return in.repairStore(ctx)
			}
			return in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
				r, err := db.Check(ctx, in.given("data"))
				if err != nil {
					return err
				}
				var outcome error
				if len(r.Problems) > 0 {
					outcome = refused
				}
				return ending(in.writeReport(r), outcome)
			})
		},
	}
}

func (in *invocation) writeReport(r *checkpoint.Report) error {
	if in.given("json") {
		r.Problems = append([]checkpoint.Problem{}, r.Problems...) // [] in JSON, not null
		return writeJSON(in, struct {
			OK bool `json:"ok"`
			*checkpoint.Report
		}{len(r.Problems) == 0, r})
	}
	var b strings.Builder
	writeProblems(&b, r.Problems)
	for _, id := range r.Unfinished {
		fmt.Fprintf(&b, "%s was cut off half-way: the next start that may reach all its paths takes it back; until then it is kept\n", id)
	}
	fmt.Fprintf(&b, "%s, %s, %d of them read (%s)", plural(r.Checkpoints, "checkpoint", "checkpoints"), plural(r.Contents, "content", "contents"), r.Read, bytesText(r.Bytes))
	if r.Sealed > 0 {
		fmt.Fprintf(&b, ", %d encrypted to a key that is not at hand", r.Sealed)
	}
	if len(r.Problems) == 0 {
		b.WriteString(": sound\n")
	} else {
		fmt.Fprintf(&b, ": %s\n", plural(len(r.Problems), "problem", "problems"))
	}
	return in.write([]byte(b.String()))
}

func checkpointStatsCommand() *command {
	return &command{
		name: "stats", short: "say how large the store is and what it holds", options: storeOptions(), examples: []string{"moltis-fs checkpoint stats"},
		run: func(ctx context.Context, in *invocation) error {
			return in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
				s, err := db.Stats(ctx)
				if err != nil {
					return err
				}
				if in.given("json") {
					return writeJSON(in, s)
				}
				rows := [][2]string{
					{"checkpoints", fmt.Sprintf("%d, of %s in %s, %d pinned", s.Checkpoints, plural(s.Paths, "path", "paths"), plural(s.Sessions, "session", "sessions"), s.Pinned)},
					{"contents", fmt.Sprintf("%d, of them %s, and %d in files of their own", s.Contents, plural(s.Deltas, "delta", "deltas"), s.External)},
					{"bytes", fmt.Sprintf("%s of %s, the log %s; the contents are %s, stored in %s", bytesText(s.UsedBytes), bytesText(s.MaxBytes), bytesText(s.LogBytes), bytesText(s.ContentBytes), bytesText(s.StoredBytes))},
					{"trash", fmt.Sprintf("%d, %s of them beside the store", s.Trashed, bytesText(s.ParkedBytes))},
					{"SQLite", s.SQLite},
				}
				if s.Checkpoints > 0 {
					rows = append(rows, [2]string{"since", timeText(s.Oldest)}, [2]string{"until", timeText(s.Newest)})
				}
				var b strings.Builder
				for _, r := range rows {
					fmt.Fprintf(&b, "%-12s %s\n", r[0], r[1])
				}
				return in.write([]byte(b.String()))
			})
		},
	}
}

func checkpointImportCommand() *command {
	return &command{
		name: "import-moltis", args: "DIR", min: 1, max: 1, short: "take over the checkpoints of a Moltis data directory",
		long: `DIR is the folder with a manifest.json for each checkpoint, usually ~/.moltis/checkpoints. Nothing in it is changed; what
its principal has taken over before is passed over. They are those of --principal, "local" unless told. What can't be taken over, what holds more than 256 MiB, what does not fit into the store and what
of turns.jsonl can't be read is listed with the reason, and the exit status is then 1; links are not followed. What can't be printed in the name of a session or a turn
is spelled \u{1b}. Retention holds for old
checkpoints too: raise keep_within and keep_last first to keep more of them.`,
		options:  storeOptions(option{name: "principal", value: "NAME", doc: "whose they are to be; \"local\" unless told"}),
		examples: []string{"moltis-fs checkpoint import-moltis ~/.moltis/checkpoints"},
		run: func(ctx context.Context, in *invocation) error {
			if info, err := os.Stat(in.arg(0)); err != nil || !info.IsDir() {
				return misuse("name the checkpoints folder of a Moltis data directory", "%s is not a directory", visible(in.arg(0)))
			}
			return in.withStore(ctx, true, func(ctx context.Context, db *checkpoint.DB) error {
				// Whoever calls without a name is "local", so that he is who can restore them.
				r, err := moltis.Import(ctx, db, in.arg(0), cmp.Or(in.option("principal"), "local"), progressOn(in.err))
				failed := err // what was done until then is told all the same
				if in.given("json") {
					answer := struct {
						moltis.Imported
						Error string `json:"error,omitempty"`
					}{Imported: r}
					if failed != nil {
						answer.Error, failed = failed.Error(), &exitError{status: exitOf(storeError(failed)).status}
					}
					err = writeJSON(in, answer)
				} else {
					var b strings.Builder
					for _, s := range r.Skipped {
						fmt.Fprintf(&b, "skipped %s: %s\n", visible(s.Path), approval.Escape(s.Why, false))
					}
					fmt.Fprintf(&b, "imported %s, %s here already, %d skipped\n", plural(r.Imported, "checkpoint", "checkpoints"), plural(r.Known, "was", "were"), len(r.Skipped))
					err = in.write([]byte(b.String()))
				}
				if failed == nil && len(r.Skipped) > 0 {
					failed = refused
				}
				return ending(err, failed)
			})
		},
	}
}

// plural counts: one is the word, or words, for exactly one.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func bytesText(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return plural(int(n), "byte", "bytes")
}
