package acp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Child is the agent's process, in a group of its own: nothing of that stays behind, also where we are
// killed.
type Child struct {
	In  io.WriteCloser
	Out *os.File

	cmd     *exec.Cmd
	watcher *exec.Cmd // ends the group where we are killed; nil: there is none
	once    sync.Once
	ended   chan struct{}

	patience
}

// patience holds the times that an agent has.
type patience struct {
	farewell time.Duration // to end by itself
	afterEnd time.Duration // and then, when it was told to
	tail     time.Duration // for its last output, which a child of its own may hold open
}

// Start starts an agent. errOut is where its standard error goes, best a file.
func Start(args []string, errOut io.Writer) (*Child, error) {
	return start(args, errOut, patience{10 * time.Second, 3 * time.Second, time.Second})
}

func start(args []string, errOut io.Writer, has patience) (*Child, error) {
	c := &Child{cmd: exec.Command(args[0], args[1:]...), watcher: watch(), ended: make(chan struct{}),
		patience: has}
	out, theirs, err := os.Pipe()
	if err != nil {
		c.unwatch()
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	c.Out, c.cmd.Stdout, c.cmd.Stderr = out, theirs, errOut
	c.cmd.WaitDelay = c.tail
	ownGroup(c.cmd, c.watcher)
	if c.In, err = c.cmd.StdinPipe(); err == nil {
		err = c.cmd.Start()
	}
	_ = theirs.Close() // it is the child's
	if err != nil {
		_ = out.Close() // nothing was read
		c.unwatch()
		return nil, err
	}
	go func() {
		_ = c.cmd.Wait() // its state says how it ended
		_ = out.SetReadDeadline(time.Now().Add(c.tail))
		close(c.ended)
	}()
	return c, nil
}

// HangUp closes the agent's input, which tells it to end; where it does not, it is ended.
func (c *Child) HangUp() {
	_ = c.In.Close() // else it has ended
	c.once.Do(func() { go c.end() })
}

// Signal passes a signal on to the agent and all that it started. The agent has to end by it.
func (c *Child) Signal(sig os.Signal) {
	signalGroup(c.cmd, sig)
	c.once.Do(func() { go c.end() })
}

// end waits, and then makes an end.
func (c *Child) end() {
	select {
	case <-c.ended:
		return
	case <-time.After(c.farewell):
	}
	signalGroup(c.cmd, terminate)
	select {
	case <-c.ended:
	case <-time.After(c.afterEnd):
		signalGroup(c.cmd, os.Kill)
	}
}

// Wait gives the exit status of the agent, or 128 and the number of the signal. Processes that
// it left behind are ended.
func (c *Child) Wait() int {
	c.HangUp()
	<-c.ended
	signalGroup(c.cmd, terminate)
	c.unwatch()
	_ = c.Out.Close() // it was read to its end
	return status(c.cmd.ProcessState)
}

// unwatch ends the watcher.
func (c *Child) unwatch() {
	if c.watcher != nil {
		_ = c.watcher.Process.Kill() // else it has ended
		_ = c.watcher.Wait()         // likewise
	}
}

// Late calls exit with the agent's status two seconds after its end: an editor that takes nothing
// would hold us for ever.
func (c *Child) Late(exit func(status int)) {
	<-c.ended
	time.Sleep(2 * time.Second)
	exit(status(c.cmd.ProcessState))
}

// Read reads the agent's output. A deadline is its end: the agent has ended.
func (c *Child) Read(p []byte) (int, error) {
	n, err := c.Out.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}
