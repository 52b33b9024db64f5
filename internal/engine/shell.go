package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"moltisfs/config"
	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/run"
	"moltisfs/internal/session"
)

// Programs says how programs are run: what [tools.run] has, and what the host knows.
type Programs struct {
	config.Run
	Environ []string // of the host
	Home    string   // whose secrets are covered; or ""
	Own     []string // files and directories of ours, which are covered too
}

// The limits of a run besides the keys of [tools.run].
const (
	mostProcesses = 4096
	mostShells    = 16     // of one session, in the background
	shownOutput   = 30_000 // bytes of a stream, of which the middle is left out
)

var (
	// NoRun is the refusal of a run that can't be had.
	NoRun = Typed[*run.Error](CodeUnsupported, "no_run")
	// NoShell names a shell that is not there.
	NoShell = With[string](CodeNotFound, "no_shell")
	// RunEnded is a program that a limit ended; the fact is the limit. Nothing that it changed was kept.
	RunEnded      = With[RunLimit](CodeLimit, "run_ended")
	TooManyShells = With[int](CodeLimit, "too_many_shells") // how many there may be
)

// RunLimit is a limit that ended a program, and how much it is.
type RunLimit struct {
	Limit run.Limit
	Most  string
}

// runOptions say where programs of the call run, with directories that they may write besides those of the configuration. They have the names that the call may not see, which takes a walk through the root.
func (c *Call) runOptions(ctx context.Context, write []string) (o run.Options, err error) {
	root := c.cfg.WorkspaceRoot
	switch {
	case c.place.Calls != nil:
		return o, &run.Error{Why: "the calls of this session run in a sandbox, where programs are not run for agents",
			Do: "run them in the sandbox itself"}
	case c.Engine.opened.chain != nil:
		return o, &run.Error{Why: "policies are set, and nobody can ask them what a program reads",
			Do: "take policies out of [tools.fs], or do without programs"}
	case c.cfg.ReadOnly:
		return o, &run.Error{Why: "read_only is set", Do: "take read_only out of [tools.fs]"}
	case root == "":
		return o, &run.Error{Why: "no workspace is named for programs to run in", Do: "set workspace_root in [tools.fs], or give --root"}
	}
	o = run.Options{Root: c.free.Canonical(root), Data: c.dataDir, Network: c.programs.Network,
		Limits: run.Limits{Disk: c.programs.Disk, Processes: mostProcesses}}
	o.Hidden, err = run.Closed(o.Root, func(dir string) func(string, bool) (bool, bool) { return c.closedIn(ctx, path.Join(o.Root, dir)) })
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return o, err
	}
	o.Conceal = c.closedElsewhere(o.Root)
	for _, dir := range append(slices.Clone(c.programs.Write), write...) {
		dir = c.free.Canonical(dir)
		if k, _ := kindOf(c.free, dir); k != guardfs.KindDir {
			continue // a cache that is not there yet
		}
		o.Write = append(o.Write, dir)
	}
	return o, nil
}

// closedIn gives a function that says of a name in the directory dir whether it is closed to the call, and whether to look into it.
func (c *Call) closedIn(ctx context.Context, dir string) func(name string, isDir bool) (shut, enter bool) {
	var d *guardfs.Dir
	h, err := c.fs.Resolve(dir, guardfs.Walk)
	if err == nil {
		d, err = h.Dir()
		h.Close() //nolint:errcheck // nothing was written through it
	}
	if err == nil {
		d.Close() //nolint:errcheck // it goes on to judge names
	}
	return func(name string, isDir bool) (shut, enter bool) {
		return err != nil || d.Shut(name, map[bool]guardfs.Kind{true: guardfs.KindDir, false: guardfs.KindFile}[isDir]), ctx.Err() == nil
	}
}

