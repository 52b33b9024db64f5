package races

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/dialect/capability"
	"moltisfs/tools"
)

// A node of a file system that lies. A node with names is a directory.
type node struct {
	ino   uint64
	names map[string]uint64
	text  string
}

// nodes are the files of such a file system: ok/f, which may be seen, and secret/f, which may not.
var nodes = map[uint64]node{
	1: {ino: 1, names: map[string]uint64{"ok": 2, "secret": 3}},
	2: {ino: 2, names: map[string]uint64{"f": 4}},
	3: {ino: 3, names: map[string]uint64{"f": 5}},
	4: {ino: 4, text: ours + "\n"},
	5: {ino: 5, text: victim + "\n"},
}

// A liar is a file system in user space that does not behave.
type liar struct {
	fd      int
	folds   bool                                 // it takes names in other letters of case
	attr    func(of uint64, a *node, size *int)  // what it says of a node
	list    func(names []string) []string        // what it lists
	fails   func(n int64, op uint32) (err error) // what it answers in place of its n-th answer
	answers atomic.Int64
}

// The requests, of linux/fuse.h.
const (
	fuseLookup, fuseForget, fuseGetattr, fuseOpen, fuseRead, fuseStatfs = 1, 2, 3, 14, 15, 17
	fuseInit, fuseOpendir, fuseReaddir, fuseRelease, fuseReleasedir     = 26, 27, 28, 18, 29
	fuseInterrupt, fuseDestroy, fuseForgets                             = 36, 38, 42

	fuseChanges = " 4 6 8 9 10 11 12 13 16 35 45 " // and what else would change something
)

// mountLiar mounts one; what the kernel asks a process answers until the test ends.
func mountLiar(t *testing.T, name, at string) {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("SKIPPED: there is no FUSE here: %v", err)
	}
	err = unix.Mount("liar", at, "fuse", unix.MS_NODEV|unix.MS_NOSUID,
		fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd, os.Getuid(), os.Getgid()))
	if err != nil {
		unix.Close(fd)
		t.Skipf("SKIPPED: a FUSE can't be mounted: %v", err)
	}
	file := os.NewFile(uintptr(fd), "fuse")
	defer file.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), liarMark+"="+name), []*os.File{file}
	must(t, cmd.Start())
	t.Cleanup(func() {
		unix.Unmount(at, unix.MNT_FORCE|unix.MNT_DETACH)
		cmd.Process.Kill()
		cmd.Wait() //nolint:errcheck // it was killed
	})
}

// liarMark names, in the environment of a child, what it is to serve at descriptor 3. A process that
// serves itself waits for itself: its garbage collector may stop all of it while a call is under way.
const liarMark = "MOLTISFS_TEST_LIAR"

func (l *liar) serve() {
	ask := make([]byte, 1<<18)
	for {
		n, err := unix.Read(l.fd, ask)
		if err == unix.EINTR || err == unix.ENOENT || err == unix.EAGAIN {
			continue
		}
		if err != nil || n < 40 {
			return // unmounted
		}
		op := binary.NativeEndian.Uint32(ask[4:])
		if op == fuseForget || op == fuseForgets || op == fuseInterrupt {
			continue
		}
		body, err := l.answer(op, binary.NativeEndian.Uint64(ask[16:]), ask[40:n])
		if count := l.answers.Add(1); err == nil && l.fails != nil && op != fuseInit {
			err = l.fails(count, op)
		}
		out := make([]byte, 16, 16+len(body))
		if no, ok := err.(syscall.Errno); ok {
			binary.NativeEndian.PutUint32(out[4:], uint32(-int32(no)))
			body = nil
		}
		out = append(out, body...)
		binary.NativeEndian.PutUint32(out, uint32(len(out)))
		copy(out[8:16], ask[8:16]) // unique
		_, _ = unix.Write(l.fd, out)
	}
}

