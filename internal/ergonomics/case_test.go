package ergonomics

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A Case is one call with a slip in it, and what it means.
type Case struct {
	Category string            // "A indentation"
	Slip     string            // the name of the slip
	Files    map[string]string // the tree, by relative path
	Read     []string          // what the session reads before the call
	Outside  map[string]string // what others write after that
	Tool     string
	Args     map[string]any // "{root}" in a string is the root
	// The intent. A change: the tree becomes Files with Want over it. A look: the answer is that
	// of the call Right. Refuse: there is nothing right to be done.
	Want  map[string]string
	Right map[string]any
	// As is the call that was meant, if the tool chooses the content: the tree becomes its result.
	As     map[string]any
	Refuse bool
	// Contract: the call is exact, and the fault is in what it writes: it is done as sent.
	Contract bool
	// Lines of the file that are meant, 1-based: an answer that shows one of them can be judged.
	Line, EndLine int
}

// An Answer is what a server said.
type Answer struct {
	Kind    string
	Refused bool
	Body    map[string]any
	Bytes   int // of the payload
	Text    int // of the text for a model
}

// A Server takes calls. Each case has one of its own, over the root given.
type Server interface {
	Call(tool string, args map[string]any) (Answer, error)
	Close()
}

// The outcomes, best first.
const (
	First      = "first call"
	Rightly    = "rightly refused"
	FollowUp   = "one follow-up"
	Judgement  = "judgement"
	DeadEnd    = "dead end"
	Misled     = "misled"
	Collateral = "collateral"
	Wrong      = "silently wrong"
	AsSent     = "as sent, broken"
)

var outcomes = []string{First, Rightly, FollowUp, Judgement, DeadEnd, Misled, Collateral, Wrong, AsSent}

// A Report is how one case ended.
type Report struct {
	Outcome       string
	First, Second Answer
	Got           map[string]string // the tree at the end
}

// Warned says whether the first answer was a success with a warning.
func (r *Report) Warned() bool { return r.First.Body["warning"] != nil }

// usualRoot is how long the root is in the figures, in bytes.
const usualRoot = 31

// must ends the test where a case can't be played.
func (c *Case) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s, %s: %v", c.Category, c.Slip, err)
	}
}

// call makes a call of a case, whose arguments may name the root.
func (c *Case) call(t *testing.T, s Server, tool, root string, args map[string]any) Answer {
	t.Helper()
	a, err := s.Call(tool, placed(args, root).(map[string]any))
	c.must(t, err)
	return a
}

// open opens a server for a case, and reads what the session has read.
func (c *Case) open(t *testing.T, root string, open func(root string) (Server, error)) Server {
	t.Helper()
	s, err := open(root)
	c.must(t, err)
	for _, f := range c.Read {
		c.call(t, s, "Read", root, map[string]any{"file_path": "{root}/" + f})
	}
	return s
}

// tree is the tree below root.
func (c *Case) tree(t *testing.T, root string) map[string]string {
	t.Helper()
	out, err := tree(root)
	c.must(t, err)
	return out
}

// play is the literal model: the call; after a refusal exactly next, or resend, or the Read and the
// same call again. A case that takes thought is left to judgement.
func play(t *testing.T, c Case, root string, open func(root string) (Server, error)) *Report {
	t.Helper()
	c.must(t, lay(root, c.Files))
	if c.As != nil { // the call that was meant is made, and taken back
		s := c.open(t, root, open)
		c.call(t, s, c.Tool, root, c.As)
		s.Close()
		c.Want = c.tree(t, root)
		c.must(t, lay(root, c.Files))
	}
	s := c.open(t, root, open)
	defer s.Close()
	c.must(t, lay(root, c.Outside))
	before := maps.Clone(c.Files)
	maps.Copy(before, c.Outside)
	args := placed(c.Args, root).(map[string]any)
	r := &Report{First: c.call(t, s, c.Tool, root, args)}
	r.First.Bytes -= strings.Count(rendered(r.First.Body), root) * (len(root) - usualRoot)
	r.Got = c.tree(t, root)
	done := func(a Answer) bool {
		if c.Right != nil {
			right, err := s.Call(c.Tool, placed(c.Right, root).(map[string]any))
			c.must(t, err)
			return !a.Refused && sameAnswer(a, right)
		}
		want := maps.Clone(before)
		maps.Copy(want, c.Want)
		return !a.Refused && maps.Equal(r.Got, want)
	}
	switch {
	case c.Contract && !r.First.Refused:
		r.Outcome = AsSent
		return r
	case done(r.First) && !c.Refuse:
		r.Outcome = First
		return r
	case !r.First.Refused && c.Right == nil:
		r.Outcome = c.faulty(r.Got, before)
		return r
	}
	if !maps.Equal(r.Got, before) {
		r.Outcome = Wrong // a refusal that changed something
		return r
	}
	tool, next, again := nextOf(r.First, c.Tool, args)
	if c.Refuse && r.First.Kind == "modified_since_read" {
		next = nil // the file as it is now takes thought
	}
	if next == nil {
		r.Outcome = c.judged(r.First)
		return r
	}
	if again != nil {
		c.call(t, s, tool, root, next)
		tool, next = c.Tool, again
	}
	r.Second = c.call(t, s, tool, root, next)
	r.Got = c.tree(t, root)
	switch {
	case done(r.Second) && !c.Refuse:
		r.Outcome = FollowUp
	case c.Refuse && maps.Equal(r.Got, before), r.Second.Refused && again != nil:
		r.Outcome = c.judged(r.Second)
	case c.Right != nil && tool == "Read" && c.Tool != "Read" && !r.Second.Refused:
		r.Outcome = c.judged(r.First)
	case !r.Second.Refused && c.Right == nil && c.faulty(r.Got, before) == Collateral:
		r.Outcome = Collateral
	default:
		r.Outcome = Misled
	}
	return r
}

