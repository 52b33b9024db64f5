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
// Each operation is one transaction of to. A copy that was cut off goes on where it was: operations up to the newest one that to has
// already are not copied, whether or not to has them: its retention may have taken them. It ends before the first open operation, since
// what comes after that would be out of order: see Copied.Waiting.
//
// If retention took operations of from before they were copied, to knows that they were there. Marks that are set in from after an
// operation was copied are not copied. Each content is compared with its hash on its way; one that is encrypted stays encrypted to the same
// key. A *FullError says that to is full: nothing in it is removed to make room.
func Copy(ctx context.Context, from, to *DB) (Copied, error) {
	c := &copier{from: from, to: to, who: anybody, holes: true}
	newest, err := c.newest(ctx)
	if err == nil {
		err = c.run(ctx, newest)
	}
	if err != nil {
		return c.r, fmt.Errorf("copying checkpoints: %w", err)
	}
	return c.r, nil
}

// A copier copies operations of one store into another.
type copier struct {
	from, to *DB
	who      Scope // whose operations: of one session, or of anybody
	// holes is set where what retention took of from is gone in to, too: it leaves a hole in the numbers of to, as it did in those of from.
	// Not set: to had it before.
	holes bool
	last  map[blob.Hash]*parcel // of the operation before
	evict bool                  // to makes room as for a save
	marks bool                  // an operation that to has gets the marks, the outcome and the trash of r
	// still is asked, while nobody else writes to to, whether r is as the operation is now. May be nil.
	still func(ctx context.Context, r *record) error

	through int64 // up to this number of from all is in to
	r       Copied
}

// newest is the number in from of the newest operation that to has, too; 0 for none.
func (c *copier) newest(ctx context.Context) (int64, error) {
	for below := int64(afterAll); ; {
		var seqs []int64
		var times []string
		var ids []any
		err := c.from.view(ctx, func(h *history) error {
			w, err := h.scope(ctx, c.who, "op.session")
			if err != nil {
				return err
			}
			w.and("seq < ?", below)
			return each(ctx, h.q, "SELECT seq, id, id || ' ' || ts FROM op"+w.sql()+" ORDER BY seq DESC LIMIT 100", w.args, func(row scanner) error {
				var id, time string
				err := row.Scan(&below, &id, &time)
				seqs, ids, times = append(seqs, below), append(ids, id), append(times, time)
				return err
			})
		})
		if err != nil || len(seqs) == 0 {
			return 0, err
		}
		var there []string
		err = c.to.view(ctx, func(h *history) (err error) {
			there, err = column[string](ctx, h.q, "SELECT id || ' ' || ts FROM op WHERE id IN (?"+strings.Repeat(",?", len(ids)-1)+")", ids...)
			return err
		})
		if err != nil {
			return 0, err
		}
		if i := slices.IndexFunc(times, func(t string) bool { return slices.Contains(there, t) }); i >= 0 {
			return seqs[i], nil
		}
	}
}

// errMoved says that a content went while it was copied. A second look finds it elsewhere, or finds that no operation needs it any more.
var errMoved = errors.New("a content went while it was copied")

// run copies what comes after the number since of from.
func (c *copier) run(ctx context.Context, since int64) error {
	if err := c.to.pack.NeedKey(ctx); err != nil { // it would need a transaction of its own
		return err
	}
	c.through = since
	for again := false; ; {
		var r *record
		err := c.from.view(ctx, func(h *history) error {
			seq, err := c.next(ctx, h, c.through)
			if err == nil && seq != 0 {
				r, err = c.take(ctx, h, seq, again)
			}
			return err
		})
		if err == nil && r != nil {
			err = c.put(ctx, r)
		}
		if again = errors.Is(err, errMoved); again {
			continue
		}
		if err != nil {
			return err
		}
		if r == nil {
			return c.rest(ctx)
		}
		c.through = r.seq
	}
}

// next gives the number of the next operation after the number since, 0 if there is none that may be copied.
func (c *copier) next(ctx context.Context, h *history, since int64) (seq int64, err error) {
	w, err := h.scope(ctx, c.who, "op.session")
	if err != nil {
		return 0, err
	}
	w.and("op.seq > ?", since)
	seq, err = one[int64](ctx, h.q, "SELECT coalesce(min(seq), 0) FROM op"+w.sql(), w.args...)
	if err != nil || seq == 0 {
		return 0, err
	}
	open, err := one[int64](ctx, h.q, "SELECT coalesce(min(op.seq), 0) FROM open_op o JOIN op ON op.seq=o.op"+w.sql(), w.args...)
	if err == nil && open == seq {
		c.r.Waiting, err = one[int](ctx, h.q, "SELECT count(*) FROM op"+w.sql(), w.args...)
		seq = 0
	}
	return seq, err
}