func (l *liar) answer(op uint32, of uint64, in []byte) ([]byte, error) {
	n := nodes[of]
	switch op {
	case fuseInit:
		out := make([]byte, 64)
		binary.NativeEndian.PutUint32(out, 7)
		binary.NativeEndian.PutUint32(out[4:], 31)
		binary.NativeEndian.PutUint32(out[20:], 1<<16) // max_write
		return out, nil
	case fuseLookup:
		name := strings.TrimRight(string(in), "\x00")
		for have, child := range n.names {
			if have == name || l.folds && strings.EqualFold(have, name) {
				out := make([]byte, 40)
				binary.NativeEndian.PutUint64(out, child)
				return append(out, l.attributes(child)...), nil
			}
		}
		return nil, unix.ENOENT
	case fuseGetattr:
		return append(make([]byte, 16), l.attributes(of)...), nil
	case fuseOpen, fuseOpendir:
		return make([]byte, 16), nil
	case fuseRelease, fuseReleasedir, fuseDestroy:
		return nil, nil
	case fuseStatfs:
		return make([]byte, 80), nil
	case fuseRead:
		at := min(binary.NativeEndian.Uint64(in[8:]), uint64(len(n.text)))
		return []byte(n.text[at:]), nil
	case fuseReaddir:
		if binary.NativeEndian.Uint64(in[8:]) > 0 {
			return nil, nil
		}
		var names []string
		for name := range n.names {
			names = append(names, name)
		}
		if l.list != nil {
			names = l.list(names)
		}
		return dirents(names, n.names), nil
	}
	if strings.Contains(fuseChanges, fmt.Sprintf(" %d ", op)) {
		return nil, unix.EROFS
	}
	return nil, unix.ENOSYS
}

func dirents(names []string, inos map[string]uint64) (out []byte) {
	for i, name := range names {
		e := make([]byte, 24, 24+len(name)+8)
		binary.NativeEndian.PutUint64(e, max(inos[name], 9))
		binary.NativeEndian.PutUint64(e[8:], uint64(i+1))
		binary.NativeEndian.PutUint32(e[16:], uint32(len(name)))
		e = append(e, name...)
		out = append(out, append(e, make([]byte, -len(e)&7)...)...)
	}
	return out
}

func (l *liar) attributes(of uint64) []byte {
	n := nodes[of]
	size, mode := len(n.text), uint32(unix.S_IFREG|0o644)
	if l.attr != nil {
		l.attr(of, &n, &size)
	}
	if n.names != nil {
		mode = unix.S_IFDIR | 0o755
	}
	out := make([]byte, 88)
	binary.NativeEndian.PutUint64(out, n.ino)
	binary.NativeEndian.PutUint64(out[8:], uint64(size))
	binary.NativeEndian.PutUint32(out[60:], mode)
	binary.NativeEndian.PutUint32(out[64:], 1)
	return out
}

// fuseCalls are tried on every path of such a file system.
var fuseCalls = []step{
	{tool: "Read", args: `{"file_path":"P"}`},
	{tool: "Grep", args: `{"pattern":"VIC|OURS","path":"P","output_mode":"content"}`},
	{tool: "Glob", args: `{"pattern":"**","path":"P"}`},
	{tool: "Write", args: `{"file_path":"P","content":"EVIL\n"}`},
	{tool: "Edit", args: `{"file_path":"P","old_string":"OURS","new_string":"EVIL"}`},
	{tool: "filesystem.read", args: `{"path":"P"}`},
	{tool: "filesystem.stat", args: `{"path":"P"}`},
	{tool: "filesystem.list", args: `{"path":"P"}`},
	{tool: "filesystem.copy", args: `{"source":"P","destination":"R/copy","overwrite":true}`},
	{tool: "filesystem.move", args: `{"source":"P","destination":"R/moved","overwrite":true}`},
	{tool: "filesystem.delete", args: `{"path":"P"}`},
}

