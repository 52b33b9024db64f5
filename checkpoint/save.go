package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Save stores op. With Strict durability it is on stable storage when Save returns; the caller makes the change after that, not
// before. An error means that nothing was stored and the change must not be made.
func (d *DB) Save(ctx context.Context, op Op) (Saved, error) {
	if err := d.enter(); err != nil {
		return Saved{}, err
	}
	defer d.active.Done()
	skips, err := op.check(&d.o, d.mem.find)
	if err != nil {
		return Saved{}, err
	}
	var need int64
	for i := range op.Changes {
		need += int64(len(op.Changes[i].Content) + len(op.Changes[i].AfterContent))
	}
	if err := d.keep.room(ctx, need); err != nil {
		return Saved{}, err
	}
	// What prepare found out may be overtaken by another process that cleans the store. That is rare; the last try
	// relies on nothing.
	for try := 0; ; try++ {
		s := &save{d: d, op: &op, blind: try >= 3}
		err := s.prepare(ctx)
		if err == nil {
			err = d.com.do(ctx, s.write)
		}
		if err != nil {
			s.discard()
		}
		if errors.Is(err, errStale) && !s.blind {
			continue
		}
		if err != nil {
			return Saved{}, fmt.Errorf("saving checkpoint: %w", err)
		}
		s.remember()
		d.keep.saved(s.bytes)
		return Saved{idOf(s.seq), append(skips, s.missing...), s.trashed}, nil
	}
}

// save is one try to store an Op.
type save struct {
	d     *DB
	op    *Op
	blind bool // rely on nothing but the transaction
	gen   int64
	parts []part
	// files lists external files that were written; unused those whose content turned out to be there already.
	files, unused []string
	seq           int64
	bytes         int64
	missing       []Skip
	trashed       []Trashed
}

// part is one content of an Op on its way into the store.
type part struct {
	ver   *version
	known bool // found stored, in the save's generation
	packed
	key  int64  // seal
	file string // with codecExt
}

