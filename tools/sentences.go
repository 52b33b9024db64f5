package tools

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/grep"
	"moltisfs/hook"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/ledger"
	"moltisfs/readers"
	"moltisfs/readers/notebook"
)

// The causes of errors that only tools meet.
var (
	notShown    = engine.Typed[readers.Hinter](engine.CodeUnsupported, "not_shown")
	notNotebook = engine.Typed[*notebook.NotNotebookError](engine.CodeUnsupported, "not_a_notebook")
	noSuchCell  = engine.Typed[*notebook.NoCellError](engine.CodeNoMatch, "no_cell")
)

// A wording says what is so and what to do next.
type wording func(a *about) *Refusal

// plainly is a wording that is always the same, but for {path} that the call
// names, or else the facts, {true} of the facts, which is {shown} without quotes, and the {fact}.
func plainly(message, hint string, next ...func(*about) *NextCall) wording {
	return func(a *about) *Refusal {
		fact := a.Facts
		if why, ok := fact.(engine.Why); ok {
			fact = words(why)
		}
		r := &Refusal{Hint: hint, Message: strings.NewReplacer("{path}", quote(a.named()), "{true}",
			quote(a.Path), "{shown}", edit.ShownPath(a.Path), "{fact}", fmt.Sprint(fact)).Replace(message)}
		for _, of := range next {
			r.Next = of(a)
		}
		return r
	}
}

// The calls that come next.
func reading(a *about) *NextCall { return read(a.path) }
func listing(*about) *NextCall   { return &NextCall{"checkpoints_list", map[string]any{}} }

