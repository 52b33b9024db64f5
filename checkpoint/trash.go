package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strconv"
	"strings"
	"time"

	"moltisfs/internal/ids"
)

// TrashID names an entry of the trash: as ID, with "tr-" in front.
type TrashID string

// The times that the trash keeps entries of users and of agents.
const (
	TrashOfUsers  = 168 * time.Hour
	TrashOfAgents = 24 * time.Hour
)

// Trashed is one deleted file or tree. The catalog keeps the entry; the caller moves the payload.
type Trashed struct {
	ID         TrashID   `json:"id"`
	Path       string    `json:"path"` // where it was
	Kind       Kind      `json:"kind"`
	Size       int64     `json:"size"`
	Files      int       `json:"files"` // in the whole tree
	Principal  string    `json:"principal"`
	Session    string    `json:"session"`
	Checkpoint ID        `json:"checkpoint,omitempty"` // the operation that deleted it; GC keeps that as long as there is the entry
	Deleted    time.Time `json:"deleted"`
	Expires    time.Time `json:"expires"`
	Parked     string    `json:"-"` // where it is
	Identity   string    `json:"-"` // of what was parked, as the caller writes it: not anything else is moved back
	Agent      bool      `json:"-"` // on Put: with Expires zero, keep it as long as an agent's, not a user's
	// Moving: announced, on its way into the trash or back. After a crash the payload is either at Path or at
	// Parked, and the caller settles the entry by looking.
	Moving bool `json:"-"`
}

// complete fills in what follows from the rest, and refuses what contradicts itself.
func (t *Trashed) complete() error {
	if t.Expires.IsZero() {
		t.Expires = t.Deleted.Add(TrashOfUsers)
		if t.Agent {
			t.Expires = t.Deleted.Add(TrashOfAgents)
		}
	}
	if p := t.Parked; p == "" || !rooted(p) || len(p) > maxPath || strings.IndexByte(p, 0) >= 0 {
		return &BadOpError{p, "path is not absolute, too long or has a NUL byte"}
	}
	if t.Kind == Absent || t.Kind == "" || t.Files < 0 {
		return &BadOpError{t.Path, "a trash entry needs a kind and true sizes"}
	}
	if y := t.Expires.Year(); timeNs(t.Deleted) == nil || y <= oldestYear || y >= youngestYear {
		return &BadOpError{t.Path, "the time is out of range"}
	}
	return nil
}

