package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/edit"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/lazy"
)

// BashArgs are the arguments of Bash.
type BashArgs struct {
	Command     string  `json:"command"`
	Description *string `json:"description,omitempty" doc:"what it does, in five to ten words"`
	Timeout     *int    `json:"timeout,omitempty" min:"1000" doc:"milliseconds (default 120000)"`
	Background  *bool   `json:"run_in_background,omitempty" doc:"go on at once; BashOutput has what comes of it"`
	Partial     *bool   `json:"partial,omitempty" doc:"make the changes that are allowed although others are not"`
}

func (a *BashArgs) check() error {
	if strings.TrimSpace(a.Command) == "" {
		return bad("send the command to run", "command is empty")
	}
	return nil
}

func (a *BashArgs) asked() engine.Asked { return engine.Asked{Pattern: a.Command} }

// BashOutputArgs are the arguments of BashOutput.
type BashOutputArgs struct {
	ID      string  `json:"bash_id"`
	Filter  *string `json:"filter,omitempty" doc:"regular expression: only lines that match; the others are gone"`
	Partial *bool   `json:"partial,omitempty" doc:"as in Bash"`
}

// KillShellArgs are the arguments of KillShell.
type KillShellArgs struct {
	ID      string `json:"shell_id"`
	Partial *bool  `json:"partial,omitempty" doc:"as in Bash"`
}

func (a *BashOutputArgs) check() error {
	if _, err := regexp.Compile(value(a.Filter)); err != nil {
		return bad("send a regular expression, or leave it out", "the filter can't be used: %v", err)
	}
	return nil
}

// Bash is the payload of kind "bash": of a command that has ended, or of one in the background.
type Bash struct {
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Status string `json:"status"` // "completed", "killed" or "running"
	// ExitCode is there once it has ended: that of a shell, so 128 and the signal if one ended it.
	ExitCode *int     `json:"exit_code,omitempty"`
	ShellID  string   `json:"shell_id,omitempty"`        // of one in the background
	LeftOut  int64    `json:"output_left_out,omitempty"` // bytes from the middle of the output
	CwdReset string   `json:"cwd_not_found,omitempty"`   // the directory in which it should have begun: it began in the workspace's
	Changes  *Changes `json:"changes,omitempty"`         // left out while it runs, and where nothing was changed
	Hints    []string `json:"hints,omitempty"`           // on errors that come of how it was run
	Diff     string   `json:"diff,omitempty"`            // of [Running.Diff]: nothing was changed
	Kept     string   `json:"kept,omitempty"`            // the run, where its changes were not made and may be yet
	Left     string   `json:"-"`                         // where it asked for its changes by [engine.CommitVariable], or ""
	Note     string   `json:"note,omitempty"`            // which names of arguments were taken for which
	Warning  string   `json:"warning,omitempty"`
}

func (*Bash) Kind() string     { return "bash" }
func (*Bash) payload()         {}
func (b *Bash) noted() *string { return &b.Note }
func (b *Bash) warn(w string)  { b.Warning = joined(b.Warning, w) }

// Text is the output, as Claude Code has it, and what is to be said of it.
func (b *Bash) Text() string {
	var l lines
	for _, out := range []string{b.Stdout, b.Stderr} {
		l.add(strings.TrimRight(out, "\n") != "", "%s\n", strings.TrimRight(out, "\n"))
	}
	l.add(b.Status == "running", "[%s is running]\n", b.ShellID)
	l.add(b.Status == "killed", "[%s was ended]\n", cmp.Or(b.ShellID, "it"))
	l.add(b.ExitCode != nil && *b.ExitCode != 0 && b.Status != "killed", "[exit code %d]\n", value(b.ExitCode))
	for line := range strings.Lines(b.Told()) {
		if line = strings.TrimSuffix(line, "\n"); line[0] != ' ' {
			line = "[" + line + "]"
		}
		l.WriteString(line + "\n")
	}
	return cmp.Or(strings.TrimSuffix(l.String(), "\n"), "[no output, and nothing was changed]")
}