// sentences has one for each cause.
var sentences = map[engine.Cause]wording{
	engine.HalfMade: halfMade,
	engine.BadName: func(a *about) *Refusal {
		f := factsOf[engine.NameFacts](a)
		if f.Bytes > 0 {
			return &Refusal{Message: fmt.Sprintf("the name of the %s has %d bytes", f.What, f.Bytes),
				Hint: fmt.Sprintf("Use a name of at most %d bytes.", engine.MaxName)}
		}
		return &Refusal{Message: "the name of the " + f.What + " holds bytes that are not printable text",
			Hint: "Use printable characters."}
	},
	engine.TooManyCalls: func(a *about) *Refusal {
		f := factsOf[engine.CallFacts](a)
		r := &Refusal{Message: "too many calls: " + f.String(),
			Hint: "Wait for the calls under way, then call again."}
		switch {
		case f.Limit == "identical_calls":
			r.Hint = "The answer will not be another one: make a different call, or tell the user."
		case f.Wait > 0:
			r.Hint = fmt.Sprintf("Call again in %s.", f.Wait.Round(time.Millisecond))
		case f.Limit == "":
			r.Hint = "Tell the user that a file system hangs."
		}
		return r
	},
	engine.BadArgument: badArguments,

	engine.BadPath:    (*about).badPath,
	engine.OutOfScope: outOfScope,
	engine.Denied:     (*about).pathDenied,
	engine.Pseudo:     (*about).pathDenied,
	engine.IsLink:     (*about).symlink,
	engine.NotRegular: (*about).notRegular,
	engine.ParentMissing: func(a *about) *Refusal {
		missing := factsOf[*guardfs.MissingParentError](a).Missing
		r := &Refusal{Message: "the directory " + quote(missing) + " does not exist",
			Hint: "Write into a directory that exists, or make " + quote(missing) + " first.",
			Fields: struct {
				Missing string `json:"missing_parent"`
			}{missing}}
		found := a.suggest(r, a.named())
		switch makes := a.makesParents(); {
		case makes && found:
			r.Hint += " Or send it with create_parents: true to make the directory."
		case makes:
			r.Hint = "Send it with create_parents: true to make it, or write into a directory that exists."
			r.Next = again(a.tool, a.args, map[string]any{"create_parents": true})
		}
		return r
	},
	engine.FileTooLarge: func(a *about) *Refusal {
		e := factsOf[*guardfs.TooLargeError](a)
		has, takes := size(e.Size), size(e.Max)
		if has == takes {
			has, takes = fmt.Sprintf("%d bytes", e.Size), fmt.Sprintf("%d", e.Max)
		}
		return &Refusal{Message: fmt.Sprintf("the file has %s; this tool takes up to %s", has, takes),
			Hint: "Work on a smaller file, or split this one.", Fields: sizes{e.Size, e.Max}}
	},
	engine.ChangedAtOnce: func(a *about) *Refusal {
		return &Refusal{Message: "somebody else changed the file at the same moment: " + meanwhile(factsOf[*guardfs.ConflictError](a)) + "; nothing was changed by this call",
			Hint: "Read it again and repeat the change.", Next: read(a.path)}
	},
	engine.Locked: func(a *about) *Refusal {
		msg := "another call holds the lock on this file"
		if holder := factsOf[*guardfs.LockedError](a).Holder; holder != "" {
			msg += " (" + holder + ")"
		}
		return &Refusal{Message: msg, Hint: "Call again in a moment."}
	},
	engine.Unsettled: plainly("cannot determine yet whether the interrupted change {fact} "+
		"completed; nothing was restored",
		"Call again in a moment. If it stays so, ask the user to end a process of moltis-fs that "+
			"stands still and holds the locks of its files."),
	engine.NotEmpty: plainly("the directory {shown} is not empty", "Delete what is in it first."),

	engine.UnsavedText: plainly("{shown} has unsaved text in the user's editor, which must be "+
		"changed alone",
		"Change this file by itself with Write or Edit, or ask the user to save it."),
	engine.BufferDiffers: plainly("{shown} has unsaved text in the user's editor, and the file on "+
		"the disk has changed too since this session last read it",
		"Read it, which shows the editor's text, then repeat the call; or ask the user to save or "+
			"reload it in the editor.", reading),
	engine.ClientFailed: plainly("the user's editor did not answer for {shown}: {fact}",
		"Call again; if it stays so, tell the user."),

	engine.Unread: plainly("this session has not read the file, and must before it changes it",
		"Read it, then repeat the call.", reading),
	engine.PartUnread: func(a *about) *Refusal {
		r := &Refusal{}
		partRead(r, a.path, factsOf[*ledger.Seen](a))
		return r
	},
	engine.LinesUnseen: func(a *about) *Refusal {
		f := factsOf[engine.LineFacts](a)
		args := map[string]any{"file_path": a.path, "offset": f.First, "limit": f.Last - f.First + 1}
		if f.Encoding != "" {
			args["encoding"] = f.Encoding
		}
		return &Refusal{Message: fmt.Sprintf("this session has not seen lines %d to %d, and old_string "+
			"is merely like what stands there; the file is untouched", f.First, f.Last),
			Hint: "Read them, then repeat the call with their exact text.", Next: &NextCall{"Read", args}}
	},
	engine.NotAsShown: plainly("this is a file of kind {fact}: what Read shows of it is not its "+
		"bytes, which an edit would damage; the file is untouched",
		"Make the change with a program for such files, or ask the user how."),
	engine.OverBinary: func(a *about) *Refusal {
		return guarded("overwrite", "this is a file of kind "+factsOf[string](a)+", and the content, which "+
			"is none, would replace all of it", "Write to another path to keep the file, or send "+
			"acknowledge: true if all of it should be replaced.")
	},
	engine.Accident: func(a *about) *Refusal { return accident(factsOf[engine.GuardFacts](a)) },
	engine.DropsUnseen: func(a *about) *Refusal {
		seen := factsOf[*ledger.Seen](a)
		part := "a part was shown"
		if cmp.Or(seen.Unit, "line") == "line" && seen.Lines > 0 {
			part = fmt.Sprintf("%d of %d lines were read", seen.Shown(), seen.Lines)
		}
		r := guarded("overwrite", "this would drop more than half of a file of which only "+part,
			"Read the rest first, or set acknowledge: true if that is meant.")
		var way Refusal
		if partRead(&way, a.path, seen); way.Next == nil { // what can be shown was
			r.Hint = "Set acknowledge: true if that is meant."
		}
		r.Next = way.Next
		return r
	},
	engine.Modified: func(a *about) *Refusal {
		return modified(a, "the file changed since this session read it; nothing was changed by this "+
			"call")
	},
	engine.Unexpected: func(a *about) *Refusal {
		r := modified(a, "the file is not the content that expected_hash names; nothing was changed")
		if factsOf[engine.HashFacts](a).Hash == "" {
			r.Message = "the file does not exist, so it is not the content that expected_hash names; " +
				"nothing was changed"
			r.Hint, r.Next = "Leave expected_hash out to create it, or check the path with Glob.", globbing(a)
		}
		return r
	},
	engine.ReadOnly: plainly("the file is read-only ({fact})",
		`Ask the user to make it writable, or the operator for read_only_files = "write".`),
	engine.HardLinked: plainly(`the file is one of {fact} hard links to the same content, and hard_links = "refuse"`,
		`Ask the user which name is meant, or the operator for hard_links = "break".`),

	engine.NoMatch:     noMatch,
	engine.NotUnique:   notUnique,
	engine.Unencodable: unencodable,
	engine.DamagedBytes: editing("Leave some text between them and the edit, or ask the user to " +
		"repair that line; the encoding argument overrules what the file is taken for."),
	engine.NoChange: editing("Leave the edit out, or send the text that should be there " +
		"instead."),
	engine.TooManyEdits:   editing("Make fewer or smaller replacements a call."),
	engine.ResultTooLarge: editing("Make fewer or smaller replacements a call."),
	engine.BadEncoding:    badEncoding,
	engine.OldEmpty: func(a *about) *Refusal {
		return &Refusal{Message: a.which(factsOf[*edit.EmptyOldError](a).Index) + "old_string is " +
			"empty, which only creates a missing file or fills an empty one" + untouched,
			Hint: "Send the text to replace as old_string, or use Write to replace the whole file."}
	},
	engine.OldIsNew: func(a *about) *Refusal {
		return &Refusal{Message: a.which(factsOf[*edit.SameError](a).Index) + "old_string and " +
			"new_string are the same" + untouched,
			Hint: "Leave the edit out, or send the text that should be there instead."}
	},
	notNotebook: plainly("{fact}"+untouched,
		"Use Edit on the file's text as Read shows it; where Read shows cells, the text comes with "+
			"encoding: utf-8."),
	noSuchCell: noCell,

	engine.NotApproved: func(a *about) *Refusal {
		r := &Refusal{Message: "the change was not approved; nothing was changed",
			Hint: "Ask the user what should be different before trying again."}
		if a.Facts != "" {
			r.Message = fmt.Sprintf("the change was not approved (%s); nothing was changed", a.Facts)
		}
		return r
	},
	engine.NobodyToAsk: func(a *about) *Refusal {
		return &Refusal{Message: "changes need approval and nobody can be asked; nothing was changed",
			Hint: sentence(cmp.Or(factsOf[string](a), "ask the operator for a way to approve: a terminal, "+
				"--approve elicitation, --yes, or require_approval = false"))}
	},
	engine.RunsCode: runsCode,
	engine.Unavailable: plainly("the sandbox where this call has to run can't be reached", "Call again: it is "+
		"started anew. If that fails too, tell the user; the operator's log says why."),
	engine.TierBlocked: plainly("this caller may not make this call; nothing was done", "Tell the "+
		"user, or do it another way."),
	engine.HookBlocked: func(a *about) *Refusal {
		return &Refusal{Message: factsOf[*hook.Error](a).Error(),
			Hint: "Do what the reason asks for, or tell the user; the same call is blocked again."}
	},
	engine.ChainFailed: func(a *about) *Refusal {
		return &Refusal{FilePath: a.Path, Message: "the operator's policies could not decide about this " +
			"path, so the call is refused",
			Hint: "Tell the user; the audit log has the details, and moltis-fs policy explain the rule."}
	},
	engine.HookFailed: func(a *about) *Refusal {
		return &Refusal{Message: "the hook " + factsOf[*hook.Error](a).Hook + " could not answer, so " +
			"the call is refused",
			Hint: "Tell the user; the operator's log has the details."}
	},
	engine.Withheld: withheld,

	engine.NotAnswered: plainly("nobody answered the approval question in time; nothing was changed", "Tell the user that an approval is wanted, then call again."),
	engine.ApprovalStale: func(a *about) *Refusal {
		return &Refusal{Message: "the file changed while the approval was pending; nothing was changed",
			Hint: "Call again: the new diff will be put before the approver.", Fields: struct {
				Diff string `json:"diff,omitempty"`
			}{clip(factsOf[string](a), maxDiff)}}
	},
	engine.NotSaved: func(a *about) *Refusal {
		err := factsOf[error](a)
		r := &Refusal{Message: "the checkpoint could not be stored, so nothing was changed: " + err.Error(), Hint: "Tell the operator; changes wait until checkpoints can be stored again."}
		if _, full := errors.AsType[*checkpoint.FullError](err); full { // all that may go has gone
			r.Hint = "Change less at once, or ask the operator to make room: moltis-fs checkpoint unpin, " +
				"moltis-fs checkpoint gc with lower numbers for keep_within or keep_last, or a larger " +
				"max_bytes."
		} else if why := engine.Reason(err); why != nil && storeHints[why.Cause] != "" {
			r.Hint = storeHints[why.Cause]
		}
		return r
	},

	notShown:          unshown,
	engine.BadPattern: badPattern,
	engine.NoFileType: unknownType,
	engine.BadGlob: func(a *about) *Refusal {
		e := factsOf[*grep.GlobError](a)
		hint := "Write it like **/*.go or *.{ts,tsx}; a backslash makes the next character literal."
		if e.Climbs {
			hint = "Give the directory to look in as path."
		}
		return &Refusal{Message: e.Error(), Hint: hint}
	},

	engine.BadID:          plainly("{fact}", "Take an id from checkpoints_list, as it stands there.", listing),
	engine.BadRestore:     plainly("{fact}", "Send the id of a checkpoint from checkpoints_list.", listing),
	engine.AmbiguousLabel: ambiguousLabel,
	engine.AmbiguousTurn:  ambiguousTurn,
	engine.PartialHistory: partial,
	engine.NoCheckpoint:   noCheckpoint,
	engine.NothingToUndo: func(a *about) *Refusal {
		r := &Refusal{Message: "there is nothing to undo or redo in this session",
			Hint: "Look at the history with checkpoints_list.", Next: listing(a)}
		if lost := factsOf[*checkpoint.NothingError](a).Lost; lost != nil {
			r.Message += " any more: what it changed up to " + partialOf(lost).Until +
				" is not in the store, because retention took it"
		}
		return a.unlessOff(r)
	},
	engine.StoreDiskFull: ofStore,
	engine.StoreGone:     ofStore,
	engine.StoreBusy:     ofStore,
	engine.StoreReadOnly: ofStore,
	engine.StoreInUse:    ofStore,
	engine.Sealed: func(a *about) *Refusal {
		return &Refusal{Message: a.Err.Error(),
			Hint: "Ask the operator, who can read it with the identity file (--identity)."}
	},
	engine.CorruptContent: plainly("the stored copy is damaged and was not used: {fact}",
		"Restore another checkpoint, and tell the operator to run moltis-fs checkpoint check."),

	engine.Conflicts: conflicts,
	engine.BothKinds: conflicts,
	engine.NotStored: notStored,
	engine.WouldLose: onPath("what is at {shown} now is too large for the checkpoint store or "+
		"excluded from it, so that overwriting it would lose it",
		"Move it away or delete it into the trash first, or leave that path alone with on_conflict "+
			"skip."),
	engine.NotInPlan:    notInPlan,
	engine.Hidden:       hidden,
	engine.NoTrash:      noTrash,
	engine.TooManyPaths: tooManyPaths,
	engine.Unwatchable:  plainly("changes cannot be watched there", "List it again instead."),
	engine.TooManyWatches: plainly("the system lets us watch no more: {fact}",
		"Watch fewer directories, or end another watch."),
	engine.IntoItself: plainly("{shown} is, or lies in, what is to come there", "Name another place."),
	engine.BadWindow: plainly("nothing of {shown} begins at {fact}",
		"Lines are counted from 1, bytes from 0."),
	engine.TooManyEntries: plainly("there are more than {fact} entries in {shown}",
		"Name a directory that holds less."),

	engine.Absent: (*about).missing,
	engine.NotPermitted: plainly("the system does not let us: {path} is not accessible to this "+
		"process",
		"Ask the user to change its permissions, or use another file."),
	engine.NotADirectory: func(a *about) *Refusal {
		r := &Refusal{Message: "a part of " + quote(a.named()) + " is a file, not a directory",
			Hint: "Check the path with Glob."}
		if !a.suggest(r, a.named()) {
			r.Next = globbing(a)
		}
		return r
	},
	engine.LinkLoop: plainly("{path} is a loop of symbolic links", "Use the real path of the "+
		"file."),
	engine.NameTooLong: plainly("the path, or a name in it, is too long", "Use a shorter path."),
	engine.DiskFull: plainly("the disk is full; nothing was changed", "Ask the user to free "+
		"space, then call again."),
	engine.DiskReadOnly: plainly("the file system is read-only; nothing was changed", "Use another directory."),
	engine.SystemError: plainly("the system said: {fact}", "Try once more; if it stays, tell the "+
		"user."),
	engine.NoAnswer: func(a *about) *Refusal {
		r := &Refusal{Message: fmt.Sprintf("the file system does not answer; %s", a.Facts),
			Hint: "Tell the user that it hangs, and use another path."}
		if factsOf[engine.StuckFacts](a).Began {
			r.Hint = "Tell the user. Read the file when it answers again."
		}
		return r
	},
	engine.TookTooLong: func(a *about) *Refusal {
		r := &Refusal{Message: "the call took too long and was stopped",
			Hint: "Ask for less: a narrower path, pattern or window."}
		if t := row(a.tool); t != nil && t.Effect != Reads {
			r.Hint = "Look at the file, then send the change in smaller parts."
		}
		return r
	},
	engine.Cancelled: plainly("the call was cancelled", "Call again if the answer is still wanted."),
	engine.Unknown: plainly("the system failed in a way that has no name here", "Tell the user; "+
		"the operator's log has the details."),
}

