package capability

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"moltisfs/approval"
	"moltisfs/config"
	"moltisfs/dialect"
	"moltisfs/internal/engine"
)

// What the configuration and the caller say of tiers only adds up.
func TestTiers(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := open(t, func(c *config.Config, h *engine.Host) {
		c.Tools.Capability = config.Capability{Blocked: []string{"filesystem.move"},
			ApprovalRequired: []string{"filesystem.write"}, Autonomous: []string{"filesystem.delete"}}
		h.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	r.write(t, "a", "one")
	if !strings.Contains(log.String(), `why="filesystem.delete is approval_required in its text, which is stricter"`) {
		t.Errorf("no warning in %s", &log)
	}
	for _, d := range r.Definitions() {
		if d.Also[0] == "filesystem.move" {
			t.Error("what is blocked is listed")
		}
	}
	for _, c := range []struct {
		tool, args string
		tier       approval.Tier
		want       string // type of the error; "" when it is done
	}{
		{"filesystem.write", `{"path":"R/a","content":"x"}`, "", "ApprovalUnavailable"},
		{"filesystem.write", `{"path":"R/a","content":"x"}`, approval.TierAutonomous, "ApprovalUnavailable"},
		{"filesystem.move", `{"source":"R/a","destination":"R/b"}`, "", "CapabilityBlocked"},
		{"filesystem.append", `{"path":"R/a","content":"x"}`, approval.TierAsk, "ApprovalUnavailable"},
		{"filesystem.append", `{"path":"R/a","content":"x"}`, approval.TierBlocked, "CapabilityBlocked"},
		{"filesystem.append", `{"path":"R/a","content":"x"}`, "", ""},
		{"filesystem.delete", `{"path":"R/a"}`, "", ""},
	} {
		got := r.as(t, dialect.Call{Tool: c.tool, Tier: c.tier, Args: json.RawMessage(c.args)})
		if kind, _ := got["type"].(string); kind != c.want {
			t.Errorf("%s with tier %q: %v", c.tool, c.tier, got)
		}
	}
	if !strings.Contains(log.String(), `level=WARN msg="tool call" tool=filesystem.append`) {
		t.Errorf("the operator was not told of an append: %s", &log)
	}
	bad := config.Capability{ApprovalRequired: []string{"filesystem.read"}}
	if _, _, err := tiersOf(bad); err == nil {
		t.Error("a read that is to be approved is taken")
	}
}

// What is denied under the name of another tool is denied here too, and is not there for the caller.
func TestPolicyOfNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		allow, deny []string
		tool        string
		there       bool
	}{
		{nil, nil, "filesystem__write", true},
		{[]string{"filesystem.*"}, nil, "filesystem.write", true},
		{[]string{"filesystem.read"}, nil, "filesystem.write", false},
		{nil, []string{"filesystem.w*"}, "filesystem.write", false},
		{nil, []string{"Write"}, "filesystem.write", false},
		{nil, []string{"Write"}, "filesystem.append", true},
		{nil, []string{"Write", "Edit", "MultiEdit"}, "filesystem.delete", false},
		{[]string{"filesystem.*"}, []string{"Write"}, "filesystem.write", false},
		{[]string{"filesystem.write"}, []string{"Write"}, "filesystem.write", true},
		{nil, []string{"Read"}, "filesystem.read", false},
		{nil, nil, "filesystem.reed", false},
	} {
		r := open(t, func(cfg *config.Config, _ *engine.Host) {
			cfg.Tools.Policy = config.Policy{Allow: c.allow, Deny: c.deny}
		})
		_, listed := listedAs(r.Dialect, c.tool)
		_, err := r.Call(t.Context(), dialect.Call{Tool: c.tool, Args: json.RawMessage(`{}`)})
		unknown, no := errors.AsType[*dialect.UnknownToolError](err)
		if listed != c.there || no == c.there {
			t.Errorf("allow %v deny %v: %s is listed %v, called with %v", c.allow, c.deny, c.tool, listed, err)
		}
		if c.tool == "filesystem.reed" && (!no || unknown.Nearest != "filesystem.read") {
			t.Errorf("a misspelt name: %v", err)
		}
		defs, err := DefinitionsUnder(config.Tools{Policy: config.Policy{Allow: c.allow, Deny: c.deny}})
		if err != nil || len(defs) != len(r.Definitions()) {
			t.Errorf("%d definitions under the configuration, %d of the dialect, %v", len(defs), len(r.Definitions()), err)
		}
	}
}

