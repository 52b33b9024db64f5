package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/hook"
	"moltisfs/tools"
)

// script is a hook of every event that does what it is told.
type script struct {
	do   func(ctx context.Context, payload json.RawMessage) (hook.Decision, error)
	seen *sightings
}

// sightings are what hooks saw. One that is too slow is left behind, and writes while the test reads.
type sightings struct {
	mu  sync.Mutex
	all []string
}

func (s *sightings) get() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

func (script) Name() string { return "script" }

func (s script) see(i hook.Info) {
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	s.seen.all = append(s.seen.all, i.Event+" "+i.Tool+" "+i.CallID)
}

func (s script) BeforeToolCall(ctx context.Context, p hook.BeforeToolCall) (hook.Decision, error) {
	s.see(p.Info)
	return s.do(ctx, p.Arguments)
}

func (s script) AfterToolCall(ctx context.Context, p hook.AfterToolCall) error {
	s.see(p.Info)
	_, err := s.do(ctx, p.Result)
	return err
}

func (s script) ToolResultPersist(ctx context.Context, p hook.ToolResultPersist) (hook.Decision, error) {
	s.see(p.Info)
	return s.do(ctx, p.Result)
}

// Every hook × everything it can do, on a Write: what is answered, whether the file is written, and
// what is on record.
func TestHooks(t *testing.T) {
	modify := func(data string) func(context.Context, json.RawMessage) (hook.Decision, error) {
		return func(context.Context, json.RawMessage) (hook.Decision, error) {
			return hook.Decision{Modify: json.RawMessage(data)}, nil
		}
	}
	does := map[string]func(context.Context, json.RawMessage) (hook.Decision, error){
		"continue": func(context.Context, json.RawMessage) (hook.Decision, error) { return hook.Decision{}, nil },
		"block": func(context.Context, json.RawMessage) (hook.Decision, error) {
			return hook.Decision{Block: true, Reason: "not\ntoday"}, nil
		},
		"fail": func(context.Context, json.RawMessage) (hook.Decision, error) {
			return hook.Decision{}, errors.New("oops")
		},
		"panic": func(context.Context, json.RawMessage) (hook.Decision, error) { panic("oops") },
		"slow": func(context.Context, json.RawMessage) (hook.Decision, error) {
			<-t.Context().Done() // it does not heed its own
			return hook.Decision{}, nil
		},
		"modify":    nil, // below
		"no JSON":   modify(`{"content":`),
		"no object": modify(`7`),
		"unknown":   modify(`{"file_path":"/x","content":"x","sudo":true}`),
	}
	type want struct {
		kind, content string
		noted         bool
	}
	failed, wrote := want{"policy_error", "", true}, want{"write", "sent", false}
	held := want{"policy_error", "sent", true} // written, and the answer withheld
	for event, table := range map[string]map[string]want{
		hook.BeforeToolCallEvent: {
			"continue": wrote, "block": {"permission_denied", "", true}, "fail": failed, "panic": failed, "slow": failed,
			"modify": {"write", "changed", true}, "no JSON": failed, "no object": failed, "unknown": failed,
		},
		hook.AfterToolCallEvent: {
			"continue": wrote, "block": wrote, "fail": {"write", "sent", true}, "panic": {"write", "sent", true},
			"slow": {"write", "sent", true}, "modify": wrote, "no JSON": wrote, "no object": wrote, "unknown": wrote,
		},
		hook.ToolResultPersistEvent: {
			"continue": wrote, "block": {"permission_denied", "sent", true}, "fail": held, "panic": held, "slow": held,
			"modify": {"told", "sent", true}, "no JSON": held, "no object": held, "unknown": held,
		},
	} {
		for name, w := range table {
			for _, allow := range []bool{false, true} {
				w := w
				t.Run(fmt.Sprintf("%s/%s/%t", event, name, allow), func(t *testing.T) {
					t.Parallel()
					var saw sightings
					h := script{do: does[name], seen: &saw}
					set := hook.Set{Timeout: time.Minute, Allow: allow}
					if name == "slow" {
						set.Timeout = 20 * time.Millisecond
					}
					switch event {
					case hook.BeforeToolCallEvent:
						set.Before = []hook.Before{h}
					case hook.AfterToolCallEvent:
						set.After = []hook.After{h}
					default:
						set.Persist = []hook.Persist{h}
					}
					var file string
					if name == "modify" {
						h.do = func(_ context.Context, p json.RawMessage) (hook.Decision, error) {
							changed := strings.Replace(string(p), `"sent"`, `"changed"`, 1)
							if event == hook.ToolResultPersistEvent {
								changed = `{"result":{"file_path":"` + file + `","kind":"told"}}`
							}
							return hook.Decision{Modify: json.RawMessage(changed)}, nil
						}
						set.Before, set.After, set.Persist = again(set.Before, h), again(set.After, h), again(set.Persist, h)
					}
					s, root := suite(t, nil, tools.Options{Hooks: set})
					file = filepath.Join(root, "new")
					p := call(t, s, "Write", map[string]any{"file_path": file, "content": "sent"})
					got, _ := os.ReadFile(file)
					if passedOver := allow && w.kind == "policy_error"; passedOver {
						w = want{"write", "sent", true}
					}
					r := lastRecord(t, root)
					if p.Kind() != w.kind || string(got) != w.content || (r["hooks"] != nil) != w.noted {
						t.Errorf("%s, wrote %q, noted %v; want %+v", p.Text(), got, r["hooks"], w)
					}
					if (r["outcome"] == "ok") != (w.content != "") {
						t.Errorf("the record's outcome is %v", r["outcome"])
					}
					if seen := saw.get(); len(seen) != 1 || seen[0] != event+" Write "+r["call"].(string) {
						t.Errorf("the hook saw %q; the call is %v", seen, r["call"])
					}
				})
			}
		}
	}
}