// meanwhileWords say what somebody else did.
var meanwhileWords = map[guardfs.Meanwhile]string{
	guardfs.Appeared:          "something appeared there",
	guardfs.WasRemoved:        "it was removed",
	guardfs.Replaced:          "it was replaced by another file",
	guardfs.ContentChanged:    "its content was changed",
	guardfs.ModeChanged:       "its mode was changed",
	guardfs.OwnerChanged:      "its owner was changed",
	guardfs.AttributesChanged: "its attributes were changed",
	guardfs.ChangedAgain:      "it was changed again at once",
	guardfs.LeadsElsewhere:    "it now leads elsewhere",
	guardfs.NameAdded:         "it got another name, a hard link",
	guardfs.WasLink:           "it was a link when it was looked at",
	guardfs.LinkInTurns:       "it is a link and no link in turns",
	guardfs.LinkInTheWay:      "a link was put in its way, which leads to ",
	guardfs.OpenedInTurns:     "it was replaced again and again while it was being opened",
	guardfs.Filled:            "something was put into it",
	guardfs.DirRemoved:        "its directory was removed",
	guardfs.DirMoved:          "its directory was moved",
	guardfs.DirRefused:        "its directory was moved to a place that is refused",
	guardfs.DirNameless:       "its directory has no name any more",
	guardfs.DirInTurns:        "its directory is being made and removed in turns",
	guardfs.TempSwapped:       "its temporary file was changed, or swapped for another",
	guardfs.TempRemoved:       "its temporary file was removed",
	guardfs.PublishedToo:      "somebody else published at the same moment",
	guardfs.PublishedOrSwap: "somebody else published at the same moment, or its temporary file " +
		"was swapped for another",
	guardfs.NotCompared: "it could not be compared",
	guardfs.NotRemoved:  "it could not be removed",
	guardfs.BeingTakenBack: "another change of it was interrupted and is being taken back; " +
		"try again",
}