// Told gives the part of Text beside the output of a program: its changes, and hints.
func (b *Bash) Told() string {
	var l lines
	l.add(b.CwdReset != "", "it began in the workspace, since %s is gone or not in it\n", quote(b.CwdReset))
	if b.Changes != nil {
		l.WriteString(b.Changes.text())
	}
	for _, h := range b.Hints {
		l.add(true, "%s\n", h)
	}
	l.add(b.Note != "", "%s\n", b.Note)
	l.add(b.Kept != "", "the run is kept: moltis-fs run --resume %s asks about it, --drop %s removes it\n", b.Kept, b.Kept)
	l.add(b.Warning != "", "warning: %s\n", b.Warning)
	return strings.TrimSuffix(l.String(), "\n")
}

// Changes lists the paths of the workspace that a program has changed, as one change.
type Changes struct {
	CheckpointID *string     `json:"checkpoint_id"`
	Paths        []ChangeRun `json:"paths"`
	LeftOut      int         `json:"paths_left_out,omitempty"`
	Added        int         `json:"added"` // lines, of all
	Removed      int         `json:"removed"`
	// Ignored counts the files among them that git ignores, which are not in the checkpoint: no undo brings them back.
	Ignored int `json:"ignored_files,omitempty"`
	// Stays are the paths whose changes were not made, each with the reason.
	Stays        []Left `json:"not_changed,omitempty"`
	StaysLeftOut int    `json:"not_changed_left_out,omitempty"`
	DryRun       bool   `json:"dry_run,omitempty"`
}

// ChangeRun is one path that a program has changed.
type ChangeRun struct {
	Path    string `json:"file_path"`
	Change  string `json:"change"`          // "new", "changed", "deleted", or what it became: "now a symlink"
	Added   int    `json:"added,omitempty"` // lines
	Removed int    `json:"removed,omitempty"`
	Files   int    `json:"files,omitempty"`   // in a directory that came or went as a whole
	Ignored bool   `json:"ignored,omitempty"` // by git
}

// mostPaths is how many paths of a run an answer has.
const mostPaths = 100

// changesOf tells what a run has changed; nil is nothing.
func changesOf(ran *engine.Ran) *Changes {
	if len(ran.Changes) == 0 && len(ran.Left) == 0 {
		return nil
	}
	ch := &Changes{CheckpointID: pointer(ran.Checkpoint), Paths: []ChangeRun{}, Ignored: ran.Ignored.Files, DryRun: ran.DryRun}
	for _, one := range ran.Changes {
		ch.Added, ch.Removed = ch.Added+one.Added, ch.Removed+one.Removed
		if len(ch.Paths) == mostPaths {
			ch.LeftOut++
			continue
		}
		what := "changed"
		switch {
		case one.Before == guardfs.KindAbsent:
			what = "new"
		case one.After == guardfs.KindAbsent:
			what = "deleted"
		case one.Before != one.After:
			what = "now a " + one.After.String()
		}
		ch.Paths = append(ch.Paths, ChangeRun{one.Path, what, one.Added, one.Removed, one.Files, one.Ignored})
	}
	ch.stay(ran.Left)
	return ch
}

// stay adds paths whose changes were not made.
func (ch *Changes) stay(blocked []engine.Blocked) {
	ch.Stays = leftOf(blocked[:min(mostPaths, len(blocked))])
	ch.StaysLeftOut = len(blocked) - len(ch.Stays)
}

