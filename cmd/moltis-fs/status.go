package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/approval/queue"
	runs "moltisfs/internal/run"
)

func statusCommand() *command {
	return &command{
		name: "status", run: showStatus,
		short: "show what is open, who approves, and whether undo is on",
		long: `It says the same as the start of a server, and besides what waits for an answer, and how large the
history, the trash and the audit log are. It changes nothing.`,
		options:  options("json config policies-json data-dir root sandbox read-only"),
		examples: []string{"moltis-fs status", "moltis-fs status --root ~/project --json"},
	}
}

// A status is what holds now, and what there is.
type status struct {
	Open      string            `json:"open"`
	Root      string            `json:"root,omitempty"`
	Config    string            `json:"config,omitempty"`
	ReadOnly  bool              `json:"read_only"`
	Asks      bool              `json:"require_approval"`
	Undo      bool              `json:"undo"`
	UndoWhy   string            `json:"undo_why,omitempty"` // why it is off
	Waiting   int               `json:"waiting"`
	Data      string            `json:"data_dir"`
	Store     *checkpoint.Stats `json:"store,omitempty"` // left out: nothing was changed yet
	AuditSize int64             `json:"audit_bytes"`
	AuditMax  int64             `json:"audit_max_bytes"`
	Shell     bool              `json:"bash"`              // agents have the tool Bash
	RunWhy    string            `json:"run_why,omitempty"` // why programs can't be run, and what to change
	Runs      []runs.Info       `json:"runs,omitempty"`    // whose changes were neither made nor dropped
	Version   string            `json:"version"`
	Policy    string            `json:"policy"` // SHA-256 of the configuration, as the audit log has it
	Allow     []string          `json:"allow_paths"`
	Deny      []string          `json:"deny_paths"`
	Fleet     *fleetStatus      `json:"fleet,omitempty"`
	*served
}

// policy is the SHA-256 of the configuration and of the root that it does not have itself, as an engine has it on record.
func (s *settings) policy() string {
	if len(s.cfg.Tools.FS.AllowPaths) == 0 {
		return s.at.Hash("")
	}
	return s.at.Hash(s.root)
}

// served says of a server how long its configuration holds.
type served struct {
	Loaded      time.Time `json:"loaded"`                 // the configuration that holds was read
	ReloadError string    `json:"reload_error,omitempty"` // why a later one is not taken
}

func showStatus(ctx context.Context, in *invocation) error {
	if err := in.implyRoot(); err != nil { // a server has done so
		return err
	}
	st, err := in.status(ctx)
	if err != nil {
		return err
	}
	return in.answer(st, "%s", st.text(st.Config))
}

// status gathers what holds now.
func (in *invocation) status(ctx context.Context) (*status, error) {
	s, err := in.settings()
	if err != nil {
		return nil, err
	}
	dir, err := in.dataDir()
	if err != nil {
		return nil, err
	}
	own := s.at.Tools.FS
	st := &status{Open: in.openText(s.at), Root: cmp.Or(s.root, own.WorkspaceRoot), Config: s.file, ReadOnly: own.ReadOnly, Asks: own.RequireApproval, Data: dir,
		AuditMax: 2 * own.Audit.MaxBytes, Version: readBuild().Version,
		Policy: s.policy(), Allow: list(own.AllowPaths), Deny: list(own.DenyPaths)}
	if in.remote != nil {
		st.served = in.remote.served()
	}
	st.UndoWhy = in.undoOff(s.at)
	st.Undo = st.UndoWhy == ""
	st.Shell = s.at.Tools.Run.Enabled && !own.ReadOnly
	if st.RunWhy, err = whyNoRun(own.WorkspaceRoot, s.dir); err != nil {
		return nil, err
	}
	if st.Runs, err = runs.List(s.dir); err != nil {
		return nil, err
	}
	if st.Fleet, err = in.fleetStatus(s.cfg); err != nil {
		return nil, err
	}
	cut := st.Fleet != nil && st.Fleet.Why != ""
	if q, err := in.queue(); err == nil && !cut {
		waiting, err := q.List(false)
		if err != nil {
			return nil, approvalsError(in, "", err)
		}
		for i := range waiting {
			if waiting[i].State == queue.Pending {
				st.Waiting++
			}
		}
	}
	for _, log := range []string{"audit", "audit-changes"} {
		st.AuditSize += sizeBelow(filepath.Join(dir, log))
	}
	if cut && st.Fleet.Durable == "remote" {
		return st, nil
	}
	return st, in.withStoreIfAny(ctx, func(ctx context.Context, db *checkpoint.DB) error {
		stats, err := db.Stats(ctx)
		if st.Store = &stats; err == nil && st.Fleet != nil {
			err = st.Fleet.look(ctx, db)
		}
		return err
	})
}

