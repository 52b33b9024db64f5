package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"moltisfs/internal/dialect"
	"moltisfs/internal/testdir"
)

var must = testdir.Must

// deaf is a dialect that carries nothing out, and notes what it is called with.
type deaf struct {
	mu     sync.Mutex
	called []string
}

func (d *deaf) Call(_ context.Context, c dialect.Call) (dialect.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.called = append(d.called, c.Tool)
	return &dialect.Object{Content: json.RawMessage("{}")}, nil
}

func (*deaf) Enter(context.Context, dialect.Call, string) (string, dialect.Answer, error) {
	return "/w", nil, nil
}
func (*deaf) Offers(string) bool { return true }

// through gives the output at both ends when the agent has said this and the editor that.
func through(t *testing.T, editor, agent io.Reader, terminal string) (toEditor, toAgent string, d *deaf) {
	t.Helper()
	d = &deaf{}
	var e, a bytes.Buffer
	p := New(d, &e, &a, Options{Terminal: terminal, Run: "r", Tell: func(string, ...any) {}})
	hungUp := make(chan struct{})
	reading, end := io.Pipe()
	go func() { // the agent's end is told when the editor's has come
		_, _ = io.Copy(end, agent)
		<-hungUp
		_ = end.Close()
	}()
	must(t, p.Serve(t.Context(), editor, reading, func() { close(hungUp) }))
	return e.String(), a.String(), d
}

// The editor gets the lines of the agent, whatever they are, or an error: nothing that any of three ways to read JSON lines takes for
// a file method or, where they are refused, a terminal.
func FuzzAgent(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"fs/write_text_file","params":{"sessionId":"s","path":"/a","content":"x"}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"x":"\u2028"}}` + "\n" + `{"id":2,"result":{}}`,
		`{"a":` + "\r" + `{"method":"terminal/create"}` + "\r" + `,"id":1,"method":"x"}`,
		`{"id":1,"method":"x","Method":"fs/read_text_file"}`, `{"id":1,"m\u0065thod":"terminal/create"}`,
		"\ufeff{}", "[]", "noise", "{", "\"", "{\"a\":\"\u2028{\\\"method\\\":1}\u2028\",\"id\":1,\"method\":\"x\"}", "{\"id\":1,\"result\":\"\xff\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		got, answers, _ := through(t, strings.NewReader(""), bytes.NewReader(said), "refuse")
		known := map[string]bool{}
		for line := range strings.SplitSeq(string(said), "\n") {
			known[line] = true
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(got, "\n"), "\n") {
			if line != "" && !known[line] && !strings.Contains(line, `"error":{"code":-32603`) {
				t.Errorf("the editor got %q, which nobody said", line)
			}
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(answers, "\n"), "\n") {
			if line != "" && !json.Valid([]byte(line)) {
				t.Errorf("the agent got %q", line)
			}
		}
		for _, read := range []func(string) []string{
			func(s string) []string { return strings.Split(s, "\n") },
			func(s string) []string {
				return strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
			},
			func(s string) []string {
				return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("\n\r\u2028\u2029\u0085", r) })
			},
		} {
			for _, line := range read(got) {
				var loose struct{ Method string } // in any letter case, the last one
				first := map[string]any{}
				_ = json.Unmarshal([]byte(line), &loose)
				_ = json.Unmarshal([]byte(line), &first)
				exact, _ := first["method"].(string)
				for _, m := range []string{loose.Method, exact} {
					if strings.HasPrefix(m, "terminal/") || m == readFile || m == writeFile {
						t.Errorf("the editor may take %q for %s", line, m)
					}
				}
			}
		}
	})
}

// The lines of the editor go to the agent as they are, but for those that open connections and sessions or answer us.
func FuzzEditor(f *testing.F) {
	for _, s := range []string{`{"id":0,"method":"initialize","params":{"clientCapabilities":{}}}`, `{"id":1,"method":"session/new","params":{"cwd":"/w"}}`,
		`{"jsonrpc":"2.0","id":7,"result":null}`, "[]\n{}", "x", "{\"id\":0,\"0\":{\"0\":{}\x00 "} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		_, got, _ := through(t, bytes.NewReader(said), strings.NewReader(""), "pass")
		want := string(said)
		if want != "" && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		if strings.Contains(want, "initialize") || strings.Contains(want, `\u`) {
			for line := range strings.SplitSeq(got, "\n") { // it may be another, but not a broken one
				if !json.Valid([]byte(line)) && !strings.Contains(want, line) {
					t.Errorf("the agent got %q", line)
				}
			}
		} else if got != want {
			t.Errorf("of %q the agent got %q", want, got)
		}
	})
}

// A line of 100 MB goes through in either direction, however it comes in, and so does what follows it.
func TestLongLines(t *testing.T) {
	size := 4 << 20
	if !testing.Short() && *whole {
		size = 100 << 20
	}
	long := `{"jsonrpc":"2.0","method":"x","params":"` + strings.Repeat("ab\\\"{", size/5) + `"}` + "\n"
	long += `{"jsonrpc":"2.0","method":"y"}` + "\n"
	toEditor, toAgent, _ := through(t, strings.NewReader(long), iotest.HalfReader(strings.NewReader(long)), "pass")
	if toEditor != long || toAgent != long {
		t.Errorf("%d and %d bytes of %d", len(toEditor), len(toAgent), len(long))
	}
}

// An agent that asks and asks and reads no answer ends with its editor all the same.
func TestAgentThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reading, agent := io.Pipe()
		unread, in := io.Pipe()
		there, editor := io.Pipe()
		p := New(&deaf{}, io.Discard, in, Options{Terminal: "pass", Run: "r", Tell: func(string, ...any) {}})
		go func() {
			for range 2 * most {
				_, _ = io.WriteString(agent, `{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/a"}}`+"\n")
			}
			_ = agent.Close()
		}()
		go func() {
			synctest.Wait()
			_ = editor.Close()
		}()
		must(t, p.Serve(t.Context(), there, reading, func() { _ = unread.Close() }))
	})
}
