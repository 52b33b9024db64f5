package capability

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/audit"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/hook"
	"moltisfs/internal/refusal"
	"moltisfs/internal/testdir"
	"moltisfs/internal/text"
)

// A room is a dialect over an engine of its own, and a tree to work on.
type room struct {
	*Dialect
	e    *engine.Engine
	root string
	data string
}

// open makes one; change sets what is not as in the default, with nobody to be asked.
func open(t testing.TB, change func(*config.Config, *engine.Host)) room {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	cfg, host := config.Default(), engine.Host{DataDir: filepath.Join(t.TempDir(), "data")}
	cfg.Tools.FS.AllowPaths, cfg.Tools.FS.WorkspaceRoot = []string{root + "/**"}, root
	cfg.Tools.FS.RequireApproval = false
	if change != nil {
		change(&cfg, &host)
	}
	e, err := engine.Open(cfg, host)
	must(t, err)
	t.Cleanup(func() { e.Close() }) //nolint:errcheck // nothing is read of it any more
	d, err := Over(e, cfg.Tools.Capability)
	must(t, err)
	return room{d, e, root, host.DataDir}
}

func (r room) write(t testing.TB, name, content string) string {
	t.Helper()
	p := filepath.Join(r.root, name)
	must(t, os.MkdirAll(filepath.Dir(p), 0o700))
	must(t, os.WriteFile(p, []byte(content), 0o644))
	return p
}

// call makes one call. R in args stands for the root.
func (r room) call(t *testing.T, tool, args string) map[string]any {
	t.Helper()
	return r.as(t, dialect.Call{Session: "s", Tool: tool, Args: json.RawMessage(args)})
}

func (r room) as(t *testing.T, c dialect.Call) map[string]any {
	t.Helper()
	c.Args = json.RawMessage(strings.ReplaceAll(string(c.Args), `"R`, `"`+r.root))
	a, err := r.Call(t.Context(), c)
	if err != nil {
		t.Fatalf("%s %s: %v", c.Tool, c.Args, err)
	}
	raw, err := a.JSON(true)
	must(t, err)
	var out map[string]any
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	if wrapped := map[bool]string{false: `{"success":true,"data":`, true: `{"success":false,"error":`}; a.Text() !=
		wrapped[a.Refused()]+string(raw)+"}" {
		t.Errorf("the text is %s", a.Text())
	}
	def, _ := listedAs(r.Dialect, c.Tool)
	if def.OutputSchema != nil {
		fits(t, def.OutputSchema, out)
	}
	return out
}

// fits checks an answer against the schema that its tool announces.
func fits(t *testing.T, schema json.RawMessage, answer any) {
	t.Helper()
	var s jsonschema.Schema
	must(t, json.Unmarshal(schema, &s))
	r, err := s.Resolve(nil)
	must(t, err)
	if err := r.Validate(answer); err != nil {
		t.Errorf("%v does not fit its schema: %v", answer, err)
	}
}

// An argument struct says the same as filesystem.yaml.
func TestArgumentsAreThoseOfTheYAML(t *testing.T) {
	t.Parallel()
	for _, one := range table {
		d := known().find(one.name)
		if d == nil {
			t.Errorf("%s has a row and no definition", one.name)
			continue
		}
		bare := slices.Clone(d.Inputs)
		for i := range bare {
			bare[i].Description = ""
		}
		var want, got any
		for raw, into := range map[*json.RawMessage]*any{new(object(bare, true)): &want, new(one.args.Schema()): &got} {
			must(t, json.Unmarshal(*raw, into))
		}
		w := strings.ReplaceAll(string(mustJSON(want)), `"description":"",`, "")
		if g := string(mustJSON(got)); w != g {
			t.Errorf("%s: the YAML has\n%s\nand the struct\n%s", one.name, w, g)
		}
	}
}

