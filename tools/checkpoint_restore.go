package tools

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/edit"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/refusal"
)

// CheckpointRestoreArgs is what a model may say to checkpoint_restore.
type CheckpointRestoreArgs struct {
	ID         *string  `json:"id,omitempty" doc:"undo this checkpoint's call; or undo, redo: this session's last"`
	Turn       *string  `json:"turn,omitempty" doc:"all since this turn began"`
	Since      *string  `json:"since,omitempty" doc:"or all since then"`
	Label      *string  `json:"label,omitempty"`
	Paths      []string `json:"paths,omitempty" doc:"only these"`
	Mode       *string  `json:"mode,omitempty" enum:"state|inverse" default:"state" doc:"inverse: take back this change, keep later ones"`
	OnConflict *string  `json:"on_conflict,omitempty" enum:"refuse|merge|force|skip" default:"refuse" doc:"for paths that others changed"`
	DryRun     *bool    `json:"dry_run,omitempty"`
	KeepTimes  *bool    `json:"keep_times,omitempty" doc:"restore modification times too"`
}

func (a *CheckpointRestoreArgs) dryRun() bool { return value(a.DryRun) }

func (a *CheckpointRestoreArgs) check() error {
	return oneOf(a.ID, a.Turn, a.Since, a.Label)
}

// CheckpointRestore is the payload of kind "checkpoint_restore".
type CheckpointRestore struct {
	Restored bool `json:"restored"`
	// Checkpoint is what was restored, in Moltis' names; UndoID restores what was there before.
	Checkpoint *CheckpointRow `json:"checkpoint"`
	UndoID     *string        `json:"undo_id"`
	Files      []RestoredFile `json:"files"`
	Skipped    []Left         `json:"skipped"`
	DirsMade   []string       `json:"dirs_made,omitempty"`    // with DryRun: would be
	DirsGone   []string       `json:"dirs_removed,omitempty"` // likewise
	DirsKept   []Left         `json:"dirs_kept,omitempty"`    // made by what was taken back: something is in them, or they can't be removed
	// Outside are the checkpoints of what was changed outside of the tools since the point of a
	// rewind. They are no part of it; each can be restored.
	Outside []CheckpointRow `json:"outside,omitempty"`
	// Partial: of a rewind that was forced, or the undo of a run, retention had taken some of what it
	// was to take back.
	Partial *Partial     `json:"partial,omitempty"`
	Run     *RestoredRun `json:"run,omitempty"` // a script's, whose changes an undo took back together
	// More are files beyond those of Files: only a brief answer leaves some out.
	More int `json:"files_more,omitempty"`
	// Denied counts paths that this session may not read today. They are not named, and were left
	// alone.
	Denied int  `json:"denied,omitempty"`
	DryRun bool `json:"dry_run,omitempty"`
	// Unchanged: there was nothing to do, everything is as it was before the checkpoint already.
	Unchanged bool `json:"unchanged,omitempty"`
	// CheckpointSkipped says why the restore's own checkpoint does not hold all that it replaced.
	CheckpointSkipped string `json:"checkpoint_skipped,omitempty"`
	Warning           string `json:"warning,omitempty"`
	Note              string `json:"note,omitempty"` // which names of arguments were taken for which
}

// RestoredRun says which changes of a script an undo took back. First is Checkpoint.
type RestoredRun struct {
	Changes int           `json:"changes"`
	First   checkpoint.ID `json:"first"`
	Last    checkpoint.ID `json:"last"`
}

// RestoredFile is what became of one path.
type RestoredFile struct {
	Path    string `json:"path"`
	Action  string `json:"action"` // "restored", "created", "removed", "merged", "unchanged"
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Trash   string `json:"trash,omitempty"` // a removed file's entry in the trash
	Whole   bool   `json:"whole,omitempty"` // moved to or from the trash with all it holds
	// Pieces of metadata, like "mode", "owner", "group", "xattr:user.x": what became what it was,
	// what stays because others made it different since, what could not be set.
	MetadataSet     []string `json:"metadata_set,omitempty"`
	MetadataStays   []string `json:"metadata_stays,omitempty"`
	MetadataDropped []string `json:"metadata_dropped,omitempty"`
	// LinksBroken counts the other names of the file, which keep what it was before the restore.
	LinksBroken int `json:"links_broken,omitempty"`
}

