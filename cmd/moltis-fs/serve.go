package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"moltisfs/internal/dialect/capability"
	"moltisfs/internal/hook"
	"moltisfs/internal/issuer"
	"moltisfs/internal/serve"
	"moltisfs/internal/serve/approvals"
	"moltisfs/internal/serve/jsonrpc"
	"moltisfs/internal/serve/mcp"
)

func serveCommand() *command {
	return &command{
		name:   "serve",
		serves: true,
		short:  "serve the tools over HTTP: MCP and JSON-RPC",
		long: `Answers MCP at /mcp (streamable HTTP, revisions 2024-11-05 to 2026-07-28) and JSON-RPC at
/rpc: capabilities.list, capabilities.describe, capabilities.invoke, js.run,
session.create, session.end and session.events. Calls without a session_id are of one session, which
is this run of the server. GET /healthz says whether it serves, GET /readyz whether calls can be
carried out.

With --console there is a page for operators at /console/, as of moltis-fs console.

For operators there are approvals.list, show, approve and deny, a WebSocket at /ws that tells of
each question as Moltis' gateway does (exec.approval.requested), GET /metrics for Prometheus, and the
methods of docs/http.md that look at history, audit log, trash and tokens and take changes back.

Each request shows a token (moltis-fs token create) as "Authorization: Bearer TOKEN". A Unix socket
takes our own user without one, with the authority of an operator besides. "unix:" without a path is
a socket in the data directory.

It listens on loopback only. There is no TLS: for other machines put a proxy before it, whose name
--allow-host gives.

--approve says who approves changes while require_approval is true. "queue" waits for an answer from
elsewhere, as of moltis-fs approvals; "terminal" asks on the controlling terminal; "yes" approves
everything but what runs code later, "yes-exec" that too; "never" refuses everything at once.`,
		options: options("approve dialect tool-prefix read-only config policies-json data-dir root principal",
			many("listen", "ADDRESS", "127.0.0.1:PORT, with 0 for any port, or unix:PATH"),
			many("allow-host", "NAME", "a name by which requests may call this server"),
			many("allow-origin", "ORIGIN", "a web page that may send requests, as https://host:port"),
			opt("log-format", "FORM", "how standard error is written (default: text)", "text", "json"),
			opt("beyond-loopback", "", "let other machines in, without TLS"),
			opt("console", "", "serve a page for operators at /console/, and print its address with a code"),
		),
		examples: []string{
			"moltis-fs serve --root ~/project --listen 127.0.0.1:7780",
			"moltis-fs serve --config moltis.toml --dialect capability --listen unix:",
		},
		run: serveHTTP,
	}
}

func serveHTTP(ctx context.Context, in *invocation) (err error) {
	if !in.given("listen") {
		return misuse(seeHelp(in.command), "serve needs --listen ADDRESS")
	}
	if in.given("console") && !slices.ContainsFunc(in.all("listen"), func(a string) bool { return !strings.HasPrefix(a, "unix:") }) {
		return misuse("add --listen 127.0.0.1:0", "a browser can't reach the page by a Unix socket")
	}
	if in.option("log-format") == "json" {
		in.err = &jsonLines{w: in.err}
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	how := cmp.Or(in.option("approve"), "queue")
	approver, err := in.approveBy(how)
	if err != nil {
		return err
	}
	if err := in.implyRoot(); err != nil {
		return err
	}
	calls := &hook.Metrics{}
	d, err := in.openReloadable(ctx, approver, calls)
	if err != nil {
		return err
	}
	defer func() { err = closing(d, err) }()
	defer d.hearing(in, stop)()
	dir, err := in.dataDir()
	if err != nil {
		return err
	}
	q, err := in.queue()
	if err != nil {
		return err
	}
	tokens, err := in.tokens()
	if err != nil {
		return err
	}
	logger := in.logger(slog.LevelWarn)
	gateway := &approvals.Gateway{Queue: q, Origins: in.all("allow-origin"), Logger: logger}
	d.sessions.Alerts = func(a capability.Alert) bool {
		return gateway.Tell(approvals.Alert{ID: a.ID, Severity: a.Severity, Message: a.Message, Context: a.Context,
			Principal: a.Principal, SessionKey: a.Session})
	}
	run := runName()
	grants, err := in.grants()
	if err != nil {
		return err
	}
	overMCP, err := mcp.NewHTTP(d, mcp.Options{Run: run, Grants: grants, Version: readBuild().Version, Logger: logger,
		Instructions: in.instructions(d.now.cfg, d.Definitions()), Asking: asking(d.now.cfg, d.Definitions(), how), Changed: d.changed})
	if err != nil {
		return err
	}
	var theirs *issuer.Issuer
	if c := d.now.cfg.Tools.FS.HTTP; c.Issuer != "" {
		theirs = issuer.New(issuer.Options{Issuer: c.Issuer, Audience: c.Audience, Claim: c.Claim}, http.DefaultTransport)
	}
	methods := approvals.Methods(q)
	for name, run := range methods { // they say as commands do that the fleet can't be reached
		methods[name] = func(ctx context.Context, by string, params json.RawMessage) (any, error) {
			v, err := run(ctx, by, params)
			return v, asMethodError(err, nil)
		}
	}
	maps.Copy(methods, in.operatorMethods(d.remote(in)))
	health := &health{in: in, of: d.remote(in)}
	o := jsonrpc.Options{
		Tokens: tokens, Local: in.option("principal"), Run: run, MCP: overMCP, Issuer: theirs,
		Origins: in.all("allow-origin"), Hosts: in.all("allow-host"), Metrics: calls, Logger: logger, Ready: health.ready, Gauges: health.metrics,
		Operator: methods,
		Handlers: map[string]func(string, http.ResponseWriter, *http.Request){"/ws": gateway.Serve},
	}
	page := in.console(&o, q)
	server := jsonrpc.New(d, o)
	listeners, err := in.listen(dir)
	if err != nil {
		return err
	}
	in.tellConsole(ctx, page, listeners)
	in.tellOpen(d.now.cfg, in.openText(d.now.cfg), in.approves("queue"))
	return server.Serve(ctx, listeners...)
}

// listen opens what --listen names, and says where that is.
func (in *invocation) listen(dataDir string) (all []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range all {
				_ = l.Close() // nobody has connected
			}
		}
	}()
	for _, addr := range in.all("listen") {
		if addr == "unix:" {
			dir := filepath.Join(dataDir, "serve")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return all, fmt.Errorf("making the directory of the socket: %w", err)
			}
			addr += filepath.Join(dir, "rpc.sock")
		}
		l, err := serve.Listen(addr, in.given("beyond-loopback"))
		if e, ok := errors.AsType[*serve.AddressError](err); ok {
			return all, misuse(e.Do, "%v", e)
		}
		if err != nil {
			return all, err
		}
		all = append(all, l)
		where := "http://" + l.Addr().String()
		if strings.HasPrefix(addr, "unix:") {
			where = addr
		}
		fmt.Fprintf(in.err, "%s: serving on %s (MCP at /mcp, JSON-RPC at /rpc)\n", program, where)
	}
	return all, nil
}
