package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"moltisfs/internal/approval"
	"moltisfs/internal/edit"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// ask puts plan p before the approver, bound to its digest. grant is "" when nobody had
// to be asked. over has to be told whether the change was made.
func (c *Call) ask(ctx context.Context, p *Plan) (grant string, over func(made bool), err error) {
	over = func(bool) {}
	code, err := c.runsCode(ctx, p)
	switch {
	case err != nil:
		return "", over, err
	case len(code) > 0 && c.cfg.ProtectExec == "refuse":
		return "", over, Refuse(RunsCode, code[0], CodeFacts{})
	case !c.cfg.RequireApproval && c.Tier != approval.TierAsk && len(code) == 0 && len(p.doubts) == 0:
		if c.Tier == approval.TierNotify {
			c.Trace.Approval = "notified"
		}
		return "", over, nil
	}
	who := c.Approver
	if who == nil {
		who = c.approver
	}
	wait := time.Duration(c.cfg.ApprovalTimeout)
	if err := c.showGone(p); err != nil {
		return "", over, err
	}
	of, _ := who.(asking)
	q := question(c, p, !approval.Blind(of.of))
	if c.place.Calls != nil && c.place.Where != "" {
		q.Summary = summary("in the sandbox "+c.place.Where, q.Summary)
	}
	q.Code = code
	q.Warnings = append(c.codeWarnings(p, code), q.Warnings...)
	q.Expires = c.now().Add(wait)
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
	if c.Progress != nil {
		c.Progress.Asked.Store(true)
		defer c.Progress.Asked.Store(false)
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

// showGone reads the files and links that go to the trash, as far as the store could hold them, and the links
// that come back, so that who approves sees them.
func (e *Engine) showGone(p *Plan) error {
	for _, mv := range p.moving() {
		leaf := mv.info.Kind == guardfs.KindFile || mv.info.Kind == guardfs.KindSymlink
		if mv.fresh != nil && mv.info.Kind == guardfs.KindFile && e.storable(mv.Path, mv.info.Size) {
			b, err := mv.from.Load(e.cfg.Checkpoint.MaxFileBytes)
			if err != nil {
				return err
			}
			mv.shown = &Target{Path: mv.Path, True: mv.Path, Before: &guardfs.Before{}, After: After{Kind: guardfs.KindFile, Content: b.Content, Hash: b.Hash}}
		}
		if mv.Back && mv.info.Kind == guardfs.KindSymlink {
			b, err := mv.from.Load(e.cfg.Checkpoint.MaxFileBytes)
			if err != nil {
				return err
			}
			mv.shown = &Target{Path: mv.Path, True: mv.Path, Before: &guardfs.Before{},
				After: After{Kind: guardfs.KindSymlink, Target: string(b.Content)}}
		}
		if mv.To != "" || mv.Back || !leaf || !e.storable(mv.Path, mv.info.Size) {
			continue
		}
		b, err := mv.from.Load(e.cfg.Checkpoint.MaxFileBytes)
		if err != nil {
			return err
		}
		mv.shown = &Target{Path: mv.Path, True: mv.Path, Before: b, After: After{Kind: guardfs.KindAbsent}}
	}
	return nil
}

// shown is the content of a step that a diff shows; nil for none.
func (s *Step) shown() *Target {
	if s.move != nil {
		return s.move.shown
	}
	return s.file
}

// question puts all that a plan is into words, and its digest; with seen also its diff and how many lines that has, which take as much memory as
// all files.
func question(c *Call, p *Plan, seen bool) approval.Question {
	q := approval.Question{ID: c.ID, Principal: c.Principal, Session: c.Session, Client: c.Program, Tool: c.Tool,
		Paths: p.Paths()}
	q.Summary = summary(p.Summary, counted("creates", p.of(Mkdir)), counted("removes", p.of(Rmdir)), counted("writes in place", p.of(Overwrite)))
	gone := 0
	for i := range p.Steps {
		if p.Steps[i].removes() {
			gone++
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if t := s.shown(); t != nil {
			if seen {
				added, removed := Counts(t)
				q.Added, q.Removed = q.Added+added, q.Removed+removed
			}
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
	for _, path := range p.doubts {
		q.Warnings = append(q.Warnings, path+" may be another one than the program saw")
	}
	if q.Digest = p.Digest(c); seen {
		q.Diff = p.diff()
	}
	q.Warnings = append(q.Warnings, approval.Odd(q.Diff)...)
	return q
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

// warnings lists the points of a step that a person should not overlook in the diff.
func warnings(s *Step) (out []string) {
	t := s.file
	if s.Action == Rename {
		return []string{s.move.warning()}
	}
	if s.Action == SetDir {
		return []string{fmt.Sprintf("directory %s gets the mode %v, it has %v", s.Path, s.After.Mode, s.Before.Mode)}
	}
	if t == nil {
		return nil
	}
	b := t.Before
	switch {
	case s.removes():
		out = append(out, t.True+" will be removed")
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

// makes says that a file comes where none is.
func (t *Target) makes() bool { return t.none() && t.After.Kind != guardfs.KindAbsent }

// warning says that a tree goes, or comes back.
func (mv *Move) warning() string {
	if mv.To != "" {
		to := mv.To
		if mv.over {
			to += ", over what is there,"
		}
		return fmt.Sprintf("%s gets the name %s, with all it is: %d files, %d bytes", mv.Path, to,
			mv.in.files, mv.in.size)
	}
	if mv.fresh != nil {
		return fmt.Sprintf("%s comes as a whole: %d files, %d bytes", mv.Path, mv.Entry.Files, mv.Entry.Size)
	}
	if mv.Back && mv.shown != nil {
		return mv.Path + " becomes a symbolic link to " + mv.shown.After.Target
	}
	if mv.Back {
		return mv.Path + " comes back from the trash as a whole"
	}
	return fmt.Sprintf("%s goes to the trash as a whole: %d files, %d bytes", mv.Path, mv.Entry.Files,
		mv.Entry.Size)
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

// summary joins what there is to say in one line.
func summary(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// removes says whether a file or link goes, and nothing comes in its place.
func (s *Step) removes() bool {
	return s.Action != Rename && s.file != nil && s.file.After.Kind == guardfs.KindAbsent
}

// diff is all that changes in files, unified.
func (p *Plan) diff() string {
	var b strings.Builder
	for i := range p.Steps {
		if t := p.Steps[i].shown(); t != nil {
			b.WriteString(diff.Unified(t.True, ends(t), Hunks(t)))
		}
		if mv := p.Steps[i].move; mv != nil && mv.To != "" && mv.over {
			fmt.Fprintf(&b, "moves %s over %s\n", edit.ShownPath(mv.Path), edit.ShownPath(mv.To))
		}
	}
	return b.String()
}

// mostCode is of how many paths each is named.
const mostCode = 5

// runsCode are the paths of a plan that run code later, under any of their names, with those inside
// of a tree that gets another name, goes, or comes back. No more than a few are named.
func (c *Call) runsCode(ctx context.Context, p *Plan) (out []string, err error) {
	if c.classes == nil || c.cfg.ProtectExec == "allow" {
		return nil, nil
	}
	hooks := map[string][]string{}
	// The name that has the class is told first: it is the one to lift.
	add := func(name string, is policy.Class) {
		if is < policy.Exec && !c.isHook(name, hooks) {
			return
		}
		if len(out) <= mostCode && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, name := range []string{s.Path, s.To} {
			if name == "" || inTrash(name) {
				continue
			}
			as := name
			if s.Action == Mkdir || s.Action == Rmdir {
				as += "/-" // some names count for files only, as HEAD
			}
			if is := c.classes.Of(as); is >= policy.Exec || c.isHook(as, hooks) {
				add(name, policy.Exec)
			}
		}
		if t := s.file; t != nil {
			by, is := t.Path, c.classes.Of(t.Path)
			if t.place != nil && is < policy.Exec {
				by, is = c.classes.Worst(t.place.Object())
			}
			add(by, is)
			add(t.True, is)
		}
		if s.move == nil {
			continue
		}
		for _, place := range []*guardfs.Entry{s.move.from, s.move.to} {
			if place != nil && !inTrash(place.Object().True) {
				by, is := c.classes.Worst(place.Object())
				add(by, is)
				add(place.Object().True, is)
			}
		}
		err := c.inside(ctx, s.move, func(name string) { add(name, c.classes.Of(name)) })
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// inside names all that is in a tree that moves, as it is called before and after.
func (c *Call) inside(ctx context.Context, mv *Move, use func(name string)) (err error) {
	switch {
	case mv.info.Kind != guardfs.KindDir:
	case mv.Back:
		_, err = c.lookInto(ctx, mv, mv.Entry.Parked, func(name string, _ guardfs.Kind) { use(name) })
	case mv.To == "":
		_, err = c.walkForDelete(ctx, mv.Path, true, use)
	default:
		_, err = c.walkForDelete(ctx, mv.Path, true, func(name string) { use(name); use(mv.newName(name)) })
	}
	return err
}

// checkGrant refuses a plan that was made anew, and changes what runs code: nobody was asked about
// that.
func (c *Call) checkGrant(ctx context.Context, approved bool, p *Plan) error {
	if approved {
		return nil // it is refused for whatever it adds
	}
	code, err := c.runsCode(ctx, p)
	if err == nil && len(code) > 0 {
		err = Refuse(ApprovalStale, code[0], p.diff())
	}
	return err
}

// codeWarnings say of a question what in it runs code: what is asked about for that reason, and
// what runs when a build or a test does.
func (e *Engine) codeWarnings(p *Plan, code []string) (out []string) {
	for i, name := range code {
		if i == mostCode {
			out = append(out, "more of what is changed runs code later")
			break
		}
		out = append(out,
			edit.ShownPath(name)+" runs code later, or tells an agent what to do (class exec)")
	}
	for _, name := range p.Paths() {
		if e.classes.Of(name) == policy.Marked && len(out) < 2*mostCode {
			out = append(out, fmt.Sprintf("%s runs code when it is used", edit.ShownPath(name)))
		}
	}
	return out
}
