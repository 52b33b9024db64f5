package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"moltisfs/config"
	"moltisfs/internal/serve/mcp"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

// asker is a client that answers forms, and keeps what it was shown.
type asker struct {
	answer sdk.ElicitResult
	shown  []*sdk.ElicitParams
}

func (a *asker) connect(t *testing.T, revision string) *sdk.ClientSession {
	t.Helper()
	toServer, fromServer := serve(t, config.Default(), tools.Options{}, mcp.Options{Elicit: true})
	return connect(t, toServer, fromServer, "test", revision, &sdk.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			a.shown = append(a.shown, r.Params)
			res := a.answer
			return &res, nil
		}})
}

// The first line says what happens, the next two have a line that goes and one that comes; session and principal stand last.
func TestQuestionInThreeLines(t *testing.T) {
	for _, revision := range revisions {
		root := toolstest.Tree(t)
		f := file(t, root, "a.txt", "same\none\tx\nother\n")
		file(t, root, "run.sh", "a\n")
		a := &asker{answer: sdk.ElicitResult{Action: "decline"}}
		s := a.connect(t, revision)
		for _, c := range []struct {
			tool  string
			args  map[string]any
			first []string
		}{
			{"Edit", map[string]any{"file_path": f, "old_string": "one\tx", "new_string": "two\x1b[31m" + strings.Repeat("y", 100)},
				[]string{"Edit " + f + " +1 −1", "-one    x", `+two\u{1b}[31m` + strings.Repeat("y", 61) + "…"}},
			{"Write", map[string]any{"file_path": filepath.Join(root, "new.txt"), "content": "-- one\n++ two\nthree\n"},
				[]string{"Write " + filepath.Join(root, "new.txt") + " +3 −0 (NEW FILE)", "+-- one", "+++ two"}},
			{"Edit", map[string]any{"file_path": f, "old_string": "same\none\tx\n", "new_string": ""},
				[]string{"Edit " + f + " +0 −2", "-same", "-one    x"}},
		} {
			a.shown = nil
			call(t, s, c.tool, c.args)
			if len(a.shown) != 1 {
				t.Fatalf("%s: %d questions", c.tool, len(a.shown))
			}
			lines := strings.Split(a.shown[0].Message, "\n")
			if got := lines[:3]; fmt.Sprint(got) != fmt.Sprint(c.first) {
				t.Errorf("%s: begins\n%s\nwant\n%s", c.tool, strings.Join(got, "\n"), strings.Join(c.first, "\n"))
			}
			last := lines[len(lines)-2:]
			if last[1] != "session default, principal local" ||
				!regexp.MustCompile(`expires at \d\d:\d\d:\d\d\.$`).MatchString(last[0]) {
				t.Errorf("%s: ends %q", c.tool, last)
			}
		}
	}
}

// A warning stands in the first line, and its change is asked about whatever was allowed before.
func TestQuestionWithWarning(t *testing.T) {
	root := toolstest.Tree(t)
	f := file(t, root, "run", "a\n")
	must(t, chmodX(f))
	a := &asker{answer: sdk.ElicitResult{Action: "accept", Content: map[string]any{"allow": "session"}}}
	s := a.connect(t, revisions[1])
	other := file(t, root, "a.txt", "a\n")
	call(t, s, "Edit", map[string]any{"file_path": other, "old_string": "a", "new_string": "b"})
	for i, to := range []string{"b", "c"} {
		call(t, s, "Write", map[string]any{"file_path": f, "content": to + "\n"})
		if len(a.shown) != i+2 {
			t.Fatalf("%d questions", len(a.shown))
		}
	}
	first, _, _ := strings.Cut(a.shown[1].Message, "\n")
	if !strings.Contains(first, "WARNING: ") || !strings.Contains(first, "is executable") {
		t.Error(first)
	}
	if strings.Contains(fmt.Sprint(a.shown[1].RequestedSchema), "session") {
		t.Errorf("a form for a change with a warning: %v", a.shown[1].RequestedSchema)
	}
}

