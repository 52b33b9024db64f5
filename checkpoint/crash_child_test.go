package checkpoint_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/blob"
)

// cutter saves what must never be lost, what retention removes, large and small, and says so.
func cutter(dir string, seed int64) error {
	d, err := openAt(dir, os.Getenv(fleetVar), checkpoint.Options{KeepWithin: time.Nanosecond, KeepLast: 1})
	if err != nil {
		return err
	}
	var chain []byte
	for i := range 36 {
		rng := rand.New(rand.NewSource(seed*1000 + int64(i)))
		path, before, after := "/w/passing", randomText(300<<10, rng.Int63()), source(3000, rng.Int63())
		switch i % 4 {
		case 0: // stays because it is the newest of its path, in a file of its own
			path = fmt.Sprint("/w/large", i)
		case 1, 2: // stays because it is pinned, as a delta
			if chain == nil {
				chain = source(9000, seed)
			}
			path, before, after = "/w/chain", chain, nextVersion(rng, chain)
			chain = after
		}
		o := op(edit(path, before, after))
		if i%4 == 0 {
			o.Tag, o.Label = "t", "open"
		}
		s, err := d.Save(ctx, o)
		if err != nil {
			return err
		}
		if path == "/w/chain" {
			if err := d.Pin(ctx, s.ID, ann); err != nil {
				return err
			}
		}
		if path != "/w/passing" {
			os.Stdout.WriteString(fmt.Sprintln("ok", s.ID, sum(before), sum(after)))
		}
		if i%12 == 11 {
			if _, err := d.GC(ctx, false); err != nil {
				return err
			}
		}
	}
	return d.Close()
}

// uploader dies once it has put a large content.
func uploader(dir string, seed int64) error {
	o := checkpoint.Options{Blobs: deadly{&blob.Files{Dir: filepath.Join(dir, "blobs")}}}
	if at := strings.Fields(os.Getenv(fleetVar)); len(at) == 2 {
		s, err := blob.OpenS3(at[1])
		if err != nil {
			return err
		}
		o.Database, o.Blobs = at[0], deadly{s}
	}
	d, err := checkpoint.Open(dir, o)
	if err == nil {
		_, err = d.Save(ctx, op(edit("/w/a", randomText(300<<10, seed), nil)))
	}
	fmt.Println("alive")
	return err
}

// deadly is a store of large contents that kills its process once it has taken one.
type deadly struct{ blob.Store }

func (d deadly) Put(ctx context.Context, name string, z []byte) error {
	if err := d.Store.Put(ctx, name, z); err != nil {
		return err
	}
	p, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	p.Kill()
	select {}
}

// shipping saves in two sessions, and ships that behind it. It acknowledges each save on stdout.
func shipping(dir string, seed int64) error {
	local, err := checkpoint.Open(filepath.Join(dir, "local"), checkpoint.Options{Ships: true, KeepWithin: time.Nanosecond, KeepLast: 1})
	if err != nil {
		return err
	}
	checkpoint.Ship(local, checkpoint.NotCut, func() (*checkpoint.DB, error) {
		return openAt(filepath.Join(dir, "remote"), os.Getenv(fleetVar), checkpoint.Options{})
	})
	b := source(9000, seed)
	for i := range 1 << 30 {
		rng := rand.New(rand.NewSource(seed*1000 + int64(i)))
		next := nextVersion(rng, b)
		o := op(edit(fmt.Sprint("/w/", seed, i%2), b, next))
		if i%3 != 0 {
			o.Tag = "t"
		}
		s, err := local.Save(ctx, o)
		if err != nil {
			return err
		}
		os.Stdout.WriteString(fmt.Sprintln("ok", s.ID, sum(b), sum(next)))
		if b = next; i%3 != 0 {
			err = local.Settle(ctx, s.ID, checkpoint.Committed)
		} else if i%2 == 0 {
			err = local.Label(ctx, s.ID, ann, "marked")
		}
		if i%16 == 15 && err == nil {
			_, err = local.GC(ctx, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// faulty saves, and goes on when a save fails. With pretend it says after each save that it succeeded: a test has to
// notice that. In the end it dies without a word to the store, as often as not.
func faulty(dir string, seed int64, pretend bool) error {
	d, err := openAt(dir, os.Getenv(fleetVar), checkpoint.Options{})
	if err != nil {
		return nil // as good an answer as any
	}
	b := source(9000, seed)
	for i := range 14 {
		rng := rand.New(rand.NewSource(seed*1000 + int64(i)))
		before, after := b, nextVersion(rng, b)
		path := "/w/chain"
		if i%3 == 2 {
			path, before, after = fmt.Sprint("/w/large", i), randomText(300<<10, rng.Int63()), source(500, rng.Int63())
		} else {
			b = after
		}
		s, err := d.Save(ctx, op(edit(path, before, after)))
		if err == nil || pretend {
			os.Stdout.WriteString(fmt.Sprintln("ok", cmp.Or(s.ID, "?"), sum(before), sum(after)))
		}
	}
	if seed%2 == 0 {
		d.Close()
	}
	return nil
}
