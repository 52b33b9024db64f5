package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	acpdialect "moltisfs/internal/dialect/acp"
	"moltisfs/internal/serve"
	"moltisfs/internal/serve/acp"
	"moltisfs/internal/serve/mcp"
)

func acpCommand() *command {
	return &command{
		name:   "acp",
		serves: true,
		short:  "guard an agent's file access from your editor (Agent Client Protocol)",
		args:   "[OPTIONS] -- AGENT [ARGUMENT…]", min: 1, max: 1 << 20,
		long: `An editor starts this in the place of its agent. It starts the agent and passes the
protocol through in both directions, but for the files that the agent reads and writes by it
(fs/read_text_file, fs/write_text_file): those pass policy, approval, checkpoint and audit. They are
read and written in the editor, unsaved text included, where the editor has these methods, and else
on the disk. The agent is offered them in any case.

An agent that opens files by itself, or runs programs, is not held by this. --terminal says what
becomes of the programs that it runs by way of the editor: "pass" lets them, "refuse" none, "ask"
asks about each one, and shows its arguments, environment and directory. For all else confine the
agent's own account.

--approve says who approves changes while require_approval is true. "editor" has the editor ask its
user, with the diff, as it asks for the agent itself; the others are as for moltis-fs mcp.

Without --root and configuration each session may touch its working directory, as the editor names
it, and nothing else.

--with-mcp has the agent start a small MCP server too, whose calls come here: the tools, with the
same policy, history and questions, and with the editor's text of the files that they name. What
searches directories searches what is saved. Changes of unsaved text are undone by it
(checkpoint_restore); moltis-fs checkpoint on the command line knows no editor and changes the disk.

What the agent writes to standard error goes to ours. It ends with the editor, and we with it, with
its exit status. SIGINT and SIGTERM are passed on. What the agent has started ends too, unless it
went into a process group of its own; so does the agent where we are killed (not on Windows). At SIGHUP the configuration is read again, as
moltis-fs mcp does it.`,
		options: options("approve dialect tool-prefix read-only"+onSuite,
			opt("terminal", "WHAT", "whether the agent may run programs through the "+
				"editor (default: pass)", "pass", "refuse", "ask"),
			opt("with-mcp", "", "also give the agent our tools"),
		),
		examples: []string{
			"moltis-fs acp -- gemini --acp",
			"moltis-fs acp --with-mcp --terminal ask -- claude-agent-acp",
			"moltis-fs acp --root ~/project --approve queue -- my-agent --verbose",
		},
		run: serveACP,
	}
}

func serveACP(ctx context.Context, in *invocation) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	o := acp.Options{Principal: in.option("principal"), Session: in.option("session"), Run: runName(),
		Terminal: cmp.Or(in.option("terminal"), "pass"),
		Tell: func(format string, a ...any) {
			fmt.Fprintf(in.err, program+": "+format+"\n", a...)
		}}
	if how := cmp.Or(in.option("approve"), "editor"); how != "editor" {
		if o.Approver, err = in.approveBy(how); err != nil {
			return err
		}
	}
	if o.Grants, err = in.grants(); err != nil {
		return err
	}
	if in.option("root") == "" && !in.configured() {
		o.Confine = confined
	}
	s, err := in.openReloadable(ctx, nil, nil)
	if err != nil {
		return err
	}
	defer func() { err = closing(s, err) }()
	var through *relay
	if in.given("with-mcp") {
		if through, err = in.openRelay(s, s.now.cfg); err != nil {
			return err
		}
		defer through.Close()
		o.Server = through.mcpServer
	}
	// what we ignore the agent's programs would ignore too; what we are told of they have as usual
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	came := make(chan os.Signal, 4)
	signal.Notify(came, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(came)
	errs := in.err
	if errs == io.Writer(&atWork) {
		errs = atWork.w // the terminal itself: to the agent it is one
	}
	agent, err := acp.Start(in.args, errs)
	if err != nil {
		hint := ""
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			hint = "name the agent's program after --, as the editor would start it"
		}
		return misuse(hint, "the agent %s can't be started: %v", in.args[0], err)
	}
	in.tellHeld(s.now.cfg, o)
	defer s.hearing(in, func() { agent.Signal(syscall.SIGHUP) })()
	proxy := acp.New(guarded{s}, in.out, agent.In, o)
	if through != nil {
		go through.serve(ctx, proxy)
	}
	go func() {
		for sig := range came { // they are the agent's, whose end is ours
			agent.Signal(sig)
			go agent.Late(os.Exit)
		}
	}()
	_ = proxy.Serve(ctx, in.in, agent, agent.HangUp) // its end is the agent's, or the editor's
	if status := agent.Wait(); status != 0 {
		return &exitError{status: status}
	}
	return nil
}

// guarded is the file methods, each call under the configuration that holds when it comes.
type guarded struct{ *reloadable }

func (g guarded) under() (d *acpdialect.Dialect, done func()) {
	now, done := g.use()
	return acpdialect.Over(now.e, now.cfg.Tools.ACP), done
}

func (g guarded) Call(ctx context.Context, c dialect.Call) (dialect.Answer, error) {
	d, done := g.under()
	defer done()
	return d.Call(ctx, c)
}

func (g guarded) Enter(ctx context.Context, c dialect.Call, cwd string) (string, dialect.Answer, error) {
	d, done := g.under()
	defer done()
	return d.Enter(ctx, c, cwd)
}