// A record is an operation on its way from one store into another. The numbers in it are those of the store that it comes from.
type record struct {
	entry
	op       Op // with its changes as Save has them; contents that are in clear are in it
	load     map[blob.Hash]*parcel
	sent     bool // before: if to does not have it, its retention took it
	draw     int64
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

// A parcel is a content on its way. If it is encrypted, the rows that it stands on come before it.
type parcel struct {
	pieces  []piece
	damaged bool // there are none
	unread  bool // the key is not at hand
}

// A piece is a row as it is, encrypted, or the bytes of a content.
type piece struct {
	row  blob.Row
	body []byte
}

// take reads the operation seq and its contents. again: the last try ended with errMoved. What is gone again is damaged.
func (c *copier) take(ctx context.Context, h *history, seq int64, again bool) (*record, error) {
	e, err := h.entry(ctx, "seq", seq)
	if err != nil {
		return nil, err
	}
	r := &record{entry: e, load: map[blob.Hash]*parcel{}}
	var session, before int64
	err = h.q.QueryRowContext(ctx, `SELECT op.session, coalesce(op.turn, 0), coalesce(s.gone, 0),
			coalesce((SELECT max(o.seq) FROM op o WHERE o.session=op.session AND o.seq < op.seq), 0)
		FROM op JOIN session s ON s.id=op.session WHERE op.seq=?`, seq).Scan(&session, &r.turn, &r.gone, &before)
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
	if err == nil && c.holes {
		err = c.takeGone(ctx, h, r)
	}
	if err == nil {
		err = c.takeContents(ctx, h, r, again)
	}
	return r, err
}

// takeGone notes what retention took between the operation before and r.
func (c *copier) takeGone(ctx context.Context, h *history, r *record) error {
	before := c.through
	between, err := one[int64](ctx, h.q, "SELECT count(*) FROM op WHERE seq > ? AND seq < ?", before, r.seq)
	if r.hole = between != r.seq-before-1; err != nil || !r.hole {
		return err
	}
	ses := c.who.sessions()
	ses.and("gone > ? AND gone < ?", before, r.seq)
	err = each(ctx, h.q, "SELECT principal, name, coalesce(gone_ts, 0) FROM session"+ses.sql(), ses.args, func(row scanner) error {
		var s sessionGone
		err := row.Scan(&s.principal, &s.name, &s.ts)
		r.sessions = append(r.sessions, s)
		return err
	})
	if err == nil {
		r.paths, err = column[[]byte](ctx, h.q, "SELECT path FROM path WHERE gone > ? AND gone < ?", before, r.seq)
	}
	return err
}

// takeContents reads the contents of r, and makes its changes with those that are in clear.
func (c *copier) takeContents(ctx context.Context, h *history, r *record, again bool) error {
	r.op = Op{Principal: r.c.Principal, Session: r.c.Session, Changes: make([]Change, len(r.c.Changes))}
	for i := range r.c.Changes {
		from := &r.c.Changes[i]
		ch := &r.op.Changes[i]
		*ch = Change{Path: from.Path, Role: from.Role, Before: from.Before, After: from.After, Skipped: from.Skipped, Moved: from.Moved}
		for _, side := range []struct {
			st      *State
			body    *[]byte
			skipped *string
		}{{&ch.Before, &ch.Content, &ch.Skipped}, {&ch.After, &ch.AfterContent, &from.AfterSkipped}} {
			side.st.Hash = cmp.Or(side.st.Hash, side.st.Tail) // see checkTail
			hash, err := blob.ParseHash(side.st.Hash)
			if err != nil {
				continue
			}
			if r.load[hash] == nil {
				if r.load[hash], err = c.parcel(ctx, h, hash, again); err != nil {
					return err
				}
			}
			switch p := r.load[hash]; {
			case p.damaged:
				*side.skipped = SkipDamaged
			case len(p.pieces) > 0:
				*side.body = p.pieces[len(p.pieces)-1].body
			}
		}
		if ch.Before.kind() == File && ch.Before.Hash == "" {
			ch.Skipped = cmp.Or(ch.Skipped, SkipNotRead)
		}
	}
	c.last = r.load
	return nil
}

// parcel reads the content hash. It is empty if there are no bytes of it.
func (c *copier) parcel(ctx context.Context, h *history, hash blob.Hash, again bool) (*parcel, error) {
	if p := c.last[hash]; p != nil && !p.damaged { // a change begins with the content that the one before it left, as a rule
		return p, nil
	}
	body, err := c.from.content(ctx, h.q, hash)
	gone, sealed := errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrSealed)
	switch {
	case errors.Is(err, ErrNoContent):
		return &parcel{}, nil
	case gone && !again:
		return nil, errMoved
	case gone || errors.As(err, new(*CorruptError)):
		return &parcel{damaged: true}, nil
	case err != nil && !sealed:
		return nil, err
	}
	rows, err := chain(ctx, h.q, hash)
	if err != nil {
		return nil, err
	}
	if rows[0].Codec&blob.CodecSealed == 0 {
		return &parcel{pieces: []piece{{rows[0], append([]byte{}, body...)}}}, nil
	}
	p := &parcel{unread: sealed}
	for _, row := range slices.Backward(rows) {
		one := piece{row: row}
		switch {
		case row.Codec&blob.CodecSealed == 0: // encryption was turned on later
			one.body, err = c.from.content(ctx, h.q, row.Hash)
			one.body = append([]byte{}, one.body...)
		case row.Codec&blob.CodecStore != 0:
			one.row.Z, err = c.from.blobs.Get(ctx, row.Name, row.Bytes)
		}
		if err != nil {
			return nil, err
		}
		p.pieces = append(p.pieces, one)
	}
	return p, nil
}

