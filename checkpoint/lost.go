package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Lost says how far retention has taken what a session changed, and what is left whole.
type Lost struct {
	Until time.Time // the time of the newest change that was taken
	// A rewind since Since, the time of the checkpoint First, takes back all that this session changed
	// from then on. Zero when nothing is left.
	Since time.Time
	First ID
	// Turn is the oldest turn that nothing was taken of, Turns how many there are.
	Turn  string
	Turns int

	seq int64
}

// PartialError: a rewind would not restore what was there, because retention took some of what the
// session changed since then. See Restore.Partial.
type PartialError struct{ Lost Lost }

func (e *PartialError) Error() string {
	return fmt.Sprintf("what this session changed is not in the store any more up to %s: "+
		"retention took it", e.Lost.Until.UTC().Format(time.RFC3339))
}

// NothingError: there is nothing to undo or redo; it is ErrNothing. Lost says how much retention took of
// the changes of the session, and is nil when that is nothing.
type NothingError struct{ Lost *Lost }

func (e *NothingError) Error() string { return ErrNothing.Error() }

// Is says that it is ErrNothing.
func (e *NothingError) Is(err error) bool { return err == ErrNothing }

// AmbiguousTurnError: a turn of that name was begun several times. The store does not guess which
// one is meant.
type AmbiguousTurnError struct {
	Turn  string
	Begun []Begun // oldest first
}

func (e *AmbiguousTurnError) Error() string {
	return fmt.Sprintf("%d turns have the name %q", len(e.Begun), e.Turn)
}

// Begun is one beginning of a turn.
type Begun struct {
	Time time.Time // Restore.Since of it means the same: it is the time of First if there is one
	// First is the session's first checkpoint since then that is still there; "" when there is none.
	First ID
}

// turnStart is the number of the checkpoint after which the one turn of that name begins.
func (h *history) turnStart(ctx context.Context, who Scope, turn string) (int64, error) {
	const q = `SELECT t.after, t.ts, coalesce(op.id, ''), coalesce(op.ts, 0) FROM turn t LEFT JOIN op ON op.seq=
			(SELECT min(seq) FROM op o WHERE o.session=t.session AND o.seq > t.after)
		WHERE t.name=? AND t.session=(SELECT id FROM session WHERE principal=? AND name=?) ORDER BY t.id`
	var begun []Begun
	var after int64
	err := each(ctx, h.q, q, []any{turn, who.Principal, who.Session}, func(row scanner) error {
		var b Begun
		var ts, first int64
		err := row.Scan(&after, &ts, &b.First, &first)
		if b.First != "" {
			ts = first
		}
		b.Time = time.Unix(0, ts)
		begun = append(begun, b)
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case len(begun) == 0:
		return 0, ErrNotFound
	case len(begun) > 1:
		return 0, &AmbiguousTurnError{turn, begun}
	}
	return after, nil
}

// lostSince gives the changes of the session after start that retention took, the point of a rewind;
// nil when nothing.
func (r *Restore) lostSince(ctx context.Context, h *history, start int64) (*Lost, error) {
	lost, err := h.lost(ctx, r.scope())
	if err != nil || lost == nil ||
		lost.seq <= start && (r.Since.IsZero() || lost.Until.Before(r.Since)) {
		return nil, err
	}
	if !r.Partial {
		return nil, &PartialError{*lost}
	}
	return lost, nil
}

// lost gives the changes of who that retention took; nil when there are none.
func (h *history) lost(ctx context.Context, who Scope) (*Lost, error) {
	ses := who.sessions()
	var seq, ts sql.NullInt64
	err := h.q.QueryRowContext(ctx, "SELECT max(gone), max(gone_ts) FROM session"+ses.sql(),
		ses.args...).Scan(&seq, &ts)
	if err != nil || !seq.Valid {
		return nil, err
	}
	l := &Lost{Until: time.Unix(0, ts.Int64), seq: seq.Int64}
	var w where
	w.and("session IN (SELECT id FROM session"+ses.sql()+")", ses.args...)
	turns := w.with("after >= ?", l.seq)
	var name sql.NullString
	err = h.q.QueryRowContext(ctx, "SELECT count(*), (SELECT name FROM turn"+turns.sql()+
		" ORDER BY id LIMIT 1) FROM turn"+turns.sql(), append(turns.args, turns.args...)...).
		Scan(&l.Turns, &name)
	if err != nil {
		return nil, err
	}
	l.Turn = name.String
	w.and("seq > ? AND ts > ?", l.seq, ts.Int64)
	var first string
	var at int64
	err = h.q.QueryRowContext(ctx, "SELECT id, ts FROM op"+w.sql()+" ORDER BY seq LIMIT 1",
		w.args...).Scan(&first, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return l, nil
	}
	l.First, l.Since = ID(first), time.Unix(0, at)
	return l, err
}

// goneOf is the newest checkpoint of path that retention took, if it was newer than all that
// stayed; else 0, or one that is older than head.
func (h *history) goneOf(ctx context.Context, path string) (int64, error) {
	return one[int64](ctx, h.q, "SELECT coalesce(gone, 0) FROM path WHERE path=?", []byte(path))
}
