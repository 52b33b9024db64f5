package engine

import (
	"bytes"
	"cmp"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/edit"
	"moltisfs/internal/edit/guard"
	"moltisfs/internal/guardfs"
	"moltisfs/readers"
)

// A rule says what a change of one file may not be: too large, of the wrong kind, an accident. Which paths
// may be changed, and by whom, is for policy.
//
// To add a rule, add a row to changeRules, its cause to refusal.go and a row of words to internal/refusal. The rule
// holds in every dialect, because every plan is made at a Planner: Planner.Load asks the early rules, Planner.plan
// the others. The rules hold for new content: of Write, edits, Append, Create and Copy. They do not hold for
// what programs have left, nor for restores and moves, which bring back or keep a content that was there before: a limit that is set later
// must not get in the way of an undo.
type rule struct {
	cause Cause
	early bool // asked before the new content is made, so that it is told before an edit that does not match
	meant bool // not asked if the caller says that the change is meant (Rules.Meant)
	// broken gives the facts of the refusal, or nil if the change keeps the rule.
	broken func(c newContent) any
}

// MaxResult bounds a file after edits, in bytes.
const MaxResult = 64 << 20

// newContent is the change of a file as the rules see it: a target, and the kind of operation.
type newContent struct {
	*Target
	cfg  *config.FS
	kind string // of the checkpoint, such as checkpoint.KindEdit; "" for the early rules
}

// changeRules are asked in this order; the first that is broken refuses the change.
var changeRules = []rule{
	{cause: NotAsShown, early: true, broken: editsDerived},
	{cause: WriteTooLarge, broken: overLimit},
	{cause: ResultTooLarge, broken: overMemory},
	{cause: OverBinary, meant: true, broken: textOverBinary},
	{cause: Accident, meant: true, broken: accident},
	{cause: DropsUnseen, meant: true, broken: dropsUnseen},
}

// keeps refuses the change of t by an operation of kind if it breaks a rule. early: t has no new content yet.
func (e *Engine) keeps(t *Target, kind string, early bool) error {
	if kind == checkpoint.KindRestore || kind == checkpoint.KindMove || kind == checkpoint.KindRun {
		return nil
	}
	for _, r := range changeRules {
		if r.early != early || r.meant && t.rules.Meant {
			continue
		}
		if facts := r.broken(newContent{t, &e.cfg, kind}); facts != nil {
			return Refuse(r.cause, t.True, facts)
		}
	}
	return nil
}

// editsDerived: an edit of a file of which Read shows only what is derived from its bytes. The fact is the
// kind of file.
func editsDerived(c newContent) any {
	if !c.rules.edits {
		return nil
	}
	if shown := readers.ShownAs(c.Before.Content, c.encoding(c.rules.encoding)); shown != "" {
		return shown
	}
	return nil
}

// overLimit: the file would be larger than max_write_bytes.
func overLimit(c newContent) any {
	size := c.After.size()
	if c.After.Tail {
		size += c.Before.Info.Size
	}
	if most := c.cfg.MaxWriteBytes; most > 0 && c.After.Kind == guardfs.KindFile && size > most {
		return SizeFacts{size, most}
	}
	return nil
}

// overMemory: the content is larger than one that is made in memory may be.
func overMemory(c newContent) any {
	most := maxLoad
	if c.kind == checkpoint.KindEdit || c.kind == checkpoint.KindMultiEdit {
		most = MaxResult
	}
	if len(c.After.Content) > most {
		return &edit.TooLargeError{Size: int64(len(c.After.Content)), Max: int64(most)}
	}
	return nil
}

// textOverBinary: a text would replace a document, an archive, a picture, a database, a program, other binary
// data or a notebook. A notebook may replace a notebook. The fact is the kind of file.
func textOverBinary(c newContent) any {
	if !c.rules.text {
		return nil
	}
	is := readers.NoText(c.Before.Content, c.rules.encoding)
	if is == "" || readers.ShownDecoded(c.After.Content, "") == is {
		return nil
	}
	return is
}

// accident: the file would be emptied, or a placeholder stands for code that would be deleted.
func accident(c newContent) any {
	a := &c.After
	var f *guard.Finding
	switch {
	case a.edits != nil:
		f = a.edits.Guard(c.True)
	case a.text != nil && c.Before.Exists:
		f = cmp.Or(guard.Placeholder(c.True, a.was, a.text), guard.Empties(a.was, a.text))
	}
	if f == nil {
		return nil
	}
	return GuardFacts{*f, a.edits != nil}
}

// dropsUnseen: a whole text has less than half of the lines of a file of which the session has seen only a
// part. The fact is that part.
func dropsUnseen(c newContent) any {
	a, seen := &c.After, c.Known.Seen
	lines := func(text []byte) int { return bytes.Count(text, []byte("\n")) }
	if a.text != nil && c.Known.Tracked && seen != nil && !seen.Whole && lines(a.text)*2 < lines(a.was) {
		return seen
	}
	return nil
}
