// Package statetest has the tests that each state.Files must pass.
package statetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moltisfs/internal/state"
)

// Run runs all tests. place makes an empty directory, and gives what opens it: each time as another process would.
func Run(t *testing.T, place func(t *testing.T) (open func() state.Files)) {
	for name, test := range map[string]func(*testing.T, func() state.Files){
		"nothing": nothing, "replace": replace, "append": appendTo, "since": since, "hold": hold, "update": update, "look": look,
		"changes": changes, "large": large, "model": model,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, place(t))
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// read reads a whole file. What was replaced while it was read is read again.
func read(f state.Files, name string) ([]byte, error) {
	for {
		r, err := f.Open(name)
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
	}
}

func has(t testing.TB, f state.Files, name, want string) {
	t.Helper()
	if b, err := read(f, name); err != nil || string(b) != want {
		t.Errorf("%s is %.60q, %v; it should be %.60q", name, b, err, want)
	}
}

// nothing: a file that is not there is told as that, by each call.
func nothing(t *testing.T, open func() state.Files) {
	f := open()
	if _, err := f.Open("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("opened: ", err)
	}
	if err := f.Remove("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("removed: ", err)
	}
	if held, err := f.Held("a", "b"); err != nil || !slices.Equal(held, []bool{false, false}) {
		t.Error("held: ", held, err)
	}
	if is, err := f.Look("a"); err != nil || len(is) != 1 || is[0] != (state.Info{}) {
		t.Error("looked at: ", is, err)
	}
	var m state.Mark
	if tail, anew, err := f.Since("a", &m); err != nil || anew || len(tail) > 0 {
		t.Error("since: ", tail, anew, err)
	}
	if names, err := f.List(); err != nil || len(names) > 0 {
		t.Error("listed: ", names, err)
	}
	if held, err := f.Held(); err != nil || len(held) > 0 {
		t.Error("nothing is held: ", held, err)
	}
	if is, err := f.Look(); err != nil || len(is) > 0 {
		t.Error("nothing was looked at: ", is, err)
	}
}

// replace: everybody sees the old file or the new one, whole.
func replace(t *testing.T, open func() state.Files) {
	a, b := open(), open()
	// Replace is of one writer at a time, as under an Update.
	put := func(content string) {
		t.Helper()
		must(t, a.Update(t.Context(), "lock", func(f state.Files) error { return f.Replace("a", []byte(content)) }))
	}
	for _, content := range []string{"one", "longer than one", "", "\x00\xff\n", "x"} {
		put(content)
		has(t, b, "a", content)
	}
	long := [2]string{strings.Repeat("a", 100_000), strings.Repeat("b", 50_000)}
	put(long[0])
	ctx, stop := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	for range 3 {
		looking.Go(func() {
			for f := open(); ctx.Err() == nil; {
				if got, err := read(f, "a"); err != nil || string(got) != long[0] && string(got) != long[1] {
					t.Errorf("a mixture of %d bytes: %.20q, %v", len(got), got, err)
					return
				}
			}
		})
	}
	for i := range 40 {
		put(long[i%2])
	}
	stop()
	looking.Wait()
	must(t, b.Remove("a"))
	if _, err := a.Open("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it is removed: ", err)
	}
}

