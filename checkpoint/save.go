package checkpoint

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"moltisfs/checkpoint/blob"
	"moltisfs/internal/ids"
	"moltisfs/internal/outage"
)

// Save stores op in one transaction. It is on stable storage when Save returns. The caller makes the
// change after that, not before. After an error nothing is stored, and the change must not be made.
func (d *DB) Save(ctx context.Context, op Op) (Saved, error) {
	skips, err := op.check(&d.o)
	if err != nil {
		return Saved{}, err
	}
	if err := d.enter(); err != nil {
		return Saved{}, err
	}
	defer d.active.Done()
	var s *save
	err = d.pack.NeedKey(ctx) // it would need a transaction of its own
	for try := 0; err == nil; try++ {
		s = &save{d: d, op: &op}
		if err = s.transact(ctx, s.run); err == nil {
			break
		}
		if full, ok := errors.AsType[*FullError](err); ok && try < 2 { // once more if others fill the store again
			err = d.makeRoom(ctx, full)
		}
	}
	if err != nil {
		return Saved{}, fmt.Errorf("saving checkpoint: %w", d.sayUnsent(ctx, d.c.failed(err)))
	}
	d.saved()
	return Saved{s.id, append(skips, s.missing...), s.trashed}, nil
}

// save is an Op on its way into the store.
type save struct {
	d     *DB
	op    *Op
	come  []piece // contents that come packed from another store, and do not lie in the catalog
	seq   int64
	id    ID
	large map[blob.Hash]*packed
	names []string        // in the blob store, of those of large that lie there
	named map[string]bool // in a row of this save
	swept int64           // see DB.removeUnnamed: as it was before these were put there
	added int64           // bytes that the rows and contents take, about
	// contentID is the number of the newest content.
	contentID int64
	missing   []Skip
	trashed   []Trashed
}

// stored is the row of a content.
type stored struct {
	id, key, size int64
	depth         int // -1: its bytes are not stored
	hash          blob.Hash
	content       []byte     // nil: not to be stored, or not looked at
	rows          []blob.Row // its bytes are to be made of these, where content is nil
}

// small is the size of a content that fits into the catalog, however it is packed. Larger ones are packed before the transaction.
const small = blob.StoreAbove - 1<<10

// packed is a content that was packed before the transaction, as a delta on base, nil for none.
type packed struct {
	content []byte
	base    *stored
	row     blob.Row
	of      string // of a row that came packed: its name where it came from
}

// errAgain says that the rows have changed so much since the contents of a save were packed that they are packed anew.
var errAgain = fmt.Errorf("%w: retention or a purge came in between", ErrBusy)

// transact runs fn, which writes s, in a transaction. Before that it packs the large contents and puts them into the blob store: meanwhile
// nobody waits for this save. Retention may take them there, since no row names them yet, but says so in the catalog: see DB.removeUnnamed.
// Then they are put there once more, under other names.
func (s *save) transact(ctx context.Context, fn func(context.Context, *tx) error) (err error) {
	for try := 0; try == 0 || try < 10 && errors.Is(err, errAgain); try++ {
		*s = save{d: s.d, op: s.op, come: s.come, large: map[blob.Hash]*packed{}, named: map[string]bool{}}
		if err = s.ahead(ctx); err == nil {
			err = s.d.transact(ctx, func(ctx context.Context, tx *tx) error {
				if len(s.names) > 0 {
					if swept, err := one[int64](ctx, tx, sweptQuery); err != nil || swept != s.swept {
						return cmp.Or(err, errAgain)
					}
				}
				return fn(ctx, tx)
			})
		}
		var unnamed []string
		if !errors.As(err, new(*SyncError)) { // a power cut may bring back what the disk did not confirm, and that names them
			unnamed = slices.DeleteFunc(s.names, func(name string) bool { return err == nil && s.named[name] })
		}
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		for _, name := range unnamed {
			s.d.blobs.Delete(soon, name) //nolint:errcheck // gc takes what stays for rubbish
		}
		cancel()
	}
	return err
}

