package js

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	"modernc.org/quickjs"

	"moltisfs/internal/child"
)

var (
	//go:embed prelude.js
	prelude string
	//go:embed web.js
	webJS string
	//go:embed url.js
	urlJS string
)

// Work runs one script for the parent at the other ends. It bounds its own process: call it from
// nothing else's.
func Work(in io.Reader, out io.Writer) error { return work(in, out, child.Bound) }

func work(in io.Reader, out io.Writer, limit func(memory, seconds uint64) error) error {
	w := &worker{from: newUnframer(in), to: newFramer(out)}
	first, err := w.from.next()
	if err == nil && first.Start == nil {
		err = errBadFrame
	}
	if err != nil {
		return fmt.Errorf("reading the script: %w", err)
	}
	w.Script = *first.Start
	// the memory is the heap of the script, and its data on their way in Go
	if err := limit(4*uint64(w.Memory)+256<<20, uint64(w.Time/time.Second)+2); err != nil {
		return fmt.Errorf("limiting the worker: %w", err)
	}
	debug.SetMaxStack(256 << 20)
	debug.SetGCPercent(400) // it is short-lived, and holds little, as a rule
	debug.SetMemoryLimit(2*w.Memory + 128<<20)
	result, err := w.run()
	if err != nil {
		return err
	}
	return w.to.send(frame{End: &result})
}

// worker is one script and its engine, all of it one goroutine's: it reads from the pipe itself, for
// a word from one goroutine to another costs as much as one to the parent.
type worker struct {
	Script
	from unframer
	to   *framer

	vm *quickjs.VM
	within
	calls   int    // that wait for a reply
	newest  *frame // the call that is not written yet
	alarms  alarms
	unheard unheard
	written int // bytes of output
}

// within holds the functions that the prelude gives us.
type within struct{ settle, ring, show quickjs.Value }

// stopped ends a run from within a function that the script called.
type stopped struct{ Result }

// run gives an error where there is no parent any more.
func (w *worker) run() (out Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, ok := p.(stopped)
			if !ok {
				panic(p)
			}
			out = s.Result
		}
	}()
	if err := w.open(); err != nil {
		return w.failed(err), nil
	}
	promise, err := w.vm.EvalValue(w.Code, quickjs.EvalModule)
	if err != nil {
		return w.failed(err), nil
	}
	return w.loop(promise)
}

// failed is the result of an error of the engine.
func (w *worker) failed(err error) Result {
	r := Result{Error: strings.TrimSpace(err.Error())}
	if e, ok := errors.AsType[*quickjs.Error](err); ok && e.Stack != "" {
		r.Error += "\n" + strings.TrimRight(e.Stack, "\n")
	}
	return w.told(r)
}

// told is a result in our words.
func (w *worker) told(r Result) Result {
	r.Error = strings.ReplaceAll(r.Error, "<eval>", "script")
	r.Error = strings.ToValidUTF8(r.Error[:min(len(r.Error), w.Output)], "")
	if strings.HasPrefix(r.Error, "InternalError: out of memory") {
		return Result{Limit: "memory", Error: memoryWord(w.Memory)}
	}
	if r.Error == "null" { // the engine throws it where there is no memory for an exception
		return Result{Limit: "memory", Error: memoryWord(w.Memory) + ", or threw null"}
	}
	return r
}

// open makes the engine and the globals of scripts.
func (w *worker) open() (err error) {
	if w.vm, err = quickjs.NewVM(); err != nil {
		return err
	}
	w.unheard.listen(w.vm)
	w.nameless(true)
	defer w.nameless(false)
	w.vm.SetMemoryLimit(uintptr(w.Memory))
	if w.Stack > 0 {
		w.vm.SetMaxStackSize(uintptr(w.Stack))
	}
	w.vm.SetModuleLoader(func(_ *quickjs.VM, name string) (string, error) {
		return "", fmt.Errorf("cannot import %q: there are no modules here, and fs is a global", name)
	}, func(_ *quickjs.VM, _, name string) (string, error) { return name, nil })
	var host [3]quickjs.Value
	for i, f := range []quickjs.HostFunc{w.call, w.write, w.sleep} {
		name := fmt.Sprintf("__host%d", i)
		if err = w.vm.RegisterHostFunc(name, f); err != nil {
			return err
		}
		take := fmt.Sprintf("(() => { const f = %s; delete globalThis.%[1]s; return f; })()", name)
		if host[i], err = w.vm.EvalValue(take, quickjs.EvalGlobal); err != nil {
			return err
		}
	}
	for _, source := range []string{webJS, urlJS} {
		f, err := w.vm.EvalValue(source, quickjs.EvalGlobal)
		if err != nil {
			return err
		}
		if _, err = f.Call(quickjs.UndefinedValue); err != nil {
			return err
		}
		f.Free()
	}
	f, err := w.vm.EvalValue(prelude, quickjs.EvalGlobal)
	if err != nil {
		return err
	}
	defer f.Free()
	got, err := f.CallValue(quickjs.UndefinedValue, host[0], host[1], host[2], max(w.AtOnce, 1), w.FS)
	if err != nil {
		return err
	}
	defer got.Free()
	for i, v := range []*quickjs.Value{&w.settle, &w.ring, &w.show} {
		at, err := w.vm.NewAtom(fmt.Sprint(i))
		if err != nil {
			return err
		}
		if *v, err = got.GetPropertyValue(at); err != nil {
			return err
		}
	}
	return nil
}

