package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Long work has one line on a terminal, which goes for good before anything else is written.
func TestLongWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := &working{w: &out}
		shown := func() string {
			p.mu.Lock()
			defer p.mu.Unlock()
			return out.String()
		}
		p.begin("store gc")
		time.Sleep(1900 * time.Millisecond)
		synctest.Wait()
		if got := shown(); got != "" {
			t.Errorf("short work shows %q", got)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if got := shown(); !strings.HasSuffix(got, "store gc has been at work for 5 s") || strings.Contains(got, "\n") {
			t.Errorf("long work shows %q", got)
		}
		if _, err := p.Write([]byte("answer\n")); err != nil || !strings.HasSuffix(shown(), "5 s\r\x1b[Kanswer\n") {
			t.Errorf("an answer stands in the line: %q, %v", shown(), err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := shown(); !strings.HasSuffix(got, "answer\n") {
			t.Errorf("the line comes back: %q", got)
		}
		(&working{}).begin("no terminal")
	})
}
