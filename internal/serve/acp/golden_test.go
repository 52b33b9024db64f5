package acp_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rogpeppe/go-internal/txtar"

	"moltisfs/config"
	"moltisfs/internal/approval"
	dialect "moltisfs/internal/dialect/acp"
	"moltisfs/internal/engine"
	"moltisfs/internal/serve/acp"
	"moltisfs/internal/testdir"
)

var must = testdir.Must

var update = flag.Bool("update", false, "rewrite the conversations in testdata as they are")

// TestConversations has an editor and an agent say what the section "talk" of each testdata/*.txtar has them say. Lines that
// begin with "editor: " and "agent: " are sent, and stage.say knows verbs for frequent ones. What the other side gets is
// written under each line, in "> editor" and "> agent". Sections below tree/ are on the disk, those below buffers/ are the texts that the editor
// holds. The section "setup" has words: "editor=rw" (also r, w, -: which file methods it has), "terminal=…", and keys of the
// configuration. At the end the section "after" tells disk and buffers, as far as they changed.
func TestConversations(t *testing.T) {
	all, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, name := range all {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(name)
			must(t, err)
			root, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			data := filepath.Join(t.TempDir(), "data")
			var talk, after string
			synctest.Test(t, func(t *testing.T) { talk, after = converse(t, a, root, data) })
			was := txtar.Format(a)
			for i := range a.Files {
				switch f := &a.Files[i]; f.Name {
				case "talk":
					f.Data = []byte(talk)
				case "after":
					f.Data = []byte(after)
				}
			}
			is := txtar.Format(a)
			if *update {
				err = os.WriteFile(name, is, 0o666)
			} else if !bytes.Equal(is, was) {
				t.Errorf("it is now\n%s", is)
			}
			must(t, err)
		})
	}
}

// A stage is a conversation that is going on.
type stage struct {
	t             *testing.T
	root          string
	editor, agent io.Writer // into the proxy
	mu            sync.Mutex
	heard         []string          // since the last line
	buffers       map[string]string // by path
	asked         []json.RawMessage // ids of questions that are open
	methods       string            // of the editor; z: no file has no text, n: it takes nothing
	calls         int               // of the agent
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o777))
	must(t, os.WriteFile(path, data, 0o666))
}

func converse(t *testing.T, a *txtar.Archive, root, data string) (talk, after string) {
	x := &stage{t: t, root: root, buffers: map[string]string{}, methods: "rw"}
	cfg := config.Default()
	cfg.Tools.FS.RequireApproval = false
	o := acp.Options{Terminal: "pass", Run: "run", Tell: func(format string, a ...any) { x.note("> operator: " + fmt.Sprintf(format, a...)) }}
	disk, lines := map[string]string{}, ""
	for _, f := range a.Files {
		text := strings.ReplaceAll(string(f.Data), "$ROOT", root)
		if name, ok := strings.CutPrefix(f.Name, "tree/"); ok {
			put(t, filepath.Join(root, name), f.Data)
			disk[name] = string(f.Data)
		} else if name, ok := strings.CutPrefix(f.Name, "buffers/"); ok {
			x.buffers[filepath.Join(root, name)] = string(f.Data)
		} else if f.Name == "talk" {
			lines = text
		} else if f.Name == "setup" {
			x.setup(&cfg, &o, text)
		}
	}
	cfg.Tools.FS.AllowPaths = []string{root + "/**"}
	e, err := engine.Open(cfg, engine.Host{DataDir: data})
	must(t, err)
	fromEditor, editor := io.Pipe()
	fromAgent, agent := io.Pipe()
	toEditor, proxyToEditor := io.Pipe()
	toAgent, proxyToAgent := io.Pipe()
	x.editor, x.agent = editor, agent
	p := acp.New(dialect.Over(e, cfg.Tools.ACP), proxyToEditor, proxyToAgent, o)
	var running sync.WaitGroup
	running.Go(func() { x.listen("editor", toEditor, x.serve) })
	running.Go(func() { x.listen("agent", toAgent, func([]byte) {}) })
	running.Go(func() {
		if err := p.Serve(context.Background(), fromEditor, fromAgent, func() { _ = proxyToAgent.Close() }); err != nil {
			t.Errorf("served: %v", err)
		}
		_ = proxyToEditor.Close()
	})
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(lines, "\n"), "\n") {
		if strings.HasPrefix(line, ">") {
			continue
		}
		fmt.Fprintln(&out, line)
		x.say(line)
		synctest.Wait()
		x.mu.Lock()
		heard := x.heard
		x.heard = nil
		x.mu.Unlock()
		slices.Sort(heard)
		for _, h := range heard {
			fmt.Fprintln(&out, h)
		}
	}
	_ = editor.Close()
	synctest.Wait()
	_ = agent.Close()
	running.Wait()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	return x.plain(out.String()), x.changed(disk, a)
}