// loop runs jobs, replies and timers until nothing is left to wait for, or the script has thrown.
func (w *worker) loop(promise quickjs.Value) (out Result, gone error) {
	var thrown *Result
	settled := false
	w.vm.SetMemoryLimit(uintptr(w.Memory) + spare)
	_, err := promise.Then(func(quickjs.Value) { settled = true }, func(v quickjs.Value) {
		thrown = w.exception(v)
	})
	if err != nil {
		return Result{Limit: "memory", Error: memoryWord(w.Memory)}, nil
	}
	w.vm.SetMemoryLimit(uintptr(w.Memory))
	for {
		_, err := w.vm.ExecutePendingJobs()
		switch {
		case err != nil && strings.HasPrefix(err.Error(), "quickjs: aborted draining"):
			continue // it runs so many jobs at a time
		case err != nil:
			return w.failed(err), nil
		case thrown != nil:
			return w.told(*thrown), nil
		case w.calls == 0 && len(w.alarms.order) == 0 && (settled || len(w.unheard.of) > 0):
			return w.silent(), nil
		case w.calls == 0 && len(w.alarms.order) == 0:
			return Result{Error: "the script waits for a promise that nothing will settle"}, nil
		}
		if err, gone = w.next(); gone != nil {
			return Result{}, gone
		}
		if err != nil {
			return w.failed(err), nil
		}
	}
}

// spare is memory for our own words where the script has used up its own.
const spare = 1 << 20

// exception gives the words of the value that the script threw.
func (w *worker) exception(v quickjs.Value) *Result {
	w.vm.SetMemoryLimit(uintptr(w.Memory) + spare)
	text, err := w.show.Call(quickjs.UndefinedValue, v.Dup())
	if err != nil {
		text = "an error that can't be shown"
	}
	return &Result{Error: fmt.Sprint(text)}
}

// next waits for a timer or a reply, and gives it to the script. gone is an error of the parent.
func (w *worker) next() (err, gone error) {
	if id, ok := w.alarms.due(); ok {
		_, err = w.ring.Call(quickjs.UndefinedValue, id)
		return err, nil
	}
	if in, ok := w.alarms.ask(); ok {
		if gone = w.to.hold(frame{Wait: in}); gone != nil {
			return nil, gone
		}
	}
	if w.newest != nil {
		w.newest.Alone = w.calls == 1 && len(w.alarms.order) == 0
	}
	if gone = errors.Join(w.pass(), w.to.flush()); gone != nil {
		return nil, gone
	}
	f, gone := w.from.next()
	switch {
	case gone != nil:
		return nil, gone
	case f.Ring:
		w.alarms.rang()
		return nil, nil
	case f.Reply != nil:
		return w.take(f.ID, *f.Reply), nil
	}
	return nil, errBadFrame
}

// take gives a reply to the script.
func (w *worker) take(id int, r Reply) error {
	w.calls--
	kind, value, code := "nothing", "", ""
	switch r.Kind {
	case Text:
		kind, value = "text", string(r.Data)
	case JSON:
		kind, value = "json", string(r.Data)
	case Bytes:
		kind, value = "bytes", base64.StdEncoding.EncodeToString(r.Data)
	case failed:
		var f Failure
		if err := json.Unmarshal(r.Data, &f); err != nil {
			return err
		}
		kind, value, code = "error", f.Message, f.Code
	}
	_, err := w.settle.Call(quickjs.UndefinedValue, id, kind, value, code)
	return err
}

// call sends a call of fs to the parent.
func (w *worker) call(a []any) (any, error) {
	text := func(i int) string { s, _ := a[i].(string); return s }
	flag := func(i int) bool { b, _ := a[i].(bool); return b }
	id, _ := a[0].(int)
	q := Request{Op: text(1), Path: text(2), To: text(3), Recursive: flag(4), Encoding: text(5), Data: []byte(text(7))}
	if flag(6) { // they are bytes, not text
		var err error
		if q.Data, err = base64.StdEncoding.DecodeString(text(7)); err != nil {
			return nil, err
		}
	}
	w.calls++
	err := w.pass()
	w.newest = &frame{ID: id, Call: &q}
	return nil, err
}

// pass writes the newest call.
func (w *worker) pass() (err error) {
	if w.newest != nil {
		err = w.to.hold(*w.newest)
	}
	w.newest = nil
	return err
}

// write is the console.
func (w *worker) write(a []any) (any, error) {
	s, _ := a[0].(string)
	over := w.written+len(s) > w.Output
	if over {
		s = strings.ToValidUTF8(s[:max(w.Output-w.written, 0)], "")
	}
	w.written += len(s)
	if err := w.to.send(frame{Output: s}); err != nil {
		return nil, err
	}
	if over {
		end := Result{Limit: "output", Error: fmt.Sprintf("the run wrote more than its output of %d bytes", w.Output)}
		w.to.send(frame{End: &end}) //nolint:errcheck // the parent is gone
		panic(stopped{Result{Limit: "output"}})
	}
	return nil, nil
}

// sleep sets a timer; below zero it stops one.
func (w *worker) sleep(a []any) (any, error) {
	id, _ := a[0].(int)
	ms := 0.0
	switch n := a[1].(type) {
	case int:
		ms = float64(n)
	case float64:
		ms = n
	}
	w.alarms.stop(id)
	if ms >= 0 {
		w.alarms.set(id, time.Duration(ms*float64(time.Millisecond)))
	}
	return nil, nil
}