func (ch *Changes) text() string {
	var l lines
	verb := map[bool]string{false: "changed", true: "would change"}[ch.DryRun]
	if n := len(ch.Paths) + ch.LeftOut; n > 0 {
		l.add(true, "%s %s, +%d -%d", verb, plural(n, "path"), ch.Added, ch.Removed)
		l.add(ch.CheckpointID != nil, " (checkpoint %s)", value(ch.CheckpointID))
		l.WriteString("\n")
	}
	for _, p := range ch.Paths {
		l.add(true, "  %s %s", edit.ShownPath(p.Path), p.Change)
		l.add(p.Added+p.Removed > 0, " +%d -%d", p.Added, p.Removed)
		l.add(p.Files > 1, ", with %s", plural(p.Files, "file"))
		l.WriteString("\n")
	}
	l.add(ch.LeftOut > 0, "  and %d more\n", ch.LeftOut)
	l.add(ch.Ignored > 0, "%s of that: git ignores them, so the checkpoint does not have them and undo does not bring back what they were\n", plural(ch.Ignored, "file"))
	for _, s := range ch.Stays {
		l.add(true, "not changed: %s: %s\n", edit.ShownPath(s.Path), s.Why)
	}
	l.add(ch.StaysLeftOut > 0, "not changed: and %d more\n", ch.StaysLeftOut)
	return l.String()
}

// diffOf is a unified diff of what a run would change.
func diffOf(ran *engine.Ran) string {
	var b strings.Builder
	for _, t := range ran.Targets {
		b.WriteString(diff.Unified(t.True, diff.EndsOf(t.Before.Exists, t.After.Kind != guardfs.KindAbsent), engine.Hunks(t)))
	}
	return b.String()
}

// shellNames are the names that a background shell's id has with other agents.
const shellNames = "id shell shellid bashid bash taskid task processid"

var bashTool = define[BashArgs](toolRow{
	Name:  "Bash",
	Title: "Run a command",
	Description: "Runs a command in bash. It sees the machine read-only, and what it changes in the workspace becomes one change when it has ended: checked, " +
		"maybe asked about, and undone like an Edit. /tmp is new in each call; the working directory stays. A command that takes too long changes nothing.",
	Changes: true, OwnTime: true,
	Search: dialect.Search{Hint: "run a command or a program in a shell"},
	also:   []string{"exec"}, world: true,
	Follows: engine.Changing,
	aliases: []args.Alias{
		{Theirs: "cmd script commandline shellcommand code bashcommand input line", Ours: "command"},
		{Theirs: "timeoutms timeoutmillis", Ours: "timeout"},
		{Theirs: "background async isbackground", Ours: "run_in_background"},
		{Theirs: "restart dangerouslydisablesandbox sandbox login", Says: "false", Hint: "leave it out: there is one way to run it"},
		{Theirs: "workdir workingdir workingdirectory cwd dir directory", Hint: "begin the command with cd DIRECTORY &&"},
		{Theirs: "timeoutsecs timeoutseconds timeoutsec", Hint: "send timeout, in milliseconds"},
	},
}, runBash)

var bashOutputTool = define[BashOutputArgs](toolRow{
	Name:        "BashOutput",
	Title:       "See what a command in the background has written",
	Description: "Gives the output since the last call. When the command has ended, its changes are made by this call.",
	Changes:     true, OwnTime: true,
	Search:  dialect.Search{Wanted: true, Hint: "output of a command that runs in the background"},
	Follows: engine.Changing,
	aliases: []args.Alias{{Theirs: shellNames, Ours: "bash_id", Quiet: true}, {Theirs: "block wait", Says: "*"}},
}, func(ctx context.Context, s *Suite, c *engine.Call, a *BashOutputArgs) (Payload, error) {
	sh, err := c.FindShell(a.ID)
	if err != nil {
		return nil, err
	}
	b, err := s.finish(ctx, c, sh, ending{partial: value(a.Partial)}, nil)
	if b != nil && a.Filter != nil {
		only := regexp.MustCompile(*a.Filter) // it was checked
		for _, out := range []*string{&b.Stdout, &b.Stderr} {
			var l lines
			for line := range strings.Lines(*out) {
				l.add(only.MatchString(line), "%s", line)
			}
			*out = l.String()
		}
	}
	return told(b, err)
})

