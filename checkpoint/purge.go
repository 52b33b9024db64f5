package checkpoint

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"moltisfs/checkpoint/blob"
)

// Purge says which contents must not be in the store any longer.
type Purge struct {
	Match  func(path string) bool // every content that a matching path ever had
	Hash   string                 // this content, wherever it was
	DryRun bool
	// Forget hears the hashes of what goes, for whoever keeps them elsewhere and has to forget them
	// too. A purge may be cut off before that: then each purge tells its hashes again, until Forget
	// has returned nil. May be nil.
	Forget func(hashes []string) error
	// CutOff purges also what is needed to take back a change that was cut off half-way, and whose
	// process is no more. What can't be put back then is left as it is.
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
	// Beside are directories in which a repair has left the store as it was before. No purge touches
	// them.
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
	if p.Match == nil && p.Hash == "" {
		return Purged{}, &BadOpError{"", "nothing to purge is named"}
	}
	if err := d.inPlace(); err != nil {
		return Purged{}, fmt.Errorf("purging: %w", err)
	}
	d.keep.making.Lock() // no gc meanwhile
	defer d.keep.making.Unlock()
	if !p.DryRun {
		if err := d.pack.NeedKey(ctx); err != nil {
			return Purged{}, fmt.Errorf("purging: %w", err)
		}
	}
	w := &purger{d: d, p: p, match: map[string]bool{}}
	left, err := unpurged(ctx, d.r)
	if err != nil {
		return Purged{}, fmt.Errorf("purging: %w", err)
	}
	if p.DryRun { // it waits for nobody who writes, and needs nothing that can be written
		err = d.readers.snapshot(ctx, func(q querier) error {
			_, err := w.find(ctx, q)
			return err
		})
	} else {
		err = d.com.do(ctx, w.run)
	}
	if err != nil {
		return Purged{}, fmt.Errorf("purging: %w", named(err))
	}
	d.mem.Forget()
	w.r.Resumed = len(left) > 0
	if w.r.Beside, err = besides(d.dir); err != nil {
		return w.r, fmt.Errorf("purging: %w", err)
	}
	if p.DryRun {
		names, err := loose(ctx, d.r, d.dir)
		w.r.Files = len(names)
		return w.r, err
	}
	err = d.removeNamed(w.files)
	if err == nil {
		w.r.Files, err = d.removeLoose(ctx)
	}
	if err != nil {
		return w.r, fmt.Errorf("purging: the catalog is clean, a file is not gone: %w", err)
	}
	// Also when nothing was found: a purge that was interrupted here is completed by the next one.
	if err := d.scour(ctx); err != nil {
		return w.r, fmt.Errorf("purging: the contents are gone from the catalog, "+
			"but free space could not be cleaned: %w", named(err))
	}
	if p.Forget != nil {
		hashes, err := unpurged(ctx, d.r)
		if err == nil {
			err = p.Forget(hashes)
		}
		if err == nil {
			err = d.com.alone(ctx, forgotten)
		}
		if err != nil {
			return w.r, fmt.Errorf("purging: the contents are gone, but not their hashes elsewhere; "+
				"run the purge again: %w", named(err))
		}
	}
	_, err = d.measure(ctx, d.r)
	return w.r, err
}

type purger struct {
	d     *DB
	p     Purge
	r     Purged
	files []string
	match map[string]bool // what Purge.Match said: a path has many changes
}

func (w *purger) matches(path []byte) bool {
	yes, known := w.match[string(path)]
	if !known && w.p.Match != nil {
		yes = w.p.Match(string(path))
		w.match[string(path)] = yes
	}
	return yes
}

// find answers what has to go, and counts it and what refers to it.
func (w *purger) find(ctx context.Context, q querier) (targets []int64, err error) {
	going, err := w.targets(ctx, q)
	if err != nil {
		return nil, err
	}
	targets = slices.Collect(maps.Keys(going))
	const hashes = "SELECT lower(hex(hash)) FROM object WHERE id IN " + ofList + " ORDER BY hash"
	if w.r.Hashes, err = column[string](ctx, q, hashes, listOf(targets)); err != nil {
		return nil, err
	}
	w.r.Contents = len(going)
	ops, also := map[int64]bool{}, map[string]bool{}
	err = eachUse(ctx, q, func(op, b, a int64, path []byte) {
		if !going[b] && !going[a] {
			return
		}
		ops[op] = true
		if !w.matches(path) {
			also[string(path)] = true
		}
	})
	if err != nil {
		return nil, err
	}
	w.r.Checkpoints, w.r.AlsoAt = len(ops), slices.Sorted(maps.Keys(also))
	return targets, w.inUse(ctx, q, slices.Collect(maps.Keys(ops)))
}

