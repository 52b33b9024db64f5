//go:build unix

package checkpoint_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// A save to a store that was removed or moved away would be found by nobody: it is refused, until the store is back.
func TestStoreGoneUnderItsProcess(t *testing.T) {
	const name = "checkpoints.db"
	large := randomText(600<<10, 1)
	for how, take := range map[string]func(dir string) (back func() error, err error){
		"moved": func(dir string) (func() error, error) {
			return func() error { return os.Rename(dir+".old", dir) }, os.Rename(dir, dir+".old")
		},
		"replaced": func(dir string) (func() error, error) {
			back := func() error {
				if b, err := filepath.Glob(filepath.Join(dir, "blobs", "*", "*")); err != nil || len(b) != 1 {
					return errors.Join(errors.New("the new store has lost its content"), err)
				}
				return errors.Join(os.RemoveAll(dir), os.Rename(dir+".old", dir))
			}
			if err := os.Rename(dir, dir+".old"); err != nil {
				return nil, err
			}
			d, err := checkpoint.Open(dir, checkpoint.Options{})
			if err == nil {
				_, err = d.Save(ctx, op(edit("/w/large", large, nil)))
				err = errors.Join(err, d.Close())
			}
			b, err2 := filepath.Glob(filepath.Join(dir, "blobs", "*", "*"))
			for _, f := range b { // so old that it would be rubbish if nobody knew it
				err2 = errors.Join(err2, os.Chtimes(f, time.Unix(1, 0), time.Unix(1, 0)))
			}
			return back, errors.Join(err, err2)
		},
		"removed":         func(dir string) (func() error, error) { return nil, os.RemoveAll(dir) },
		"catalog removed": func(dir string) (func() error, error) { return nil, os.Remove(filepath.Join(dir, name)) },
	} {
		t.Run(how, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			d := open(t, dir, checkpoint.Options{})
			save(t, d, op(edit("/w/a", []byte("1"), []byte("2"))))
			back, err := take(dir)
			if err != nil {
				t.Fatal(err)
			}
			_, looked := os.Lstat(filepath.Join(dir, name))
			_, err1 := d.Save(ctx, op(edit("/w/a", []byte("2"), []byte("3"))))
			_, err2 := d.Save(ctx, op(edit("/w/b", large, nil)))
			_, err3 := d.List(ctx, checkpoint.Filter{AllSessions: true})
			_, err4 := d.Known(ctx, ann)
			_, err5 := d.GC(ctx, false)
			_, err6 := d.Purge(ctx, checkpoint.Purge{Hash: sum([]byte("1"))})
			for i, err := range []error{err1, err2, err3, err4, err5, err6} {
				if _, gone := errors.AsType[*checkpoint.GoneError](err); !gone {
					t.Errorf("call %d: %v", i+1, err)
				}
			}
			if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != (looked == nil) {
				t.Error("something was made in its place")
			}
			if back == nil {
				return
			}
			if err := back(); err != nil {
				t.Fatal(err)
			}
			save(t, d, op(edit("/w/a", []byte("2"), []byte("3"))))
			if p, err := d.List(ctx, checkpoint.Filter{AllSessions: true}); err != nil || len(p.Checkpoints) != 2 {
				t.Errorf("put back: %+v %v", p, err)
			}
			sound(t, d)
		})
	}
}
