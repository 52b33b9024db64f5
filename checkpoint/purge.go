package checkpoint

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Purge says which contents must not be in the store any longer.
type Purge struct {
	Match  func(path string) bool // every content that a matching path ever had
	Hash   string                 // this content, wherever it was
	DryRun bool
	// Forget hears the hashes of what goes, for whoever keeps them elsewhere and has to forget them too, those of an earlier purge that was cut
	// off included: once it was begun they are told again with each purge until Forget has returned nil. May be nil.
	Forget func(hashes []string) error
	// CutOff: also what taking back a change needs that was cut off half-way and whose process is no more. What can't be put back then is left as it is.
	CutOff bool
	// Alive says whether whoever opened an operation with that tag is alive. nil: all are taken for alive.
	Alive func(tag string) bool
}

// Purged says what a purge removed, or would remove.
type Purged struct {
	Paths       int // that match, whether or not a content of them was left
	Contents    int
	Checkpoints int      // that lost a content
	AlsoAt      []string // other paths that had the same bytes and lose them too
	Hashes      []string // of the contents, sorted: see Purge.Forget
	Files       int      // that nothing named any more: a purge or a save was cut off
	Resumed     bool     // an earlier purge had been cut off, and is over with this one
	// Beside are directories in which a repair has left the store as it was before. No purge touches them.
	Beside []string
}

// Purge removes contents so that none of their bytes stay in the store's files: the rows, what deltas of them are left, free
// pages and the log. The store forgets their hashes too, because a hash confirms a guess. Checkpoints stay and say "purged". It needs
// as much free disk space as the store takes, and holds up saves while it runs. The empty content stays: it holds no byte, and every empty
// file has it.
//
// ErrUnderWay says that a change which is being made needs one of the contents, ErrCutOff the same of one that was cut off and is not taken back yet; then
// nothing is purged.
//
// What the disk itself keeps of overwritten or unlinked blocks, and copies of the store made before, are out of its reach.
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
	if d.seal.on() && !p.DryRun {
		if _, _, err := d.seal.ownKey(ctx, d); err != nil {
			return Purged{}, fmt.Errorf("purging: %w", err)
		}
	}
	w := &purger{d: d, p: p}
	left, err := unpurged(ctx, d.r)
	if err != nil {
		return Purged{}, fmt.Errorf("purging: %w", err)
	}
	if p.DryRun { // it waits for nobody who writes, and needs nothing that can be written
		err = d.readers.snapshot(ctx, func(q querier) error {
			_, _, err := w.find(ctx, q)
			return err
		})
	} else {
		err = d.com.do(ctx, w.run)
	}
	if err != nil {
		return Purged{}, fmt.Errorf("purging: %w", named(err))
	}
	d.mem.forget()
	w.r.Resumed = len(left) > 0
	if w.r.Beside, err = besides(d.dir); err != nil {
		return w.r, fmt.Errorf("purging: %w", err)
	}
	if p.DryRun {
		err := loose(ctx, d.r, d.dir, func(name string, _ fs.DirEntry) error {
			if checkExtName(name) {
				w.r.Files++
			}
			return nil
		})
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
		return w.r, fmt.Errorf("purging: the contents are gone from the catalog, but free space could not be cleaned: %w", named(err))
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
			return w.r, fmt.Errorf("purging: the contents are gone, but not their hashes elsewhere; run the purge again: %w", named(err))
		}
	}
	return w.r, d.keep.measure(ctx)
}

type purger struct {
	d     *DB
	p     Purge
	r     Purged
	files []string
}

// find answers what has to go and which changes refer to it, and counts that.
func (w *purger) find(ctx context.Context, q querier) (targets map[int64]bool, uses []use, err error) {
	if targets, err = w.targets(ctx, q); err != nil {
		return nil, nil, err
	}
	for id := range targets {
		var h []byte
		if err := q.QueryRowContext(ctx, "SELECT hash FROM object WHERE id=?", id).Scan(&h); err != nil {
			return nil, nil, err
		}
		w.r.Hashes = append(w.r.Hashes, hex.EncodeToString(h))
	}
	slices.Sort(w.r.Hashes)
	w.r.Contents = len(targets)
	if uses, err = w.uses(ctx, q, targets); err != nil {
		return nil, nil, err
	}
	return targets, uses, w.inUse(ctx, q, uses)
}