var killShellTool = define[KillShellArgs](toolRow{
	Name:        "KillShell",
	Title:       "End a command in the background",
	Description: "Ends the command, and makes the changes that it has left.",
	Changes:     true, OwnTime: true,
	Search:  dialect.Search{Wanted: true, Hint: "stop a command that runs in the background"},
	Follows: engine.Changing,
	aliases: []args.Alias{{Theirs: shellNames, Ours: "shell_id", Quiet: true}},
}, func(ctx context.Context, s *Suite, c *engine.Call, a *KillShellArgs) (Payload, error) {
	sh, err := c.FindShell(a.ID)
	if err != nil {
		return nil, err
	}
	e := ending{partial: value(a.Partial), killed: sh.Runs()}
	return told(s.finish(ctx, c, sh, e, sh.Kill()))
})

// told is b as the answer of a tool.
func told(b *Bash, err error) (Payload, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}

func runBash(ctx context.Context, s *Suite, c *engine.Call, a *BashArgs) (Payload, error) {
	most := s.engine.ShellTime()
	limit := min(2*time.Minute, most)
	if a.Timeout != nil {
		if limit = time.Duration(*a.Timeout) * time.Millisecond; limit > most {
			return nil, bad(fmt.Sprintf("send at most %d, or run it in the background", most.Milliseconds()), "timeout is over the limit of %s", most)
		}
	}
	if value(a.Background) {
		sh, err := c.Shell(ctx, engine.ShellArgs{Line: a.Command, Background: true})
		if err != nil {
			return nil, err
		}
		return &Bash{Status: "running", ShellID: sh.ID}, nil
	}
	sh, err := c.Shell(ctx, engine.ShellArgs{Line: a.Command, Timeout: limit})
	if err != nil {
		return nil, err
	}
	return told(s.finish(ctx, c, sh, ending{partial: value(a.Partial)}, sh.Ended(ctx, nil)))
}

// ending says what becomes of the changes of a program.
type ending struct {
	killed  bool // it was ended by the call
	partial bool // the changes that are allowed are made although others are not
	keep    bool // the run is kept if they are not made
	resumed bool // the run was there before, and is kept if the program fails, too
	diff    bool // none is made: the answer has the diff
}

// finish gives the output of a shell, and where it has ended makes its changes. A refusal to make them has the output, too. failed is the error with
// which it ended.
func (s *Suite) finish(ctx context.Context, c *engine.Call, sh *engine.Shell, e ending, failed error) (*Bash, error) {
	b := &Bash{Status: "running", ShellID: sh.ID, CwdReset: sh.Reset}
	ended := !sh.Runs()
	b.Stdout, b.Stderr, b.LeftOut = sh.Written()
	if !ended {
		return b, nil
	}
	if b.Status, b.Left = "completed", sh.Left; e.killed || sh.Status.Limit != "" {
		b.Status = "killed"
	}
	if sh.Ran() {
		b.ExitCode, b.Hints = &sh.Status.Code, shellHints(b.Stderr+b.Stdout, sh.Run.Options.Network)
	}
	if sh.Status.Err != "" {
		b.warn(sh.Status.Err)
	}
	if sh.Run.Torn() {
		b.warn("the machine was started anew since this run: files in it may be empty or cut, so look at them")
	}
	err, keep := cmp.Or(failed, sh.Limited()), e.resumed
	if err == nil {
		var ran *engine.Ran
		if ran, err = sh.Apply(ctx, c, e.partial, e.diff); err == nil {
			b.Changes = changesOf(ran)
		}
		keep = e.keep && (err != nil || e.diff && b.Changes != nil)
		if e.diff && keep && err == nil {
			b.Diff = diffOf(ran)
		}
	}
	if keep {
		b.Kept = sh.Run.ID()
		err = errors.Join(err, sh.Run.Close())
	} else if gone := c.EndShell(sh); gone != nil {
		b.warn("the run could not be removed: " + gone.Error())
	}
	if err != nil {
		return nil, withOutput(err, b)
	}
	return b, nil
}

