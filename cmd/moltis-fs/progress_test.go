package main

import (
	"bytes"
	"strings"
	"testing"
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
