package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// interned remembers rows of word and attr: a list meets the same few again and again, and nobody ever changes or deletes one. It is safe for
// concurrent use.
type interned struct {
	mu    sync.Mutex
	words map[int64]string
	attrs map[int64]attrRow
}

type attrRow struct {
	mode, uid, gid int64
	xattrs         []byte // as stored
}

const (
	maxInterned = 4096 // of each kind
	longXattrs  = 1024 // bytes from which they are read again each time
)

// word finds a word. sql.ErrNoRows: the catalog is damaged, there is none.
func (in *interned) word(ctx context.Context, q querier, id int64) (string, error) {
	in.mu.Lock()
	s, ok := in.words[id]
	in.mu.Unlock()
	if ok {
		return s, nil
	}
	return in.readWord(ctx, q, id)
}

func (in *interned) readWord(ctx context.Context, q querier, id int64) (s string, err error) {
	if err := q.QueryRowContext(ctx, "SELECT s FROM word WHERE id=?", id).Scan(&s); err != nil {
		return "", err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.words == nil || len(in.words) >= maxInterned {
		in.words = map[int64]string{}
	}
	in.words[id] = s
	return s, nil
}

// attr finds owner, mode and attributes; the zero attrRow where there are none.
func (in *interned) attr(ctx context.Context, q querier, id sql.NullInt64) (attrRow, error) {
	if !id.Valid {
		return attrRow{}, nil
	}
	in.mu.Lock()
	a, ok := in.attrs[id.Int64]
	in.mu.Unlock()
	if ok {
		return a, nil
	}
	return in.readAttr(ctx, q, id.Int64)
}

func (in *interned) readAttr(ctx context.Context, q querier, id int64) (a attrRow, err error) {
	err = q.QueryRowContext(ctx, "SELECT mode, uid, gid, xattrs FROM attr WHERE id=?", id).Scan(&a.mode, &a.uid, &a.gid, &a.xattrs)
	if errors.Is(err, sql.ErrNoRows) {
		return attrRow{}, nil
	}
	if err != nil || len(a.xattrs) > longXattrs {
		return a, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.attrs == nil || len(in.attrs) >= maxInterned {
		in.attrs = map[int64]attrRow{}
	}
	in.attrs[id] = a
	return a, nil
}
