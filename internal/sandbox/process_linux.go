//go:build !rooted

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// greeting is the first message of the parent.
type greeting struct {
	Protocol int
	Build    string
}

// process is one worker, from its start to its end.
type process struct {
	turn  int // never 0, so that no descriptor of a session is
	hello Hello
	hang  time.Duration

	command
	conn *os.File // a socket to the worker
	out  sink
	in   *frames
	read chan struct{} // has one token: its holder reads

	ending
	waiting
	known
}

// command is the program that was started.
type command struct {
	cmd  *exec.Cmd
	kill func()

	reaped chan struct{}
	says   tail // the end of what it wrote to standard error
}

// ending is how a worker ends.
type ending struct {
	dead chan struct{}
	once sync.Once
	err  error // once dead is closed
}

// waiting are the calls that are under way.
type waiting struct {
	mu      sync.Mutex
	pending map[uint32]*call
	next    uint32
}

// call waits for one reply.
type call struct {
	done  chan struct{}
	reply reply
	whole []byte // of a reply in several frames
	since time.Time
	most  time.Duration // that it may take; 0: as long as it likes, until it is given up
	parts bool          // the answer may come in several frames
	into  []byte
}

// start runs the command and says hello.
func (s *Session) start(ctx context.Context) (*process, error) {
	s.turn++
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, unavailable(err)
	}
	p := newProcess(s.turn, fds[0], s.o.Hang)
	p.reaped = make(chan struct{})
	theirs := os.NewFile(uintptr(fds[1]), "worker")
	p.cmd = exec.Command(s.o.Command[0], s.o.Command[1:]...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs, theirs, &p.says
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = time.Second
	err = p.cmd.Start()
	theirs.Close() //nolint:errcheck // it is the worker's
	if err != nil {
		p.conn.Close() //nolint:errcheck // nothing was written through it
		return nil, unavailable(fmt.Errorf("starting it: %w", err))
	}
	p.kill = func() {
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it is gone already
	}
	go p.reap()
	go p.watch()
	data, err := json.Marshal(greeting{protocol, s.o.Build})
	if err != nil {
		p.end()
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { p.fail(context.Cause(ctx)) })
	defer stop()
	r, err := p.ask(&request{op: opHello, data: data}, nil, nil)
	if err == nil {
		err = p.greeted(&r, s.o)
	}
	if err != nil {
		ended := p.isDead()
		p.end() // and all that it had to say is there
		return nil, p.unstarted(ended, err)
	}
	return p, nil
}

// unstarted is why a worker did not start: in its own words, where it ended by itself and had some.
func (p *process) unstarted(ended bool, err error) error {
	why := p.err
	if !ended {
		why = err
	}
	if text := p.says.String(); ended && text != "" {
		return unavailable(fmt.Errorf("its worker did not start: it said %q", text))
	}
	return unavailable(fmt.Errorf("its worker did not start: %w", p.told(why)))
}

// newProcess is the client of a worker that answers on the socket fd, within hang.
func newProcess(turn, fd int, hang time.Duration) *process {
	unix.SetNonblock(fd, true) //nolint:errcheck // then a write has no deadline
	conn := os.NewFile(uintptr(fd), "worker")
	p := &process{turn: turn%0x3ff + 1, hang: hang, conn: conn, in: newFrames(conn), out: sink{w: patient{conn, hang}}}
	p.read = make(chan struct{}, 1)
	p.dead, p.pending = make(chan struct{}), map[uint32]*call{}
	p.read <- struct{}{}
	p.known.open = map[int]*opened{}
	return p
}

// patient gives each write to a worker its time: one that does not read is found out by that.
type patient struct {
	conn *os.File
	hang time.Duration
}

func (p patient) Write(b []byte) (int, error) {
	if err := p.conn.SetWriteDeadline(time.Now().Add(p.hang)); err != nil {
		return 0, err
	}
	return p.conn.Write(b)
}

