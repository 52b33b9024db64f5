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

	"moltisfs/approval"
	"moltisfs/internal/edit"
	"moltisfs/internal/guardfs"
)

// ask puts the change before whoever may approve it, bound to a digest of the
// plan: operation, true paths, hashes before and after, modes. grant is ""
// when nobody had to be asked.
func (e *Engine) ask(ctx context.Context, c *Call, ts targets, m *Mutation, made []NewDir) (grant string, err error) {
	if !e.cfg.RequireApproval {
		return "", nil
	}
	who := c.Approver
	if who == nil {
		who = e.approver
	}
	wait := time.Duration(e.cfg.ApprovalTimeout)
	q := e.question(c, ts, m, made)
	q.Expires = e.now().Add(wait)
	asking, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	c.Trace.Digest = q.Digest
	a, err := who.Ask(asking, q)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		if ctx.Err() != nil {
			return "", ctx.Err() // the caller hung up
		}
		return "", fmt.Errorf("asking for approval: %w", err) // an approver that can't answer has not approved
	}
	if err != nil {
		a = approval.Answer{Decision: approval.TimedOut}
	}
	c.Trace.Approval = a.Decision.String()
	if a.By != "" {
		c.Trace.Approval += " by " + a.By
	}
	switch a.Decision {
	case approval.Approved:
		return "approved", nil
	case approval.TimedOut:
		return "", &ApprovalError{State: "timed_out", Path: m.first(ts)}
	case approval.NobodyToAsk:
		return "", &ApprovalError{State: "nobody", Path: m.first(ts), Reason: a.Reason}
	}
	return "", &ApprovalError{State: "denied", Path: m.first(ts), Reason: a.Reason}
}

