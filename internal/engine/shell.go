package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
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
	mostShells    = 16      // of one session, in the background
	shownOutput   = 30_000  // bytes of a stream, of which the middle is left out
	mostHidden    = 100_000 // names below the root that are closed
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

// RunOptions say where programs of the call run, with directories that they may write besides those of the configuration. They have the names that the call may not see, which takes a walk through the root.
func (c *Call) RunOptions(ctx context.Context, write []string) (o run.Options, err error) {
	root := c.cfg.WorkspaceRoot
	switch {
	case c.place.Calls != nil:
		return o, &run.Error{Reason: run.Place, Why: "the calls of this session run in a sandbox, where programs are not run for agents",
			Do: "run them in the sandbox itself"}
	case c.Engine.opened.chain != nil:
		return o, &run.Error{Reason: run.Place, Why: "policies are set, and nobody can ask them what a program reads",
			Do: "take policies out of [tools.fs], or do without programs"}
	case c.cfg.ReadOnly:
		return o, &run.Error{Reason: run.Place, Why: "read_only is set", Do: "take read_only out of [tools.fs]"}
	case root == "":
		return o, &run.Error{Reason: run.Place, Why: "no workspace is named for programs to run in", Do: "set workspace_root in [tools.fs], or give --root"}
	}
	o = run.Options{Root: c.free.Canonical(root), Data: c.dataDir, Network: c.programs.Network,
		Limits: run.Limits{Disk: c.programs.Disk, Processes: mostProcesses}}
	if o.Hidden, err = c.closedBelow(ctx, o.Root); err != nil {
		return o, err
	}
	o.Conceal = c.closedElsewhere(o.Root)
	for _, dir := range append(slices.Clone(c.programs.Write), write...) {
		dir = c.free.Canonical(dir)
		if k, _ := kindOf(c.free, dir); k != guardfs.KindDir {
			continue // a cache that is not there yet
		}
		for _, own := range append(slices.Clone(o.Conceal), o.Root, o.Data) {
			if within(own, dir) || within(dir, own) {
				return o, &run.Error{Reason: run.Place, Path: dir, Why: fmt.Sprintf("tools.run.write has %q, which holds, or lies in, %q", dir, own),
					Do: "name a narrower directory"}
			}
		}
		o.Write = append(o.Write, dir)
	}
	return o, nil
}

// closedBelow lists the names below root, relative to it, that the call may not see. A directory stands for all in it.
func (c *Call) closedBelow(ctx context.Context, root string) (out []string, err error) {
	all, err := c.free.With(allNames{}).Resolve(root, guardfs.Walk)
	if err != nil {
		return nil, err
	}
	defer all.Close() //nolint:errcheck // nothing was written through it
	seen, err := c.fs.Resolve(root, guardfs.Walk)
	if err != nil {
		return nil, err
	}
	defer seen.Close() //nolint:errcheck // nothing was written through it
	a, err := all.Dir()
	if err != nil {
		return nil, err
	}
	defer a.Close() //nolint:errcheck // nothing was written through it
	s, err := seen.Dir()
	if err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // nothing was written through it
	err = hiddenIn(ctx, a, s, "", &out)
	return out, err
}

// allNames lets all be seen, our own names too.
type allNames struct{ policy.AllowAll }

func (allNames) Dir(string, ...string) guardfs.DirVerdict {
	return guardfs.DirVerdict{Entry: func(string, guardfs.Kind) bool { return true }}
}

// hiddenIn adds the names that the directory all lists and seen, the same one as the call sees it, does not show. in is its path from the root.
func hiddenIn(ctx context.Context, all, seen *guardfs.Dir, in string, out *[]string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, _, err := all.List(nil)
	if errors.Is(err, fs.ErrPermission) {
		return nil // nor can the program
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		_, err := seen.Stat(e.Name)
		shut := err != nil && !errors.Is(err, fs.ErrNotExist) && !NotPermitted.In(err)
		if e.Kind == guardfs.KindDir {
			below, err := all.OpenDir(e.Name, true)
			if err != nil {
				if shut {
					*out = append(*out, in+e.Name)
				}
				continue // a program of this account can't open it either
			}
			show, err := seen.OpenDir(e.Name, true)
			if err == nil {
				err = hiddenIn(ctx, below, show, in+e.Name+"/", out)
				_, shut = show.Close(), false
			} else {
				shut, err = true, nil
			}
			if below.Close(); err != nil { //nolint:errcheck // nothing was written through it
				return err
			}
		}
		if shut {
			*out = append(*out, in+e.Name)
		}
		if len(*out) > mostHidden {
			return &run.Error{Reason: run.Place, Why: fmt.Sprintf("more than %d names below the root are closed to programs", mostHidden),
				Do: "close whole directories by deny_paths, or name a smaller root"}
		}
	}
	return nil
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
		c.secretsIn(home, 3, add)
	}
	return out
}

