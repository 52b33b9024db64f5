package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/doctor"
	"moltisfs/internal/sandbox"
	"moltisfs/internal/sandbox/place"
)

func doctorCommand() *command {
	return &command{
		name: "doctor", run: runDoctor,
		short: "list what to fix before you let an agent in",
		long: `Looks at who may write to the configuration, the program and the data directory, at what is open,
at who is asked before a change, at the kernel, whether there is a real sandbox, where
[tools.sandbox] wants one, and whether the fleet can be reached. It changes nothing. "weaker" is a promise
that holds less here; "hazard" is something to mend first, and then the exit status is 1. So is a sandbox
or a fleet that can't be reached.`,
		options: options("json config policies-json data-dir root"),
		examples: []string{"moltis-fs doctor --root ~/project",
			"moltis-fs doctor --config moltis.toml --json"},
	}
}

func runDoctor(ctx context.Context, in *invocation) error {
	if err := in.implyRoot(); err != nil {
		return err
	}
	s, err := in.settings()
	if err != nil {
		return err
	}
	cfg := s.at
	o := doctor.Options{Lifted: lifted(cfg.Tools.FS), Data: s.dir, Program: s.self, Roots: s.roots()}
	if !cfg.Tools.FS.ReadOnly {
		o.Unasked, o.Lasting = !cfg.Tools.FS.RequireApproval, !cfg.Tools.FS.CheckpointBeforeMutation
	}
	o.Home, _ = os.UserHomeDir() // "": there is none
	if s.file != "" {
		if o.Config, err = absolute(s.file); err != nil {
			return fmt.Errorf("finding the configuration: %w", err)
		}
	}
	o.Obeyed = append(hookFiles(cfg.Tools.FS.Hooks), cfg.Tools.FS.PolicyFiles()...)
	if cfg.Tools.Sandbox.All() {
		o.Roots, o.Inside = nil, true
	}
	st, err := in.fleetStatus(cfg)
	if err != nil {
		return err
	}
	found := append(doctor.Look(o), in.sandboxFinding(ctx, cfg.Tools.Sandbox)...)
	if st != nil && st.Why != "" {
		found = append(found, doctor.Finding{Level: doctor.Hazard, About: "fleet", What: st.Why, Hint: "start it, or mend [tools.fs.fleet]: docs/fleet.md"})
	}
	hazards := slices.ContainsFunc(found,
		func(f doctor.Finding) bool { return f.Level == doctor.Hazard })
	var b strings.Builder
	if len(found) == 0 {
		b.WriteString("ok      nothing is to be mended\n")
	}
	for _, f := range found {
		fmt.Fprintf(&b, "%-7s %-8s %s\n", f.Level, f.About,
			approval.Escape(strings.TrimPrefix(f.Path+": "+f.What, ": "), false))
		if f.Hint != "" {
			fmt.Fprintf(&b, "%17s-> %s\n", "", f.Hint)
		}
	}
	return ending(in.answer(struct {
		OK       bool             `json:"ok"` // there is no hazard
		Findings []doctor.Finding `json:"findings"`
	}{!hazards, list(found)}, "%s", b.String()), refusedIf(hazards))
}

// sandboxFinding says whether the sandbox of a configuration is real.
func (in *invocation) sandboxFinding(ctx context.Context, cfg config.Sandbox) []doctor.Finding {
	if cfg.Mode == "off" {
		return nil
	}
	f := doctor.Finding{Level: doctor.OK, About: "sandbox", What: strings.Join(cfg.Command, " ") + ": each session has its own"}
	var p *place.Place
	o, err := in.opener()
	if err == nil {
		p, err = o.place("local", "default")
	}
	if err == nil {
		err = cmp.Or(p.Real(), o.outOfReach(p))
	}
	if err == nil {
		var s *sandbox.Session
		if s, err = sandbox.Start(ctx, sandbox.Options{Command: p.Worker(), Root: p.Root, Build: readBuild().fingerprint()}); err == nil {
			h, held := s.Hello(), "is not held to the root by the kernel"
			if h.Confined {
				held = "is held to the root by the kernel, too"
			}
			f.What = fmt.Sprintf("%s is real; its worker is this build on %s, user %d, works in %s and %s", p.ID, h.System, h.UID, visible(h.Root), held)
			err = s.Close()
		}
	}
	if err != nil && (p != nil || !place.PerSession(cfg)) {
		what, then := "no real sandbox is there", "its calls are refused"
		f.Level = doctor.Hazard
		if p != nil {
			what, f.Hint = "the sandbox "+p.ID+" can't be reached", byHand(p)
		}
		if !cfg.Require {
			f.Hint = "require = true refuses them instead"
			then = "a start has the calls run on this machine"
		}
		f.What = what + ": " + sandbox.Cause(err) + "; " + then
	}
	return []doctor.Finding{f}
}
