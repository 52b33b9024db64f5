package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"moltisfs/grep"
	"moltisfs/internal/engine"
	"moltisfs/internal/testdir"
)

// freeze mounts a FUSE file system that answers nothing but the handshake, and gives what ends all
// that waits for it.
func freeze(t *testing.T, at string) (thaw func()) {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("SKIPPED: there is no FUSE here: %v", err)
	}
	err = unix.Mount("frozen", at, "fuse", unix.MS_NODEV|unix.MS_NOSUID,
		fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd, os.Getuid(), os.Getgid()))
	if err != nil {
		unix.Close(fd)
		t.Skipf("SKIPPED: a FUSE can't be mounted: %v", err)
	}
	thaw = func() {
		unix.Unmount(at, unix.MNT_FORCE|unix.MNT_DETACH)
		unix.Close(fd)
	}
	ask := make([]byte, 1<<17)
	n, err := unix.Read(fd, ask) // fuse_in_header and FUSE_INIT; linux/fuse.h
	if err != nil || n < 40 || binary.NativeEndian.Uint32(ask[4:]) != 26 {
		thaw()
		t.Fatalf("the handshake: %v", err)
	}
	answer := make([]byte, 80) // fuse_out_header and fuse_init_out
	binary.NativeEndian.PutUint32(answer, uint32(len(answer)))
	copy(answer[8:16], ask[8:16]) // unique
	binary.NativeEndian.PutUint32(answer[16:], 7)
	binary.NativeEndian.PutUint32(answer[20:], 31)
	binary.NativeEndian.PutUint32(answer[36:], 1<<16) // max_write
	if _, err := unix.Write(fd, answer); err != nil {
		thaw()
		t.Fatal(err)
	}
	return thaw
}

// A file system that hangs costs each call its deadline and no more, and costs a bounded number of
// threads. What lies elsewhere is served meanwhile.
func TestFrozenFileSystem(t *testing.T) {
	x := grow(t, nil)
	at := filepath.Join(x.ws, "mnt")
	must(t, os.Mkdir(at, 0o755))
	x.write("a.txt", "text\n")
	thaw := freeze(t, at)
	defer func() { thaw() }()
	if !x.MayHang() {
		t.Error("what is mounted is taken for one that always answers")
	}
	x.Hurry(5 * time.Millisecond)
	const short = 20 * time.Millisecond
	do := func(most time.Duration, ws string, run act) error {
		c, refused := x.call("s"), error(nil)
		err := do(t.Context(), x.Engine, c, operation{Changes: true, Time: most,
			Run:    func(ctx context.Context) error { return run(ctx, c, ws) },
			Refuse: func(_ context.Context, err error) string { refused = err; return "refused" }})
		return errors.Join(err, refused)
	}
	globs := func(ctx context.Context, c *engine.Call, at string) error {
		return errOf(c.Files(ctx, at, grep.GlobQuery{Pattern: "**"}))
	}
	ops := map[string]act{"read": reading("/f.txt"), "write": writes("x", "f.txt"), "stat": stats("/f.txt"), "list": lists(""), "search": globs}
	threads := func() int {
		tasks, _ := os.ReadDir("/proc/self/task")
		return len(tasks)
	}
	before := threads()
	for name, op := range ops {
		err := do(short, at, op)
		if no := engine.Reason(err); no == nil || no.Code != engine.CodeDeadline {
			t.Errorf("%s: %v", name, err)
		}
		if err := do(time.Minute, x.ws, globs); err != nil { // a mount is passed over
			t.Errorf("elsewhere, after %s: %v", name, err)
		}
	}
	refused := 0
	for range 60 {
		if err := do(short, at, ops["stat"]); engine.TooManyCalls.In(err) {
			refused++
		}
	}
	if refused == 0 || threads() > before+100 {
		t.Errorf("%d calls refused; %d threads, %d before", refused, threads(), before)
	}
	thaw()
	thaw = func() {}
	testdir.Until(t, "a call after it was gone", func() bool {
		return do(time.Minute, x.ws, stats("/a.txt")) == nil
	})
}