// A yes goes as far as it says, and no longer.
func TestChoices(t *testing.T) {
	for _, revision := range revisions {
		for _, c := range []struct {
			allow           string
			same, other, at int // questions by then: the same file again, another one, after the end
		}{{"once", 2, 3, 4}, {"", 2, 3, 4}, {"file", 1, 2, 3}, {"session", 1, 1, 2}} {
			synctest.Test(t, func(t *testing.T) {
				root := toolstest.Tree(t)
				f, g := file(t, root, "a.txt", "1\n"), file(t, root, "b.txt", "1\n")
				a := &asker{answer: sdk.ElicitResult{Action: "accept", Content: map[string]any{"allow": c.allow}}}
				if c.allow == "" {
					a.answer.Content = nil
				}
				s := a.connect(t, revision)
				n := 1
				edit := func(path string) int {
					n++
					r := call(t, s, "Write", map[string]any{"file_path": path, "content": fmt.Sprint(n)})
					if r.IsError {
						t.Fatal(textOf(t, r))
					}
					return len(a.shown)
				}
				edit(f)
				if schema := fmt.Sprint(a.shown[0].RequestedSchema); !strings.Contains(schema, "Allow changes of this file for 60 minutes") ||
					strings.Count(schema, "minutes") != 2 {
					t.Errorf("the choices don't tell their end: %s", schema)
				}
				if got := edit(f); got != c.same {
					t.Errorf("%s %s: the same file: %d questions", revision, c.allow, got)
				}
				if got := edit(g); got != c.other {
					t.Errorf("%s %s: another file: %d questions", revision, c.allow, got)
				}
				time.Sleep(time.Hour)
				if got := edit(f); got != c.at {
					t.Errorf("%s %s: an hour later: %d questions", revision, c.allow, got)
				}
			})
		}
	}
}

// answers is a client on the wire, of any revision, that answers the question about a change with a
// result as it stands there. It gives what the model reads.
func answers(t *testing.T, revision, f, result string, after time.Duration) string { // after is for a bubble of synctest
	t.Helper()
	p := newPlain(t, config.Default(), tools.Options{}, mcp.Options{Elicit: true})
	write := `"name":"Write","arguments":{"file_path":` + string(mustJSON(t, f)) + `,"content":"new\n"}`
	if revision >= "2026-07-28" {
		got := p.ask(1, "tools/call", write)
		_, state, _ := strings.Cut(got, `"requestState":"`)
		state, _, _ = strings.Cut(state, `"`)
		time.Sleep(after)
		return p.ask(2, "tools/call", write+`,"requestState":"`+state+`","inputResponses":{"approval":`+result+`}`)
	}
	p.hello(revision, `{"elicitation":{}}`)
	asked := p.line(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{` + write + `}}`)
	var q struct {
		ID     json.RawMessage
		Method string
	}
	if err := json.Unmarshal([]byte(asked), &q); err != nil || q.Method != "elicitation/create" {
		t.Fatal(asked, err)
	}
	time.Sleep(after)
	return p.line(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":` + result + `}`)
}

