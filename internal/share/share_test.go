package share

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// One principal finds its part and no more, whatever the size; another always finds some.
func TestPart(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, 1, 2, 3, 4, 7, 100} {
		p := New(size)
		n := int64(0)
		for p.Try("alice", 1) {
			n++
		}
		if most := max(size, 1); n != Part(most) {
			t.Errorf("of %d one principal takes %d", size, n)
		}
		if got := p.Try("bob", 1); got != (size > 1) {
			t.Errorf("of %d another finds some: %v", size, got)
		}
	}
	p := New(10)
	if !p.Try("alice", 1<<40) || p.Try("bob", 1) {
		t.Error("what is larger than all there is takes all of it")
	}
	p.Give("alice", 1<<40)
	if !p.Try("bob", 4) || p.Try("bob", 2) || !p.Try("bob", 1) || !p.Try("alice", 5) {
		t.Error("parts are counted by size")
	}
	p.Give("bob", 4)
	p.Give("bob", 1)
	p.Give("alice", 5)
	if p.used != 0 || len(p.of)+len(p.waiting) != 0 {
		t.Errorf("something is left: %d of %v", p.used, p.of)
	}
}

// Waiters are served in turn by principal, not in the order in which they came. One that gives up is passed over.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := New(1)
		if !p.Try("holder", 1) {
			t.Fatal("it is new")
		}
		got, gone := make(chan string, 100), make(chan error, 1)
		wait := func(name string) {
			go func() {
				if err := p.Take(t.Context(), name[:1], 1); err != nil {
					t.Error(err)
				}
				got <- name
			}()
			synctest.Wait()
		}
		for i := range 4 {
			wait(fmt.Sprint("a", i))
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { gone <- p.Take(ctx, "x", 1) }()
		synctest.Wait()
		cancel()
		if err := <-gone; err == nil {
			t.Error("who gave up has some")
		}
		wait("b0")
		wait("c0")
		wait("b1")
		var order []string
		for who := "holder"; len(order) < 7; {
			p.Give(who, 1)
			name := <-got
			order, who = append(order, name), name[:1]
		}
		if s := strings.Join(order, " "); s != "a0 b0 c0 a1 b1 a2 a3" {
			t.Error(s)
		}
	})
}