// Each cause of a refusal is told, with a type that has a description and a way out.
func TestEveryCauseIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range engine.Causes {
		for i := range known().Capabilities {
			d := &known().Capabilities[i]
			f := known().failing(d, d.kindOf(c))
			if f.Description == "" || len(f.Recovery) == 0 {
				t.Errorf("%s, as %s of %s: no description or no recovery", c.Name, d.kindOf(c), d.Name)
			}
		}
	}
	for _, f := range known().Common {
		if !slices.ContainsFunc(engine.Causes, func(c engine.Cause) bool { return slices.Contains(strings.Fields(refusal.Of(c).Type), f.Type) }) {
			t.Errorf("no cause is told as %s", f.Type)
		}
	}
}

// Characters and names that are not what they seem are told.
func TestOddIsTold(t *testing.T) {
	t.Parallel()
	r := open(t, nil)
	r.write(t, "odd/a\u202eb", "1\n2\u200b\u200b\n3\x1b\n")
	for _, c := range []struct{ tool, args, want string }{
		{"filesystem.read", `{"path":"R/odd/a\u202eb"}`, `"hidden_chars":3,"hidden_lines":[2,3],"`},
		{"filesystem.list", `{"path":"R/odd"}`, `"odd_names":["\"a\\u202eb\""]`},
		{"filesystem.search", `{"path":"R/odd","pattern":"*"}`, `"odd_names":["\"a\\u202eb\""]`},
	} {
		if got := string(mustJSON(r.call(t, c.tool, c.args))); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: no %s in %s", c.tool, c.args, c.want, got)
		}
	}
}

// listedAs is the definition that a tool is listed by, under any of its names.
func listedAs(d dialect.Dialect, name string) (dialect.Definition, bool) {
	for _, def := range d.Definitions() {
		if def.Name == name || slices.Contains(def.Also, name) {
			return def, true
		}
	}
	return dialect.Definition{}, false
}

// The tests here wait more than they compute: more of them run at once than there are processors.
func TestMain(m *testing.M) {
	testdir.NumberedIDs()
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("16")
	}
	os.Exit(m.Run())
}

// told is a hook that does as it was told.
type told struct{ hook.Decision }

func (told) Name() string { return "test" }

func (h told) BeforeToolCall(context.Context, hook.BeforeToolCall) (hook.Decision, error) {
	return h.Decision, nil
}

func (h told) ToolResultPersist(context.Context, hook.ToolResultPersist) (hook.Decision, error) {
	return h.Decision, nil
}

// Hooks have their say over capabilities as over every call: they change arguments, block a call,
// change an answer, or withhold it.
func TestHooks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  func(root string) hook.Set
		want string
	}{
		{"arguments", func(root string) hook.Set {
			args := json.RawMessage(`{"path":"` + root + `/b"}`)
			return hook.Set{Before: []hook.Before{told{hook.Decision{Modify: args}}}}
		}, `"content":"two"`},
		{"blocked", func(string) hook.Set {
			return hook.Set{Before: []hook.Before{told{hook.Decision{Block: true, Reason: "not today"}}}}
		}, `"type":"BlockedByHook"`},
		{"answer", func(string) hook.Set {
			return hook.Set{Persist: []hook.Persist{told{hook.Decision{Modify: json.RawMessage(`{"result":{"content":"hidden","size":3,"modified":null,"checksum":"","truncated":false}}`)}}}}
		}, `"content":"hidden"`},
		{"withheld", func(string) hook.Set {
			return hook.Set{Persist: []hook.Persist{told{hook.Decision{Block: true, Reason: "secret"}}}}
		}, `"type":"AnswerWithheld"`},
	} {
		r := open(t, func(cfg *config.Config, h *engine.Host) { h.Hooks = c.set(cfg.Tools.FS.WorkspaceRoot) })
		p := r.write(t, "a", "one")
		r.write(t, "b", "two")
		a, err := r.Call(t.Context(), dialect.Call{Tool: "filesystem.read",
			Args: json.RawMessage(`{"path":"` + p + `"}`)})
		if err != nil || !strings.Contains(a.Text(), c.want) {
			t.Errorf("%s: %v, %v", c.name, a, err)
		}
	}
}

