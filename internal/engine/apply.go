package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// single is the one step of a plan that apply carries out; nil where publish has to.
func (p *Plan) single() *Step {
	if len(p.Steps) != 1 {
		return nil
	}
	s := &p.Steps[0]
	if s.Action != Put || s.file.place == nil || s.Before.Kind != checkpoint.File && s.Before.Kind != checkpoint.Absent {
		return nil
	}
	return s
}

// apply carries out a plan of one step: stage, save, sync, swap. Nothing is to be seen of it before
// the swap, which is the commit: what fails before that leaves everything as it was.
//
// The new file is synced while the checkpoint is saved: both wait for one disk, and mostly for one
// commit of its journal.
func (e *Engine) apply(ctx context.Context, c *Call, ts targets, p *Plan, s *Step) (*Done, error) {
	t := s.file
	done := &Done{Targets: ts}
	point := &point{e: e, c: c}
	hold, made, err := t.place.Hold(ctx, newTag(), 0, guardfs.NewObject{
		Kind: guardfs.KindFile, Content: t.After.Content, Like: t.Before, Meta: t.After.Meta, Sync: e.sync(), Open: true,
	})
	if err != nil {
		return nil, fmt.Errorf("writing beside %s: %w", t.True, err)
	}
	defer hold.Close() //nolint:errcheck // after a change it was closed before
	t.own, t.fresh = made.Info.ID, made.Meta

	save := func() error { return point.save(ctx, t, p, done) }
	sync := func() error { return nil }
	if e.sync() {
		sync = hold.Sync
	}
	saveErr, syncErr := beside(save, sync)
	err = errors.Join(saveErr, syncErr)
	if err == nil {
		point.label(ts)
		t.Published, err = t.place.Swap(ctx, hold, guardfs.Found(t.Before), made.Expect())
	}
	if err != nil {
		hold.Drop(made.Expect()) //nolint:errcheck // it is on record
		return nil, e.putBack(ctx, point, t, err)
	}
	pub := t.Published
	pub.Dropped = made.Dropped
	left := hold.Base()
	if err := hold.Drop(pub.Displaced); err != nil {
		pub.Leftover = left
	}
	if err := hold.Close(); err != nil {
		pub.Unsynced = "closing the file: " + err.Error()
	}
	if e.sync() {
		if err := t.place.SyncNames(); err != nil {
			pub.Unsynced = err.Error()
		}
	}
	point.settle(ctx, checkpoint.Committed)
	return done, nil
}

// newTag is one that no other operation has.
func newTag() string {
	var b [guardfs.TagLen / 2]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return hex.EncodeToString(b[:])
}