// meanwhile says what somebody else did, and what is left of it.
func meanwhile(e *guardfs.ConflictError) string {
	text := meanwhileWords[e.Why]
	if kind, is := e.Why.Kind(); is {
		text = "it is now a " + kind
	}
	if e.Fact != "" {
		text += edit.ShownPath(e.Fact)
	}
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	if e.Left != "" {
		text += "; what could not be put back is kept as " + edit.ShownPath(e.Left)
	}
	return text
}

// named is the path that the call names, else the one that the facts do.
func (a *about) named() string { return cmp.Or(a.path, a.Path) }

// storeHints say what can be done about a store that is well but can't be used here and now.
var storeHints = map[engine.Cause]string{
	engine.StoreDiskFull: "Ask the user to free space on that disk, by moltis-fs trash empty, or by " +
		"lower numbers for keep_within, keep_last or max_bytes in [tools.fs.checkpoint] and then " +
		"moltis-fs checkpoint gc --config FILE; then call again.",
	engine.StoreGone: "Ask the operator to put the store back where it was or, if it is gone " +
		"for good, to restart the server.",
	engine.StoreBusy: "Call again in a moment. If it stays so, ask the user to look for a " +
		"process of moltis-fs that stands still on this data directory, and to let it go on or end it.",
	engine.StoreReadOnly: "Ask the operator for a data directory (--data-dir) that can be written " +
		"to; what is stored can be looked at meanwhile.",
	engine.StoreInUse: "Wait until the operator's repair of the store has ended, then call again.",
}