// put writes r into to, in one transaction.
func (c *copier) put(ctx context.Context, r *record) (err error) {
	if err := c.to.enter(); err != nil {
		return err
	}
	defer c.to.active.Done()
	for try := 0; ; try++ {
		s := &save{d: c.to, op: &r.op}
		for _, p := range r.load {
			if n := len(p.pieces); n > 0 && p.pieces[n-1].body == nil {
				s.sealed = append(s.sealed, p.pieces...)
			}
		}
		there := false
		err = s.transact(ctx, func(ctx context.Context, tx *tx) (err error) {
			there, err = c.write(ctx, tx, s, r)
			return err
		})
		if err == nil && !there {
			c.r.Operations++
			for _, p := range r.load {
				c.r.Damaged += count(p.damaged)
				c.r.Sealed += count(p.unread)
				if n := len(p.pieces); n > 0 {
					c.r.Contents, c.r.Bytes = c.r.Contents+1, c.r.Bytes+p.pieces[n-1].row.Size
				}
			}
		}
		full, ok := errors.AsType[*FullError](err)
		if err != nil && (!ok || !c.evict || try == 2) {
			return fmt.Errorf("copying %s: %w", r.c.ID, err)
		}
		if err == nil {
			return nil
		}
		if err := c.to.makeRoom(ctx, full); err != nil {
			return err
		}
	}
}

// write writes the rows of r. If the operation is there it only gets the marks of r.
func (c *copier) write(ctx context.Context, tx *tx, s *save, r *record) (there bool, err error) {
	if c.still != nil {
		if err := c.still(ctx, r); err != nil {
			return false, err
		}
	}
	var ts int64
	err = tx.QueryRowContext(ctx, "SELECT seq, ts FROM op WHERE id=?", r.c.ID).Scan(&s.seq, &ts)
	switch {
	case err == nil && ts != r.c.Time.UnixNano():
		return true, fmt.Errorf("%s is the id of another checkpoint there", r.c.ID)
	case err == nil && c.marks:
		return true, c.mark(ctx, tx, s.seq, r)
	case err == nil || errors.Is(err, sql.ErrNoRows) && r.sent:
		return true, nil
	case !errors.Is(err, sql.ErrNoRows):
		return false, err
	}
	for hash, p := range r.load { // a purge that ends after this comes to this store later
		kept, err := one[bool](ctx, c.from.r, "SELECT EXISTS (SELECT 1 FROM content WHERE hash=? AND codec IS NOT NULL)", hash[:])
		if err == nil && !kept && len(p.pieces) > 0 {
			err = errMoved
		}
		if err != nil {
			return false, err
		}
	}
	last, err := tx.latest(ctx, s.op)
	if err != nil {
		return false, err
	}
	s.id, s.seq, s.contentID = r.c.ID, last.op+1, last.content
	if s.added = opBytes + changeBytes*int64(len(s.op.Changes)); r.hole {
		s.seq++
		if err := tx.putGone(ctx, r, s.seq-1); err != nil {
			return false, err
		}
	}
	turn, err := c.putTurns(ctx, tx, r, last.session, s.seq-1)
	if err != nil {
		return false, err
	}
	undoOf, err1 := s.numberOf(ctx, tx, r.c.UndoOf, r.after[0])
	restoreOf, err2 := s.numberOf(ctx, tx, r.c.RestoreOf, r.after[1])
	if err := errors.Join(err1, err2); err != nil {
		return false, err
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
			err = c.putSealed(ctx, tx, s, p)
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
	if err == nil {
		err = tx.putTrashOf(ctx, r, s.seq)
	}
	if err != nil {
		return false, err
	}
	return false, s.fits(ctx, tx)
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
		var there bool
		if there, err = one[bool](ctx, tx, "SELECT EXISTS (SELECT 1 FROM op WHERE seq=?)", seq-1); !there {
			return seq - 1, err
		}
		seq = 0
	}
	if seq == 0 {
		seq = takenByRetention
	}
	return seq, err
}