func (w *purger) run(ctx context.Context, c *committer) error {
	w.r, w.files = Purged{}, nil
	targets, uses, err := w.find(ctx, c)
	if err != nil {
		return err
	}
	if err := w.note(ctx, c); err != nil {
		return err
	}
	// First every delta that stands on one of them and stays, while it can still be read.
	done := 0
	for id := range targets {
		w.d.progress("purging", done, 2*len(targets))
		done++
		children, err := queryIDs(ctx, c, "SELECT id FROM data WHERE base=?", id)
		if err != nil {
			return err
		}
		for _, k := range children {
			if targets[k] {
				continue
			}
			p, err := w.d.whole(ctx, c, k)
			if err != nil {
				return err
			}
			if p == nil {
				// Sealed to another process's key, or damaged: nobody can tell it from what has to go.
				return fmt.Errorf("a later version of it cannot be read and stored anew: %w", ErrSealed)
			}
			old, err := c.replaceData(ctx, k, p)
			if err != nil {
				return err
			}
			if old != "" {
				w.files = append(w.files, old)
			}
		}
	}
	for _, u := range uses {
		if targets[u.b] {
			err := c.exec(ctx, "UPDATE change SET bsize=(SELECT size FROM object WHERE id=bobj), bobj=NULL, skipped=? WHERE op=? AND n=?",
				SkipPurged, u.op, u.n)
			if err != nil {
				return err
			}
		}
		if targets[u.a] {
			err := c.exec(ctx, "UPDATE change SET asize=(SELECT size FROM object WHERE id=aobj), aobj=NULL, askipped=? WHERE op=? AND n=?", SkipPurged, u.op, u.n)
			if err != nil {
				return err
			}
		}
	}
	if err := c.exec(ctx, emptied, SkipPurged, kindCode(Symlink)); err != nil {
		return err
	}
	for id := range targets { // only targets stand on targets now
		if err := c.exec(ctx, "UPDATE data SET base=NULL WHERE base=?", id); err != nil {
			return err
		}
	}
	for id := range targets {
		done++
		w.d.progress("purging", done, 2*len(targets))
		f, err := c.dropData(ctx, id)
		if err != nil {
			return err
		}
		if f != "" {
			w.files = append(w.files, f)
		}
		if err := c.exec(ctx, "DELETE FROM object WHERE id=?", id); err != nil {
			return err
		}
	}
	return nil
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
		h, err := parseHash(hx)
		if err == nil && h != noBytes {
			err = c.exec(ctx, "INSERT OR IGNORE INTO unpurged VALUES(?)", h[:])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// emptied takes entries out of the trash that a purge left nothing of: files without their content, and directories without the content of any file
// in them. One that holds more stays.
const (
	ofEntry = `SELECT 1 FROM change JOIN path ON path.id=change.path WHERE change.op=trash.op
		AND (path.path=trash.path OR substr(path.path, 1, length(trash.path)+1)=CAST(trash.path || '/' AS BLOB))`
	emptied = `UPDATE trash SET phase=3, op=NULL, path=x'', ident='' WHERE phase=1 AND parked=x'' AND op IS NOT NULL
		AND EXISTS (` + ofEntry + ` AND skipped=?1) AND NOT EXISTS (` + ofEntry + ` AND (bobj IS NOT NULL OR bkind=?2))`
)

// inUse refuses to take what putting a change back may need. As a rule that is over in a moment.
func (w *purger) inUse(ctx context.Context, q querier, uses []use) error {
	p, err := w.d.inProgress()
	if err != nil {
		return err
	}
	var ops []int64
	for _, u := range uses {
		ops = append(ops, u.op)
	}
	list, err := json.Marshal(ops)
	if err != nil {
		return err
	}
	dead, err := Unfinished(w.d.dir)
	if err != nil {
		return err
	}
	// Of one with a mark that is settled at most the mark was left.
	const busy = `SELECT seq, o.op IS NOT NULL, ifnull(o.tag, '') FROM op LEFT JOIN open_op o ON o.op=seq
		WHERE seq IN (SELECT value FROM json_each(?1))
		AND (o.op IS NOT NULL OR outcome=0 AND (seq >= ?3 OR seq IN (SELECT value FROM json_each(?2))))`
	var cutOff error
	err = each(ctx, q, busy, []any{string(list), p.marked, p.promised}, func(row scanner) error {
		var seq int64
		var open bool
		var tag string
		if err := row.Scan(&seq, &open, &tag); err != nil {
			return err
		}
		id := idOf(seq)
		gone := slices.Contains(dead, id)
		if open {
			gone = w.p.Alive != nil && !w.p.Alive(tag)
		}
		switch {
		case !gone:
			return fmt.Errorf("checkpoint %s holds one of the contents: %w", id, ErrUnderWay)
		case !w.p.CutOff:
			cutOff = fmt.Errorf("checkpoint %s holds one of the contents: %w", id, ErrCutOff)
		}
		return nil
	})
	return errors.Join(err, cutOff)
}

// noBytes is the hash of the empty content.
var noBytes = sha256.Sum256(nil)

func (w *purger) targets(ctx context.Context, q querier) (map[int64]bool, error) {
	out := map[int64]bool{}
	if w.p.Hash != "" {
		h, err := parseHash(w.p.Hash)
		if err != nil {
			return nil, &BadOpError{"", err.Error()}
		}
		ids, err := queryIDs(ctx, q, "SELECT id FROM object WHERE hash=? AND hash<>?", h[:], noBytes[:])
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			out[id] = true
		}
	}
	if w.p.Match == nil {
		return out, nil
	}
	paths, err := w.paths(ctx, q)
	if err != nil {
		return nil, err
	}
	w.r.Paths = len(paths)
	for _, p := range paths {
		for _, col := range []string{"bobj", "aobj"} {
			ids, err := queryIDs(ctx, q, "SELECT "+col+" FROM change JOIN object ON object.id="+col+" WHERE path=? AND hash<>?", p, noBytes[:])
			if err != nil {
				return nil, err
			}
			for _, id := range ids {
				out[id] = true
			}
		}
	}
	return out, nil
}

func (w *purger) paths(ctx context.Context, q querier) (out []int64, err error) {
	err = each(ctx, q, "SELECT id, path FROM path", nil, func(row scanner) error {
		var id int64
		var p []byte
		err := row.Scan(&id, &p)
		if err == nil && w.p.Match(string(p)) {
			out = append(out, id)
		}
		return err
	})
	return out, err
}

// use is a change that refers to a target.
type use struct{ op, n, b, a int64 }

// uses finds the changes that refer to targets and counts them.
func (w *purger) uses(ctx context.Context, q querier, targets map[int64]bool) (out []use, err error) {
	ops := map[int64]bool{}
	also := map[string]bool{}
	const all = `SELECT change.op, change.n, ifnull(bobj,0), ifnull(aobj,0), path.path
		FROM change JOIN path ON path.id=change.path`
	err = each(ctx, q, all, nil, func(row scanner) error {
		var u use
		var p sql.RawBytes
		err := row.Scan(&u.op, &u.n, &u.b, &u.a, &p)
		if err != nil || !targets[u.b] && !targets[u.a] {
			return err
		}
		out = append(out, u)
		ops[u.op] = true
		if w.p.Match == nil || !w.p.Match(string(p)) {
			also[string(p)] = true
		}
		return nil
	})
	w.r.Checkpoints = len(ops)
	w.r.AlsoAt = slices.Sorted(maps.Keys(also))
	return out, err
}

// unpurged are the hashes that others are still to forget: a purge that is cut off after its commit has itself forgotten
// what it purged, while the records of others still hold it.
func unpurged(ctx context.Context, q querier) (hashes []string, err error) {
	err = each(ctx, q, "SELECT lower(hex(hash)) FROM unpurged ORDER BY hash", nil, func(row scanner) error {
		var h string
		err := row.Scan(&h)
		hashes = append(hashes, h)
		return err
	})
	return hashes, err
}

// forgotten removes those hashes, so that none of their bytes stay.
func forgotten(ctx context.Context, c *committer) error {
	_, err := c.conn.ExecContext(ctx, "PRAGMA secure_delete=ON; DELETE FROM unpurged; PRAGMA secure_delete=FAST")
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
	var busy, log, moved int
	err := c.conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
	if err == nil && busy != 0 {
		err = errors.New("somebody is reading the store; run the purge again")
	}
	return err
}

// removeLoose removes the files of contents that no row names, however young: what a purge or a save left that was cut
// off. Nobody commits meanwhile, and whoever is about to finds its file gone then and writes it again: see writePart.
func (d *DB) removeLoose(ctx context.Context) (n int, err error) {
	err = d.com.do(ctx, func(ctx context.Context, c *committer) error {
		var names []string
		err := loose(ctx, c, d.dir, func(name string, _ fs.DirEntry) error {
			if checkExtName(name) {
				names = append(names, name)
			}
			return nil
		})
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
		for _, kind := range []string{"damaged-*", "repair-*"} {
			if ok, _ := filepath.Match(kind, e.Name()); ok && e.IsDir() {
				out = append(out, filepath.Join(dir, e.Name()))
			}
		}
	}
	return out, nil
}
