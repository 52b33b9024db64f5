//go:build !rooted

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"moltisfs/internal/guardfs"
)

// Work runs the worker: it answers requests that come on standard input, until that ends.
type Work struct {
	Root  string
	Build string
	// Confine has the kernel keep the process in the root, which is its true name; nil: nobody
	// does.
	Confine func(root string) (bool, error)

	hook func(q *request, made bool) error // of tests: before each call and before its answer; nil
}

// mostSlow is how many calls a worker makes at once that may take long, those aside that wait for
// changes.
const mostSlow = 64

type worker struct {
	table
	hello  Hello
	out    sink
	slow   chan struct{}
	hook   func(q *request, made bool) error
	mounts atomic.Int64 // the number of the list of mounts that was told last
	at     atomic.Int64 // which request the reader is at; odd while its call may be left behind

	tasks
}

// tasks holds the work that lasts longer than one request.
type tasks struct {
	mu      sync.Mutex
	running map[uint32]context.CancelFunc
	judges  map[string]guardfs.Judge
	behind  atomic.Int64 // calls that the reader did not wait for
}

// Run serves until in ends. in and out are descriptors that block.
func (o Work) Run(in, out int) error {
	w := &worker{out: sink{w: os.NewFile(uintptr(out), "out")}, slow: make(chan struct{}, mostSlow), hook: o.hook}
	return w.run(o, os.NewFile(uintptr(in), "in"))
}

func (w *worker) run(o Work, in io.Reader) error {
	w.running = map[uint32]context.CancelFunc{}
	f := newFrames(in)
	id, body, err := f.next()
	if err == io.EOF {
		return nil
	}
	var q request
	var said greeting
	if err == nil && (!q.parse(body) || q.op != opHello || json.Unmarshal(q.data, &said) != nil) {
		err = errors.New("it is no moltis-fs that speaks on standard input")
	}
	if err != nil {
		return err
	}
	r := &reply{}
	if err = w.open(o); err != nil {
		r.errno, r.text = uint32(unix.EIO), cut(err.Error())
	} else {
		r.data, err = json.Marshal(w.hello)
	}
	if serr := w.out.send(id, r.append); err == nil {
		err = serr
	}
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go w.serve(f, ended)
	tick := time.NewTicker(stuckAfter)
	defer tick.Stop()
	for seen := int64(0); ; {
		select {
		case err = <-ended:
			if err == io.EOF {
				err = nil
			}
			return err
		case <-tick.C:
		}
		at := w.at.Load()
		if at&1 != 0 && at == seen && w.behind.Load() < mostSlow && w.at.CompareAndSwap(at, at+1) {
			w.behind.Add(1)
			go w.serve(f, ended)
		}
		seen = at
	}
}

// stuckAfter is for how long requests wait, at least, for a call that does not come back.
const stuckAfter = 200 * time.Millisecond

// serve takes requests, one after another. A call that only looks may never come back: on a network
// that is gone, or a FUSE that does not answer. Then another serve goes on with the requests, and
// this one ends with its call. A call that changes something is not overtaken: the next one may
// rest on it.
func (w *worker) serve(f *frames, ended chan<- error) {
	var q request
	var r reply
	for {
		id, body, err := f.next()
		if err == nil && !q.parse(body) {
			err = errFrame
		}
		if err != nil {
			ended <- err
			return
		}
		at := w.at.Load()
		if !changing(q.op) {
			at++
			w.at.Store(at)
		}
		err = w.take(id, &q, &r)
		if at&1 != 0 && !w.at.CompareAndSwap(at, at+1) {
			w.behind.Add(-1)
			return
		}
		if err != nil {
			ended <- err
			return
		}
	}
}

func cut(s string) string { return s[:min(len(s), maxText)] }

// open readies the root.
func (w *worker) open(o Work) (err error) {
	if w.calls, err = guardfs.LocalCalls(); err != nil {
		return err
	}
	if !path.IsAbs(o.Root) {
		return fmt.Errorf("the root %q is not absolute", o.Root)
	}
	fd, err := w.calls.Openat(unix.AT_FDCWD, o.Root, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("opening the root %s: %w", o.Root, err)
	}
	defer w.calls.Close(fd) //nolint:errcheck // nothing was written through it
	if w.root, err = w.calls.Name(fd); err != nil {
		return err
	}
	w.held = map[int]*held{}
	w.hello = Hello{Protocol: protocol, Build: o.Build, Root: w.root}
	w.hello.System = runtime.GOOS + "/" + runtime.GOARCH
	w.hello.UID, w.hello.GID, w.hello.Groups = w.calls.User()
	if o.Confine != nil {
		w.hello.Confined, err = o.Confine(w.root)
	}
	return err
}

// take makes the call of one frame: at once, or beside others where it may take long. r is for the
// reply.
func (w *worker) take(id uint32, q *request, r *reply) error {
	switch q.op {
	case opFsync, opWait, opSearch, opFallocate:
		own := *q
		own.data = append([]byte(nil), q.data...)
		ctx, cancel := context.WithCancel(context.Background())
		w.tasks.mu.Lock()
		w.running[id] = cancel
		w.tasks.mu.Unlock()
		if q.op != opWait { // that holds nobody up, and there are no more than the system has queues
			w.slow <- struct{}{}
		}
		go func() {
			var r reply
			w.reply(ctx, &own, &r)
			w.tasks.mu.Lock()
			delete(w.running, id)
			w.tasks.mu.Unlock()
			cancel()
			if own.op != opWait {
				<-w.slow
			}
			w.answer(id, &r) //nolint:errcheck // the reader meets the end too
		}()
		return nil
	case opCancel:
		w.tasks.mu.Lock()
		if cancel := w.running[uint32(q.a)]; cancel != nil {
			cancel()
		}
		w.tasks.mu.Unlock()
		return nil
	}
	*r = reply{room: r.room}
	w.reply(context.Background(), q, r)
	if id == 0 {
		return nil
	}
	return w.answer(id, r)
}

// reply makes the call of q, and puts its answer or its error into r.
func (w *worker) reply(ctx context.Context, q *request, r *reply) {
	hook := w.hook
	if hook == nil {
		hook = func(*request, bool) error { return nil }
	}
	err := hook(q, false)
	if err == nil {
		err = w.make(ctx, q, r)
	}
	if late := hook(q, true); err == nil {
		err = late
	}
	var errno unix.Errno
	switch {
	case err == nil:
		return
	case !errors.As(err, &errno):
		r.text, errno = cut(err.Error()), unix.EIO
		r.bits |= hasText
	}
	r.errno = uint32(errno)
}

// answer sends a reply, in as many frames as it takes.
func (w *worker) answer(id uint32, r *reply) error {
	for len(r.data) > chunk {
		part := *r
		part.data, part.bits = r.data[:chunk], r.bits|more
		if err := w.out.send(id, part.append); err != nil {
			return err
		}
		r.data = r.data[chunk:]
	}
	return w.out.send(id, r.append)
}
