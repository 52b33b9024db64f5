package checkpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"moltisfs/checkpoint/blob"
)

// Purge says which contents must not be in the store any longer.
type Purge struct {
	Match  func(path string) bool // every content that a matching path ever had
	Hash   string                 // this content, wherever it was
	Hashes []string               // and these
	DryRun bool
	// Forget hears the hashes of what goes, for whoever keeps them elsewhere and has to forget them
	// too. A purge may be cut off before that: then each purge tells its hashes again, until Forget
	// has returned nil. May be nil.
	Forget func(hashes []string) error
	// CutOff purges also what is needed to take back a change that was cut off half-way, and whose
	// process is no more. Files that can't be put back then are left as they are.
	CutOff bool
}

// Purged counts the things that a purge removed, or would remove.
type Purged struct {
	Paths       int // that match, whether or not a content of them was left
	Contents    int
	Checkpoints int      // that lost a content
	AlsoAt      []string // other paths that had the same bytes and lose them too
	Hashes      []string // of the contents, sorted: see Purge.Forget
	Files       int      // that nothing named any more: a purge or a save was cut off
	Resumed     bool     // an earlier purge had been cut off, and is over with this one
	// Beside are directories in which a damaged store lies as it was. No purge touches them.
	Beside []string
}

// Purge removes contents so that none of their bytes stay in the store's files: not in rows, nor in
// what deltas of them are left, nor in free pages and the log. The store forgets their hashes too,
// because a hash confirms a guess. Checkpoints stay and say "purged". So does the empty content: it
// holds no byte, and every empty file has it.
//
// It needs as much free disk space as the store takes, and holds up saves while it runs.
//
// ErrUnderWay says that a change which is being made needs one of the contents. ErrCutOff says the
// same of a change that was cut off and is not taken back yet. Nothing is purged then.
//
// The disk may keep overwritten or unlinked blocks, and somebody may have copied the store before:
// those are out of its reach.
func (d *DB) Purge(ctx context.Context, p Purge) (Purged, error) {
	if err := d.enter(); err != nil {
		return Purged{}, err
	}
	defer d.active.Done()
	if p.Hash != "" {
		p.Hashes = append([]string{p.Hash}, p.Hashes...)
	}
	if p.Match == nil && len(p.Hashes) == 0 {
		return Purged{}, &BadOpError{"", "nothing to purge is named"}
	}
	var r Purged
	err := d.clean(ctx, func() (err error) {
		r, err = d.purge(ctx, p)
		return err
	})
	if err != nil {
		err = fmt.Errorf("purging: %w", d.c.failed(err))
	}
	return r, err
}

func (d *DB) purge(ctx context.Context, p Purge) (Purged, error) {
	w := &purger{d: d, p: p}
	var err error
	if w.listed, err = d.blobNames(ctx); err != nil {
		return Purged{}, err
	}
	if p.DryRun { // it waits for nobody who writes, and needs nothing that can be written
		err = d.view(ctx, func(h *history) error { return w.find(ctx, h.q) })
	} else if err = d.pack.NeedKey(ctx); err == nil {
		err = d.transact(ctx, w.run)
	}
	if err != nil {
		return Purged{}, err
	}
	d.pack.Forget()
	if w.r.Beside, err = d.c.beside(); err != nil || p.DryRun {
		return w.r, err
	}
	if _, err = d.removeUnnamed(ctx); err != nil {
		return w.r, fmt.Errorf("the catalog is clean, a file is not gone: %w", err)
	}
	if p.Forget != nil {
		hashes, err := unpurged(ctx, d.r)
		if err == nil {
			err = p.Forget(hashes)
		}
		if err == nil {
			err = d.transact(ctx, func(ctx context.Context, tx *tx) error { return tx.exec(ctx, "DELETE FROM unpurged") })
		}
		if err != nil {
			return w.r, errors.Join(fmt.Errorf("the contents are gone, but not their hashes elsewhere; "+
				"run the purge again: %w", err), d.alone(ctx, d.c.scour))
		}
	}
	// Also when nothing was found: a purge that was interrupted here is completed by the next one.
	if err := d.alone(ctx, d.c.scour); err != nil {
		return w.r, fmt.Errorf("the contents are gone from the catalog, but free space could not be cleaned: %w", err)
	}
	return w.r, nil
}

