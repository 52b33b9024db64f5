package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// progressOn draws a bar for long work on w; it is nil if w is no terminal.
func progressOn(w io.Writer) func(what string, done, total int) {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) {
		return nil
	}
	b := &bar{w: f, now: time.Now}
	return b.step
}

// bar is one line that is drawn over and over. It may be stepped from several goroutines.
type bar struct {
	w   io.Writer
	now func() time.Time

	mu    sync.Mutex
	what  string
	begun time.Time
	drawn time.Time
}

const (
	barAfter = 300 * time.Millisecond // what takes less needs no bar
	barEvery = 100 * time.Millisecond
	barWidth = 30
)

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
	if end {
		if !b.drawn.IsZero() {
			fmt.Fprint(b.w, "\r\x1b[K")
		}
		b.what = ""
		return
	}
	b.drawn = now
	if total <= 0 {
		fmt.Fprintf(b.w, "\r\x1b[K%s: %d", what, done)
		return
	}
	full := min(done*barWidth/total, barWidth)
	fmt.Fprintf(b.w, "\r\x1b[K%s [%s%s] %3d%% %d/%d", what, strings.Repeat("#", full),
		strings.Repeat(".", barWidth-full), min(done*100/total, 100), done, total)
}
