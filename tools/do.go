package tools

import (
	"context"
	"errors"
	"fmt"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
)

// Do is a call with typed arguments and a typed answer. The struct says which tool is meant: an
// EditArgs, or a pointer to one, is a call of Edit. as says whose call it is; its Tool and Args are
// set here.
//
//	args := tools.EditArgs{FilePath: p, OldString: "a", NewString: "b"}
//	done, err := tools.Do[*tools.Edit](ctx, suite, args, tools.Call{Session: "s1"})
//	if no, ok := errors.AsType[*tools.Refusal](err); ok { … }
//
// A refusal is an error here, the *Refusal itself. So is an answer of another type, as a hook may
// put in the place of the tool's. With Payload for P every answer is taken, refusals excepted.
func Do[P Payload](ctx context.Context, s *Suite, args any, as Call) (P, error) {
	var none P
	for i := range table {
		if table[i].is(args) {
			as.Tool = table[i].Name
			break
		}
		if i == len(table)-1 {
			return none, fmt.Errorf("a %T is the arguments of no tool", args)
		}
	}
	raw, err := plainJSON(args)
	if err != nil {
		return none, fmt.Errorf("encoding the arguments: %w", err)
	}
	as.Args = raw
	p, err := s.Call(ctx, as)
	if err != nil {
		return none, err
	}
	if r, ok := p.(*Refusal); ok {
		return none, r
	}
	answer, ok := p.(P)
	if !ok || Refused(p) {
		return none, fmt.Errorf("%s answered %s, a %T, not a %T", as.Tool, p.Kind(), p, none)
	}
	return answer, nil
}

// Call runs one tool. Whatever the model asked for comes back as a payload, a *Refusal included. An
// error means that the host is broken, or, as an *UnknownToolError, that there is no such tool, or,
// as ErrClosed, that the suite is closed.
//
// A call whose ctx was cancelled before it was done has changed nothing and ends with an error that
// is context.Canceled. One whose deadline passed is a *Refusal of KindDeadline: a model can ask for
// less.
func (s *Suite) Call(ctx context.Context, in Call) (Payload, error) {
	p, err := s.call(ctx, in)
	if err != nil || !Refused(p) || !errors.Is(ctx.Err(), context.Canceled) {
		return p, err
	}
	if r, ok := p.(*Refusal); ok && r.facts != nil && r.facts.Cause == engine.Withheld {
		return p, nil // it may have changed something
	}
	return nil, fmt.Errorf("%s was cancelled: %w", in.Tool, ctx.Err())
}

// Undo takes back the last change of the session that as names, and Redo that undo. They are what
// checkpoint_restore does with the ids "undo" and "redo"; its other arguments go by Do.
func (s *Suite) Undo(ctx context.Context, as Call) (*CheckpointRestore, error) {
	return Do[*CheckpointRestore](ctx, s, CheckpointRestoreArgs{ID: new("undo")}, as)
}

// Redo makes anew what Undo took back.
func (s *Suite) Redo(ctx context.Context, as Call) (*CheckpointRestore, error) {
	return Do[*CheckpointRestore](ctx, s, CheckpointRestoreArgs{ID: new("redo")}, as)
}

// Upkeep gives do the checkpoint store, for what a host does to it beside calls: pins, labels,
// retention ([checkpoint.DB.GC]), purges, a look into the trash. name is what the audit log says of
// it, as "pin". The record stands there before do begins; where it can't be written, do is not run.
// do must not keep the store, nor close it.
//
//	err := suite.Upkeep(ctx, "pin", func(ctx context.Context, db *checkpoint.DB) error {
//		return db.Pin(ctx, id, checkpoint.Scope{AllSessions: true})
//	})
//
// What is in the trash comes back by Do, with its id in CheckpointRestoreArgs.
func (s *Suite) Upkeep(ctx context.Context, name string,
	do func(context.Context, *checkpoint.DB) error) error {
	return s.engine.Upkeep(ctx, name, do)
}

// EmptyTrash removes entries of the trash for good, those that [checkpoint.DB.TrashList] gives.
func (s *Suite) EmptyTrash(ctx context.Context, entries []checkpoint.Trashed) error {
	return s.Upkeep(ctx, "empty_trash", func(ctx context.Context, db *checkpoint.DB) error {
		return engine.EmptyTrash(ctx, s.engine.Place(), db, entries)
	})
}
