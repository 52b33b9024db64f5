package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"moltisfs/internal/approval"
	"moltisfs/internal/edit"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/guardfs"
	encodings "moltisfs/internal/text"
)

// ask puts a plan before whoever may approve it, bound to its digest. grant is "" when nobody had
// to be asked. over has to be told whether the change was made.
func (e *Engine) ask(ctx context.Context, c *Call, p *Plan) (grant string, over func(made bool), err error) {
	over = func(bool) {}
	code, err := e.runsCode(ctx, p)
	switch {
	case err != nil:
		return "", over, err
	case len(code) > 0 && e.cfg.ProtectExec == "refuse":
		return "", over, Refuse(RunsCode, code[0], CodeFacts{})
	case !e.cfg.RequireApproval && c.Tier != approval.TierAsk && len(code) == 0:
		if c.Tier == approval.TierNotify {
			c.Trace.Approval = "notified"
		}
		return "", over, nil
	}
	who := c.Approver
	if who == nil {
		who = e.approver
	}
	wait := time.Duration(e.cfg.ApprovalTimeout)
	q := question(c, p)
	if e.place.Calls != nil && e.place.Where != "" {
		q.Summary = summary("in the sandbox "+e.place.Where, q.Summary)
	}
	q.Code = code
	q.Warnings = append(e.codeWarnings(p, code), q.Warnings...)
	q.Expires = e.now().Add(wait)
	asking, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if c.Heard != nil {
		heard, unheard := context.WithCancelCause(asking)
		defer unheard(nil)
		defer context.AfterFunc(c.Heard, func() { unheard(approval.ErrUnheard) })()
		asking = heard
	}
	c.Trace.Digest = q.Digest
	if c.Waits != nil {
		defer c.Waits()()
	}
	a, err := who.Ask(asking, q)
	if err == nil && a.Decision == approval.Approved && a.Over != nil {
		over = a.Over.Over
	}
	err = c.Answered(ctx, p.first(), a, err)
	switch {
	case err == nil:
		return "approved", over, nil
	case a.Decision == approval.NobodyToAsk && len(code) > 0:
		return "", over, Refuse(RunsCode, code[0], CodeFacts{Lifts: true, Why: a.Reason})
	}
	return "", over, err
}

// Answered puts on record what an approver answered about path, err included, and refuses all but a
// yes.
func (c *Call) Answered(ctx context.Context, path string, a approval.Answer, err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		a = approval.Answer{Decision: approval.TimedOut}
	case errors.Is(err, context.Canceled), err != nil && ctx.Err() != nil:
		a = approval.Answer{Decision: approval.Cancelled}
	case err != nil: // an approver that can't answer has not approved
		return fmt.Errorf("asking for approval: %w", err)
	}
	if c.Trace.Approval = a.Decision.String(); a.By != "" {
		c.Trace.Approval += " by " + a.By
		if a.Reason != "" {
			c.Trace.Approval += ": " + a.Reason
		}
	}
	switch a.Decision {
	case approval.Approved:
		return nil
	case approval.TimedOut:
		return Refuse(NotAnswered, path, nil)
	case approval.NobodyToAsk:
		return Refuse(NobodyToAsk, path, a.Reason)
	case approval.Cancelled:
		return Refuse(Cancelled, path, nil)
	}
	return Refuse(NotApproved, path, a.Reason)
}

// mostWarned is of how many files each is a warning of its own: of more, a warning that differs
// would be lost among them.
const mostWarned = 5

