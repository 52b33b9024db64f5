package checkpoint

import (
	"context"
	"errors"
	"fmt"
)

// inPart is about how many bytes of content one part may hold.
const inPart = 16 << 20

// saveInParts is Save for an operation whose contents may be too much to be in memory together. Of each file before the change the hash and the size
// are known, and read gets the content of change i. Contents go into the store part by part, and the operation after them all: it is there as a whole
// or not at all, and what a crash leaves of the parts is what gc removes anyhow.
func (d *DB) saveInParts(ctx context.Context, op Op, read func(i int) ([]byte, error)) error {
	if err := d.enter(); err != nil {
		return err
	}
	defer d.active.Done()
	if _, err := op.check(&d.o, nil); err != nil {
		return err
	}
	if err := d.spareReserve(); err != nil {
		return err
	}
	need := func(ctx context.Context) (int64, error) { return d.newSizes(ctx, &op) }
	size, err := need(ctx)
	if err == nil {
		err = d.keep.roomFor(ctx, size, need)
	}
	if err != nil {
		return err
	}
	// Nothing refers to the parts before the end: an eviction of this process would take them. After that of another one they are stored anew.
	d.keep.making.Lock()
	defer d.keep.making.Unlock()
	for try := 0; ; try++ {
		err := d.tryInParts(ctx, &op, read, try >= 3)
		if errors.Is(err, errStale) && try < 4 {
			continue
		}
		if err != nil {
			return fmt.Errorf("saving checkpoint: %w", named(err))
		}
		return nil
	}
}

func (d *DB) tryInParts(ctx context.Context, op *Op, read func(i int) ([]byte, error), blind bool) error {
	var part []Change
	held := int64(0)
	for i := range op.Changes {
		c := op.Changes[i]
		if !c.wantsContent() {
			continue
		}
		h, err := parseHash(c.Before.Hash)
		if err != nil {
			return err
		}
		if stored, err := d.lookUp(ctx, &version{h: h}); err != nil {
			return err
		} else if stored {
			continue
		}
		if held > 0 && held+c.Before.Size > inPart {
			if err := d.savePart(ctx, part, blind); err != nil {
				return err
			}
			part, held = nil, 0
		}
		if c.Content, err = read(i); err != nil {
			return err
		}
		if why := c.Before.check(c.Content); why != "" {
			return &BadOpError{c.Path, "before: " + why}
		}
		c.After = State{}
		part, held = append(part, c), held+c.Before.Size
	}
	if err := d.savePart(ctx, part, blind); err != nil {
		return err
	}
	s := &save{d: d, op: op, blind: true}
	err := d.com.do(ctx, func(ctx context.Context, c *committer) error {
		if err := c.notImported(ctx, op); err != nil {
			return err
		}
		if err := s.write(ctx, c); err != nil {
			return err
		}
		if len(s.missing) > 0 {
			return errStale
		}
		return nil
	})
	if err == nil {
		d.keep.saved(0)
	}
	return err
}

// errImported: an import of the same folder that ran at the same time was faster.
var errImported = errors.New("it was taken over meanwhile")

// notImported is errImported if the principal of op has its label among what was imported. Inside the transaction that imports nobody can come in between.
func (c *committer) notImported(ctx context.Context, op *Op) error {
	if op.Kind != KindImport {
		return nil
	}
	var n int64
	err := c.row(ctx, `SELECT count(*) FROM op WHERE label=? AND kind=(SELECT id FROM word WHERE s=?)
		AND session IN (SELECT id FROM session WHERE principal=?)`, op.Label, op.Kind, op.Principal).Scan(&n)
	if err == nil && n > 0 {
		err = errImported
	}
	return err
}

// savePart stores the contents of changes, and no operation.
func (d *DB) savePart(ctx context.Context, part []Change, blind bool) error {
	if len(part) == 0 {
		return nil
	}
	s := &save{d: d, op: &Op{Changes: part}, again: true, blind: blind}
	err := s.prepare(ctx)
	if err == nil {
		err = d.com.do(ctx, func(ctx context.Context, c *committer) error {
			if c.gen != s.gen && !blind {
				return errStale
			}
			s.unused = s.unused[:0]
			for i := range s.parts {
				if err := s.writePart(ctx, c, &s.parts[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		if !errors.As(err, new(*SyncError)) {
			s.discard()
		}
		return err
	}
	for _, f := range s.unused {
		d.removeExt(f)
	}
	d.keep.saved(s.bytes)
	return nil
}

// wantsContent reports whether the content before the change is to be stored.
func (c *Change) wantsContent() bool { return c.Before.Kind == File && c.Skipped == "" }

// newSizes is what the contents of op come to that are not stored yet, each counted once, by the sizes that are known of them.
func (d *DB) newSizes(ctx context.Context, op *Op) (n int64, err error) {
	seen := map[string]bool{}
	for i := range op.Changes {
		c := &op.Changes[i]
		if !c.wantsContent() || seen[c.Before.Hash] {
			continue
		}
		seen[c.Before.Hash] = true
		h, err := parseHash(c.Before.Hash)
		if err != nil {
			return 0, err
		}
		if stored, err := d.lookUp(ctx, &version{h: h}); err != nil {
			return 0, err
		} else if !stored {
			n += c.Before.Size
		}
	}
	return n, nil
}