// greeted checks the hello of a worker.
func (p *process) greeted(r *reply, o Options) error {
	if r.errno != 0 {
		return errors.New(r.text)
	}
	if err := json.Unmarshal(r.data, &p.hello); err != nil {
		return errNonsense
	}
	h := &p.hello
	switch {
	case h.Protocol != protocol || h.Build != o.Build:
		return fmt.Errorf("it is another version: %q, and not %q", h.Build, o.Build)
	case h.System != runtime.GOOS+"/"+runtime.GOARCH:
		return fmt.Errorf("it is a program for %q", h.System)
	case !absolute(h.Root):
		return errNonsense
	}
	return nil
}

// told adds the text that the worker wrote to standard error to an error.
func (p *process) told(err error) error {
	if text := p.says.String(); text != "" && !strings.Contains(text, err.Error()) {
		return fmt.Errorf("%w; it said %q", err, text)
	}
	return err
}

// reap waits for the end of the command.
func (p *process) reap() {
	err := p.cmd.Wait()
	if err == nil {
		err = errors.New("it ended")
	}
	p.over(fmt.Errorf("its worker has ended: %w", err))
	p.kill() // what it has left behind
	close(p.reaped)
}

// fail ends the worker, for the first reason that there is.
func (p *process) fail(why error) {
	if p.over(why) {
		p.kill()
	}
}

// over says that nobody speaks with the worker any more. first: it was not said before.
func (p *process) over(why error) (first bool) {
	p.once.Do(func() {
		first, p.err = true, why
		close(p.dead)
		p.conn.Close() //nolint:errcheck // reads and writes under way come back by this
	})
	return first
}

// end has the worker end by itself, so that the command that leads to it leaves nothing behind: bwrap, when it
// is killed, leaves a child to the system, and docker and ssh may leave the worker.
func (p *process) end() {
	p.over(errClosed)
	select {
	case <-p.reaped:
	case <-time.After(3 * time.Second):
		p.kill()
	}
}

func (p *process) isDead() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// why is the reason of the end.
func (p *process) why() error {
	<-p.dead
	return p.told(p.err)
}

// patience is how many times as long as others a call may take that changes nothing: the worker goes
// on beside it, so that it holds nobody up.
const patience = 10

// watch ends a worker that lets a call wait for too long. Of calls that may take long it asks, from
// time to time, whether somebody is there.
func (p *process) watch() {
	tick := time.NewTicker(min(max(p.hang/8, time.Millisecond), time.Second))
	defer tick.Stop()
	for {
		select {
		case <-p.dead:
			return
		case <-tick.C:
		}
		long, late := false, time.Duration(0)
		p.mu.Lock()
		for _, c := range p.pending {
			long = long || c.most != p.hang
			if c.most > 0 && time.Since(c.since) > c.most {
				late = c.most
			}
		}
		p.mu.Unlock()
		switch {
		case late > 0:
			p.late(late)
		case long: // by this what nobody came for is read, too
			go p.ask(&request{op: opPing}, nil, nil) //nolint:errcheck // the callers that wait are told
		default: // what was closed and went with nothing
			p.out.mu.Lock()
			err := p.out.flush()
			p.out.mu.Unlock()
			p.failed(err)
		}
	}
}

// late ends a worker that took longer than it may.
func (p *process) late(most time.Duration) {
	p.fail(fmt.Errorf("its worker did not answer within %v", most))
}

// ask sends a request and waits for its reply, whose data is put into into or, with into nil, is
// the caller's own. When ctx ends the worker is told to give it up; nil: it takes as long as
// Options.Hang has it.
func (p *process) ask(q *request, into []byte, ctx context.Context) (reply, error) {
	if p.isDead() {
		return reply{}, unavailable(p.why())
	}
	c := &call{done: make(chan struct{}), into: into, most: p.hang, parts: ctx != nil || q.op == opMounts}
	switch {
	case ctx != nil:
		c.most = 0
	case q.op != opHello && q.op != opPing && !changing(q.op):
		c.most = p.hang * patience
	}
	id := p.enter(c)
	p.failed(p.out.send(id, q.append))
	if ctx != nil {
		defer context.AfterFunc(ctx, func() {
			p.mu.Lock()
			c.since, c.most = time.Now(), p.hang // there is an answer to this, too
			p.mu.Unlock()
			p.tell(&request{op: opCancel, a: int64(id)})
		})()
	}
	return p.wait(c)
}

