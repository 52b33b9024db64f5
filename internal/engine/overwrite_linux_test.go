//go:build linux && !rooted

package engine_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/testdir"
)

const overBlock = 4 << 10

// overwritings are changes of the mounted file f, whose content becomes that of the file "after" beside the tree.
var overwritings = map[string]act{
	"overwrite":                overwrites("f"),
	"overwrite one of several": overwrites("e", "f", "x/y/new", "g"),
	"overwrite with a directory": func(ctx context.Context, c *engine.Call, ws string) error { // there and back
		return errors.Join(overwrites("f")(ctx, c, ws), undoes(ctx, c, ws))
	},
}

func init() {
	for name, run := range overwritings {
		deeds[name] = deed{run: run}
	}
}

// overwrites gives each file the content of the file "after" beside the tree.
func overwrites(names ...string) act {
	return func(ctx context.Context, c *engine.Call, ws string) error {
		after, err := os.ReadFile(filepath.Dir(ws) + "/after")
		return errors.Join(err, writes(string(after), names...)(ctx, c, ws))
	}
}

// blocks is a text of so many bytes, each block of which is of its own.
func blocks(seed, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(strings.Repeat(fmt.Sprintf("%c%06d\n", 'a'+seed, i), overBlock/8))
	}
	return b.String()[:size]
}

// strangers are the texts that somebody else writes after a kill: each makes one of the text now and those before and after; "" writes nothing.
var strangers = []func(now, before, after string) string{
	func(_, _, _ string) string { return "" },
	func(now, _, _ string) string { return now + "theirs\n" },
	func(_, before, after string) string { // each byte is of the one or of the other, but not each block
		mine := []byte(before)
		for i := 0; i < overBlock && i < len(after); i += 16 {
			mine[i] = after[i]
		}
		return string(mine)
	},
	func(now, _, _ string) string { return now[:len(now)/2] + "T" + now[len(now)/2+1:] },
	func(_, before, _ string) string { return before },
}

// A process is killed before every call of a change that writes in place, and so is its recovery: then the file is as before or as it should
// become, like all else that the change is of. What others wrote into it after the kill stays.
func TestKilledOverwriting(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	mixtures, back, forward, theirs := 0, 0, 0, 0
	for name := range overwritings {
		for i, sizes := range [][2]int{{150_000, 150_000}, {150_000, 70_001}, {70_001, 150_000}, {9, 0}} {
			x := grow(t, nil)
			x.cfg.CheckpointBeforeMutation = i%2 == 0 // it makes no difference
			must(t, x.Close())
			before, after := blocks(0, sizes[0]), blocks(1, sizes[1])
			host := x.dir() + "/host"
			must(t, os.WriteFile(x.dir()+"/after", []byte(after), 0o600))
			must(t, os.WriteFile(host, nil, 0o600))
			testdir.Mount(t, host, x.ws+"/f", unix.MS_BIND)
			stride := cmp.Or(*every, 11+int64(i))
			if name == "overwrite" && i == 1 { // few calls leave a mixture: between the write and the cut of a text that gets shorter
				stride = 1
			}
			for n := first(t, stride); ; n += stride {
				must(t, errors.Join(os.RemoveAll(x.ws+"/x"), os.RemoveAll(x.data), os.Mkdir(x.data, 0o700)))
				must(t, os.WriteFile(host, []byte(before), 0o600))
				for _, f := range []string{"e", "g"} {
					x.write(f, "old\n")
				}
				over := false
				if n/stride%5 == 0 {
					over = kill(t, name, x.dir(), n)
				} else {
					var count atomic.Int64
					err := deeds[name].in(x.dir(), func() *guardfs.Fault {
						if count.Add(1) >= n {
							return &guardfs.Fault{Err: syscall.EIO}
						}
						return nil
					})
					over = count.Load() < n
					if over {
						must(t, err)
					}
				}
				cut := x.reading("f")
				if cut != before && cut != after {
					mixtures++
				}
				stranger := ""
				if !over {
					stranger = strangers[n%int64(len(strangers))](cut+strings.Repeat(" ", 2)[:max(0, 2-len(cut))], before, after)
				}
				if stranger != "" {
					must(t, os.WriteFile(host, []byte(stranger), 0o600))
				}
				for m := range int64(3) { // recoveries that are killed, the last one of them late
					var count atomic.Int64
					deeds["recover"].in(x.dir(), func() *guardfs.Fault { //nolint:errcheck // it is cut off
						if count.Add(1) > (n*7+m*13)%40 {
							return &guardfs.Fault{Err: syscall.EIO}
						}
						return nil
					})
				}
				x.open()
				left := x.halfWay()
				must(t, x.Close())
				now := x.reading("f")
				where := fmt.Sprintf("%s, %v, killed before call %d", name, sizes, n)
				switch {
				case left != nil:
					t.Fatalf("%s: %v is open still", where, left)
				case stranger != "" && stranger != before && stranger != after:
					if theirs++; now != stranger {
						t.Fatalf("%s: what others wrote is gone", where)
					}
				case now != before && now != after:
					t.Fatalf("%s: a mixture stayed, and was one when it was killed: %v", where, cut != before && cut != after)
				case now == before:
					back++
				default:
					forward++
				}
				if name == "overwrite one of several" {
					done := map[string]int{}
					for _, f := range []string{"e", "g", "x/y/new"} {
						done[x.reading(f)]++
					}
					if done[after] != 3 && done["old\n"]+done["-"] != 3 || stranger == "" && (done[after] == 3) != (now == after) {
						t.Fatalf("%s: half made: %d of 3, the file %v", where, done[after], now == after)
					}
				}
				if over {
					break
				}
			}
		}
	}
	t.Logf("%d mixtures; %d times back, %d times forward, %d times others'", mixtures, back, forward, theirs)
	if mixtures == 0 || back == 0 || forward == 0 || theirs == 0 {
		t.Error("no kill did what this is about")
	}
}

