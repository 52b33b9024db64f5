//go:build !rooted

package guardfs

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// mounts tells under which other names an object can be reached because its file system, or a part
// of it, is mounted in more than one place: a bind mount is that. It holds for one moment.
// nil knows of none. Names by mounts that another one covers count too: rules may mean them.
type mounts struct {
	at     map[string]*mount   // what a path meets, by mount point
	points map[string][]string // directory → the names in it that other mounts give other names
	most   int                 // bytes in the longest mount point
}

type mount struct {
	id, parent  int
	dev         string
	root, point string   // what of its file system is shown, and where
	peers       []*mount // those that show a part of what this one shows
}

// parseMounts reads /proc/self/mountinfo.
func parseMounts(text string) (*mounts, error) {
	var all []*mount
	byDev, below := map[string][]*mount{}, map[int][]*mount{}
	ids := map[int]bool{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 5 {
			return nil, fmt.Errorf("odd line %q in mountinfo", line)
		}
		m := &mount{dev: f[2], root: unescape(f[3]), point: unescape(f[4])}
		var err, err2 error
		m.id, err = strconv.Atoi(f[0])
		m.parent, err2 = strconv.Atoi(f[1])
		if err != nil || err2 != nil || !strings.HasPrefix(m.point, "/") {
			return nil, fmt.Errorf("odd line %q in mountinfo", line)
		}
		all, ids[m.id] = append(all, m), true
		below[m.parent] = append(below[m.parent], m)
		for _, o := range byDev[m.dev] {
			if within(m.root, o.root) || within(o.root, m.root) {
				m.peers, o.peers = append(m.peers, o), append(o.peers, m)
			}
		}
		byDev[m.dev] = append(byDev[m.dev], m)
	}
	t := &mounts{at: map[string]*mount{}, points: map[string][]string{}}
	for _, m := range all {
		t.split(m)
		if m.parent == m.id || !ids[m.parent] {
			t.show(m, below)
		}
	}
	if len(t.points) == 0 {
		return nil, nil
	}
	return t, nil
}

// show enters m, which a path can meet, and of the mounts on it those that can be met: another one
// may lie over the way to them.
func (t *mounts) show(m *mount, below map[int][]*mount) {
	t.at[m.point], t.most = m, max(t.most, len(m.point))
	for _, c := range below[m.id] {
		hidden := c == m || slices.ContainsFunc(below[m.id], func(o *mount) bool {
			return o != m && o.point != c.point && within(c.point, o.point)
		})
		if !hidden {
			t.show(c, below)
		}
	}
}

// split enters the names of the tree that m shows: where it is mounted, and where its peers show it.
func (t *mounts) split(m *mount) {
	add := func(name string) {
		dir, base := path.Split(name)
		dir = path.Clean(dir)
		if !slices.Contains(t.points[dir], base) {
			t.points[dir] = append(t.points[dir], base)
		}
	}
	for _, p := range m.peers {
		add(m.point)
		if within(m.root, p.root) {
			add(graft(p.point, m.root, p.root))
		}
	}
}

// point says whether name in dir has other names that dir itself does not: it is a mount point, or
// it is mounted elsewhere.
func (t *mounts) point(dir, name string) bool {
	return t != nil && slices.Contains(t.points[dir], name)
}

// others are the other names of the object that has, or would have, the true name name.
func (t *mounts) others(name string) (names []string) {
	if t == nil {
		return nil
	}
	dir := name
	if len(dir) > t.most { // in the depth of a tree
		dir = dir[:max(strings.LastIndexByte(dir[:t.most+1], '/'), 1)]
	}
	m := t.at[dir]
	for m == nil && dir != "/" {
		dir = path.Dir(dir)
		m = t.at[dir]
	}
	if m == nil {
		return nil
	}
	inside := graft(m.root, name, m.point)
	for _, p := range m.peers {
		if within(inside, p.root) {
			if other := graft(p.point, inside, p.root); other != name {
				names = append(names, other)
			}
		}
	}
	return names
}

