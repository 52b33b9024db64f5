package main

import (
	"io"
	"os"
	"unicode/utf8"

	"moltisfs/internal/approval"
)

// Names and contents that we show were chosen by agents. Two things keep them from speaking to the
// operator in our place: every name goes through visible, which keeps it in its line, and whatever
// reaches a terminal goes through a shownWriter. A pipe or a file gets contents as they are.

// shownOn is f. If f is a terminal, control characters are shown instead of sent.
func shownOn(f *os.File) io.Writer {
	if isTerminal(f) {
		return &shownWriter{w: f}
	}
	return f
}

type shownWriter struct {
	w    io.Writer
	rest []byte // the beginning of a character of which the last write had no more
}

func (s *shownWriter) Write(p []byte) (int, error) {
	text := append(s.rest, p...)
	whole := len(text)
	for i := max(0, whole-utf8.UTFMax+1); i < whole; i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			whole = i
		}
	}
	s.rest = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(s.w, approval.Escape(string(text[:whole]), true)); err != nil {
		return 0, err
	}
	return len(p), nil
}
