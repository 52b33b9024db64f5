package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"moltisfs/grep"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/readings"
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

// missing answers for a path where nothing is: the nearest names, among what
// this session may see.
func (a *about) missing(r *Refusal) {
	asked := a.named()
	if r.FilePath = asked; asked == "" {
		return
	}
	near := a.near(asked)
	if near.Dir == "" {
		r.Hint, r.person = "Ask the user for the right path.", "Check the path."
		return
	}
	if near.Depth == 0 && slices.Contains(near.Names, path.Base(asked)) {
		// What it goes up from is missing.
		if clean := path.Clean(asked); slices.Contains(strings.Split(asked, "/"), "..") {
			r.Hint = "Without the .. it would be " + clean + "."
			a.instead(r, clean)
			return
		}
		r.Message = quote(asked) + " is a symbolic link to something that does not exist"
		r.Next = &NextCall{"Glob", map[string]any{"pattern": "*", "path": near.Dir}}
		return
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
		r.Hint, r.person = "Ask the user to rename it.", "Rename it."
		return
	}
	if a.suggest(r, asked) {
		return
	}
	if near.Depth > 0 {
		r.Hint = "The nearest directory that exists is " + near.Dir + "; list it with Glob."
	}
	r.Next = &NextCall{"Glob", map[string]any{"pattern": "*", "path": near.Dir}}
}

// suggest looks for what a path may mean that leads to nothing, and offers the same call for it. It
// says whether it found something. What this session may not see is not found.
func (a *about) suggest(r *Refusal, asked string) bool {
	if a.call == nil {
		return false
	}
	if key, isFile := pathKey(a.args); !isFile &&
		slices.Contains(noPath, strings.Trim(asked, "\"'` ")) {
		r.Hint = "Leave " + key + " out for the whole workspace."
		r.Next = again(a.tool, a.args, map[string]any{key: nil})
		return true
	}
	if a.globbed(r, asked) {
		return true
	}
	t := &tree{about: a}
	if a.several(t, r, asked) {
		return true
	}
	dir := ""
	if a.tool == "Write" { // a file that need not be there, in a directory that must
		for _, p := range append([]string{asked}, readings.Paths(asked, a.s.cfg.WorkspaceRoot)...) {
			if path.IsAbs(p) && t.is(path.Dir(p), true, true) && p != asked && !t.is(p, true, false) &&
				!slices.Contains(noPath, path.Base(p)) {
				a.offer(r, []string{p}, true)
				return true
			}
			dir = p
		}
		t.dirs = true
		asked, dir = path.Dir(dir), path.Base(dir)
	}
	found, sure := readings.Find(t, asked, a.s.cfg.WorkspaceRoot)
	near := len(found) > 0
	if a.tool == "Write" {
		for i := range found {
			found[i] = path.Join(found[i], dir)
		}
		found = slices.DeleteFunc(found, func(p string) bool { return t.is(p, true, true) })
	}
	a.offer(r, found, sure || !t.walked)
	return near
}

// several says that a path is a list of paths, each of which is there.
func (a *about) several(t *tree, r *Refusal, asked string) bool {
	var parts []string
	for p := range strings.SplitSeq(strings.Trim(asked, "[]"), ",") {
		if p = strings.Trim(p, "\"' "); !path.IsAbs(p) {
			p = path.Join(a.s.cfg.WorkspaceRoot, p)
		}
		if parts = append(parts, p); !t.Fits(p) {
			return false
		}
	}
	if len(parts) < 2 {
		return false
	}
	r.Hint = "One path a call: make one for each."
	r.Fields = struct {
		Nearest []string `json:"nearest"`
	}{parts}
	return true
}

// noPath is what models send as the path of a search where they mean none.
var noPath = []string{"", "/", "undefined", "null", "None", "none", "nil"}

// offer names what was found. likely says that the first is the one that is meant; a call that
// changes something is offered only where there is no other.
func (a *about) offer(r *Refusal, found []string, likely bool) {
	if len(found) == 0 {
		return
	}
	changes := row(a.tool).Effect != Reads
	if changes {
		for i, p := range found {
			if o, ok := a.s.engine.There(a.call, p); ok {
				found[i] = o.True // a link is not written through
			}
		}
	}
	if likely && !changes || len(found) == 1 {
		a.instead(r, found[0])
		r.Next = a.tried(r.Next, found[0])
	}
	r.Hint = "Did you mean " + strings.Join(found, " or ") + "?"
	if len(found) > 1 || r.Next == nil {
		r.Fields = struct {
			Nearest []string `json:"nearest"`
		}{found}
	}
}