// eachUse calls fn with the contents before and after of each change, 0 where there is none.
func eachUse(ctx context.Context, q querier, fn func(op, before, after int64, path []byte)) error {
	const all = `SELECT op, ifnull(bobj,0), ifnull(aobj,0), path.path
		FROM change JOIN path ON path.id=change.path`
	return each(ctx, q, all, nil, func(row scanner) error {
		var op, b, a int64
		var path sql.RawBytes
		err := row.Scan(&op, &b, &a, &path)
		if err == nil {
			fn(op, b, a, path)
		}
		return err
	})
}

func (w *purger) run(ctx context.Context, c *committer) error {
	w.r, w.files = Purged{}, nil
	targets, err := w.find(ctx, c)
	if err != nil {
		return err
	}
	if err := w.note(ctx, c); err != nil {
		return err
	}
	// First every delta that stands on one of them and stays, while it can still be read.
	list := listOf(targets)
	children, err := column[int64](ctx, c, `SELECT id FROM data
		WHERE base IN (SELECT value FROM json_each(?1))
			AND id NOT IN (SELECT value FROM json_each(?1))`, list)
	if err != nil {
		return err
	}
	for i, id := range children {
		w.d.progress("purging", i, len(children))
		p, err := w.d.whole(ctx, c, id)
		if err != nil {
			return err
		}
		if p == nil {
			// Sealed to another process's key, or damaged: nobody can tell it from what has to go.
			return fmt.Errorf("a later version of it cannot be read and stored anew: %w", ErrSealed)
		}
		old, err := c.replaceData(ctx, id, p)
		if err != nil {
			return err
		}
		if old != "" {
			w.files = append(w.files, old)
		}
	}
	for _, q := range []string{
		`UPDATE change SET bsize=ifnull(bsize, (SELECT size FROM object WHERE id=bobj)),
			bobj=NULL, skipped=?2 WHERE bobj IN (SELECT value FROM json_each(?1))`,
		`UPDATE change SET asize=ifnull(asize, (SELECT size FROM object WHERE id=aobj)),
			aobj=NULL, askipped=?2 WHERE aobj IN (SELECT value FROM json_each(?1))`,
	} {
		if err := c.exec(ctx, q, list, SkipPurged); err != nil {
			return err
		}
	}
	if err := c.exec(ctx, emptied, SkipPurged, kindCode(Symlink)); err != nil {
		return err
	}
	_, files, err := c.dropData(ctx, list)
	if err != nil {
		return err
	}
	w.files = append(w.files, files...)
	return c.exec(ctx, "DELETE FROM object WHERE id IN "+ofList, list)
}

