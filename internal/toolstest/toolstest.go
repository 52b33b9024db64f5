// Package toolstest runs the golden calls of testdata/calls through anything
// that can carry a call: the suite itself, an MCP server, the command line.
// An answer that differs is a failure of the one that gave it.
//
// A case is one txtar file. Its comment says in prose what it shows; its
// sections are:
//
//	config.toml   the configuration; $ROOT stands for the case's tree (optional)
//	setup         lines of the layout language, see [Layout] (optional)
//	tree/NAME     a file of the tree before the calls
//	calls         one JSON object a line: {"tool":…,"args":{…}}; also "session", "turn", "approve": "yes", "no", "late" or "nobody"
//	              (default yes), and "then": lines of the layout language to run before the call
//	want          the payloads, one indented JSON object a call
//	text          the same answers as text, in a case that has this section (it may be empty before -update); "= call N" goes before each
//	after/NAME    a file of the tree after the calls, when it differs; after/NAME with the single line "(gone)": it is gone
//
// In calls, $ROOT is the tree and ${2.checkpoint_id} a field of what the
// second call answered. In want, the tree is $ROOT and times are $TIME; what a
// refusal says in prose is its cause, like $file_not_found. All prose is in one
// file beside the cases, sentences.golden: for each cause each message, and below
// a message the hints that it comes with.
//
// With -update that file and the sections want, text and after are rewritten from
// what the suite itself answers; review that diff like code.
package toolstest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"moltisfs/config"
	"moltisfs/internal/testdir"
	"moltisfs/tools"
)

// The answers have ids in them, which are drawn elsewhere.
func init() { testdir.NumberedIDs() }

var update = flag.Bool("update", false, "rewrite the golden calls from what the suite answers")

// A Carrier opens a suite its own way and carries calls to it. The payload
// comes back as the caller saw it.
type Carrier func(t *testing.T, cfg config.Config, o tools.Options) func(tools.Call) (Answer, error)

// Answer is the answer of a call: the payload as a JSON object, and as text.
type Answer struct {
	Payload json.RawMessage
	Text    string
	Cause   string // of a refusal; "" where the caller can't see it
}

// Direct is the Carrier that calls the suite in process.
var Direct = Through(func(_ *testing.T, cfg config.Config, o tools.Options) (*tools.Suite, error) {
	return tools.Open(cfg, o)
})

// Through is the Carrier that calls a suite as open gives it.
func Through(open func(*testing.T, config.Config, tools.Options) (*tools.Suite, error)) Carrier {
	return func(t *testing.T, cfg config.Config, o tools.Options) func(tools.Call) (Answer, error) {
		s, err := open(t, cfg, o)
		if err != nil {
			t.Fatalf("opening the suite: %v", err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("closing the suite: %v", err)
			}
		})
		return func(c tools.Call) (Answer, error) {
			p, err := s.Call(context.Background(), c)
			if err != nil {
				return Answer{}, err
			}
			raw, err := tools.Encode(p)
			return Answer{raw, p.Text(), causeOf(p)}, err
		}
	}
}

// causeOf is the name of the cause of a refusal, or its kind where a tool refuses without one.
func causeOf(p tools.Payload) string {
	r, ok := p.(*tools.Refusal)
	switch {
	case !ok:
		return ""
	case r.Facts() == nil:
		return r.Reason
	}
	return r.Facts().Cause.Name
}

// Run runs every case below dir.
func Run(t *testing.T, dir string, carry Carrier) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".txtar") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden calls below %s (%v)", dir, err)
	}
	prose := loadSentences(t, dir)
	var played atomic.Int64
	t.Cleanup(func() { prose.finish(t, int(played.Load()) == len(files)) }) // after the last case
	for _, file := range files {
		name, _ := filepath.Rel(dir, file)
		t.Run(strings.TrimSuffix(filepath.ToSlash(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runFile(t, file, carry, prose)
			played.Add(1)
		})
	}
}

type goldenCall struct {
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Session string          `json:"session"`
	Turn    string          `json:"turn"`
	Approve string          `json:"approve"`
	Then    []string        `json:"then"`
}