// line says it for people.
func (f *RestoredFile) line() string {
	s := fmt.Sprintf("%s %s +%d -%d", f.Action, edit.ShownPath(f.Path), f.Added, f.Removed)
	for _, m := range []struct {
		what   string
		pieces []string
	}{{"also restored", f.MetadataSet}, {"changed by others since, and left so", f.MetadataStays},
		{"could not be restored", f.MetadataDropped}} {
		if len(m.pieces) > 0 {
			s += "; " + m.what + ": " + shownPaths(m.pieces)
		}
	}
	if f.LinksBroken > 0 {
		s += fmt.Sprintf("; %d other hard links keep what it was", f.LinksBroken)
	}
	return s + "\n"
}

// shownPaths lists names that agents may have made.
func shownPaths(names []string) string {
	var shown []string
	for _, n := range names {
		shown = append(shown, edit.ShownPath(n))
	}
	return strings.Join(shown, ", ")
}

// warn adds something that went wrong after the restore was made.
func (p *CheckpointRestore) warn(what string) { p.Warning = what }

func (*CheckpointRestore) Kind() string { return "checkpoint_restore" }
func (*CheckpointRestore) payload()     {}
func (*CheckpointRestore) diffs()       {}

// mostFilesTold is how many files a text, or a brief answer, names.
const mostFilesTold = 20

// brief is the answer with the first files alone: it says itself how many more there are.
func (p *CheckpointRestore) brief() (Payload, []string) {
	out := *p
	if out.More = max(len(p.Files)-mostFilesTold, 0); out.More > 0 {
		out.Files = p.Files[:mostFilesTold]
	}
	if c := p.Checkpoint; c != nil && len(c.Paths) > mostFilesTold {
		row := *c
		row.Paths = nil // those of Files
		out.Checkpoint = &row
	}
	return &out, nil
}

func (*CheckpointRestore) inText() []string { return nil }

