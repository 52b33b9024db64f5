//go:build linux && !rooted

package engine_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// A file and a link trade places before any one system call of a deletion: what is deleted is what
// was looked at, or nothing is, and the other one stays.
func TestDeleteWhileALinkIsSwappedIn(t *testing.T) {
	for _, path := range []string{"d/f", "d/l", "d"} {
		x := grow(t, nil)
		system := callsOf(x)
		for n := 1; ; n++ {
			must(t, os.RemoveAll(x.ws+"/d"))
			x.write("d/f", "old\n")
			must(t, os.Symlink("f", x.ws+"/d/l"))
			count := 0
			hook := func(string) *guardfs.Fault {
				if count++; count == n {
					err := unix.Renameat2(unix.AT_FDCWD, x.ws+"/d/f", unix.AT_FDCWD, x.ws+"/d/l", unix.RENAME_EXCHANGE)
					if err != nil && !errors.Is(err, os.ErrNotExist) {
						t.Error(err)
					}
				}
				return nil
			}
			system.hook.Store(&hook)
			done, err := x.Delete(ctx, x.call("s"), x.ws+"/"+path, engine.DeleteOptions{Recursive: true})
			system.hook.Store(nil)
			if count < n {
				must(t, err)
				break
			}
			now := x.looks()
			file, link := strings.Contains(now, " old\n"), strings.Contains(now, "-> f")
			switch {
			case path == "d" && err == nil && !file && !link && len(done.Trashed) == 1:
			case path != "d" && err == nil && done.Trashed[0].Size == 4 && !file && link: // the size that was looked at
			case path != "d" && err == nil && done.Trashed[0].Size == 1 && file && !link:
			case err != nil && file && link:
			default:
				t.Errorf("%s, swapped before call %d: %v\n%s", path, n, err, now)
			}
		}
	}
}