// tell adds to o the other names of all that it names.
func (t *mounts) tell(o *Object) {
	if t == nil {
		return
	}
	o.Also = t.others(o.True)
	hops := o.Hops
	o.Hops = nil // the caller's are not changed
	for _, h := range hops {
		h.Also = t.others(h.Name)
		o.Hops = append(o.Hops, h)
	}
}

// within says whether name is dir or below it.
func within(name, dir string) bool {
	return dir == "/" || strings.HasPrefix(name, dir) && (len(name) == len(dir) || name[len(dir)] == '/')
}

// graft is the name that name, which is from or below it, has when from is called to.
func graft(to, name, from string) string {
	rest := name
	if from != "/" {
		rest = name[len(from):]
	}
	if to == "/" {
		to = ""
	}
	if out := to + strings.TrimSuffix(rest, "/"); out != "" {
		return out
	}
	return "/"
}

// unescape takes back what the kernel does to blanks, newlines and backslashes in names: \040.
func unescape(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, `\`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if n, err := strconv.ParseUint(after[:min(3, len(after))], 8, 8); err == nil && len(after) >= 3 {
			b.WriteByte(byte(n))
			after = after[3:]
		} else {
			b.WriteByte('\\')
		}
		s = after
	}
}

// mountTable is the list of mounts as it was read last.
type mountTable struct {
	mu     sync.Mutex
	number int64 // of its text: see Calls.Mounts
	now    *mounts
	hang   bool // mayHang
}

// mounts is the list of mounts now. To ask costs one call of the system as long as nothing changed.
func (k *kernel) mounts() (now *mounts, err error) {
	err = k.byHandle(func() error {
		t := &k.table
		t.mu.Lock()
		defer t.mu.Unlock()
		text, number, err := k.calls.Mounts(t.number)
		if err == nil && number != t.number {
			if t.now, err = parseMounts(string(text)); err == nil {
				t.number, t.hang = number, mayHang(string(text))
			}
		}
		now = t.now
		return err
	})
	return now, err
}

// MayHang says whether something is mounted that may leave a call without an answer: one that another
// machine or program serves. Where that can't be told it may.
func (f *FS) MayHang() bool {
	_, err := f.kernel.mounts()
	f.kernel.table.mu.Lock()
	defer f.kernel.table.mu.Unlock()
	return err != nil || f.kernel.table.hang
}

// localTypes are the types of file systems that answer as long as the kernel and the disk do. 9p,
// virtiofs, fuse, nfs and unknown types are none.
var localTypes = strings.Fields(`bcachefs binfmt_misc bpf btrfs cgroup cgroup2 configfs cpuset debugfs
	devpts devtmpfs ecryptfs efivarfs erofs exfat ext2 ext3 ext4 f2fs fusectl hfs hfsplus hugetlbfs
	iso9660 jfs jffs2 minix mqueue msdos nilfs2 nsfs ntfs3 overlay proc pstore ramfs reiserfs romfs
	rootfs rpc_pipefs securityfs selinuxfs squashfs sysfs tmpfs tracefs ubifs udf ufs vfat xfs zfs
	zonefs`)

// mayHang looks at the types in mountinfo, which come after " - ".
func mayHang(mountinfo string) bool {
	for line := range strings.Lines(mountinfo) {
		_, kind, _ := strings.Cut(line, " - ")
		if kind, _, _ = strings.Cut(kind, " "); !slices.Contains(localTypes, kind) {
			return true
		}
	}
	return false
}

// allNames asks a Judge, and tells it all names of each object.
type allNames struct {
	rules  Judge
	kernel *kernel
}

func (n allNames) Judge(o Object, a Access) error {
	m, err := n.kernel.mounts()
	if err != nil { // nothing is let through while the names are unknown
		return &PathError{Op: "look up the mounts of", Path: o.Spelled, Err: err}
	}
	m.tell(&o)
	return n.rules.Judge(o, a)
}
