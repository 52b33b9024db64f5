package engine

import (
	"bytes"
)

// beside runs both at once. The first is the longer one: the second may have to wait until a thread wakes up, or the first one
// sleeps, because on a virtual machine the kernel often puts both on one processor.
func beside(first, second func() error) (error, error) {
	done := make(chan error, 1)
	go func() { done <- second() }()
	err := first()
	return err, <-done
}

func (e *Engine) sync() bool { return e.cfg.Durability != "none" }

// intend writes the intent before anything changes; a record that can't be
// written stops the change.
func (e *Engine) intend(c *Call) error {
	r := e.record(c, "intent")
	if err := e.log.Append(r); err != nil {
		return &hostError{"writing the audit record", err}
	}
	return nil
}

// lines counts as Read does: a final newline makes no extra line.
func lines(content []byte) int {
	n := bytes.Count(content, []byte("\n"))
	if len(content) > 0 && content[len(content)-1] != '\n' {
		n++
	}
	return n
}
