package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// shownErr is f. On a terminal it is a bar too, which gives way to whatever is written.
func shownErr(f *os.File) io.Writer {
	if isTerminal(f) {
		return &bar{w: f, now: time.Now}
	}
	return f
}

// progressOn draws a bar for long work on w; it is nil if w is no terminal.
func progressOn(w io.Writer) func(what string, done, total int) {
	if b, ok := w.(*bar); ok {
		return b.step
	}
	return nil
}

// working shows on a terminal that a call goes on, until stop is called: as a bar where it is known
// how far it is, else as the seconds that it takes.
func (s streams) working() (stop func()) {
	b, ok := s.err.(*bar)
	if !ok {
		return func() {}
	}
	end := make(chan struct{})
	b.resume()
	go func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(barEvery):
				b.tick()
			}
		}
	}()
	return func() { close(end); b.hold() }
}

// asideBar keeps the bar away while the terminal is somebody else's.
func (s streams) asideBar() (back func()) {
	b, ok := s.err.(*bar)
	if !ok {
		return func() {}
	}
	b.hold()
	return b.resume
}

// bar is one line that is drawn over and over. It may be used from several goroutines.
type bar struct {
	w   io.Writer
	now func() time.Time

	mu    sync.Mutex
	what  string
	begun time.Time
	drawn time.Time
	quiet time.Time // since when nothing was told; zero: a tick draws nothing
	shown bool
}

const (
	barAfter  = 300 * time.Millisecond // what takes less needs no bar
	barEvery  = 100 * time.Millisecond
	quietMost = time.Second
	barWidth  = 30
)

func (b *bar) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	return b.w.Write(p)
}

func (b *bar) erase() {
	if b.shown {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
	b.shown = false
}

func (b *bar) draw(format string, args ...any) {
	b.drawn, b.shown = b.now(), true
	fmt.Fprintf(b.w, "\r\x1b[K"+format, args...)
}

// hold erases the bar, and ticks draw nothing until resume.
func (b *bar) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	b.quiet = time.Time{}
}

func (b *bar) resume() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.quiet = b.now()
}

func (b *bar) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.quiet.IsZero() || b.now().Sub(b.quiet) < quietMost || b.now().Sub(b.drawn) < quietMost {
		return
	}
	b.draw("working: %d s", int(b.now().Sub(b.quiet).Seconds()))
}

func (b *bar) step(what string, done, total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if what != b.what {
		b.what, b.begun, b.drawn = what, now, time.Time{}
	}
	end := total > 0 && done >= total
	if now.Sub(b.begun) < barAfter || !end && now.Sub(b.drawn) < barEvery {
		return
	}
	if !b.quiet.IsZero() {
		b.quiet = now
	}
	if end {
		b.erase()
		b.what = ""
		return
	}
	if total <= 0 {
		b.draw("%s: %d", what, done)
		return
	}
	full := min(done*barWidth/total, barWidth)
	b.draw("%s [%s%s] %3d%% %d/%d", what, strings.Repeat("#", full),
		strings.Repeat(".", barWidth-full), min(done*100/total, 100), done, total)
}