func runFile(t *testing.T, file string, carry Carrier, prose *sentences) {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var calls []goldenCall
	for _, line := range strings.Split(strings.TrimSpace(section(ar, "calls")), "\n") {
		var one goldenCall
		dec := json.NewDecoder(strings.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&one); err != nil {
			t.Fatalf("call %s: %v", line, err)
		}
		calls = append(calls, one)
	}
	got := play(t, carry, ar, calls)
	want := section(ar, "want")
	payloads, text := got.render(t, prose)
	if !has(ar, "text") {
		text = ""
	}
	after := got.changes(t)
	if *update {
		rewrite(t, file, ar, payloads, text, after)
	} else {
		if payloads != want {
			t.Errorf("payloads differ\n%s", changed(want, payloads))
		}
		if want := section(ar, "text"); text != want {
			t.Errorf("texts differ\n%s", changed(want, text))
		}
		for _, f := range ar.Files {
			if name, ok := strings.CutPrefix(f.Name, "after/"); ok {
				if string(f.Data) != after[name] {
					t.Errorf("%s after the calls:\n%s", name, changed(string(f.Data), after[name]))
				}
				delete(after, name)
			}
		}
		for name := range after {
			t.Errorf("%s changed, and the case does not say so:\n%s", name, after[name])
		}
	}
	// Every refusal has a hint; where it names the next call, that call succeeds. That is tried
	// where the cause is known, which is in process: other carriers name the same call.
	for i, p := range got.payloads {
		var r struct {
			Kind, Error string
			Hint        *string
			Next        *struct {
				Tool string
				Args json.RawMessage
			}
		}
		if err := json.Unmarshal(p, &r); err != nil {
			t.Fatalf("call %d: %v in %s", i+1, err, p)
		}
		if r.Error == "" {
			continue
		}
		if r.Hint == nil || *r.Hint == "" {
			t.Errorf("call %d: the refusal %s has no hint", i+1, r.Kind)
		}
		if r.Next == nil || got.causes[i] == "" {
			continue
		}
		args := bytes.ReplaceAll(r.Next.Args, []byte(got.root), []byte("$ROOT")) // played in a tree of its own
		next := goldenCall{Tool: r.Next.Tool, Args: args, Session: calls[i].Session}
		again := play(t, carry, ar, append(calls[:i+1:i+1], next))
		last := again.payloads[len(again.payloads)-1]
		if bytes.Contains(last, []byte(`"error":`)) {
			t.Errorf("call %d: the next call that the hint names is refused: %s", i+1, last)
		}
	}
}

// played has the answers of a case, and its tree.
type played struct {
	root     string
	before   map[string]string
	payloads []json.RawMessage
	texts    []string
	causes   []string
}

// play lays the tree of a case out and makes the calls.
func play(t *testing.T, carry Carrier, ar *txtar.Archive, calls []goldenCall) *played {
	root := Tree(t)
	for _, f := range ar.Files {
		if name, ok := strings.CutPrefix(f.Name, "tree/"); ok {
			if err := writeFile(filepath.Join(root, name), f.Data); err != nil {
				t.Fatal(err)
			}
		}
	}
	Layout(t, root, section(ar, "setup"))
	cfg := config.Default()
	if src := section(ar, "config.toml"); src != "" {
		var err error
		if cfg, err = config.Decode([]byte(strings.ReplaceAll(src, "$ROOT", root)), "config.toml"); err != nil {
			t.Fatalf("config.toml: %v", err)
		}
	}
	call := carry(t, cfg, tools.Options{DataDir: filepath.Join(t.TempDir(), "data")})
	p := &played{root: root, before: Snapshot(t, root)}
	for i, one := range calls {
		Layout(t, root, strings.Join(one.Then, "\n"))
		args := p.expand(t, strings.ReplaceAll(string(one.Args), "$ROOT", root))
		in := tools.Call{Session: one.Session, Turn: one.Turn, Tool: one.Tool, Args: json.RawMessage(args), Approver: approver(one.Approve)}
		out, err := call(in)
		for tries := 0; tries < 5 && bytes.Contains(out.Payload, []byte(`"kind":"deadline"`)); tries++ {
			out, err = call(in) // a busy machine is not the subject of any case
		}
		if err != nil {
			var unknown *tools.UnknownToolError
			if !errors.As(err, &unknown) {
				t.Fatalf("call %d: the host is broken: %v", i+1, err)
			}
			out.Payload, _ = json.Marshal(map[string]string{"protocol_error": err.Error()})
		}
		p.payloads, p.texts = append(p.payloads, out.Payload), append(p.texts, out.Text)
		p.causes = append(p.causes, out.Cause)
	}
	return p
}