func (x *stage) setup(cfg *config.Config, o *acp.Options, text string) {
	for _, word := range strings.Fields(text) {
		key, value, _ := strings.Cut(word, "=")
		fs := &cfg.Tools.FS
		switch key {
		case "editor":
			x.methods = value
		case "terminal":
			o.Terminal = value
		case "approve":
			fs.RequireApproval = true
		case "missing_read":
			cfg.Tools.ACP.MissingRead = value
		case "must_read":
			fs.TrackReads, fs.MustReadBeforeWrite = true, true
		case "checkpoint":
			fs.CheckpointBeforeMutation = true
		case "read_only":
			fs.ReadOnly = true
		case "max":
			_, _ = fmt.Sscan(value, &fs.MaxReadBytes)
		case "deny":
			fs.DenyPaths = append(fs.DenyPaths, x.root+"/"+value)
		case "no":
			cfg.Tools.Policy.Deny = append(cfg.Tools.Policy.Deny, value)
		case "confine":
			o.Confine = func(dir string) string {
				if dir == "/" {
					return "it is /"
				}
				return ""
			}
		case "mcp":
			o.Server = func(string) acp.Server {
				return acp.Server{Name: "moltis-fs", Command: "moltis-fs", Args: []string{"KEY"}, Env: []struct{}{}}
			}
		case "queue":
			o.Approver = approval.Nobody([]string{"ask again"})
		default:
			x.t.Fatalf("no setup %q", word)
		}
	}
}

func (x *stage) note(s string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.heard = append(x.heard, s)
}

