package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Long work has one line on a terminal, which goes before anything else is written there, and nothing elsewhere.
func TestProgress(t *testing.T) {
	if progressOn(&bytes.Buffer{}) != nil {
		t.Error("a line on something that is no terminal")
	}
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := &progress{w: &out}
		in := &invocation{streams: streams{out: &out, err: p}}
		const last = "\r\x1b[K"
		for _, c := range []struct {
			name       string
			each       time.Duration
			steps      int
			total      int
			want, ends string
		}{
			{"short work", time.Millisecond, 900, 900, "", ""},
			{"long work", 10 * time.Millisecond, 300, 300, "long work: 201 of 300", last},
			{"work without an end", 10 * time.Millisecond, 250, 0, "work without an end: 201", ""},
		} {
			out.Reset()
			for i := range c.steps {
				time.Sleep(c.each)
				p.step(c.name, i+1, c.total)
			}
			if got := out.String(); !strings.Contains(got, c.want) || !strings.HasSuffix(got, c.ends) || strings.Contains(got, "\n") ||
				(got == "") != (c.want == "") || strings.Count(got, c.name) > 11 {
				t.Errorf("%s shows %q", c.name, got)
			}
		}
		must(t, in.write([]byte("answer\n")))
		if !strings.HasSuffix(out.String(), last+"answer\n") {
			t.Errorf("an answer stands in the line: %q", out.String())
		}
	})
}
