package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"moltisfs/internal/serve/mcp"
	"moltisfs/tools"
)

func mcpCommand() *command {
	return &command{
		name:   "mcp",
		serves: true,
		short:  "serve the tools over MCP on standard input and output",
		long: `Speaks the Model Context Protocol, revisions 2024-11-05 to 2026-07-28, one message
a line, until standard input ends. An MCP client, such as an editor or an agent, starts it.

--approve says who approves changes while require_approval is true. "elicitation" has the client ask
its user, with the diff; "terminal" asks on the controlling terminal; "queue" waits for an answer
from elsewhere, as of moltis-fs approvals; "yes" approves everything but what
runs code later, "yes-exec" that too; "never" refuses everything at once.

Most clients show structuredContent to the model in place of the text, or beside it. With --structured auto
only those get it that keep it apart or ask for it (the experimental capability moltis-fs/structured), and the
JSON of long answers without what the text holds. Images go to clients that are known to show them: others would
write them out as text. "always" gives all of it to everybody.

A session is one run of the server, or one conversation of a client that tells of it (Codex, VS
Code); --session gives it a name. Undo, redo, turn and since are about its changes alone; those of
other sessions can be listed, and restored by id. A client may name the session of a call, and the
user's prompt that checkpoints are grouped by, in its _meta: "moltis-fs/session" and
"moltis-fs/turn", both strings. Any other key of ours there is refused.`,
		options: options("approve dialect tool-prefix read-only"+onSuite,
			opt("structured", "WHEN", "which clients get structuredContent (default: auto)",
				"auto", "always", "never"),
		),
		examples: []string{
			"moltis-fs mcp --root ~/projects/my-app",
			"moltis-fs mcp --config moltis.toml --approve terminal",
			"claude mcp add files -- moltis-fs mcp --root ~/projects/my-app",
		},
		run: serveMCP,
	}
}

func serveMCP(ctx context.Context, in *invocation) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	o := mcp.Options{
		Principal: in.option("principal"), Session: in.option("session"), Run: runName(),
		Structured: mcp.Structured(in.option("structured")), Version: readBuild().Version,
	}
	var approver tools.Approver
	var err error
	if how := in.option("approve"); how == "" || how == "elicitation" {
		o.Elicit = true
	} else if approver, err = in.approveBy(how); err != nil {
		return err
	}
	if err := in.implyRoot(); err != nil {
		return err
	}
	s, err := in.openReloadable(ctx, approver, nil)
	if err != nil {
		return err
	}
	in.tellOpen(s.now.cfg, in.openText(s.now.cfg), in.approves("elicitation"))
	o.Instructions = in.instructions(s.now.cfg, s.Definitions())
	o.Asking = asking(s.now.cfg, s.Definitions(), cmp.Or(in.option("approve"), "elicitation"))
	o.Changed = s.changed
	if o.Grants, err = in.grants(); err != nil {
		return closing(s, err)
	}
	deaf := s.hearing(in, stop)
	if f, ok := in.in.(*os.File); ok && isTerminal(f) {
		fmt.Fprintf(in.err, "%s: speaking MCP on standard input, as a client that starts this "+
			"program would want it\nhint: to make a call by hand use %s call\n", program, program)
	}
	err = mcp.Serve(ctx, s, in.in, in.out, o)
	deaf()
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil // told to stop
	}
	return errors.Join(err, s.Close())
}
