package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"moltisfs/config"
	"moltisfs/internal/confine"
	"moltisfs/internal/engine"
	"moltisfs/internal/glob"
)

// The exit statuses of confine besides those of the command, as env(1) has them.
const (
	exitUnconfined = 125 // it was not started, because it would not be held
	exitCannotRun  = 126
	exitNoProgram  = 127
)

func confineCommand() *command {
	return &command{
		name: "confine", run: runConfine, serves: true, args: "-- COMMAND [ARGUMENT…]", min: 1, max: 1 << 20,
		short: "run a program, such as an agent's shell, under the policy (Linux Landlock)",
		long: `Linux with Landlock. The program, and all that it starts, may read and write what the policy
allows below --root, or the beginnings of allow_paths, and a TMPDIR of its own; read and run what is
below /usr, /bin, /sbin, /lib*, /opt, /nix, /etc and /proc; use /dev/null and its like, and
terminals, but not type into them. Root reads of /etc what all may read. It has no network, gets no
new privileges, signals nobody outside, and gets at no keys of the session. With --connect it may connect to some ports by TCP, but
then UDP and Multipath TCP are open.

What a rule closes and is there now is kept out: what lies beside it is opened one by one, and in
that directory nothing new can be made. What a rule closes by a pattern and is not there yet can't
be kept out where files can be made. Then this says which rules those are and starts nothing;
--allow-weaker starts it all the same, --read-only makes them hold. Nor does it start where the
kernel can't hold it, or where there are Rego policies (policies in [tools.fs]), which nobody asks.

What is asked about (protect_exec, as .git, and what core.hooksPath names) can only be read: there
is nobody to ask.

Never held: names, sizes and times of files (stat), sockets of the file system, and what was open
on standard input, output and error. Nor is metadata: whatever file of your account's it can name,
outside too, it can chmod, chown, touch, and give other ACLs and attributes. Nor are priority,
scheduling and processors of your other processes, and shared memory, queues and semaphores of
System V. Nobody is asked about a change, no checkpoint is made, and the audit log has nothing of it.

Exit status: that of the command, 128 and the signal that killed it; 125, it was not started,
because it would not be held; 126 and 127, the program can't be run, or is not there.`,
		options: confineOptions(),
		examples: []string{
			"moltis-fs confine --root ~/project --read-only -- grep -rn TODO .",
			"moltis-fs confine --root ~/project --allow-weaker --read ~/.cargo -- bash -c 'cargo test'",
		},
	}
}

// confinedCommand restricts itself and becomes the program. confine starts it, and cleans up afterwards,
// which it could not if it were restricted itself.
func confinedCommand() *command {
	return &command{
		name: "confined", hidden: true, run: becomeConfined, args: "-- TMPDIR COMMAND [ARGUMENT…]",
		short: "be confined, and become a program", min: 2, max: 1 << 20, options: confineOptions(),
		examples: []string{"moltis-fs confined --root ~/project -- /tmp/mine true"},
	}
}

func confineOptions() []option {
	return options("root read-only allow-weaker config data-dir",
		many("read", "DIR", "also allow it to read and run everything below, whatever the rules say"),
		many("write", "DIR", "also allow it to do anything below, whatever the rules say"),
		opt("network", "", "allow it to use the network"),
		many("connect", "PORT", "allow it to connect to this TCP port"),
	)
}

// A confinement is a plan with what it was made from.
type confinement struct {
	*confine.Plan
	cfg     config.Config
	roots   []string
	network bool
	ports   []uint16
}

var allOpen = misuse("give --root, or allow_paths in the configuration", "everything is open: there is nothing to hold to")

