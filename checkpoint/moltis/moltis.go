// Package moltis takes over the checkpoints of Moltis' own store, a folder with one directory a checkpoint, into a
// checkpoint store.
//
// It only reads the folder, follows no links in it, and leads nowhere out of it. It needs the public methods of the
// store and nothing else.
package moltis

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"moltisfs/checkpoint"
)

// Imported is the result of Import.
type Imported struct {
	Imported int        `json:"imported"`
	Known    int        `json:"known"` // taken over before
	Skipped  []NotTaken `json:"skipped"`
}

// NotTaken is one directory that was passed over.
type NotTaken struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// importLabel marks what was taken over, so that it is not taken over twice.
const importLabel = "moltis:"

// Import takes over the checkpoints of the folder dir, oldest first, as operations of KindImport of principal and the session
// "moltis": no released Moltis writes which of its sessions and turns one belongs to.
//
// Moltis records only the state before a change. The state after it is taken from the next checkpoint of the same
// path. For the last one of a path it is not known: a restore of that says "changed outside" and has to be forced.
//
// A checkpoint is skipped with a reason when it is damaged, does not fit into the store, holds more than 256 MiB, or is
// about a path that no tool could restore. With an error comes what was done until then.
func Import(ctx context.Context, db *checkpoint.DB, dir, principal string) (Imported, error) {
	out := Imported{Skipped: []NotTaken{}}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return out, fmt.Errorf("importing: %w", err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return out, fmt.Errorf("importing: %w", err)
	}
	var all []*point
	for _, e := range entries {
		if !idForm().MatchString(e.Name()) {
			continue
		}
		p, err := readPoint(root, e.Name())
		if err != nil {
			out.Skipped = append(out.Skipped, NotTaken{e.Name(), err.Error()})
			continue
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b *point) int { return a.m.compare(&b.m) })
	setAfter(all)
	for i, p := range all {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		err := p.save(ctx, db, root, principal)
		switch why := (*skipError)(nil); {
		case errors.Is(err, checkpoint.ErrImported):
			out.Known++
		case errors.As(err, &why):
			out.Skipped = append(out.Skipped, NotTaken{p.m.ID, why.Error()})
		case err != nil:
			return out, err
		default:
			out.Imported++
		}
		all[i] = nil // its list of files may be long
	}
	return out, nil
}

// setAfter gives each change the state after it: what the next checkpoint of its path found.
func setAfter(all []*point) {
	next := map[string]checkpoint.State{}
	for _, p := range slices.Backward(all) {
		for j := range p.changes {
			c := &p.changes[j]
			c.After = c.Before
			if s, ok := next[c.Path]; ok {
				c.After = s
			}
			next[c.Path] = c.Before
		}
	}
}

// skipError is why one checkpoint could not be taken over, while others can.
type skipError struct{ error }

// save saves the checkpoint, unless it is there already. Its contents are in memory for as long as that takes.
func (p *point) save(ctx context.Context, db *checkpoint.DB, root *os.Root, principal string) error {
	op := checkpoint.Op{
		Tool: p.m.Reason, Kind: checkpoint.KindImport, Principal: principal, Session: "moltis",
		Label: importLabel + p.m.ID, Time: time.Unix(p.m.CreatedAt, 0), Changes: p.changes,
	}
	// The store asks again, inside its transaction. To ask first spares reading what is there.
	known, err := db.List(ctx, checkpoint.Filter{Label: op.Label, Principal: principal, AllSessions: true, Limit: 1})
	if err != nil {
		return err
	}
	if len(known.Checkpoints) > 0 {
		return checkpoint.ErrImported
	}
	for i, name := range p.files {
		if name == "" {
			continue
		}
		if op.Changes[i].Content, err = readBounded(root, name, op.Changes[i].Before.Size); err != nil {
			return &skipError{err}
		}
	}
	_, err = db.Save(ctx, op)
	if errors.As(err, new(*checkpoint.BadOpError)) || errors.As(err, new(*checkpoint.FullError)) {
		return &skipError{err}
	}
	return err
}