type purger struct {
	d       *DB
	p       Purge
	r       Purged
	listed  []string // large contents that are there
	targets []int64  // contents
}

// columnIn is column for a query that ends in an IN of many numbers.
func columnIn[T any](ctx context.Context, q querier, query string, numbers []int64) (out []T, err error) {
	for some := range slices.Chunk(numbers, maxIn) {
		if err == nil {
			var vs []T
			vs, err = column[T](ctx, q, query+in(some))
			out = append(out, vs...)
		}
	}
	return out, err
}

func distinct[T int64 | string](vs []T) []T {
	slices.Sort(vs)
	return slices.Compact(vs)
}

// noBytes is the hash of the empty content.
var noBytes = blob.Hash(sha256.Sum256(nil))

// find finds what has to go, and counts it and what refers to it.
func (w *purger) find(ctx context.Context, q querier) error {
	rubbish, err := unnamed(ctx, q, w.listed)
	if err != nil {
		return err
	}
	left, err := unpurged(ctx, q)
	if err != nil {
		return err
	}
	w.r.Files, w.r.Resumed = len(rubbish), len(left) > 0
	for _, hx := range w.p.Hashes {
		h, err := blob.ParseHash(hx)
		if err != nil {
			return &BadOpError{"", err.Error()}
		}
		ids, err := column[int64](ctx, q, "SELECT id FROM content WHERE hash=?", h[:])
		if err != nil {
			return err
		}
		w.targets = append(w.targets, ids...)
	}
	match := map[int64]bool{}
	if w.p.Match != nil {
		var paths []int64
		err := each(ctx, q, "SELECT id, path FROM path", nil, func(row scanner) error {
			var id int64
			var path []byte
			err := row.Scan(&id, &path)
			if err == nil && w.p.Match(string(path)) {
				paths, match[id] = append(paths, id), true
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, side := range []string{"bobj", "aobj"} {
			ids, err := columnIn[int64](ctx, q, "SELECT DISTINCT "+side+" FROM change WHERE "+side+" IS NOT NULL AND path", paths)
			if err != nil {
				return err
			}
			w.targets = append(w.targets, ids...)
		}
		w.r.Paths = len(paths)
	}
	empty, err := one[int64](ctx, q, "SELECT id FROM content WHERE hash=?", noBytes[:])
	if err != nil {
		return err
	}
	w.targets = slices.DeleteFunc(distinct(w.targets), func(id int64) bool { return id == empty })
	w.r.Contents = len(w.targets)
	hashes, err := columnIn[[]byte](ctx, q, "SELECT hash FROM content WHERE id", w.targets)
	if err != nil {
		return err
	}
	w.r.Hashes = inHex(hashes)
	var ops, paths []int64
	for some := range slices.Chunk(w.targets, maxIn) {
		uses := "SELECT op, path FROM change WHERE bobj" + in(some) + " UNION SELECT op, path FROM change WHERE aobj" + in(some)
		err := each(ctx, q, uses, nil, func(row scanner) error {
			var op, path int64
			err := row.Scan(&op, &path)
			if ops = append(ops, op); !match[path] {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	ops, paths = distinct(ops), distinct(paths)
	w.r.Checkpoints = len(ops)
	if w.r.AlsoAt, err = columnIn[string](ctx, q, "SELECT path FROM path WHERE id", paths); err != nil {
		return err
	}
	slices.Sort(w.r.AlsoAt)
	return w.inUse(ctx, q, ops)
}

// inUse refuses to take what putting a change back may need. As a rule that is over in a moment.
func (w *purger) inUse(ctx context.Context, q querier, ops []int64) error {
	var cutOff error
	const open = "SELECT op.seq, op.id, o.tag FROM open_op o JOIN op ON op.seq=o.op"
	err := each(ctx, q, open, nil, func(row scanner) error {
		var seq int64
		var id, tag string
		if err := row.Scan(&seq, &id, &tag); err != nil {
			return err
		}
		_, needs := slices.BinarySearch(ops, seq)
		switch {
		case !needs:
		case w.d.o.Alive == nil || w.d.o.Alive(tag):
			return fmt.Errorf("checkpoint %s holds one of the contents: %w", id, ErrUnderWay)
		case !w.p.CutOff:
			cutOff = fmt.Errorf("checkpoint %s holds one of the contents: %w", id, ErrCutOff)
		}
		return nil
	})
	return errors.Join(err, cutOff)
}

func (w *purger) run(ctx context.Context, tx *tx) error {
	if err := w.find(ctx, tx); err != nil {
		return err
	}
	if err := w.note(ctx, tx); err != nil {
		return err
	}
	// First every delta that stands on one of them and stays, while it can still be read.
	children, err := columnIn[int64](ctx, tx, "SELECT id FROM content WHERE base", w.targets)
	if err != nil {
		return err
	}
	children = slices.DeleteFunc(children, func(id int64) bool { _, goes := slices.BinarySearch(w.targets, id); return goes })
	for _, id := range children {
		if err := w.packWhole(ctx, tx, id); err != nil {
			return err
		}
	}
	for some := range slices.Chunk(w.targets, maxIn) {
		for _, side := range []struct{ obj, size, skipped string }{{"bobj", "bsize", "skipped"}, {"aobj", "asize", "askipped"}} {
			err := tx.exec(ctx, "UPDATE change SET "+side.size+"=coalesce("+side.size+", (SELECT size FROM content WHERE id="+
				side.obj+")), "+side.obj+"=NULL, "+side.skipped+"=? WHERE "+side.obj+in(some), SkipPurged)
			if err != nil {
				return err
			}
		}
	}
	return tx.drop(ctx, w.targets, &GCResult{})
}

// packWhole packs the content id without a base.
func (w *purger) packWhole(ctx context.Context, tx *tx, id int64) error {
	var hash []byte
	var key int64
	err := tx.QueryRowContext(ctx, "SELECT hash, coalesce(key, 0) FROM content WHERE id=?", id).Scan(&hash, &key)
	if err != nil {
		return err
	}
	h := blob.Hash(hash)
	body, err := w.d.content(ctx, tx, h)
	if err != nil {
		// Sealed to another process's key, or damaged: nobody can tell it from what has to go.
		return fmt.Errorf("a later version of it cannot be read and stored anew: %w", errors.Join(ErrSealed, err))
	}
	r, err := w.d.pack.Pack(ctx, h, body, nil, key)
	if err != nil {
		return err // a file that was written is rubbish that gc finds
	}
	return tx.exec(ctx, "UPDATE content SET codec=?, base=NULL, depth=0, key=?, bytes=?, name=?, z=? WHERE id=?",
		int64(r.Codec), orNull(r.Key), r.Bytes, orNull(r.Name), inCatalog(&r), id)
}

// note notes what others are to forget.
func (w *purger) note(ctx context.Context, tx *tx) error {
	if w.p.Forget == nil {
		return nil
	}
	for _, hx := range append(w.p.Hashes, w.r.Hashes...) { // what is named may be known elsewhere only
		h, err := blob.ParseHash(hx)
		if err == nil && h != noBytes {
			err = tx.exec(ctx, "INSERT INTO unpurged VALUES(?) ON CONFLICT DO NOTHING", h[:])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unpurged are the hashes that others are still to forget. A purge that is cut off after its commit
// has forgotten itself what it purged, while the records of others still hold it.
func unpurged(ctx context.Context, q querier) ([]string, error) {
	hashes, err := column[[]byte](ctx, q, "SELECT hash FROM unpurged")
	return inHex(hashes), err
}

// inHex writes hashes in hex, sorted.
func inHex(hashes [][]byte) (out []string) {
	for _, h := range hashes {
		out = append(out, fmt.Sprintf("%x", h))
	}
	slices.Sort(out)
	return out
}
