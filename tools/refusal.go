package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"moltisfs/grep"
	"moltisfs/internal/alternatives"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/refusal"
	"moltisfs/internal/session"
	"moltisfs/readers"
)

// The kinds of refusal, all of them.
const (
	KindNotFound         = string(engine.CodeNotFound)
	KindPermissionDenied = string(engine.CodePermissionDenied)
	KindTooLarge         = string(engine.CodeTooLarge)
	KindNotRegularFile   = string(engine.CodeNotRegularFile)
	KindPathDenied       = string(engine.CodePathDenied)
	KindBadRequest       = string(engine.CodeBadRequest)
	KindSymlinkRefused   = string(engine.CodeSymlinkRefused)
	KindMustRead         = string(engine.CodeMustRead)
	KindModified         = string(engine.CodeModified)
	KindNoMatch          = string(engine.CodeNoMatch)
	KindNotUnique        = string(engine.CodeNotUnique)
	KindConflict         = string(engine.CodeConflict)
	KindApprovalDenied   = string(engine.CodeApprovalDenied)
	KindApprovalTimeout  = string(engine.CodeApprovalTimeout)
	KindApprovalStale    = string(engine.CodeApprovalStale)
	KindUnsupported      = string(engine.CodeUnsupported)
	KindLimit            = string(engine.CodeLimit)
	KindDeadline         = string(engine.CodeDeadline)
	KindPolicyError      = string(engine.CodePolicyError)
	KindIOError          = string(engine.CodeIOError)
	KindUnavailable      = string(engine.CodeUnavailable)
)

// A Refusal is a "no" that a model can act on. Message says what is so, Hint the next move, and Next is the call to make
// now, where there is one.
type Refusal struct {
	Reason   string `json:"-"` // the kind
	FilePath string `json:"file_path,omitempty"`
	Message  string `json:"error"`
	Hint     string `json:"hint"`
	// Next is a call that can be made as it stands and answers the hint.
	Next *NextCall `json:"next,omitempty"`
	// Fields are the kind's own, spliced into the object.
	Fields any `json:"-"`

	facts  *engine.Refusal
	voice  refusal.Voice
	table  string // the hint of the table
	person string // the words for a person in place of a hint of our own
}

// ForPerson is the hint for a person at a terminal. names gives the word of that person for a tool or an argument,
// "" if there is none; nil: the words of the tools. now adds to the moments of the call.
func (r *Refusal) ForPerson(names func(string) string, now map[string]string) string {
	if r.facts == nil || r.Hint != r.table {
		return cmp.Or(r.person, r.Hint)
	}
	v := r.voice
	v.Now = maps.Clone(r.voice.Now)
	maps.Copy(v.Now, now)
	if names != nil {
		v.Names = names
	}
	return refusal.Tell(r.facts, v).Person
}

// Facts are the facts of the refusal, for this module's command line, which has other words for them; nil if the
// tool itself refuses.
func (r *Refusal) Facts() *engine.Refusal { return r.facts }

// Unwrap is the error behind it, where there is one: errors.Is(r, fs.ErrNotExist) may hold, and
// errors.Is(r, context.Canceled).
func (r *Refusal) Unwrap() error {
	if r.facts == nil {
		return nil
	}
	return r.facts.Err
}

func (r *Refusal) Kind() string { return r.Reason }

// Error lets a step of a chain refuse in its own words.
func (r *Refusal) Error() string { return r.Message }

func (*Refusal) payload() {}

// Text is the refusal in two or three lines.
func (r *Refusal) Text() string {
	var b lines
	b.WriteString(r.Message)
	b.add(r.Hint != "", "\n%s", r.Hint)
	if t, ok := r.Fields.(interface{ Text() string }); ok {
		b.WriteString("\n" + t.Text())
	}
	return b.String()
}