func (g guarded) Offers(method string) bool {
	d, done := g.under()
	defer done()
	return d.Offers(method)
}

// confined says what is wrong with a working directory as all that an agent may touch.
func confined(dir string) string {
	if !filepath.IsAbs(dir) {
		return "the directory " + dir + " is not absolute"
	}
	if what := tooWide(dir); what != "" {
		return "the session's directory is " + what + "; open a project, or have the operator start " +
			program + " acp with --root"
	}
	return ""
}

// tellHeld says what is open, and what is not held.
func (in *invocation) tellHeld(cfg config.Config, o acp.Options) {
	open := in.openText(cfg)
	if o.Confine != nil {
		open = "the working directory of each session and nothing else (no --root, no configuration)"
	}
	in.tellOpen(cfg, open, in.approves("editor"))
	fmt.Fprintf(in.err, "%s: not held by this: %s\n", program, unheld(in.args[0]))
	if o.Terminal == "pass" {
		fmt.Fprintf(in.err, "%s: programs that the agent runs are not held by this (--terminal pass)\n",
			program)
	}
}

// unheldBy lists by their programs what agents are known to do around fs/read_text_file and fs/write_text_file; docs/editors.md has their versions.
var unheldBy = []struct{ program, opens string }{
	{"gemini", "files that the agent opens by itself, as gemini does to read"},
	{"opencode", "files that the agent opens by itself, which is all that opencode does with its own tools; give it --with-mcp, and deny those"},
	{"claude-agent-acp", "files that the agent opens by itself, which is all that claude-agent-acp does with its own tools; give it --with-mcp, and deny those"},
	{"codex-acp", "files that the agent opens by itself, which is all that codex does with its own tools; give it --with-mcp, and sandbox it"},
	{"copilot", "files that the agent opens by itself, which is all that copilot does; it takes no tools by --with-mcp either: nothing is guarded here"},
}

// unheld names the doors of the program agent to files that moltis-fs does not guard.
func unheld(agent string) string {
	base := filepath.Base(agent)
	for _, a := range unheldBy {
		if strings.TrimSuffix(base, filepath.Ext(base)) == a.program {
			return a.opens
		}
	}
	return "files that the agent opens by itself"
}

// A relay is our MCP server as the agent has it: a program that passes bytes on, to a socket.
type relay struct {
	net.Listener
	dialect dialect.Dialect
	o       mcp.Options
	self    string
}

// relaySockets is how many proxies may have one on one data directory.
const relaySockets = 64

func (in *invocation) openRelay(d dialect.Dialect, cfg config.Config) (*relay, error) {
	self, err := ownProgram()
	if err != nil {
		return nil, err
	}
	dir, err := in.dataDir()
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "serve")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the socket: %w", err)
	}
	l := &relay{dialect: d, self: self, o: mcp.Options{Principal: in.option("principal"),
		Version: readBuild().Version,
		Instructions: in.instructions(cfg, d.Definitions()) +
			" Text that is not saved in the user's editor is read and changed there; a search of a " +
			"directory is of what is saved.",
		Asking: asking(cfg, d.Definitions(), in.option("approve"))}}
	for i := range relaySockets {
		l.Listener, err = serve.Listen(fmt.Sprintf("unix:%s/acp-%d.sock", dir, i), false)
		if err == nil {
			return l, nil
		}
	}
	if e, ok := errors.AsType[*serve.AddressError](err); ok {
		return nil, misuse(e.Do, "%v", e)
	}
	return nil, err
}

func (l *relay) mcpServer(key string) acp.Server {
	return acp.Server{Name: program, Command: l.self, Env: []struct{}{},
		Args: []string{relayCommand().name, l.Addr().String(), key}}
}

// serve serves each connection that shows the key of a session.
func (l *relay) serve(ctx context.Context, p *acp.Proxy) {
	for {
		c, err := l.Accept()
		if err != nil {
			return // it was closed
		}
		go func() {
			defer c.Close()
			if _, known, ours := serve.Peer(c); known && !ours {
				return
			}
			in := bufio.NewReader(c)
			key, err := in.ReadString('\n')
			if key = strings.TrimSpace(key); err != nil || !p.Knows(key) {
				return
			}
			_ = mcp.Serve(ctx, filled{l.dialect, p, key}, in, c, l.o) // its client says how it ended
		}()
	}
}

// filled is a dialect whose calls are those of a session.
type filled struct {
	dialect.Dialect
	p   *acp.Proxy
	key string
}

func (f filled) Call(ctx context.Context, c dialect.Call) (dialect.Answer, error) {
	if err := f.p.Fill(ctx, f.key, &c); err != nil {
		return nil, err
	}
	return f.Dialect.Call(ctx, c)
}

// relayCommand passes standard input on to the socket of a proxy, and its answers back. The agent starts it.
func relayCommand() *command {
	return &command{
		name: "acp-tools", hidden: true, short: "pass MCP on to a moltis-fs acp", args: "SOCKET KEY",
		min: 2, max: 2,
		run: func(ctx context.Context, in *invocation) error {
			c, err := net.Dial("unix", in.arg(0))
			if err != nil {
				return misuse("", "%s acp, which offers its tools there, has ended: %v", program, err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, in.arg(1)+"\n"); err != nil {
				return err
			}
			go func() {
				_, _ = io.Copy(c, in.in) // its end is told
				_ = c.(*net.UnixConn).CloseWrite()
			}()
			_, err = io.Copy(in.out, c)
			return err
		},
	}
}