// again is hooks with h for each of them.
func again[H any](hooks []H, h any) (out []H) {
	for range hooks {
		out = append(out, h.(H))
	}
	return out
}

// What one hook changed is what the next one sees, and an image that was changed is no image any more.
func TestHooksInTheirOrder(t *testing.T) {
	var saw sightings
	var read string
	changes := script{seen: &saw, do: func(_ context.Context, p json.RawMessage) (hook.Decision, error) {
		return hook.Decision{Modify: json.RawMessage(strings.Replace(string(p), "secret", "public", 1))}, nil
	}}
	looks := script{seen: &saw, do: func(_ context.Context, p json.RawMessage) (hook.Decision, error) {
		read = string(p)
		return hook.Decision{}, nil
	}}
	s, root := suite(t, nil, tools.Options{Hooks: hook.Set{Persist: []hook.Persist{changes, looks}}})
	write(t, root+"/f", "secret\n")
	p := call(t, s, "Read", map[string]any{"file_path": root + "/f"})
	if strings.Contains(p.Text(), "secret") || !strings.Contains(p.Text(), "public") || !strings.Contains(read, `{"result":{"kind":"text"`) {
		t.Errorf("answered %s; the second hook saw %s", p.Text(), read)
	}
	refused := call(t, s, "Read", map[string]any{"file_path": root + "/nothing"})
	if seen := saw.get(); !tools.Refused(refused) || len(seen) != 4 {
		t.Errorf("%s; seen %q", refused.Text(), seen)
	}
}