// secretsIn gives add what is in dir, and down to some directories deeper, of the class secret. In the home directory itself only
// names with a dot are looked into: a program keeps its keys there, and projects would take long.
func (c *Call) secretsIn(dir string, deep int, add func(string)) {
	h, err := c.free.Resolve(dir, guardfs.Walk)
	if err != nil {
		return
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	d, err := h.Dir()
	if err != nil {
		return
	}
	defer d.Close() //nolint:errcheck // nothing was written through it
	entries, _, _ := d.List(nil)
	for _, e := range entries {
		name := filepath.Join(dir, e.Name)
		switch {
		case c.classes.Of(name) == policy.Secret:
			add(name)
		case e.Kind == guardfs.KindDir && deep > 1 && (e.Name[0] == '.' || dir != c.programs.Home) && !slices.Contains(c.programs.Write, name) && e.Name != ".cache":
			c.secretsIn(name, deep-1, add)
		}
	}
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

// ShellNetwork says whether programs have the network.
func (e *Engine) ShellNetwork() bool { return e.programs.Network }

// ShellArgs say what runs, and how.
type ShellArgs struct {
	Line       string        // a command for a shell, which begins where the session's last one has ended; or else
	Args       []string      // a program, which begins in Dir if that is in the workspace
	Dir        string        //
	Env        []string      // besides that of all programs
	Timeout    time.Duration // 0: none
	Background bool          // it goes on after the call

	Stdin          io.Reader
	Stdout, Stderr io.Writer // nil: the shell keeps its output
	Terminal       bool      // it has a terminal of its own
	Network        bool      // whatever the configuration says
	Write          []string  // directories, besides those of the configuration
	Resume         string    // the run to go on with; "" is a new one

	Mark   string       // on Stdout, see Marks
	Marked func(*Shell) // is called for each, while nothing of the run goes on
}

// A Shell is a program that runs, or has run, in a run of its own.
type Shell struct {
	ID      string // "" unless it is in the background
	Line    string // what runs, for records
	Run     *run.Run
	Status  run.Status
	Timeout time.Duration
	Torn    bool   // of its run, see run.Info
	Reset   string // where it should have begun and could not, since that is outside of the workspace or gone

	out, err output
	kept     bool                 // they have what the program writes
	put      map[uint64]time.Time // see run.Upper.Put
	all      hash.Hash            // of both, in the order in which they came
	process  *run.Process
	ended    chan struct{} // is closed when Status is there
	failed   error
	key      session.Key
}

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

// hashed is the SHA-256 of all that the program wrote.
func (s *Shell) hashed() string {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	return hex.EncodeToString(s.all.Sum(nil))
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
	o, err := c.RunOptions(ctx, a.Write)
	if err != nil {
		return nil, err
	}
	o.Network = o.Network || a.Network
	o.Limits.Time = a.Timeout
	s := newShell(cmp.Or(a.Line, strings.Join(a.Args, " ")))
	s.Timeout, s.key = a.Timeout, c.key()
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
	if s.Torn = err == nil && s.Run.Info().Torn; err != nil || a.Line == "" && len(a.Args) == 0 {
		close(s.ended)
		return s, err
	}
	for _, name := range o.Hidden {
		if !slices.ContainsFunc(s.Run.Options.Hidden, func(h string) bool { return within(name, h) }) {
			return nil, errors.Join(&run.Error{Reason: run.Place, Path: name, Why: "the run was begun when less was closed", Do: "drop it, and begin anew"}, s.Run.Close())
		}
	}
	p := run.Program{Args: a.Args, Env: append(c.programs.environ(), a.Env...), Dir: a.Dir, Stdin: a.Stdin, Stdout: a.Stdout, Stderr: a.Stderr, Terminal: a.Terminal}
	if p.Stdout == nil {
		p.Stdout, s.kept = &s.out, true
	}
	if p.Stderr == nil && !a.Terminal {
		p.Stderr = &s.err
	}
	if a.Line != "" {
		p.Dir = c.shells.begin(c.key(), o.Root)
	}
	if k, _ := kindOf(c.fs, p.Dir); k != guardfs.KindDir || !within(p.Dir, o.Root) {
		s.Reset, p.Dir = p.Dir, o.Root
	}
	var last strings.Builder // the directory in which a shell has ended
	var marks *Marks
	switch {
	case a.Line != "":
		marks = &Marks{To: p.Stdout, Mark: NewMark()}
		marks.At = func() { marks.To = &last }
		p.Args = c.shellOf(a.Line, marks.Mark[1:])
	case a.Mark != "":
		marks = &Marks{To: p.Stdout, Mark: a.Mark}
		marks.At = func() { s.paused(a.Marked) }
	}
	if marks != nil {
		p.Stdout = marks
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
		if s.Status, s.failed = s.process.Wait(); marks != nil {
			s.failed = errors.Join(s.failed, marks.End())
		}
		if last.Len() > 0 && !a.Background {
			shells.dir.Set(s.key, last.String())
		}
	}()
	return s, nil
}

// paused has use look at the run while its program stands still.
func (s *Shell) paused(use func(*Shell)) {
	if s.process.Pause() == nil {
		use(s)
		_ = s.process.Resume() // it may have been killed
	}
}

// shellOf gives the arguments of a shell that runs a line, and says behind a mark on standard output in which directory it ends.
func (e *Engine) shellOf(line, mark string) []string {
	shell := "/bin/sh"
	if k, _ := kindOf(e.free, "/bin/bash"); k == guardfs.KindFile {
		shell = "/bin/bash"
	}
	return []string{shell, "-c", `trap 'printf "\000` + mark + `%s" "$PWD"' EXIT; ` + line, path.Base(shell)}
}

// Ended waits for the end of the shell, or of ctx. A program that a limit ended is a refusal, for nothing of it is kept.
func (s *Shell) Ended(ctx context.Context) error {
	select {
	case <-s.ended:
	case <-ctx.Done():
		_ = s.process.Kill()
		<-s.ended
		return ctx.Err()
	}
	return s.failed
}

// Pass is Ended for a program of a person: it passes signals on, but for those that a terminal has sent to the program, too.
func (s *Shell) Pass(ctx context.Context, signals <-chan os.Signal) error {
	for {
		select {
		case sig := <-signals:
			if n, ok := sig.(syscall.Signal); ok {
				_ = s.process.Signal(n) // it may have ended
			}
		case <-s.ended:
			return s.failed
		case <-ctx.Done():
			return s.Ended(ctx)
		}
	}
}

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
		most = s.Timeout.String()
	case run.LimitDisk:
		most = strconv.FormatInt(s.Run.Options.Limits.Disk, 10) + " bytes"
	}
	return Refuse(RunEnded, "", RunLimit{s.Status.Limit, most})
}

