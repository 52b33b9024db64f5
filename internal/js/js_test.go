package js

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "js-worker" {
		if err := work(os.Stdin, os.Stdout, boundForTests); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func program() Program { return Program{os.Args[0], "js-worker"} }

func script(code string) Script {
	return Script{Code: code, FS: true, Time: 5 * time.Second, Memory: 32 << 20, Output: 10_000, AtOnce: 8}
}

func runs(t *testing.T, s Script, host Host) Result {
	t.Helper()
	if host == nil {
		host = func(context.Context, Request) (Reply, error) { return Reply{}, nil }
	}
	r, err := program().Run(t.Context(), s, host)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestScripts(t *testing.T) {
	for _, c := range []struct{ code, output, err string }{
		{"", "", ""},
		{"console.log('a', 1, null, undefined, true, 2n)", "a 1 null undefined true 2n\n", ""},
		{"console.info('a'); console.warn('b'); console.error('c'); console.debug('d'); console.trace('e')",
			"[INFO] a\n[WARN] b\n[ERROR] c\nd\ne\n", ""},
		{"console.log({a: [1, 'x'], m: new Map([[1, {b: 2}]]), u: new Uint8Array(3)})",
			"{ a: [1, \"x\"], m: Map(1) { 1 => { b: 2 } }, u: Uint8Array(3) [0, 0, 0] }\n", ""},
		{"const o = {}; o.o = o; console.log(o)", "{ o: [Circular] }\n", ""},
		{"throw new TypeError('no')", "", "TypeError: no\n    at <anonymous> (script:1:20)"},
		{"const f = (", "", "SyntaxError: unexpected token in expression: ''\n    at script:1:12"},
		{"await new Promise(() => {})", "", "the script waits for a promise that nothing will settle"},
		{"import x from 'fs'", "", `TypeError: module load failed: cannot import "fs": there are no modules here, and fs is a global`},
		{"setTimeout(() => console.log('late'), 5); console.log('now')", "now\nlate\n", ""},
		{"let n = 0; const t = setInterval(() => { console.log(++n); if (n === 3) clearInterval(t); }, 1)", "1\n2\n3\n", ""},
		{"for (const ms of [20, 1, 10, 1]) setTimeout((x) => console.log(x), ms, ms); const t = setTimeout(() => " +
			"console.log('never'), 5); clearTimeout(t)", "1\n1\n10\n20\n", ""},
		{"let on = true; const f = () => { if (on) setTimeout(f, 0) }; f(); await fs.readFile('a'); on = false; " +
			"console.log('read')", "read\n", ""},
		{"setTimeout(() => { throw new Error('ring') }, 1)", "", "Error: ring"},
		{"console.log(await fs.readFile('a'), (await fs.readFile('a', 'buffer'))[0])", "text 104\n", ""},
		{"console.log(typeof process, typeof require, typeof fetch, Object.keys(globalThis).join())",
			"undefined undefined undefined fs\n", ""},
		{"new Function('return this')().fs = 1", "", "TypeError"},
		{"async function main() { await 0; throw new TypeError('lost') }\nmain(); console.log('on')", "on\n",
			"TypeError: lost\n    at main (script:1:53)\n    in a promise that the script did not await"},
		{"for (let i = 0; i < 3; i++) Promise.reject(i)", "", "0\n    in a promise that the script did not await, and 2 more"},
		{"const p = Promise.reject(new Error('caught')); await 0; await p.catch((e) => console.log(e.message))", "caught\n", ""},
		{"const bad = async () => { throw 1 }; await Promise.allSettled([bad(), bad()]); await Promise.race([bad(), bad()])" +
			".catch(console.log); try { await Promise.all([bad(), bad()]) } catch (e) { console.log(e) }", "1\n1\n", ""},
		{"setTimeout(async () => { throw 'ring' }, 1); console.log(1)", "1\n", "ring\n    in a promise"},
		{"const f = () => f(); try { f() } catch (e) { console.log(e) }", "InternalError: stack overflow\n" +
			strings.Repeat("    at f (script:1:18)\n", 10) + "    ...\n", ""},
		{"try { nope } catch (e) { console.log(String(e), e) }", "ReferenceError: nope is not defined ReferenceError: " +
			"nope is not defined\n    at <anonymous> (script:1:7)\n", ""},
		{"const long = '" + strings.Repeat("a", 1000) + "'; const f = (;", "", "SyntaxError: unexpected token in expression: ';'\n    at script:1:1029"},
		{"console.group('g'); console.time(); console.timeEnd(); console.groupEnd()", "g\n", ""},
		{"JSON.parse('{\"a\": ?}')", "", "SyntaxError: unexpected token: '?'\n    at <input>:1:7\n    at parse (native)\n" +
			"    at <anonymous> (script:1:11)"},
		{"await fs.readFile(1)", "", "TypeError: fs.readFile: path must be a string\n    at Promise (native)\n" +
			"    at <anonymous> (script:1:18)"},
		{"console.log(Object.getOwnPropertyNames(globalThis).filter((n) => n.includes('host')).length)", "0\n", ""},
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			r := runs(t, script(c.code), func(_ context.Context, q Request) (Reply, error) {
				if q.Encoding == "buffer" {
					return Reply{Bytes, []byte("hi")}, nil
				}
				return Reply{Text, []byte("text")}, nil
			})
			if r.Output != c.output || !strings.HasPrefix(r.Error, c.err) || (c.err == "") != (r.Error == "") {
				t.Errorf("%s\noutput %q, want %q\nerror %q, want %q", c.code, r.Output, c.output, r.Error, c.err)
			}
		})
	}
}

