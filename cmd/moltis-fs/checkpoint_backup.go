package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"moltisfs/checkpoint"
)

func checkpointBackupCommand() *command {
	return &command{
		name: "backup", args: "DIR", min: 1, max: 1,
		short: "copy the store, while it is in use, and check the copy",
		long: `DIR is empty or not there yet. It becomes a data directory with the store as it is at this moment:
every command takes it as --data-dir, such as checkpoint restore. Servers go on meanwhile. The copy
is read back, every content, before it counts; the exit status is 1 if something is wrong with it.

Not in it: the audit log, tokens, and what was moved to the trash as a whole, which lies beside the
tree (docs/operations.md).`,
		options:  storeOptions(identityOption()),
		examples: []string{"moltis-fs checkpoint backup /backup/monday"},
		run: func(ctx context.Context, in *invocation) error {
			to, err := filepath.Abs(in.arg(0))
			if err != nil {
				return fmt.Errorf("finding the backup: %w", err)
			}
			if names, err := os.ReadDir(to); err == nil && len(names) > 0 {
				return misuse("name a directory that is empty or not there yet", "%s is not empty", visible(to))
			}
			var report *checkpoint.Report
			err = in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
				if err := db.Backup(ctx, filepath.Join(to, "checkpoints")); err != nil {
					return err
				}
				report, err = in.readBack(ctx, filepath.Join(to, "checkpoints"))
				return err
			})
			if err != nil {
				return err
			}
			return ending(in.writeReport(report), refusedIf(len(report.Problems) > 0))
		},
	}
}

// readBack opens a copy of the store and reads every content.
func (in *invocation) readBack(ctx context.Context, dir string) (r *checkpoint.Report, err error) {
	_, o, err := in.storePlace(false)
	if err != nil {
		return nil, err
	}
	o.Alive = nil
	db, err := checkpoint.Open(dir, o)
	if err != nil {
		return nil, err
	}
	r, err = db.Check(ctx, true)
	return r, errors.Join(err, db.Close())
}