// A scope is what agent.session tells, and what holds, in a restore too.
func TestScope(t *testing.T) {
	t.Parallel()
	r := open(t, func(_ *config.Config, h *engine.Host) { h.Approver = decides(approval.Approved) })
	r.write(t, "in/a", "one")
	r.write(t, "out/b", "two")
	gone := r.call(t, "filesystem.delete", `{"path":"R/out/b"}`)
	scope := &dialect.Scope{Readable: []string{r.root + "/in"}, Writable: []string{}}
	for _, c := range []struct{ tool, args, want string }{
		{"agent.session", `{}`, `"readable":["` + r.root + `/in"]`},
		{"agent.session", `{}`, `"writable":[]`},
		{"filesystem.read", `{"path":"R/in/a"}`, `"content":"one"`},
		{"filesystem.write", `{"path":"R/in/a","content":"x"}`, `"type":"PathOutOfScope"`},
		{"filesystem.list", `{"path":"R/out"}`, `"type":"PathOutOfScope"`},
		{"filesystem.restore", `{"path":"` + gone["trash_path"].(string) + `"}`, `"type":"PathOutOfScope"`},
		{"filesystem.restore", `{"path":"` + gone["trash_path"].(string) + `"}`, `"message":"it is out of scope"`},
	} {
		got := string(mustJSON(r.as(t, dialect.Call{Session: "s", Tool: c.tool, Scope: scope, Args: json.RawMessage(c.args)})))
		if !strings.Contains(got, c.want) {
			t.Errorf("%s %s: no %s in %s", c.tool, c.args, c.want, got)
		}
	}
}

// What a user deletes stays a week, what an agent deletes a day.
func TestTrashTimes(t *testing.T) {
	t.Parallel()
	r := open(t, func(_ *config.Config, h *engine.Host) { h.Approver = decides(approval.Approved) })
	for user, hours := range map[bool]float64{false: 24, true: 168} {
		r.write(t, "a", "one")
		got := r.as(t, dialect.Call{Tool: "filesystem.delete", ByUser: user, Args: json.RawMessage(`{"path":"R/a"}`)})
		until, err := time.Parse(time.RFC3339, got["recoverable_until"].(string))
		if left := time.Until(until).Hours(); err != nil || left < hours-1 || left > hours {
			t.Errorf("by a user %v: %v hours, %v", user, left, err)
		}
	}
}

// An alert is in the operator's log, however little that takes and how severe it is, in the audit log, and with operators
// who are there.
func TestAlert(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := open(t, func(_ *config.Config, h *engine.Host) {
		h.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	got := r.call(t, "alerts.send", `{"message":"two\nlines","severity":"critical","context":{"n":1}}`)
	if to := string(mustJSON(got["delivered_to"])); to != `["audit","log"]` {
		t.Errorf("delivered to %s", to)
	}
	id := got["alert_id"].(string)
	if line := `level=ERROR msg="an agent sent an alert" alert=` + id + ` severity=critical message="two\nlines"`; !strings.Contains(log.String(), line) {
		t.Errorf("the log has %s", &log)
	}
	record, err := os.ReadFile(r.data + "/audit/audit.jsonl")
	if err != nil || !strings.Contains(string(record), `"call":"`+id) || !strings.Contains(string(record), `"alert":"critical: two\u000alines {\"n\":1}"`) {
		t.Errorf("%v: the record is %s", err, record)
	}
	if got := r.call(t, "alerts.send", `{"message":"`+strings.Repeat("x", maxAlert+1)+`"}`); got["type"] != "InvalidArgument" {
		t.Error(got)
	}
	for _, there := range []bool{true, false} {
		r.Alerts = func(a Alert) bool {
			if a.Severity != "info" || a.Message != "please" || a.Principal != "local" || a.Session != "s" || a.ID == "" {
				t.Errorf("%+v", a)
			}
			return there
		}
		log.Reset()
		got := r.call(t, "alerts.send", `{"message":"please"}`)
		if to := string(mustJSON(got["delivered_to"])); strings.Contains(to, `"operators"`) != there || strings.Count(log.String(), "\n") != 1 ||
			!strings.Contains(log.String(), "severity=info message=please") {
			t.Errorf("delivered to %s, the log has %s", to, &log)
		}
	}
}

// Windows side by side are the whole file, wherever they cut.
func TestWindowsAreTheFile(t *testing.T) {
	t.Parallel()
	r := open(t, nil)
	const text = "a\u00e9\u4e16\U0001f600z\ufffd\u00df"
	r.write(t, "a", text)
	for n := 1; n <= len(text)+1; n++ {
		var all strings.Builder
		for off := 0; off < len(text); off += n {
			got := r.call(t, "filesystem.read", string(mustJSON(map[string]any{"path": r.root + "/a", "offset": off, "limit": n})))
			part, ok := got["content"].(string)
			if !ok {
				t.Fatal(got)
			}
			if all.WriteString(part); got["truncated"] != (all.Len() < len(text)) {
				t.Errorf("%d bytes from %d on: %v", n, off, got)
			}
		}
		if all.String() != text {
			t.Errorf("windows of %d give %q", n, all.String())
		}
	}
}

// A hook may change an answer; an error stays one.
func TestReplaced(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		refused   bool
		raw, want string // "" when it is not taken
	}{
		{false, `{ "a" : 1 }`, `{"a":1}`}, {false, `[1]`, ""}, {false, `null`, ""},
		{true, `{"type":"X"}`, `{"type":"X"}`}, {true, `{"a":1}`, ""},
	} {
		a, err := (&answer{dialect.Object{Of: "k", No: c.refused, Content: []byte(`{}`)}}).replaced([]byte(c.raw))
		if (err == nil) != (c.want != "") || err == nil && string(a.Content) != c.want {
			t.Errorf("%s: %s, %v", c.raw, a.Content, err)
		}
	}
	a := &answer{dialect.Object{Content: []byte(`{}`)}}
	if a.warn("w"); string(a.Content) != `{"warnings":["w"]}` {
		t.Error(string(a.Content))
	}
}