func (st *status) text(file string) string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s "+format+"\n", append([]any{name}, args...)...)
	}
	row("open", "%s", visible(st.Open))
	row("config", "%s", cmp.Or(visible(file), "none (moltis-fs init writes one)"))
	switch {
	case st.ReadOnly:
		row("changes", "none: read_only is true")
	case st.Asks:
		row("changes", "are asked about: mcp asks in the client, call at the terminal, serve in the queue")
	default:
		row("changes", "are made without a question: require_approval is false")
	}
	if st.Undo {
		row("undo", "on")
	} else {
		row("undo", "off: %s", st.UndoWhy)
	}
	shell := "agents have no Bash (enabled in [tools.run])"
	if st.Shell {
		shell = "agents have Bash"
	}
	if st.RunWhy == "" {
		row("programs", "%s run -- COMMAND; %s", program, shell)
	} else {
		row("programs", "can't be run: %s", visible(st.RunWhy))
	}
	for _, r := range st.Runs {
		torn := ""
		if r.Torn {
			torn = " (the machine was started anew since: some files may be empty or cut)"
		} else if r.Root == "" {
			torn = " (its record is damaged: it can be dropped only)"
		}
		row("kept", "%s, %s: %s run --resume %s, or --drop %s%s", visible(r.Command), ageText(time.Since(r.Began)), program, r.ID, r.ID, torn)
	}
	if f := st.Fleet; f != nil {
		f.rows(row)
	}
	if st.Waiting > 0 {
		row("waiting", "%s: %s approve lists them", plural(st.Waiting, "change", "changes"), program)
	}
	if s := st.Store; s == nil && st.Fleet != nil && st.Fleet.Why != "" {
		row("history", "not known")
	} else if s == nil {
		row("history", "nothing was changed yet")
	} else {
		newest := ""
		if s.Checkpoints > 0 {
			newest = ", the newest " + ageText(time.Since(s.Newest))
		}
		row("history", "%s%s; %s of %s", plural(s.Checkpoints, "change", "changes"), newest, bytesText(s.UsedBytes), bytesText(s.MaxBytes))
		row("trash", "%s, %s", plural(s.Trashed, "entry", "entries"), bytesText(s.ParkedBytes))
	}
	row("audit", "%s of %s", bytesText(st.AuditSize), bytesText(st.AuditMax))
	row("data", "%s", visible(st.Data))
	row("version", "%s", st.Version)
	return b.String()
}

// undoOff says why changes can't be undone under a configuration; "" where they can.
func (in *invocation) undoOff(cfg config.Config) string {
	switch {
	case cfg.Tools.FS.ReadOnly:
		return "nothing can be changed"
	case cfg.Tools.FS.CheckpointBeforeMutation:
		return ""
	}
	return "set checkpoint_before_mutation = true in " + visible(in.findConfig(in.option("config")))
}

// sizeBelow adds up the sizes of the files in a directory and below it, as far as they can be seen.
func sizeBelow(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			return filepath.SkipDir
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n
}
