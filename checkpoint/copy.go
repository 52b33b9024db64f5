package checkpoint

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"moltisfs/checkpoint/blob"
)

// Copied counts the things that a copy brought.
type Copied struct {
	Operations int   `json:"operations"`
	Contents   int   `json:"contents"` // of these, each as often as an operation has it
	Bytes      int64 `json:"bytes"`    // of those contents
	Sealed     int   `json:"sealed"`   // of the contents: encrypted to a key that is not at hand, so that nobody compared them with their hash
	Damaged    int   `json:"damaged"`  // contents that the source has lost: their operations say SkipDamaged
	Waiting    int   `json:"waiting"`  // operations that stay behind, since one of them, or one before them, is open
}

// Copy copies operations of from into to, with their contents, turns, marks and entries of the trash. They keep their ids, times and
// outcomes and their order. In to they come after all that is there. Nothing changes in from, and both may be in use.
//
// Each operation is read and written in one transaction of the target: what a purge or retention of the source takes before that is not copied. A
// copy that was cut off goes on where it was: operations up to the newest one that the target has already are not copied. If the target lacks one
// of those, its retention took it. The copy ends before the first open operation, since what comes after that would be out of order: see Copied.Waiting.
//
// If retention of the source took operations before they were copied, the target notes that there were some. Marks that are set in from after an operation
// was copied are not copied. Each content is compared with its hash on its way; one that is encrypted stays encrypted to the same key. A
// *FullError says that the target is full: nothing in it is removed to make room.
func Copy(ctx context.Context, from, to *DB) (Copied, error) {
	c := &copier{from: from, to: to, who: anybody}
	err := c.goOn(ctx)
	if err == nil && c.r.Waiting == 0 { // else they come after what waits
		err = c.rest(ctx)
	}
	if err != nil {
		err = fmt.Errorf("copying checkpoints: %w", err)
	}
	return c.r, err
}

// A copier copies operations of one store into another.
type copier struct {
	from, to *DB
	who      Scope // whose operations: of one session, or of anybody
	far      bool  // a fetch: from is the remote store. Saves here must not wait for it, so operations are read before the transaction that writes them
	evict    bool  // to makes room as for a save
	// ships: only the operations in the table unsent of from are copied, and are removed from it then. One that is in the target already gets its
	// marks, outcome and trash there. What retention took from the source had been sent before.
	ships bool

	keys    map[int64][]byte      // of from, by their numbers, as far as rows have them
	last    map[blob.Hash]*parcel // of the operation before, or of this one as it was read before
	again   bool                  // a content was gone: what is gone again is damaged
	whole   map[blob.Hash]bool    // contents that nothing in to may be the base of
	through int64                 // the operations of from up to this number need no copy
	r       Copied
}

// goOn copies the operations of from that come after the newest one that both stores have.
func (c *copier) goOn(ctx context.Context) (err error) {
	if c.through, err = c.newest(ctx); err == nil {
		err = c.run(ctx)
	}
	return err
}

// newest gives the number, in from, of the newest operation that both stores have; 0 for none.
func (c *copier) newest(ctx context.Context) (seq int64, err error) {
	for below := int64(afterAll); err == nil && seq == 0; {
		numbers := map[string]int64{} // by id and time
		var ids []any
		err = c.from.view(ctx, func(h *history) error {
			w, err := h.scope(ctx, c.who, "op.session")
			if err != nil {
				return err
			}
			w.and("seq < ?", below)
			return each(ctx, h.q, "SELECT seq, id, id || ' ' || ts FROM op"+w.sql()+" ORDER BY seq DESC LIMIT 100", w.args, func(row scanner) error {
				var id, time string
				err := row.Scan(&below, &id, &time)
				numbers[time], ids = below, append(ids, id)
				return err
			})
		})
		if err != nil || len(ids) == 0 {
			break
		}
		err = c.to.view(ctx, func(h *history) error {
			there, err := column[string](ctx, h.q, "SELECT id || ' ' || ts FROM op WHERE id IN (?"+strings.Repeat(",?", len(ids)-1)+")", ids...)
			for _, time := range there {
				seq = max(seq, numbers[time])
			}
			return err
		})
	}
	return seq, err
}