// withOutput is the refusal of the changes of a program, with what it has written.
func withOutput(err error, b *Bash) error {
	no := engine.Reason(err)
	if no == nil {
		return err
	}
	if blocked, ok := no.Facts.([]engine.Blocked); ok {
		b.Changes = &Changes{Paths: []ChangeRun{}}
		b.Changes.stay(blocked)
	}
	own := *no
	own.Err = &outputError{no.Err, b}
	return &own
}

// outputError carries the output of a program to the refusal of its changes.
type outputError struct {
	err error // or nil
	b   *Bash
}

func (e *outputError) Error() string { return fmt.Sprint("the program has ended: ", e.err) }
func (e *outputError) Unwrap() error { return e.err }

// signs are the errors by which programs show that they meet the limits of a run, with what to do. The last is for those without a network.
var signs = []struct {
	sign func() *regexp.Regexp
	hint string
}{
	{lazy.Regexp(`(?i)cross-device|EXDEV`), "a directory that was there before can't be renamed by rename(2) here: mv does it"},
	{lazy.Regexp(`(?i)read-only file system|EROFS`),
		"outside of the workspace and /tmp nothing can be written; the operator can open a directory by write in [tools.run]"},
	{lazy.Regexp(regexp.QuoteMeta(syscall.EOVERFLOW.Error()) + `|EOVERFLOW`), "a file of another user or group can't be changed here"},
	{lazy.Regexp(`(?i)could not resolve host|temporary failure in name resolution|network is unreachable|EAI_AGAIN|ENETUNREACH|no such host|name or service not known`),
		"programs have no network; the operator can change that by network = true in [tools.run]"},
}

// shellHints are for a program that wrote out, with the network or without.
func shellHints(out string, network bool) (hints []string) {
	for i, one := range signs {
		if one.sign().MatchString(out) && (i < len(signs)-1 || !network) {
			hints = append(hints, one.hint)
		}
	}
	return hints
}

// Command is a program for [Suite.Run]: its Args, Dir, Stdin, Stdout, Stderr, and what it may do besides.
type Command = engine.ShellArgs

// Running is a program that a person runs by [Suite.Run], and how.
type Running struct {
	Command
	Signals <-chan os.Signal
	Diff    bool // change nothing and keep the run: the answer has the diff
	Partial bool // make the changes that are allowed, although others are not
}

// Run runs a program for a person, and makes what it has changed in the workspace one change. A run whose changes were not made is kept:
// the answer, a refusal too, has its id. [tools.policy] is not asked: it is about the tools of agents.
func (s *Suite) Run(ctx context.Context, as Call, p Running) (Payload, error) {
	as.Tool = "run"
	c := engine.NewCall(as, "tools", as.Tool)
	c.Trace.Asked.Pattern = strings.Join(p.Args, " ")
	out, err := engine.Do(ctx, s.engine, c, engine.Operation[struct{}, answer]{
		Changes: !p.Diff, Own: true, Time: longestProgram,
		Run: func(ctx context.Context, _ struct{}) (answer, error) {
			sh, err := c.Shell(ctx, p.Command)
			if err != nil {
				return answer{}, err
			}
			b, err := s.finish(ctx, c, sh, ending{partial: p.Partial, keep: true, resumed: p.Resume != "", diff: p.Diff}, sh.Ended(ctx, p.Signals))
			return answer{Payload: b}, err
		},
		Refuse: func(_ context.Context, c *engine.Call, _ struct{}, no *engine.Refusal) (answer, string) {
			r := s.refuse(c, as.Tool, nil, no)
			return answer{Payload: r}, r.Reason
		},
	})
	return out.Payload, err
}

// longestProgram is how long a person may have a program run.
const longestProgram = 30 * 24 * time.Hour
