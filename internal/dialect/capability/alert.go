package capability

import (
	"context"
	"log/slog"

	"moltisfs/internal/approval"
	"moltisfs/internal/args"
)

type sessionArgs struct{}

// runSession gives the caller, and the directories that the caller may read and change. Paths that the operator denies in them are not told.
func runSession(_ context.Context, c *call, _ *sessionArgs) (any, error) {
	cfg := c.e.Config()
	readable := cfg.AllowPaths
	switch root := c.e.Root(); {
	case root != "": // and of that what the list allows
		readable = []string{root}
	case len(readable) == 0:
		readable = []string{"/**"}
	}
	writable := readable
	if c.Scope != nil {
		readable, writable = c.Scope.Readable, c.Scope.Writable
	}
	if !c.mayChange() {
		writable = nil
	}
	var workspace *string
	if cfg.WorkspaceRoot != "" {
		workspace = &cfg.WorkspaceRoot
	}
	return struct {
		Session   string   `json:"session_id"`
		Principal string   `json:"principal"`
		Workspace *string  `json:"workspace_path"`
		Readable  []string `json:"readable"`
		Writable  []string `json:"writable"`
	}{c.Session, c.Principal, workspace, append([]string{}, readable...), append([]string{}, writable...)}, nil
}

// mayChange says that some capability that changes files is offered to this caller.
func (c *call) mayChange() bool {
	for i := range known().Capabilities {
		d := &known().Capabilities[i]
		if d.Changes && c.offer.allows(d) && c.offer.tier(d, c.caller) != approval.TierBlocked {
			return true
		}
	}
	return false
}

type alertArgs struct {
	Message  string         `json:"message"`
	Severity *string        `json:"severity,omitempty" default:"info" enum:"info|warning|critical"`
	Context  map[string]any `json:"context,omitempty"`
}

// maxAlert bounds each part of an alert, in bytes.
const maxAlert = 4096

func (a *alertArgs) check() error {
	switch n := len(mustJSON(a.Context)); {
	case a.Message == "":
		return args.Errorf("say what the operator should know", "message is empty")
	case len(a.Message) > maxAlert:
		return args.Errorf("say it shorter", "message has %d bytes; the most is %d", len(a.Message),
			maxAlert)
	case n > maxAlert:
		return args.Errorf("send less of it", "context has %d bytes as JSON; the most is %d", n, maxAlert)
	}
	return nil
}

// An Alert is a message of an agent to the operator.
type Alert struct {
	ID, Severity, Message, Principal, Session string
	Context                                   map[string]any
}

// runAlert tells the operator: by a line of the log, whatever its severity, and by what the server
// has for operators. The record of the call has the message, without which the call fails; hooks see
// every call.
func runAlert(ctx context.Context, c *call, a *alertArgs) (any, error) {
	severity, to := value(a.Severity, "info"), []string{"audit"}
	c.Trace.Alert = severity + ": " + a.Message
	if a.Context != nil {
		c.Trace.Alert += " " + string(mustJSON(a.Context))
	}
	level := slog.LevelWarn
	if severity == "critical" {
		level = slog.LevelError
	}
	if log := c.e.Logger(); log.Enabled(ctx, level) {
		log.LogAttrs(ctx, level, "an agent sent an alert", slog.String("alert", c.ID),
			slog.String("severity", severity), slog.String("message", a.Message),
			slog.Any("context", a.Context), slog.String("principal", c.Principal),
			slog.String("session", c.Session))
		to = append(to, "log")
	}
	if c.Alerts != nil && c.Alerts(Alert{c.ID, severity, a.Message, c.Principal, c.Session, a.Context}) {
		to = append(to, "operators")
	}
	if h := c.e.Config().Hooks; len(h.BeforeToolCall)+len(h.AfterToolCall) > 0 {
		to = append(to, "hooks")
	}
	return struct {
		ID       string   `json:"alert_id"`
		To       []string `json:"delivered_to"`
		Severity string   `json:"severity"`
	}{c.ID, to, severity}, nil
}