// appendTo: pieces of several writers are all there, whole, each writer's in its order; readers that follow see the same.
func appendTo(t *testing.T, open func() state.Files) {
	const writers, each = 4, 40
	var writing, following sync.WaitGroup
	followed := make([][]byte, 2)
	done := make(chan struct{})
	for i := range followed {
		following.Go(func() {
			f := open()
			var m state.Mark
			for end := false; ; {
				tail, anew, err := f.Since("a", &m)
				if err != nil {
					t.Error(err)
					return
				}
				if anew { // a directory can't tell it from another file while the system has noted that it was written, and not yet its size
					followed[i] = nil
				}
				followed[i] = append(followed[i], tail...)
				if end {
					return
				}
				select {
				case <-done:
					end = true
				default:
				}
			}
		})
	}
	for w := range writers {
		writing.Go(func() {
			f := open()
			for i := range each {
				if err := f.Append("a", fmt.Appendf(nil, "%d:%d:%s\n", w, i, strings.Repeat("x", i*7))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	close(done)
	following.Wait()
	whole, err := read(open(), "a")
	must(t, err)
	for i, f := range followed {
		if !bytes.Equal(f, whole) {
			t.Errorf("follower %d has %d bytes, and there are %d", i, len(f), len(whole))
		}
	}
	next := [writers]int{}
	for line := range bytes.Lines(whole) {
		var w, i int
		var rest string
		if _, err := fmt.Sscanf(string(line), "%d:%d:%s\n", &w, &i, &rest); i > 0 && (err != nil || len(rest) != i*7) || w >= writers || i != next[w] {
			t.Fatalf("a line %q, %v; of %d the next is %d", line, err, w, next[w])
		}
		next[w]++
	}
	if next != [writers]int{each, each, each, each} {
		t.Error("lines are missing: ", next)
	}
}

// since: what came is told once, and another file as another one.
func since(t *testing.T, open func() state.Files) {
	a, b := open(), open()
	var m state.Mark
	step := func(what, tail string, anew bool, bytes int64) {
		t.Helper()
		got, is, err := b.Since("a", &m)
		if err != nil || string(got) != tail || is != anew || m.Bytes != bytes {
			t.Errorf("%s: %q, anew %v, at %d, %v; want %q, %v, %d", what, got, is, m.Bytes, err, tail, anew, bytes)
		}
	}
	step("nothing", "", false, 0)
	must(t, a.Append("a", []byte("one\n")))
	step("the first", "one\n", true, 4)
	step("nothing new", "", false, 4)
	must(t, a.Append("a", []byte("two\n")))
	must(t, b.Append("a", []byte("half")))
	step("more", "two\nhalf", false, 12)
	step("nothing new again", "", false, 12)
	must(t, a.Append("a", []byte("!")))
	step("a little more", "!", false, 13)
	must(t, a.Replace("a", []byte("one, and two\n")))
	must(t, a.Append("a", []byte("three\n")))
	step("another", "one, and two\nthree\n", true, 19)
	must(t, a.Remove("a"))
	step("gone", "", true, 0)
	step("gone still", "", false, 0)
	must(t, a.Append("a", []byte("anew\n")))
	step("there again", "anew\n", true, 5)
	must(t, a.Remove("a"))
	must(t, a.Append("a", []byte("again, and longer\n")))
	step("removed and there again", "again, and longer\n", true, 18)
	var other state.Mark
	if tail, anew, err := a.Since("a", &other); err != nil || !anew || string(tail) != "again, and longer\n" {
		t.Error("another mark: ", tail, anew, err)
	}
}

// hold: a file is held by whoever made it, for others and for itself, and only until it is released.
func hold(t *testing.T, open func() state.Files) {
	a, b := open(), open()
	release, err := a.Hold("a", []byte("one, "), nil, []byte("two"))
	must(t, err)
	has(t, b, "a", "one, two")
	expect := func(what string, want ...bool) {
		t.Helper()
		for _, f := range []state.Files{a, b} {
			if held, err := f.Held("none", "a", "b"); err != nil || !slices.Equal(held, want) {
				t.Errorf("%s: %v, %v", what, held, err)
			}
		}
	}
	expect("held", false, true, false)
	for _, f := range []state.Files{a, b} {
		if _, err := f.Hold("a", []byte("another")); !errors.Is(err, fs.ErrExist) {
			t.Error("made twice: ", err)
		}
	}
	other, err := b.Hold("b")
	must(t, err)
	expect("another too", false, true, true)
	release()
	expect("released", false, false, true)
	has(t, b, "a", "one, two")
	must(t, b.Remove("b"))
	expect("removed", false, false, false)
	other()
	must(t, b.Remove("a"))
	release, err = b.Hold("a", []byte("anew"))
	must(t, err)
	expect("held anew", false, true, false)
	release()
	// Of several at once one alone makes it.
	var making sync.WaitGroup
	made := make(chan func(), 8)
	for range cap(made) {
		making.Go(func() {
			switch release, err := open().Hold("c", []byte("c")); {
			case err == nil:
				made <- release
			case !errors.Is(err, fs.ErrExist):
				t.Error(err)
			}
		})
	}
	making.Wait()
	if len(made) != 1 {
		t.Errorf("%d have made it", len(made))
	}
	for len(made) > 0 {
		(<-made)()
	}
}

// update: one at a time, and whoever does not want to wait gets its context's error.
func update(t *testing.T, open func() state.Files) {
	const holders, each = 4, 15
	var counting sync.WaitGroup
	for range holders {
		counting.Go(func() {
			f := open()
			for range each {
				err := f.Update(t.Context(), "lock", func(f state.Files) error {
					b, err := read(f, "n")
					if err != nil && !errors.Is(err, fs.ErrNotExist) {
						return err
					}
					return f.Replace("n", append(b, '.'))
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	counting.Wait()
	has(t, open(), "n", strings.Repeat(".", holders*each))
	in, out := make(chan struct{}), make(chan error, 1)
	leave := make(chan struct{})
	go func() {
		out <- open().Update(t.Context(), "lock", func(f state.Files) error {
			close(in)
			<-leave
			return f.Append("n", []byte("!"))
		})
	}()
	<-in
	must(t, open().Update(t.Context(), "another lock", func(state.Files) error { return nil }))
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := open().Update(soon, "lock", func(state.Files) error { t.Error("two at once"); return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	close(leave)
	must(t, <-out)
	own := errors.New("no")
	if err := open().Update(t.Context(), "lock", func(state.Files) error { return own }); !errors.Is(err, own) {
		t.Error(err)
	}
	has(t, open(), "n", strings.Repeat(".", holders*each)+"!")
}

// look: names, sizes and times, and what a touch changes of them.
func look(t *testing.T, open func() state.Files) {
	a, b := open(), open()
	must(t, a.Append("a", []byte("12345")))
	must(t, a.Append("a", []byte("67")))
	must(t, a.Touch("empty"))
	has(t, b, "empty", "")
	is, err := b.Look("empty", "none", "a")
	must(t, err)
	if len(is) != 3 || is[0].Size != 0 || is[1] != (state.Info{}) || is[2].Size != 7 {
		t.Fatalf("%+v", is)
	}
	for _, i := range []int{0, 2} {
		if age := time.Since(is[i].At); age < -time.Minute || age > time.Minute {
			t.Error("a time of ", is[i].At)
		}
	}
	must(t, b.Touch("a"))
	again, err := a.Look("a")
	must(t, err)
	if again[0].At.Before(is[2].At) || again[0].Size != 7 {
		t.Error("touched: ", again[0], ", and before ", is[2])
	}
	has(t, a, "a", "1234567")
	names, err := b.List()
	must(t, err)
	if slices.Sort(names); !slices.Equal(names, []string{"a", "empty"}) {
		t.Error(names)
	}
}

// changes: whoever waits is woken, where the files wake anybody.
func changes(t *testing.T, open func() state.Files) {
	a, b := open(), open()
	changed, stop := b.Changes("q1")
	defer stop()
	if changed == nil {
		return
	}
	others, stop := b.Changes("q2")
	defer stop()
	<-changed // it hears now
	<-others
	woken := func(what string) {
		t.Helper()
		select {
		case <-changed:
		case <-time.After(5 * time.Second):
			t.Error("not woken: ", what)
		}
	}
	release, err := a.Hold("q1.question", []byte("?"))
	must(t, err)
	woken("held")
	must(t, a.Update(t.Context(), "lock", func(f state.Files) error { return f.Replace("q1.answer", []byte("yes")) }))
	woken("replaced")
	has(t, b, "q1.answer", "yes")
	release()
	woken("released")
	select {
	case <-others:
		t.Error("woken by what does not concern it")
	default:
	}
}

// large: a file of 8 MB.
func large(t *testing.T, open func() state.Files) {
	a, b := open(), open()
	content := bytes.Repeat([]byte("0123456\x00"), 1<<20)
	must(t, a.Replace("a", content))
	if got, err := read(b, "a"); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	release, err := a.Hold("b", []byte("head"), content)
	must(t, err)
	defer release()
	f, err := b.Open("b")
	must(t, err)
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err != nil || string(head) != "head" {
		t.Errorf("%q, %v", head, err)
	}
	if rest, err := io.ReadAll(f); err != nil || !bytes.Equal(rest, content) {
		t.Errorf("%d bytes, %v", len(rest), err)
	}
	must(t, f.Close())
}

// model: a random history gives what it gives in a map.
func model(t *testing.T, open func() state.Files) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	type file struct {
		content string
		held    func()
		made    int // which file of that name it is
	}
	is := map[string]*file{}
	type mark struct {
		state.Mark
		made, read int
	}
	marks := map[string]*mark{}
	made := 0
	names := []string{"a", "b", "c"}
	all := []state.Files{open(), open()}
	for i := range 300 {
		f, name := all[r.IntN(len(all))], names[r.IntN(len(names))]
		b := []byte(strings.Repeat(fmt.Sprint(i, " "), r.IntN(20)))
		one := is[name]
		fresh := func() *file { made++; return &file{made: made} }
		switch what := r.IntN(8); what {
		case 0, 1:
			must(t, f.Append(name, b))
			if one == nil {
				one = fresh()
			}
			one.content += string(b)
			is[name] = one
		case 2:
			if one != nil && one.held != nil {
				continue // whoever holds a file does not replace it
			}
			must(t, f.Replace(name, b))
			is[name] = fresh()
			is[name].content = string(b)
		case 3:
			err := f.Remove(name)
			if (err == nil) != (one != nil) || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("%d: removing %s: %v", i, name, err)
			}
			if one != nil && one.held != nil {
				one.held()
			}
			delete(is, name)
		case 4:
			release, err := f.Hold(name, b, b)
			if (err == nil) != (one == nil) || err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatalf("%d: holding %s: %v", i, name, err)
			}
			if err == nil {
				is[name] = fresh()
				is[name].content, is[name].held = string(b)+string(b), release
			}
		case 5:
			if one != nil && one.held != nil {
				one.held()
				one.held = nil
			}
		case 6:
			m := marks[name]
			if m == nil {
				m = &mark{}
				marks[name] = m
			}
			tail, anew, err := all[0].Since(name, &m.Mark)
			want, other, before := "", m.made != 0, m.read
			if one != nil {
				if other = one.made != m.made; other {
					m.read = 0
				}
				want = one.content[m.read:]
				m.made, m.read = one.made, len(one.content)
			} else {
				m.made, m.read = 0, 0
			}
			if err != nil || string(tail) != want || anew != other && before > 0 {
				t.Fatalf("%d: since, of %s: %q, anew %v, %v; want %q, %v", i, name, tail, anew, err, want, other)
			}
		}
		held, err := f.Held(names...)
		must(t, err)
		listed, err := f.List()
		must(t, err)
		looked, err := f.Look(names...)
		must(t, err)
		for n, name := range names {
			one := is[name]
			if held[n] != (one != nil && one.held != nil) || slices.Contains(listed, name) != (one != nil) {
				t.Fatalf("%d: %s is held: %v; listed are %v; it is %+v", i, name, held[n], listed, one)
			}
			if one != nil {
				has(t, f, name, one.content)
				if looked[n].Size != int64(len(one.content)) {
					t.Fatalf("%d: %s has %d bytes, and is said to have %d", i, name, len(one.content), looked[n].Size)
				}
			}
		}
	}
	for _, one := range is {
		if one.held != nil {
			one.held()
		}
	}
}