// ahead packs the contents that are not small and not stored yet, and puts into the blob store what is too large for the catalog.
func (s *save) ahead(ctx context.Context) error {
	var changes []*Change
	for i := range s.op.Changes {
		if ch := &s.op.Changes[i]; max(len(ch.Content), len(ch.AfterContent)) > small {
			changes = append(changes, ch)
		}
	}
	if len(changes)+len(s.come) == 0 {
		return nil
	}
	// A store that takes nothing at present says so before anything is put there.
	if err := s.d.alone(ctx, func(context.Context, *conn) error { return s.d.c.inPlace() }); err != nil {
		return err
	}
	err := s.d.snapshot(ctx, func(ctx context.Context, q querier) (err error) {
		for _, ch := range changes {
			before, after, err := sides(ctx, q, ch)
			if err != nil {
				return err
			}
			for _, c := range []*stored{before, after} {
				if c == nil || c.depth >= 0 || len(c.content) <= small || s.large[c.hash] != nil {
					continue
				}
				base := before
				if c == before {
					base = nil
				}
				if base, err = s.base(ctx, q, c, base, ch.Path); err != nil {
					return err
				}
				s.large[c.hash] = &packed{content: c.content, base: base}
			}
		}
		for _, p := range s.come {
			there, err := one[bool](ctx, q, "SELECT EXISTS (SELECT 1 FROM content WHERE hash=? AND depth IS NOT NULL)", p.row.Hash[:])
			if err != nil {
				return err
			}
			if !there {
				s.large[p.row.Hash] = &packed{content: p.body, row: p.row, of: p.row.Name}
			}
		}
		s.swept, err = one[int64](ctx, q, sweptQuery)
		return err
	})
	for hash, p := range s.large {
		switch {
		case err != nil:
		case p.content != nil:
			if p.row, err = s.packed(ctx, hash, p.content, p.base); p.row.Codec&blob.CodecDelta == 0 {
				p.base = nil
			}
		default: // it is packed already
			p.row.Name = blob.NewName(hash)
			s.names = append(s.names, p.row.Name)
			err = s.d.blobs.Put(ctx, p.row.Name, p.row.Z)
		}
	}
	return err
}

func (s *save) run(ctx context.Context, tx *tx) error {
	op := s.op
	last, err := tx.latest(ctx, op)
	if err != nil {
		return err
	}
	session := last.session
	if op.Kind == KindImport && op.Label != "" {
		// Two processes may import one folder at once; inside the transaction nobody comes in between.
		n, err := one[int](ctx, tx, `SELECT count(*) FROM op WHERE label=? AND kind=?
			AND session IN (SELECT id FROM session WHERE principal=?)`, op.Label, op.Kind, op.Principal)
		if err != nil || n > 0 {
			return errors.Join(err, ErrImported)
		}
	}
	var turn int64
	if op.Turn != "" {
		// The last one of that name goes on.
		turn, err = one[int64](ctx, tx, "SELECT coalesce(max(id), 0) FROM turn WHERE session=? AND name=?", session, op.Turn)
		if err == nil && turn == 0 {
			turn, err = tx.newTurn(ctx, last, op.Turn, s.d.o.Now().UnixNano())
		}
		if err != nil {
			return err
		}
	}
	undoOf, err := tx.seqOf(ctx, op.UndoOf)
	if err != nil {
		return err
	}
	restoreOf, err := tx.seqOf(ctx, op.RestoreOf)
	if err != nil {
		return err
	}
	run := op.Run
	if run == 0 && undoOf != 0 {
		if run, err = one[int64](ctx, tx, "SELECT coalesce(run, 0) FROM op WHERE seq=?", undoOf); err != nil {
			return err
		}
	}
	s.seq, s.contentID = last.op+1, last.content
	s.added = opBytes + changeBytes*int64(len(op.Changes))
	s.id = ID(ids.New(checkpointPrefix, s.seq))
	err = tx.exec(ctx, `INSERT INTO op(seq, id, ts, session, turn, tool, kind, label, undo_of, restore_of, run)
		VALUES(?,?,?,?,?,?,?,?,?,?,?)`, s.seq, s.id, op.Time.UnixNano(), session, orNull(turn), op.Tool,
		op.Kind, orNull(op.Label), orNull(undoOf), orNull(restoreOf), orNull(run))
	if err == nil && undoOf != 0 {
		err = tx.undo(ctx, s.seq)
	}
	if err != nil {
		return err
	}
	if op.Tag != "" {
		const open = "INSERT INTO open_op(op, tag, steps) VALUES(?,?,?)"
		if err := tx.exec(ctx, open, s.seq, op.Tag, op.Steps); err != nil {
			return err
		}
	}
	for i := range op.Changes {
		if err := s.change(ctx, tx, i, session); err != nil {
			return err
		}
	}
	if err := s.d.unsent(ctx, tx, true, "seq=?", s.seq); err != nil {
		return err
	}
	return s.fits(ctx, tx)
}

