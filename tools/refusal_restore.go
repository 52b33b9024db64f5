package tools

import (
	"strings"

	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/refusal"
)

// Left is a path that a restore left alone, and why.
type Left struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

func leftOf(blocked []engine.Blocked) (out []Left) {
	for _, b := range blocked {
		out = append(out, Left{b.Path, refusal.Why(b.Why)})
	}
	return out
}

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

// conflicts lists what others' changes a restore would lose.
func conflicts(a *about, r *Refusal) {
	const most = 20
	blocked := factsOf[[]engine.Blocked](a)
	f := conflictFields{}
	for _, b := range blocked[:min(most, len(blocked))] {
		f.Conflicts = append(f.Conflicts, Conflict{b.Path, refusal.Why(b.Why), clip(b.Diff, maxDiff/4)})
	}
	r.Fields, r.Next = f, a.skipping()
}

// hidden says how many paths are out of reach, which must not be named.
func hidden(a *about, r *Refusal) {
	r.Next, r.Fields = a.skipping(), struct {
		Denied int `json:"denied"`
	}{factsOf[int](a)}
	if a.now["undo"] != "" {
		listing(a, r)
	}
}