// ofStore refuses what a store that can't be used is needed for.
func ofStore(a *about) *Refusal {
	err := a.Err
	if full, ok := a.Facts.(*checkpoint.DiskFullError); ok {
		err = full
	}
	return &Refusal{Message: err.Error() + "; nothing was changed", Hint: storeHints[a.Cause]}
}

// modified refuses a change of what is not the content that was read or named.
func modified(a *about, message string) *Refusal {
	f := factsOf[engine.HashFacts](a)
	return &Refusal{Message: message, Hint: "Read it again, then repeat the change on what is there " +
		"now.", Next: read(a.path),
		Fields: modifiedFields{Diff: clip(f.Diff, maxDiff), SHA256: f.Hash, was: f.Was}}
}

// halfMade refuses a call that left something behind. The sentences of its cause say that nothing
// was changed, so that none of them is used.
func halfMade(a *about) *Refusal {
	const most = 20
	f := factsOf[engine.HalfFacts](a)
	r := &Refusal{Fields: halfMadeFields{f.Left[:min(most, len(f.Left))], len(f.Left), f.Checkpoint},
		Message: "the change failed half-way (" + f.Err.Error() + "), and " +
			plural(len(f.Left), "path") + " could not be put back: what is there is changed, or may be"}
	if a.path == "" && len(f.Left) > 0 {
		r.FilePath = f.Left[0]
	}
	r.Hint = "Tell the user, and read these paths before going on."
	switch {
	case f.Marked:
		r.Hint = "The next start, and the next change of these paths, brings it to an end as soon as " +
			"the system lets it. What others have changed since stays. " + r.Hint
	case f.Checkpoint != "":
		r.Hint = "What was there is in checkpoint " + f.Checkpoint + ". " + r.Hint
	}
	return r
}

// unshown refuses what a reader can't show, in the reader's words.
func unshown(a *about) *Refusal {
	e := factsOf[readers.Hinter](a)
	r := &Refusal{Message: e.Error(), Hint: sentence(e.Hint())}
	switch e := e.(type) {
	case *readers.BadRequest, *readers.BadPages, *readers.BadEncoding:
		r.Reason = KindBadRequest
	case *readers.Limit:
		r.Reason = KindLimit
	case *readers.Busy, *readers.OutOfTime:
		r.Reason = KindDeadline
	case *readers.TooLarge:
		r.Reason = KindTooLarge
		r.Fields = sizes{e.Size, e.Max}
		switch {
		case e.Windowed && e.What == "PDF":
			r.Next = again(a.tool, a.args, map[string]any{"pages": fmt.Sprintf("1-%d", readers.MaxPages)})
		case e.Windowed:
			r.Next = again(a.tool, a.args, map[string]any{"offset": 1, "limit": defaultLines})
		}
	}
	return r
}
