//go:build !rooted

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"moltisfs/internal/guardfs"
)

// replaced puts content at a path, as the engine does.
func replaced(f *guardfs.FS, tag, name, content string) error {
	ctx := context.Background()
	p, err := f.Entry(name)
	if err != nil {
		return err
	}
	defer p.Close()
	before, err := p.Load(-1)
	if err != nil {
		return err
	}
	what := guardfs.NewObject{Kind: guardfs.KindFile, Content: []byte(content), Like: before, Open: true}
	h, made, err := p.Stage(ctx, guardfs.TempName(strings.Repeat(tag, guardfs.TagLen), 1), what)
	if err != nil {
		return err
	}
	defer h.Close()
	if err = h.Sync(); err != nil {
		return err
	}
	if _, err = p.Publish(ctx, h, guardfs.Found(before), made.Precondition()); err != nil {
		return err
	}
	if err = h.Drop(guardfs.Found(before)); err != nil {
		return err
	}
	return p.SyncNames()
}

// Errors by the same sentinel, and what they say, once.
func TestWorkerThatIsNone(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		command []string
		build   string
		says    string
	}{
		"another version": {[]string{os.Args[0], "worker", dir}, "other", "another version"},
		"no program":      {[]string{dir + "/none"}, "test", "no such file"},
		"nonsense":        {[]string{"/bin/echo", "hello, what would you like?"}, "test", "did not start"},
		"nothing":         {[]string{"/bin/true"}, "test", "did not start"},
		"no root":         {[]string{os.Args[0], "worker", dir + "/none"}, "test", "none"},
		"an error":        {[]string{"/bin/ls", dir + "/none"}, "test", "cannot access"},
	} {
		_, err := Start(t.Context(), Options{Command: c.command, Root: dir, Build: c.build})
		if !errors.Is(err, guardfs.ErrUnavailable) || strings.Count(err.Error(), c.says) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Workers that have said hello and then go wrong: each call ends within the bound, says why, and nobody stays.
func TestWorkerGoesWrong(t *testing.T) {
	t.Parallel()
	for how, says := range map[string]string{
		"garbage": "what no worker answers", "half": "answer", "stopped": "did not answer", "deaf": "did not answer",
		"gone": "its worker",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			plant(t, dir, map[string]string{"f": "x"})
			s := armable(t, dir, dir, 2*time.Second, 2)
			f, p := over(t, s), s.now
			var err error
			at := map[string]int{"garbage": 1, "half": 1, "stopped": 1, "deaf": 20, "gone": 1}
			must(t, os.WriteFile(dir+"/armed", fmt.Appendf(nil, "%s %d 0 false", how, at[how]), 0o600))
			if how == "deaf" { // more than the kernel keeps for who does not read
				err = replaced(f, "a", dir+"/f", strings.Repeat("much", 1<<20))
			} else {
				_, err = f.Resolve(dir+"/f", guardfs.Read)
			}
			if !p.isDead() {
				t.Fatal("the worker lives:", err)
			}
			// A path that was only looked for is looked for again by another worker.
			if how == "deaf" && err == nil || err != nil && !errors.Is(err, guardfs.ErrUnavailable) || !strings.Contains(p.why().Error(), says) {
				t.Errorf("%v, because %v", err, p.why())
			}
			select {
			case <-p.reaped:
			case <-time.After(20 * time.Second):
				t.Error("it was not reaped")
			}
			if h, err := f.Resolve(dir+"/f", guardfs.Read); err != nil {
				t.Error("the next call:", err)
			} else {
				h.Close()
			}
		})
	}
}

// A call that only looks and does not come back holds nobody but itself, until it has taken ten
// times as long as others may.
func TestStuckCallHoldsNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant(t, dir, map[string]string{"f": "x", "g": "y"})
	s := armable(t, dir, dir, 500*time.Millisecond, 2)
	f, p := over(t, s), s.now
	h, err := f.Resolve(dir+"/f", guardfs.Read)
	must(t, err)
	defer h.Close()
	for range 3 {
		must(t, os.WriteFile(dir+"/armed", []byte("silent 1 0 false"), 0o600))
		stuck := make(chan error, 1)
		go func() {
			_, err := h.Open()
			stuck <- err
		}()
		for _, err := os.Lstat(dir + "/armed"); err == nil; _, err = os.Lstat(dir + "/armed") {
			select {
			case err := <-stuck:
				t.Fatal("it was not stuck:", err)
			case <-time.After(time.Millisecond):
			}
		}
		for start := time.Now(); time.Since(start) < time.Second; {
			if err := replaced(f, "a", dir+"/g", "z"); err != nil || p.isDead() {
				t.Fatal(err, p.isDead())
			}
			select {
			case err := <-stuck:
				t.Fatal("it came back:", err)
			default:
			}
		}
		defer func() {
			if err := <-stuck; !errors.Is(err, guardfs.ErrUnavailable) {
				t.Error(err)
			}
		}()
	}
	<-p.reaped
	if why := p.why().Error(); !strings.Contains(why, "did not answer within 5s") {
		t.Error(why)
	}
}

