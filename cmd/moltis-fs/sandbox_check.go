package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"moltisfs/config"
	"moltisfs/internal/doctor"
	"moltisfs/internal/engine"
	"moltisfs/internal/sandbox"
	"moltisfs/internal/sandbox/place"
	"moltisfs/tools"
)

func sandboxCommand() *command {
	return &command{
		name: "sandbox", short: "try the sandbox of the configuration", payload: true,
		below: []*command{{
			name: "check", short: "make calls there and on this machine, and print where the answers differ",
			long: `Starts a worker in the sandbox that [tools.sandbox] has for the session, whatever its mode. A few
calls write, read, change, search and take back, in a directory of their own below the root inside and in one of this
machine. Then that is taken back, and every answer that differs is printed. Its history is kept nowhere.

The exit status is 0 where none differs, 1 where some do, and 3 where the sandbox can't be reached.`,
			options: suiteOptions(opt("json", "", "answer with one JSON object")),
			examples: []string{"moltis-fs sandbox check --config moltis.toml",
				"moltis-fs sandbox check --config moltis.toml --session s1 --json"},
			run: checkSandbox,
		}},
	}
}

// checkCalls are made in a directory $D. The answers have to be the same everywhere.
var checkCalls = []struct{ tool, args string }{
	{"Write", `{"file_path":"$D/sub/a.txt","content":"one\ntwo\n","create_parents":true}`},
	{"Write", `{"file_path":"$D/sub/ä b.txt","content":"two\n"}`},
	{"Write", `{"file_path":"$D/.gitignore","content":"hidden\n"}`},
	{"Write", `{"file_path":"$D/hidden","content":"two\n"}`},
	{"Read", `{"file_path":"$D/sub/a.txt"}`},
	{"Edit", `{"file_path":"$D/sub/a.txt","old_string":"one","new_string":"1"}`},
	{"Read", `{"file_path":"$D/sub/a.txt"}`},
	{"Grep", `{"pattern":"two","path":"$D/sub","output_mode":"content"}`},
	{"Glob", `{"pattern":"sub/a*","path":"$D"}`},
	{"Read", `{"file_path":"$D/missing"}`},
	{"Read", `{"file_path":"$D/../../outside"}`},
	{"checkpoint_restore", `{"id":"undo"}`},
	{"Read", `{"file_path":"$D/sub/a.txt"}`},
	{"checkpoint_restore", `{"turn":"check"}`}, // and all is gone
}

// differs is a call whose answers are not the same.
type differs struct {
	Tool  string `json:"tool"`
	Here  string `json:"here"`
	There string `json:"there"`
}

func checkSandbox(ctx context.Context, in *invocation) error {
	o, p, err := in.sandboxOf()
	if err != nil {
		return err
	}
	if err := o.outOfReach(p); err != nil {
		return unreached(p, err)
	}
	dir, err := os.MkdirTemp("", program+"-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is in the temporary directory
	// what this configuration forbids is no difference
	said := o.cfg.Tools.Sandbox
	o.cfg = config.Default()
	o.cfg.Tools.Sandbox = said
	fs := &o.cfg.Tools.FS
	fs.RequireApproval, fs.CheckpointBeforeMutation, fs.ProtectExec = false, true, "allow"
	o.as.DataDir = filepath.Join(dir, "there")
	there, _, hello, err := o.open(ctx, p)
	if err != nil {
		return unreached(p, err)
	}
	var outcome error
	differ, err := in.compare(ctx, o, there, p.Root, dir)
	if err = closing(there, err); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "sandbox %s: %s\n%s\n%d calls were made there and here\n", p.ID, visible(strings.Join(p.Worker(), " ")),
		about(hello), len(checkCalls))
	for _, d := range differ {
		outcome = refused
		fmt.Fprintf(&b, "%s differs\n  here:  %s\n  there: %s\n", d.Tool, visible(d.Here), visible(d.There))
	}
	if outcome == nil {
		b.WriteString("every answer was the same\n")
	}
	return ending(in.answer(struct {
		OK          bool      `json:"ok"`
		Sandbox     string    `json:"sandbox"`
		Command     []string  `json:"command"`
		System      string    `json:"system"`
		Confined    bool      `json:"confined"`
		Calls       int       `json:"calls"`
		Differences []differs `json:"differences"`
	}{outcome == nil, p.ID, p.Worker(), hello.System, hello.Confined, len(checkCalls), list(differ)},
		"%s", b.String()), outcome)
}

