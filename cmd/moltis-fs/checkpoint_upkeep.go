package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/moltis"
	"moltisfs/config"
	"moltisfs/internal/approval"
)

// storeCommand looks after the store of checkpoints.
func storeCommand() *command {
	return &command{
		name: "store", short: "look after the history: size, cleaning, backup, export",
		below: []*command{
			checkpointStatsCommand(), checkpointGCCommand(), checkpointCheckCommand(), checkpointBackupCommand(),
			checkpointExportCommand(), checkpointImportCommand(), checkpointPurgeCommand(),
		},
	}
}

func checkpointGCCommand() *command {
	return &command{
		records: "gc", name: "gc", short: "remove expired checkpoints now",
		long: `It also runs by itself in processes that save. It keeps to keep_within, keep_last and
max_bytes of the configuration, and without one to their defaults. If several projects share a data
directory, the limits of whoever cleans hold: pin what must stay. The answer says which ones it
kept to.`,
		options:  options("dry-run" + onStore),
		examples: []string{"moltis-fs store gc --dry-run"},
		run: func(ctx context.Context, in *invocation) error {
			return in.withStore(ctx, func(ctx context.Context, db *checkpoint.DB) error {
				r, err := db.GC(ctx, in.given("dry-run"))
				if err != nil {
					return err
				}
				verb, whose := "removed", "by default"
				if in.given("dry-run") {
					verb = "would remove"
				}
				if in.configured() {
					whose = "as configured"
				}
				keep := config.Duration(r.Limits.KeepWithin)
				return in.answer(struct {
					checkpoint.GCResult
					DryRun bool `json:"dry_run"`
					// The limits that it kept to.
					KeepWithin string `json:"keep_within"`
					KeepLast   int    `json:"keep_last"`
					MaxBytes   int64  `json:"max_bytes"`
				}{r, in.given("dry-run"), keep.String(), r.Limits.KeepLast, r.Limits.MaxBytes},
					"%s %s (%d for lack of room) and %s, %s; limits, %s: keep_within %v, "+
						"keep_last %d, max_bytes %s\n",
					verb, plural(r.Checkpoints, "checkpoint", "checkpoints"), r.Evicted,
					plural(r.Contents, "content", "contents"), bytesText(r.Bytes),
					whose, keep, r.Limits.KeepLast, bytesText(r.Limits.MaxBytes))
			})
		},
	}
}

func checkpointCheckCommand() *command {
	return &command{
		name: "check", short: "check the store for damage",
		long: `The exit status is 1 when something is wrong with the store. If the catalog itself is
damaged, the next start that has the store to itself moves it to checkpoints/damaged-… in the data
directory and begins a new one. With that directory as --data-dir, log, checkpoint show, diff and store
export still give what can be read of it.

A change of several paths that a crash interrupted is named, and is no fault of the store.
The next start takes it back. If allow or deny rules close one of its paths to that start
(checkpoint show lists them), it stays until a moltis-fs that may reach all of them has started,
such as undo --dry-run with a --config without that rule. In a fleet, "restore" says what becomes of
one that another machine has left.`,
		options: options("identity"+onStore,
			opt("data", "", "read every content and compare it with its hash"),
		),
		examples: []string{"moltis-fs store check --data"},
		run: func(ctx context.Context, in *invocation) error {
			return in.withStore(ctx, func(ctx context.Context, db *checkpoint.DB) error {
				r, err := db.Check(ctx, in.given("data"))
				if err != nil {
					return err
				}
				return ending(in.writeReport(r), refusedIf(len(r.Problems) > 0))
			})
		},
	}
}

func (in *invocation) writeReport(r *checkpoint.Report) error {
	r.Problems = list(r.Problems)
	var b strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "%s: %s", p.What, approval.Escape(p.Why, false))
		if p.Hash != "" {
			fmt.Fprintf(&b, " (sha256 %.12s)", p.Hash)
		}
		for _, path := range p.Paths {
			b.WriteString(" " + visible(path))
		}
		b.WriteByte('\n')
	}
	for _, id := range r.Unfinished {
		fmt.Fprintf(&b, "%s was interrupted: the next start that may reach all its paths "+
			"takes it back; until then it is kept\n", id)
	}
	for _, dir := range r.Beside {
		fmt.Fprintf(&b, "an earlier store, which was damaged, is in %s\n", visible(dir))
	}
	fmt.Fprintf(&b, "%s, %s, %d of them read (%s)",
		plural(r.Checkpoints, "checkpoint", "checkpoints"), plural(r.Contents, "content",
			"contents"), r.Read, bytesText(r.Bytes))
	if r.Sealed > 0 {
		fmt.Fprintf(&b, ", %d encrypted to a key that is not at hand", r.Sealed)
	}
	if len(r.Problems) == 0 {
		b.WriteString(": sound\n")
	} else {
		fmt.Fprintf(&b, ": %s\n", plural(len(r.Problems), "problem", "problems"))
	}
	return in.answer(struct {
		OK bool `json:"ok"`
		*checkpoint.Report
	}{len(r.Problems) == 0, r}, "%s", b.String())
}

