//go:build !rooted

package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"moltisfs/internal/guardfs"
)

// TestMain is the worker too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "worker" {
		w := Work{Root: os.Args[2], Build: "test"}
		if len(os.Args) == 5 {
			w.hook = armed(os.Args[4])
		}
		if err := w.Run(0, 1); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")) // else each worker takes a second to end
	status := m.Run()
	for end := time.Now().Add(20 * time.Second); left() != "" && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if pids := left(); pids != "" {
		fmt.Fprintln(os.Stderr, "FAIL: workers of tests are left, or zombies:", pids)
		status = 1
	}
	os.Exit(status)
}

// left are our children, those included that have ended and were not waited for.
func left() (pids string) {
	threads, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range threads {
		b, _ := os.ReadFile(list) // a thread that has gone has none
		pids += string(b)
	}
	return pids
}

// armed waits for a file that says which request is to fail, and how. Without "die" that is an errno. A ping has it told
// how many requests there were since.
func armed(file string) func(*request, bool) error {
	var mu sync.Mutex
	var how string
	var at, n, errno int
	var after, on bool
	return func(q *request, made bool) error {
		mu.Lock()
		unlock := sync.OnceFunc(mu.Unlock)
		defer unlock()
		if q.op == opHello || q.op == opCancel {
			return nil
		}
		if text, err := os.ReadFile(file); err == nil && !made && q.op != opPing {
			os.Remove(file)
			fmt.Sscan(string(text), &how, &at, &errno, &after)
			n, on = 0, true
		}
		if q.op == opPing {
			if made && q.a == 1 { // and not one of those that the client makes from time to time
				os.WriteFile(file+".n", []byte(strconv.Itoa(n)), 0o600)
				on = false
			}
			return nil
		}
		if !on || made != after {
			return nil
		}
		if n++; n != at {
			return nil
		}
		switch how {
		case "die", "gone":
			os.Exit(7)
		case "garbage":
			unix.Write(1, []byte("Segmentation fault (core dumped), or something of that kind\n"))
		case "half":
			unix.Write(1, []byte{100, 0, 0, 0, 1, 0})
		}
		if how == "stopped" {
			unix.Kill(os.Getpid(), unix.SIGSTOP) // which this thread may outlive by a moment
			time.Sleep(time.Hour)
		}
		if how == "silent" && q.op == opClose {
			at++ // that of an earlier call, which nobody waits for
			return nil
		}
		if errno == 0 {
			unlock()
			time.Sleep(time.Hour)
		}
		if how == "changing" && !changing(q.op) || q.op == opClose {
			at++ // the next one, then
			return nil
		}
		return unix.Errno(errno)
	}
}

func begin(t testing.TB, root string) *Session {
	t.Helper()
	s, err := Start(t.Context(), Options{Root: root, Build: "test", Starts: 2, Hang: 2 * time.Second,
		Command: []string{os.Args[0], "worker", root}})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// armable starts a worker that looks for orders in dir/armed.
func armable(t testing.TB, dir, root string, hang time.Duration, starts int) *Session {
	t.Helper()
	s, err := Start(context.Background(), Options{Root: root, Build: "test", Hang: hang, Starts: starts,
		Command: []string{os.Args[0], "worker", root, "armed", dir + "/armed"}})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// anything is a Judge without a rule.
type anything struct{}

func (anything) Judge(guardfs.Object, guardfs.Access) error { return nil }
func (anything) Dir(string, ...string) guardfs.DirVerdict   { return guardfs.DirVerdict{All: true} }

// over is a file system whose calls s makes.
func over(t testing.TB, s *Session) *guardfs.FS {
	t.Helper()
	f, err := guardfs.New(guardfs.Options{Judge: anything{}, Calls: s.Calls()})
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
