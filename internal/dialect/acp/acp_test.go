package acp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/hook"
	"moltisfs/internal/testdir"
)

var must = testdir.Must

// under is a dialect with its data directory.
type under struct {
	*Dialect
	data string
}

func standing(t *testing.T) (d under, dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	cfg := config.Default()
	cfg.Tools.FS.RequireApproval, cfg.Tools.FS.TrackReads = false, true
	data := filepath.Join(t.TempDir(), "data")
	e, err := engine.Open(cfg, engine.Host{DataDir: data})
	must(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return under{Over(e, cfg.Tools.ACP), data}, dir
}

// said is the answer of one call, as JSON.
func said(t *testing.T, d under, c dialect.Call, method string, params map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(params)
	must(t, err)
	c.Tool, c.Args = method, raw
	a, err := d.Call(t.Context(), c)
	must(t, err)
	return a.Text()
}

// A file is read as text in whatever encoding, and written as it was: mark, encoding and line ends stay.
func TestEncodingsStay(t *testing.T) {
	t.Parallel()
	d, dir := standing(t)
	utf16 := func(s string) string {
		out := "\xff\xfe"
		for _, r := range s {
			out += string([]byte{byte(r), byte(r >> 8)})
		}
		return out
	}
	long := strings.Repeat("Das hier sind deutsche Wörter für Leute, die größere Übungen mögen.\n", 20)
	latin1 := strings.NewReplacer("ö", "\xf6", "ü", "\xfc", "ß", "\xdf", "Ü", "\xdc").Replace(long)
	for name, c := range map[string]struct{ disk, text, write, then string }{
		"crlf":   {"a\r\nb\r\n", "a\r\nb\r\n", "a\r\nc\r\n", "a\r\nc\r\n"},
		"mixed":  {"a\r\nb\nc\r", "a\r\nb\nc\r", "a\r\nb\n", "a\r\nb\n"},
		"mark":   {"\xef\xbb\xbfé\n", "é\n", "è\n", "\xef\xbb\xbfè\n"},
		"utf-16": {utf16("é\nb\n"), "é\nb\n", "é\nc\n", utf16("é\nc\n")},
		"latin1": {latin1, long, "ö" + long, "\xf6" + latin1},
		"empty":  {"", "", "é", "é"},
	} {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(c.disk), 0o640))
		var got content
		if err := json.Unmarshal([]byte(said(t, d, dialect.Call{}, Read, map[string]any{"path": path})), &got); err != nil || got.Content != c.text {
			t.Errorf("%s: read %q, want %q", name, got.Content, c.text)
		}
		if got := said(t, d, dialect.Call{}, Write, map[string]any{"path": path, "content": c.write}); got != "null" {
			t.Errorf("%s: %s", name, got)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != c.then {
			t.Errorf("%s: the disk has %q, want %q", name, b, c.then)
		}
	}
	for name, disk := range map[string]string{"binary": "a\x00b", "broken": "a\xffb\n" + strings.Repeat("é\n", 50),
		"half a unit": "\xff\xfea\x00b", "half a pair": "\xff\xfea\x00\x00\xd8b\x00"} {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(disk), 0o640))
		got := said(t, d, dialect.Call{}, Read, map[string]any{"path": path})
		if !strings.HasPrefix(got, `{"code":-32602`) || !strings.Contains(got, `"kind":"unsupported"`) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A part that was read is not enough to drop the rest.
func TestPartsSeen(t *testing.T) {
	t.Parallel()
	d, dir := standing(t)
	path := filepath.Join(dir, "a")
	must(t, os.WriteFile(path, []byte(strings.Repeat("line\n", 100)), 0o640))
	said(t, d, dialect.Call{}, Read, map[string]any{"path": path, "line": 1, "limit": 10})
	if got := said(t, d, dialect.Call{}, Write, map[string]any{"path": path, "content": "line\n"}); !strings.Contains(got, "only a part") && !strings.Contains(got, "a part was read") {
		t.Error(got)
	}
	said(t, d, dialect.Call{}, Read, map[string]any{"path": path})
	if got := said(t, d, dialect.Call{}, Write, map[string]any{"path": path, "content": "line\n"}); got != "null" {
		t.Error(got)
	}
}

