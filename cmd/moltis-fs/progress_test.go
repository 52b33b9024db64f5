package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The bar is silent for short work, drawn now and then for long work, gone at the end, and on nothing but a terminal.
func TestProgress(t *testing.T) {
	if progressOn(&bytes.Buffer{}) != nil {
		t.Error("a bar on something that is no terminal")
	}
	var out bytes.Buffer
	now := time.Unix(0, 0)
	b := &bar{w: &out, now: func() time.Time { return now }}
	for i := range 10 {
		now = now.Add(10 * time.Millisecond)
		b.step("short work", i+1, 10)
	}
	if out.Len() > 0 {
		t.Errorf("short work drew %q", out.String())
	}
	for i := range 1000 {
		now = now.Add(time.Millisecond)
		b.step("long work", i+1, 1000)
	}
	if n := strings.Count(out.String(), "long work ["); n < 3 || n > 10 {
		t.Errorf("drawn %d times in a second: %q", n, out.String())
	}
	if !strings.Contains(out.String(), " 50% ") || !strings.HasSuffix(out.String(), "\r\x1b[K") {
		t.Errorf("drew %q", out.String())
	}
	out.Reset()
	for i := range 500 {
		now = now.Add(time.Millisecond)
		b.step("counting", i, 0)
	}
	if !strings.Contains(out.String(), "counting: ") {
		t.Errorf("work of unknown length drew %q", out.String())
	}
}

// A call is silent for a second, then tells its seconds; a question and what is written have the terminal to themselves.
func TestWorking(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		b := &bar{w: &out, now: time.Now}
		drawn := func() string { // under the lock of whoever ticks
			b.mu.Lock()
			defer b.mu.Unlock()
			defer out.Reset()
			return out.String()
		}
		s := streams{err: b}
		stop := s.working()
		time.Sleep(quietMost - barEvery/2)
		synctest.Wait()
		if got := drawn(); got != "" {
			t.Errorf("a short call drew %q", got)
		}
		time.Sleep(2 * quietMost)
		synctest.Wait()
		if got := drawn(); !strings.HasSuffix(got, "working: 2 s") {
			t.Errorf("a long call drew %q", got)
		}
		back := s.asideBar()
		if got := drawn(); !strings.HasSuffix(got, "\r\x1b[K") {
			t.Errorf("the bar stays beside a question: %q", got)
		}
		time.Sleep(5 * quietMost)
		synctest.Wait()
		if got := drawn(); got != "" {
			t.Errorf("over a question it drew %q", got)
		}
		back()
		time.Sleep(2 * quietMost)
		synctest.Wait()
		if _, err := io.WriteString(b, "moltis-fs: said\n"); err != nil {
			t.Fatal(err)
		}
		if got := drawn(); !strings.HasSuffix(got, "\r\x1b[Kmoltis-fs: said\n") {
			t.Errorf("a line is written into the bar: %q", got)
		}
		stop()
	})
}
