package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/ledger"
	"moltisfs/internal/policy"
)

// A pathed argument struct is about one file or directory.
type pathed interface{ target() string }

func pathOf(args any) string {
	if p, ok := args.(pathed); ok {
		return p.target()
	}
	return ""
}

func read(path string) *NextCall {
	return &NextCall{"Read", map[string]any{"file_path": path}}
}

// again is the same call with some arguments changed, nil when it would be long:
// what was just sent need not come back.
func again(tool string, args any, change map[string]any) *NextCall {
	const most = 8 << 10 // bytes of JSON
	out := asMap(args)
	for k, v := range change {
		if out[k] = v; v == nil {
			delete(out, k)
		}
	}
	if raw, err := plainJSON(out); err != nil || len(raw) > most {
		return nil
	}
	return &NextCall{tool, out}
}

// asMap turns an argument struct back into the arguments as sent.
func asMap(args any) map[string]any {
	out := map[string]any{}
	raw, err := plainJSON(args)
	if err != nil {
		return out
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	_ = dec.Decode(&out)
	return out
}

// pathKey is the argument that holds the path, and whether it names a file.
func pathKey(args any) (key string, isFile bool) {
	m := asMap(args)
	for _, key := range []string{"file_path", "notebook_path"} {
		if _, ok := m[key]; ok {
			return key, true
		}
	}
	return "path", false
}

// badPath explains a path that names nothing, and where it can be mended says how.
func (a *about) badPath() *Refusal {
	e := factsOf[*guardfs.BadPathError](a)
	r := &Refusal{Reason: KindBadRequest, FilePath: e.Path, Message: quotePath(e.Path) +
		" is not a usable path: " + e.Why, Hint: "Send an absolute path."}
	switch {
	case e.Path == "":
		r.Message = "the path is empty"
	case path.IsAbs(e.Path):
		r.Hint = "Send the plain name of a file or directory: no slash at its end, no NUL byte, at " +
			"most 255 bytes a name and 4095 in all."
	}
	if root := a.s.cfg.WorkspaceRoot; root != "" && !path.IsAbs(e.Path) {
		r.Hint = "Send an absolute path; the workspace is " + root + "."
	}
	if len(e.Path) <= guardfs.MaxPath {
		a.suggest(r, e.Path)
	}
	return r
}

// instead offers the same call for another path.
func (a *about) instead(r *Refusal, path string) *Refusal {
	key, _ := pathKey(a.args)
	r.Next = again(a.tool, a.args, map[string]any{key: path})
	return r
}

func (a *about) near(path string) engine.Nearby { return a.s.engine.Near(a.call, path) }

// absolute is what a path that is not absolute most likely means, "" when
// that can't be told.
func (s *Suite) absolute(p string) string {
	root := s.cfg.WorkspaceRoot
	switch {
	case strings.ContainsRune(p, 0), strings.HasPrefix(p, "~"):
		return ""
	case strings.HasPrefix(p, "file:///"):
		return path.Clean(strings.TrimPrefix(p, "file://"))
	case p == "", root == "", path.IsAbs(p), strings.Contains(p, "://"):
		return ""
	}
	if abs := path.Join(root, p); abs == root || strings.HasPrefix(abs,
		strings.TrimSuffix(root, "/")+"/") {
		return abs
	}
	return ""
}

func (a *about) symlink() *Refusal {
	e := factsOf[*guardfs.SymlinkError](a)
	r := &Refusal{Reason: KindSymlinkRefused, Message: quote(e.Path) + " is a symbolic link, and " +
		"links are not written through", Hint: "Use the path of the real file."}
	target := e.Target
	if !filepath.IsAbs(target) {
		target = path.Join(path.Dir(e.Path), target)
	}
	// Where the link leads is only said when the session may go there itself.
	real, err := a.s.engine.Real(a.call, target)
	if err != nil {
		return r
	}
	r.Message += "; it leads to " + quote(real)
	r.Hint = "Use " + real + "."
	if key, isFile := pathKey(a.args); isFile {
		r.Next = again(a.tool, a.args, map[string]any{key: real})
	}
	r.Fields = struct {
		Target string `json:"target"`
	}{real}
	return r
}

func (a *about) notRegular() *Refusal {
	e, asked := factsOf[*guardfs.NotRegularError](a), a.named()
	r := &Refusal{Reason: KindNotRegularFile, Message: quote(asked) + " is a " + e.Kind +
		", not a regular file", Hint: "Only regular files can be read and changed."}
	if e.Kind != "directory" {
		return r
	}
	r.Hint = "List it with Glob."
	r.Next = &NextCall{"Glob", map[string]any{"pattern": "*", "path": asked}}
	if near := a.near(path.Join(asked, "x")); near.Dir != "" {
		most, first := 20, 1
		if args, ok := a.args.(*ReadArgs); ok {
			if args.Limit != nil {
				most = *args.Limit
			}
			switch offset := value(args.Offset); {
			case offset < 0:
				first = max(len(near.Names)+1+offset, 1)
			case value(args.Tail) && offset == 0:
				first = max(len(near.Names)+1-most, 1)
			default:
				first = max(offset, 1)
			}
		}
		names := near.Names[min(first-1, len(near.Names)):]
		f := entriesField{Entries: orEmpty(names), first: first, total: len(near.Names)}
		if len(names) > most {
			f.Entries, f.More, f.NextOffset = names[:most], len(names)-most, first+most
		}
		r.Fields = f
	}
	return r
}

// entriesField is the beginning of a directory.
type entriesField struct {
	Entries []string `json:"entries"`
	More    int      `json:"more,omitempty"`
	// NextOffset is for the same Read, which lists a directory from its offset-th name on.
	NextOffset int `json:"next_offset,omitempty"`

	first, total int
}

// Text lists the names, one a line, those that don't show plainly in quotes.
func (f entriesField) Text() string {
	var b strings.Builder
	for _, n := range f.Entries {
		if q := quote(n); q != `"`+n+`"` {
			n = q
		}
		b.WriteString(n + "\n")
	}
	switch {
	case f.More > 0:
		fmt.Fprintf(&b, "[%d more; go on with offset %d]", f.More, f.NextOffset)
	case len(f.Entries) == 0 && f.total > 0:
		fmt.Fprintf(&b, "[no entry %d: there are %d]", f.first, f.total)
	case len(f.Entries) == 0:
		b.WriteString("[it is empty]")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func globbing(a *about) *NextCall {
	near := a.near(a.named())
	if near.Dir == "" {
		return nil
	}
	return &NextCall{"Glob", map[string]any{"pattern": "*", "path": near.Dir}}
}

// pathDenied is the one answer for a path that policy closes, whatever rule does. Its words must
// not tell where there are rules; the audit log names the rule.
func (a *about) pathDenied() *Refusal {
	r := &Refusal{Reason: KindPathDenied, FilePath: a.Path, Message: "this session may not touch " +
		"this path", Hint: "Use another path, or ask the user."}
	if a.Rule() == policy.RuleChain {
		r.Message = "the operator's policies do not allow this for this path"
		r.Hint = "Do it another way, or tell the user; the same call is refused again."
		return r
	}
	if a.Class() != "" {
		r.Message = "names like this are closed: they are of the class secret (keys, passwords, tokens)"
		r.Hint = "Go on without it, or tell the user; the operator can lift that: " + a.Lift() + "."
		return r
	}
	if root := a.s.cfg.WorkspaceRoot; root != "" {
		r.Hint = "Use another path, or ask the user; the workspace is " + root + "."
		// Of a path outside it the end may be one inside. What is closed within is not spoken of.
		if asked := a.named(); a.Cause == engine.Denied && !within(path.Clean(asked), root) &&
			!slices.Contains(strings.Split(asked, "/"), "..") {
			a.suggest(r, asked)
		}
	}
	return r
}

// runsCode says that what runs code takes a yes of its own, and who can give it.
func runsCode(a *about) *Refusal {
	r := &Refusal{Message: "this runs code later, or tells an agent what to do (class exec): a " +
		"change of it takes an approval of its own, and nobody can be asked; nothing was changed",
		Hint: "Tell the user; the operator can be asked with --approve terminal or queue, can say " +
			"yes-exec in place of yes, or lift that: " + a.Lift() + "."}
	if !factsOf[engine.CodeFacts](a).Lifts {
		r.Message = "this runs code later, or tells an agent what to do (class exec), which the " +
			"operator has closed to changes; nothing was changed"
		r.Hint = "Go on without it, or tell the user; the operator can lift that: " + a.Lift() + "."
	}
	return r
}

// outOfScope says which scope leaves a path out. It is the one answer for such paths, whatever is
// there.
func outOfScope(a *about) *Refusal {
	what := "read"
	if factsOf[*policy.OutOfScope](a).Writable {
		what = "change"
	}
	return &Refusal{FilePath: a.Path, Message: "this path is outside of what this caller may " + what,
		Hint: "Use a path inside it, or ask the user."}
}

func firstUnseen(s *ledger.Seen) int {
	next := 1
	for _, r := range s.Ranges {
		if r.First > next {
			break
		}
		next = r.Last + 1
	}
	return next
}

// unseen names the units between and after the ranges that were seen: "4 to 9, 12".
func unseen(s *ledger.Seen) string {
	var out []string
	next := 1
	for _, r := range append(slices.Clone(s.Ranges),
		ledger.Range{First: s.Lines + 1, Last: s.Lines + 1}) {
		switch last := r.First - 1; {
		case last < next:
		case len(out) == 5:
			return strings.Join(out, ", ") + " and more"
		case last == next:
			out = append(out, strconv.Itoa(next))
		default:
			out = append(out, fmt.Sprintf("%d to %d", next, last))
		}
		next = max(next, r.Last+1)
	}
	return strings.Join(out, ", ")
}

// quote shows a name so that control characters and direction marks in it
// can't play tricks.
func quote(s string) string { return strconv.QuoteToGraphic(s) }

// quotePath is quote of a path, and quoteShort where nothing can have it.
func quotePath(p string) string {
	if len(p) > guardfs.MaxPath {
		return quoteShort(p)
	}
	return quote(p)
}

// quoteShort is quote of what need not be shown whole: nobody looks for the end of a name of 100 KB
// in an error.
func quoteShort(s string) string {
	const most = 200
	if len(s) <= most {
		return quote(s)
	}
	cut := most
	for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", quote(s[:cut]), len(s))
}

// sentence gives a hint its capital and its full stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	s = strings.ToUpper(s[:1]) + s[1:]
	if !strings.ContainsAny(s[len(s)-1:], ".?!") {
		s += "."
	}
	return s
}

// clip bounds a text at a line's end and says that it did.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := strings.LastIndexByte(s[:most], '\n') + 1
	if cut == 0 { // one long line
		for cut = most; cut > 0 && !utf8.RuneStart(s[cut]); cut-- {
		}
	}
	return fmt.Sprintf("%s… %d more bytes\n", s[:cut], len(s)-cut)
}

// size prints bytes for people.
func size(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