// closedElsewhere lists what programs find empty outside of root: our own files, what a deny rule names, and the secrets in the home directory.
func (c *Call) closedElsewhere(root string) (out []string) {
	add := func(name string) {
		name = c.free.Canonical(name)
		if k, _ := kindOf(c.free, name); k == guardfs.KindAbsent || within(name, root) || within(root, name) ||
			slices.ContainsFunc(out, func(o string) bool { return within(name, o) }) {
			return
		}
		out = append(slices.DeleteFunc(out, func(o string) bool { return within(o, name) }), name)
	}
	for _, own := range c.programs.Own {
		add(own)
	}
	for _, rule := range c.cfg.DenyPaths {
		if g, err := glob.CompileRule(rule, nil); err == nil {
			for _, p := range g.Patterns() {
				if name := "/" + strings.Join(p.Literal(), "/"); name == strings.TrimSuffix(rule, "/**") {
					add(name)
				}
			}
		}
	}
	if home := c.programs.Home; home != "" {
		// Of the home directory only names with a dot are looked into: a program keeps its keys there, and projects would take long.
		names, _ := run.Closed(home, func(dir string) func(string, bool) (bool, bool) {
			deep := strings.Count(dir, "/")
			return func(name string, _ bool) (shut, enter bool) {
				full := filepath.Join(home, dir, name)
				shut = c.classes.Of(full) == policy.Secret
				return shut, !shut && deep < 2 && (deep > 0 || name[0] == '.') && name != ".cache" && !slices.Contains(c.programs.Write, full)
			}
		})
		for _, name := range names {
			add(filepath.Join(home, name))
		}
	}
	return out
}

// environ is the environment of a program: that of the host, without what leads to sockets and to our own settings. Caches are in the
// program's own /tmp, unless [tools.run] write opens the one in the home directory.
func (p *Programs) environ() (out []string) {
	for _, v := range p.Environ {
		name, _, _ := strings.Cut(v, "=")
		if !slices.Contains([]string{"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS",
			"DOCKER_HOST", "XDG_RUNTIME_DIR", "TMPDIR", "PWD", "OLDPWD"}, name) && !strings.HasPrefix(name, "MOLTIS_") {
			out = append(out, v)
		}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(out, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	}
	for _, cache := range [][2]string{{"XDG_CACHE_HOME", ".cache"}, {"npm_config_cache", ".npm"}} {
		dir := filepath.Join(p.Home, cache[1])
		if !has(cache[0]) && !slices.ContainsFunc(p.Write, func(w string) bool { return within(dir, w) }) {
			out = append(out, cache[0]+"=/tmp/"+cache[1])
		}
	}
	if !has("PATH") {
		out = append(out, "PATH=/usr/local/bin:/usr/bin:/bin")
	}
	return out
}

// ShellTime is how long a shell in the foreground may take.
func (e *Engine) ShellTime() time.Duration { return time.Duration(e.programs.Timeout) }

// ShellArgs say what runs, and how.
type ShellArgs struct {
	Line       string        // a command for a shell, which begins where the session's last one has ended; or else
	Args       []string      // a program; none with Resume: nothing runs
	Dir        string        // in which it begins, if that is in the workspace
	Timeout    time.Duration // 0: none
	Background bool          // it goes on after the call

	Stdin          io.Reader
	Stdout, Stderr io.Writer // nil: the shell keeps its output
	Terminal       bool      // it has a terminal of its own

	Network bool     // it has the network, whatever the configuration says
	Write   []string // directories that it may write, besides those of the configuration
	Resume  string   // the run to go on with; "" is a new one
}

// A Shell is a program that runs, or has run, in a run of its own.
type Shell struct {
	ID     string // "" unless it is in the background
	Line   string // what runs, for records
	Run    *run.Run
	Status run.Status
	Reset  string // where it should have begun and could not, since that is outside of the workspace or gone
	Left   string // the directory in which a shell has ended, or in which a program asked for its changes by [CommitVariable]; or ""

	out, err output
	kept     bool      // they have what the program writes
	all      hash.Hash // of both, in the order in which they came
	process  *run.Process
	ended    chan struct{} // is closed when Status is there
	failed   error
	key      session.Key
}

// CommitVariable names a file to a program that is alone on a terminal, such as a shell: if it ends with a directory in there, its changes
// are asked about and it begins anew in that directory.
const CommitVariable = "MOLTIS_RUN"

// output keeps what a program writes to one stream: its beginning and its end.
type output struct {
	mu   *sync.Mutex
	also hash.Hash
	head []byte
	tail []byte
	all  int64
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(b)
	o.also.Write(b)
	o.all += int64(n)
	take := min(shownOutput/2-len(o.head), n)
	o.head, b = append(o.head, b[:take]...), b[take:]
	if o.tail = append(o.tail, b...); len(o.tail) > shownOutput {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-shownOutput/2:]...)
	}
	return n, nil
}