// mark gives the operation seq the marks, the outcome and the trash of r.
func (c *copier) mark(ctx context.Context, tx *tx, seq int64, r *record) error {
	err := tx.exec(ctx, "UPDATE op SET outcome=?, pin=?, label=? WHERE seq=?", outcomeCode(r.c.Outcome), count(r.c.Pinned), orNull(r.c.Label), seq)
	if err == nil {
		err = tx.undo(ctx, seq)
	}
	if err == nil {
		err = tx.exec(ctx, "DELETE FROM trash WHERE op=?", seq)
	}
	if err == nil {
		err = tx.putTrashOf(ctx, r, seq)
	}
	return err
}

// putGone notes that the number hole stands for what retention took before r.
func (tx *tx) putGone(ctx context.Context, r *record, hole int64) error {
	for _, g := range r.sessions {
		l, err := tx.latest(ctx, &Op{Principal: g.principal, Session: g.name})
		if err == nil {
			err = tx.exec(ctx, `UPDATE session SET gone=?, gone_ts=CASE WHEN gone_ts > ? THEN gone_ts ELSE ? END WHERE id=?`,
				hole, g.ts, g.ts, l.session)
		}
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
	if c.holes && len(r.turns) > 0 && r.gone < r.seq {
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

// putTrashOf writes the entries of the trash that r has. op is the number of r here.
func (tx *tx) putTrashOf(ctx context.Context, r *record, op int64) error {
	for i := range r.trash {
		if err := tx.putTrash(ctx, &r.trash[i], op); err != nil {
			return err
		}
	}
	return nil
}

// putSealed writes the rows of a content that is encrypted, with its key, as they are.
func (c *copier) putSealed(ctx context.Context, tx *tx, s *save, p *parcel) error {
	if n := len(p.pieces); n == 0 || p.pieces[n-1].body != nil {
		return nil
	}
	var base *stored
	for _, one := range p.pieces {
		st := &stored{hash: one.row.Hash, size: one.row.Size, depth: -1}
		err := tx.QueryRowContext(ctx, "SELECT id, coalesce(depth, -1), coalesce(key, 0) FROM content WHERE hash=?", st.hash[:]).
			Scan(&st.id, &st.depth, &st.key)
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		switch {
		case err != nil || st.depth >= 0:
		case one.body != nil:
			st.content = one.body
			err = s.put(ctx, tx, st, nil, "")
		case one.row.Name != "" && s.large[st.hash] == nil:
			err = errAgain
		default:
			row := one.row
			if p := s.large[st.hash]; p != nil {
				row.Name = p.row.Name
			}
			if row.Key, err = c.key(ctx, tx, row.Key); err == nil {
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

// key gives the number in to of the key that has the number id in from.
func (c *copier) key(ctx context.Context, tx *tx, id int64) (to int64, err error) {
	wrapped, err := one[[]byte](ctx, c.from.r, "SELECT wrapped FROM seal WHERE id=?", id)
	if err == nil && wrapped == nil {
		err = &CorruptError{"", "its key is missing"}
	}
	if err == nil {
		to, err = one[int64](ctx, tx, "SELECT id FROM seal WHERE wrapped=?", wrapped)
	}
	if err == nil && to == 0 {
		to, err = one[int64](ctx, tx, "INSERT INTO seal(wrapped) VALUES(?) RETURNING id", wrapped)
	}
	return to, err
}

// rest begins the turns in which nothing was done yet. Left is a turn of a session that saved something before it which is not copied: they
// would change places.
func (c *copier) rest(ctx context.Context) error {
	if c.r.Waiting > 0 {
		return nil // they come after these
	}
	var turns []turnRow
	var who []Op
	err := c.from.view(ctx, func(h *history) error {
		w, err := h.scope(ctx, c.who, "t.session")
		if err != nil {
			return err
		}
		const newest = "coalesce((SELECT max(seq) FROM op WHERE op.session=t.session), 0)"
		w.and("t.after >= "+newest+" AND ? >= "+newest, c.through)
		const begun = "SELECT s.principal, s.name, t.ts, t.name FROM turn t JOIN session s ON s.id=t.session"
		return each(ctx, h.q, begun+w.sql()+" ORDER BY t.id", w.args, func(row scanner) error {
			var t turnRow
			var op Op
			err := row.Scan(&op.Principal, &op.Session, &t.ts, &t.name)
			turns, who = append(turns, t), append(who, op)
			return err
		})
	})
	if err != nil || len(turns) == 0 {
		return err
	}
	return c.to.write(ctx, "copying turns", true, func(ctx context.Context, tx *tx) error {
		for i, t := range turns {
			last, err := tx.latest(ctx, &who[i])
			if err == nil {
				_, err = tx.beginAs(ctx, t, last.session, last.op)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
