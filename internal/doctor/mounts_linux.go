package doctor

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// kernel looks for what the guards stand on.
func kernel(say sayer) {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err == nil {
		_ = unix.Close(fd)
		say(OK, "kernel", "", "openat2 is there: each path is resolved in one step", "")
	} else {
		say(Weaker, "kernel", "", "openat2 is not there: paths are walked one name after the other",
			"use Linux 5.6 or newer, and a container profile that lets openat2 through")
	}
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		say(Hazard, "kernel", "/proc", "it is not mounted, and without it nothing is opened",
			"mount it, as containers do by default")
	}
	switch abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, 1); {
	case errno != 0:
		say(Weaker, "kernel", "", "Landlock is not there: the kernel can't hold programs of the "+
			"agent's", "give them a container, or their own user")
	case abi < 6:
		say(Weaker, "kernel", "", fmt.Sprintf("Landlock is old, ABI %d: confine says what is not held",
			abi), "use Linux 6.12 or newer")
	default:
		say(OK, "kernel", "", fmt.Sprintf("Landlock is there, ABI %d", abi), "")
	}
}

// A mountTable is /proc/self/mountinfo, in its order: later mounts lie over earlier ones.
type mountTable []mount

type mount struct{ root, point, options, kind string }

func readMounts(say sayer) mountTable {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		say(Weaker, "kernel", "", "the mounts can't be told: "+err.Error(), "")
	}
	return parseMounts(string(text))
}

// parseMounts takes mountinfo apart; proc_pid_mountinfo(5) has its form.
func parseMounts(text string) (all mountTable) {
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		f, kind := strings.Fields(before), strings.Fields(after)
		if ok && len(f) >= 6 && len(kind) > 0 {
			all = append(all, mount{unescape.Replace(f[3]), unescape.Replace(f[4]), f[5], kind[0]})
		}
	}
	return all
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// A fileSystem is what one kind is known for.
type fileSystem struct {
	kinds string // with blanks between them; one that ends in a dot is a beginning
	level Level
	what  string
}

var fileSystems = []fileSystem{
	{"ext4 ext3 ext2 xfs btrfs zfs f2fs bcachefs", OK, "every promise holds on it"},
	{"tmpfs ramfs", Weaker, "what it holds is gone with the power"},
	{"nfs nfs4 cifs smb3 9p ceph glusterfs afs virtiofs", Weaker,
		"others change it over the network: watches do not see that, locks hold as the server " +
			"has it, and replacing a file may be a look and a rename in two steps"},
	{"fuse fuse. fuseblk", Weaker,
		"a program serves it: what it does not offer, as an atomic exchange, is done in steps"},
	{"vfat exfat msdos ntfs ntfs3 hfs hfsplus", Weaker, "letter case does not count, modes are " +
		"not kept, and replacing a file is a look and a rename in two steps"},
	{"overlay", Weaker, "a file becomes another one with its first change, and a denied file may " +
		"also be reached in the layers below, if those are open"},
	{"proc sysfs debugfs tracefs securityfs cgroup cgroup2 devpts devtmpfs", Hazard,
		"it is the kernel's: nothing is read from it"},
}

// of says what is known of the file system below a root.
func (all mountTable) of(say sayer, root string) {
	var at *mount
	for i := range all {
		if within(root, all[i].point) && (at == nil || len(all[i].point) >= len(at.point)) {
			at = &all[i]
		}
	}
	if at == nil {
		return
	}
	level, what := Weaker, "nobody has tried it with this program"
	for _, k := range fileSystems {
		if slices.ContainsFunc(strings.Fields(k.kinds), func(kind string) bool {
			return kind == at.kind ||
				strings.HasSuffix(kind, ".") && strings.HasPrefix(at.kind, kind)
		}) {
			level, what = k.level, k.what
		}
	}
	say(level, "root", root, at.kind+": "+what, "")
	if slices.Contains(strings.Split(at.options, ","), "ro") {
		say(Weaker, "root", root, "it is mounted read-only: nothing can be changed", "")
	}
	if at.root != "/" && at.kind != "btrfs" && at.kind != "zfs" {
		say(Weaker, "root", root, "it shows "+at.root+" of its volume (a bind mount): the "+
			"same files have other names, and rules for those hold only where they are mounted", "")
	}
	if inside := all.below(root); len(inside) > 0 {
		say(Weaker, "root", root, "other mounts lie in it: "+strings.Join(inside, ", "),
			"moltis-fs doctor --root DIR looks at each")
	}
	if caseInsensitive(root) {
		say(Weaker, "root", root, "letter case does not count here; deny rules allow for it, "+
			"allow rules are exact", "")
	}
}

// below are the mount points in a root, at most five of them.
func (all mountTable) below(root string) (points []string) {
	for _, m := range all {
		if len(points) < 5 && m.point != root && within(m.point, root) &&
			!slices.Contains(points, m.point) {
			points = append(points, m.point)
		}
	}
	return points
}

// caseInsensitive says whether a directory folds letter case, as ext4 and f2fs can.
func caseInsensitive(dir string) bool {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)        //nolint:errcheck // nothing was written through it
	const casefold = 0x40000000 // FS_CASEFOLD_FL
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	return err == nil && flags&casefold != 0
}