// Text is a line a path, of the first ones.
func (p *CheckpointRestore) Text() string {
	var b strings.Builder
	if p.Unchanged && p.Checkpoint == nil {
		b.WriteString("Of what this session changed, nothing had to be changed: it is as it was " +
			"already.\n")
	} else if p.Unchanged {
		b.WriteString("Nothing had to be changed: everything is as it was already.\n")
	} else if p.DryRun {
		b.WriteString("Nothing was changed; the restore would be:\n")
	}
	if p.Partial != nil {
		fmt.Fprintf(&b, "This is not what was there: retention had taken what this session changed up "+
			"to %s, and each path goes back as far as the store can.\n", p.Partial.Until)
	}
	if p.Run != nil {
		fmt.Fprintf(&b, "All that a script's run did, %s:\n", plural(p.Run.Changes, "change"))
	}
	const most = 10 // thousands of them would hide what was done
	same, told := 0, 0
	more := map[string]int{}
	for _, f := range p.Files {
		line := f.line()
		if line == "unchanged "+edit.ShownPath(f.Path)+" +0 -0\n" {
			if same++; same > most {
				more[f.Action]++
				continue
			}
		} else if told++; told > mostFilesTold {
			more[f.Action]++
			continue
		}
		b.WriteString(line)
	}
	for _, action := range slices.Sorted(maps.Keys(more)) {
		fmt.Fprintf(&b, "and %d more %s\n", more[action], action)
	}
	for _, s := range p.Skipped {
		fmt.Fprintf(&b, "skipped %s (%s)\n", edit.ShownPath(s.Path), s.Why)
	}
	for _, d := range []struct {
		what string
		dirs []string
	}{{"made", p.DirsMade}, {"removed", p.DirsGone}} {
		for _, dir := range d.dirs[:min(most, len(d.dirs))] {
			fmt.Fprintf(&b, "%s the directory %s\n", d.what, edit.ShownPath(dir))
		}
		if more := len(d.dirs) - most; more > 0 {
			fmt.Fprintf(&b, "and %d more directories %s\n", more, d.what)
		}
	}
	for _, d := range p.DirsKept {
		fmt.Fprintf(&b, "kept %s (%s)\n", edit.ShownPath(d.Path), d.Why)
	}
	for _, c := range p.Outside {
		fmt.Fprintf(&b, "changed outside of the tools, and left so: %s; to take that back, restore %s\n", c.what(), c.ID)
	}
	if p.Denied > 0 {
		fmt.Fprintf(&b, "[%s left alone and not named: out of reach]\n", plural(p.Denied, "path"))
	}
	if p.CheckpointSkipped != "" {
		fmt.Fprintf(&b, "What was replaced is not all in a checkpoint: %s.\n", p.CheckpointSkipped)
	}
	if p.Warning != "" {
		b.WriteString(p.Warning + "\n")
	}
	if p.Note != "" {
		b.WriteString("[" + p.Note + "]\n")
	}
	if p.UndoID != nil {
		fmt.Fprintf(&b, "To undo this restore: checkpoint_restore %s\n", *p.UndoID)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var checkpointRestoreTool = define[CheckpointRestoreArgs](Tool{
	Name:  "checkpoint_restore",
	Title: "Undo changes",
	Description: "Restores files to what they were before a checkpoint's call; can itself be undone " +
		"by undo_id. Give one of id, turn, since, label.",
	Effect:  Overwrites,
	Search:  dialect.Search{Wanted: true, Hint: "undo, redo, revert, roll back or restore changes to files"},
	Follows: []string{"Write", "Edit", "MultiEdit"},
	OwnTime: true,
	aliases: slices.Concat(timeAliases, []args.Alias{
		{Theirs: idNames, Ours: "id"},
		{Theirs: fileNames + " filepaths files", Ours: "paths"},
		{Theirs: "preview simulate", Ours: "dry_run"},
		{Theirs: "conflict conflicts conflictstrategy", Ours: "on_conflict"},
		{Theirs: "preservetimes keepmtime preservemtime", Ours: "keep_times"},
		{Theirs: "to target version", Ours: "id", Turn: args.Offered},
		{Theirs: "force overwrite", Says: "false", Hint: "with on_conflict: force, what others changed is overwritten"},
		{Theirs: "confirm confirmed yes acknowledge", Says: "true", Hint: "leave it out"},
		{Theirs: verbNames, Says: "restore rollback revert", Hint: "leave it out"},
	}),
	answers: []Payload{&CheckpointRestore{}},
}, runCheckpointRestore, func(path string, _ bool) CheckpointRestoreArgs {
	return CheckpointRestoreArgs{Since: new("1h"), Paths: []string{path}}
})

func runCheckpointRestore(ctx context.Context, s *Suite, c *engine.Call,
	a *CheckpointRestoreArgs) (Payload, error) {
	since, err := when("since", a.Since)
	if err != nil {
		return nil, err
	}
	if err := s.only("checkpoint_restore", a, a.Paths); err != nil {
		return nil, err
	}
	o := engine.RestoreOptions{OnConflict: value(a.OnConflict), DryRun: value(a.DryRun),
		KeepTimes: value(a.KeepTimes)}
	id, err := s.idOf(ctx, c, a.ID)
	if err != nil {
		return nil, err
	}
	var done *engine.Restored
	switch {
	case walks(string(id)) && (len(a.Paths) > 0 ||
		value(a.Mode) == checkpoint.ModeInverse):
		return nil, bad("send the id of a checkpoint instead", "%s takes a whole change back, without "+
			"paths and mode", id)
	case fromTrash(a):
		if len(a.Paths) > 0 || a.Mode != nil || cmp.Or(value(a.OnConflict),
			engine.OnConflictRefuse) != engine.OnConflictRefuse {
			return nil, bad("send the id alone", "what is in the trash comes back whole, and never over "+
				"something that is there")
		}
		done, err = s.engine.Untrash(ctx, c, checkpoint.TrashID(id), o.DryRun)
	case id == "undo":
		done, err = s.engine.Undo(ctx, c, o)
	case id == "redo":
		done, err = s.engine.Redo(ctx, c, o)
	default:
		done, err = s.engine.Restore(ctx, c, checkpoint.Restore{
			ID: id, Turn: value(a.Turn), Since: since, Label: value(a.Label), Paths: a.Paths,
			Mode: value(a.Mode),
		}, o)
	}
	if err != nil {
		return nil, err
	}
	out := &CheckpointRestore{UndoID: pointer(done.Checkpoint), Files: []RestoredFile{},
		Skipped: []Left{}, DryRun: done.DryRun,
		Denied: done.Denied, DirsMade: s.named(c, done.Made), DirsGone: s.named(c, done.Dropped),
		CheckpointSkipped: done.Done.Skipped}
	out.Skipped = append(out.Skipped, leftOf(done.Skipped)...)
	for _, k := range done.Kept {
		if !s.engine.Denies(c, k.Path) {
			out.DirsKept = append(out.DirsKept, Left{k.Path, refusal.Why(k.Why)})
		}
	}
	if done.Plan.Lost != nil {
		out.Partial = partialOf(done.Plan.Lost)
	}
	skipped := map[string]bool{}
	for _, l := range done.Skipped {
		skipped[l.Path] = true
	}
	trashed := map[string]string{}
	for _, t := range done.Trashed {
		trashed[t.Path] = string(t.ID)
	}
	for _, t := range done.Targets {
		if !skipped[t.True] {
			f := restoredFile(t, done.Merged[t.True], done.DryRun)
			f.Trash = trashed[t.True]
			of := done.Metadata[t.True]
			f.MetadataSet, f.MetadataStays, f.MetadataDropped = of.Set, of.Stays, of.Dropped
			if t.Published != nil {
				for _, piece := range t.Published.Dropped {
					if !slices.Contains(f.MetadataDropped, piece) {
						f.MetadataDropped = append(f.MetadataDropped, piece)
					}
				}
			}
			out.Files = append(out.Files, f)
		}
	}
	for _, mv := range done.Moved {
		f := RestoredFile{Path: mv.Path, Action: "created", Whole: true}
		if !mv.Back {
			f.Action, f.Trash = "removed", string(mv.Entry.ID)
		}
		out.Files = append(out.Files, f)
	}
	out.walked(string(id), done)
	out.Unchanged = done.Idle && len(out.Skipped)+out.Denied == 0
	// What is there already counts as restored.
	out.Restored = !out.DryRun && (done.Checkpoint != "" || len(out.Skipped)+out.Denied == 0)
	for _, of := range done.Outside {
		if row, err := s.engine.Checkpoint(ctx, c, of); err == nil {
			if got, hidden := s.visibleRow(c, row); !hidden {
				out.Outside = append(out.Outside, got)
			}
		}
	}
	if of := cmp.Or(string(done.Plan.RestoreOf), string(done.Plan.UndoOf)); a.ID != nil && of != "" {
		if row, err := s.engine.Checkpoint(ctx, c, checkpoint.ID(of)); err == nil {
			got, _ := s.visibleRow(c, row)
			out.Checkpoint = &got
		}
	}
	return out, nil
}

// walked says which run an undo took back, and how to try again what it passed by.
func (p *CheckpointRestore) walked(id string, done *engine.Restored) {
	of := done.Plan
	again := "restore " + string(of.UndoOf)
	if of.UndoOf != "" && of.RestoreOf != "" {
		p.Run = &RestoredRun{len(of.Undoes), of.RestoreOf, of.UndoOf}
		again = "redo and undo"
	}
	if done.Passed {
		p.warn("Nothing of it was taken back; the next " + id + " goes on with the change beyond it. " +
			"To try this one again, " + again + ".")
	}
}

// visibleRow is the row of a checkpoint without the paths that are denied today. hidden says that
// there are no others.
func (s *Suite) visibleRow(c *engine.Call, cp *checkpoint.Checkpoint) (row CheckpointRow,
	hidden bool) {
	n := len(cp.Changes)
	cp.Changes = slices.DeleteFunc(cp.Changes, func(ch checkpoint.Recorded) bool { return s.engine.Denies(c, ch.Path) })
	return rowFor(c, cp), len(cp.Changes) == 0 && n > 0
}

// named leaves out what this session may not read today.
func (s *Suite) named(c *engine.Call, paths []string) (out []string) {
	for _, p := range paths {
		if !s.engine.Denies(c, p) {
			out = append(out, p)
		}
	}
	return out
}

// walks says that the id is undo or redo: of a session's newest change.
func walks(id string) bool { return id == "undo" || id == "redo" }

// fromTrash says that the id is one of the trash.
func fromTrash(a *CheckpointRestoreArgs) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(value(a.ID))), "tr-")
}

func restoredFile(t *engine.Target, merged, dry bool) RestoredFile {
	f := RestoredFile{Path: t.True}
	f.Added, f.Removed = diff.Counts(engine.Hunks(t))
	if t.Published != nil {
		f.LinksBroken = t.Published.LinksBroken
	} else if dry && t.After.Kind == guardfs.KindFile && t.Before.Info.Kind == guardfs.KindFile &&
		!t.Unchanged() {
		f.LinksBroken = max(int(t.Before.Info.Links)-1, 0)
	}
	switch {
	case !dry && t.Published == nil, dry && t.Unchanged():
		f.Action = "unchanged"
	case merged:
		f.Action = "merged"
	case t.After.Kind == guardfs.KindAbsent:
		f.Action = "removed"
	case !t.Before.Exists:
		f.Action = "created"
	default:
		f.Action = "restored"
	}
	return f
}
