// Package js runs a script in a process of its own: an ES module with top-level await,
// in a QuickJS that has no files, no network, no processes and no modules. Outside, a
// script reaches the fs object alone, each call of which the parent answers.
//
// [Program.Run] is the parent's side, [Work] the worker's. They talk in frames over two pipes. The
// parent keeps the time and kills the worker at its end, whatever that is doing: the engine's own
// loops in C can't be interrupted. Memory, output and depth of calls the worker bounds itself.
//
// It touches no file. The parent confines the worker that it starts.
package js

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"moltisfs/internal/child"
)

// A Program is the command that runs [Work].
type Program []string

// A Script is code with its limits.
type Script struct {
	Code   string
	FS     bool          // there is an fs
	Time   time.Duration // how long it may run; waiting for a person does not count
	Memory int64         // bytes of its heap
	Output int           // bytes that the console keeps
	Stack  int           // how deep calls may be; 0: as deep as the engine takes
	AtOnce int           // calls of fs that run side by side
}

// A Request is a call of fs, with its arguments as the script gave them.
type Request struct {
	Op        string // the method; unlink is rm
	Path, To  string
	Recursive bool
	Encoding  string // of readFile: utf8 or buffer
	Data      []byte // of writeFile and appendFile
	// Waits stops the clock of the script until over is called: a person is being asked.
	Waits func() (over func())
}

// A Reply is the outcome of a call: nothing, text, bytes, or JSON.
type Reply struct {
	Kind byte
	Data []byte
}

// The kinds of replies.
const (
	Nothing byte = iota
	Text
	Bytes
	JSON
	failed
)

// A Failure is the exception of a call that failed. Any other error is one without a code.
type Failure struct {
	Message string
	Code    string `json:",omitempty"` // as Node has them: ENOENT
}

func (f *Failure) Error() string { return f.Message }

// A Host answers the calls, many at the same time. It must come back when ctx ends.
type Host func(context.Context, Request) (Reply, error)

// A Result is the outcome of a script. Error has the exception that it threw, or the limit that it met; "" is a run to
// the end. Output is there in any case.
type Result struct {
	Output string
	Error  string
	Limit  string // "time", "memory", "output": the limit that ended it
}

// ErrNoWorker is the error of a worker that can't be started.
var ErrNoWorker = errors.New("the worker for JavaScript does not start")

// Run runs a script. The error is that of a broken host or of ctx. When it comes back no call is
// under way.
func (p Program) Run(ctx context.Context, s Script, host Host) (Result, error) {
	if len(p) == 0 {
		return Result{}, ErrNoWorker
	}
	cmd := child.Command(context.Background(), p) // we kill it: ctx has more to end
	in, err := cmd.StdinPipe()
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrNoWorker, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrNoWorker, err)
	}
	var said words
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrNoWorker, err)
	}
	calls, cancel := context.WithCancel(ctx)
	r := &run{script: s, host: host, ctx: calls, to: newFramer(in), clock: newClock(s.Time),
		ended: make(chan struct{}), done: make(chan struct{}),
		slots: make(chan struct{}, max(s.AtOnce, 1))}
	defer r.clock.stop()
	go r.read(newUnframer(out), s)
	select {
	case <-r.ended:
	case <-r.clock.C:
		r.end(Result{Limit: limitTime, Error: timeWord(s.Time)})
	case <-ctx.Done():
		r.end(Result{Error: "the run was cancelled"})
	}
	cancel()
	cmd.Process.Kill() //nolint:errcheck // it has ended by itself
	in.Close()         //nolint:errcheck // it is dead
	<-r.done
	if r.bell != nil {
		r.bell.Stop()
	}
	cmd.Wait() //nolint:errcheck // its frames have told how it ended
	r.calls.Wait()
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return r.outcome(ctx, string(said), used > s.Time)
}

const limitTime = "time"

// run is a script on its way, as its parent sees it.
type run struct {
	script Script
	host   Host
	ctx    context.Context //nolint:containedctx // of the calls
	to     *framer
	clock  *clock
	slots  chan struct{}
	bell   *time.Timer // of the worker's timers

	mu sync.Mutex
	told
	calls sync.WaitGroup
	ended chan struct{} // it has said how it ended, or is dead
	done  chan struct{}
}

// told is the outcome of a run so far.
type told struct {
	over   bool
	result Result
	output bytes.Buffer
}

// end is the first word on how the run ended; no call begins after it.
func (r *run) end(how Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.over, r.result = true, how
		close(r.ended)
	}
}

