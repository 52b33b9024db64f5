package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"moltisfs/checkpoint/blob"
)

// What marking finds out about a content.
const (
	isObject = 1 << iota
	isWanted // a checkpoint refers to it
	isNeeded // wanted, or the base of something needed
	isStored // set by dead
)

// datum is a stored content: its row in data.
type datum struct{ id, base, bytes int64 }

// marks says of each content, by its id, what is known of it. data is what is stored, the deepest
// deltas first. Memory: one byte an object and 32 a stored content.
type marks struct {
	flags []byte
	data  []datum
}

func (m *marks) has(id int64, flag byte) bool {
	return id > 0 && id < int64(len(m.flags)) && m.flags[id]&flag != 0
}

func (m *marks) set(id int64, flags byte) {
	if id > 0 && id < int64(len(m.flags)) {
		m.flags[id] |= flags
	}
}

// need marks what is wanted, and all that stands below it.
func (m *marks) need() {
	for i := range m.flags {
		if m.flags[i]&isWanted != 0 {
			m.flags[i] |= isNeeded
		}
	}
	for _, c := range m.data { // whoever needs this one has been seen
		if m.has(c.id, isNeeded) {
			m.set(c.base, isNeeded)
		}
	}
}

// dead lists the contents that nothing needs, a base after the deltas on it.
func (m *marks) dead() (ids []int64) {
	for _, c := range m.data {
		if !m.has(c.id, isNeeded) {
			ids = append(ids, c.id)
		}
		m.set(c.id, isStored)
	}
	for id := range int64(len(m.flags)) { // what is known by its hash only
		if m.has(id, isObject) && !m.has(id, isNeeded|isStored) {
			ids = append(ids, id)
		}
	}
	return ids
}

// A candidate is a wanted delta that alone keeps alive all that it stands on.
type candidate struct {
	id    int64
	dead  int64 // bytes of those
	bases []int64
}

func (m *marks) candidates() (out []candidate) {
	by := make(map[int64]*datum, len(m.data))
	children := map[int64]int{}
	for i := range m.data {
		by[m.data[i].id] = &m.data[i]
		children[m.data[i].base]++
	}
	only := func(id int64) bool { // kept for one delta alone
		return m.has(id, isNeeded) && !m.has(id, isWanted) && children[id] == 1
	}
	for _, c := range m.data {
		if !m.has(c.id, isWanted) || !only(c.base) {
			continue
		}
		out = append(out, candidate{id: c.id})
		last := &out[len(out)-1]
		b := by[c.base]
		for ; b != nil && only(b.id); b = by[b.base] {
			last.dead += b.bytes
			last.bases = append(last.bases, b.id)
		}
		if b != nil { // a base that is wanted itself stays in the way
			out = out[:len(out)-1]
		}
	}
	return out
}