// nextOf gives the call that the letter of a refusal asks for, and the one after it where that is the
// same call again.
func nextOf(a Answer, tool string, args map[string]any) (string, map[string]any, map[string]any) {
	next, _ := a.Body["next"].(map[string]any)
	hint, _ := a.Body["hint"].(string)
	of, _ := next["tool"].(string)
	with, _ := next["args"].(map[string]any)
	changes := tool != "Read" && tool != "Grep" && tool != "Glob"
	switch {
	case next != nil && changes && of == "Read":
		if a.Kind == "must_read_before_write" || a.Kind == "modified_since_read" {
			return of, with, args
		}
		return "", nil, nil // a look at what the refusal speaks of: judgement or a dead end
	case next != nil:
		return of, with, nil
	case strings.HasPrefix(hint, "Send resend") && a.Body["resend"] != nil:
		with = maps.Clone(args)
		with["old_string"] = a.Body["resend"]
		return tool, with, nil
	}
	return "", nil, nil
}

// judged gives the worth of a refusal to a caller that thinks.
func (c Case) judged(a Answer) string {
	if c.Refuse && a.Refused {
		return Rightly
	}
	if contexts, ok := a.Body["contexts"].([]any); ok && len(contexts) > 0 {
		return Judgement
	}
	if line, ok := a.Body["line"].(float64); ok && c.Line > 0 {
		end, _ := a.Body["end_line"].(float64)
		if int(line) <= c.EndLine && int(end) >= c.Line {
			return Judgement
		}
		return DeadEnd
	}
	for _, k := range []string{"resend", "readings", "nearest", "cells", "guard", "diff", "already_line", "in", "detail", "matches", "missing_parent", "total", "lines_seen", "tried"} {
		if a.Body[k] != nil {
			return Judgement
		}
	}
	if a.Refused && a.Kind != "no_match" && a.Kind != "not_found" && a.Body["hint"] != "" {
		return Judgement
	}
	return DeadEnd
}

// faulty tells a success apart that did not do what was meant: blanks, quotes and dashes only, or
// more.
func (c Case) faulty(got, before map[string]string) string {
	want := maps.Clone(before)
	maps.Copy(want, c.Want)
	for _, f := range append(slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got))...) {
		if plain(got[f]) != plain(want[f]) || len(got) != len(want) {
			return Wrong
		}
	}
	if c.Refuse {
		return Wrong
	}
	return Collateral
}

var plainer = strings.NewReplacer(" ", "", "\t", "", "\n", "", "\r", "", "\u00a0", "", "\u200b", "", "\ufeff", "", "“", `"`, "”", `"`, "‘", "'", "’", "'", "–", "-", "—", "-", "…", "...")

func plain(s string) string { return plainer.Replace(s) }

// sameAnswer compares what two looks found, not how they say it.
func sameAnswer(a, b Answer) bool {
	for _, k := range []string{"content", "paths", "files", "matches", "counts", "source", "cells"} {
		x, y := a.Body[k], b.Body[k]
		if (x == nil) != (y == nil) || x != nil && rendered(x) != rendered(y) {
			return false
		}
	}
	return a.Kind == b.Kind
}

// placed puts the root into a value.
func placed(v any, root string) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "{root}", root)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[k] = placed(x, root)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = placed(x, root)
		}
		return out
	}
	return v
}

func lay(root string, files map[string]string) error {
	for name, text := range files {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func tree(root string) (map[string]string, error) {
	out := map[string]string{}
	return out, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(root, p)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
}

// run plays cases, each in a folder of its own.
func run(t *testing.T, cases []Case, open func(root string) (Server, error)) []*Report {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(base, "ws")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	out := make([]*Report, len(cases))
	for i, c := range cases {
		old, err := os.ReadDir(root)
		for _, e := range old {
			err = errors.Join(err, os.RemoveAll(filepath.Join(root, e.Name())))
		}
		c.must(t, err)
		out[i] = play(t, c, root, open)
	}
	return out
}
