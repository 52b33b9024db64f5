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

	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
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

// badPath looks for what a path that names nothing may mean.
func (a *about) badPath(r *Refusal) {
	if r.FilePath = a.Path; len(a.Path) <= guardfs.MaxPath {
		a.suggest(r, a.Path)
	}
}

// parentMissing looks for a directory that may be meant, or offers to make the one that is not there.
func (a *about) parentMissing(r *Refusal) {
	missing := factsOf[*guardfs.MissingParentError](a).Missing
	r.Fields = struct {
		Missing string `json:"missing_parent"`
	}{missing}
	found := a.suggest(r, a.named())
	switch makes := a.makesParents(); {
	case makes && found:
		r.Hint += " Or send it with create_parents: true to make the directory."
	case makes:
		r.Next = again(a.tool, a.args, map[string]any{"create_parents": true})
	}
}

// instead offers the same call for another path.
func (a *about) instead(r *Refusal, path string) {
	key, _ := pathKey(a.args)
	r.Next = again(a.tool, a.args, map[string]any{key: path})
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

// symlink names the target of a link, where the session may go there itself.
func (a *about) symlink(r *Refusal) {
	if a.skips(r) {
		return
	}
	e := factsOf[*guardfs.SymlinkError](a)
	target := e.Target
	if !filepath.IsAbs(target) {
		target = path.Join(path.Dir(e.Path), target)
	}
	real, err := a.s.engine.Real(a.call, target)
	if err != nil {
		return
	}
	a.now["target"] = edit.ShownPath(real)
	a.tell(r)
	if key, isFile := pathKey(a.args); isFile {
		r.Next = again(a.tool, a.args, map[string]any{key: real})
	}
	r.Fields = struct {
		Target string `json:"target"`
	}{real}
}

// notRegular shows what is in a directory.
func (a *about) notRegular(r *Refusal) {
	e, asked := factsOf[*guardfs.NotRegularError](a), a.named()
	if a.skips(r) || e.Kind != "directory" {
		return
	}
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
func (a *about) pathDenied(r *Refusal) {
	r.FilePath = a.Path
	// Of a path outside the workspace the end may be one inside. What is closed within is not spoken of.
	root, asked := a.s.cfg.WorkspaceRoot, a.named()
	if root != "" && a.Cause == engine.Denied && a.Class() == "" && a.Rule() != policy.RuleChain &&
		!within(path.Clean(asked), root) && !slices.Contains(strings.Split(asked, "/"), "..") {
		a.suggest(r, asked)
	}
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