// MarshalJSON splices the kind's own fields behind the common ones.
func (r *Refusal) MarshalJSON() ([]byte, error) {
	type common Refusal
	head, err := plainJSON((*common)(r))
	if err != nil || r.Fields == nil {
		return head, err
	}
	own, err := plainJSON(r.Fields)
	if err != nil {
		return nil, err
	}
	if string(own) == "{}" {
		return head, nil
	}
	head[len(head)-1] = ','
	return append(head, own[1:]...), nil
}

// refuse tells a model of a refusal. A tool may have put it into words already.
func (s *Suite) refuse(c *engine.Call, tool string, args any, facts *engine.Refusal) *Refusal {
	r, ok := errors.AsType[*Refusal](facts)
	if !ok {
		if facts.Cause == engine.Unknown {
			s.logger.Error("a call failed for a reason without a row", "tool", tool, "err", facts.Err)
		}
		r = s.refusalOf(c, tool, args, facts)
	}
	if r.FilePath == "" {
		r.FilePath = pathOf(args)
	}
	if out, ok := errors.AsType[*outputError](facts); ok {
		r.Fields = out.b
	}
	r.FilePath = fmt.Sprintf("%.*s", guardfs.MaxPath, r.FilePath)
	return r
}

// refusalOf puts facts into the words of the table, and has the tool add fields, a next call, and a guess at the meaning.
func (s *Suite) refusalOf(c *engine.Call, tool string, args any, facts *engine.Refusal) *Refusal {
	a := &about{Refusal: facts, s: s, call: c, tool: tool, args: args, path: pathOf(args)}
	a.now = a.moments()
	r := &Refusal{Reason: string(facts.Code), facts: facts}
	a.tell(r)
	more := extras[facts.Cause]
	if t := row(tool); t != nil && t.refuses[facts.Cause] != nil {
		more = t.refuses[facts.Cause]
	}
	if more != nil {
		more(a, r)
	}
	if n := r.Next; c != nil && n != nil && row(n.Tool) != nil && row(n.Tool).Changes {
		if path, _ := n.Args["file_path"].(string); s.engine.RunsCode(path) {
			r.Hint += " It runs code later: a change of it is asked about."
		}
	}
	return r
}

// tell fills in the words of the table.
func (a *about) tell(r *Refusal) {
	r.voice = refusal.Voice{Path: quotePath(a.named()), Show: quote, Now: a.now, Edits: a.tool == "MultiEdit", Hint: a.s.worded,
		Names: func(name string) string {
			if toolNames().FindString(name) == name {
				return a.s.tool(name)
			}
			if name != "line" && slices.Contains(refusal.Names, name) {
				return name
			}
			return ""
		}}
	told := refusal.Tell(a.Refusal, r.voice)
	r.Message, r.Hint, r.table = told.Says, told.Hint, told.Hint
}

// moments tell the state of the call for the words of the table: see refusal.Voice.Now.
func (a *about) moments() map[string]string {
	now := map[string]string{"root": a.s.cfg.WorkspaceRoot}
	set := func(name string, is bool) {
		if is {
			now[name] = "yes"
		}
	}
	set("plain", path.IsAbs(a.named()))
	set("makes", a.makes())
	set("convert", a.tool == "Write")
	t := row(a.tool)
	set("changes", t != nil && t.Changes)
	if !a.s.cfg.CheckpointBeforeMutation {
		now["off"] = refusal.Off
	}
	sent := asMap(a.args)
	for _, what := range []string{"label", "turn"} {
		if name, _ := sent[what].(string); name != "" {
			now["named"] = what + " " + quoteShort(name)
		}
	}
	if r, ok := a.args.(restorer); ok {
		if r.moments(a.Cause, set); !r.fromTrash() {
			now["skip"] = ", or leave that path alone with {on_conflict} skip"
		}
	}
	return now
}