// question puts all that the change is into words, and its digest. made are the directories that it
// makes.
func (e *Engine) question(c *Call, ts targets, m *Mutation, made []NewDir) approval.Question {
	ts = ts.changing() // what stays as it is is nobody's business
	q := approval.Question{ID: c.ID, Principal: c.Principal, Session: c.Session, Tool: c.Tool, Paths: m.paths(ts, made)}
	q.Summary = summary(m.Summary, counted("creates", dirNames(made)), counted("removes", m.Drop))
	plan := approval.Plan{Operation: c.Tool, Principal: c.Principal, Session: c.Session}
	var diff strings.Builder
	for _, t := range ts {
		hunks := Hunks(t)
		added, removed := edit.Counts(hunks)
		q.Added, q.Removed = q.Added+added, q.Removed+removed
		diff.WriteString(edit.Unified(t.True, ends(t), hunks))
		change := approval.Change{Path: t.True, Before: t.Before.Hash, After: t.After.Hash}
		if was := t.Before.Info.Kind; was == guardfs.KindDir || was == guardfs.KindSymlink {
			change.Before = was.String() + " " + string(t.Before.Content)
		}
		if is := t.After.Kind; is == guardfs.KindDir || is == guardfs.KindSymlink {
			change.After = is.String() + " " + t.After.Target
		}
		if m, was := t.After.Meta, t.Before.Meta; m != nil && (m.Mode != was.Mode || m.UID != was.UID || m.GID != was.GID) {
			change.Mode = fmt.Sprintf("%v %d:%d", m.Mode, m.UID, m.GID)
		}
		plan.Changes = append(plan.Changes, change)
		q.Warnings = append(q.Warnings, warnings(t)...)
	}
	for _, mv := range m.Moves {
		change := approval.Change{Path: mv.Path, Before: mv.info.ID.Lasting(), After: "in the trash"}
		warning := fmt.Sprintf("%s goes to the trash as a whole: %d files, %d bytes", mv.Path, mv.Entry.Files, mv.Entry.Size)
		if mv.Back {
			change.Before, change.After = change.After, change.Before
			warning = mv.Path + " comes back from the trash as a whole"
		}
		plan.Changes, q.Warnings = append(plan.Changes, change), append(q.Warnings, warning)
	}
	for _, d := range made {
		change := approval.Change{Path: d.Path, After: guardfs.KindDir.String(), Mode: d.Mode.String()}
		if d.As != nil {
			change.Mode = fmt.Sprintf("%v %d:%d", d.As.Mode, d.As.UID, d.As.GID)
		}
		plan.Changes = append(plan.Changes, change)
	}
	for _, d := range m.Drop {
		plan.Changes = append(plan.Changes, approval.Change{Path: d, Before: guardfs.KindDir.String()})
	}
	for _, p := range q.Paths {
		if w := approval.Lookalike(p); w != "" {
			q.Warnings = append(q.Warnings, w)
		}
	}
	q.Diff, q.Digest = diff.String(), plan.Digest()
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

// warnings are what a person should not overlook in the diff.
func warnings(t *Target) []string {
	var out []string
	b := t.Before
	switch {
	case t.After.Kind == guardfs.KindAbsent:
		out = append(out, t.True+" will be removed")
	case t.givesWay():
		out = append(out, t.True+" is a directory, which will be removed")
	case t.becomesDir():
		out = append(out, t.True+" will be removed; a directory takes its place")
	case !b.Exists:
		out = append(out, t.True+" is new")
	}
	if t.After.Kind == guardfs.KindSymlink {
		out = append(out, t.True+" becomes a symbolic link to "+t.After.Target)
	}
	if m := t.After.Meta; b.Exists && b.Info.Kind == guardfs.KindFile && m != nil && m.Mode != b.Meta.Mode {
		out = append(out, fmt.Sprintf("%s gets the mode %v, it has %v", t.True, m.Mode, b.Meta.Mode))
	}
	if b.Exists && b.Info.Links > 1 && b.Info.Kind != guardfs.KindDir {
		out = append(out, fmt.Sprintf("%s has %d other names, which keep the old content", t.True, b.Info.Links-1))
	}
	if b.Exists && b.Info.Mode&0o111 != 0 && t.After.Kind == guardfs.KindFile {
		out = append(out, t.True+" is executable")
	}
	return out
}

func diffOf(ts targets) string {
	var diff strings.Builder
	for _, t := range ts {
		diff.WriteString(edit.Unified(t.True, ends(t), Hunks(t)))
	}
	return diff.String()
}

// ends says whether a target is there before and after its change.
func ends(t *Target) edit.Ends {
	return edit.EndsOf(t.Before.Exists, t.After.Kind != guardfs.KindAbsent)
}

// modified tells what changed since the session read the target, as far as
// the old content is still known.
func (e *Engine) modified(t *Target) error {
	m := &ModifiedError{Path: t.True, Was: t.Known.Seen.Hash, Hash: t.Before.Hash}
	if old, ok := e.ledger.Content(m.Was); ok {
		m.Diff = edit.Unified(t.True, edit.EndsOf(true, t.Before.Exists), edit.Patch(text(old), text(t.Before.Content)))
	}
	return m
}

// LastSeen is the content of the target that the session saw last, nil when
// it is not known any more.
func (e *Engine) LastSeen(t *Target) []byte {
	if e.ledger == nil || t.Known.Seen == nil || !t.Known.Stale {
		return nil
	}
	old, _ := e.ledger.Content(t.Known.Seen.Hash)
	return old
}

// Hunks is the change of a target as a patch, of its text in UTF-8.
func Hunks(t *Target) []edit.Hunk {
	if t.After.Hunks == nil {
		t.After.Hunks = edit.Patch(text(t.Before.Content), text(t.After.Content))
	}
	return t.After.Hunks
}

// text is content as UTF-8 for people to read, whatever its charset.
func text(content []byte) []byte {
	if utf8.Valid(content) {
		return bytes.TrimPrefix(content, []byte("\ufeff"))
	}
	t, _, err := edit.Decode(content, "")
	if err != nil {
		return content
	}
	return t
}

// Modified is modified for a Next that found that a stale file can't be changed safely, and says what changed to one that can.
func (e *Engine) Modified(t *Target) *ModifiedError { return e.modified(t).(*ModifiedError) }

// Keep remembers content of path, its true name, that a session was shown or wrote, so that a later conflict can show what changed
// since. It is kept in plain, so what must not be stored in plain is not: excluded paths, and with encrypt_to everything.
func (e *Engine) Keep(path, hash string, content []byte) {
	if e.ledger == nil || hash == "" || e.cfg.Checkpoint.EncryptTo != "" || e.excluded(path) {
		return
	}
	if err := e.ledger.Keep(hash, content); err != nil {
		e.logger.Warn("what was read could not be kept; a later conflict will show no diff", "err", err)
	}
}