// The record says what was looked for.
func TestWhatWasAskedIsOnRecord(t *testing.T) {
	t.Parallel()
	r := open(t, nil)
	r.write(t, "a.txt", "one\n")
	for _, c := range []struct{ tool, args, want string }{
		{"filesystem.search", `{"path":"R","pattern":"*.nosuch"}`, `"pattern":"*.nosuch"`},
		{"filesystem.search_content", `{"path":"R","pattern":"wanted"}`, `"pattern":"wanted"`},
		{"filesystem.edit", `{"path":"R","pattern":"one","replace":"two","replace_all":true}`, `"pattern":"one"`},
		{"filesystem.watch", `{"path":"R","pattern":"*.watched","event_types":["create"]}`, `"pattern":"*.watched","window":"create"`},
		{"filesystem.read", `{"path":"R/a.txt","offset":1,"limit":2}`, `"window":"offset 1 limit 2 bytes"`},
	} {
		r.call(t, c.tool, c.args)
		var last string
		must(t, audit.ReadBack(t.Context(), filepath.Join(r.data, "audit"), audit.Mark{}, time.Time{}, false, func(line []byte, _ *audit.Entry, _ audit.Mark, _ bool) bool {
			last = string(line)
			return true
		}))
		if !strings.Contains(last, `"tool":"`+c.tool+`"`) || !strings.Contains(last, c.want) {
			t.Errorf("%s: the record is %s", c.tool, last)
		}
	}
}

// The tiers of the configuration and of the caller add up: neither lifts the other.
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

// A capability that is denied under the name of another tool is denied here too, and is not there for the caller.
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

