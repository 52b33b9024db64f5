package js

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Each hostile script meets its limit's word, and the next run goes on.
func TestHostile(t *testing.T) {
	const short, long = 100 * time.Millisecond, 30 * time.Second
	for name, c := range map[string]struct {
		code  string
		time  time.Duration
		limit string // or the error's beginning
	}{
		"loop":               {"for (;;);", short, "time"},
		"loop that catches":  {"for (;;) try { for (;;); } catch {}", short, "time"},
		"loop of jobs":       {"(async () => { for (;;) await null })(); await new Promise(() => {})", short, "time"},
		"loop of timers":     {"setInterval(() => {}, 0)", short, "time"},
		"sleeps":             {"await new Promise((f) => setTimeout(f, 1e9))", short, "time"},
		"regex":              {"/(a+)+$/.test('a'.repeat(60) + 'b')", short, "time"},
		"sort":               {"[3, 2, 1].sort(() => { for (;;); })", short, "time"},
		"native loop":        {"Array.prototype.indexOf.call({ length: 1e15 }, 1)", short, "time"},
		"toJSON":             {"JSON.stringify({ toJSON() { for (;;); } })", short, "time"},
		"proxy":              {"Object.keys(new Proxy({}, { ownKeys() { for (;;); } }))", short, "time"},
		"toString loops":     {"await fs.writeFile('a', { toString() { for (;;); } })", short, "time"},
		"getter loops":       {"await fs.mkdir('a', { get recursive() { for (;;); } })", short, "time"},
		"calls without end":  {"for (;;) await fs.readFile('a')", short, "time"},
		"calls, not awaited": {"for (;;) fs.readFile('a')", short, ""},
		"console in a loop":  {"for (;;) console.log('flood')", long, "output"},
		"one huge line":      {"console.log('x'.repeat(1e6))", long, "output"},
		"caught output":      {"for (;;) try { console.log('x'.repeat(1e6)) } catch {} finally {}", long, "output"},
		"array":              {"const a = []; for (;;) a.push(new Array(1000).fill(a.length))", long, "memory"},
		"strings":            {"const a = []; for (let i = 0; ; i++) a.push('x'.repeat(1e6) + i)", long, "memory"},
		"buffer":             {"new Uint8Array(1e9)", long, "memory"},
		"native text":        {"'x'.repeat(1e6).normalize('NFD')", long, "memory"},
		"pending promises":   {"await Promise.all(Array.from({ length: 1e6 }, () => fs.readFile('a')))", long, "memory"},
		"promises in a row":  {"const f = () => Promise.resolve().then(f); f(); await new Promise(() => {})", long, "memory"},
		"timers":             {"for (;;) setTimeout(() => {}, 1e6)", long, "memory"},
		"deep calls":         {"function f() { f() } f()", long, "InternalError: stack overflow"},
		"deep JSON":          {"JSON.parse('['.repeat(1e6))", long, "SyntaxError: stack overflow"},
		"deep types":         {"let x: " + strings.Repeat("(", 100_000), long, ""},
		"throws a long text": {"throw 'x'.repeat(1e6)", long, strings.Repeat("x", 10000)},
		"throws a thrower":   {"throw { get stack() { throw 1 }, toString() { throw 2 }, get constructor() { throw 3 } }", long, "an error that can't be shown"},
		"throws a proxy":     {"throw new Proxy({}, { get() { throw 1 }, ownKeys() { throw 2 } })", long, "an error that can't be shown"},
		"toString throws":    {"await fs.writeFile('a', { toString() { throw new Error('mine') } })", long, "Error: mine"},
		"too deep":           {"const f = () => f(); f()", long, "memory"},
		"a symbol":           {"await fs.writeFile('a', Symbol())", long, ""},
		"a getter throws":    {"await fs.rm('a', { get recursive() { throw new Error('mine') } })", long, "Error: mine"},
		"writes to fs":       {"fs.readFile = 1", long, "TypeError: "},
		"writes to a method": {"fs.readFile.x = 1", long, "TypeError: "},
		"takes fs away":      {"delete globalThis.fs", long, "TypeError: "},
		"sets fs":            {"globalThis.fs = 1", long, "TypeError: "},
		"a long path":        {"await fs.readFile('x'.repeat(1e6))", long, ""},
		"prototypes": {`for (const p of [Object, Promise, Map, Uint8Array, Function, Array, String, Error]) for (const k of
			Object.getOwnPropertyNames(p.prototype)) try { if (k !== 'constructor') p.prototype[k] = () => { throw new Error(k) } } catch {}
			Object.prototype.binary = true; Object.prototype.flag = true; Object.prototype.to = "/"; JSON.parse = null;
			const r = await fs.readFile('a', 'buffer'); if (r[0] !== 104) throw 1`, long, ""},
		"fs of a call that is made": {"let seen; Object.defineProperty(Object.prototype, 'resolve', { set(v) { seen = v } }); " +
			"await fs.readFile('a'); if (seen) throw 1", long, ""},
		"stack frames": {"Error.prepareStackTrace = (e, s) => s; const s = new Error().stack; if (typeof s !== 'string') " +
			"for (const f of s) if (f.getFunction && f.getFunction()) throw 1", long, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var active atomic.Int32
			begin := time.Now()
			s := script(c.code)
			s.Time, s.Memory = c.time, 8<<20
			if name == "too deep" { // its own memory runs out before the script's
				s.Stack = 1e8
			}
			r := runs(t, s, func(_ context.Context, q Request) (Reply, error) {
				defer active.Add(-1)
				if active.Add(1) > int32(s.AtOnce) {
					t.Error("too many at once")
				}
				if q.Recursive || q.To != "" || len(q.Path) > 5003 {
					t.Errorf("%+.200v", q)
				}
				if q.Encoding == "buffer" {
					return Reply{Bytes, []byte("hi")}, nil
				}
				return Reply{}, nil
			})
			if took := time.Since(begin); c.limit == "time" { // no bound: how busy a machine is decides it
				t.Logf("ended %s after its limit", (took - c.time).Round(time.Millisecond))
			}
			if active.Load() != 0 {
				t.Error("a call is under way")
			}
			word := map[string]string{"time": "the run took longer than 100ms",
				"memory": "the run took more than its memory of 8 MB",
				"output": "the run wrote more than its output of 10000 bytes"}[c.limit]
			switch {
			case word != "":
				if r.Limit != c.limit || !strings.HasPrefix(r.Error, word) {
					t.Errorf("%+.200v", r)
				}
			case !strings.HasPrefix(r.Error, c.limit):
				t.Errorf("%+.300v", r)
			}
			if len(r.Output) > s.Output {
				t.Errorf("%d bytes of output", len(r.Output))
			}
		})
	}
}

// A call uses up the script's time, and when the caller gives up the run ends. TestPersonTakesTime in package jsfs has the time of a person,
// which does not count.
func TestWaiting(t *testing.T) {
	t.Parallel()
	endless, calls := script("for (;;) await fs.writeFile('a', 1)"), 0
	endless.Time = 200 * time.Millisecond
	if r := runs(t, endless, func(context.Context, Request) (Reply, error) {
		calls++
		time.Sleep(endless.Time / 4) // a call that takes time
		return Reply{}, nil
	}); r.Limit != "time" || calls > 20 {
		t.Errorf("%d calls, %+v", calls, r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := script("await fs.writeFile('a', 1)")
	_, err := program().Run(ctx, s, func(ctx context.Context, _ Request) (Reply, error) {
		cancel()
		<-ctx.Done()
		return Reply{}, ctx.Err()
	})
	if err == nil {
		t.Error("a run whose caller gave up has no error")
	}
	if _, err := (Program{"/nonexistent"}).Run(t.Context(), s, nil); err == nil {
		t.Error("no worker, no error")
	}
}