// errMoved says that something went while it was copied. A second look finds it elsewhere, or finds that nobody needs it any more.
var errMoved = errors.New("it went while it was copied")

// run copies what comes after the number c.through of from.
func (c *copier) run(ctx context.Context) error {
	if err := c.to.pack.NeedKey(ctx); err != nil { // it would need a transaction of its own
		return err
	}
	for {
		seq, err := c.next(ctx)
		if err != nil || seq == 0 {
			return err
		}
		err = c.copy(ctx, seq)
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return err
		}
		c.again, c.through = false, seq
	}
}

// next gives the number of the next operation, 0 if there is none that may be copied.
func (c *copier) next(ctx context.Context) (seq int64, err error) {
	err = c.from.view(ctx, func(h *history) error {
		w, err := h.scope(ctx, c.who, "op.session")
		if err != nil {
			return err
		}
		w.when(!c.ships, "op.seq > ?", c.through)
		w.when(c.ships, "op.seq=(SELECT min(op) FROM unsent WHERE op > ?)", c.through)
		if seq, err = one[int64](ctx, h.q, "SELECT coalesce(min(seq), 0) FROM op"+w.sql(), w.args...); err != nil {
			return err
		}
		open, err := one[bool](ctx, h.q, "SELECT EXISTS (SELECT 1 FROM open_op WHERE op=?)", seq)
		if err == nil && open {
			seq = 0
			c.r.Waiting, err = one[int](ctx, h.q, "SELECT count(*) FROM op"+w.sql(), w.args...)
		}
		return err
	})
	return seq, err
}

// copy copies the operation seq in one transaction of to, in which it is read. Before that it is read for its large contents.
func (c *copier) copy(ctx context.Context, seq int64) error {
	if err := c.to.enter(); err != nil {
		return err
	}
	defer c.to.active.Done()
	for try := 0; ; try++ {
		r, err := c.take(ctx, seq)
		s := &save{d: c.to, op: &Op{}}
		if err == nil {
			s.come, err = c.large(ctx, r)
		}
		there := false
		if err == nil {
			err = s.transact(ctx, func(ctx context.Context, tx *tx) (err error) {
				if !c.far {
					r, err = c.take(ctx, seq)
				}
				if err == nil {
					there, err = c.write(ctx, tx, s, r)
				}
				return err
			})
		}
		if err == nil && c.ships {
			return c.sent(ctx, r)
		}
		if err == nil && !there {
			c.r.Operations++
			for _, p := range r.load {
				c.r.Damaged += count(p.damaged)
				c.r.Sealed += count(p.sealed)
				if len(p.rows) > 0 {
					c.r.Contents, c.r.Bytes = c.r.Contents+1, c.r.Bytes+p.rows[0].Size
				}
			}
		}
		full, ok := errors.AsType[*FullError](err)
		if !ok || !c.evict || try == 2 {
			return err
		}
		if err := c.to.makeRoom(ctx, full); err != nil {
			return err
		}
	}
}

// A piece is a row as it is, or the bytes of a content that is packed anew.
type piece struct {
	row  blob.Row
	body []byte
}

// large gives the rows of r that go, or may go, into the blob store of the target.
func (c *copier) large(ctx context.Context, r *record) (out []piece, err error) {
	for _, p := range r.load {
		for i, row := range p.rows {
			one := piece{row: row}
			anew := row.Codec&blob.CodecSealed == 0 && row.Size > small && (c.to.o.EncryptTo != "" || c.whole[row.Hash])
			if anew && err == nil {
				one.body, err = c.from.unpack(ctx, row.Hash, p.rows[i:])
			}
			if anew || row.Name != "" {
				out = append(out, one)
			}
		}
	}
	return out, err
}