func about(h sandbox.Hello) string {
	held := "is not held to the root by the kernel"
	if h.Confined {
		held = "is held to the root by the kernel, too"
	}
	return fmt.Sprintf("its worker is this build on %s, user %d, works in %s and %s", h.System, h.UID, visible(h.Root), held)
}

func unreached(p *place.Place, err error) error {
	return &exitError{exitBroken, fmt.Sprintf("the sandbox %s can't be reached: %s", p.ID, sandbox.Cause(err)),
		"try it by hand: " + strings.Join(p.Command(p.Program, "version"), " "), tools.KindUnavailable}
}

// sandboxOf is the sandbox of the session that the command line names.
func (in *invocation) sandboxOf() (*opener, *place.Place, error) {
	o, err := in.opener()
	if err != nil {
		return nil, nil, err
	}
	if len(o.cfg.Tools.Sandbox.Command) == 0 {
		return nil, nil, misuse("name one in [tools.sandbox]; docs/sandbox.md says how", "the configuration has no sandbox")
	}
	p, err := o.place(cmp.Or(in.option("principal"), "local"), cmp.Or(in.option("session"), "default"))
	if err != nil {
		return nil, nil, misuse("name a session with --session", "%v", err)
	}
	return o, p, nil
}

var madeAt = regexp.MustCompile(`"createdAt":("[^"]*"|\d+)`)

// compare makes the calls below root there, and below dir here.
func (in *invocation) compare(ctx context.Context, o *opener, there *engine.Engine, root, dir string) ([]differs, error) {
	here := filepath.Join(dir, "work")
	if err := os.Mkdir(here, 0o700); err != nil {
		return nil, err
	}
	cfg := o.cfg
	e, err := tools.OpenEngine(cfg, tools.Options{DataDir: filepath.Join(dir, "here"), Root: here, Worker: o.as.Worker}, loadPolicies)
	if err != nil {
		return nil, err
	}
	name := "/." + filepath.Base(dir)
	answer := func(s *tools.Suite, root, tool, args string) (string, error) {
		a, err := s.Dialect().Call(ctx, tools.Call{Session: "check", Turn: "check", Tool: tool,
			Args: json.RawMessage(strings.ReplaceAll(args, "$D", root+name))})
		if err != nil {
			return "", err
		}
		line, err := a.JSON(true)
		return madeAt.ReplaceAllString(strings.ReplaceAll(string(line), root, "ROOT"), `"createdAt":0`), err
	}
	one, two := tools.Over(e), tools.Over(there)
	var found []differs
	for _, c := range checkCalls {
		a, err := answer(one, here, c.tool, c.args)
		b, also := answer(two, root, c.tool, c.args)
		if err := errors.Join(err, also); err != nil {
			return found, closing(e, err)
		}
		if a != b {
			found = append(found, differs{c.tool, a, b})
		}
	}
	return found, e.Close()
}

// sandboxFinding says whether the sandbox of a configuration is real.
func (in *invocation) sandboxFinding(ctx context.Context, cfg config.Sandbox) []doctor.Finding {
	if cfg.Mode == "off" {
		return nil
	}
	f := doctor.Finding{Level: doctor.OK, About: "sandbox", What: strings.Join(cfg.Command, " ") + ": each session has its own"}
	o, p, err := in.sandboxOf()
	if err == nil {
		err = cmp.Or(p.Real(), o.outOfReach(p))
	}
	if err == nil {
		var s *sandbox.Session
		if s, err = sandbox.Start(ctx, sandbox.Options{Command: p.Worker(), Root: p.Root, Build: readBuild().id()}); err == nil {
			f.What = p.ID + " is real; " + about(s.Hello())
			err = s.Close()
		}
	}
	if err != nil && (o != nil || !place.PerSession(cfg)) {
		f.Level, f.What, f.Hint = doctor.Weaker, "no real sandbox is there: "+sandbox.Cause(err)+"; its calls are refused",
			program+" sandbox check tries it"
		if !cfg.Require {
			f.Level, f.Hint = doctor.Hazard, "require = true refuses them instead"
			f.What = strings.TrimSuffix(f.What, "its calls are refused") + "a start has the calls run on this machine"
		}
	}
	return []doctor.Finding{f}
}