// enter gives a call its number.
func (p *process) enter(c *call) (id uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next++; p.next == 0 {
		p.next++
	}
	c.since = time.Now()
	p.pending[p.next] = c
	return p.next
}

// wait waits for the reply to c.
func (p *process) wait(c *call) (reply, error) {
	select {
	case <-p.read:
		p.lead(c)
		p.read <- struct{}{}
	case <-c.done:
	case <-p.dead:
		<-p.read // the reader may be filling into
		p.read <- struct{}{}
	}
	select {
	case <-c.done:
		return c.reply, nil
	default:
		return reply{}, unavailable(p.why())
	}
}

// tell sends a request that has no answer.
func (p *process) tell(q *request) { p.failed(p.out.send(0, q.append)) }

// failed ends a worker that can't be spoken to.
func (p *process) failed(err error) {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		p.late(p.hang)
	case err != nil:
		p.fail(fmt.Errorf("speaking to its worker: %v", err))
	}
}

// lead reads replies, for everybody, until that of c has come.
func (p *process) lead(c *call) {
	for {
		select {
		case <-c.done:
			return
		case <-p.dead:
			return
		default:
		}
		id, body, err := p.in.next()
		if err != nil {
			if errors.Is(err, errFrame) {
				p.fail(errNonsense)
				return
			}
			select {
			case <-p.dead: // reap says more
			case <-time.After(100 * time.Millisecond):
				p.fail(fmt.Errorf("its worker is gone: %v", err))
			}
			return
		}
		if !p.deliver(id, body) {
			p.fail(errNonsense)
			return
		}
	}
}

// mostAnswer is how much the answer of a search may have, bytes.
const mostAnswer = 64 << 20

// deliver hands a reply to the call that waits for it.
func (p *process) deliver(id uint32, body []byte) bool {
	p.mu.Lock()
	c := p.pending[id]
	p.mu.Unlock()
	if c == nil {
		return false
	}
	r := &c.reply
	*r = reply{}
	if !r.parse(body) {
		return false
	}
	p.note(r)
	if r.bits&more != 0 || c.whole != nil {
		if c.whole = append(c.whole, r.data...); !c.parts || len(c.whole) > mostAnswer {
			return false
		}
		if r.bits&more != 0 {
			return true
		}
		r.data = c.whole
	} else if c.into != nil && r.errno == 0 {
		if len(r.data) > len(c.into) || r.n != int64(len(r.data)) {
			return false
		}
		copy(c.into, r.data)
		r.data = nil
	} else {
		r.data = bytes.Clone(r.data)
	}
	p.mu.Lock()
	delete(p.pending, id)
	p.mu.Unlock()
	close(c.done)
	return true
}

// note notes the number of the mounts that a reply tells.
func (p *process) note(r *reply) {
	if r.bits&mounts != 0 {
		p.mounts.Store(r.at)
		p.at.Store(time.Now().UnixNano())
	}
}

// absolute says that a name is one that a kernel gives.
func absolute(name string) bool {
	return len(name) < unix.PathMax && name[:min(len(name), 1)] == "/" &&
		strings.IndexByte(name, 0) < 0
}

// tail keeps the end of a text that is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(len(t.b)-1024, 0):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b))
}

// known holds the facts that replies told before anybody asked.
type known struct {
	mounts  atomic.Int64 // the number of their list
	at      atomic.Int64 // when a reply told that
	changes atomic.Int64 // how many calls changed something
	openMu  sync.Mutex
	open    map[int]*opened
}