// fits is a *FullError if the store takes more than MaxBytes.
func (s *save) fits(ctx context.Context, tx *tx) error {
	used, err := s.d.c.grown(ctx, tx, s.added)
	if err != nil {
		return err
	}
	if used > s.d.o.MaxBytes {
		return &FullError{Bytes: used, Max: s.d.o.MaxBytes}
	}
	return nil
}

// seqOf is the number of the checkpoint id; of "" it is 0.
func (tx *tx) seqOf(ctx context.Context, id ID) (int64, error) {
	if id == "" {
		return 0, nil
	}
	id, err := ParseID(string(id))
	if err != nil {
		return 0, err
	}
	seq, err := one[int64](ctx, tx, "SELECT seq FROM op WHERE id=?", id)
	if err == nil && seq == 0 {
		err = &BadOpError{"", fmt.Sprintf("%s is not in the store", id)}
	}
	return seq, err
}

// latest has the numbers of a session, and of the newest checkpoint and content, 0 for none.
type latest struct{ session, op, content int64 }

// latest gives the numbers for the session of op, which it makes if there is none.
func (tx *tx) latest(ctx context.Context, op *Op) (l latest, err error) {
	err = tx.QueryRowContext(ctx, `SELECT coalesce((SELECT id FROM session WHERE principal=? AND name=?), 0),
		(SELECT coalesce(max(seq), 0) FROM op), (SELECT coalesce(max(id), 0) FROM content)`,
		op.Principal, op.Session).Scan(&l.session, &l.op, &l.content)
	if err == nil && l.session == 0 {
		const session = "INSERT INTO session(principal, name) VALUES(?,?) RETURNING id"
		l.session, err = one[int64](ctx, tx, session, op.Principal, op.Session)
	}
	return l, err
}

// newTurn begins a turn after the newest checkpoint.
func (tx *tx) newTurn(ctx context.Context, last latest, name string, now int64) (int64, error) {
	return one[int64](ctx, tx, "INSERT INTO turn(session, name, after, ts) VALUES(?,?,?,?) RETURNING id",
		last.session, name, last.op, now)
}

// change writes the i-th change, its contents and its entry in the trash.
func (s *save) change(ctx context.Context, tx *tx, i int, session int64) error {
	ch := &s.op.Changes[i]
	var path int64
	known := false
	err := tx.QueryRowContext(ctx, `SELECT id, EXISTS (SELECT 1 FROM known WHERE session=? AND known.path=path.id)
		FROM path WHERE path=?`, session, []byte(ch.Path)).Scan(&path, &known)
	if errors.Is(err, sql.ErrNoRows) {
		path, err = one[int64](ctx, tx, "INSERT INTO path(path) VALUES(?) RETURNING id", []byte(ch.Path))
	}
	if err == nil && !known {
		err = tx.exec(ctx, "INSERT INTO known(session, path) VALUES(?,?)", session, path)
	}
	if err != nil {
		return err
	}
	before, after, err := s.contents(ctx, tx, ch)
	if err != nil {
		return err
	}
	skipped := ch.Skipped
	if skipped == "" && ch.Before.Kind == File && ch.Content == nil && before.depth < 0 {
		// Only the hash was given: fine if the content is here already, otherwise it has to be said.
		skipped = skipHashOnly
		s.missing = append(s.missing, Skip{ch.Path, skipHashOnly, ch.Before.Size})
	}
	args := append(make([]any, 0, 24), s.seq, i, path, ch.Role, orNull(skipped))
	for _, side := range []struct {
		st *State
		c  *stored
	}{{&ch.Before, before}, {&ch.After, after}} {
		var target, obj any
		size := side.st.Size // of a content it is in its row
		if side.c != nil {
			if obj = side.c.id; side.st.Tail == "" {
				size = 0
			}
		}
		if side.st.Kind == Symlink {
			target = []byte(side.st.Target)
		}
		args = append(args, kindCode(side.st.kind()), timeNs(side.st.ModTime), obj, orNull(size), target)
	}
	args = append(append(args, ch.Before.metadata(State{})...), ch.After.metadata(ch.Before)...)
	args = append(args, nameOrNull(ch.To), nameOrNull(ch.From), orNull(ch.Identity))
	err = tx.exec(ctx, `INSERT INTO change(op, n, path, role, skipped,
		bkind, bmtime, bobj, bsize, btarget, akind, amtime, aobj, asize, atarget,
		bmode, buid, bgid, bxattrs, amode, auid, agid, axattrs, moved_to, moved_from, ident)
		VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`, args...)
	if err != nil || ch.Trash == nil {
		return err
	}
	t := *ch.Trash
	t.Principal, t.Session, t.Path, t.Checkpoint = s.op.Principal, s.op.Session, ch.Path, s.id
	t.Kind, t.Size, t.Deleted = ch.Before.Kind, max(t.Size, ch.Before.Size), s.op.Time
	t.ID, t.Moving = "", true
	if err := t.complete(); err != nil {
		return err
	}
	t.Agent = false
	err = tx.putTrash(ctx, &t, s.seq)
	s.trashed = append(s.trashed, t)
	return err
}

