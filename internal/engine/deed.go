package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/audit"
)

// A change of our own files is on record like a call, under this name in the place of a
// dialect.
const operator = "operator"

// A Deed is an act of an operator on our own files, as a purge or a pin. It is no call, and no agent's.
type Deed struct {
	Name               string // as it stands on record
	Principal, Session string // whose files are meant, where that is said
	What               string // which: options, as they were given
	Checkpoint         string
}

// Recorded carries a deed out between two records, in the log under the data directory. Without the
// first it is not begun. refused names an error that is a "no", for the record; "" is a broken host.
func (d Deed) Recorded(dataDir string, cfg config.Audit, do func() error,
	refused func(error) string) (err error) {
	log, err := auditLog(dataDir, cfg)
	if err != nil {
		return &hostError{"opening the audit log", err}
	}
	defer log.Close() //nolint:errcheck // nothing is buffered
	return d.on(log, do, refused)
}

func auditLog(dataDir string, cfg config.Audit) (*audit.Log, error) {
	const keep = 4
	return audit.Options{MaxBytes: cmp.Or(cfg.MaxBytes/(keep+1), -1), Keep: keep}.Open(filepath.Join(dataDir, "audit"))
}

func (d Deed) on(log *audit.Log, do func() error, refused func(error) string) error {
	start := time.Now()
	r := audit.Record{Time: start, Phase: "intent", Call: rand.Text()[:16], By: "person",
		Dialect: operator, Tool: d.Name, Principal: d.Principal, Session: d.Session,
		Pattern: d.What, Checkpoint: d.Checkpoint, Decision: "allowed"}
	if err := log.AppendChange(r); err != nil {
		return &hostError{"writing the audit record", err}
	}
	err := do()
	r.Time, r.Phase, r.Outcome = time.Now(), "outcome", outcomeOK
	if r.Duration = r.Time.Sub(start); err != nil {
		r.Outcome, r.Error = cmp.Or(refused(err), outcomeHost), err.Error()
	}
	if rerr := log.AppendChange(r); rerr != nil && err == nil { // it has happened, and its intent is on record
		err = fmt.Errorf("%s is done, but its outcome could not be written to the audit log: %w",
			d.Name, rerr)
	}
	return err
}

// Upkeep gives do the checkpoint store, for what a host does to it: pins, labels, retention. name is
// how it is on record; where that can't be written, do is not run.
func (e *Engine) Upkeep(ctx context.Context, name string,
	do func(context.Context, *checkpoint.DB) error) error {
	if err := e.calls.enter(); err != nil {
		return err
	}
	defer e.calls.leave()
	db, err := e.checkpoints.open()
	if err != nil {
		return err
	}
	return Deed{Name: name}.on(e.log, func() error { return do(ctx, db) }, func(err error) string {
		if r := Reason(err); r != nil {
			return string(r.Code)
		}
		return ""
	})
}

// start is what is on record of the program that has the engine: its name and version, and the
// configuration that holds.
type start struct{ program, policy string }

// event puts on record that calls are taken from now on ("start", or "reload" where the engine takes
// over from another), or not any more ("stop"). A program without a name has no such records.
func (e *Engine) event(name string) error {
	if e.start.program == "" {
		return nil
	}
	err := e.log.AppendChange(audit.Record{Time: e.now(), Phase: "outcome", Dialect: operator, Tool: name,
		Where: e.place.Where, Outcome: outcomeOK, Version: e.start.program, Policy: e.start.policy})
	if err != nil {
		return &hostError{"writing the audit record", err}
	}
	return nil
}

// Policy is the SHA-256 of the configuration that holds, in hex, as it is on record.
func (e *Engine) Policy() string { return e.start.policy }

// HandOver says that another engine of this program goes on: Close then records no stop. It must
// not run beside Close.
func (e *Engine) HandOver() { e.start = start{} }