// tried is an edit of another file than the one that was named, as it applies there: with its own
// strings, or with those made to fit. nil: it does not apply. Other calls are as they were.
func (a *about) tried(next *NextCall, path string) *NextCall {
	var edits []edit.Edit
	switch args := a.args.(type) {
	case *EditArgs:
		edits = args.edits()
	case *MultiEditArgs:
		edits = args.edits()
	default:
		return next
	}
	content := a.s.engine.Content(a.call, path)
	if content == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := edit.Apply(content, edits,
		edit.Options{Strict: a.s.cfg.EditMatching == "strict", Err: ctx.Err})
	e, none := errors.AsType[*edit.NoMatchError](err)
	switch {
	case err == nil:
	case none && e.Repaired != nil && a.tool == "Edit":
		next.Args["old_string"], next.Args["new_string"] = e.Repaired.Old, e.Repaired.New
	case none && len(e.All) > 0 && a.tool == "MultiEdit":
		next.Args["edits"] = mendedEdits(e.All)
	default:
		return nil
	}
	return next
}

// globbed offers a search where the path is a glob.
func (a *about) globbed(r *Refusal, asked string) bool {
	for _, p := range append([]string{asked}, readings.Paths(asked, a.s.cfg.WorkspaceRoot)...) {
		dir, glob, ok := readings.CutGlob(p)
		if !ok || !path.IsAbs(p) || row(a.tool).Effect != Reads {
			continue
		}
		hits, err := a.files(dir, grep.GlobQuery{Pattern: "./" + glob, Limit: 2})
		if err != nil || hits.Total == 0 {
			continue
		}
		switch a.tool {
		case "Grep":
			if asMap(a.args)["glob"] != nil {
				continue
			}
			r.Next = again(a.tool, a.args, map[string]any{"path": dir, "glob": "/" + glob})
			r.Hint = "path takes no wildcards: send " + dir + " as path and /" + glob + " as glob."
		case "Glob":
			pattern, _ := asMap(a.args)["pattern"].(string)
			if pattern = strings.TrimPrefix(pattern, "**/"); strings.Trim(pattern, "*") != "" {
				glob = strings.TrimSuffix(glob, "/") + "/" + pattern
			}
			r.Next = again(a.tool, a.args, map[string]any{"path": dir, "pattern": glob})
			r.Hint = "path takes no wildcards: send " + dir + " as path and " + glob + " as pattern."
		default:
			r.Hint = "Read takes one file; find them with Glob."
			r.Next = &NextCall{"Glob", map[string]any{"path": dir, "pattern": glob}}
			if hits.Total == 1 {
				r.Hint = "It matches one file: " + hits.Files[0].Path + "."
				a.instead(r, hits.Files[0].Path)
			}
		}
		return true
	}
	return false
}

// files is a Glob that is not on record, and short.
func (a *about) files(dir string, q grep.GlobQuery) (*grep.FilesResult, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	asked := a.call.Trace.Paths
	defer func() { a.call.Trace.Paths = asked }()
	return a.s.engine.Files(ctx, a.call, dir, q)
}

// patience is how long is looked for what a call may have meant.
var patience = 100 * time.Millisecond // a var for tests, on machines with more to do

// tree is what a session may see, for readings.Find.
type tree struct {
	*about
	dirs   bool // directories are wanted, whatever the tool takes
	walked bool // the whole root was looked through
}

func (t *tree) Near(p string) (dir string, missing int, names []string) {
	n := t.near(p)
	names = slices.DeleteFunc(n.Names, func(n string) bool { return !utf8.ValidString(n) })
	return n.Dir, n.Depth, names
}

func (t *tree) Fits(p string) bool {
	_, file := pathKey(t.args)
	return t.is(p, t.dirs || !file, !t.dirs && (file || t.tool == "Grep"))
}

// is says whether p is a directory, or a file, of which one may be wanted or both.
func (t *tree) is(p string, dir, file bool) bool {
	o, ok := t.s.engine.There(t.call, p)
	return ok && (o.Info.Kind == guardfs.KindDir && dir || o.Info.Kind == guardfs.KindFile && file)
}

// Named looks through the root, as far as that goes in a moment.
func (t *tree) Named(base string) (out []string) {
	t.walked = true
	root := t.s.cfg.WorkspaceRoot
	if root == "" {
		return nil
	}
	glob := "**/" + readings.NameGlob(base)
	_, file := pathKey(t.args)
	add := func(p string) {
		if readings.Fold(path.Base(p)) == readings.Fold(base) && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	if !t.dirs && (file || t.tool == "Grep") {
		if r, err := t.files(root, grep.GlobQuery{Pattern: glob, Limit: 20}); err == nil {
			for _, f := range r.Files {
				add(f.Path)
			}
		}
	}
	if t.dirs || !file {
		if r, err := t.files(root, grep.GlobQuery{Pattern: glob + "/**", Limit: 1000}); err == nil {
			for _, f := range r.Files {
				for d := path.Dir(f.Path); within(d, root) && d != root; d = path.Dir(d) {
					add(d)
				}
			}
		}
	}
	return out
}