// note notes what others are to forget.
func (w *purger) note(ctx context.Context, c *committer) error {
	if w.p.Forget == nil {
		return nil
	}
	hashes := w.r.Hashes
	if w.p.Hash != "" { // it may be known elsewhere only
		hashes = append([]string{w.p.Hash}, hashes...)
	}
	for _, hx := range hashes {
		h, err := blob.ParseHash(hx)
		if err == nil && h != noBytes {
			err = c.exec(ctx, "INSERT OR IGNORE INTO unpurged VALUES(?)", h[:])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// emptied takes entries out of the trash that a purge left nothing of: files without their content,
// and directories without the content of any file in them. One that holds more stays.
const (
	ofEntry = `SELECT 1 FROM change JOIN path ON path.id=change.path WHERE change.op=trash.op
		AND (path.path=trash.path OR
			substr(path.path, 1, length(trash.path)+1)=CAST(trash.path || '/' AS BLOB))`
	emptied = trashGone + ` WHERE phase=1 AND parked=x'' AND op IS NOT NULL
		AND EXISTS (` + ofEntry + ` AND skipped=?1)
		AND NOT EXISTS (` + ofEntry + ` AND (bobj IS NOT NULL OR bkind=?2))`
)

// inUse refuses to take what putting a change back may need. As a rule that is over in a moment.
func (w *purger) inUse(ctx context.Context, q querier, ops []int64) error {
	const busy = `SELECT op, tag FROM open_op WHERE op IN (SELECT value FROM json_each(?))`
	var cutOff error
	err := each(ctx, q, busy, []any{listOf(ops)}, func(row scanner) error {
		var seq int64
		var tag string
		if err := row.Scan(&seq, &tag); err != nil {
			return err
		}
		switch id := idOf(seq); {
		case w.d.o.Alive == nil || w.d.o.Alive(tag):
			return fmt.Errorf("checkpoint %s holds one of the contents: %w", id, ErrUnderWay)
		case !w.p.CutOff:
			cutOff = fmt.Errorf("checkpoint %s holds one of the contents: %w", id, ErrCutOff)
		}
		return nil
	})
	return errors.Join(err, cutOff)
}

// noBytes is the hash of the empty content.
var noBytes = blob.Hash(sha256.Sum256(nil))

// targets finds the contents that have to go.
func (w *purger) targets(ctx context.Context, q querier) (map[int64]bool, error) {
	out := map[int64]bool{}
	if w.p.Hash != "" {
		h, err := blob.ParseHash(w.p.Hash)
		if err != nil {
			return nil, &BadOpError{"", err.Error()}
		}
		ids, err := column[int64](ctx, q, "SELECT id FROM object WHERE hash=?", h[:])
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			out[id] = true
		}
	}
	if w.p.Match != nil {
		paths := map[string]bool{}
		err := eachUse(ctx, q, func(_, b, a int64, path []byte) {
			if w.matches(path) {
				out[b], out[a], paths[string(path)] = true, true, true
			}
		})
		if err != nil {
			return nil, err
		}
		w.r.Paths = len(paths)
	}
	delete(out, 0)
	empty, err := column[int64](ctx, q, "SELECT id FROM object WHERE hash=?", noBytes[:])
	for _, id := range empty {
		delete(out, id)
	}
	return out, err
}

// unpurged are the hashes that others are still to forget. A purge that is cut off after its commit
// has forgotten itself what it purged, while the records of others still hold it.
func unpurged(ctx context.Context, q querier) ([]string, error) {
	return column[string](ctx, q, "SELECT lower(hex(hash)) FROM unpurged ORDER BY hash")
}

// forgotten removes those hashes, so that none of their bytes stay.
func forgotten(ctx context.Context, c *committer) error {
	const wipe = "PRAGMA secure_delete=ON; DELETE FROM unpurged; PRAGMA secure_delete=FAST"
	_, err := c.conn.ExecContext(ctx, wipe)
	return errors.Join(err, c.truncate(ctx))
}

// scour rewrites the file without its free pages and empties the log.
func (d *DB) scour(ctx context.Context) error {
	return d.com.alone(ctx, func(ctx context.Context, c *committer) error {
		if _, err := c.conn.ExecContext(ctx, "VACUUM"); err != nil {
			return err
		}
		return c.truncate(ctx)
	})
}

// truncate empties the log.
func (c *committer) truncate(ctx context.Context) error {
	all, err := c.moveLog(ctx, "TRUNCATE")
	if err == nil && !all {
		err = errors.New("somebody is reading the store; run the purge again")
	}
	return err
}

// removeLoose removes the files of contents that no row names, however young: a purge or a save
// left them that was cut off. Nobody commits meanwhile. A save that is about to finds its file gone
// then, and writes it again: see writePart.
func (d *DB) removeLoose(ctx context.Context) (n int, err error) {
	err = d.com.do(ctx, func(ctx context.Context, c *committer) error {
		names, err := loose(ctx, c, d.dir)
		n = len(names)
		return errors.Join(err, d.removeNamed(names))
	})
	return n, err
}

// besides finds the directories in which repairs have left an older state of the store.
func besides(dir string) (out []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		kind, _, ok := strings.Cut(e.Name(), "-")
		if ok && e.IsDir() && (kind == "damaged" || kind == "repair") {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}
