// Package mcp serves a suite of tools over the Model Context Protocol to one client on a pair of
// streams, as moltis-fs mcp does:
//
//	suite, err := tools.Open(cfg, tools.Options{DataDir: dir})
//	defer suite.Close()
//	err = mcp.Serve(ctx, suite.Dialect(), os.Stdin, os.Stdout, mcp.Options{Elicit: true})
//
// Protocol revisions 2024-11-05 to 2025-11-25 (with the initialize handshake) and 2026-07-28
// (without) are spoken side by side. Nothing but protocol is written to the output. A line that is
// no message is answered with an error and skipped. When the input ends, what waits for
// approval is withdrawn, all other calls under way are answered, and Serve returns nil.
//
// It opens nothing and holds no policy: the suite does. Serve may run many times at once over one
// suite, each time for a client of its own; Principal and Session tell them apart.
package mcp

import (
	"context"
	"io"
	"log/slog"

	"moltisfs/dialect"
	"moltisfs/internal/serve/mcp"
)

// Options is how to serve. The zero value is useful: the approver of the suite is asked.
type Options struct {
	// Principal and Session are whose calls these are, see [dialect.Call]. A client may name another
	// session for each call.
	Principal, Session string
	// Elicit asks the client for approvals, which shows the question to its user. Where the client
	// can't, the refusal comes at once. Without Elicit the approver of the suite is asked.
	Elicit       bool
	Version      string       // of the program, told to the client
	Instructions string       // for the model, told to the client
	Logger       *slog.Logger // nil: silent
}

// Serve answers what comes in until in ends or nobody takes the answers any more, which is no
// error, or ctx is done. It closes neither stream; a read from in may be left behind.
func Serve(ctx context.Context, d dialect.Dialect, in io.Reader, out io.Writer, o Options) error {
	return mcp.Serve(ctx, d, in, out, mcp.Options{Principal: o.Principal, Session: o.Session,
		Elicit: o.Elicit, Version: o.Version, Instructions: o.Instructions, Logger: o.Logger})
}