func checkpointStatsCommand() *command {
	return &command{
		name: "stats", short: "show the size and contents of the store",
		options: options(onStore), examples: []string{"moltis-fs store stats"},
		run: func(ctx context.Context, in *invocation) error {
			return in.withStore(ctx, func(ctx context.Context, db *checkpoint.DB) error {
				s, err := db.Stats(ctx)
				if err != nil {
					return err
				}
				var b strings.Builder
				row := func(name, format string, args ...any) {
					fmt.Fprintf(&b, "%-12s "+format+"\n", append([]any{name}, args...)...)
				}
				dir, err := in.dataDir()
				if err != nil {
					return err
				}
				f, err := in.fleet()
				if err != nil {
					return err
				}
				large := "in files of their own"
				if place := filepath.Join(dir, "checkpoints"); f.HasStore() {
					large = "in the bucket"
					database, contents := f.Place()
					row("place", "%s, %s", visible(database), visible(contents))
				} else {
					row("place", "%s", visible(place))
				}
				row("checkpoints", "%d, of %s in %s, %d pinned", s.Checkpoints,
					plural(s.Paths, "path", "paths"), plural(s.Sessions, "session", "sessions"), s.Pinned)
				row("contents", "%d, of them %s, and %d %s", s.Contents,
					plural(s.Deltas, "delta", "deltas"), s.External, large)
				row("bytes", "%s of %s, the log %s; the contents are %s, stored in %s",
					bytesText(s.UsedBytes), bytesText(s.MaxBytes), bytesText(s.LogBytes),
					bytesText(s.ContentBytes), bytesText(s.StoredBytes))
				row("trash", "%d, %s of them beside the store", s.Trashed, bytesText(s.ParkedBytes))
				if s.Checkpoints > 0 {
					row("since", "%s", timeText(s.Oldest))
					row("until", "%s", timeText(s.Newest))
				}
				return in.answer(s, "%s", b.String())
			})
		},
	}
}

func checkpointImportCommand() *command {
	return &command{
		records: "import", creates: true, name: "import", args: "DIR", min: 1, max: 1,
		short: "import the history of another data directory, or of Moltis",
		long: `DIR is a data directory of moltis-fs, as of a machine that moves into a fleet, or a backup. All of its history comes,
with ids, sessions, turns and marks, behind what is here. It can be cut off and sent again. It ends before the first change that is
under way or was interrupted: "waiting" counts what stays behind then, and the exit status is 1. Nothing in DIR is changed. The store
is checked after that.

Or DIR is the folder of Moltis with a manifest.json for each checkpoint, usually ~/.moltis/checkpoints. Nothing in it is changed. Its
checkpoints become those of --principal, in the session "moltis"; what that principal has taken over before is passed over. Links and
turns.jsonl are not read.

What can't be taken over is listed with the reason, and the exit status is then 1. That is also what
holds more than 256 MiB, and what does not fit into the store.

Retention holds for old checkpoints too: raise keep_within and keep_last first to keep more.`,
		options:  options("principal" + onStore),
		examples: []string{"moltis-fs store import ~/.moltis-fs", "moltis-fs store import ~/.moltis/checkpoints"},
		run: func(ctx context.Context, in *invocation) error {
			if info, err := os.Stat(in.arg(0)); err != nil || !info.IsDir() {
				return misuse("name a data directory of moltis-fs, or the checkpoints folder of a Moltis data directory",
					"%s is not a directory", visible(in.arg(0)))
			}
			if dir := filepath.Join(in.arg(0), "checkpoints"); thereIsAStore(dir) == nil {
				return in.importHistory(ctx, dir)
			}
			return in.withStore(ctx, func(ctx context.Context, db *checkpoint.DB) error {
				// Calls without a name are of "local", so that they can restore them.
				r, err := moltis.Import(ctx, db, in.arg(0), cmp.Or(in.option("principal"), "local"))
				answer := struct {
					moltis.Imported
					Error string `json:"error,omitempty"`
				}{Imported: r}
				failed := err // what was done until then is told all the same
				if failed != nil && in.given("json") {
					answer.Error, failed = failed.Error(), &exitError{status: exitOf(storeError(failed)).status}
				}
				var b strings.Builder
				for _, s := range r.Skipped {
					fmt.Fprintf(&b, "skipped %s: %s\n", visible(s.Path), approval.Escape(s.Why, false))
				}
				err = in.answer(answer, "%simported %s, %s here already, %d skipped\n", b.String(),
					plural(r.Imported, "checkpoint", "checkpoints"), plural(r.Known, "was",
						"were"), len(r.Skipped))
				if failed == nil && len(r.Skipped) > 0 {
					failed = refused
				}
				return ending(err, failed)
			})
		},
	}
}