// What a hook made of a call is judged anew: the next hook sees it under our names, whatever the first one spelled, and that is what runs. A
// hook that is passed over leaves what was there.
func TestHooksChangeInForm(t *testing.T) {
	for _, c := range []struct{ changed, saw, wrote string }{
		{`{"path":"FILE","text":"b"}`, `{"file_path":"FILE","content":"b"}`, "b"}, // a hook may use the names of others too
		{`{"path":"FILE","cntent":"b"}`, `{"file_path":"FILE","content":"a"}`, "a"},
		{`{"path":"FILE","content":"b","dry_run":"false","_k":1}`, `{"_k":1,"content":"b","dry_run":false,"file_path":"FILE"}`, "b"},
		{`{"content":"\u0062","file_path":"FILE","encoding":null}`, `{"file_path":"FILE","content":"b"}`, "b"},
		{`{"file_path":"FILE","content":"b","content":"c"}`, `{"file_path":"FILE","content":"a"}`, "a"},
	} {
		var saw string
		var file string
		first := script{seen: new(sightings), do: func(context.Context, json.RawMessage) (hook.Decision, error) {
			return hook.Decision{Modify: json.RawMessage(strings.ReplaceAll(c.changed, "FILE", file))}, nil
		}}
		second := script{seen: new(sightings), do: func(_ context.Context, p json.RawMessage) (hook.Decision, error) {
			saw = string(p)
			return hook.Decision{}, nil
		}}
		s, root := suite(t, nil, tools.Options{Hooks: hook.Set{Allow: true, Before: []hook.Before{first, second}}})
		file = filepath.Join(root, "f")
		call(t, s, "Write", map[string]any{"path": file, "content": "a"})
		if want := strings.ReplaceAll(c.saw, "FILE", file); saw != want {
			t.Errorf("%s: the second hook saw %s, want %s", c.changed, saw, want)
		}
		if got, _ := os.ReadFile(file); string(got) != c.wrote {
			t.Errorf("%s: wrote %q, want %q", c.changed, got, c.wrote)
		}
	}
}

// Programs that the configuration names are hooks, and nobody may touch them.
func TestHookPrograms(t *testing.T) {
	dir := t.TempDir()
	program := write(t, filepath.Join(dir, "check"), "#!/bin/sh\ngrep -q secret && { echo no secrets >&2; exit 1; }\nexit 0\n")
	must(t, os.Chmod(program, 0o755))
	s, root := suite(t, func(fs *config.FS) {
		fs.AllowPaths = nil
		fs.Hooks.BeforeToolCall = []string{program + " -x"}
	}, tools.Options{})
	for content, want := range map[string]string{"secret": "permission_denied", "fine": "write"} {
		p := call(t, s, "Write", map[string]any{"file_path": root + "/new", "content": content})
		if p.Kind() != want {
			t.Errorf("%s: %s", content, p.Text())
		}
	}
	if p := call(t, s, "Write", map[string]any{"file_path": program, "content": "#!/bin/true"}); p.Kind() != "path_denied" {
		t.Errorf("the program of a hook: %s", p.Text())
	}
}

// A hook whose program is not there is an error at the start, with its place in the list.
func TestHookProgramThatIsNotThere(t *testing.T) {
	cfg := config.Default()
	there := write(t, filepath.Join(t.TempDir(), "check"), "")
	cfg.Tools.FS.Hooks.AfterToolCall = []string{there + " -x", there + "k -x", filepath.Dir(there)}
	want := "tools.fs.hooks.after_tool_call[1]: \"" + there + "k\" is no program"
	for name, err := range map[string]error{"check": tools.Check(cfg), "open": opening(cfg, t.TempDir()+"/data")} {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "after_tool_call[2]") {
			t.Errorf("%s: %v; want %s", name, err, want)
		}
	}
}

func opening(cfg config.Config, data string) error {
	s, err := tools.Open(cfg, tools.Options{DataDir: data})
	if err == nil {
		err = s.Close()
	}
	return err
}

// An observer that panics is the host's trouble, not the caller's; the log has a line for each call.
func TestObserverAndLog(t *testing.T) {
	var log bytes.Buffer
	s, root := suite(t, nil, tools.Options{
		Hooks: hook.Set{Observer: panics{}}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	file := filepath.Join(root, "new")
	if p := call(t, s, "Write", map[string]any{"file_path": file, "content": "sent"}); p.Kind() != "write" {
		t.Error(p.Text())
	}
	if want := `msg="tool call" tool=Write file_path=` + file + ` bytes=4 outcome=ok dialect=tools call=`; !strings.Contains(log.String(), want) {
		t.Errorf("no %s in %s", want, log.String())
	}
	if r := lastRecord(t, root); r["outcome"] != "ok" {
		t.Errorf("on record: %v", r)
	}
}

type panics struct{}

func (panics) Begin(context.Context, hook.Info) (context.Context, func(hook.End)) { panic("oops") }
