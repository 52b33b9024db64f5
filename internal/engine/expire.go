package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// A tree in the trash may take long to remove. So the catalog first gets this suffix at the end of
// its place, and nobody brings half a tree back. Then the tree goes in slices.
const goneSuffix = ".gone"

const (
	expireEvery = time.Hour
	expireSlice = 200 * time.Millisecond
)

// expiry is the time of the last look for what has expired.
type expiry struct {
	mu sync.Mutex
	at time.Time
}

// due says whether the last look is long enough ago, and takes this for one.
func (x *expiry) due(now time.Time, every time.Duration) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if age := now.Sub(x.at); age >= 0 && age < every {
		return false
	}
	x.at = now
	return true
}

// again lets the next look come at once: the last one was cut short.
func (x *expiry) again() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.at = time.Time{}
}

// expire removes what has been in the trash for longer than its time. It stops before it delays the
// change that called it; the next change goes on. The store expires its own.
func (e *Engine) expire(ctx context.Context) {
	if !e.expiry.due(e.now(), expireEvery) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), expireSlice)
	defer cancel()
	db, err := e.checkpoints.open()
	if err == nil {
		f := checkpoint.TrashFilter{AllPrincipals: true, Expired: e.now(), Limit: 1000}
		for more := true; more && err == nil; {
			var page checkpoint.TrashPage
			if page, err = db.TrashList(ctx, f); err == nil {
				for i := range page.Entries {
					if t := &page.Entries[i]; t.Parked != "" {
						err = errors.Join(err, purgeTrashed(ctx, e.trash, db, t))
					}
				}
			}
			f.Cursor, more = page.Next, page.Next != ""
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		e.expiry.again()
	case err != nil:
		e.logger.Warn("what has expired could not all be removed from the trash", "err", err)
	}
}

// purgeTrashed removes one tree in the trash for good.
func purgeTrashed(ctx context.Context, trash *guardfs.FS, db *checkpoint.DB,
	t *checkpoint.Trashed) error {
	name, marked := strings.CutSuffix(t.Parked, goneSuffix)
	place, err := trash.PlaceLink(name) // a volume that is not there now keeps its entries
	if err != nil {
		return err
	}
	defer place.Close()
	if !marked {
		if err := db.TrashRename(ctx, t.ID, name+goneSuffix); err != nil {
			return err
		}
	}
	if err := place.RemoveTree(ctx, t.Identity); err != nil {
		return err
	}
	card, err := trash.PlaceLink(sidecarOf(name))
	if err != nil {
		return err
	}
	defer card.Close()
	if i := card.Object().Info; i.Kind != guardfs.KindAbsent {
		if err := card.RemoveTree(ctx, i.ID.Lasting()); err != nil {
			return err
		}
	}
	return errors.Join(db.TrashSettle(ctx, t.ID, checkpoint.Gone), db.TrashDrop(ctx, t.ID))
}

// EmptyTrash forgets entries of the trash, and removes for good what was moved there. It is for an
// operator: neither a person nor the policy is asked. at is where the trash is.
func EmptyTrash(ctx context.Context, at Place, db *checkpoint.DB,
	entries []checkpoint.Trashed) error {
	trash, err := guardfs.New(guardfs.Options{Judge: ownTrash{}, Calls: at.Calls})
	if err != nil {
		return err
	}
	defer trash.Close()
	var errs []error
	for i := range entries {
		t := &entries[i]
		if t.Parked != "" {
			errs = append(errs, purgeTrashed(ctx, trash, db, t))
			continue
		}
		errs = append(errs,
			errors.Join(db.TrashSettle(ctx, t.ID, checkpoint.Gone), db.TrashDrop(ctx, t.ID)))
	}
	return errors.Join(errs...)
}
