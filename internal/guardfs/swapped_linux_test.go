//go:build !rooted

package guardfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Where a file can't be made without a name its temporary name is renamed. Somebody who has put another object under that name has
// published that, and we say that it was not us.
func TestSwappedTemporaryName(t *testing.T) {
	for i := range 4 {
		swap, verb := i%2 == 1, []string{"create", "create held"}[i/2]
		dir := ramdisk(t)
		lay(t, dir, "d/")
		f := open(t, &fence{root: dir})
		named := false
		hook := func(op string) *Fault {
			switch {
			case op == "openat" && !named:
				named = true
				return &Fault{Err: unix.EOPNOTSUPP}
			case op == "rename" && swap:
				names, err := filepath.Glob(dir + "/d/" + tempPrefix + "*")
				if err != nil || len(names) != 1 {
					t.Fatalf("temporary names: %v %v", names, err)
				}
				must(t, errors.Join(os.Rename(names[0], dir+"/taken"), os.WriteFile(names[0], []byte("theirs"), 0o644)))
				swap = false
			}
			return nil
		}
		swapped := swap
		err := raced(f, verb, dir+"/d/f", hook)
		if !named || swap {
			t.Fatalf("the way was another one: %v %v", named, swap)
		}
		var conflict *ConflictError
		switch got := content(dir + "/d/f"); {
		case !swapped && (err != nil || got != "ours"):
			t.Errorf("%s: by its temporary name: %q %v", verb, got, err)
		case swapped && (!errors.As(err, &conflict) || !strings.Contains(err.Error(), "swapped")):
			t.Errorf("said to be published, and there is %q: %v", got, err)
		case swapped && got != "theirs":
			t.Errorf("what somebody else put there has become %q", got)
		}
		if left := litter(t, dir); left != nil {
			t.Errorf("left %v", left)
		}
	}
}
