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

	"golang.org/x/text/unicode/norm"

	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/ledger"
	"moltisfs/internal/nearest"
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
		out[k] = v
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
	r := &Refusal{Reason: KindBadRequest, FilePath: e.Path, Message: quote(e.Path) +
		" is not a usable path: " + e.Why, Hint: "Send an absolute path."}
	switch {
	case e.Path == "":
		r.Message = "the path is empty"
	case path.IsAbs(e.Path):
		r.Hint = "Send the plain name of a file or directory: no slash at its end, no NUL byte, at " +
			"most 255 bytes a name and 4095 in all."
	}
	abs := a.s.absolute(e.Path)
	if abs == "" {
		return r
	}
	r.Hint = "Send it absolute: " + abs
	return a.instead(r, abs)
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

// missing answers for a path where nothing is: the nearest names, among what
// this session may see.
func (a *about) missing() *Refusal {
	asked := a.named()
	r := &Refusal{Reason: KindNotFound, FilePath: asked, Message: quote(asked) + " does not exist",
		Hint: "Check the path with Glob."}
	if asked == "" {
		return r
	}
	near := a.near(asked)
	if near.Dir == "" {
		r.Hint = "Ask the user for the right path."
		return r
	}
	if near.Depth == 0 && slices.Contains(near.Names, path.Base(asked)) {
		// What it goes up from is missing.
		if clean := path.Clean(asked); slices.Contains(strings.Split(asked, "/"), "..") {
			r.Hint = "Without the .. it would be " + clean + "."
			return a.instead(r, clean)
		}
		r.Message = quote(asked) + " is a symbolic link to something that does not exist"
		r.Next = &NextCall{"Glob", map[string]any{"pattern": "*", "path": near.Dir}}
		return r
	}
	var unsayable bool
	near.Names = slices.DeleteFunc(slices.Clone(near.Names), func(n string) bool {
		bad := !utf8.ValidString(n)
		// Answers show each byte of it that is none of UTF-8 as U+FFFD, and a call sends that back.
		unsayable = unsayable || bad && near.Depth == 0 &&
			string([]rune(strings.TrimSuffix(n, "/"))) == path.Base(asked)
		return bad
	})
	if unsayable {
		r.Message = quote(asked) + " stands for a name that holds bytes which are not UTF-8; no call " +
			"can name that file"
		r.Hint = "Ask the user to rename it."
		return r
	}
	var paths []string
	if near.Depth == 0 {
		for _, n := range similar(path.Base(asked), near.Names) {
			paths = append(paths, path.Join(near.Dir, n))
		}
	}
	if len(paths) == 0 {
		paths = a.elsewhere(near, asked)
	}
	if len(paths) > 0 {
		r.Hint = "Did you mean " + strings.Join(paths, " or ") + "?"
		r.Fields = struct {
			Nearest []string `json:"nearest"`
		}{paths}
		if _, isFile := pathKey(a.args); isFile {
			r.Next = read(paths[0])
		} else {
			a.instead(r, paths[0])
		}
		return r
	}
	if near.Depth > 0 {
		r.Hint = "The nearest directory that exists is " + near.Dir + "; list it with Glob."
	}
	r.Next = &NextCall{"Glob", map[string]any{"pattern": "*", "path": near.Dir}}
	return r
}

func globbing(a *about) *NextCall {
	near := a.near(a.named())
	if near.Dir == "" {
		return nil
	}
	return &NextCall{"Glob", map[string]any{"pattern": "*", "path": near.Dir}}
}

// similar picks up to three names that are likely meant by name: the same but
// for case or composition, the same stem with another extension, a typo.
func similar(name string, names []string) []string {
	type scored struct {
		name  string
		score int
	}
	var best []scored
	folded := foldName(name)
	stem := strings.TrimSuffix(folded, path.Ext(folded))
	for _, n := range names {
		f := foldName(n)
		score := -1
		switch {
		case f == folded:
			score = 0
		case len(f) < 128 && len(folded) < 128 && nearest.Distance(f, folded) <= max(1, len(folded)/3):
			score = 1 + nearest.Distance(f, folded)
		case strings.TrimSuffix(f, path.Ext(f)) == stem && stem != "":
			score = 40
		}
		if score < 0 {
			continue
		}
		at := len(best)
		for at > 0 && best[at-1].score > score {
			at--
		}
		best = append(best[:at], append([]scored{{n, score}}, best[at:]...)...)
		if len(best) > 3 {
			best = best[:3]
		}
	}
	var out []string
	for _, b := range best {
		out = append(out, b.name)
	}
	return out
}

// maxNearDirs bounds the directories that are looked into for one hint.
const maxNearDirs = 40

// elsewhere looks for the same name in the directories around: those beside the one that was asked
// for and those in it. Where that one does not exist, it looks in those that are called like it.
// Only what the session may list is found.
func (a *about) elsewhere(near engine.Nearby, asked string) []string {
	base := foldName(path.Base(asked))
	var dirs []string
	from := func(n engine.Nearby) {
		for _, name := range n.Names {
			if strings.HasSuffix(name, "/") {
				dirs = append(dirs, path.Join(n.Dir, name))
			}
		}
	}
	switch near.Depth {
	case 0:
		from(near)
		from(a.near(near.Dir))
	case 1: // the file's directory is missing
		dirs = append(dirs, near.Dir)
		from(near)
	default:
		return nil
	}
	var found []string
	for i, dir := range dirs {
		if i == maxNearDirs || len(found) == 3 {
			break
		}
		in := a.near(path.Join(dir, "x"))
		if in.Depth != 0 {
			continue
		}
		for _, name := range in.Names {
			if p := path.Join(in.Dir, name); foldName(name) == base && p != asked &&
				!slices.Contains(found, p) {
				found = append(found, p)
			}
		}
	}
	return found
}

// pathDenied is the one answer for a path that policy closes, whatever rule does. Its words must
// not tell where there are rules; the audit log names the rule.
func (a *about) pathDenied() *Refusal {
	r := &Refusal{Reason: KindPathDenied, FilePath: a.Path, Message: "this session may not touch " +
		"this path", Hint: "Use another path, or ask the user."}
	if root := a.s.cfg.WorkspaceRoot; root != "" {
		r.Hint = "Use another path, or ask the user; the workspace is " + root + "."
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

// foldName is a name as a person might misremember it: no case, composed
// accents, no slash at its end.
func foldName(s string) string {
	return strings.ToLower(norm.NFC.String(strings.TrimSuffix(s, "/")))
}