var liars = map[string]*liar{
	"honest":          {},
	"ignores case":    {folds: true},
	"one inode":       {folds: true, attr: func(of uint64, n *node, _ *int) { n.ino = min(of, 4) }},
	"sizes too large": {attr: func(_ uint64, _ *node, size *int) { *size = 1 << 50 }},
	"sizes too small": {attr: func(_ uint64, _ *node, size *int) { *size = min(*size, 1) }},
	"no sizes below":  {attr: func(_ uint64, _ *node, size *int) { *size = -1 }},
	"files are directories": {attr: func(of uint64, n *node, _ *int) {
		if of == 4 {
			n.names = map[string]uint64{}
		}
	}},
	"lists what climbs": {list: func(names []string) []string { return append(names, "..", "../secret", "a/b") }},
	"lists twice":       {folds: true, list: func(names []string) []string { return append(names, "OK", "SECRET", "Secret") }},
	"an error in 3":     {fails: every(3, unix.EIO)},
	"an error in 5":     {fails: every(5, unix.EIO)},
	"interrupted":       {fails: every(4, unix.EINTR)},
	"stale":             {fails: every(7, unix.ESTALE)},
	"nothing there":     {fails: every(4, unix.ENOENT)},
	"loops":             {fails: every(6, unix.ELOOP)},
}

func every(n int64, no syscall.Errno) func(int64, uint32) error {
	return func(count int64, _ uint32) error {
		if count%n == 0 {
			return no
		}
		return nil
	}
}

// A file system in user space may lie about case, sizes, kinds and numbers, and fail with any error:
// it opens nothing that is denied, holds no call up, and breaks no host. The control reads by a name that
// the rule does not have.
func TestLyingFileSystems(t *testing.T) {
	for name, l := range liars {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			at := dir + "/ws/mnt"
			must(t, os.MkdirAll(at, 0o755))
			mountLiar(t, name, at)
			e := engineFor(t, dir, "kernel", []string{at + "/secret/**"})
			defer e.Close()
			capabilities, err := capability.Over(e, config.Capability{})
			must(t, err)
			if b, _ := os.ReadFile(at + "/SECRET/f"); l.folds && string(b) != victim+"\n" {
				t.Errorf("the control got %q", b)
			}
			served, last, suite := 0, "", tools.Over(e).Dialect()
			for _, path := range []string{"secret/f", "SECRET/f", "Secret/F", "secret", "SECRET", "secret/../ok/f", "ok/../SECRET/f", "ok/f", "OK/f", "ok", ""} {
				for _, s := range fuseCalls {
					d := suite
					if strings.HasPrefix(s.tool, "filesystem.") {
						d = capabilities
					}
					args := strings.NewReplacer("P\"", strings.TrimSuffix(at+"/"+path, "/")+"\"", "R/", dir+"/ws/").Replace(s.args)
					start := time.Now()
					answer, err := d.Call(t.Context(), dialect.Call{Tool: s.tool, Args: json.RawMessage(args)})
					if err != nil {
						t.Errorf("%s %q: the host is broken: %v", s.tool, path, err)
						continue
					}
					raw, err := answer.JSON(true)
					must(t, err)
					if strings.Contains(string(raw), victim) {
						t.Errorf("%s %q tells: %s", s.tool, path, raw)
					}
					closed := strings.Contains(strings.ToLower(path), "secret")
					if closed && !answer.Refused() {
						t.Errorf("%s %q is not refused: %s", s.tool, path, raw)
					}
					if took := time.Since(start); took > 30*time.Second {
						t.Errorf("%s %q took %s", s.tool, path, took)
					}
					if last = string(raw); !answer.Refused() {
						served++
					}
				}
			}
			for _, left := range []string{"/ws/copy", "/ws/moved"} {
				if b, _ := os.ReadFile(dir + left); strings.Contains(string(b), victim) {
					t.Errorf("it is in %s", left)
				}
			}
			if name == "honest" && served < 10 {
				t.Errorf("%d calls were served: the attack is none; the last answered %s", served, last)
			}
		})
	}
}
