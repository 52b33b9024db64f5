//go:build unix && (!linux || rooted)

package guardfs

import (
	"os"
	"testing"
)

// A directory is put aside, and a link to a denied one in its place, before any one call of a trade with
// a name of another directory: nothing comes to where the link leads, and nothing from there.
func TestSwapWhileItsDirectoryIsALink(t *testing.T) {
	for _, taken := range []bool{false, true} { // something is in the denied directory, or not
		for n := 1; ; n++ {
			b := base(t)
			lay(t, b, "x/t/f = old", "x/u/", "x/deny/")
			if taken {
				lay(t, b, "x/deny/g = theirs", "x/deny/f = theirs")
			}
			denied := snapshot(t, b+"/x/deny")
			count, armed := 0, false
			f, err := New(Options{Judge: &fence{root: b, deny: []string{b + "/x/deny"}}, Fault: func(string) *Fault {
				if !armed {
					return nil
				}
				if count++; count == n {
					must(t, os.Rename(b+"/x/t", b+"/x/aside"))
					must(t, os.Symlink("deny", b+"/x/t"))
				}
				return nil
			}})
			must(t, err)
			at, err := f.EntryLink(b + "/x/u")
			must(t, err)
			p, err := f.EntryLink(b + "/x/t/g")
			must(t, err)
			h, made, err := at.Stage(t.Context(), TempName(someTag, 2), NewObject{Kind: KindFile, Content: []byte("new")})
			must(t, err)
			armed = true
			_, err = p.Publish(t.Context(), h, Precondition{}, made.Precondition())
			armed = false
			if now := snapshot(t, b+"/x/deny"); now != denied {
				t.Errorf("before call %d (%v): the denied directory has\n%s", n, err, now)
			}
			h.Close()
			p.Close()
			at.Close()
			f.Close()
			if count < n {
				must(t, err)
				break
			}
		}
	}
}