// sent removes r from the table unsent. If r has changed since it was read it stays there, as one that is not new. That need not be durable: an
// operation that is sent again is found in the target.
func (c *copier) sent(ctx context.Context, r *record) error {
	return c.from.write(ctx, "noting what was sent", false, func(ctx context.Context, tx *tx) error {
		err := tx.exec(ctx, "DELETE FROM unsent WHERE op=? AND draw=?", r.seq, r.draw)
		if err == nil { // if the retention of to takes it, it does not come again, after what came after it
			err = tx.exec(ctx, "UPDATE unsent SET fresh=0 WHERE op=?", r.seq)
		}
		return err
	})
}

// A record is an operation on its way from one store into another. The numbers in it are those of the store that it comes from.
type record struct {
	entry
	op       Op // with its changes as Save has them, but for contents
	load     map[blob.Hash]*parcel
	draw     int64 // of the table unsent; 0: it is not in there
	fresh    bool  // of that table. Not: if to does not have it, its retention took it
	after    [2]ID // of what it undoes and restores, if retention took that: the first that is left after it
	turn     int64
	turns    []turnRow // that began since the operation before of the session, and its own; the oldest first
	trash    []Trashed
	gone     int64 // of the session: the newest operation that retention took
	hole     bool  // retention took what was before it
	sessions []sessionGone
	paths    [][]byte // of which retention took the newest operation, right before this one
}

type turnRow struct {
	id, after, ts int64
	name          string
}

type sessionGone struct {
	principal, name string
	ts              int64
}

// A parcel is a content on its way: its rows as they are, each with its bytes, and after each row that of the content which it is a delta against.
type parcel struct {
	rows    []blob.Row // none: there are no bytes of it
	damaged bool
	sealed  bool // the key is not at hand
}

// take reads the operation seq and its contents.
func (c *copier) take(ctx context.Context, seq int64) (r *record, err error) {
	err = c.from.view(ctx, func(h *history) error {
		e, err := h.entry(ctx, "seq", seq)
		if errors.Is(err, ErrNotFound) {
			err = errMoved // retention took it
		}
		if err != nil {
			return err
		}
		r = &record{entry: e, load: map[blob.Hash]*parcel{}}
		var session, before int64
		err = h.q.QueryRowContext(ctx, `SELECT op.session, coalesce(op.turn, 0), coalesce(s.gone, 0), coalesce(u.draw, 0), coalesce(u.fresh, 0),
				coalesce((SELECT max(o.seq) FROM op o WHERE o.session=op.session AND o.seq < op.seq), 0)
			FROM op JOIN session s ON s.id=op.session LEFT JOIN unsent u ON u.op=op.seq WHERE op.seq=?`, seq).
			Scan(&session, &r.turn, &r.gone, &r.draw, &r.fresh, &before)
		if err == nil {
			const turns = "SELECT id, after, ts, name FROM turn WHERE session=? AND (id=? OR after >= ? AND after < ?) ORDER BY id"
			err = each(ctx, h.q, turns, []any{session, r.turn, before, seq}, func(row scanner) error {
				var t turnRow
				err := row.Scan(&t.id, &t.after, &t.ts, &t.name)
				r.turns = append(r.turns, t)
				return err
			})
		}
		if err == nil {
			err = each(ctx, h.q, trashColumns+" WHERE t.op=? ORDER BY t.id", []any{seq}, func(row scanner) error {
				_, t, err := scanTrashed(row)
				r.trash = append(r.trash, t)
				return err
			})
		}
		for i, of := range [2]struct {
			id ID
			n  int64
		}{{r.c.UndoOf, r.undoOf}, {r.c.RestoreOf, r.restoreOf}} {
			if err == nil && of.id == "" && of.n != 0 {
				r.after[i], err = one[ID](ctx, h.q, "SELECT id FROM op WHERE session=? AND seq > ? ORDER BY seq LIMIT 1", session, of.n)
			}
		}
		if err == nil && !c.ships {
			err = c.takeGone(ctx, h, r)
		}
		if err == nil && (r.fresh || !c.ships) { // else to has them, or its retention or a purge took them
			err = c.takeContents(ctx, h, r)
		}
		return err
	})
	return r, err
}

