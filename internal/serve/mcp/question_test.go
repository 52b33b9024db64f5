package mcp_test

import (
	"context"
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
	"moltisfs/tools"
	"moltisfs/tools/toolstest"
)

// asker is a client that answers forms, and keeps what it was shown.
type asker struct {
	answer sdk.ElicitResult
	after  time.Duration
	shown  []*sdk.ElicitParams
}

func (a *asker) connect(t *testing.T, root, revision string) *sdk.ClientSession {
	t.Helper()
	toServer, fromServer := serve(t, config.Default(), tools.Options{}, mcp.Options{Elicit: true, Root: root})
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			a.shown = append(a.shown, r.Params)
			time.Sleep(a.after)
			res := a.answer
			return &res, nil
		}})
	s, err := client.Connect(t.Context(), &sdk.IOTransport{Reader: fromServer, Writer: toServer},
		&sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Where everything is the workspace, paths are whole.
func TestQuestionBelowTheRootOfAll(t *testing.T) {
	root := toolstest.Tree(t)
	a := &asker{answer: sdk.ElicitResult{Action: "decline"}}
	f := filepath.Join(root, "new.txt")
	call(t, a.connect(t, "/", revisions[0]), "Write", map[string]any{"file_path": f, "content": "x"})
	if len(a.shown) != 1 || !strings.HasPrefix(a.shown[0].Message, "Write "+f+" ") {
		t.Errorf("asked %+v", a.shown)
	}
}

// The first line says what happens, the next two what goes and what comes; who asks stands last.
func TestQuestionInThreeLines(t *testing.T) {
	for _, revision := range revisions {
		root := toolstest.Tree(t)
		f := file(t, root, "a.txt", "same\none\tx\nother\n")
		file(t, root, "run.sh", "a\n")
		a := &asker{answer: sdk.ElicitResult{Action: "decline"}}
		s := a.connect(t, root, revision)
		for _, c := range []struct {
			tool  string
			args  map[string]any
			first []string
		}{
			{"Edit", map[string]any{"file_path": f, "old_string": "one\tx", "new_string": "two\x1b[31m" + strings.Repeat("y", 100)},
				[]string{"Edit a.txt +1 −1", "-one    x", `+two\u{1b}[31m` + strings.Repeat("y", 61) + "…"}},
			{"Write", map[string]any{"file_path": filepath.Join(root, "new.txt"), "content": "-- one\n++ two\nthree\n"},
				[]string{"Write new.txt +3 −0 (NEW FILE)", "+-- one", "+++ two"}},
			{"Edit", map[string]any{"file_path": f, "old_string": "same\none\tx\n", "new_string": ""},
				[]string{"Edit a.txt +0 −2", "-same", "-one    x"}},
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
				!regexp.MustCompile(`expires at \d\d:\d\d:\d\d, in \d+ (minutes|seconds)\.$`).MatchString(last[0]) {
				t.Errorf("%s: ends %q", c.tool, last)
			}
		}
	}
}

// What must be looked at stands in the first line, and is asked about whatever was allowed before.
func TestQuestionWithWarning(t *testing.T) {
	root := toolstest.Tree(t)
	f := file(t, root, "run", "a\n")
	if err := chmodX(f); err != nil {
		t.Fatal(err)
	}
	a := &asker{answer: sdk.ElicitResult{Action: "accept", Content: map[string]any{"allow": "session"}}}
	s := a.connect(t, root, revisions[1])
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
				s := a.connect(t, root, revision)
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
				if schema := fmt.Sprint(a.shown[0].RequestedSchema); !strings.Contains(schema, "(60 minutes)") ||
					strings.Count(schema, "until ") != 2 {
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

// A client that cancels by itself has asked nobody, and the model is told what to do about it.
func TestCancelWithoutAPerson(t *testing.T) {
	for _, revision := range revisions {
		for _, after := range []time.Duration{0, time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				root := toolstest.Tree(t)
				f := file(t, root, "a.txt", "1\n")
				a := &asker{answer: sdk.ElicitResult{Action: "cancel"}, after: after}
				r := call(t, a.connect(t, root, revision), "Write", map[string]any{"file_path": f, "content": "2"})
				text := textOf(t, r)
				if !r.IsError || !strings.Contains(text, "--approve yes") ||
					strings.Contains(text, "obody was asked") != (after == 0) ||
					strings.Contains(text, "dismissed") == (after == 0) {
					t.Errorf("%s after %s: %s", revision, after, text)
				}
			})
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