// plan looks at the trees and plans what to open, besides temp.
func (in *invocation) plan(ctx context.Context, temp string) (h confinement, err error) {
	var ports []uint16
	for _, p := range in.all("connect") {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return h, misuse("write a number from 1 to 65535", "--connect can't be %q", p)
		}
		ports = append(ports, uint16(n))
	}
	if err := in.implyRoot(); err != nil {
		return h, err
	}
	s, err := in.settings()
	if err != nil {
		return h, err
	}
	cfg := s.at
	h = confinement{cfg: cfg, network: in.given("network"), ports: ports, roots: s.roots()}
	if len(h.roots) == 0 || slices.Contains(h.roots, "/") {
		return h, allOpen
	}
	protect, err := in.ownFiles(&s)
	if err != nil {
		return h, err
	}
	free, judge, asked, err := engine.PolicyOf(cfg.Tools.FS, engine.Host{DataDir: s.dir, Protect: protect,
		Root: engine.Root{Only: s.root}, GitUser: in.gitUser()})
	if err != nil {
		return h, misuse("", "%v", err)
	}
	defer free.Close() //nolint:errcheck // nothing was written through it
	o := confine.Options{Roots: h.roots, Judge: judge, Asked: asked, ReadOnly: cfg.Tools.FS.ReadOnly,
		Weaker: in.given("allow-weaker"), Patterns: patterns(cfg.Tools.FS)}
	if o.Reads, err = in.besides("read", free.Canonical, []string{s.dir}, h.roots); err != nil {
		return h, err
	}
	protect = append(protect, s.dir)
	if o.Writes, err = in.besides("write", free.Canonical, protect, h.roots); err != nil {
		return h, err
	}
	if temp != "" {
		o.Writes = append(o.Writes, temp)
	}
	h.Plan, err = confine.Make(ctx, o)
	if errors.Is(err, confine.ErrTooMany) {
		return h, &exitError{exitUnconfined, err.Error(), "name a smaller --root", ""}
	}
	if err != nil {
		return h, &exitError{exitUnconfined, err.Error(), "", ""}
	}
	return h, nil
}

// besides are the directories of an option that opens more than the policy does. They hold nothing
// of ours, and no root: that would undo its rules.
func (in *invocation) besides(option string, canonical func(string) string, ours,
	roots []string) (dirs []string, err error) {
	for _, dir := range in.all(option) {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("finding %s: %w", dir, err)
		}
		abs = canonical(abs)
		why := ""
		for _, root := range roots {
			if liesIn(abs, canonical(root)) {
				why = "it would open what the policy closes below the root"
			}
		}
		for _, our := range ours {
			if our = canonical(our); liesIn(abs, our) || liesIn(our, abs) {
				why = "our own files are there"
			}
		}
		if why != "" {
			return nil, misuse("name a narrower directory", "--%s can't be %s: %s", option,
				visible(dir), why)
		}
		dirs = append(dirs, abs)
	}
	return dirs, nil
}

// patterns are the rules that also hold for names which are not there yet, as the operator wrote
// them.
func patterns(cfg config.FS) (out []string) {
	for _, rule := range cfg.DenyPaths {
		g, err := glob.CompileRule(rule, nil)
		if err == nil && slices.ContainsFunc(g.Patterns(), func(p *glob.Pattern) bool {
			return "/"+strings.Join(p.Literal(), "/") != strings.TrimSuffix(rule, "/**")
		}) {
			out = append(out, fmt.Sprintf("deny_paths %q", rule))
		}
	}
	if cfg.ProtectSecret != "allow" {
		out = append(out, "protect_secret (names such as .env)")
	}
	if cfg.ProtectExec != "allow" {
		out = append(out, "protect_exec (names such as .git and .envrc)")
	}
	return out
}

const unasked = "policies: nobody asks them about what the program does"

// unheld says what the kernel does not hold of the policy, a line each.
func (h *confinement) unheld() (out []string) {
	out = confine.Missing(confine.ABI(), h.network)
	if h.cfg.Tools.FS.HasPolicies() {
		out = append(out, unasked)
	}
	for _, rule := range h.Unheld {
		out = append(out, rule+" holds for what is there now, not for names that come later")
	}
	return out
}

// tell says what is less than the policy, and refuses to go on unless that was allowed.
func (h *confinement) tell(in *invocation) error {
	less := h.unheld()
	for _, what := range less {
		fmt.Fprintf(in.err, "%s: not held: %s\n", program, visible(what))
	}
	if len(h.Frozen) > 0 {
		more := ""
		if n := len(h.Frozen) - 1; n > 0 {
			more = fmt.Sprintf(", and in %d more", n)
		}
		fmt.Fprintf(in.err, "%s: nothing new can be made in %s%s: something in it is closed\n",
			program, visible(h.Frozen[0]), more)
	}
	if len(less) == 0 || in.given("allow-weaker") {
		return nil
	}
	return &exitError{exitUnconfined, "it was not started: the kernel would not hold all of the policy",
		"--allow-weaker starts it all the same; --read-only holds rules for names that come later", ""}
}

