package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"slices"

	"moltisfs/internal/approval/queue"
	"moltisfs/internal/serve/console"
	"moltisfs/internal/serve/jsonrpc"
)

func consoleCommand() *command {
	c := serveCommand()
	c.name, c.short = "console", "open a page in the browser for those who answer and undo"
	c.long = `Starts a server as serve --console does, on a free port of loopback, and prints the address of its page
with a code that signs in once, within a minute. Enter prints another one.

The page shows what waits for approval with its diff, what was changed and its undo, what was refused
and by which rule, the audit log, sessions, the trash, tokens, and the state of the store. Everything
in it is a method of docs/http.md, or a command. See docs/console.md.`
	c.options = slices.DeleteFunc(c.options, func(o option) bool { return o.name == "console" })
	c.examples = []string{"moltis-fs console", "moltis-fs console --config team.toml --listen 127.0.0.1:7790"}
	c.run = func(ctx context.Context, in *invocation) error {
		in.values["console"] = "true"
		if !in.given("listen") {
			in.values["listen"] = "127.0.0.1:0"
		}
		return serveHTTP(ctx, in)
	}
	return c
}

// console adds the operators' page to the options of a server, where --console asks for it; nil elsewhere.
func (in *invocation) console(o *jsonrpc.Options, q *queue.Queue) *console.Console {
	if !in.given("console") {
		return nil
	}
	page := console.New(console.Options{Tokens: o.Tokens, Owner: operatorAt("the console"), Queue: q, Methods: o.Operator, Logger: o.Logger})
	o.Console = page
	return page
}

// tellConsole prints the address of the page with a code, and another one for each line that a person enters.
func (in *invocation) tellConsole(ctx context.Context, page *console.Console, listeners []net.Listener) {
	if page == nil {
		return
	}
	i := slices.IndexFunc(listeners, func(l net.Listener) bool { return l.Addr().Network() == "tcp" })
	tell := func() {
		fmt.Fprintf(in.err, "%s: console at http://%s/console/#code=%s\n", program, listeners[i].Addr(), page.Code())
	}
	tell()
	if f, ok := in.in.(*os.File); ok && isTerminal(f) {
		fmt.Fprintf(in.err, "hint: the code signs in once, within a minute; Enter prints another one\n")
		go func() {
			for lines := bufio.NewScanner(f); lines.Scan(); tell() {
			}
		}()
	}
	go page.Sample(ctx)
}