// putTrash writes the row of an entry that is complete, and gives it an id if it has none. op is the number of its operation.
func (tx *tx) putTrash(ctx context.Context, t *Trashed, op int64) error {
	last, err := one[int64](ctx, tx, "SELECT coalesce(max(id), 0) FROM trash")
	if err != nil {
		return err
	}
	if t.ID == "" {
		t.ID = TrashID(ids.New(trashPrefix, last+1))
	}
	err = tx.exec(ctx, `INSERT INTO trash(id, name, ts, expires, principal, session, path, parked, op,
			phase, kind, size, files, ident) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
		last+1, t.ID, t.Deleted.UnixNano(), t.Expires.UnixNano(), t.Principal, t.Session, []byte(t.Path),
		[]byte(t.Parked), op, count(!t.Moving), string(t.Kind), t.Size, t.Files, t.Identity)
	if err != nil {
		return err
	}
	t.Deleted, t.Expires = time.Unix(0, t.Deleted.UnixNano()), time.Unix(0, t.Expires.UnixNano())
	return nil
}

// trashParked is trash.phase of what is not moving; else it is 0.
const trashParked = 1

// TrashSettle notes whether the payload of an entry lies in the trash, or is on its way back. It is durable on
// return. ErrNotFound: there is no such entry.
func (d *DB) TrashSettle(ctx context.Context, id TrashID, parked bool) error {
	return d.updateTrash(ctx, id, "settling trash", "UPDATE trash SET phase=? WHERE name=?", count(parked))
}

// TrashRename records that a payload lies elsewhere: its name was taken, or it was moved to another
// volume.
func (d *DB) TrashRename(ctx context.Context, id TrashID, parked string) error {
	if parked == "" || !rooted(parked) {
		return &BadOpError{parked, "path is not absolute"}
	}
	return d.updateTrash(ctx, id, "renaming trash", "UPDATE trash SET parked=? WHERE name=?", []byte(parked))
}

// TrashDrop forgets an entry whose payload came back or was removed.
func (d *DB) TrashDrop(ctx context.Context, id TrashID) error {
	return d.updateTrash(ctx, id, "dropping trash", "DELETE FROM trash WHERE name=?")
}

// updateTrash runs q, whose last argument is the name of the entry id.
func (d *DB) updateTrash(ctx context.Context, id TrashID, doing, q string, args ...any) error {
	id, err := ParseTrashID(string(id))
	if err != nil {
		return err
	}
	return d.write(ctx, doing, true, func(ctx context.Context, tx *tx) error {
		if err := d.unsent(ctx, tx, false, "seq=(SELECT op FROM trash WHERE name=?)", id); err != nil {
			return err
		}
		return tx.must(ctx, q, append(args, id)...)
	})
}

// TrashFilter selects entries. Only those of Principal are seen unless AllPrincipals is set.
type TrashFilter struct {
	Principal     string
	AllPrincipals bool
	Session       string    // deleted by this session; "" for any
	Path          string    // exactly
	PathContains  string    // letters of either case
	Checkpoint    ID        // of this operation
	Expired       time.Time // only what has expired by then
	Unsettled     bool      // only what is moving, which a crash may have left; otherwise only what is not
	Limit         int       // 20 when 0, at most 1000
	Cursor        string
}

// TrashPage is a list of entries, newest first.
type TrashPage struct {
	Entries []Trashed
	Next    string
}

const trashColumns = `SELECT t.id, t.name, t.ts, t.expires, t.principal, t.session, t.path, t.parked,
	coalesce(op.id, ''), t.phase, t.kind, t.size, t.files, t.ident FROM trash t LEFT JOIN op ON op.seq=t.op`

// TrashGet returns an entry of principal, or with all of anybody; ErrNotFound when there is none.
func (d *DB) TrashGet(ctx context.Context, id TrashID, principal string,
	all bool) (Trashed, error) {
	id, err := ParseTrashID(string(id))
	if err != nil {
		return Trashed{}, err
	}
	var t Trashed
	err = d.view(ctx, func(h *history) error {
		_, t, err = scanTrashed(h.q.QueryRowContext(ctx, trashColumns+" WHERE t.name=?", id))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) || (err == nil && !all && t.Principal != principal) {
		return Trashed{}, ErrNotFound
	}
	return t, err
}

func scanTrashed(row scanner) (id int64, t Trashed, err error) {
	var ts, expires, phase int64
	var path, parked []byte
	err = row.Scan(&id, &t.ID, &ts, &expires, &t.Principal, &t.Session, &path, &parked, &t.Checkpoint, &phase,
		&t.Kind, &t.Size, &t.Files, &t.Identity)
	t.Deleted, t.Expires = time.Unix(0, ts), time.Unix(0, expires)
	t.Path, t.Parked, t.Moving = string(path), string(parked), phase != trashParked
	return id, t, err
}

// TrashList returns entries, newest first.
func (d *DB) TrashList(ctx context.Context, f TrashFilter) (TrashPage, error) {
	var w where
	if f.Cursor != "" {
		below, err := strconv.ParseInt(f.Cursor, 10, 64)
		if err != nil {
			return TrashPage{}, &BadOpError{"", "the cursor is none that a list gave out"}
		}
		w.and("t.id < ?", below)
	}
	w.and("(t.phase<>?)=?", trashParked, f.Unsettled)
	w.when(!f.AllPrincipals, "t.principal = ?", f.Principal)
	w.when(f.Session != "", "t.session = ?", f.Session)
	w.when(f.Path != "", "t.path = ?", []byte(f.Path))
	if f.Checkpoint != "" {
		op, err := ParseID(string(f.Checkpoint))
		if err != nil {
			return TrashPage{}, err
		}
		w.and("op.id = ?", op)
	}
	w.when(!f.Expired.IsZero(), "t.expires <= ?", clampNs(f.Expired))
	limit := Filter{Limit: f.Limit}.limit()
	page := TrashPage{Entries: []Trashed{}}
	err := d.view(ctx, func(h *history) error {
		part := strings.ToLower(f.PathContains)
		var last int64
		all := trashColumns + w.sql() + " ORDER BY t.id DESC"
		return each(ctx, h.q, all, w.args, func(row scanner) error {
			id, t, err := scanTrashed(row)
			if err != nil || !strings.Contains(strings.ToLower(t.Path), part) {
				return err
			}
			if len(page.Entries) == limit {
				page.Next = strconv.FormatInt(last, 10)
				return fs.SkipAll
			}
			page.Entries, last = append(page.Entries, t), id
			return nil
		})
	})
	if err != nil {
		return TrashPage{}, fmt.Errorf("listing trash: %w", err)
	}
	return page, nil
}

// Sidecar is the text of the file that lies beside a parked payload, in the form of freedesktop.org
// with lines of our own. It tells a person who finds the payload what it is; nothing here ever
// reads it.
func (t *Trashed) Sidecar() []byte {
	u := url.URL{Path: t.Path}
	var b strings.Builder
	b.WriteString("[Trash Info]\n")
	b.WriteString("Path=" + u.EscapedPath() + "\n")
	b.WriteString("DeletionDate=" + t.Deleted.Local().Format("2006-01-02T15:04:05") + "\n")
	b.WriteString("X-Id=" + string(t.ID) + "\n")
	b.WriteString("X-Principal=" + strconv.Quote(t.Principal) + "\n")
	b.WriteString("X-Expires=" + t.Expires.UTC().Format(time.RFC3339) + "\n")
	b.WriteString("X-Identity=" + strconv.Quote(t.Identity) + "\n")
	return []byte(b.String())
}