// metadata is mode, owner, group and extended attributes as columns: NULL where nothing is, or the
// same as before.
func (s *State) metadata(before State) []any {
	out := make([]any, 4)
	if s.kind() == Absent {
		return out
	}
	was := before.kind() != Absent
	for i, v := range [][2]int64{{int64(s.Mode), int64(before.Mode)},
		{int64(s.UID), int64(before.UID)}, {int64(s.GID), int64(before.GID)}} {
		if !was || v[0] != v[1] {
			out[i] = v[0]
		}
	}
	if !sameXattrs(*s, before) {
		out[3] = encodeXattrs(s.Xattrs)
	}
	return out
}

// contents finds or makes the rows of the contents before and after ch, nil for a state without a hash. A new content becomes a delta: that
// after the change on that before it, that before it on the newest content of the path.
func (s *save) contents(ctx context.Context, tx *tx, ch *Change) (before, after *stored, err error) {
	before, after, err = sides(ctx, tx, ch)
	if err == nil && before != nil {
		err = s.put(ctx, tx, before, nil, ch.Path)
	}
	if err == nil && after != nil && after != before {
		err = s.put(ctx, tx, after, before, ch.Path)
	}
	return before, after, err
}

// sides gives the contents before and after ch, as far as they are in the store; nil for a state without a hash. They are one where the
// contents are the same.
func sides(ctx context.Context, q querier, ch *Change) (before, after *stored, err error) {
	var hashes [2]any
	var sides [2]*stored
	for i, side := range []struct {
		st   *State
		body []byte
	}{{&ch.Before, ch.Content}, {&ch.After, ch.AfterContent}} {
		if side.st.Hash == "" {
			continue
		}
		h, err := blob.ParseHash(side.st.Hash)
		if err != nil {
			return nil, nil, err
		}
		hashes[i], sides[i] = h[:], &stored{hash: h, content: side.body, size: side.st.Size, depth: -1}
		if side.st.Tail != "" {
			sides[i].size = ch.tailSize()
		}
	}
	before, after = sides[0], sides[1]
	if before != nil && after != nil && before.hash == after.hash {
		if before.content == nil {
			before.content = after.content
		}
		after = before
	}
	return before, after, each(ctx, q, "SELECT hash, id, coalesce(depth, -1), coalesce(key, 0) FROM content WHERE hash=? OR hash=?",
		hashes[:], func(row scanner) error {
			var h []byte
			found := stored{}
			err := row.Scan(&h, &found.id, &found.depth, &found.key)
			for _, c := range sides {
				if c != nil && string(c.hash[:]) == string(h) {
					c.id, c.depth, c.key = found.id, found.depth, found.key
				}
			}
			return err
		})
}

// put writes the row of c if there is none, and its bytes if they are given and not stored yet.
func (s *save) put(ctx context.Context, tx *tx, c, before *stored, path string) (err error) {
	switch {
	case c.depth < 0 && c.content != nil:
		err = s.pack(ctx, tx, c, before, path)
	case c.id == 0:
		s.contentID++
		c.id = s.contentID
		s.added += contentBytes
		err = tx.exec(ctx, "INSERT INTO content(id, hash, size) VALUES(?,?,?)", c.id, c.hash[:], c.size)
	}
	if c.content != nil {
		s.d.pack.Retain(c.hash, c.key, c.content)
	}
	return err
}