// A user's deletions stay a week, an agent's a day.
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
	if err != nil || !strings.Contains(string(record), `"call":"`+id) || !strings.Contains(string(record), `"alert":"critical: two\nlines {\"n\":1}"`) {
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

// Windows side by side are the whole file, wherever they cut. TestPartsAreTheText in package text has every encoding.
func TestWindowsAreTheFile(t *testing.T) {
	t.Parallel()
	r := open(t, nil)
	for _, c := range []struct{ encoding, mark, text, as string }{
		{"utf-8", "", "a\u00e9\u4e16\U0001f600z\ufffd\u00df", ""}, {"utf-16le", "\xff\xfe", "Hello \U0001f600", "utf-16"},
		{"shift_jis", "", "\u4e16\u754cz\u8868\u80fd", ""}, {"iso-2022-jp", "", "a\u4e16\u754cb\u8868", ""},
	} {
		raw, bad := text.Lookup(c.encoding).Encode(c.text)
		if bad >= 0 {
			t.Fatal(c)
		}
		file := c.mark + string(raw)
		name := r.write(t, "a", file)
		for n := 1; n <= len(file)+1; n++ {
			var all strings.Builder
			for off := 0; off < len(file); off += n {
				args := map[string]any{"path": name, "offset": off, "limit": n, "encoding": cmp.Or(c.as, c.encoding)}
				got := r.call(t, "filesystem.read", string(mustJSON(args)))
				part, ok := got["content"].(string)
				if !ok {
					t.Fatal(c, got)
				}
				if all.WriteString(part); got["truncated"] == false && all.String() != c.text {
					t.Errorf("%s: %d bytes from %d on: %v", c.encoding, n, off, got)
				}
			}
			if all.String() != c.text {
				t.Errorf("%s: windows of %d give %q", c.encoding, n, all.String())
			}
		}
	}
	// Nothing certain is near.
	raw, _ := text.Lookup("gbk").Encode("x" + strings.Repeat("\u4e16\u754c", 40_000))
	name := r.write(t, "a", string(raw))
	for _, off := range []int{1, 2, 5000, 70_000, 159_999} {
		got := r.call(t, "filesystem.read", string(mustJSON(map[string]any{"path": name, "offset": off, "limit": 4, "encoding": "gbk"})))
		if part, _ := got["content"].(string); strings.Trim(part, "\u4e16\u754c") != "" || len(part) != 3*min(2, (len(raw)-off+1)/2) {
			t.Errorf("from %d on: %v", off, got)
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
		a, err := (&answer{dialect.Object{Of: "k", No: c.refused, Content: []byte(`{}`)}}).Replaced([]byte(c.raw))
		if (err == nil) != (c.want != "") || err == nil && string(a.Content) != c.want {
			t.Errorf("%s: %s, %v", c.raw, a.Content, err)
		}
	}
	a := &answer{dialect.Object{Content: []byte(`{}`)}}
	if a.warn("w"); string(a.Content) != `{"warnings":["w"]}` {
		t.Error(string(a.Content))
	}
}

// Bytes that are no text of the encoding are an EncodingError, and never a U+FFFD in a success. TestExact in package text has every encoding.
func TestUndecodable(t *testing.T) {
	t.Parallel()
	r := open(t, nil)
	for _, c := range []struct{ encoding, raw string }{
		{"utf-8", "a\xff"}, {"ascii", "caf\x80"}, {"utf-16", "\xff\xfea\x00b"}, {"shift_jis", "a\x81"}, {"hz", "~{\x80"}, {"windows-1252", "\x81"},
	} {
		r.write(t, "a", c.raw)
		for _, more := range []string{"", `,"offset":0,"limit":1000`} {
			got := r.call(t, "filesystem.read", `{"path":"R/a","encoding":"`+c.encoding+`"`+more+`}`)
			if failed, _ := got["error"].(map[string]any); failed["type"] != "EncodingError" && got["type"] != "EncodingError" {
				t.Errorf("%q in %s: %v", c.raw, c.encoding, got)
			}
		}
	}
	r.write(t, "a", "\xff\xfea\x00\xfd\xff")
	if got := r.call(t, "filesystem.read", `{"path":"R/a","encoding":"utf-16"}`); got["content"] != "a\ufffd" {
		t.Errorf("a U+FFFD that is there: %v", got)
	}
	for _, name := range []string{"klingon", "utf-17", "BINARY", "base64"} {
		for _, tool := range []string{"read", "write"} {
			args := map[string]any{"path": r.root + "/a", "encoding": name}
			if tool == "write" {
				args["content"] = "x"
			}
			got := string(mustJSON(r.call(t, "filesystem."+tool, string(mustJSON(args)))))
			if !strings.Contains(got, "EncodingError") || !strings.Contains(got, "there is no encoding") || name == "utf-17" && !strings.Contains(got, "utf-16le") {
				t.Errorf("%s %s: %s", tool, name, got)
			}
		}
	}
	for _, name := range []string{"ascii", "windows-1252", "shift_jis", "gbk"} {
		got := string(mustJSON(r.call(t, "filesystem.write", `{"path":"R/new","content":"\u00e9\u0628","encoding":"`+name+`"}`)))
		if !strings.Contains(got, "EncodingError") {
			t.Errorf("write in %s: %s", name, got)
		}
	}
}

// A tail is appended in the encoding of the file, or refused, also where the file is too large to be read.
func TestAppendInTheEncodingOfTheFile(t *testing.T) {
	t.Parallel()
	for _, large := range []bool{false, true} {
		r := open(t, func(c *config.Config, _ *engine.Host) {
			if large {
				c.Tools.FS.Checkpoint.MaxFileBytes = 1
			}
		})
		appends(t, r)
	}
}

func appends(t *testing.T, r room) {
	const russian = "\u0421\u044a\u0435\u0448\u044c \u0436\u0435 \u0435\u0449\u0451 \u044d\u0442\u0438\u0445 \u0431\u0443\u043b\u043e\u043a\n"
	for _, c := range []struct{ encoding, mark, text, tail string }{
		{"utf-8", "", "caf\u00e9\n", "a\u00f1b"}, {"utf-8", "\xef\xbb\xbf", "caf\u00e9\n", "a\u00f1b"}, {"utf-8", "", "plain\n", "\u4e16"}, {"utf-8", "", "~{ab~}\n", "plain"},
		{"utf-16le", "\xff\xfe", "h\u00e9\n", "a\u00f1b\U0001f600"}, {"utf-16be", "\xfe\xff", "h\u00e9\n", "a\u00f1b"}, {"utf-16le", "", "some latin text\n", "more"},
		{"utf-32le", "\xff\xfe\x00\x00", "h\u00e9\n", "a\u00f1b"}, {"utf-32be", "\x00\x00\xfe\xff", "h\n", "x"},
		{"iso-8859-1", "", "caf\u00e9 na\u00efve d\u00e9j\u00e0\n", "\u00e9t\u00e9"}, {"iso-8859-1", "", "caf\u00e9\n", "plain"}, {"koi8-r", "", russian, russian},
		{"shift_jis", "", "\u79c1\u306f\u30ac\u30e9\u30b9\u3092\u98df\u3079\u3089\u308c\u307e\u3059\u3002\n", "\u8868\u80fd\u3002"},
	} {
		encode := func(s string) string {
			raw, bad := text.Lookup(c.encoding).Encode(s)
			if bad >= 0 {
				t.Fatal(c)
			}
			return string(raw)
		}
		for _, times := range []int{1, 20_000} {
			before := c.mark + encode(strings.Repeat(c.text, times))
			name := r.write(t, "a", before)
			got := r.call(t, "filesystem.append", string(mustJSON(map[string]any{"path": name, "content": c.tail})))
			now, err := os.ReadFile(name)
			if want := before + encode(c.tail); err != nil || string(now) != want || got["new_size"] != float64(len(want)) {
				t.Errorf("%s %q, %d times: %v\n%.200q is not\n%.200q", c.encoding, c.tail, times, got, now, want)
			}
		}
	}
	for _, c := range []struct{ raw, tail string }{
		{"caf\xe9 na\xefve d\xe9j\xe0\n", "\u4e16\u754c"},                       // not in latin-1
		{"\xff\xfeh\x00\n\x00x", "y"},                                           // half a unit
		{strings.Repeat("\x82\xb1\x82\xea\x82\xcd\n", 20) + "\xff\n", "\u3053"}, // the guess, Shift JIS, is refuted by a byte
		{"\x1b$B$3$l\x1b(B\n", "\u3053"},                                        // ISO-2022-JP
	} {
		name := r.write(t, "a", c.raw)
		got := string(mustJSON(r.call(t, "filesystem.append", string(mustJSON(map[string]any{"path": name, "content": c.tail})))))
		if now, _ := os.ReadFile(name); string(now) != c.raw || !strings.Contains(got, "EncodingError") {
			t.Errorf("%q to %q: %s, %q", c.tail, c.raw, got, now)
		}
	}
}

// A window of a file that can't be hashed within a second comes without a checksum; a small one has it.
func TestWindowOfAHugeFile(t *testing.T) {
	t.Parallel()
	r := open(t, nil)
	name := r.write(t, "huge", "0123456789")
	ask := string(mustJSON(map[string]any{"path": name, "offset": 2, "limit": 3}))
	if got := r.call(t, "filesystem.read", ask); got["content"] != "234" || got["checksum"] == nil {
		t.Errorf("small: %v", got)
	}
	if err := os.Truncate(name, 1<<40); err != nil {
		t.Skip("SKIPPED: no sparse files here: ", err)
	}
	if got := r.call(t, "filesystem.read", ask); got["content"] != "234" || got["checksum"] != nil {
		t.Errorf("huge: %v", got)
	}
}
