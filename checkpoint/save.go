package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"moltisfs/checkpoint/blob"
)

// Save stores op. With Strict durability it is on stable storage when Save returns. The caller
// makes the change after that, not before. After an error nothing is stored, and the change must
// not be made.
func (d *DB) Save(ctx context.Context, op Op) (Saved, error) {
	if err := d.enter(); err != nil {
		return Saved{}, err
	}
	defer d.active.Done()
	if err := d.inPlace(); err != nil { // before its files are missed
		return Saved{}, fmt.Errorf("saving checkpoint: %w", err)
	}
	skips, err := op.check(&d.o, d.mem.Find)
	if err != nil {
		return Saved{}, err
	}
	// Another process may fill or clean the store after room and prepare have looked. The last try
	// after it was cleaned relies on nothing that they found. Room is made again for a while: what
	// never fits is refused there.
	full, stales := false, 0
	for try, start := 0, time.Now(); ; try++ {
		if err := d.keep.room(ctx, &op, full); err != nil {
			return Saved{}, err
		}
		s := &save{d: d, op: &op, again: try > 0, blind: stales >= 3}
		err := s.prepare(ctx)
		if err == nil {
			err = d.com.submit(ctx, &job{kind: shared, run: s.write, grow: s.growth()})
		}
		if err != nil && !errors.As(err, new(*SyncError)) {
			// Not after a SyncError: a power cut may bring back what the disk did not confirm,
			// and that names these files.
			s.discard(s.files)
		}
		full = errors.As(err, new(*FullError))
		stale := errors.Is(err, errStale)
		if stale {
			stales++
			d.mem.Forget()
		}
		if full && (try < 3 || time.Since(start) < logWait) || stale && !s.blind {
			continue
		}
		if err != nil {
			return Saved{}, fmt.Errorf("saving checkpoint: %w", named(err))
		}
		s.remember()
		d.keep.saved()
		return Saved{idOf(s.seq), append(skips, s.missing...), s.trashed}, nil
	}
}

// save is one try to store an Op.
type save struct {
	d     *DB
	op    *Op
	again bool // not the first try
	blind bool // rely on nothing but the transaction
	parts []part
	// files lists external files that were written; unused those whose content turned out to be
	// there already.
	files, unused []string
	seq           int64
	missing       []Skip
	trashed       []Trashed
}

// part is one content of an Op on its way into the store.
type part struct {
	ver   *blob.Version
	known bool // found stored
	blob.Packed
}

