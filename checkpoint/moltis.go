package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// Imported says what ImportMoltis did.
type Imported struct {
	Imported int        `json:"imported"`
	Known    int        `json:"known"` // taken over before
	Skipped  []NotTaken `json:"skipped"`
}

// NotTaken is one directory that was passed over, or the file that names turns, where lines of it were.
type NotTaken struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// importLabel marks what was taken over, so that it is not taken over twice.
const importLabel = "moltis:"

// ImportMoltis takes over the checkpoints of a Moltis folder, oldest first, as operations of KindImport of principal, in the
// session that turns.jsonl names or else "moltis". Moltis records only what was there before a change; what came of it is taken from the next
// checkpoint of the same path, and for the last one of a path it is not known: restoring that says "changed outside" and has to be
// forced. Nothing in dir is changed, nothing outside of dir is read, and links in it are not followed. A directory that is damaged, that does
// not fit into the store or that is about a path that no tool could restore is skipped with a reason. With an error comes what was done until then.
func ImportMoltis(ctx context.Context, d *DB, dir, principal string) (Imported, error) {
	out := Imported{Skipped: []NotTaken{}}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return out, fmt.Errorf("importing: %w", err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return out, fmt.Errorf("importing: %w", err)
	}
	turns, note := moltisTurns(root)
	if note != "" {
		out.Skipped = append(out.Skipped, NotTaken{turnsName, note + ": the checkpoints that it names are of no turn unless another line names them"})
	}
	var all []*moltisPoint
	for _, e := range entries {
		if !moltisID.MatchString(e.Name()) {
			continue
		}
		p, err := readMoltis(root, e.Name(), &d.o)
		if err != nil {
			out.Skipped = append(out.Skipped, NotTaken{e.Name(), err.Error()})
			continue
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b *moltisPoint) int { return a.m.compare(&b.m) })
	if err := d.adoptImports(ctx, principal); err != nil {
		return out, err
	}
	next := map[string]State{} // what a path was before the checkpoint that comes after
	for i := len(all) - 1; i >= 0; i-- {
		for j := range all[i].changes {
			c := &all[i].changes[j]
			c.After = c.Before
			if s, ok := next[c.Path]; ok {
				c.After = s
			}
			next[c.Path] = c.Before
		}
	}
	for i, p := range all {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		label := importLabel + p.m.ID
		page, err := d.List(ctx, Filter{Label: label, Principal: principal, AllSessions: true, Limit: 1})
		if err != nil {
			return out, err
		}
		if len(page.Checkpoints) > 0 {
			out.Known++
			continue
		}
		turn := turns[p.m.ID]
		session := turn.SessionKey
		if session == "" {
			session = "moltis"
		}
		op := Op{
			Tool: p.m.Reason, Kind: KindImport, Principal: principal, Session: session, Turn: turn.RunID, Label: label,
			Time: time.Unix(p.m.CreatedAt, 0), Changes: p.changes,
		}
		var unread error
		err = d.saveInParts(ctx, op, func(i int) (content []byte, err error) {
			content, unread = readBounded(root, p.files[i], p.changes[i].Before.Size)
			return content, unread
		})
		if errors.Is(err, errImported) {
			all[i] = nil
			out.Known++
			continue
		}
		if unread != nil || errors.As(err, new(*BadOpError)) || errors.As(err, new(*FullError)) || errors.Is(err, errStale) {
			out.Skipped = append(out.Skipped, NotTaken{p.m.ID, err.Error()})
			all[i] = nil
			continue
		}
		if err != nil {
			return out, err
		}
		all[i] = nil // its list of files may be long
		out.Imported++
		d.progress("importing checkpoints", i+1, len(all))
	}
	return out, nil
}

// adoptImports gives principal what was taken over before imports belonged to anybody: sessions of nobody that hold nothing else. A
// session that principal has by the same name takes their checkpoints in.
func (d *DB) adoptImports(ctx context.Context, principal string) error {
	if principal == "" {
		return nil
	}
	err := d.com.do(ctx, func(ctx context.Context, c *committer) error {
		kind, err := c.word(ctx, KindImport)
		if err != nil {
			return err
		}
		ids, err := c.ids(ctx, `SELECT id FROM session WHERE principal='' AND EXISTS (SELECT 1 FROM op WHERE session=id AND kind=?1)
			AND NOT EXISTS (SELECT 1 FROM op WHERE session=id AND kind<>?1)`, kind)
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := c.bump(ctx); err != nil { // other processes remember sessions by their names
			return err
		}
		for _, id := range ids {
			var own int64
			err := c.row(ctx, "SELECT id FROM session WHERE principal=? AND name=(SELECT name FROM session WHERE id=?)", principal, id).Scan(&own)
			if errors.Is(err, sql.ErrNoRows) {
				err = c.exec(ctx, "UPDATE session SET principal=? WHERE id=?", principal, id)
			} else if err == nil {
				err = c.exec(ctx, "UPDATE op SET session=? WHERE session=?", own, id)
				if err == nil {
					err = c.exec(ctx, `UPDATE session SET gone=max(ifnull(session.gone, 0), o.gone), gone_ts=max(ifnull(session.gone_ts, o.gone_ts), o.gone_ts)
						FROM (SELECT gone, gone_ts FROM session WHERE id=?2 AND gone IS NOT NULL) o WHERE session.id=?1`, own, id)
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("importing: %w", err)
	}
	return nil
}