// takeGone notes what retention took between the operation before and r.
func (c *copier) takeGone(ctx context.Context, h *history, r *record) error {
	left, err := one[int64](ctx, h.q, "SELECT count(*) FROM op WHERE seq > ? AND seq < ?", c.through, r.seq)
	if r.hole = left != r.seq-c.through-1; err != nil || !r.hole {
		return err
	}
	w := c.who.sessions()
	w.and("gone > ? AND gone < ?", c.through, r.seq)
	err = each(ctx, h.q, "SELECT principal, name, coalesce(gone_ts, 0) FROM session"+w.sql(), w.args, func(row scanner) error {
		var s sessionGone
		err := row.Scan(&s.principal, &s.name, &s.ts)
		r.sessions = append(r.sessions, s)
		return err
	})
	if err == nil {
		r.paths, err = column[[]byte](ctx, h.q, "SELECT path FROM path WHERE gone > ? AND gone < ?", c.through, r.seq)
	}
	return err
}

// takeContents reads the contents of r, and makes its changes.
func (c *copier) takeContents(ctx context.Context, h *history, r *record) (err error) {
	r.op = Op{Principal: r.c.Principal, Session: r.c.Session, Changes: make([]Change, len(r.c.Changes))}
	for i := range r.c.Changes {
		from := &r.c.Changes[i]
		ch := &r.op.Changes[i]
		*ch = Change{Path: from.Path, Role: from.Role, Before: from.Before, After: from.After, Skipped: from.Skipped, Moved: from.Moved}
		for _, side := range []struct {
			st      *State
			skipped *string
		}{{&ch.Before, &ch.Skipped}, {&ch.After, &from.AfterSkipped}} {
			side.st.Hash = cmp.Or(side.st.Hash, side.st.Tail) // see checkTail
			hash, none := blob.ParseHash(side.st.Hash)
			if none != nil {
				continue
			}
			p := r.load[hash]
			if p == nil {
				if p, err = c.parcel(ctx, h, hash, c.last[hash]); err != nil {
					return err
				}
			}
			if r.load[hash] = p; p.damaged {
				*side.skipped = SkipDamaged
			}
		}
		if ch.Before.kind() == File && ch.Before.Hash == "" {
			ch.Skipped = cmp.Or(ch.Skipped, SkipNotRead)
		}
	}
	c.last = r.load
	return nil
}

// parcel reads the content hash. It is last, nil for none, if it was read before and has the same rows: a change begins with the content that the
// one before it left, as a rule. But a purge may have taken it meanwhile, or a save brought it.
func (c *copier) parcel(ctx context.Context, h *history, hash blob.Hash, last *parcel) (*parcel, error) {
	rows, err := chain(ctx, h.q, hash)
	if err == nil && last != nil && !last.damaged && slices.EqualFunc(rows, last.rows, func(a, b blob.Row) bool {
		return a.Hash == b.Hash && a.Codec == b.Codec && a.Key == b.Key && a.Name == b.Name
	}) {
		return last, nil
	}
	if err == nil {
		_, err = c.from.unpack(ctx, hash, rows)
	}
	sealed := errors.Is(err, ErrSealed)
	for i := range rows {
		r := &rows[i]
		if none := c.takeKey(ctx, h, r.Key); none != nil {
			err, sealed = none, false
		}
		if sealed && r.Name != "" && r.Z == nil {
			var none error
			if r.Z, none = c.from.blobs.Get(ctx, r.Name, r.Bytes); none != nil {
				err, sealed = none, false
			}
		}
	}
	switch gone := errors.Is(err, fs.ErrNotExist); {
	case errors.Is(err, ErrNoContent):
		return &parcel{}, nil
	case gone && !c.again:
		c.again = true
		return nil, errMoved
	case gone || errors.As(err, new(*CorruptError)):
		return &parcel{damaged: true}, nil
	case err != nil && !sealed:
		return nil, err
	}
	return &parcel{rows: rows, sealed: sealed}, nil
}