// The answer of a client is a yes only if it was offered. Else it is a no, for the reason that the
// person gave, in every revision alike.
func TestOnlyWhatWasOfferedApproves(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
		for _, c := range []struct {
			result string
			yes    bool
			want   string // in the answer
		}{
			{`{"action":"accept"}`, true, ""}, {`{"action":"accept","content":{}}`, true, ""}, {`{"action":"accept","content":null}`, true, ""},
			{`{"action":"accept","content":{"allow":"once"}}`, true, ""}, {`{"action":"accept","content":{"allow":"session"}}`, true, ""},
			{`{"action":"accept","content":{"allow":"file","unseen":false}}`, true, ""},
			{`{"action":"accept","content":{"allow":"no keep it"}}`, false, "the user answered: no keep it"},
			{`{"action":"accept","content":{"allow":"no"}}`, false, "the user answered: no"},
			{`{"action":"accept","content":{"allow":"deny"}}`, false, "the user answered: deny"},
			{`{"action":"accept","content":{"allow":"Once"}}`, false, "the user answered: Once"},
			{`{"action":"accept","content":{"allow":"once "}}`, false, "the user answered: once"},
			{`{"action":"accept","content":{"allow":"a\u202eb\u001b"}}`, false, `the user answered: a\\u{202e}b\\u{1b}`},
			{`{"action":"accept","content":{"allow":"` + strings.Repeat("ä", 1<<20) + `"}}`, false, "the user answered: " + strings.Repeat("ä", 512) + "…"},
			{`{"action":"accept","content":{"allow":"x` + strings.Repeat("ä", 1<<20) + `"}}`, false, "the user answered: x" + strings.Repeat("ä", 511) + "…"},
			{`{"action":"accept","content":{"allow":false}}`, false, "the user answered: false"},
			{`{"action":"accept","content":{"allow":true}}`, false, "the user answered: true"},
			{`{"action":"accept","content":{"allow":null}}`, false, "the user answered: null"},
			{`{"action":"accept","content":{"allow":""}}`, false, "was not approved"},
			{`{"action":"accept","content":{"allow":["session"]}}`, false, `the user answered: [\"session\"]`},
			{`{"action":"accept","content":{"allow":{}}}`, false, "the user answered: {}"},
			{`{"action":"accept","content":{"allow":1}}`, false, "the user answered: 1"},
			{`{"action":"accept","content":{"Allow":"no"}}`, false, `the user answered: {\"Allow\":\"no\"}`},
			{`{"action":"accept","content":{"allow":"once","but":"not here"}}`, false, "not here"},
			{`{"action":"accept","content":{"unseen":"no"}}`, false, "the user answered: "},
			{`{"action":"decline"}`, false, "obody was asked"}, {`{"action":"cancel"}`, false, "obody was asked"},
			{`{"action":"Accept","content":{"allow":"once"}}`, false, "obody was asked"}, {`{"action":"yes"}`, false, "obody was asked"},
			{`{"action":""}`, false, "obody was asked"}, {`{}`, false, ""},
			{`{"action":"decline","content":{"allow":"session"}}`, false, "obody was asked"},
			{`{"action":"accept","content":"once"}`, false, ""}, {`{"action":["accept"]}`, false, ""}, {`"accept"`, false, ""}, {`true`, false, ""}, {`[]`, false, ""},
		} {
			f := file(t, toolstest.Tree(t), "a.txt", "one\n")
			got := answers(t, revision, f, c.result, 0)
			if changed := content(t, f) == "new\n"; changed != c.yes || !strings.Contains(got, c.want) {
				t.Errorf("%s %.200s: changed %v: %.2000s", revision, c.result, changed, got)
			}
			if words := strings.HasPrefix(c.want, "the user"); words && strings.Contains(got, "obody") {
				t.Errorf("%s %.200s: a person has answered: %.2000s", revision, c.result, got)
			}
		}
	}
}

// A client that says no by itself has asked nobody, and the model is told what to do about it. A
// person takes longer.
func TestNoWithoutAPerson(t *testing.T) {
	for _, revision := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
		for _, action := range []string{"cancel", "decline", "reject", "Accept"} {
			for _, after := range []time.Duration{0, time.Minute} {
				synctest.Test(t, func(t *testing.T) {
					f := file(t, toolstest.Tree(t), "a.txt", "1\n")
					text := answers(t, revision, f, `{"action":"`+action+`"}`, after)
					if !strings.Contains(text, `"isError":true`) || content(t, f) != "1\n" ||
						strings.Contains(text, "obody was asked") != (after == 0) ||
						strings.Contains(text, "--approve yes") != (after == 0 || action == "cancel") {
						t.Errorf("%s, %s after %s: %s", revision, action, after, text)
					}
				})
			}
		}
	}
}

// The instructions promise a question only to a client that can show it.
func TestInstructionsFitTheClient(t *testing.T) {
	o := mcp.Options{Elicit: true, Instructions: "Files.", Asking: [2]string{" Asked.", " Refused."}}
	for _, revision := range revisions {
		for _, c := range []struct {
			elicit func(*sdk.ElicitParams) string
			want   string
		}{{nil, "Files. Refused."}, {func(*sdk.ElicitParams) string { return "accept" }, "Files. Asked."}} {
			s := start(t, config.Default(), tools.Options{}, o, "test", revision, c.elicit)
			if got := s.InitializeResult().Instructions; got != c.want {
				t.Errorf("%s: %q, want %q", revision, got, c.want)
			}
		}
	}
}
