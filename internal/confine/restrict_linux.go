package confine

import (
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"moltisfs/internal/guardfs"
)

// ABI is the version of Landlock that the kernel has, 0 without any.
func ABI() int {
	v, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return v
}

// Restrict holds this process and all that it starts to rules, for good, and takes the way to more
// privileges. With network any TCP may be used, else connections to the ports. Where something
// is Missing it holds the rest.
func Restrict(rules []Rule, network bool, ports []uint16) error {
	var all []landlock.Rule
	for _, r := range rules {
		at, fd, err := pinned(r)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
			continue // it is not there, or out of reach as it is
		}
		if err != nil {
			return fmt.Errorf("opening %s: %w", r.Path, err)
		}
		defer unix.Close(fd) //nolint:errcheck // nothing was written through it
		all = append(all, opening(r, at))
	}
	handled := []any{landlock.AccessFSSet(1<<16 - 1), landlock.ScopedSet(1<<2 - 1)}
	if !network {
		handled = append(handled, landlock.AccessNetSet(1<<2-1))
		for _, port := range ports {
			all = append(all, landlock.ConnectTCP(port))
		}
	}
	c, err := landlock.NewConfig(handled...)
	if err != nil {
		return fmt.Errorf("restricting: %w", err)
	}
	// In one step: a second one that is not about files would forbid to move them.
	if err := c.BestEffort().Restrict(all...); err != nil {
		return fmt.Errorf("restricting: %w", err)
	}
	// Descriptors that were open before are not held: they stay with this program.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keeping open files: %w", err)
	}
	return nil
}

func opening(r Rule, at string) landlock.Rule {
	switch {
	case r.Right == List:
		return landlock.PathAccess(ll.AccessFSReadDir, at)
	case r.Right == Read && r.Dir:
		return landlock.RODirs(at)
	case r.Right == Read:
		return landlock.ROFiles(at)
	case r.Right == Write && r.Dir && ABI() > 1:
		return landlock.RWDirs(at).WithRefer()
	case r.Right == Write:
		return landlock.RWFiles(at)
	case r.Right == Device && r.Dir:
		return landlock.RWDirs(at).WithIoctlDev()
	case r.Right == Device:
		return landlock.RWFiles(at).WithIoctlDev()
	}
	return landlock.RWDirs(at)
}

// pinned opens the object that was looked at under a path, also if its name means another one by now, and gives a name that
// means this for as long as the descriptor is open.
func pinned(r Rule) (at string, fd int, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	judged := r.ID != (guardfs.Identity{})
	if judged {
		how.Resolve |= unix.RESOLVE_NO_SYMLINKS
	}
	fd, err = unix.Openat2(unix.AT_FDCWD, r.Path, &how)
	if err != nil {
		return "", -1, err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	other := judged && (st.Ino != r.ID.Ino || st.Dev != r.ID.Dev)
	if err == nil && (other || (st.Mode&unix.S_IFMT == unix.S_IFDIR) != r.Dir) {
		err = unix.ENOENT // it is another one, which nobody has judged
	}
	if err != nil {
		_ = unix.Close(fd)
		return "", -1, err
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), fd, nil
}

// weighty are the capabilities by which root gets round Landlock, or round all that holds others:
// CAP_PERFMON reads the environment of any process.
var weighty = []uint{unix.CAP_DAC_READ_SEARCH, unix.CAP_LINUX_IMMUTABLE, unix.CAP_NET_ADMIN,
	unix.CAP_NET_RAW, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_SYS_CHROOT,
	unix.CAP_SYS_PTRACE, unix.CAP_SYS_ADMIN, unix.CAP_SYS_BOOT, unix.CAP_SYS_TIME, unix.CAP_MKNOD,
	unix.CAP_SETFCAP, unix.CAP_MAC_OVERRIDE, unix.CAP_MAC_ADMIN, unix.CAP_SYSLOG,
	unix.CAP_PERFMON, unix.CAP_BPF, unix.CAP_CHECKPOINT_RESTORE}

// Become runs a program in the place of this one, which Restrict has held. It has no more privileges
// than an ordinary user's, save those that root has over files and accounts. With sockets it may make
// those that Restrict has left it; without, none that leave the machine.
func Become(name string, args, environ []string, sockets bool) error {
	runtime.LockOSThread() // capabilities are this thread's, and so is what it becomes
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("renouncing privileges: %w", err)
	}
	for _, c := range weighty {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0) // who may not, has none either
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("reading capabilities: %w", err)
	}
	for _, c := range weighty {
		d, bit := &data[c/32], uint32(1)<<(c%32)
		d.Effective, d.Permitted, d.Inheritable = d.Effective&^bit, d.Permitted&^bit, d.Inheritable&^bit
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	if filtered() {
		if err := filter(sockets); err != nil {
			return err
		}
	}
	return unix.Exec(name, args, environ)
}