// extras add to the words of a cause, whichever tool is refused. Tool.refuses comes before them.
var extras = map[engine.Cause]func(*about, *Refusal){
	engine.HalfMade: func(a *about, r *Refusal) {
		const most = 20
		f := factsOf[engine.HalfFacts](a)
		r.Fields = halfMadeFields{f.Left[:min(most, len(f.Left))], len(f.Left), f.Checkpoint}
		if a.path == "" && len(f.Left) > 0 {
			r.FilePath = f.Left[0]
		}
	},
	engine.BadArgument:   badArguments,
	engine.BadPath:       (*about).badPath,
	engine.OutOfScope:    ofPath,
	engine.ChainFailed:   ofPath,
	engine.Denied:        (*about).pathDenied,
	engine.Pseudo:        (*about).pathDenied,
	engine.IsLink:        (*about).symlink,
	engine.NotRegular:    (*about).notRegular,
	engine.ParentMissing: (*about).parentMissing,
	engine.Absent:        (*about).missing,
	engine.NotADirectory: func(a *about, r *Refusal) {
		if !a.skips(r) && !a.suggest(r, a.named()) {
			r.Next = globbing(a)
		}
	},
	engine.FileTooLarge: func(a *about, r *Refusal) {
		e := factsOf[*guardfs.TooLargeError](a)
		r.Fields = sizes{e.Size, e.Max}
	},
	engine.WriteTooLarge: func(a *about, r *Refusal) {
		e := factsOf[engine.SizeFacts](a)
		r.Fields = sizes{e.Size, e.Max}
	},
	engine.ChangedAtOnce: reading, engine.BufferDiffers: reading, engine.Unread: reading,

	engine.PartUnread: func(a *about, r *Refusal) { a.readRest(r, true) },
	engine.DropsUnseen: func(a *about, r *Refusal) {
		a.readRest(r, false)
		r.Fields = guardField{"overwrite"}
	},
	engine.LinesUnseen: func(a *about, r *Refusal) {
		f := factsOf[engine.LineFacts](a)
		r.Next = read(a.path)
		r.Next.Args["offset"], r.Next.Args["limit"] = f.First, f.Last-f.First+1
		if f.Encoding != "" {
			r.Next.Args["encoding"] = f.Encoding
		}
		if f.ANSI {
			r.Next.Args["ansi"] = true
		}
	},
	engine.OverBinary: func(_ *about, r *Refusal) { r.Fields = guardField{"overwrite"} },
	engine.Accident: func(a *about, r *Refusal) {
		r.Fields = guardField{"overwrite"}
		if factsOf[engine.GuardFacts](a).Edits {
			r.Fields = guardField{"edit"}
		}
	},
	engine.Modified: modified,
	engine.Unexpected: func(a *about, r *Refusal) {
		if modified(a, r); factsOf[engine.HashFacts](a).Hash == "" {
			r.Next = globbing(a)
		}
	},
	engine.ApprovalStale: func(a *about, r *Refusal) {
		r.Fields = struct {
			Diff string `json:"diff,omitempty"`
		}{clip(factsOf[string](a), maxDiff)}
	},

	refusal.NotShown: unshown,
	engine.BadEncoding: func(a *about, r *Refusal) {
		if e := factsOf[*edit.EncodingError](a); e.Is || slices.Contains(readers.Encodings(), strings.ToLower(e.Name)) {
			r.Reason = KindUnsupported // at best it can be read: its bytes can't be spliced
		}
	},
}

// The calls that come next.
func reading(a *about, r *Refusal) { r.Next = read(a.path) }

func ofPath(a *about, r *Refusal) { r.FilePath = a.Path }

// A restorer is an argument struct of a restore, which a refusal has not begun.
type restorer interface {
	fromTrash() bool
	moments(c engine.Cause, set func(name string, is bool))
}

// skips offers a restore that leaves alone the path that can't be restored. It reports whether the call is a restore.
func (a *about) skips(r *Refusal) bool {
	_, is := a.args.(restorer)
	if is && a.Path != "" {
		r.FilePath, r.Next = a.Path, a.skipping()
	}
	return is
}