func (x *stage) say(line string) {
	who, what, _ := strings.Cut(line, ": ")
	var err error
	switch verb, option, _ := strings.Cut(line, " "); {
	case who == "editor":
		_, err = io.WriteString(x.editor, what+"\n")
	case who == "agent":
		if text, qerr := quoted(what); qerr == nil {
			what = text
		}
		_, err = io.WriteString(x.agent, what+"\n")
	case verb == "permit":
		x.mu.Lock()
		id := x.asked[0]
		x.asked = x.asked[1:]
		x.mu.Unlock()
		outcome := fmt.Sprintf(`{"outcome":{"outcome":"selected","optionId":"%s"}}`, option)
		if option == "cancelled" {
			outcome = `{"outcome":{"outcome":"cancelled"}}`
		}
		outcome = `"result":` + outcome
		if strings.HasPrefix(option, `"`) { // as it stands there
			outcome = option
		}
		_, err = fmt.Fprintf(x.editor, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", id, outcome)
	case verb == "open": // a session, by an editor with the methods of the setup
		for _, l := range []string{
			fmt.Sprintf(`editor: {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientCapabilities":{"fs":{"readTextFile":%t,"writeTextFile":%t}}}}`,
				strings.Contains(x.methods, "r"), strings.Contains(x.methods, "w")),
			`agent: {"jsonrpc":"2.0","id":0,"result":{"agentInfo":{"name":"robot","version":"3"}}}`,
			fmt.Sprintf(`editor: {"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"%s"}}`, x.root),
			`agent: {"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`,
		} {
			x.say(l)
			synctest.Wait()
		}
		x.heard = nil
	case verb == "read", verb == "write": // by the agent
		x.calls++
		path, rest, _ := strings.Cut(option, " ")
		if verb == "write" {
			rest = `"content":` + rest
		}
		if rest != "" {
			rest = "," + rest
		}
		_, err = fmt.Fprintf(x.agent, `{"jsonrpc":"2.0","id":"a%d","method":"fs/%s_text_file","params":{"sessionId":"s","path":"%s/%s"%s}}`+"\n", x.calls, verb, x.root, path, rest)
	case verb == "save": // a buffer
		path := x.root + "/" + option
		put(x.t, path, []byte(x.buffers[path]))
	case verb == "type": // into a buffer
		path, text, _ := strings.Cut(option, " ")
		x.mu.Lock()
		x.buffers[x.root+"/"+path] = text + "\n"
		x.mu.Unlock()
	case line == "", strings.HasPrefix(line, "#"):
	default:
		x.t.Fatalf("nobody can %q", line)
	}
	must(x.t, err)
}

// quoted is a line that stands as a JSON string, for bytes that a text file would not keep.
func quoted(s string) (text string, err error) {
	err = json.Unmarshal([]byte(s), &text)
	return text, err
}

func (x *stage) listen(who string, r io.Reader, then func([]byte)) {
	for s := bufio.NewReader(r); ; {
		line, err := s.ReadBytes('\n')
		if err != nil {
			return
		}
		x.note("> " + who + ": " + strings.TrimSuffix(string(line), "\n"))
		then(line)
	}
}

// serve is an editor that has files in buffers, and opens what is on the disk.
func (x *stage) serve(line []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			Path, Content string
			SessionID     string
		}
	}
	if json.Unmarshal(line, &m) != nil || m.ID == nil || m.Method == "" {
		return
	}
	answer, no := any(nil), ""
	x.mu.Lock()
	switch m.Method {
	case "session/request_permission":
		x.asked = append(x.asked, m.ID)
		x.mu.Unlock()
		return
	case "fs/read_text_file":
		text, held := x.buffers[m.Params.Path]
		if !held {
			b, err := os.ReadFile(m.Params.Path)
			if text = string(b); err != nil && !strings.Contains(x.methods, "z") {
				no = `{"code":-32002,"message":"Resource not found"}`
			}
		}
		answer = map[string]string{"content": text}
	case "fs/write_text_file":
		if strings.Contains(x.methods, "n") {
			no = `{"code":-32000,"message":"no"}`
			break
		}
		x.buffers[m.Params.Path] = m.Params.Content
	default:
		x.mu.Unlock()
		return
	}
	x.mu.Unlock()
	raw, err := json.Marshal(answer)
	if err != nil {
		x.t.Error(err)
	}
	reply := fmt.Sprintf(`"result":%s`, raw)
	if no != "" {
		reply = `"error":` + no
	}
	go fmt.Fprintf(x.editor, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, reply)
}

var (
	ourIDs    = regexp.MustCompile(`"moltis-fs-[a-z0-9]{26}-(\d+)"`)
	ourCalls  = regexp.MustCompile(`"moltis-fs-[A-Z0-9]{16}"`)
	printings = []struct {
		re *regexp.Regexp
		to string
	}{{ourIDs, `"OURS-$1"`}, {ourCalls, `"CALL"`}}
)

// plain is the talk without what differs from run to run.
func (x *stage) plain(talk string) string {
	talk = strings.ReplaceAll(talk, x.root, "$ROOT")
	for _, p := range printings {
		talk = p.re.ReplaceAllString(talk, p.to)
	}
	return talk
}

// changed tells what of disk and buffers is not as it was.
func (x *stage) changed(disk map[string]string, a *txtar.Archive) string {
	var out []string
	_ = filepath.WalkDir(x.root, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, rerr := os.ReadFile(path)
			name := strings.TrimPrefix(path, x.root+"/")
			if was, ok := disk[name]; rerr != nil || !ok || was != string(b) {
				out = append(out, fmt.Sprintf("disk %s: %q", name, b))
			}
			delete(disk, name)
		}
		return err
	})
	for name := range disk {
		out = append(out, "disk "+name+": gone")
	}
	was := map[string]string{}
	for _, f := range a.Files {
		if name, ok := strings.CutPrefix(f.Name, "buffers/"); ok {
			was[name] = string(f.Data)
		}
	}
	for path, text := range x.buffers {
		if name := strings.TrimPrefix(path, x.root+"/"); was[name] != text {
			out = append(out, fmt.Sprintf("buffer %s: %q", name, text))
		}
	}
	slices.Sort(out)
	return strings.Join(append(out, ""), "\n")
}