// takeKey reads the key with the number id, 0 for none, from the source before the transaction that needs it: that must not wait for the source.
func (c *copier) takeKey(ctx context.Context, h *history, id int64) error {
	if id == 0 || c.keys[id] != nil {
		return nil
	}
	wrapped, err := one[[]byte](ctx, h.q, "SELECT wrapped FROM seal WHERE id=?", id)
	if err == nil && wrapped == nil {
		err = &CorruptError{"", "its key is missing"}
	}
	if c.keys == nil {
		c.keys = map[int64][]byte{}
	}
	c.keys[id] = wrapped
	return err
}

// write writes the rows of r. there: the target has the operation, or had it until its retention took it.
func (c *copier) write(ctx context.Context, tx *tx, s *save, r *record) (there bool, err error) {
	var ts int64
	err = tx.QueryRowContext(ctx, "SELECT seq, ts FROM op WHERE id=?", r.c.ID).Scan(&s.seq, &ts)
	there = err == nil
	switch {
	case there && ts != r.c.Time.UnixNano():
		return true, fmt.Errorf("%s is the id of another checkpoint there", r.c.ID)
	case !there && !errors.Is(err, sql.ErrNoRows):
		return false, err
	case there && !c.ships, c.ships && r.draw == 0, c.ships && !there && !r.fresh: // also if another process has sent it meanwhile
		return true, nil
	case there:
		err = tx.exec(ctx, "UPDATE op SET outcome=?, pin=?, label=? WHERE seq=?", outcomeCode(r.c.Outcome), count(r.c.Pinned), orNull(r.c.Label), s.seq)
		if err == nil {
			err = tx.undo(ctx, s.seq)
		}
		if err == nil {
			err = tx.exec(ctx, "DELETE FROM trash WHERE op=?", s.seq)
		}
	default:
		err = c.insert(ctx, tx, s, r)
	}
	for i := range r.trash {
		if err == nil {
			err = tx.putTrash(ctx, &r.trash[i], s.seq)
		}
	}
	if err == nil && !there {
		err = s.fits(ctx, tx)
	}
	return there, err
}

// insert writes the rows of r, without its trash, behind all operations of the target.
func (c *copier) insert(ctx context.Context, tx *tx, s *save, r *record) error {
	s.op = &r.op
	last, err := tx.latest(ctx, s.op)
	if err != nil {
		return err
	}
	if c.far { // from here on nobody saves
		waits, err := one[bool](ctx, tx, "SELECT EXISTS (SELECT 1 FROM unsent u JOIN op ON op.seq=u.op WHERE u.fresh=1 AND op.session=?)", last.session)
		if err != nil || waits {
			return cmp.Or(err, ErrElsewhere)
		}
	}
	s.id, s.seq, s.contentID = r.c.ID, last.op+1, last.content
	s.added = opBytes + changeBytes*int64(len(s.op.Changes))
	if r.hole {
		s.seq++
		if err := tx.putGone(ctx, r, s.seq-1); err != nil {
			return err
		}
	}
	turn, err := c.putTurns(ctx, tx, r, last.session, s.seq-1)
	if err != nil {
		return err
	}
	undoOf, err1 := s.numberOf(ctx, tx, r.c.UndoOf, r.after[0])
	restoreOf, err2 := s.numberOf(ctx, tx, r.c.RestoreOf, r.after[1])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var undoneBy any
	if r.undone && r.c.UndoneBy == "" {
		undoneBy = takenByRetention
	}
	err = tx.exec(ctx, `INSERT INTO op(seq, id, ts, session, turn, tool, kind, outcome, pin, label, undo_of, restore_of, run, undone_by)
		VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)`, s.seq, s.id, r.c.Time.UnixNano(), last.session, orNull(turn), r.c.Tool, r.c.Kind,
		outcomeCode(r.c.Outcome), count(r.c.Pinned), orNull(r.c.Label), undoOf, restoreOf, orNull(r.run), undoneBy)
	if err == nil && undoOf != nil {
		err = tx.undo(ctx, s.seq)
	}
	for _, p := range r.load {
		if err == nil {
			err = c.putContent(ctx, tx, s, p)
		}
	}
	for i, of := range r.c.Changes {
		if err == nil {
			err = s.change(ctx, tx, i, last.session)
		}
		if err == nil && of.AfterSkipped != "" {
			err = tx.exec(ctx, "UPDATE change SET askipped=? WHERE op=? AND n=?", of.AfterSkipped, s.seq, i)
		}
	}
	if err == nil && !c.far { // else it comes from the store that to is shipped to
		err = c.to.unsent(ctx, tx, true, "seq=?", s.seq)
	}
	return err
}

