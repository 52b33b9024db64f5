package tools

import (
	"fmt"
	"slices"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// Left is a path that a restore left alone, and why.
type Left struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

func leftOf(blocked []engine.Blocked) (out []Left) {
	for _, b := range blocked {
		out = append(out, Left{b.Path, words(b.Why)})
	}
	return out
}

// whyWords are the words for each reason; %v is its fact.
var whyWords = map[string]string{
	engine.ChangedOutside.Name:  "changed outside",
	engine.ChangedByOthers.Name: "changed by others in between",
	engine.LastPurged.Name: "what it became last was purged, so that nobody can tell whether " +
		"it was changed outside",
	engine.LastRemoved.Name: "what it became last is not in the store any more (retention), so " +
		"that nobody can tell whether it was changed outside",
	engine.SameLines.Name: "later changes touch the same lines",
	engine.Occupied.Name:  "something is there",
	engine.NotSavable.Name: "what is there now is too large for the store or excluded from it, " +
		"and would be lost",
	engine.IsReadOnly.Name:     "it is read-only (%v)",
	engine.VolumeReadOnly.Name: "its file system is read-only",
	engine.DirNotWritable.Name: "the system does not let us change its directory",
	engine.Unreadable.Name:     "the system does not let us read it",
	engine.Unreachable.Name:    "the system does not let us into a directory on the way to it",
	engine.OutOfReach.Name:     "it is out of reach today",
	engine.FileOnTheWay.Name:   "something that is no directory is on the way to it",
	engine.LinkOnTheWay.Name:   "a directory on the way to it has become a symbolic link",
	engine.OtherKind.Name:      "a %v is there now",
	engine.KindForDir.Name:     "a %v is in the place of the directory",
	engine.WasDirOf.Name:       "at another time it was the directory of %v",
	engine.WasFile.Name:        "it was there when %v was a directory, which is to be a file again",
	engine.HoldsOthers.Name: "the directory that is there now holds what this restore does not " +
		"remove",
	engine.HoldsMoved.Name: "the directory that is there now holds what is moved to the trash, " +
		"or back, as a whole; skip does that, and the same restore again the rest",
	engine.MovedWhole.Name: "it was moved as a whole, and other changes in it belong to this " +
		"restore; take them back one after the other by their ids, the newest first",
	engine.OnlyAlone.Name:     "it was appended to in place, which is made again for one file at a time",
	engine.NotInTrash.Name:    "it is not in the trash any more",
	engine.NoneInTrash.Name:   "it is not in the trash any more, and something else is in its place",
	engine.TrashUnopened.Name: "what was parked can't be reached: %v",
	engine.ContentOf.Name:     "its content was not stored: %v",
	engine.Unstored.Name:      "%v",
	engine.JustRemoved.Name:   "removed to make room, or purged, just now",
	engine.InUse.Name:         "something is in it",
	engine.Unlisted.Name:      "the system does not let us look into it",
	engine.NotListed.Name:     "it could not be looked into: %v",
	engine.NotRemoved.Name:    "it could not be removed: %v",
	engine.LinkNow.Name:       "a link leads elsewhere now",
	engine.TooLargeNow.Name:   "it is too large now",
	engine.NotLookedAt.Name:   "it can't be looked at: %v",
	engine.NotRead.Name:       "it can't be read: %v",
	engine.AfterUnknown.Name:  "what it became is not in the store",
	engine.KindNow.Name:       "it is a %v now",
}

// words say a reason.
func words(why engine.Why) string {
	switch fact := why.Fact.(type) {
	case nil:
		return whyWords[why.Name]
	case engine.Why:
		return fmt.Sprintf(whyWords[why.Name], words(fact))
	case string: // it may be a path
		return fmt.Sprintf(whyWords[why.Name], edit.ShownPath(fact))
	default:
		return fmt.Sprintf(whyWords[why.Name], fact)
	}
}

const notRestored = "; nothing was restored"

// restores says that the call is a restore, which a refusal has not begun.
func (a *about) restores() bool { return a.tool == "checkpoint_restore" }

// untrashes says that it would bring an entry of the trash back, which comes whole or not at all.
func (a *about) untrashes() bool {
	r, ok := a.args.(*CheckpointRestoreArgs)
	return ok && fromTrash(r)
}

// skipping is the call that leaves alone what can't be restored; nil where none can.
func (a *about) skipping() *NextCall {
	if a.untrashes() {
		return nil
	}
	return again("checkpoint_restore", a.args, map[string]any{"on_conflict": "skip"})
}

// onPath is a plain wording about one path of a restore, which skip may leave alone.
func onPath(message, hint string) wording {
	plain := plainly(message+notRestored, hint, (*about).skipping)
	return func(a *about) *Refusal {
		if a.Path == "" {
			return nil
		}
		r := plain(a)
		r.FilePath = a.Path
		return r
	}
}

// orSkip is onPath with a hint that goes on with the way around, where there is one.
func orSkip(message, hint string) wording {
	return func(a *about) *Refusal {
		if a.untrashes() {
			return onPath(message, hint+".")(a)
		}
		return onPath(message, hint+", or leave that path alone with on_conflict skip.")(a)
	}
}

const noAccess = "Ask the user to change its permissions or those of its directory, or leave " +
	"that path alone with on_conflict skip."

// restoreSentences are what a restore says otherwise than the other tools: which path it is, and
// how to go on without it. nil: as the others.
var restoreSentences = map[engine.Cause]wording{
	engine.NoCheckpoint: func(a *about) *Refusal {
		if !a.untrashes() {
			return nil
		}
		return &Refusal{Message: "there is no such entry in the trash",
			Hint: "It may be back already, or its time was over."}
	},
	engine.NotPermitted: onPath("the system does not let us change {true}", noAccess),
	engine.DiskReadOnly: onPath("the file system of {true} is read-only", noAccess),
	engine.NotADirectory: orSkip("something that is no directory is on the way to {true}",
		"Move it away first"),
	engine.ReadOnly: onPath("{shown} is read-only ({fact})",
		"Ask the user to make it writable, or leave that path alone with on_conflict skip."),
	engine.IsLink: orSkip("a symbolic link is at {true} or on the way to it now",
		"Move the link away first"),
	engine.NotRegular: func(a *about) *Refusal {
		if a.untrashes() {
			return nil
		}
		return orSkip("{true} is a "+factsOf[*guardfs.NotRegularError](a).Kind+" now",
			"Move it away first")(a)
	},
}

// Conflict is a path that stands against a restore.
type Conflict struct {
	Path string `json:"path"`
	Why  string `json:"why"`
	Diff string `json:"diff,omitempty"` // from what the store knows to what is there
}

// conflictFields lists what stands against a restore.
type conflictFields struct {
	Conflicts []Conflict `json:"conflicts"`
}

// Text names the paths and shows what changed.
func (f conflictFields) Text() string {
	var b strings.Builder
	for _, c := range f.Conflicts {
		b.WriteString(edit.ShownPath(c.Path) + ": " + c.Why + "\n" + c.Diff)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// conflicts refuses a restore that others' changes stand against.
func conflicts(a *about) *Refusal {
	const most = 20
	blocked := factsOf[[]engine.Blocked](a)
	r := &Refusal{Message: fmt.Sprintf("%d paths can't be restored without losing other changes",
		len(blocked)) + notRestored,
		Hint: "Choose on_conflict: merge keeps both, force overwrites (undoable), skip leaves those " +
			"paths alone.", Next: a.skipping()}
	if len(blocked) == 1 {
		r.Message = edit.ShownPath(blocked[0].Path) +
			" can't be restored without losing other changes" + notRestored
	}
	f := conflictFields{}
	for _, b := range blocked[:min(most, len(blocked))] {
		f.Conflicts = append(f.Conflicts, Conflict{b.Path, words(b.Why), clip(b.Diff, maxDiff/4)})
	}
	r.Fields = f
	sent, _ := a.args.(*CheckpointRestoreArgs)
	switch {
	case a.untrashes():
		r.Hint = "Something is there now; move it away first, or leave the entry in the trash."
	case a.Cause == engine.BothKinds:
		r.Hint = "They can't be there together: skip leaves those paths alone that were a file at one " +
			"time and a directory at another, or name in paths what is wanted."
	case slices.ContainsFunc(blocked, func(b engine.Blocked) bool { return b.Stays }):
		r.Hint = "Neither merge nor force removes what is in the way: choose on_conflict skip, which " +
			"leaves those paths alone, or move it away first."
	case sent != nil && (value(sent.OnConflict) == engine.OnConflictMerge ||
		value(sent.Mode) == checkpoint.ModeInverse):
		r.Hint = "Merging does not work here: choose on_conflict skip, which leaves those paths alone, " +
			"or force, which overwrites (undoable)."
	}
	return r
}

func notStored(a *about) *Refusal {
	r := onPath("the content of {shown} is not in the checkpoint ({fact})", "Ask the user for a "+
		"backup, or name other paths of it, if there are any, in paths.")(a)
	if r.Next = nil; a.untrashes() {
		r.Hint = "Ask the user for a backup."
	}
	if why, _ := a.Facts.(engine.Why); why.Name == engine.OnlyAlone.Name {
		r = onPath("{shown} is not restored with others: {fact}",
			"Restore the checkpoint by its id with this path alone in paths, then with the others.")(a)
		r.Next = nil
	}
	return r
}

func noTrash(a *about) *Refusal {
	r := onPath("{shown} can't be moved to the trash: {fact}", "Ask the user to remove it, or name "+
		"other paths of it, if there are any, in paths.")(a)
	r.Next = nil
	return r
}

func hidden(a *about) *Refusal {
	n, are := factsOf[int](a), " are"
	if n == 1 {
		are = " is"
	}
	r := &Refusal{Message: plural(n, "path") + " of it" + are + " out of what this session may " +
		"touch today" + notRestored,
		Hint: "Leave such paths alone with on_conflict skip, or name others in paths.",
		Next: a.skipping(), Fields: struct {
			Denied int `json:"denied"`
		}{n}}
	if sent, ok := a.args.(*CheckpointRestoreArgs); ok && walks(strings.TrimSpace(value(sent.ID))) {
		r.Message = "the newest change lies where this session may not go today (" + plural(n, "path") +
			")" + notRestored
		r.Hint = "Tell the user. An older change is taken back by its id, from checkpoints_list; with " +
			"on_conflict skip this one stays as it is, and the next call goes on with the change before it."
		r.Next = listing(a)
	}
	return r
}

func tooManyPaths(a *about) *Refusal {
	f := factsOf[engine.CountFacts](a)
	what, most := "paths", fmt.Sprintf("up to %d of its paths, or directories that hold as many,", f.Most)
	if f.Dirs {
		what, most = "directories with their files", fmt.Sprintf("paths in up to %d directories", f.Most)
	}
	return &Refusal{Message: fmt.Sprintf("the system lets this process have so few files open that "+
		"about %d %s can be changed at once", f.Most, what) + notRestored,
		Hint: "Restore it in parts, by its id, turn or since with " + most + " in paths; or ask the " +
			"operator for more open files (ulimit -Hn)."}
}