// A run of a program is on record, with the program and its environment, and nobody is not yes.
func TestTerminal(t *testing.T) {
	t.Parallel()
	d, _ := standing(t)
	run := map[string]any{"sessionId": "s", "command": "make", "args": []string{"all targets"}, "cwd": "/src",
		"env": []any{map[string]any{"name": "PATH", "value": "/evil"}}, "shell": "x", "outputByteLimit": -1}
	for want, by := range map[string]approval.Approver{
		`{"sessionId":"s","command":"make","args":["all targets"],"env":[{"name":"PATH","value":"/evil"}],"cwd":"/src"}`: approval.Yes("test"),
		`"kind":"approval_denied"`: approval.Nobody([]string{"wait"}), `"code":-32603`: nil,
	} {
		if got := said(t, d, dialect.Call{Approver: by}, Terminal, run); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	log, err := os.ReadFile(filepath.Join(d.data, "audit", "audit.jsonl"))
	if n := strings.Count(string(log), `"pattern":"PATH=/evil make \"all targets\" in /src"`); err != nil || n != 3 {
		t.Errorf("%d times on record, %v:\n%s", n, err, log)
	}
	if _, err := d.Call(t.Context(), dialect.Call{Tool: "fs/delete"}); err == nil {
		t.Error("an unknown method was called")
	}
	run["args"] = []string{strings.Repeat("x", 70<<10)}
	if got := said(t, d, dialect.Call{Approver: approval.Yes("test")}, Terminal, run); !strings.Contains(got, `"code":-32602`) {
		t.Error(got)
	}
}

// Each part of a program that can be told apart from another is shown, and in the digest.
func TestTerminalDigest(t *testing.T) {
	t.Parallel()
	d, _ := standing(t)
	seen, digests := map[string]any{}, map[string]any{}
	vars := func(of ...string) (all []any) {
		for i := 0; i < len(of); i += 2 {
			all = append(all, map[string]any{"name": of[i], "value": of[i+1]})
		}
		return all
	}
	for _, run := range []map[string]any{
		{"command": "a"}, {"command": "a", "args": []string{"b"}}, {"command": "a b"}, {"command": "a", "args": []string{""}},
		{"command": "a", "args": []string{"in", "/b"}}, {"command": "a", "cwd": "/b"}, {"command": "a", "args": []string{"in /b"}},
		{"command": "a", "env": vars("in", "/b")}, {"command": "in=/b", "args": []string{"a"}},
		{"command": "a", "env": vars("A", "1")}, {"command": "a", "env": vars("A", "1", "B", "2")}, {"command": "a", "env": vars("A", "1 B=2")},
		{"command": "a", "env": vars("A", "")}, {"command": "A=1", "args": []string{"a"}}, {"command": "a", "args": []string{"A=1"}},
	} {
		by := &noted{}
		said(t, d, dialect.Call{Approver: by}, Terminal, run)
		if was := first(seen[by.Summary], digests[by.Digest]); was != nil || by.Digest == "" {
			t.Errorf("%v is shown as %q, as %v", run, by.Summary, was)
		}
		seen[by.Summary], digests[by.Digest] = run, run
	}
}

func first(a, b any) any {
	if a != nil {
		return a
	}
	return b
}

// noted is an approver that says no, and the question.
type noted struct{ approval.Question }

func (n *noted) Ask(_ context.Context, q approval.Question) (approval.Answer, error) {
	n.Question = q
	return approval.Answer{Decision: approval.Denied}, nil
}

// The window is what a naive reading of the protocol gives.
func FuzzWindow(f *testing.F) {
	f.Add("a\nb\n", 1, 1)
	f.Add("a\r\n\n", 2, -1)
	f.Fuzz(func(t *testing.T, text string, first, n int) {
		if first < 1 || first > 1<<20 || n > 1<<20 {
			return
		}
		lines := strings.SplitAfter(text, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		want := lines[min(first-1, len(lines)):]
		if n >= 0 {
			want = want[:min(n, len(want))]
		}
		if got, _, total := window([]byte(text), first, n); string(got) != strings.Join(want, "") || total != len(lines) {
			t.Errorf("%q from %d, %d: %q of %d lines, want %q of %d", text, first, n, got, total, want, len(lines))
		}
	})
}

// seen is a hook that keeps what it is shown.
type seen struct{ arguments *string }

func (seen) Name() string { return "seen" }

func (h seen) BeforeToolCall(_ context.Context, c hook.BeforeToolCall) (hook.Decision, error) {
	*h.arguments = string(c.Arguments)
	return hook.Decision{}, nil
}

// Hooks see the parameters that are carried out: of a name that comes twice, or in another case, the one that counts, and no value that
// counts as absent.
func TestHooksSeeWhatRuns(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	var saw string
	e, err := engine.Open(config.Default(), engine.Host{DataDir: filepath.Join(t.TempDir(), "data"),
		Hooks: hook.Set{Before: []hook.Before{seen{&saw}}}})
	must(t, err)
	t.Cleanup(func() { _ = e.Close() })
	d := Over(e, config.Default().Tools.ACP)
	for _, c := range []struct{ method, params, want string }{
		{Write, `{"sessionId":"s","path":"DIR/a","content":"fine","Content":"evil","_meta":{"a":1}}`, `{"_meta":{"a":1},"content":"evil","path":"DIR/a","sessionId":"s"}`},
		{Write, `{"path":"DIR/a","PATH":"DIR/b","content":""}`, `{"path":"DIR/b","content":""}`},
		{Read, `{"path":"DIR/a","path":"DIR/b","line":2.9,"limit":"7"}`, `{"path":"DIR/b","line":2}`},
		{Read, `{"path":"DIR/\u0061","line":-1,"limit":0}`, `{"path":"DIR/a","limit":0}`},
	} {
		saw = ""
		named := strings.NewReplacer("DIR", dir)
		if _, err := d.Call(t.Context(), dialect.Call{Tool: c.method, Args: json.RawMessage(named.Replace(c.params))}); err != nil {
			t.Fatal(err)
		}
		if want := named.Replace(c.want); saw != want {
			t.Errorf("%s: the hook saw %s, want %s", c.params, saw, want)
		}
	}
}