// takenByRetention is in place of the number of an operation that is not there any more. No operation has it.
const takenByRetention = -1

// numberOf is the number of the operation id; NULL if that is "". Of one that retention took from the source before it was copied, next is the
// first that is left after it: then it is the number of the hole, so that it has its place in the order.
func (s *save) numberOf(ctx context.Context, tx *tx, id, next ID) (any, error) {
	if id == "" && next == "" {
		return nil, nil
	}
	seq, err := one[int64](ctx, tx, "SELECT seq FROM op WHERE id=?", cmp.Or(id, next))
	if next == s.id {
		seq = s.seq
	}
	if err == nil && id == "" && seq != 0 {
		seq--
		var op bool
		if op, err = one[bool](ctx, tx, "SELECT EXISTS (SELECT 1 FROM op WHERE seq=?)", seq); op { // no hole
			seq = 0
		}
	}
	return cmp.Or(seq, takenByRetention), err
}

// putGone notes that the number hole stands for what retention took before r.
func (tx *tx) putGone(ctx context.Context, r *record, hole int64) error {
	for _, g := range r.sessions {
		err := tx.exec(ctx, `INSERT INTO session(principal, name, gone, gone_ts) VALUES(?,?,?,?) ON CONFLICT(principal, name) DO UPDATE
			SET gone=excluded.gone, gone_ts=CASE WHEN session.gone_ts > excluded.gone_ts THEN session.gone_ts ELSE excluded.gone_ts END`,
			g.principal, g.name, hole, g.ts)
		if err != nil {
			return err
		}
	}
	for _, path := range r.paths { // of one that is not there nothing stays
		if err := tx.exec(ctx, "UPDATE path SET gone=? WHERE path=?", hole, path); err != nil {
			return err
		}
	}
	return nil
}

// putTurns begins the turns of r that have not begun in the session, after the number after, and gives that of r.
func (c *copier) putTurns(ctx context.Context, tx *tx, r *record, session, after int64) (own int64, err error) {
	var gone int64 // as r.gone, in to
	if !c.ships && len(r.turns) > 0 && r.gone < r.seq {
		if gone, err = one[int64](ctx, tx, "SELECT coalesce(gone, 0) FROM session WHERE id=?", session); err != nil {
			return 0, err
		}
	}
	for _, t := range r.turns {
		at := after
		if gone > 0 && t.after < r.gone { // something is gone of it
			at = min(after, gone-1)
		}
		id, err := tx.beginAs(ctx, t, session, at)
		if err != nil {
			return 0, err
		}
		if t.id == r.turn {
			own = id
		}
	}
	return own, nil
}