// question puts all that a plan is into words, and its digest.
func question(c *Call, p *Plan) approval.Question {
	q := approval.Question{ID: c.ID, Principal: c.Principal, Session: c.Session, Tool: c.Tool,
		Paths: p.Paths()}
	q.Summary = summary(p.Summary, counted("creates", p.of(Mkdir)), counted("removes", p.of(Rmdir)))
	gone := 0
	for i := range p.Steps {
		if p.Steps[i].removes() {
			gone++
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if t := s.file; t != nil {
			added, removed := diff.Counts(Hunks(t))
			q.Added, q.Removed = q.Added+added, q.Removed+removed
			if t.makes() {
				q.New = append(q.New, t.True)
			}
		}
		ws := warnings(s)
		if s.removes() && gone > mostWarned {
			ws = ws[1:] // the first says just that
		}
		q.Warnings = append(q.Warnings, ws...)
	}
	if gone > mostWarned {
		q.Warnings = append([]string{fmt.Sprintf("%d files will be removed", gone)}, q.Warnings...)
	}
	for _, path := range q.Paths {
		if w := approval.Lookalike(path); w != "" {
			q.Warnings = append(q.Warnings, w)
		}
	}
	q.Diff, q.Digest = p.diff(), p.Digest(c)
	q.Warnings = append(q.Warnings, approval.Odd(q.Diff)...)
	return q
}

// summary joins what there is to say in one line.
func summary(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// counted names a few directories; the paths of the question have them all.
func counted(verb string, dirs []string) string {
	const named = 3
	switch n := len(dirs); {
	case n == 0:
		return ""
	case n == 1:
		return verb + " directory " + dirs[0]
	case n <= named:
		return fmt.Sprintf("%s %d directories: %s", verb, n, strings.Join(dirs, ", "))
	default:
		return fmt.Sprintf("%s %d directories: %s, …", verb, n, strings.Join(dirs[:named], ", "))
	}
}

// removes says whether a file or link goes, and nothing comes in its place.
func (s *Step) removes() bool {
	return s.Action != Rename && s.file != nil && s.file.After.Kind == guardfs.KindAbsent
}

// warnings lists the points of a step that a person should not overlook in the diff.
func warnings(s *Step) (out []string) {
	t := s.file
	if s.Action == Rename {
		return []string{s.move.warning()}
	}
	if t == nil {
		return nil
	}
	b := t.Before
	switch {
	case s.removes():
		out = append(out, t.True+" will be removed")
	case t.givesWay():
		out = append(out, t.True+" is a directory, which will be removed")
	case t.becomesDir():
		out = append(out, t.True+" will be removed; a directory takes its place")
	case t.unsaved():
		out = append(out, t.True+" has unsaved text in an editor, which is what changes")
	}
	if t.After.Tail {
		out = append(out, fmt.Sprintf("%s has %d bytes, and is appended to in place: "+
			"the line numbers are not its own", t.True, b.Info.Size))
	}
	if f := t.After.From; f != nil {
		out = append(out, fmt.Sprintf("%s gets %d bytes from %s, which are not shown", t.True, f.size,
			edit.ShownPath(f.path)))
	}
	if t.After.Kind == guardfs.KindSymlink {
		out = append(out, t.True+" becomes a symbolic link to "+t.After.Target)
	}
	switch m := t.After.Meta; {
	case m == nil || t.After.Kind != guardfs.KindFile:
	case b.Exists && b.Info.Kind == guardfs.KindFile && m.Mode != b.Meta.Mode:
		out = append(out, fmt.Sprintf("%s gets the mode %v, it has %v", t.True, m.Mode, b.Meta.Mode))
	case !b.Exists && m.Mode&0o111 != 0:
		out = append(out, t.True+" will be executable")
	}
	if b.Exists && b.Info.Links > 1 && b.Info.Kind != guardfs.KindDir {
		out = append(out,
			fmt.Sprintf("%s has %d other names, which keep the old content", t.True, b.Info.Links-1))
	}
	if b.Exists && b.Info.Mode&0o111 != 0 && t.After.Kind == guardfs.KindFile {
		out = append(out, t.True+" is executable")
	}
	return out
}

// warning says that a tree goes, or comes back.
func (mv *Move) warning() string {
	if mv.To != "" {
		return fmt.Sprintf("%s gets the name %s, with all it is: %d files, %d bytes", mv.Path, mv.To,
			mv.in.files, mv.in.size)
	}
	if mv.Back {
		return mv.Path + " comes back from the trash as a whole"
	}
	return fmt.Sprintf("%s goes to the trash as a whole: %d files, %d bytes", mv.Path, mv.Entry.Files,
		mv.Entry.Size)
}

// diff is all that changes in files, unified.
func (p *Plan) diff() string {
	var b strings.Builder
	for i := range p.Steps {
		if t := p.Steps[i].file; t != nil {
			b.WriteString(diff.Unified(t.True, ends(t), Hunks(t)))
		}
	}
	return b.String()
}

// ends says whether a target is there before and after its change.
func ends(t *Target) diff.Ends {
	return diff.EndsOf(t.Before.Exists, t.After.Kind != guardfs.KindAbsent)
}

// modified tells what changed since the session read the target, as far as
// the old content is still known.
func (e *Engine) modified(t *Target) HashFacts {
	f := HashFacts{Was: t.Known.Seen.Hash, Hash: t.Before.Hash}
	if old, ok := e.ledger.Content(f.Was); ok {
		f.Diff = diff.Unified(t.True, diff.EndsOf(true, t.Before.Exists),
			diff.Patch(text(old), text(t.Before.Content)))
	}
	return f
}

// lastSeen is the content of the target that the session saw last, nil when
// it is not known any more.
func (e *Engine) lastSeen(t *Target) []byte {
	if e.ledger == nil || t.Known.Seen == nil || !t.Known.Stale {
		return nil
	}
	old, _ := e.ledger.Content(t.Known.Seen.Hash)
	return old
}

// Hunks is the change of a target as a patch, of its text in UTF-8.
func Hunks(t *Target) []diff.Hunk {
	if t.After.Hunks == nil && t.After.From == nil {
		t.After.Hunks = diff.Patch(text(t.Before.Content), text(t.After.Content))
	}
	return t.After.Hunks
}

// text is content as UTF-8 for people to read, whatever its charset.
func text(content []byte) []byte {
	if utf8.Valid(content) && encodings.Sniff(content).Wide == nil {
		return bytes.TrimPrefix(content, []byte("\ufeff"))
	}
	t, _, err := edit.Decode(content, "")
	if err != nil {
		return content
	}
	return t
}

// Modified is the refusal of a Next that found that a stale file can't be changed safely.
func (e *Engine) Modified(t *Target) error { return Refuse(Modified, t.True, e.modified(t)) }

// Meanwhile is a diff of what changed since the session read the target, for a Next that can go on.
func (e *Engine) Meanwhile(t *Target) string { return e.modified(t).Diff }

// Keep remembers content that a session was shown or wrote, so that a later conflict can show what
// changed since. path is its canonical path.
//
// The content is kept in plain. So excluded paths are not kept, and with encrypt_to nothing is.
func (e *Engine) Keep(path, hash string, content []byte) {
	if e.ledger == nil || hash == "" || e.cfg.Checkpoint.EncryptTo != "" || e.excluded(path) {
		return
	}
	if err := e.ledger.Keep(hash, content); err != nil {
		e.logger.Warn("what was read could not be kept; a later conflict will show no diff", "err", err)
	}
}