// skipping gives the same restore with on_conflict skip; nil for the trash, from which nothing comes back in part.
func (a *about) skipping() *NextCall {
	if r, ok := a.args.(restorer); !ok || r.fromTrash() {
		return nil
	}
	return again("checkpoint_restore", a.args, map[string]any{"on_conflict": "skip"})
}

// named is the path that the call names, else the one that the facts do.
func (a *about) named() string { return cmp.Or(a.path, a.Path) }

// modified adds the diff and the hash to the refusal of a change whose file is not as it was read or named.
func modified(a *about, r *Refusal) {
	f := factsOf[engine.HashFacts](a)
	r.Next, r.Fields = read(a.path), modifiedFields{Diff: clip(f.Diff, maxDiff), SHA256: f.Hash}
}

// An about holds the facts of a refusal, and the call that they are about.
type about struct {
	*engine.Refusal
	s    *Suite
	call *engine.Call
	tool string
	args any
	path string // that the call names; "" for a call of many paths
	now  map[string]string
}

// factsOf are the facts of a refusal whose cause tells their type.
func factsOf[T any](a *about) T { return a.Facts.(T) }

// halfMadeFields names the paths that a call left changed when it failed half-way.
type halfMadeFields struct {
	NotPutBack []string `json:"not_put_back"` // the first ones
	Total      int      `json:"not_put_back_total"`
	Checkpoint string   `json:"checkpoint,omitempty"`
}