// mark looks what contents there are and what needs them, but for the checkpoints that are gone.
func mark(ctx context.Context, q querier, gone map[int64]bool) (*marks, error) {
	var top int64
	if err := q.QueryRowContext(ctx, "SELECT ifnull(max(id),0) FROM object").Scan(&top); err != nil {
		return nil, err
	}
	m := &marks{flags: make([]byte, top+1)}
	var op, id, other int64
	err := each(ctx, q, "SELECT id FROM object", nil, func(row scanner) error {
		err := row.Scan(&id)
		m.set(id, isObject)
		return err
	})
	if err != nil {
		return nil, err
	}
	const uses = "SELECT op, ifnull(bobj,0), ifnull(aobj,0) FROM change"
	err = each(ctx, q, uses, nil, func(row scanner) error {
		err := row.Scan(&op, &id, &other)
		if err == nil && !gone[op] {
			m.set(id, isWanted)
			m.set(other, isWanted)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	const stored = "SELECT id, ifnull(base,0), bytes FROM data ORDER BY depth DESC"
	m.data, err = readRows(ctx, q, stored, nil, func(c *datum) []any {
		return []any{&c.id, &c.base, &c.bytes}
	})
	m.need()
	return m, err
}

// sweep removes objects that nothing needs. What was marked may have become wanted again meanwhile;
// each transaction looks at the checkpoints that are newer than the mark.
func (g *collector) sweep(ctx context.Context) error {
	var m *marks
	var newest int64
	err := g.d.readers.snapshot(ctx, func(q querier) (err error) {
		err = q.QueryRowContext(ctx, "SELECT ifnull(max(seq),0) FROM op").Scan(&newest)
		if err == nil {
			m, err = mark(ctx, q, nil)
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := g.rekey(ctx, m); err != nil {
		return err
	}
	dead := m.dead()
	var files []string
	err = g.slices(ctx, func(ctx context.Context, c *committer, end time.Time) (bool, error) {
		if len(dead) == 0 {
			return false, nil
		}
		again, err := c.wantedSince(ctx, newest)
		if err != nil {
			return false, err
		}
		var removed []string
		for rows := g.rows(); len(dead) > 0 && rows > 0; {
			n := min(len(dead), rows, sliceRows)
			names, err := g.drop(ctx, c, dead[:n], again)
			if err != nil {
				return false, err
			}
			removed = append(removed, names...)
			dead = dead[n:]
			if rows -= n; time.Now().After(end) {
				break
			}
		}
		files = append(files, removed...)
		return len(dead) > 0, nil
	})
	// Only now: had a transaction failed, its files would still be named. What is not removed here is
	// rubbish later.
	if err == nil {
		err = g.d.removeNamed(files)
		g.r.Files += len(files)
	}
	return err
}

// drop deletes those of the objects that are not wanted again and that nothing stays that is a
// delta against. It returns the files that they named.
func (g *collector) drop(ctx context.Context, c *committer, ids []int64,
	wanted map[int64]bool) (files []string, err error) {
	going := map[int64]bool{}
	for _, id := range ids {
		if !wanted[id] {
			going[id] = true
		}
	}
	// Asked anew and not taken from the mark: there may be new deltas, and another process may have
	// given a number out again.
	const above = "SELECT id, base FROM data WHERE base IN " + ofList
	deltas, err := queryPairs(ctx, c, above, listOf(ids))
	if err != nil {
		return nil, err
	}
	for more := true; more; {
		more = false
		for _, p := range deltas {
			if id, base := p[0], p[1]; going[base] && !going[id] {
				delete(going, base)
				more = true
			}
		}
	}
	list := listOf(slices.Collect(maps.Keys(going)))
	n, files, err := c.dropData(ctx, list)
	if err != nil {
		return nil, err
	}
	g.r.Contents += n
	return files, c.exec(ctx, "DELETE FROM object WHERE id IN "+ofList, list)
}

// wantedSince returns the objects that checkpoints newer than seq refer to.
func (c *committer) wantedSince(ctx context.Context, seq int64) (map[int64]bool, error) {
	out := map[int64]bool{}
	const uses = "SELECT ifnull(bobj, 0), ifnull(aobj, 0) FROM change WHERE op > ?"
	pairs, err := queryPairs(ctx, c, uses, seq)
	for _, p := range pairs {
		out[p[0]], out[p[1]] = true, true
	}
	return out, err
}

// dropData deletes the rows of the contents of list, and returns how many there were and the files
// that they named.
func (c *committer) dropData(ctx context.Context, list string) (n int, files []string, err error) {
	const q = "DELETE FROM data WHERE id IN " + ofList + " RETURNING CASE WHEN codec & 4 THEN z END"
	err = each(ctx, c, q, []any{list}, func(row scanner) error {
		var name []byte
		err := row.Scan(&name)
		if len(name) > 0 {
			files = append(files, string(name))
		}
		n++
		return err
	})
	return n, files, err
}

// rekey writes a wanted delta anew as a whole when the bases that only it keeps alive weigh more
// than twice as much, and takes the mark from those.
func (g *collector) rekey(ctx context.Context, m *marks) error {
	todo := m.candidates()
	var files []string
	err := g.slices(ctx, func(ctx context.Context, c *committer, end time.Time) (bool, error) {
		room := g.limits.logMost() / 4
		for len(todo) > 0 && room > 0 && time.Now().Before(end) {
			t := todo[0]
			todo = todo[1:]
			p, err := g.d.whole(ctx, c, t.id)
			if err != nil {
				return false, err
			}
			if p == nil || int64(len(p.Z)) > t.dead/2 || p.inLog() > g.limits.logMost()/4 {
				continue
			}
			room -= p.inLog()
			old, err := c.replaceData(ctx, t.id, p)
			if err != nil {
				return false, err
			}
			if old != "" {
				files = append(files, old)
			}
			g.r.Rekeyed++
			for _, id := range t.bases {
				m.flags[id] &^= isNeeded
			}
		}
		return len(todo) > 0, nil
	})
	if err == nil {
		err = g.d.removeNamed(files)
	}
	return err
}

// whole packs the content of object id without a base. nil when it cannot be read, or no key is at
// hand to seal it with: then its bases must stay as they are.
func (d *DB) whole(ctx context.Context, c *committer, id int64) (*part, error) {
	var hb []byte
	if err := c.QueryRowContext(ctx, "SELECT hash FROM object WHERE id=?", id).Scan(&hb); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return nil, nil
		}
		return nil, err
	}
	var h blob.Hash
	copy(h[:], hb)
	body, err := d.content(ctx, h)
	if err != nil {
		return nil, nil
	}
	key, err := c.sealedBy(ctx, id)
	if err != nil {
		return nil, err
	}
	p, ok, err := d.pack.Whole(ctx, h, body, key)
	if !ok {
		return nil, err
	}
	return &part{ver: &blob.Version{Hash: h, Content: body}, Packed: p}, nil
}

// inLog gives the bytes of the log that the row takes.
func (p *part) inLog() int64 { return int64(min(len(p.Z), blob.FileAbove)) }

// sealedBy gives the key that seals the row of id, or else the nearest one that its delta stands
// on; 0 when all are in clear.
func (c *committer) sealedBy(ctx context.Context, id int64) (key int64, err error) {
	err = c.QueryRowContext(ctx, `WITH RECURSIVE r(key, base, n) AS (
		SELECT key, base, 0 FROM data WHERE id=?
		UNION ALL SELECT d.key, d.base, n+1 FROM r JOIN data d ON d.id=r.base WHERE n < 64)
		SELECT ifnull((SELECT key FROM r WHERE key IS NOT NULL ORDER BY n LIMIT 1), 0)`, id).Scan(&key)
	return key, err
}

// replaceData makes the row of id hold p, without a base, and returns the external file that it
// named before.
func (c *committer) replaceData(ctx context.Context, id int64, p *part) (old string, err error) {
	const file = "SELECT ifnull(max(z), '') FROM data WHERE id=? AND codec & 4"
	err = c.QueryRowContext(ctx, file, id).Scan(&old)
	if err != nil {
		return "", err
	}
	// Should the transaction fail, its file is rubbish that gc finds.
	if err := c.db.pack.Place(p.ver.Hash, &p.Packed); err != nil {
		return "", err
	}
	return old, c.exec(ctx, `UPDATE data SET codec=?, base=NULL, depth=0, key=?, bytes=?, z=?
		WHERE id=?`, int64(p.Codec), orNull(p.Key), len(p.Z), p.column(), id)
}
