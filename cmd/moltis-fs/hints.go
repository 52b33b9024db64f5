package main

import (
	"fmt"
	"slices"
	"strings"

	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/tools"
)

// A hint says what whoever is at the command line can do about a refusal.
type hint func(in *invocation, facts *engine.Refusal) string

// always is a hint that does not depend on the call.
func always(text string) hint {
	return func(*invocation, *engine.Refusal) string { return text }
}

// orSkip adds the way around a path. What is in the trash comes back whole or not at all.
func orSkip(text string) hint {
	return func(in *invocation, _ *engine.Refusal) string {
		if isTrashID(in.arg(0)) {
			return text + "."
		}
		return text + ", or leave that path alone with --on-conflict skip."
	}
}

const (
	whoseHistory = "; --session and --principal say whose history is meant."
	noAccess     = "Change its permissions, or those of its directory"
)

// hints has one for each cause of which the tools would speak of their own arguments.
var hints = map[engine.Cause]hint{
	engine.NoCheckpoint: func(in *invocation, _ *engine.Refusal) string {
		switch {
		case isTrashID(in.arg(0)):
			return "It may be back already, or its time was over; --principal says whose trash it is."
		case in.given("turn"), in.given("label"):
			return program + " checkpoint list shows the turns and labels of its checkpoints" + whoseHistory
		}
		return "Take an id from " + program + " checkpoint list" + whoseHistory
	},
	engine.Unavailable: always(program + " sandbox check says what is wrong with it."),
	engine.NothingToUndo: always("Look at the history with " + program + " checkpoint list" +
		whoseHistory),
	engine.BadID: always("Take an id from " + program +
		" checkpoint list, as it stands there."),
	engine.BadRestore: always("Take an id from " + program + " checkpoint list."),
	engine.AmbiguousLabel: always("Say which one is meant: give its time with --since, in the " +
		"place of --label."),
	engine.AmbiguousTurn: always("Say which one is meant: give its time with --since, in the " +
		"place of --turn."),
	engine.PartialHistory: func(in *invocation, _ *engine.Refusal) string {
		if in.command.path == "checkpoint diff" {
			return "Choose a point after that."
		}
		if in.command.path == "checkpoint undo" {
			return "--on-conflict force takes back what is left of it (undoable)."
		}
		return "Choose a point after that. Or --on-conflict force goes, for each path, as far " +
			"back as the store can (undoable)."
	},
	engine.NotInPlan: func(_ *invocation, r *engine.Refusal) string {
		const most = 10
		f, _ := r.Facts.(engine.PlanFacts)
		var held []string
		for _, path := range f.Held[:min(most, len(f.Held))] {
			held = append(held, edit.ShownPath(path))
		}
		if held == nil {
			return "Nothing was changed there since then, so leave the PATHs out or choose an earlier point."
		}
		more := ""
		if n := len(f.Held) - len(held) + f.Denied; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		return "It holds " + strings.Join(held, ", ") + more +
			"; name those, or a directory above them, as PATHs."
	},
	engine.Conflicts: func(in *invocation, r *engine.Refusal) string {
		blocked, _ := r.Facts.([]engine.Blocked)
		switch {
		case isTrashID(in.arg(0)):
			return "Something is there now; move it away first, or leave the entry in the trash."
		case slices.ContainsFunc(blocked, func(b engine.Blocked) bool { return b.Stays }):
			return "Neither merge nor force removes what is in the way: choose --on-conflict " +
				"skip, which leaves those paths alone, or move it away first."
		case in.option("on-conflict") == engine.OnConflictMerge, in.option("mode") == "inverse":
			return "Merging does not work here: choose --on-conflict skip, which leaves those " +
				"paths alone, or force, which overwrites (undoable)."
		}
		return "Choose --on-conflict: merge keeps both, force overwrites (undoable), skip leaves " +
			"those paths alone." + in.besideEditor()
	},
	engine.BothKinds: always("They can't be there together: --on-conflict skip leaves those " +
		"paths alone that were a file at one time and a directory at another; or name as PATHs " +
		"what is wanted."),
	engine.NotStored: func(in *invocation, r *engine.Refusal) string {
		if why, _ := r.Facts.(engine.Why); why.Name == engine.OnlyAlone.Name {
			return "Restore the checkpoint by its id with this path alone as PATH, then with the others."
		}
		if isTrashID(in.arg(0)) {
			return "Take it from a backup."
		}
		return "Take it from a backup, or name other paths of it, if there are any, as PATHs."
	},
	engine.WouldLose: orSkip("Move it away or delete it into the trash first"),
	engine.NoTrash:   always("Remove it, or name other paths of it, if there are any, as PATHs."),
	engine.Hidden: func(in *invocation, _ *engine.Refusal) string {
		if p := in.command.path; p == "checkpoint undo" || p == "checkpoint redo" {
			return "Take an older change back by its id, from " + program + " checkpoint list; with " +
				"--on-conflict skip this one stays as it is, and the next call goes on with the change before it."
		}
		return "Leave such paths alone with --on-conflict skip, or name others as PATHs."
	},
	engine.NotPermitted:  orSkip(noAccess),
	engine.DiskReadOnly:  orSkip(noAccess),
	engine.NotADirectory: orSkip("Move it away first"),
	engine.NotRegular:    orSkip("Move it away first"),
	engine.IsLink:        orSkip("Move the link away first"),
	engine.ReadOnly:      orSkip("Make it writable"),
	engine.Absent:        always("Check the path."),
	engine.TooManyPaths: func(_ *invocation, r *engine.Refusal) string {
		f, _ := r.Facts.(engine.CountFacts)
		most := fmt.Sprintf("up to %d of its paths, or directories that hold as many,", f.Most)
		if f.Dirs {
			most = fmt.Sprintf("paths in up to %d directories", f.Most)
		}
		return "Restore it in parts, by its ID, --turn or --since with " + most +
			" as PATHs; or allow more open files (ulimit -Hn)."
	},
}

// ofTheHost are hints of every command: what tells a model to ask somebody is what this somebody
// does.
var ofTheHost = map[engine.Cause]hint{
	engine.Locked: always("call again in a moment; if it stays so, a process of moltis-fs " +
		"stands still, and has to be ended"),
	engine.NotSaved: always("make room with checkpoint unpin, a larger max_bytes, or checkpoint " +
		"gc with lower numbers for keep_within and keep_last; " + program +
		" checkpoint stats says what the store takes"),
	engine.StoreBusy: always("call again in a moment; if it stays so, look for a process of " +
		"moltis-fs that stands still on this data directory"),
	engine.StoreReadOnly: always("name a data directory that can be written to, with --data-dir"),
	engine.StoreGone:     always("put the store back where it was, or start anew without it"),
	engine.StoreInUse:    always("wait until the repair of the store has ended"),
	engine.Sealed:        always("name the identity file with --identity"),
	engine.CorruptContent: always("restore another checkpoint; " + program +
		" checkpoint check says what else is damaged"),
}

// forOperator is an answer with the hint of the command line. A next call of a tool is none of it.
func (in *invocation) forOperator(p tools.Payload) tools.Payload {
	r, ok := p.(*tools.Refusal)
	if !ok {
		return p
	}
	own := *r
	own.Next = nil
	of := hints
	if in.command.name == "call" {
		of = callHints
	}
	own.Hint = toPerson(own.Hint)
	if facts := r.Facts(); facts != nil {
		if say := of[facts.Cause]; say != nil {
			own.Hint = say(in, facts)
		} else if say := ofTheHost[facts.Cause]; say != nil {
			own.Hint = say(in, facts)
		}
	}
	return &own
}
