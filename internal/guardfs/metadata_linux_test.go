//go:build !rooted

package guardfs

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// aclOf is an access list in the kernel's form, of (tag, permissions, id).
func aclOf(entries ...[3]uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint16(b, uint16(e[0]))
		b = binary.LittleEndian.AppendUint16(b, uint16(e[1]))
		b = binary.LittleEndian.AppendUint32(b, e[2])
	}
	return b
}

const nobody = 0xffffffff // the id of entries that name nobody

// named is rw- for the owner, r-- for user 4711, --- for the group, mask r--, --- for the rest.
func named() []byte {
	return aclOf([3]uint32{1, 6, nobody}, [3]uint32{2, 4, 4711}, [3]uint32{4, 0, nobody}, [3]uint32{16, 4, nobody}, [3]uint32{32, 0, nobody})
}

// capability is CAP_NET_BIND_SERVICE, permitted and effective, in the kernel's version 2.
func capability() []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0x02000001)
	return append(binary.LittleEndian.AppendUint32(b, 1<<10), make([]byte, 12)...)
}

func privileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make files of other owners and with capabilities")
	}
}

// account is all that a replacement must keep, in one line.
func account(t *testing.T, p string) string {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(p, &st))
	out := fmt.Sprintf("%04o %d:%d", st.Mode&0o7777, st.Uid, st.Gid)
	var buf [4096]byte
	n, err := unix.Llistxattr(p, buf[:])
	must(t, err)
	names := strings.Split(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00")
	slices.Sort(names)
	for _, name := range names {
		if name == "" {
			continue
		}
		value := make([]byte, 4096)
		n, err := unix.Lgetxattr(p, name, value)
		must(t, err)
		out += fmt.Sprintf(" %s=%x", name, value[:n])
	}
	return out
}

func TestMetadataIsKept(t *testing.T) {
	privileged(t)
	for _, c := range []struct {
		name    string
		mode    uint32
		uid     int
		xattrs  map[string][]byte
		dropped string // what is reported
		lost    func(account string) string
	}{
		{name: "plain", mode: 0o644},
		{name: "private", mode: 0o600, uid: 4711},
		{name: "executable of another", mode: 0o755, uid: 4711},
		{name: "nothing allowed", mode: 0, uid: 4711},
		{name: "sticky", mode: 0o1644},
		{name: "attributes", mode: 0o640, xattrs: map[string][]byte{"user.a": []byte("1"), "user.empty": {}, "user.b": make([]byte, 2000), "trusted.t": []byte("x")}},
		{name: "access list", mode: 0o640, uid: 4711, xattrs: map[string][]byte{aclName: named()}},
		{name: "set-id bits", mode: 0o6755, uid: 4711, dropped: "[setuid setgid]",
			lost: func(s string) string { return strings.Replace(s, "6755", "0755", 1) }},
		{name: "capabilities", mode: 0o755, xattrs: map[string][]byte{capsName: capability()}, dropped: "[capabilities]",
			lost: func(s string) string { return s[:strings.Index(s, " "+capsName)] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, dir := range []func(testing.TB) string{base, ramdisk} {
				b := dir(t)
				// The directory's gifts to a new file must not come in.
				must(t, unix.Setxattr(b, "system.posix_acl_default", named(), 0))
				everyWay(t, &fence{root: b}, func(t *testing.T, f *FS, way string) {
					noLeak(t)
					p := b + "/f"
					lay(t, b, "f = old")
					must(t, os.Chown(p, c.uid, c.uid))
					unix.Removexattr(p, aclName)
					for name, value := range c.xattrs {
						if err := unix.Setxattr(p, name, value, 0); err != nil {
							t.Skipf("%s cannot be set here: %v", name, err)
						}
					}
					if c.xattrs[aclName] == nil {
						must(t, unix.Chmod(p, c.mode))
					}
					want := account(t, p)
					if c.lost != nil {
						want = c.lost(want)
					}
					pub, err := write(f, p, "new", options{way: way})
					must(t, err)
					if got := account(t, p); got != want {
						t.Errorf("is   %s\nwant %s", got, want)
					}
					if got := fmt.Sprint(pub.Dropped); got != c.dropped && (c.dropped != "" || len(pub.Dropped) > 0) {
						t.Errorf("reported %s, want %s", got, c.dropped)
					}
				})
			}
		})
	}
}

// Where the system refuses to carry something over, the file gets fewer rights for it, never more, and the answer says so.
func TestMetadataThatCannotBeKept(t *testing.T) {
	privileged(t)
	for _, c := range []struct {
		name, op string
		err      error
		nth      int // which call of that name fails; 0: all
		mode     fs.FileMode
		dropped  string
		want     string // mode and owner
	}{
		{"owner", "chown", unix.EPERM, 1, 0o640, "[owner]", "0640 0:4711"},
		{"owner and group", "chown", unix.EPERM, 0, 0o664, "[owner group]", "0644 0:0"},
		{"group that had more than the others", "chown", unix.EPERM, 0, 0o660, "[owner group]", "0600 0:0"},
		{"attributes", "setxattr", unix.EOPNOTSUPP, 0, 0o640, "[acl xattr:user.k]", "0600 4711:4711"},
		{"mode", "chmod", unix.EPERM, 0, 0o640, "[mode]", "0600 4711:4711"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := base(t)
			f := open(t, &fence{root: b})
			p := b + "/f"
			for _, way := range ways {
				lay(t, b, "f = old")
				must(t, os.Chown(p, 4711, 4711))
				if c.op == "setxattr" {
					must(t, unix.Setxattr(p, "user.k", []byte("v"), 0))
					must(t, unix.Setxattr(p, aclName, named(), 0))
				} else {
					must(t, os.Chmod(p, c.mode))
				}
				count := 0
				f.kernel.hook = func(op string) *Fault {
					if op == c.op {
						if count++; c.nth == 0 || count == c.nth {
							return &Fault{Err: c.err}
						}
					}
					return nil
				}
				pub, err := write(f, p, "new", options{way: way})
				must(t, err)
				if got := fmt.Sprint(pub.Dropped); got != c.dropped {
					t.Errorf("reported %s, want %s", got, c.dropped)
				}
				if got := account(t, p); !strings.HasPrefix(got, c.want) || strings.Contains(got, "=") {
					t.Errorf("is %s, want %s", got, c.want)
				}
				f.kernel.hook = nil
				must(t, os.Remove(p))
			}
		})
	}
}

// A restore brings back exactly what it is told, times included, whatever stands there now.
func TestMetadataOfARestore(t *testing.T) {
	privileged(t)
	b := base(t)
	when := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)
	everyWay(t, &fence{root: b}, func(t *testing.T, f *FS, way string) {
		defer os.Remove(b + "/f")
		for range 2 { // where nothing is, and over a file
			pub, err := write(f, b+"/f", "old", options{way: way, Meta: &Metadata{Mode: 0o604, UID: 4711, GID: 4712, ModTime: when,
				Xattrs: map[string][]byte{"user.k": []byte("v")}}})
			must(t, err)
			if got := account(t, b+"/f"); got != "0604 4711:4712 user.k=76" || len(pub.Dropped) > 0 {
				t.Errorf("%s, dropped %v", got, pub.Dropped)
			}
			if !pub.Info.ModTime.Equal(when) {
				t.Errorf("modified %v", pub.Info.ModTime)
			}
			must(t, os.WriteFile(b+"/f", []byte("something else"), 0o644))
			must(t, os.Chmod(b+"/f", 0o777))
			must(t, unix.Setxattr(b+"/f", "user.other", []byte("x"), 0))
		}
	})
}