// take gives what came since the last take, and says how many bytes are left out of its middle.
func (o *output) take() (text string, left int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	end := o.tail[max(0, len(o.tail)-shownOutput/2):]
	text, left = string(o.head), o.all-int64(len(o.head)+len(end))
	if left > 0 {
		text += fmt.Sprintf("\n[… %d bytes left out …]\n", left)
	}
	text += string(end)
	o.head, o.tail, o.all = nil, nil, 0
	return strings.ToValidUTF8(text, "\ufffd"), left
}

// Written gives what the program has written to standard output and error since the last call, and how many bytes of that are left out.
func (s *Shell) Written() (out, err string, left int64) {
	out, one := s.out.take()
	err, other := s.err.take()
	return out, err, one + other
}

// shells are the shells in the background, and where the shells of each session go on.
type shells struct {
	mu  sync.Mutex
	all map[string]*Shell
	dir session.Recent[string]
	n   int
}

func newShell(line string) *Shell {
	s := &Shell{Line: line, all: sha256.New(), ended: make(chan struct{})}
	mu := &sync.Mutex{}
	s.out, s.err = output{mu: mu, also: s.all}, output{mu: mu, also: s.all}
	return s
}

// Shell starts a program.
func (c *Call) Shell(ctx context.Context, a ShellArgs) (_ *Shell, err error) {
	o, err := c.runOptions(ctx, a.Write)
	if err != nil {
		return nil, err
	}
	o.Network = o.Network || a.Network
	o.Limits.Time = a.Timeout
	s := newShell(cmp.Or(a.Line, strings.Join(a.Args, " ")))
	s.key = c.key()
	if a.Background {
		if err := c.shells.add(s); err != nil {
			return nil, err
		}
		ctx = context.WithoutCancel(ctx)
	}
	defer func() {
		if err != nil {
			c.shells.remove(s)
		}
	}()
	if a.Resume != "" {
		s.Run, err = run.Open(c.dataDir, a.Resume)
	} else {
		s.Run, err = run.New(o)
	}
	if err != nil {
		return nil, err
	}
	nothing := a.Line == "" && len(a.Args) == 0
	if a.Resume != "" && !nothing {
		if err = s.Run.Renew(o); err != nil {
			return nil, errors.Join(err, s.Run.Close())
		}
	}
	if nothing {
		close(s.ended)
		return s, nil
	}
	p := run.Program{Args: a.Args, Env: c.programs.environ(), Dir: a.Dir, Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Terminal: a.Terminal}
	if p.Stdout == nil {
		p.Stdout, s.kept = &s.out, true
	}
	if p.Stderr == nil && !a.Terminal {
		p.Stderr = &s.err
	}
	left := "/tmp/" + leftName
	if o.Root == "/tmp" {
		left = "/var/tmp/" + leftName
	}
	if a.Line != "" {
		p.Dir, p.Args = c.shells.dir.Get(s.key), c.shellOf(a.Line, left)
	} else if a.Terminal && len(a.Args) == 1 {
		p.Env = append(p.Env, CommitVariable+"="+left)
	}
	if k, _ := kindOf(c.fs, p.Dir); p.Dir != "" && (k != guardfs.KindDir || !within(p.Dir, o.Root)) {
		s.Reset, p.Dir = p.Dir, ""
	}
	if s.process, err = s.Run.Start(ctx, p); err != nil {
		if a.Resume != "" {
			return nil, errors.Join(err, s.Run.Close())
		}
		return nil, errors.Join(err, s.Run.Drop())
	}
	shells := &c.shells
	go func() {
		defer close(s.ended)
		s.Status, s.failed = s.process.Wait()
		if s.Left = s.Run.Temporary(leftName); a.Line != "" && s.Left != "" && !a.Background {
			shells.dir.Set(s.key, s.Left)
		}
	}()
	return s, nil
}

// leftName is a file in /tmp of a run that has the directory in which its shell has ended.
const leftName = ".moltis-fs-left"

