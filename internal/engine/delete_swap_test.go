//go:build linux && !rooted

package engine_test

import (
	"errors"
	"os"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// The directory around a tree that is deleted becomes a link to another one at some call of the deletion, and itself again at a later one: what goes is
// in the trash. Else an entry went missing, because there was nothing to delete where it was looked for.
func TestDeletionInASwappedDirectory(t *testing.T) {
	t.Parallel()
	x := grow(t, nil)
	n, from, to := 0, 0, 0
	back := func() { must(t, errors.Join(os.Remove(x.ws+"/d"), os.Rename(x.ws+"/aside", x.ws+"/d"))) }
	x.fault = func(string) *guardfs.Fault {
		if n++; n == from {
			must(t, errors.Join(os.Rename(x.ws+"/d", x.ws+"/aside"), os.Symlink("other", x.ws+"/d")))
		} else if n == to {
			back()
		}
		return nil
	}
	must(t, x.Close())
	x.open()
	x.write("other/else", "another\n")
	var last checkpoint.TrashID
	deleted, refused := 0, 0
	for calls := 1 << 20; from <= calls; {
		from++
		for to = from + 1; to == from+1 || to <= calls; to += 43 {
			must(t, os.RemoveAll(x.ws+"/d"))
			x.write("d/t/f", "meant\n")
			n = 0
			_, err := x.Delete(ctx, x.call("s"), x.ws+"/d/t", engine.DeleteOptions{Recursive: true})
			calls, n = n, 1<<20
			if from <= calls && calls < to {
				back()
			}
			must(t, x.Recover(ctx))
			page, terr := x.Trash(ctx, x.call("s"), checkpoint.TrashFilter{Limit: 1})
			must(t, terr)
			trashed := len(page.Entries) > 0 && page.Entries[0].ID != last
			if trashed {
				last = page.Entries[0].ID
			}
			if _, there := os.Stat(x.ws + "/d/t/f"); there != nil && !trashed {
				t.Fatalf("swapped at %d, back at %d of %d calls: it is gone, and not in the trash (%v)", from, to, calls, err)
			}
			if deleted++; err != nil {
				deleted, refused = deleted-1, refused+1
			}
		}
	}
	if deleted == 0 || refused == 0 {
		t.Errorf("%d deleted, %d refused: the test tests nothing", deleted, refused)
	}
}