// pack writes the bytes of c. If they are small they are packed here, else they were.
func (s *save) pack(ctx context.Context, tx *tx, c, before *stored, path string) error {
	if len(c.content) <= small {
		base, err := s.base(ctx, tx, c, before, path)
		if err != nil {
			return err
		}
		r, err := s.packed(ctx, c.hash, c.content, base)
		if err != nil {
			return err
		}
		return s.write(ctx, tx, c, &r, base)
	}
	p := s.large[c.hash]
	if p == nil {
		return errAgain
	}
	base := p.base
	if base != nil { // its row may be another one by now
		base = &stored{hash: base.hash, depth: -1}
		err := tx.QueryRowContext(ctx, "SELECT id, depth, coalesce(key, 0) FROM content WHERE hash=? AND depth IS NOT NULL", base.hash[:]).
			Scan(&base.id, &base.depth, &base.key)
		if errors.Is(err, sql.ErrNoRows) || err == nil && !s.d.pack.MayStandOn(base.key) {
			err = errAgain
		}
		if err != nil {
			return err
		}
	}
	return s.write(ctx, tx, c, &p.row, base)
}

// base gives the content that c is to be a delta on, nil for none: that before it or, where its bytes are not at hand, the newest of the path.
func (s *save) base(ctx context.Context, q querier, c, before *stored, path string) (base *stored, err error) {
	if len(c.content) > blob.MaxDelta {
		return nil, nil
	}
	if base = before; base == nil || base.content == nil {
		base, err = s.newest(ctx, q, path, len(c.content) > small)
	}
	if base != nil && (base.depth >= blob.MaxDepth || !s.d.pack.MayStandOn(base.key)) {
		base = nil
	}
	return base, err
}

// packed gives the row of content, as a delta on base. A base that can't be read is none: a restore reports that, and a save must not fail for it.
func (s *save) packed(ctx context.Context, h blob.Hash, content []byte, base *stored) (r blob.Row, err error) {
	var on []byte
	if base != nil {
		if on = base.content; on == nil {
			on, _ = s.d.unpack(ctx, base.hash, base.rows)
		}
	}
	r, err = s.d.pack.Pack(ctx, h, content, on, 0)
	if r.Name != "" {
		s.names = append(s.names, r.Name)
	}
	return r, err
}

// write writes the row r of c, whose delta stands on base.
func (s *save) write(ctx context.Context, tx *tx, c *stored, r *blob.Row, base *stored) error {
	s.added += contentBytes + r.Bytes
	s.named[r.Name] = true
	var baseID any
	c.key, c.depth = r.Key, 0
	if r.Codec&blob.CodecDelta != 0 {
		baseID, c.depth = base.id, base.depth+1
	}
	if c.id != 0 {
		return tx.exec(ctx, "UPDATE content SET codec=?, base=?, depth=?, key=?, bytes=?, name=?, z=? WHERE id=?",
			int64(r.Codec), baseID, c.depth, orNull(r.Key), r.Bytes, orNull(r.Name), inCatalog(r), c.id)
	}
	s.contentID++
	c.id = s.contentID
	return tx.exec(ctx, `INSERT INTO content(id, hash, size, codec, base, depth, key, bytes, name, z)
		VALUES(?,?,?,?,?,?,?,?,?,?)`, c.id, c.hash[:], r.Size, int64(r.Codec), baseID, c.depth,
		orNull(r.Key), r.Bytes, orNull(r.Name), inCatalog(r))
}

// inCatalog is z of a row: NULL if the bytes are in the blob store.
func inCatalog(r *blob.Row) any {
	if r.Name != "" {
		return nil
	}
	return append([]byte{}, r.Z...)
}

// newest is the newest stored content of the path as a base for the next one; nil if there is none or it has no rows. With far it may lie in the
// blob store: nobody asks that in a transaction.
func (s *save) newest(ctx context.Context, q querier, path string, far bool) (*stored, error) {
	var c *stored
	// Of the two states of the newest change the later one that has content.
	err := each(ctx, q, `SELECT c.id, c.depth, coalesce(c.key, 0), c.hash, c.size FROM
		(SELECT bobj, aobj FROM change WHERE path=(SELECT id FROM path WHERE path=?) ORDER BY op DESC LIMIT 1) n
		JOIN content c ON c.id IN (n.aobj, n.bobj) WHERE c.depth IS NOT NULL
		ORDER BY CASE WHEN c.id=n.aobj THEN 0 ELSE 1 END LIMIT 1`, []any{[]byte(path)}, func(row scanner) error {
		var h []byte
		var size int64
		n := &stored{}
		err := row.Scan(&n.id, &n.depth, &n.key, &h, &size)
		if err == nil && size <= blob.MaxDelta && len(h) == len(n.hash) {
			c, n.hash = n, blob.Hash(h)
		}
		return err
	})
	if err != nil || c == nil {
		return nil, err
	}
	c.rows, err = chain(ctx, q, c.hash)
	if err != nil || !far && slices.ContainsFunc(c.rows, func(r blob.Row) bool { return r.Name != "" }) {
		return nil, nil //nolint:nilerr // as said
	}
	return c, nil
}