// The limit of data is one of bytes, however they travel.
func TestLargeData(t *testing.T) {
	t.Parallel()
	s := script(`await fs.writeFile("a", new Uint8Array(50 << 20)); await fs.writeFile("b", new Uint8Array((64 << 20) + 3))`)
	s.Memory, s.Time = 1<<30, time.Minute
	var got []int
	r := runs(t, s, func(_ context.Context, q Request) (Reply, error) {
		got = append(got, len(q.Data))
		return Reply{}, nil
	})
	if len(got) != 1 || got[0] != 50<<20 || !strings.HasPrefix(r.Error, "Error: fs.writeFile: b: the data is over the limit of 64 MB") {
		t.Errorf("%d %.200s", got, r.Error)
	}
}

// A frame is read to its end or refused, wherever it is cut off.
func TestFrames(t *testing.T) {
	var b bytes.Buffer
	sent := frame{ID: 7, Call: &Request{Op: "rename", Path: "a", To: "ü\xff", Recursive: true, Data: []byte("\xff")}}
	if err := newFramer(&b).send(sent); err != nil {
		t.Fatal(err)
	}
	for n := range b.Len() {
		if got, err := newUnframer(bytes.NewReader(b.Bytes()[:n])).next(); err != io.EOF {
			t.Errorf("%d bytes of %d: %+v, %v", n, b.Len(), got, err)
		}
	}
	if got, err := newUnframer(&b).next(); err != nil || !reflect.DeepEqual(got, sent) {
		t.Errorf("%+v %v", got, err)
	}
	for _, bad := range []string{"\x00", "\x05abcde", "\xf7\xff\xff\xff\xff\xff\xff\xff\xff", strings.Repeat("x", 100)} {
		if got, err := newUnframer(strings.NewReader(bad)).next(); err == nil {
			t.Errorf("%q is the frame %+v", bad, got)
		}
	}
}

// BenchmarkCall is a call of fs without the work of the host.
func BenchmarkCall(b *testing.B) {
	data := []byte(strings.Repeat("a", 4096))
	s := script(`const begin = Date.now(); for (let i = 0; i < 3000; i++) await fs.readFile("a");
		console.log(1000 * (Date.now() - begin) / 3000)`)
	s.Time = time.Minute
	least := math.Inf(1)
	for b.Loop() {
		r, err := program().Run(b.Context(), s, func(context.Context, Request) (Reply, error) { return Reply{Text, data}, nil })
		us, perr := strconv.ParseFloat(strings.TrimSpace(r.Output), 64)
		if err != nil || perr != nil {
			b.Fatal(err, r)
		}
		least = min(least, us)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(least, "us-least")
}