// A file in a directory that is closed to this process, or of somebody else in a sticky one, is written in place: it stays the same object
// with its owner and mode, and comes back by undo. One with another name is not, since that may lie anywhere.
func TestOverwriteInDirectoriesOfOthers(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	x := grow(t, nil)
	must(t, x.Close())
	for dir, mode := range map[string]os.FileMode{"closed": 0o555, "sticky": 0o777 | os.ModeSticky} {
		for _, f := range []string{"f", "g", "linked"} {
			must(t, os.Chmod(x.write(dir+"/"+f, "before"), 0o666))
		}
		must(t, os.Link(x.ws+"/"+dir+"/linked", x.dir()+"/"+dir+" elsewhere"))
		must(t, os.Chmod(x.ws+"/"+dir, mode))
	}
	must(t, os.WriteFile(x.dir()+"/after", []byte("after"), 0o644))
	for dir := x.dir(); dir != "/"; dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o777))
		if filepath.Base(dir) == "dev" || filepath.Base(dir) == "shm" || dir == os.TempDir() {
			break
		}
	}
	must(t, errors.Join(os.Chmod(x.ws, 0o777), os.RemoveAll(x.data), os.Mkdir(x.data, 0o777), os.Chown(x.data, testdir.Nobody, testdir.Nobody)))
	must(t, os.WriteFile(x.dir()+"/host", []byte("before"), 0o666))
	must(t, os.Chmod(x.dir()+"/host", 0o666))
	testdir.Mount(t, x.dir()+"/host", x.ws+"/mounted", unix.MS_BIND)
	testdir.BeNobody(t)
	x.open()
	defer x.Close()
	must(t, x.does(overwrites("mounted")))
	x.has("mounted", "after")
	for what, err := range map[string]error{"delete": x.does(deletes("mounted")), "move": x.does(moves("mounted", "moved"))} {
		if r, ok := errors.AsType[*guardfs.FixedError](err); !ok || r.Dir != "" {
			t.Errorf("a mount point, %s: %v", what, err)
		}
	}
	for _, dir := range []string{"closed", "sticky"} {
		name := x.ws + "/" + dir + "/f"
		was, err := os.Stat(name)
		must(t, err)
		must(t, x.does(overwrites(dir+"/f")))
		now, err := os.Stat(name)
		must(t, err)
		if !os.SameFile(was, now) || was.Mode() != now.Mode() || now.Sys().(*syscall.Stat_t).Uid != 0 {
			t.Errorf("%s: it is another file by now: %v", dir, now.Sys())
		}
		x.has(dir+"/f", "after")
		must(t, x.does(undoes))
		x.has(dir+"/f", "before")
		must(t, x.does(redoes))
		x.has(dir+"/f", "after")
		must(t, x.does(overwrites(dir+"/g", "new "+dir)))
		x.has(dir+"/g", "after")
		for what, err := range map[string]error{
			"linked": x.does(overwrites(dir + "/linked")),
			"delete": x.does(deletes(dir + "/f")),
			"move":   x.does(moves(dir+"/f", "moved")),
		} {
			r, ok := errors.AsType[*guardfs.FixedError](err)
			if !ok || r.Dir != x.ws+"/"+dir || r.Sticky != (dir == "sticky") {
				t.Errorf("%s, %s: %v", dir, what, err)
			}
		}
		x.has(dir+"/linked", "before")
	}
	err := x.does(overwrites("closed/new"))
	if r, ok := errors.AsType[*guardfs.FixedError](err); !ok || r.Dir != x.ws+"/closed" {
		t.Errorf("a new file: %v", err)
	}
	if page, err := x.call("s").Checkpoints(ctx, checkpoint.Filter{AllSessions: true}); err != nil || len(page.Checkpoints) == 0 {
		t.Errorf("%v, %v", page, err)
	}
}

// A fault at the N-th call of a change that writes in place: it is made, or all is as before, or the answer says that it is open
// and the next start ends it.
func TestFaultAtEveryCallOfAnOverwriting(t *testing.T) {
	if !testdir.OwnMounts(t) {
		return
	}
	before, after := blocks(0, 150_000), blocks(1, 70_001)
	f := faults{kinds: withFull(true), stride: 1, inOne: true, open: true, run: overwrites("f"),
		grow: func(t *testing.T) *tree {
			x := grow(t, nil)
			must(x.t, errors.Join(os.WriteFile(x.dir()+"/after", []byte(after), 0o600), os.WriteFile(x.dir()+"/host", nil, 0o600)))
			testdir.Mount(t, x.dir()+"/host", x.ws+"/f", unix.MS_BIND)
			return x
		},
		lay:   func(x *tree) { must(x.t, os.WriteFile(x.dir()+"/host", []byte(before), 0o600)) },
		looks: func(x *tree) string { return x.reading("f") },
		also: func(x *tree, f fault) {
			if f.left && !engine.HalfMade.In(f.err) {
				x.t.Fatalf("it is open, and the answer is %s", f.what)
			}
		}}
	f.play(t)
}