// Text names them.
func (f halfMadeFields) Text() string {
	var b strings.Builder
	for _, p := range f.NotPutBack {
		b.WriteString(edit.ShownPath(p) + "\n")
	}
	if n := f.Total - len(f.NotPutBack); n > 0 {
		fmt.Fprintf(&b, "and %d more\n", n)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// readRest offers to read the part of a file that the session has not seen, if it can be shown.
func (a *about) readRest(r *Refusal, count bool) {
	seen := factsOf[*session.Seen](a)
	first, unit := seen.FirstUnseen(), cmp.Or(seen.Unit, "line")
	args := map[string]any{"file_path": a.path, "offset": first}
	switch {
	case seen.Lossy && seen.Lines >= 0 && first > seen.Lines, len(seen.Ranges) == 0 && seen.Unit == "":
		return
	case unit == "source line":
		args = map[string]any{"file_path": a.path, "render": false}
	case unit == "plain line":
		args = map[string]any{"file_path": a.path, "ansi": true}
	case unit == "line" && len(seen.Ranges) > 0 &&
		(first == 1 && seen.Ranges[0].First == 2 || first > 1 && len(seen.Ranges) > 1 &&
			seen.Ranges[1].First == first+1):
		args["column"] = 1 // one line between others: it was too long to be shown with them
	case unit == "page":
		delete(args, "offset")
		args["pages"] = fmt.Sprint(first)
		if last := min(first+readers.MaxPages-1, seen.Lines); last > first {
			args["pages"] = fmt.Sprintf("%d-%d", first, last)
		}
	}
	r.Next = &NextCall{"Read", args}
	if unit == "line" && count {
		r.Fields = struct {
			Seen  int `json:"lines_seen"`
			Lines int `json:"total_lines,omitempty"`
		}{seen.Shown(), max(seen.Lines, 0)}
	}
}

// guardField names the guard that takes a change for an accident.
type guardField struct {
	Guard string `json:"guard"`
}

type modifiedFields struct {
	Diff   string `json:"diff,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// Text shows the diff.
func (m modifiedFields) Text() string { return m.Diff }

type sizes struct {
	Bytes    int64 `json:"bytes"`
	MaxBytes int64 `json:"max_bytes"`
}

// badArguments offers the call with the arguments that would be taken, where they are known.
func badArguments(a *about, r *Refusal) {
	e := factsOf[*badArgument](a)
	tool := row(a.tool)
	if e.Tool != "" {
		tool = row(e.Tool)
	}
	if in, _, err := tool.decode(e.Call); e.Call != nil && err == nil && tool.allowed(a.s.tools) {
		r.Next = again(tool.Name, in, nil)
		path, there := pathOf(in), &tree{about: &about{s: a.s, call: a.call, tool: tool.Name, args: in}}
		if path != "" && tool.Name != "Write" && a.call != nil && !there.Fits(path) {
			r.Next = nil // it would be refused for its path
		}
	}
}

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

// again is the call of tool with args, some of them changed; nil when it would be long: a model need not be sent
// back its own text.
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

// badPath looks for the meaning of a path that is malformed.
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
	switch makes := a.makes(); {
	case makes && found:
		r.Hint += " Or send it with create_parents: true to make the directory."
	case makes:
		r.Next = again(a.tool, a.args, map[string]any{"create_parents": true})
	}
}

// makes says whether the call would make the directories that are missing if it asked to.
func (a *about) makes() bool {
	args, ok := a.args.(interface{ makes() bool })
	return ok && args.makes() && path.Clean(a.path) == a.path // nothing goes up from a directory that is not there
}

// instead offers the same call for another path.
func (a *about) instead(r *Refusal, path string) {
	key, _ := pathKey(a.args)
	r.Next = again(a.tool, a.args, map[string]any{key: path})
}

func (a *about) near(path string) engine.Nearby { return a.call.Near(path) }

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
	real, err := a.call.Real(target)
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

// notRegular lists a directory.
func (a *about) notRegular(r *Refusal) {
	e, asked := factsOf[*guardfs.NotRegularError](a), a.named()
	if a.skips(r) || e.Kind != "directory" {
		return
	}
	r.Next = &NextCall{"Glob", map[string]any{"pattern": "*", "path": asked}}
	if near := a.near(path.Join(asked, "x")); near.Dir != "" {
		const most = 20
		n := min(most, len(near.Names))
		r.Fields = entriesField{append([]string{}, near.Names[:n]...), len(near.Names) - n}
	}
}

// entriesField is the beginning of a directory.
type entriesField struct {
	Entries []string `json:"entries"`
	More    int      `json:"more,omitempty"`
}

// Text lists the names, one a line, those that don't show plainly in quotes.
func (f entriesField) Text() string {
	var b lines
	for _, n := range f.Entries {
		if q := quote(n); q != `"`+n+`"` {
			n = q
		}
		b.WriteString(n + "\n")
	}
	b.add(f.More > 0, "[%d more]", f.More)
	b.add(len(f.Entries) == 0, "[it is empty]")
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
	// Of a path outside the workspace the end may be one inside. Closed paths within it are not spoken of.
	root, asked := a.s.cfg.WorkspaceRoot, a.named()
	if root != "" && a.Cause == engine.Denied && a.Class() == "" && a.Rule() != policy.RuleChain &&
		!within(path.Clean(asked), root) && !slices.Contains(strings.Split(asked, "/"), "..") {
		a.suggest(r, asked)
	}
}

// missing offers the names nearest to a path where nothing is, among those that this session may see.
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
		// The directory that it goes up from is missing.
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
		r.Hint = "The nearest directory that exists is " + near.Dir + "; list it with " + a.s.tool("Glob") + "."
	}
	r.Next = &NextCall{"Glob", map[string]any{"pattern": "*", "path": near.Dir}}
}

// suggest looks for a path that asked may mean, and offers the same call for it. It reports whether it found one. It
// finds nothing that this session may not see.
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
	t, dir := &tree{about: a}, ""
	if a.tool == "Write" { // a file that need not be there, in a directory that must
		for _, p := range append([]string{asked}, alternatives.Paths(asked, a.s.cfg.WorkspaceRoot)...) {
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
	found, sure := alternatives.Find(t, asked, a.s.cfg.WorkspaceRoot)
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

// noPath lists the paths that models send with a search if they mean none.
var noPath = []string{"", "/", "undefined", "null", "None", "none", "nil"}

// offer names the paths that were found. likely says that the first is the one that is meant; a call that
// changes something is offered only where there is no other.
func (a *about) offer(r *Refusal, found []string, likely bool) {
	if len(found) == 0 {
		return
	}
	changes := row(a.tool).Changes
	if changes {
		for i, p := range found {
			if o, ok := a.call.There(p); ok {
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

// An editor is an argument struct that edits a file.
type editor interface{ edits() []edit.Edit }

// tried is an edit of another file than the one that was named, as it applies there: with its own
// strings, or with those made to fit. nil: it does not apply. Other calls are as they were.
func (a *about) tried(next *NextCall, path string) *NextCall {
	args, ok := a.args.(editor)
	if !ok {
		return next
	}
	content := a.call.Content(path)
	if content == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := edit.Apply(content, args.edits(),
		edit.Options{Strict: a.s.cfg.EditMatching == "strict", Err: ctx.Err})
	e, none := errors.AsType[*edit.NoMatchError](err)
	switch {
	case err == nil:
	case none && e.Repaired != nil && a.tool == "Edit":
		next.Args["old_string"], next.Args["new_string"] = e.Repaired.Old, e.Repaired.New
	case none && len(e.All) > 0 && a.tool == "MultiEdit":
		next.Args["edits"] = repairedEdits(e.All)
	default:
		return nil
	}
	return next
}

// globbed offers a search where the path is a glob.
func (a *about) globbed(r *Refusal, asked string) bool {
	for _, p := range append([]string{asked}, alternatives.Paths(asked, a.s.cfg.WorkspaceRoot)...) {
		dir, glob, ok := alternatives.CutGlob(p)
		if !ok || !path.IsAbs(p) || row(a.tool).Changes {
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
			r.Hint = a.s.worded("One file is taken by Read; find them with Glob.")
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
	return a.call.Files(ctx, dir, q)
}

// patience bounds the search for another meaning of a call.
var patience = 100 * time.Millisecond // a var for tests, on machines with more to do

// tree shows alternatives.Find the paths that a session may see.
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
	o, ok := t.call.There(p)
	return ok && (o.Info.Kind == guardfs.KindDir && dir || o.Info.Kind == guardfs.KindFile && file)
}

// Named looks through the root, as far as that goes in a moment.
func (t *tree) Named(base string) (out []string) {
	t.walked = true
	root := t.s.cfg.WorkspaceRoot
	if root == "" {
		return nil
	}
	glob := "**/" + alternatives.NameGlob(base)
	_, file := pathKey(t.args)
	add := func(p string) {
		if alternatives.Fold(path.Base(p)) == alternatives.Fold(base) && !slices.Contains(out, p) {
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

// maxDiff bounds a diff inside a refusal, in bytes.
const maxDiff = 8 << 10

// repairedEdits are the edits of a MultiEdit with other strings.
func repairedEdits(all []edit.Edit) (out []map[string]any) {
	for _, e := range all {
		one := map[string]any{"old_string": e.Old, "new_string": e.New}
		if e.All {
			one["replace_all"] = true
		}
		out = append(out, one)
	}
	return out
}

// unshown refuses a file that a reader can't show, in the reader's words.
func unshown(a *about, r *Refusal) {
	switch e := factsOf[readers.Hinter](a).(type) {
	case *readers.BadRequest, *readers.BadPages, *readers.BadEncoding:
		r.Reason = KindBadRequest
	case *readers.Limit:
		r.Reason = KindLimit
	case *readers.Busy, *readers.OutOfTime:
		r.Reason = KindDeadline
	case *readers.TooLarge:
		r.Reason, r.Fields = KindTooLarge, sizes{e.Size, e.Max}
		switch {
		case e.Windowed && e.What == "PDF":
			r.Next = again(a.tool, a.args, map[string]any{"pages": fmt.Sprintf("1-%d", readers.MaxPages)})
		case e.Windowed:
			r.Next = again(a.tool, a.args, map[string]any{"offset": 1, "limit": readers.DefaultLines})
		}
	}
}