// Descriptors of a dead worker are nobody's, and another one is started no more than a few times a minute.
func TestHandlesOfDeadWorkers(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"f": "x"})
	s := begin(t, dir)
	f := over(t, s)
	h, err := f.Resolve(dir+"/f", guardfs.Read)
	must(t, err)
	s.now.fail(errors.New("a test"))
	other, err := f.Resolve(dir+"/f", guardfs.Read)
	must(t, err)
	if _, err := h.Open(); !errors.Is(err, guardfs.ErrUnavailable) {
		t.Error("an old handle:", err)
	}
	h.Close()
	if file, err := other.Open(); err != nil {
		t.Error("a new one:", err)
	} else {
		file.Close()
	}
	other.Close()
	s.now.fail(errors.New("a test"))
	if h, err = f.Resolve(dir+"/f", guardfs.Read); err != nil {
		t.Error("the second start:", err)
	} else {
		h.Close()
	}
	s.now.fail(errors.New("a test"))
	if _, err := f.Resolve(dir+"/f", guardfs.Read); !errors.Is(err, guardfs.ErrUnavailable) {
		t.Error("after too many starts:", err)
	}
	s.Close()
	if _, err := f.Resolve(dir+"/f", guardfs.Read); !errors.Is(err, guardfs.ErrUnavailable) {
		t.Error("after the end:", err)
	}
}

// A worker that nobody needs any more ends by itself, before Close returns; whoever led to it sees that. Of one that is
// started anew the log tells.
func TestWorkerEndsByItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plant(t, dir, map[string]string{"w/f": "x"})
	var said []string
	s, err := Start(t.Context(), Options{Root: dir + "/w", Build: "test", Log: func(line string) { said = append(said, line) },
		Command: []string{"sh", "-c", `"$@"; echo $? >>"$0"`, dir + "/ended", os.Args[0], "worker", dir + "/w"}})
	must(t, err)
	s.now.fail(errors.New("a test"))
	if h, err := over(t, s).Resolve(dir+"/w/f", guardfs.Read); err != nil {
		t.Error(err)
	} else {
		h.Close()
	}
	s.Close()
	if got, err := os.ReadFile(dir + "/ended"); string(got) != "0\n" {
		t.Errorf("it ended as %q: %v", got, err)
	}
	if want := []string{"it was started anew: a test"}; !slices.Equal(said, want) {
		t.Errorf("the log says %q, want %q", said, want)
	}
}

// A worker that reads nothing is found out, too, where only something is left that went with no call.
func TestWorkerReadsNothing(t *testing.T) {
	t.Parallel()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fds[0], true)
	}
	for err == nil {
		_, err = unix.Write(fds[0], []byte("x"))
	}
	if err != unix.EAGAIN {
		t.Fatal(err)
	}
	p := newProcess(1, fds[0], 200*time.Millisecond)
	p.kill = func() {}
	defer unix.Close(fds[1])
	defer p.over(errClosed)
	must(t, p.out.add(0, (&request{op: opClose}).append))
	go p.watch()
	select {
	case <-p.dead:
	case <-time.After(20 * time.Second):
		t.Error("nobody notices")
	}
}

// A call that ends with its worker ends when nobody fills its buffer any more: the caller may use that for something else.
func TestBufferOfACallThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &process{read: make(chan struct{})}
		p.dead, p.kill = make(chan struct{}), func() {}
		p.fail(errClosed) // while somebody else reads
		ended := false
		go func() {
			p.wait(&call{done: make(chan struct{})})
			ended = true
		}()
		if synctest.Wait(); ended {
			t.Error("it ends while its answer may come in")
		}
		p.read <- struct{}{}
		<-p.read
		if synctest.Wait(); !ended {
			t.Error("it does not end")
		}
	})
}