// approver answers as the case says: a yes where it says nothing.
func approver(how string) tools.Approver {
	no := map[string]tools.Decision{"no": tools.Denied, "late": tools.TimedOut, "nobody": tools.NobodyToAsk}
	decision, says := no[how]
	if !says {
		decision = tools.Approved
	}
	return tools.ApproverFunc(func(context.Context, tools.Question) (tools.Answer, error) {
		return tools.Answer{Decision: decision, By: "test"}, nil
	})
}

var reference = regexp.MustCompile(`\$\{(\d+)\.([a-z_A-Z0-9.]+)\}`)

// expand puts fields of earlier answers into the arguments of a call.
func (p *played) expand(t *testing.T, args string) string {
	return reference.ReplaceAllStringFunc(args, func(ref string) string {
		m := reference.FindStringSubmatch(ref)
		var n int
		fmt.Sscan(m[1], &n)
		if n < 1 || n > len(p.payloads) {
			t.Fatalf("%s: there is no such call before", ref)
		}
		var at any
		if err := json.Unmarshal(p.payloads[n-1], &at); err != nil {
			t.Fatal(err)
		}
		for _, key := range strings.Split(m[2], ".") {
			switch v := at.(type) {
			case map[string]any:
				at = v[key]
			case []any:
				var i int
				fmt.Sscan(key, &i)
				at = v[i]
			}
		}
		return fmt.Sprint(at)
	})
}

var createdAt = regexp.MustCompile(`"createdAt": \d+`)

// render makes the sections want and text.
func (p *played) render(t *testing.T, prose *sentences) (want, text string) {
	var wants, texts strings.Builder
	for i, one := range p.payloads {
		var pretty bytes.Buffer
		if json.Indent(&pretty, one, "", "  ") != nil {
			pretty.Write(one)
		}
		payload := strings.ReplaceAll(createdAt.ReplaceAllString(pretty.String(), `"createdAt": "$$TIME"`), p.root, "$ROOT")
		payload, text := prose.hide(t, payload, strings.ReplaceAll(p.texts[i], p.root, "$ROOT"), p.causes[i])
		fmt.Fprintln(&wants, payload)
		fmt.Fprintf(&texts, "= call %d\n%s\n", i+1, strings.TrimSuffix(text, "\n"))
	}
	return wants.String(), texts.String()
}

// changes gives the files that the calls changed.
func (p *played) changes(t *testing.T) map[string]string {
	out := map[string]string{}
	now := Snapshot(t, p.root)
	for name, content := range now {
		if old, was := p.before[name]; !was || old != content {
			if content != "" && !strings.HasSuffix(content, "\n") {
				content += "\\ no newline\n"
			}
			out[name] = content
		}
	}
	for name := range p.before {
		if _, still := now[name]; !still {
			out[name] = "(gone)\n"
		}
	}
	return out
}

func rewrite(t *testing.T, file string, ar *txtar.Archive, want, text string, after map[string]string) {
	out := &txtar.Archive{Comment: ar.Comment}
	for _, f := range ar.Files {
		if f.Name != "want" && f.Name != "text" && !strings.HasPrefix(f.Name, "after/") {
			out.Files = append(out.Files, f)
		}
	}
	out.Files = append(out.Files, txtar.File{Name: "want", Data: []byte(want)})
	if has(ar, "text") {
		out.Files = append(out.Files, txtar.File{Name: "text", Data: []byte(text)})
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		out.Files = append(out.Files, txtar.File{Name: "after/" + name, Data: []byte(after[name])})
	}
	if err := os.WriteFile(file, txtar.Format(out), 0o644); err != nil {
		t.Fatal(err)
	}
}