func runConfine(_ context.Context, in *invocation) error {
	self, err := ownProgram()
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", program+"-confine-")
	if err != nil {
		return fmt.Errorf("making a TMPDIR: %w", err)
	}
	defer os.RemoveAll(temp) //nolint:errcheck // it was the program's
	args := []string{"confined"}
	for _, o := range confineOptions() {
		for _, value := range in.all(o.name) {
			args = append(args, strings.TrimSuffix("--"+o.name+"="+value, "=true"))
		}
	}
	child := exec.Command(self, append(append(args, "--", temp), in.args...)...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	came := make(chan os.Signal, 8)
	signal.Notify(came, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(came)
	if err := child.Start(); err != nil {
		return fmt.Errorf("starting our own program: %w", err)
	}
	go func() {
		for sig := range came {
			if (sig == os.Interrupt || sig == syscall.SIGQUIT) && hasTerminal() {
				continue // the terminal has sent it to the program, too
			}
			_ = child.Process.Signal(sig) // it may have ended
		}
	}()
	_ = child.Wait() // its state says how it ended
	return &exitError{status: statusOf(child.ProcessState)}
}

// statusOf is the status of a process as shells have it.
func statusOf(state *os.ProcessState) int {
	if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal())
	}
	return state.ExitCode()
}

func becomeConfined(ctx context.Context, in *invocation) error {
	temp, args := in.arg(0), in.args[1:]
	h, err := in.plan(ctx, temp)
	if err != nil {
		return err
	}
	if err := h.tell(in); err != nil {
		return err
	}
	if fs := h.cfg.Tools.FS; fs.RequireApproval && !fs.ReadOnly {
		fmt.Fprintf(in.err, "%s: nobody is asked about its changes (require_approval), and no checkpoint "+
			"is made\n", program)
	}
	name, err := exec.LookPath(args[0])
	if err != nil {
		status := exitCannotRun
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			status = exitNoProgram
		}
		return &exitError{status, err.Error(), "", ""}
	}
	if err := confine.Restrict(h.Rules, h.network, h.ports); err != nil {
		return &exitError{exitUnconfined, err.Error(), "", ""}
	}
	environ := append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TMPDIR=")
	}), "TMPDIR="+temp)
	signal.Reset()
	err = confine.Become(name, args, environ, h.network || len(h.ports) > 0)
	return &exitError{exitCannotRun, fmt.Sprintf("running %s: %v", name, err),
		"what is outside of /usr, /bin and their like needs --read DIR to be run", ""}
}

// confineServer holds this process to what it works on. The policy is narrower; this is for the day
// that it is got round.
func (in *invocation) confineServer(cfg config.Config) error {
	h := confinement{Plan: &confine.Plan{Rules: confine.System()}}
	s, err := in.settings()
	if err != nil {
		return err
	}
	roots := s.roots()
	if len(roots) == 0 || slices.Contains(roots, "/") {
		return allOpen
	}
	right := confine.Write
	if cfg.Tools.FS.ReadOnly {
		right = confine.Read
	}
	open := func(right confine.Right, dir bool, paths ...string) {
		for _, path := range paths {
			h.Rules = append(h.Rules, confine.Rule{Path: path, Right: right, Dir: dir})
		}
	}
	open(right, true, roots...)
	open(confine.Write, true, s.dir)
	open(confine.Read, false, s.self)
	if s.file != "" {
		from, err := filepath.Abs(s.file)
		if err != nil {
			return err
		}
		open(confine.Read, false, from)
	}
	for _, name := range in.gitUser().Files {
		open(confine.Read, false, name)
		open(confine.Read, true, filepath.Join(filepath.Dir(name), "git"))
	}
	open(confine.Read, false, hookFiles(cfg.Tools.FS.Hooks)...)
	for _, name := range append(cfg.Tools.FS.PolicyFiles(), in.policiesFile()) {
		if info, err := os.Stat(name); err == nil { // for a reload
			open(confine.Read, info.IsDir(), name)
		}
	}
	if err := h.tell(in); err != nil {
		return err
	}
	if err := confine.Restrict(h.Rules, false, policyPorts(cfg.Tools.FS)); err != nil {
		return &exitError{exitUnconfined, err.Error(), "", ""}
	}
	return nil
}

// policyPorts are the ports of policy servers.
func policyPorts(cfg config.FS) (ports []uint16) {
	for _, p := range cfg.Policies {
		where, _, _ := strings.Cut(p, " ")
		u, err := url.Parse(where)
		if err != nil || u.Host == "" {
			continue
		}
		usual := map[string]string{"http": "80", "https": "443"}[u.Scheme]
		if n, err := strconv.ParseUint(cmp.Or(u.Port(), usual), 10, 16); err == nil {
			ports = append(ports, uint16(n))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}
