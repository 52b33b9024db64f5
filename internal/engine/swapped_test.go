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

// Two directories trade places while the path of a deletion is looked up, and back again when its
// file is looked at: what is deleted has its entry in the trash, and the other one stays.
func TestDeleteWhileItsDirectoryIsSwapped(t *testing.T) {
	x := grow(t, nil)
	system := callsOf(x)
	swap := func() error {
		return unix.Renameat2(unix.AT_FDCWD, x.ws+"/d", unix.AT_FDCWD, x.ws+"/e", unix.RENAME_EXCHANGE)
	}
	for first := 1; first < 12; first++ {
		for second := first + 8; second < first+24; second++ {
			must(t, errors.Join(os.RemoveAll(x.ws+"/d"), os.RemoveAll(x.ws+"/e")))
			x.write("d/f", "this\n")
			x.write("e/f", "that\n")
			count := 0
			hook := func(string) *guardfs.Fault {
				if count++; count == first || count == second {
					must(t, swap())
				}
				return nil
			}
			system.hook.Store(&hook)
			done, err := x.Delete(ctx, x.call("s"), x.ws+"/d/f", engine.DeleteOptions{})
			system.hook.Store(nil)
			if err == nil && len(done.Trashed) == 1 {
				if _, err = x.Untrash(ctx, x.call("s"), done.Trashed[0].ID, false); engine.Conflicts.In(err) {
					must(t, swap()) // the other one had its name
					_, err = x.Untrash(ctx, x.call("s"), done.Trashed[0].ID, false)
				}
				must(t, err)
			} else if err == nil {
				t.Errorf("swapped before calls %d and %d: the trash has %v", first, second, done.Trashed)
			}
			if now := x.looks(); strings.Count(now, " this\n") != 1 || strings.Count(now, " that\n") != 1 {
				t.Errorf("swapped before calls %d and %d: %v\n%s", first, second, err, now)
			}
		}
	}
}