// read takes the frames of the worker.
func (r *run) read(from unframer, s Script) {
	defer close(r.done)
	err := r.to.send(frame{Start: &s})
	for err == nil {
		var f frame
		if f, err = from.next(); err != nil {
			break
		}
		switch {
		case f.Output != "":
			r.mu.Lock()
			if room := s.Output - r.output.Len(); !r.over {
				r.output.WriteString(f.Output[:min(len(f.Output), max(room, 0))])
			}
			r.mu.Unlock()
		case f.Call != nil:
			r.call(f)
		case f.Wait > 0:
			r.wait(f.Wait)
		case f.End != nil:
			r.end(*f.End)
		default:
			err = errBadFrame
		}
	}
	if !errors.Is(err, io.EOF) {
		r.end(Result{Limit: "worker", Error: err.Error()})
	}
	r.end(Result{Limit: "worker"})
}

// wait rings when the worker wants it.
func (r *run) wait(d time.Duration) {
	if r.bell == nil {
		r.bell = time.AfterFunc(d, func() { r.to.send(frame{Ring: true}) }) //nolint:errcheck // it is dead
	} else {
		r.bell.Reset(d)
	}
}

// call begins a call of fs, unless the run is over. One that is alone it carries out at once: there
// is nothing to read before its answer.
func (r *run) call(f frame) {
	r.slots <- struct{}{}
	r.mu.Lock()
	over := r.over
	if !over {
		r.calls.Add(1)
	}
	r.mu.Unlock()
	switch {
	case over:
		<-r.slots
	case f.Alone:
		r.serve(f.ID, *f.Call)
	default:
		go r.serve(f.ID, *f.Call)
	}
}

// serve carries out a call and answers it.
func (r *run) serve(id int, q Request) {
	defer r.calls.Done()
	q.Waits = r.clock.hold
	reply, err := r.host(r.ctx, q)
	<-r.slots
	if len(reply.Data) > maxData {
		err = errors.New("the answer is too large")
	}
	if err != nil {
		f, ok := errors.AsType[*Failure](err)
		if !ok {
			f = &Failure{Message: err.Error()}
		}
		data, merr := json.Marshal(f)
		if merr != nil {
			data = []byte(`{"Message":"failed"}`)
		}
		reply = Reply{failed, data}
	}
	r.to.send(frame{ID: id, Reply: &reply}) //nolint:errcheck // it is dead, and reading finds that
}

// outcome is the run as its caller is told of it.
func (r *run) outcome(ctx context.Context, said string, long bool) (Result, error) {
	out := r.result
	out.Output = r.output.String()
	if err := ctx.Err(); err != nil && out.Limit != limitTime {
		return out, err
	}
	if out.Limit == "worker" { // it died without a word: the system or Go's runtime has killed it
		if out.Error == "" && long {
			return Result{Output: out.Output, Limit: limitTime, Error: timeWord(r.script.Time)}, nil
		}
		if out.Error == "" && (said == "" || outOfMemory(said)) {
			return Result{Output: out.Output, Limit: "memory", Error: memoryWord(r.script.Memory)}, nil
		}
		return out, fmt.Errorf("the worker for JavaScript failed: %s %s", out.Error, said)
	}
	return out, nil
}

func timeWord(limit time.Duration) string { return fmt.Sprintf("the run took longer than %s", limit) }

func memoryWord(limit int64) string {
	return fmt.Sprintf("the run took more than its memory of %d MB", limit>>20)
}

// words are the first that a worker says as it dies.
type words []byte

func (w *words) Write(p []byte) (int, error) {
	*w = append(*w, p[:min(len(p), 2048-len(*w))]...)
	return len(p), nil
}

func outOfMemory(said string) bool {
	return slices.ContainsFunc([]string{"out of memory", "cannot allocate", "stack overflow",
		"stack exceeds", "mustMalloc"}, func(w string) bool { return strings.Contains(said, w) })
}

// clock runs for so long, but for the time in which it is held.
type clock struct {
	C <-chan time.Time

	mu    sync.Mutex
	timer *time.Timer
	left  time.Duration
	since time.Time
	held  int
}

func newClock(d time.Duration) *clock {
	t := time.NewTimer(d)
	return &clock{C: t.C, timer: t, left: d, since: time.Now()}
}

// hold stops the clock until release is called.
func (c *clock) hold() (release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held++; c.held == 1 && c.timer.Stop() {
		c.left -= time.Since(c.since)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.held--; c.held == 0 {
			c.since = time.Now()
			c.timer.Reset(max(c.left, 0))
		}
	}
}

func (c *clock) stop() { c.timer.Stop() }