// Apply makes of the workspace what the program has left there until now, as one change of the call. One that has not ended stands still meanwhile,
// and goes on over a workspace that has its changes.
func (s *Shell) Apply(ctx context.Context, c *Call, partial, dry bool) (*Ran, error) {
	a := RunArgs{Upper: s.Run.Upper(), Command: s.Line, Exit: s.Status.Code, Partial: partial, DryRun: dry, KeepIgnored: c.programs.KeepIgnored}
	if s.kept {
		a.Output = s.hashed()
	}
	a.Upper.Put, a.Live = s.put, s.Runs()
	ran, err := c.ApplyRun(ctx, a)
	if err != nil || !a.Live || dry {
		return ran, err
	}
	var made []string
	for _, ch := range ran.Changes {
		o, _, err := c.free.Lstat(ch.Path)
		if err != nil {
			continue // it is gone
		}
		if s.put == nil {
			s.put = map[uint64]time.Time{}
		}
		s.put[o.Info.ID.Ino] = o.Info.ChangeTime
		if ch.After == guardfs.KindDir && ch.Before != guardfs.KindDir {
			made = append(made, strings.TrimPrefix(ch.Path, a.Upper.Root+"/"))
		}
	}
	return ran, s.Run.Seal(made)
}

// Kill ends the program of the shell, and waits until it has ended.
func (s *Shell) Kill() error {
	_ = s.process.Kill() // it may have ended
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

// begin is where a session's next shell begins.
func (l *shells) begin(k session.Key, root string) string {
	if at := l.dir.Get(k); within(at, root) {
		return at
	}
	return root
}

// Marks passes on what a program writes, and takes out a mark that the program was told: it begins with a NUL and is made anew
// for each program, so that nothing has it by chance. At is called for each one, when all before it has been passed on, and may change To.
type Marks struct {
	To   io.Writer
	Mark string // of NewMark
	At   func()

	held []byte // what may be the beginning of a mark
}

// NewMark makes a mark for Marks. Without the NUL before it, it can be an argument or a variable.
func NewMark() string { return "\x00" + rand.Text() }

func (m *Marks) Write(b []byte) (int, error) {
	n, all := len(b), append(m.held, b...)
	m.held = nil
	for {
		before, after, found := bytes.Cut(all, []byte(m.Mark))
		if !found {
			break
		}
		if _, err := m.To.Write(before); err != nil {
			return 0, err
		}
		m.At()
		all = after
	}
	if i := bytes.LastIndexByte(all, 0); i >= 0 && len(all)-i < len(m.Mark) && m.Mark[:len(all)-i] == string(all[i:]) {
		m.held = bytes.Clone(all[i:])
		all = all[:i]
	}
	_, err := m.To.Write(all)
	return n, err
}

// End passes on what was held back.
func (m *Marks) End() error {
	_, err := m.To.Write(m.held)
	m.held = nil
	return err
}