// shellOf gives the arguments of a shell that runs a line, and writes into the file left in which directory it ends.
func (e *Engine) shellOf(line, left string) []string {
	shell := "/bin/sh"
	if k, _ := kindOf(e.free, "/bin/bash"); k == guardfs.KindFile {
		shell = "/bin/bash"
	}
	return []string{shell, "-c", `trap '{ printf %s "$PWD" >|` + left + `; } 2>/dev/null' EXIT; ` + line, path.Base(shell)}
}

// Ended waits for the end of the shell, or of ctx. Signals are passed on to the program. One that a limit ended is a refusal of Limited, for nothing
// of it is kept.
func (s *Shell) Ended(ctx context.Context, signals <-chan os.Signal) error {
	for {
		select {
		case sig := <-signals:
			if n, ok := sig.(syscall.Signal); ok {
				_ = s.process.Signal(n) // it may have ended
			}
		case <-s.ended:
			return s.failed
		case <-ctx.Done():
			_ = s.Kill()
			return ctx.Err()
		}
	}
}

// Ran says whether a program was started, and not just a run opened.
func (s *Shell) Ran() bool { return s.process != nil }

// Runs says whether it has not ended.
func (s *Shell) Runs() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// FindShell gives the session's shell in the background of that name.
func (c *Call) FindShell(id string) (*Shell, error) {
	c.shells.mu.Lock()
	defer c.shells.mu.Unlock()
	if s := c.shells.all[id]; s != nil && s.key == c.key() {
		return s, nil
	}
	var there []string
	for id, s := range c.shells.all {
		if s.key == c.key() {
			there = append(there, id)
		}
	}
	slices.Sort(there)
	return nil, Refuse(NoShell, "", strings.Join(there, ", "))
}

// Limited is the refusal of a program that a limit ended; nil of any other.
func (s *Shell) Limited() error {
	most := ""
	switch s.Status.Limit {
	case "":
		return nil
	case run.LimitTime:
		most = s.Run.Options.Limits.Time.String()
	case run.LimitDisk:
		most = strconv.FormatInt(s.Run.Options.Limits.Disk, 10) + " bytes"
	}
	return Refuse(RunEnded, "", RunLimit{s.Status.Limit, most})
}

// Apply makes of the workspace what the program has left there, as one change of the call.
func (s *Shell) Apply(ctx context.Context, c *Call, partial, dry bool) (*Ran, error) {
	a := RunArgs{Upper: s.Run.Upper(), Command: s.Line, Exit: s.Status.Code, Partial: partial, DryRun: dry, KeepIgnored: c.programs.KeepIgnored}
	if s.kept {
		a.Output = hex.EncodeToString(s.all.Sum(nil))
	}
	return c.ApplyRun(ctx, a)
}

// Kill ends the program of the shell, and waits until it has ended.
func (s *Shell) Kill() error {
	s.process.Kill()
	<-s.ended
	return s.failed
}

// EndShell forgets a shell, and removes its run with all that is in it.
func (c *Call) EndShell(s *Shell) error {
	c.shells.remove(s)
	return s.Run.Drop()
}

// end ends the shells of the sessions that which reports true for, and drops their changes. No call of these sessions is under way.
func (l *shells) end(which func(session.Key) bool) error {
	l.mu.Lock()
	var gone []*Shell
	for id, s := range l.all {
		if which(s.key) {
			gone = append(gone, s)
			delete(l.all, id)
		}
	}
	l.mu.Unlock()
	var errs []error
	for _, s := range gone {
		_ = s.Kill() // it is dropped in any case
		errs = append(errs, s.Run.Drop())
	}
	return errors.Join(errs...)
}

func (l *shells) add(s *Shell) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := 0
	for _, other := range l.all {
		if other.key == s.key {
			of++
		}
	}
	if of >= mostShells {
		return Refuse(TooManyShells, "", mostShells)
	}
	if l.all == nil {
		l.all = map[string]*Shell{}
	}
	l.n++
	s.ID = fmt.Sprintf("bash_%d", l.n)
	l.all[s.ID] = s
	return nil
}

func (l *shells) remove(s *Shell) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[s.ID] == s {
		delete(l.all, s.ID)
	}
}