// orNull is v as a column: NULL for the zero value.
func orNull[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

// column is what its row holds: its bytes, or where they are.
func (p *part) column() []byte {
	if p.Codec&blob.CodecFile != 0 {
		return []byte(p.File)
	}
	return p.Z
}

// growth is what it adds to the store, once it is prepared.
func (s *save) growth() growth {
	contents, files := int64(len(s.op.Steps)), int64(0)
	for i := range s.parts {
		if p := &s.parts[i]; p.Codec&blob.CodecFile != 0 {
			files += int64(len(p.Z))
		} else {
			contents += int64(len(p.Z)) + page
		}
	}
	return grow(len(s.op.Changes), contents, files)
}

func (s *save) prepare(ctx context.Context) error {
	for i := range s.op.Changes {
		c := &s.op.Changes[i]
		var base *blob.Version
		if !s.blind && (c.Content != nil || c.AfterContent != nil) {
			var err error
			size := max(len(c.Content), len(c.AfterContent))
			if base, err = s.d.newest(ctx, c.Path, size); err != nil {
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

// add packs one content, as a delta against base where that pays.
func (s *save) add(ctx context.Context, path, hx string, content []byte,
	base *blob.Version) (*blob.Version, error) {
	h, err := blob.ParseHash(hx)
	if err != nil {
		return nil, err
	}
	for i := range s.parts {
		if s.parts[i].ver.Hash == h { // a move or a copy: once is enough
			return s.parts[i].ver, nil
		}
	}
	if base != nil && base.Hash == h {
		s.parts = append(s.parts, part{ver: base, known: true})
		return base, nil
	}
	if s.blind || !s.d.pack.MayStandOn(base) {
		base = nil
	}
	p := part{ver: &blob.Version{Path: path, Hash: h, Content: content}}
	// Small content that has a base is packed sooner than looked up. If it is stored already, the
	// transaction finds that out.
	if !s.blind && (base == nil || s.again || len(content) > blob.FileAbove) {
		r, err := rowOf(ctx, s.d.r, h)
		if err != nil {
			return nil, err
		}
		p.known, p.ver.Depth, p.ver.Key = r.id != 0, r.depth, r.key
	}
	if !p.known {
		if p.Packed, err = s.d.pack.Pack(ctx, h, content, base); err != nil {
			return nil, err
		}
		p.ver.Depth, p.ver.Key = p.Depth, p.Key
		if p.File != "" {
			s.files = append(s.files, p.File)
		}
	}
	s.parts = append(s.parts, p)
	return p.ver, nil
}

// write runs inside the transaction. It may be run again after that was rolled back.
func (s *save) write(ctx context.Context, c *committer) error {
	if err := s.d.inPlace(); err != nil { // it may have waited for long
		return err
	}
	if err := c.noteLimits(ctx); err != nil {
		return err
	}
	op := s.op
	session, err := c.session(ctx, op.Principal, op.Session)
	if err != nil {
		return err
	}
	if err := c.notImported(ctx, op); err != nil {
		return err
	}
	var turn int64
	if op.Turn != "" {
		if turn, err = c.turnID(ctx, session, op.Turn); err != nil {
			return err
		}
	}
	undoOf, _ := op.UndoOf.seq() // Op.check has looked at them; of "" it is 0
	restoreOf, _ := op.RestoreOf.seq()
	ids := map[string]int64{}
	s.missing, s.trashed = nil, nil
	s.unused = s.unused[:0]
	for i := range s.parts {
		p := &s.parts[i]
		id, err := s.writePart(ctx, c, p)
		if err != nil {
			return err
		}
		ids[p.ver.Hash.String()] = id
	}
	s.seq, err = c.insert(ctx, `INSERT INTO op(seq, ts, session, turn, tool, kind, label,
			undo_of, restore_of, run)
		SELECT 1+max(ifnull((SELECT max(seq) FROM op),0),
			ifnull((SELECT v FROM meta WHERE k='after'),0)),?1,?2,?3,?4,?5,?6,?7,?8,
			ifnull(?9, (SELECT run FROM op WHERE seq=?7 AND ?8 IS NOT NULL))`,
		op.Time.UnixNano(), session, orNull(turn), op.Tool, op.Kind, orNull(op.Label),
		orNull(undoOf), orNull(restoreOf), orNull(op.Run))
	if err != nil {
		return err
	}
	if err := c.reach(numbers{op: s.seq}); err != nil {
		return err
	}
	if err := s.writeOpen(ctx, c); err != nil {
		return err
	}
	for i := range op.Changes {
		if err := s.writeChange(ctx, c, i, ids); err != nil {
			return err
		}
	}
	return s.writeTrash(ctx, c)
}

// notImported is ErrImported if the principal of op has imported the same before. Two processes may
// import one folder at once; inside the transaction nobody comes in between.
func (c *committer) notImported(ctx context.Context, op *Op) error {
	if op.Kind != KindImport || op.Label == "" {
		return nil
	}
	var n int64
	err := c.QueryRowContext(ctx, `SELECT count(*) FROM op WHERE label=? AND kind=?
		AND session IN (SELECT id FROM session WHERE principal=?)`,
		op.Label, op.Kind, op.Principal).Scan(&n)
	if err == nil && n > 0 {
		err = ErrImported
	}
	return err
}

// changesFiles says whether an operation of this kind is saved before a change, which it announces.
func changesFiles(kind string) bool {
	switch kind {
	case KindExternal, KindRead, KindManual, KindImport:
		return false
	}
	return true
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
		t.Principal, t.Session, t.Path = s.op.Principal, s.op.Session, ch.Path
		t.Checkpoint = idOf(s.seq)
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
	return slices.ContainsFunc(s.missing, func(m Skip) bool { return m.Path == path })
}

// writePart answers the id of the content's row.
func (s *save) writePart(ctx context.Context, c *committer, p *part) (id int64, err error) {
	if p.known {
		r, err := c.stored(ctx, p.ver.Hash)
		if err == nil && r.id == 0 {
			err = errStale
		}
		return r.id, err
	}
	id, fresh, err := c.newObject(ctx, p.ver.Hash, int64(len(p.ver.Content)))
	if err != nil {
		return 0, err
	}
	if !fresh {
		r, err := c.stored(ctx, p.ver.Hash)
		if err != nil {
			return 0, err
		}
		if r.id != 0 {
			p.ver.Depth, p.ver.Key = r.depth, r.key
			if p.Codec&blob.CodecFile != 0 {
				s.unused = append(s.unused, p.File)
			}
			return id, nil
		}
	}
	var base any
	p.ver.Depth, p.ver.Key = p.Depth, p.Key
	if p.Base != nil {
		r, err := c.stored(ctx, p.Base.Hash)
		if err != nil {
			return 0, err
		}
		if r.id == 0 || r.depth+1 > blob.MaxDepth || r.key != 0 && r.key != p.Key {
			return 0, errStale // it is gone, or another row than was thought
		}
		base, p.ver.Depth = r.id, r.depth+1
	}
	if p.Codec&blob.CodecFile != 0 {
		// No row names the file yet. If this process slept for an hour, gc has taken it for
		// rubbish; a purge takes it at once. So it is made young here, or written again.
		now := time.Now()
		if err := os.Chtimes(s.d.pack.Path(p.File), now, now); errors.Is(err, fs.ErrNotExist) {
			if p.File, err = s.d.pack.Write(p.ver.Hash, p.Z); err != nil {
				return 0, err
			}
			s.files = append(s.files, p.File)
		} else if err != nil {
			return 0, err
		}
	}
	c.know(hashName(p.ver.Hash), row{id, p.Key, p.ver.Depth})
	return id, c.exec(ctx, `INSERT INTO data(id, codec, base, depth, key, bytes, z)
		VALUES(?,?,?,?,?,?,?)`, id, int64(p.Codec), base, p.ver.Depth, orNull(p.Key),
		len(p.Z), p.column())
}

// row is that of a name, or of a stored content.
type row struct {
	id, key int64
	depth   int
}

// hashName is what the committer knows a hash by: no name begins like this.
func hashName(h blob.Hash) string { return "\x00" + string(h[:]) }

// stored is rowOf for a save.
func (c *committer) stored(ctx context.Context, h blob.Hash) (r row, err error) {
	r, ok := c.rows[hashName(h)]
	if ok {
		return r, nil
	}
	if r, err = rowOf(ctx, c, h); r.id != 0 {
		c.know(hashName(h), r)
	}
	return r, err
}

func (c *committer) object(ctx context.Context, h blob.Hash, size int64) (int64, error) {
	return c.intern(ctx, "", "SELECT id FROM object WHERE hash=?1",
		"INSERT INTO object(hash, size) VALUES(?1,?2)", h[:], size)
}

// newObject is object for content that is most likely new; fresh says that it was.
func (c *committer) newObject(ctx context.Context, h blob.Hash, size int64) (id int64, fresh bool,
	err error) {
	const add = "INSERT INTO object(hash, size) VALUES(?,?) ON CONFLICT DO NOTHING"
	r, err := c.change(ctx, add, h[:], size)
	if err != nil {
		return 0, false, err
	}
	if n, err := r.RowsAffected(); err != nil || n > 0 {
		id, _ := r.LastInsertId()
		return id, true, err
	}
	id, err = c.object(ctx, h, size)
	return id, false, err
}

func (s *save) writeChange(ctx context.Context, c *committer, i int, ids map[string]int64) error {
	ch := &s.op.Changes[i]
	path, err := c.path(ctx, ch.Path)
	if err != nil {
		return err
	}
	skipped := ch.Skipped
	if skipped == "" && ch.Before.Kind == File && ch.Content == nil {
		// Only the hash was given: fine if the content is here already, otherwise it has to be
		// said.
		h, err := blob.ParseHash(ch.Before.Hash)
		if err != nil {
			return err
		}
		if r, err := c.stored(ctx, h); err != nil {
			return err
		} else if r.id == 0 {
			skipped = skipHashOnly
			s.missing = append(s.missing, Skip{ch.Path, skipHashOnly, ch.Before.Size})
		}
	}
	args := make([]any, 0, 24)
	args = append(args, s.seq, i, path, ch.Role, orNull(skipped))
	for _, st := range []*State{&ch.Before, &ch.After} {
		var target any
		size := st.Size // else it is with the hash
		if st.Tail != "" {
			if err := c.hashed(ctx, st.Hash, ch.tailSize(), ids); err != nil {
				return err
			}
		} else if st.Hash != "" {
			if err := c.hashed(ctx, st.Hash, st.Size, ids); err != nil {
				return err
			}
			size = 0
		}
		if st.Kind == Symlink {
			target = []byte(st.Target)
		}
		args = append(args, kindCode(st.kind()), timeNs(st.ModTime), orNull(ids[st.Hash]),
			orNull(size), target)
	}
	args = append(append(args, ch.Before.metadata(State{})...), ch.After.metadata(ch.Before)...)
	return c.exec(ctx, `INSERT INTO change(op, n, path, role, skipped,
		bkind, bmtime, bobj, bsize, btarget, akind, amtime, aobj, asize, atarget,
		bmode, buid, bgid, bxattrs, amode, auid, agid, axattrs)
		VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`, args...)
}

// hashed sees to it that ids has the hash of a content of that size.
func (c *committer) hashed(ctx context.Context, hash string, size int64,
	ids map[string]int64) error {
	if ids[hash] != 0 {
		return nil
	}
	h, err := blob.ParseHash(hash)
	if err == nil {
		ids[hash], err = c.object(ctx, h, size)
	}
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

// remember keeps the newest content of each path as the base of the next delta.
func (s *save) remember() {
	for i := range s.parts {
		s.d.mem.Add(s.parts[i].ver)
		s.d.pack.Hold(s.parts[i].ver)
	}
	s.discard(s.unused)
}

// discard removes external files that nothing names.
func (s *save) discard(files []string) {
	for _, f := range files {
		s.d.pack.Remove(f) //nolint:errcheck // gc takes what stays for rubbish
	}
}