// beginAs gives the number of the turn t in the session, which begins after the number after if it has not begun. Another beginning of the
// turn that the session is in is the same: the session did nothing in it yet where it was before.
func (tx *tx) beginAs(ctx context.Context, t turnRow, session, after int64) (int64, error) {
	id, err := one[int64](ctx, tx, `SELECT id FROM turn WHERE session=? AND name=?
		AND (ts=? OR id=(SELECT max(id) FROM turn WHERE session=?)) ORDER BY id LIMIT 1`, session, t.name, t.ts, session)
	if err == nil && id == 0 {
		id, err = tx.newTurn(ctx, latest{session: session, op: after}, t.name, t.ts)
	}
	return id, err
}

// putContent writes those rows of p that the target lacks, each as it is. A row in clear is packed anew in two cases: if the target encrypts, and if
// the target has the content that the row is a delta against in a form that no clear delta may be based on.
func (c *copier) putContent(ctx context.Context, tx *tx, s *save, p *parcel) error {
	var base *stored
	for i, row := range slices.Backward(p.rows) {
		st := &stored{hash: row.Hash, size: row.Size, depth: -1}
		err := tx.QueryRowContext(ctx, "SELECT id, coalesce(depth, -1), coalesce(key, 0) FROM content WHERE hash=?", st.hash[:]).
			Scan(&st.id, &st.depth, &st.key)
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		if err == nil && st.depth < 0 {
			anew := c.to.o.EncryptTo != "" || base != nil && (base.key != 0 || base.depth >= blob.MaxDepth)
			ahead := s.large[row.Hash]
			anew = anew && row.Codec&blob.CodecSealed == 0
			var body []byte
			switch {
			case ahead != nil && ahead.content != nil:
				row = ahead.row
			case anew && row.Size > small: // it is packed before the next try
				if c.whole == nil {
					c.whole = map[blob.Hash]bool{}
				}
				c.whole[row.Hash], err = true, errMoved
			case anew:
				if body, err = c.from.unpack(ctx, row.Hash, p.rows[i:]); err == nil {
					row, err = s.packed(ctx, row.Hash, body, nil)
				}
			case row.Name != "" && (ahead == nil || ahead.of != row.Name): // it was packed anew, or brought, since the large ones were put
				err = errMoved
			case row.Name != "":
				row.Name = ahead.row.Name
				row.Key, err = c.key(ctx, tx, row.Key)
			default:
				row.Key, err = c.key(ctx, tx, row.Key)
			}
			if err == nil {
				err = s.write(ctx, tx, st, &row, base)
			}
		}
		if err != nil {
			return err
		}
		base = st
	}
	return nil
}

// key gives the number in to of the key that has the number id in from; 0 for 0.
func (c *copier) key(ctx context.Context, tx *tx, id int64) (to int64, err error) {
	if id == 0 {
		return 0, nil
	}
	if to, err = one[int64](ctx, tx, "SELECT id FROM seal WHERE wrapped=?", c.keys[id]); err == nil && to == 0 {
		to, err = one[int64](ctx, tx, "INSERT INTO seal(wrapped) VALUES(?) RETURNING id", c.keys[id])
	}
	return to, err
}

// rest begins the turns in which nothing was done yet. Left is a turn of a session that saved something before it which is not copied: they
// would change places.
func (c *copier) rest(ctx context.Context) error {
	return c.to.write(ctx, "copying turns", true, func(ctx context.Context, tx *tx) error {
		return c.from.view(ctx, func(h *history) error {
			const newest = "coalesce((SELECT max(seq) FROM op WHERE op.session=t.session), 0)"
			const begun = "SELECT s.principal, s.name, t.ts, t.name FROM turn t JOIN session s ON s.id=t.session" +
				" WHERE t.after >= " + newest + " AND ? >= " + newest + " ORDER BY t.id"
			return each(ctx, h.q, begun, []any{c.through}, func(row scanner) error {
				var t turnRow
				var of Op
				if err := row.Scan(&of.Principal, &of.Session, &t.ts, &t.name); err != nil {
					return err
				}
				last, err := tx.latest(ctx, &of)
				if err == nil {
					_, err = tx.beginAs(ctx, t, last.session, last.op)
				}
				return err
			})
		})
	})
}
