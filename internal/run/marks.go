package run

import (
	"bytes"
	"crypto/rand"
	"io"
)

// Marks passes on what a program writes, and takes out a mark that the program was told: it begins with a NUL and is made anew
// for each program, so that nothing has it by chance. At is called for each one, when all before it has been passed on, and may change To.
type Marks struct {
	To   io.Writer
	Mark string // of NewMark
	At   func()

	held []byte // what may be the beginning of a mark
}

// NewMark makes a mark. Without the NUL before it, it can be an argument or a variable.
func NewMark() string { return "\x00" + rand.Text() }

func (m *Marks) Write(b []byte) (int, error) {
	n, all := len(b), append(m.held, b...)
	m.held = nil
	for {
		before, after, found := bytes.Cut(all, []byte(m.Mark))
		if !found {
			break
		}
		if _, err := m.To.Write(before); err != nil {
			return 0, err
		}
		m.At()
		all = after
	}
	if i := bytes.LastIndexByte(all, 0); i >= 0 && len(all)-i < len(m.Mark) && m.Mark[:len(all)-i] == string(all[i:]) {
		m.held = bytes.Clone(all[i:])
		all = all[:i]
	}
	_, err := m.To.Write(all)
	return n, err
}

// End passes on what was held back.
func (m *Marks) End() error {
	_, err := m.To.Write(m.held)
	m.held = nil
	return err
}