func (s *save) prepare(ctx context.Context) error {
	s.gen = s.d.mem.generation()
	for i := range s.op.Changes {
		c := &s.op.Changes[i]
		var base *version
		if !s.blind && (c.Content != nil || c.AfterContent != nil) {
			var err error
			if base, err = s.d.newest(ctx, c.Path, s.gen, max(len(c.Content), len(c.AfterContent))); err != nil {
				return err
			}
		}
		if c.Content != nil {
			v, err := s.add(ctx, c.Path, c.Before.Hash, c.Content, base)
			if err != nil {
				return err
			}
			base = v
		}
		if c.AfterContent != nil && c.After.Hash != c.Before.Hash {
			if _, err := s.add(ctx, c.Path, c.After.Hash, c.AfterContent, base); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *save) add(ctx context.Context, path, hx string, content []byte, base *version) (*version, error) {
	h, err := parseHash(hx)
	if err != nil {
		return nil, err
	}
	if base != nil && base.h == h {
		if base.id != 0 { // 0: an earlier part of this save
			s.parts = append(s.parts, part{ver: base, known: true})
		}
		return base, nil
	}
	for i := range s.parts {
		if s.parts[i].ver.h == h { // a move or a copy: once is enough
			return s.parts[i].ver, nil
		}
	}
	p := part{ver: &version{path: path, h: h, content: content, gen: s.gen}}
	if !s.blind {
		depth, stored, err := s.d.storedDepth(ctx, h)
		if err != nil {
			return nil, err
		}
		p.known, p.ver.depth = stored, depth
	}
	if !p.known {
		p.packed = s.d.pack.pack(content, base)
		p.ver.depth = p.depth
		if s.d.seal.on() {
			if p.z, p.key, err = s.d.seal.seal(ctx, s.d, h, p.packed.codec, p.z); err != nil {
				return nil, err
			}
			p.codec |= codecSealed
		}
		s.bytes += int64(len(p.z))
		if len(p.z) > extAbove {
			name, err := s.d.writeExt(h, p.z)
			if err != nil {
				return nil, err
			}
			s.files = append(s.files, name)
			p.file = name
			p.codec |= codecExt
		}
	}
	s.parts = append(s.parts, p)
	return p.ver, nil
}

// write runs inside the transaction.
func (s *save) write(ctx context.Context, c *committer) error {
	if c.gen != s.gen {
		if !s.blind {
			return errStale
		}
		s.gen = c.gen
	}
	op := s.op
	session, err := c.session(ctx, op.Principal, op.Session)
	if err != nil {
		return err
	}
	tool, err := c.word(ctx, op.Tool)
	if err != nil {
		return err
	}
	kind, err := c.word(ctx, op.Kind)
	if err != nil {
		return err
	}
	var turn, label any
	if op.Turn != "" {
		if turn, err = c.turn(ctx, session, op.Turn); err != nil {
			return err
		}
	}
	if op.Label != "" {
		label = op.Label
	}
	var undoOf, restoreOf any
	if op.UndoOf != "" {
		undoOf, _ = op.UndoOf.seq() // checked by Op.check
	}
	if op.RestoreOf != "" {
		restoreOf, _ = op.RestoreOf.seq()
	}
	ids := map[string]int64{}
	s.missing, s.trashed = nil, nil
	s.unused = s.unused[:0]
	for i := range s.parts {
		p := &s.parts[i]
		if err := s.writePart(ctx, c, p); err != nil {
			return err
		}
		p.ver.gen = s.gen
		ids[p.ver.h.String()] = p.ver.id
	}
	s.seq, err = c.insert(ctx, "INSERT INTO op(ts, session, turn, tool, kind, label, undo_of, restore_of) VALUES(?,?,?,?,?,?,?,?)",
		op.Time.UnixNano(), session, turn, tool, kind, label, undoOf, restoreOf)
	if err != nil {
		return err
	}
	for i := range op.Changes {
		if err := s.writeChange(ctx, c, i, ids); err != nil {
			return err
		}
	}
	return s.writeTrash(ctx, c)
}

// writeTrash makes the entries of what this operation puts into the trash.
func (s *save) writeTrash(ctx context.Context, c *committer) error {
	for i := range s.op.Changes {
		ch := &s.op.Changes[i]
		if ch.Trash == nil {
			continue
		}
		if ch.Trash.Parked == "" && (ch.Skipped != "" || s.isMissing(ch.Path)) {
			continue // there would be nothing to bring back
		}
		t := *ch.Trash
		t.Principal, t.Session, t.Path, t.Checkpoint = s.op.Principal, s.op.Session, ch.Path, idOf(s.seq)
		t.Kind, t.Size, t.Deleted = ch.Before.Kind, max(t.Size, ch.Before.Size), s.op.Time
		if err := t.complete(); err != nil {
			return err
		}
		if err := c.putTrash(ctx, &t, s.seq); err != nil {
			return err
		}
		s.trashed = append(s.trashed, t)
	}
	return nil
}

func (s *save) isMissing(path string) bool {
	for _, m := range s.missing {
		if m.Path == path {
			return true
		}
	}
	return false
}

func (s *save) writePart(ctx context.Context, c *committer, p *part) error {
	if p.known {
		if p.ver.id != 0 {
			return nil
		}
		id, err := c.object(ctx, p.ver.h, int64(len(p.ver.content)))
		p.ver.id = id
		return err
	}
	id, err := c.object(ctx, p.ver.h, int64(len(p.ver.content)))
	if err != nil {
		return err
	}
	var depth int
	err = c.row(ctx, "SELECT depth FROM data WHERE id=?", id).Scan(&depth)
	if err == nil {
		p.ver.id, p.ver.depth = id, depth
		if p.codec&codecExt != 0 {
			s.unused = append(s.unused, p.file)
		}
		return nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var base any
	if p.base != nil {
		if p.base.id == 0 || p.base.depth+1 > maxDepth {
			return errStale // the base turned out to be another row than was thought
		}
		base, p.ver.depth = p.base.id, p.base.depth+1
	}
	var key any
	if p.key != 0 {
		key = p.key
	}
	z := p.z
	if p.codec&codecExt != 0 {
		z = []byte(p.file)
	}
	err = c.exec(ctx, "INSERT INTO data(id, codec, base, depth, key, bytes, z) VALUES(?,?,?,?,?,?,?)",
		id, int64(p.codec), base, p.ver.depth, key, len(p.z), z)
	p.ver.id = id
	return err
}

func (c *committer) object(ctx context.Context, h hash, size int64) (int64, error) {
	return c.intern(ctx, "SELECT id FROM object WHERE hash=?1", "INSERT INTO object(hash, size) VALUES(?1,?2)", h[:], size)
}

func (s *save) writeChange(ctx context.Context, c *committer, i int, ids map[string]int64) error {
	ch := &s.op.Changes[i]
	path, err := c.path(ctx, ch.Path)
	if err != nil {
		return err
	}
	role, err := c.word(ctx, ch.Role)
	if err != nil {
		return err
	}
	var skipped any
	if ch.Skipped != "" {
		skipped = ch.Skipped
	} else if ch.Before.Kind == File && ch.Content == nil {
		// Only the hash was given: fine if the content is here already, otherwise it has to be said.
		h, err := parseHash(ch.Before.Hash)
		if err != nil {
			return err
		}
		var n int
		if err := c.row(ctx, "SELECT count(*) FROM object o JOIN data d ON d.id=o.id WHERE o.hash=?", h[:]).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			skipped = skipNotGiven
			s.missing = append(s.missing, Skip{ch.Path, skipNotGiven, ch.Before.Size})
		}
	}
	args := make([]any, 0, 17)
	args = append(args, s.seq, i, path, role, skipped)
	for _, st := range []*State{&ch.Before, &ch.After} {
		kind, _ := kindCode(st.Kind)
		attr, err := c.attr(ctx, st)
		if err != nil {
			return err
		}
		var obj, size, target any
		switch {
		case st.Hash != "":
			id, ok := ids[st.Hash]
			if !ok {
				h, err := parseHash(st.Hash)
				if err != nil {
					return err
				}
				if id, err = c.object(ctx, h, st.Size); err != nil {
					return err
				}
				ids[st.Hash] = id
			}
			obj = id
		case st.Size != 0:
			size = st.Size
		}
		if st.Kind == Symlink {
			target = []byte(st.Target)
		}
		args = append(args, kind, attr, timeNs(st.ModTime), obj, size, target)
	}
	return c.exec(ctx, "INSERT INTO change VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", args...)
}

// remember keeps the newest content of each path as the base of the next delta.
func (s *save) remember() {
	for i := range s.parts {
		s.d.mem.add(s.parts[i].ver)
	}
	for _, f := range s.unused {
		s.d.removeExt(f)
	}
}

// discard removes what a failed try left behind.
func (s *save) discard() {
	for _, f := range s.files {
		s.d.removeExt(f)
	}
}

// newest returns the newest stored content of path for use as a base: from memory, else from the store. nil when there is
// none or it would not pay.
func (d *DB) newest(ctx context.Context, path string, gen int64, size int) (*version, error) {
	if v := d.mem.find(path); v != nil && v.gen == gen {
		return v, nil
	}
	if size > maxDelta {
		return nil, nil
	}
	v := &version{path: path, gen: gen}
	var h []byte
	var have int64
	// The newest change of the path; of its two states the later one that has content.
	err := d.r.QueryRowContext(ctx, `SELECT o.id, o.hash, o.size, a.depth FROM
		(SELECT bobj, aobj FROM change WHERE path=(SELECT id FROM path WHERE path=?) ORDER BY op DESC LIMIT 1) c
		JOIN data a ON a.id IN (c.aobj, c.bobj) JOIN object o ON o.id=a.id ORDER BY a.id=c.aobj DESC LIMIT 1`,
		[]byte(path)).Scan(&v.id, &h, &have, &v.depth)
	if errors.Is(err, sql.ErrNoRows) || (err == nil && have > maxDelta) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	copy(v.h[:], h)
	v.content, err = d.content(ctx, v.h)
	if err != nil {
		// Damaged, sealed or just cleaned away: then it is no base. Restores report it; a save must not fail for it.
		return nil, nil
	}
	return v, nil
}

// storedDepth reports whether content with this hash is in the store and how deep its chain is.
func (d *DB) storedDepth(ctx context.Context, h hash) (depth int, stored bool, err error) {
	err = d.r.QueryRowContext(ctx, "SELECT d.depth FROM object o JOIN data d ON d.id=o.id WHERE o.hash=?", h[:]).Scan(&depth)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return depth, err == nil, err
}

// Settle says what became of the operation id. It need not be called: an operation that nobody speaks about is presumed to
// have taken place. Committed costs nothing now; it is written along with the next save. Aborted and Foreign are
// durable on return.
func (d *DB) Settle(ctx context.Context, id ID, o Outcome) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	seq, err := id.seq()
	if err != nil {
		return err
	}
	switch o {
	case Committed:
		d.com.omu.Lock()
		d.com.outcomes[seq] = o
		d.com.omu.Unlock()
		return nil
	case Aborted, Foreign:
	default:
		return &BadOpError{"", fmt.Sprintf("%q is no outcome", o)}
	}
	err = d.com.do(ctx, func(ctx context.Context, c *committer) error {
		var n int64
		if err := c.row(ctx, "SELECT seq FROM op WHERE seq=?", seq).Scan(&n); errors.Is(err, sql.ErrNoRows) {
			return ErrNotFound
		} else if err != nil {
			return err
		}
		if o == Aborted { // then it put nothing into the trash either
			if err := c.exec(ctx, "UPDATE trash SET phase=3 WHERE op=? AND phase<>3", seq); err != nil {
				return err
			}
		}
		return c.exec(ctx, "UPDATE op SET outcome=? WHERE seq=?", outcomeCode(o), seq)
	})
	if err != nil {
		return fmt.Errorf("settling checkpoint: %w", err)
	}
	return nil
}

// update runs one statement that must change a row.
func (d *DB) update(ctx context.Context, doing, q string, args ...any) error {
	err := d.com.do(ctx, func(ctx context.Context, c *committer) error {
		s, err := c.stmt(ctx, q)
		if err != nil {
			return err
		}
		r, err := s.ExecContext(ctx, args...)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, ErrNotFound)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

// BeginTurn marks the beginning of a turn: everything that the session saves from here on belongs to it or to a later
// one. Beginning a turn again changes nothing; began says whether this call was the one.
func (d *DB) BeginTurn(ctx context.Context, who Scope, name string) (began bool, err error) {
	if err := d.enter(); err != nil {
		return false, err
	}
	defer d.active.Done()
	if name == "" || len(name) > maxName {
		return false, &BadOpError{"", "a turn needs a name of reasonable length"}
	}
	var n int
	err = d.r.QueryRowContext(ctx, "SELECT count(*) FROM turn WHERE name=? AND session=(SELECT id FROM session WHERE principal=? AND name=?)",
		name, who.Principal, who.Session).Scan(&n)
	if err == nil && n > 0 {
		return false, nil // a process for every call asks for every call: no transaction for that
	}
	err = d.com.do(ctx, func(ctx context.Context, c *committer) error {
		s, err := c.session(ctx, who.Principal, who.Session)
		if err != nil {
			return err
		}
		if err := c.row(ctx, "SELECT count(*) FROM turn WHERE session=? AND name=?", s, name).Scan(&n); err != nil {
			return err
		}
		began = n == 0
		_, err = c.turn(ctx, s, name)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("beginning turn: %w", err)
	}
	return began, nil
}

// Pin protects a checkpoint from retention; Unpin takes that back.
func (d *DB) Pin(ctx context.Context, id ID, who Scope) error { return d.mark(ctx, id, who, "pin=1") }

// Unpin lets retention have the checkpoint.
func (d *DB) Unpin(ctx context.Context, id ID, who Scope) error {
	return d.mark(ctx, id, who, "pin=0")
}

// Label names the checkpoint; an empty label takes the name away.
func (d *DB) Label(ctx context.Context, id ID, who Scope, label string) error {
	if len(label) > maxName {
		return &BadOpError{"", "the label is too long"}
	}
	if label == "" {
		return d.mark(ctx, id, who, "label=NULL")
	}
	return d.mark(ctx, id, who, "label=?2", label)
}

func (d *DB) mark(ctx context.Context, id ID, who Scope, set string, args ...any) error {
	c, err := d.Get(ctx, id, who)
	if err != nil {
		return err
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	seq, err := c.ID.seq()
	if err != nil {
		return err
	}
	return d.update(ctx, "marking checkpoint", "UPDATE op SET "+set+" WHERE seq=?1", append([]any{seq}, args...)...)
}

func (v *versions) generation() int64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.gen
}