func has(ar *txtar.Archive, name string) bool {
	return slices.ContainsFunc(ar.Files, func(f txtar.File) bool { return f.Name == name })
}

func section(ar *txtar.Archive, name string) string {
	for _, f := range ar.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// said is the prose of a refusal.
type said struct{ message, hint string }

// A sentences knows each prose that a refusal of the golden calls may have, and the cause of it.
// It is the file sentences.golden beside the cases, the only place that pins prose: in the section
// want of a case, $cause stands for the message and the hint.
type sentences struct {
	path   string
	causes map[said]string
	mu     sync.Mutex      // guards met
	met    map[said]string // in this run
}

func loadSentences(t *testing.T, dir string) *sentences {
	t.Helper()
	s := &sentences{path: filepath.Join(dir, "sentences.golden"), causes: map[said]string{}, met: map[said]string{}}
	text, err := os.ReadFile(s.path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	cause, message := "", ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "    "):
			s.causes[said{message, line[4:]}] = cause
		case strings.HasPrefix(line, "  "):
			message = line[2:]
		default:
			cause = line
		}
	}
	return s
}

// proseOfRefusal finds the prose in an indented payload.
var proseOfRefusal = regexp.MustCompile(`(?m)^  "error": (".*"),\n  "hint": (".*")(,?)$`)

// hide puts the cause in the place of the prose, in a payload and in its text, as want has them. The carrier may not
// know the cause. Prose that the file does not have, or not for this cause, stays as it is, so that
// the difference shows it.
func (s *sentences) hide(t *testing.T, payload, text, cause string) (string, string) {
	t.Helper()
	m := proseOfRefusal.FindStringSubmatch(payload)
	if m == nil {
		return payload, text
	}
	key := said{m[1], m[2]}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.causes[key]
	if *update && cause != "" {
		if other := cmp.Or(s.met[key], cause); other != cause {
			t.Errorf("%s and %s say the same: %s", other, cause, key.message)
		}
		known = cause
	}
	if known == "" || cause != "" && cause != known {
		return payload, text
	}
	s.met[key] = known
	payload = strings.Replace(payload, m[0], fmt.Sprintf(`  "error": "$%s"%s`, known, m[3]), 1)
	return payload, strings.Replace(text, unquote(t, m[1])+"\n"+unquote(t, m[2]), "$"+known, 1)
}

func unquote(t *testing.T, s string) (out string) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &out); err != nil {
		t.Fatalf("%v in %s", err, strconv.Quote(s))
	}
	return out
}

// finish rewrites the file with -update. After a run of all cases, a sentence that no call says any more is
// a failure, and goes with -update.
func (s *sentences) finish(t *testing.T, all bool) {
	t.Helper()
	if !*update {
		for key, cause := range s.causes {
			if all && s.met[key] == "" {
				t.Errorf("no call is refused like this any more: %s: %s", cause, key.message)
			}
		}
		return
	}
	if !all {
		for key, cause := range s.causes {
			s.met[key] = cmp.Or(s.met[key], cause)
		}
	}
	keys := slices.SortedFunc(maps.Keys(s.met), func(a, b said) int {
		return cmp.Or(cmp.Compare(s.met[a], s.met[b]), cmp.Compare(a.message, b.message), cmp.Compare(a.hint, b.hint))
	})
	var b strings.Builder
	for i, key := range keys {
		newCause := i == 0 || s.met[key] != s.met[keys[i-1]]
		if newCause {
			fmt.Fprintln(&b, s.met[key])
		}
		if newCause || key.message != keys[i-1].message {
			fmt.Fprintf(&b, "  %s\n", key.message)
		}
		fmt.Fprintf(&b, "    %s\n", key.hint)
	}
	if err := os.WriteFile(s.path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