func checkpointBackupCommand() *command {
	return &command{
		records: "backup", name: "backup", args: "DIR", min: 1, max: 1,
		short: "copy the store while it is in use, and check the copy",
		long: `DIR is empty or not there yet. It becomes a data directory with the store as it is at this moment:
every command takes it as --data-dir, such as restore. Servers go on meanwhile. The copy
is read back, every content, before it counts; the exit status is 1 if something is wrong with it.

The store of a fleet is copied change by change into such a directory, as when a machine moves out of it. What is under way, and what
came after that, is not in it: then the exit status is 1, too.

Not in it: the audit log, tokens, and what was moved to the trash as a whole, which lies beside the
tree (docs/operations.md).`,
		options:  options("identity" + onStore),
		examples: []string{"moltis-fs store backup /backup/monday"},
		run: func(ctx context.Context, in *invocation) error {
			to, err := filepath.Abs(in.arg(0))
			if err != nil {
				return fmt.Errorf("finding the backup: %w", err)
			}
			if names, err := os.ReadDir(to); err == nil && len(names) > 0 {
				return misuse("name a directory that is empty or not there yet", "%s is not empty", visible(to))
			}
			fleet, err := in.fleet()
			if err != nil {
				return err
			}
			if fleet.Ships() {
				fmt.Fprintf(in.err, "%s: warning: this is the history of this machine alone; a configuration with durable = \"remote\" copies that of the fleet\n", program)
			}
			var copied checkpoint.Copied
			var report *checkpoint.Report
			err = in.withStore(ctx, func(ctx context.Context, db *checkpoint.DB) error {
				if copied, err = db.Backup(ctx, filepath.Join(to, "checkpoints")); err == nil {
					report, err = in.readBack(ctx, filepath.Join(to, "checkpoints"))
				}
				return err
			})
			if err != nil {
				return err
			}
			if copied.Waiting > 0 {
				fmt.Fprintf(in.err, "%s: %s\n", program, staysBehind(copied.Waiting))
			}
			if copied.Damaged > 0 {
				fmt.Fprintf(in.err, "%s: %s lost in the store, and not in the copy\n", program, plural(copied.Damaged, "content is", "contents are"))
			}
			return ending(in.writeReport(report), refusedIf(len(report.Problems)+copied.Waiting+copied.Damaged > 0))
		},
	}
}

// staysBehind says that a copy of a history ended before so many changes.
func staysBehind(changes int) string {
	return plural(changes, "change stays", "changes stay") + " behind: one is under way or was interrupted, and the others came after it"
}

// localStore gives the options of a store in a directory that is not the one of the configuration. It is of any size.
func (in *invocation) localStore() (checkpoint.Options, error) {
	_, o, err := in.storePlace()
	o.Alive, o.Database, o.Guard, o.Blobs, o.Ships, o.MaxBytes = nil, "", nil, nil, false, math.MaxInt64/2
	return o, err
}

// importHistory copies the store in a directory into the one of the configuration, and checks that.
func (in *invocation) importHistory(ctx context.Context, dir string) error {
	if in.given("principal") {
		return misuse("leave --principal out", "the history of moltis-fs keeps its principals")
	}
	return in.withStore(ctx, func(ctx context.Context, db *checkpoint.DB) error {
		o, err := in.localStore()
		if err != nil {
			return err
		}
		from, err := checkpoint.Open(dir, o)
		if err != nil {
			return err
		}
		copied, err := checkpoint.Copy(ctx, from, db)
		if err = closing(from, err); err != nil {
			return err
		}
		r, err := db.Check(ctx, false)
		if err != nil {
			return err
		}
		if len(r.Problems) > 0 {
			return ending(in.writeReport(r), refused)
		}
		waiting := ""
		if copied.Waiting > 0 {
			waiting = "; " + staysBehind(copied.Waiting)
		}
		return ending(in.answer(copied, "imported %s with %s (%s)%s\n", plural(copied.Operations, "change", "changes"),
			plural(copied.Contents, "content", "contents"), bytesText(copied.Bytes), waiting), refusedIf(copied.Waiting+copied.Damaged > 0))
	})
}

// readBack opens a copy of the store and reads every content.
func (in *invocation) readBack(ctx context.Context, dir string) (r *checkpoint.Report, err error) {
	o, err := in.localStore()
	if err != nil {
		return nil, err
	}
	db, err := checkpoint.Open(dir, o)
	if err != nil {
		return nil, err
	}
	r, err = db.Check(ctx, true)
	return r, errors.Join(err, db.Close())
}