// content reads a content and what it is a delta against.
func (d *DB) content(ctx context.Context, q querier, h blob.Hash) ([]byte, error) {
	rows, err := chain(ctx, q, h)
	if err != nil {
		return nil, err
	}
	return d.unpack(ctx, h, rows)
}

// unpack gives the content h that has the rows of its chain.
func (d *DB) unpack(ctx context.Context, h blob.Hash, rows []blob.Row) (out []byte, err error) {
	for i := range slices.Backward(rows) {
		out, err = d.pack.Unpack(ctx, &rows[i], out)
		switch unread := errors.As(err, new(*fs.PathError)) || outage.Is(err); {
		case errors.Is(err, ErrSealed) || unread || err != nil && ctx.Err() != nil: // this says nothing about the bytes
			return nil, err
		case err != nil:
			return nil, &CorruptError{h.String(), err.Error()}
		}
	}
	if sha256.Sum256(out) != h {
		return nil, &CorruptError{h.String(), "the hash is another one"}
	}
	return out, nil
}

// chain gives the row of the content h, and after each row that of the content which it is a delta against.
func chain(ctx context.Context, q querier, h blob.Hash) (rows []blob.Row, err error) {
	// In one statement, hence from one snapshot. A chain is longer than blob.MaxDepth where parts of it came from another store: see copier.
	const chain = `WITH RECURSIVE c(id, codec, base, key, bytes, name, z, size, hash, n) AS (
		SELECT id, codec, base, key, bytes, name, z, size, hash, 0 FROM content WHERE hash=? AND codec IS NOT NULL
		UNION ALL
		SELECT d.id, d.codec, d.base, d.key, d.bytes, d.name, d.z, d.size, d.hash, n+1
		FROM c JOIN content d ON d.id=c.base WHERE n < 4096 AND d.codec IS NOT NULL)
		SELECT codec, coalesce(base, 0), coalesce(key, 0), bytes, coalesce(name, ''), z, size, hash FROM c ORDER BY n`
	var base int64
	err = each(ctx, q, chain, []any{h[:]}, func(row scanner) error {
		var r blob.Row
		var err error
		base, err = scanContent(row, &r)
		rows = append(rows, r)
		return err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading content: %w", err)
	case len(rows) == 0:
		return nil, ErrNoContent
	case base != 0:
		return nil, &CorruptError{h.String(), "the base of its delta is missing"}
	}
	return rows, nil
}

// scanContent reads codec, base, key, bytes, name, z, size and hash of a row, and more that follows.
func scanContent(row scanner, r *blob.Row, more ...any) (base int64, err error) {
	var h []byte
	err = row.Scan(append([]any{&r.Codec, &base, &r.Key, &r.Bytes, &r.Name, &r.Z, &r.Size, &h}, more...)...)
	if len(h) == len(r.Hash) {
		r.Hash = blob.Hash(h)
	}
	return base, err
}

// Content returns the bytes whose SHA-256 is hash, compared with it.
func (d *DB) Content(ctx context.Context, hash string) (b []byte, err error) {
	h, err := blob.ParseHash(hash)
	if err != nil {
		return nil, &BadOpError{"", err.Error()}
	}
	read := func(v *history) (err error) {
		b, err = d.content(ctx, v.q, h)
		return err
	}
	err = d.view(ctx, read)
	if errors.Is(err, ErrSealed) {
		if held := d.pack.Retained(h); held != nil {
			return held, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) { // it may have been moved between the row and the file
		err = d.view(ctx, read)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = &CorruptError{hash, "its file is gone"}
	}
	return b, err
}

// sealRows are the data keys of the catalog.
type sealRows struct{ d *DB }

func (s sealRows) Newest(ctx context.Context) (int64, error) {
	return one[int64](ctx, s.d.r, "SELECT coalesce(max(id), 0) FROM seal")
}

func (s sealRows) Wrapped(ctx context.Context, id int64) ([]byte, error) {
	return one[[]byte](ctx, s.d.r, "SELECT wrapped FROM seal WHERE id=?", id)
}

func (s sealRows) Add(ctx context.Context, wrapped []byte) (id int64, err error) {
	err = s.d.transact(ctx, func(ctx context.Context, tx *tx) error {
		id, err = one[int64](ctx, tx, "INSERT INTO seal(wrapped) VALUES(?) RETURNING id", wrapped)
		return err
	})
	return id, err
}
