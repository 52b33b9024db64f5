package jsfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/js"
	"moltisfs/internal/policy"
	"moltisfs/internal/testdir"
)

var must = testdir.Must

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "js-worker" {
		go func() {
			for len(os.Args) > 2 { // it dies as soon as this file is there
				if _, err := os.Stat(os.Args[2]); err == nil {
					panic("the engine is broken")
				}
				time.Sleep(time.Millisecond)
			}
		}()
		if err := js.Work(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// opened is the dialect over an engine of its own, whose root is dir.
func opened(t testing.TB, chain policy.Chain, change func(*config.FS)) (d *Dialect, dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	cfg := config.Default()
	fs := &cfg.Tools.FS
	fs.RequireApproval, fs.WorkspaceRoot, fs.CheckpointBeforeMutation = false, dir, true
	fs.AllowPaths = []string{dir + "/**"}
	change(fs)
	cfg.Tools.JS.Filesystem = chain == nil
	host := engine.Host{DataDir: filepath.Join(t.TempDir(), "data")}
	if chain != nil {
		fs.Policies = []string{"file:///one.rego"}
		host.Program.Policies = func(string, []string) (policy.Chain, error) { return chain, nil }
	}
	e, err := engine.Open(cfg, host)
	must(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return Over(e, Options{Config: cfg.Tools.JS, Worker: js.Program{os.Args[0], "js-worker"}}), dir
}

func asIs(*config.FS) {}

// ran is the answer of one run.
func ran(t *testing.T, d *Dialect, in dialect.Call, code string) (out reply) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"code": code})
	must(t, err)
	in.Tool, in.Args = Tool, raw
	a, err := d.Call(t.Context(), in)
	must(t, err)
	must(t, json.Unmarshal([]byte(a.Text()), &out))
	return out
}

// said is what a script wrote, with what it threw behind it.
func said(t *testing.T, d *Dialect, code string) string {
	t.Helper()
	r := ran(t, d, dialect.Call{}, code)
	if r.Error != nil {
		return r.Output + *r.Error
	}
	return r.Output
}

// chain is a policy that keeps what it was asked.
type chain struct {
	mu    sync.Mutex
	asked []policy.Input
	say   func(policy.Input) (bool, error)
}

func (c *chain) Decide(_ context.Context, in policy.Input) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, in)
	return c.say(in)
}

// Every fact of the page: a method, a field or a sentence that is not there fails.
func TestPage(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/facts.txt")
	must(t, err)
	policies := &chain{say: func(in policy.Input) (bool, error) {
		return !strings.Contains(in.Path, "closed"), nil
	}}
	d, dir := opened(t, policies, asIs)
	put(t, dir+"/latin", "caf\xe9")
	put(t, dir+"/f", "f")
	var script strings.Builder
	script.WriteString("const fails = async (f) => { try { await f(); return 'nothing'; } catch (e) { return String(e); } };\n")
	var want []string
	expect := func(code, is string) {
		fmt.Fprintf(&script, "console.log(await (%s));\n", code)
		want = append(want, is)
	}
	operation := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		switch {
		case f[0] == "#":
		case f[0] == "operation":
			operation[f[1]] = f[2]
		case f[0] == "method":
			name, _, _ := strings.Cut(f[1], "(")
			expect("typeof fs."+name, "function")
		case f[0] == "stat":
			expect(fmt.Sprintf("fs.stat('f').then((s) => %q.split('|').includes(s.%s === null ? 'null' : typeof s.%[2]s))",
				f[2], f[1]), "true")
		case f[0] == "error":
			text := strings.Join(f[2:], " ")
			code, is := provoked(f[1], text)
			expect("fails(() => "+code+")", is)
		}
	}
	expect("Object.keys(fs).length", "11")
	got := strings.Split(strings.TrimSuffix(said(t, d, script.String()), "\n"), "\n")
	for i, is := range want {
		if i >= len(got) || got[i] != is {
			t.Errorf("fact %d: %q, want %q", i, got[min(i, len(got)-1)], is)
		}
	}

	// what a policy is asked
	policies.asked = nil
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if f[0] != "method" {
			continue
		}
		name, _, _ := strings.Cut(f[1], "(")
		before := len(policies.asked)
		said(t, d, "await fs."+name+"('f/../f', 'g/h')")
		in, err := json.Marshal(policies.asked[before])
		must(t, err)
		var fields map[string]any
		must(t, json.Unmarshal(in, &fields))
		op := operation[name]
		if op == "" {
			op = name
		}
		ours := []string{"resolved_path", "principal", "session", "dialect", "resolved_destination"}
		for k := range fields {
			if !slices.Contains(f[3:], k) && !slices.Contains(ours, k) {
				t.Errorf("%s: %s is asked with", name, k)
			}
		}
		for _, k := range f[3:] {
			if _, ok := fields[k]; !ok {
				t.Errorf("%s: %s is missing in %s", name, k, in)
			}
		}
		if fields["operation"] != op || fields["path"] != "f/../f" || fields["dialect"] != Name {
			t.Errorf("%s: asked with %s", name, in)
		}
	}
}

// provoked is a call that ends with a sentence of the page, and the sentence as it must be.
func provoked(method, text string) (code, is string) {
	is = strings.NewReplacer("<path>", "no/f", "<oldPath>", "no/f", "<src>", "no/f", "<newPath>", "no/g",
		"<dest>", "no/g", "<io error>", "No such file or directory (os error 2)").Replace(text)
	call := func(a string) string { return "fs." + method + "(" + a + ")" }
	switch {
	case strings.Contains(text, "newPath must"), strings.Contains(text, "dest must"):
		return call("'f', 1"), is
	case strings.Contains(text, "must be a string"):
		return call("{}, 'g'"), is
	case strings.Contains(text, "invalid UTF-8"):
		return call("'latin'"), "Error: fs.readFile: invalid UTF-8 in latin: incomplete utf-8 byte sequence from index 3"
	case strings.Contains(text, "denied"):
		return call("'closed', 'g'"), "Error: " + strings.ReplaceAll(is, "no/f", "closed")
	}
	return call("'no/f', 'no/g'"), "Error: " + is
}

func put(t testing.TB, name, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(content), 0o644))
}

// The effect of each method, and the forms of its arguments.
func TestMethods(t *testing.T) {
	t.Parallel()
	d, dir := opened(t, nil, asIs)
	put(t, dir+"/a", "héllo")
	put(t, dir+"/d/x", "x")
	put(t, dir+"/ro", "r")
	if err := errors.Join(os.Chmod(dir+"/ro", 0o444), os.Symlink("a", dir+"/link"), os.Symlink("/etc", dir+"/out"),
		os.Symlink("nowhere", dir+"/dangling"), os.Symlink("d", dir+"/todir")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ code, want string }{
		{"fs.readFile('a')", "héllo"},
		{"fs.readFile('" + dir + "/a', 'utf-8')", "héllo"},
		{"fs.readFile('./d/../a', 'BUFFER')", "héllo"},
		{"fs.readFile('a', 'buffer').then((b) => b instanceof Uint8Array && b.length)", "6"},
		{"fs.writeFile('n', new Uint8Array([65, 0xe2, 0x82, 66])).then(() => fs.readFile('n'))",
			"Error: fs.readFile: invalid UTF-8 in n: invalid utf-8 sequence of 2 bytes from index 1"},
		{"fs.writeFile('n', new Uint8Array([0xed, 0xa0])).then(() => fs.readFile('n'))",
			"Error: fs.readFile: invalid UTF-8 in n: invalid utf-8 sequence of 1 bytes from index 0"},
		{"fs.readFile('d')", "Error: fs.readFile: d: Is a directory (os error 21)"},
		{"fs.readFile('a/b')", "Error: fs.readFile: a/b: Not a directory (os error 20)"},
		{"fs.readFile('')", "Error: fs.readFile: : No such file or directory (os error 2)"},
		{"fs.readFile('a\\0b')", "Error: fs.readFile: a\x00b: Invalid argument (os error 22)"},
		{"fs.readFile('/etc/passwd')", "Error: fs.readFile denied by policy: /etc/passwd is not allowed"},
		{"fs.readFile('out/passwd')", "Error: fs.readFile denied by policy: out/passwd is not allowed"},
		{"fs.readFile('../../etc/passwd')", "Error: fs.readFile denied by policy: ../../etc/passwd is not allowed"},
		{"fs.writeFile('n', null).then(() => fs.readFile('n'))", "null"},
		{"fs.writeFile('n', { toString: () => 'mine' }).then(() => fs.readFile('n'))", "mine"},
		{"fs.writeFile('n').then(() => fs.readFile('n'))", "undefined"},
		{"fs.writeFile('n', '').then(() => fs.stat('n')).then((s) => s.size)", "0"},
		{"fs.writeFile('n', new Uint8Array([0, 255, 10])).then(() => fs.readFile('n', 'buffer')).then((b) => b.toHex())", "00ff0a"},
		{"fs.writeFile('n', new Uint8Array([1, 2, 3, 4]).subarray(1, 3)).then(() => fs.readFile('n', 'buffer')).then((b) => b.toHex())", "0203"},
		{"fs.writeFile('n', new Uint16Array([1, 2])).then(() => fs.readFile('n'))", "1,2"},
		{"fs.writeFile('link', 1)", "Error: fs.writeFile: link: it is a symbolic link, and links are not written through: use the path of the real file"},
		{"fs.writeFile('d', 1)", "Error: fs.writeFile: d: Is a directory (os error 21)"},
		{"fs.appendFile('new', 1).then(() => fs.appendFile('new', [2, 3])).then(() => fs.readFile('new'))", "12,3"},
		{"fs.readdir('d')", "[\"x\"]"},
		{"fs.readdir('a')", "Error: fs.readdir: a: Not a directory (os error 20)"},
		{"fs.stat('a').then((s) => [s.size, s.isFile, s.isDirectory, s.isSymlink, s.readonly, s.mtimeMs > 1e12])", "[6, true, false, false, false, true]"},
		{"fs.stat('a').then((s) => s.birthtimeMs === null || s.birthtimeMs > 1e12)", "true"},
		{"fs.stat('link').then((s) => [s.size, s.isFile, s.isSymlink])", "[6, true, true]"},
		{"fs.stat('dangling').then((s) => [s.isFile, s.isSymlink])", "[false, true]"},
		{"fs.stat('ro').then((s) => s.readonly)", "true"},
		{"fs.stat('d').then((s) => s.isDirectory)", "true"},
		{"fs.mkdir('m/n')", "Error: fs.mkdir: m/n: No such file or directory (os error 2)"},
		{"fs.mkdir('m/n', { recursive: true }).then(() => fs.mkdir('m/n', { recursive: 1 })).then(() => fs.readdir('m'))", "[\"n\"]"},
		{"fs.mkdir('m')", "Error: fs.mkdir: m: File exists (os error 17)"},
		{"fs.rm('m')", "Error: fs.rm: m: Directory not empty (os error 39)"},
		{"fs.unlink('m', { recursive: true })", "Error: fs.rm: m: Directory not empty (os error 39)"},
		{"fs.rm('m/n').then(() => fs.rm('m', { recursive: true })).then(() => fs.exists('m'))", "false"},
		{"fs.rm('m')", "Error: fs.rm: m: No such file or directory (os error 2)"},
		{"fs.copyFile('a', 'n').then(() => fs.readFile('n'))", "héllo"},
		{"fs.copyFile('d', 'e')", "Error: fs.copyFile: d -> e: Is a directory (os error 21)"},
		{"fs.rename('n', 'new').then(async () => [await fs.readFile('new'), await fs.exists('n')])", "[\"héllo\", false]"},
		{"fs.rename('n', 'x')", "Error: fs.rename: n -> x: No such file or directory (os error 2)"},
		{"fs.mkdir('s/t/', { recursive: true }).then(() => fs.mkdir('s/u/')).then(() => fs.readdir('s'))", "[\"t\", \"u\"]"},
		{"fs.rename('s/t/', 's/v/').then(() => fs.rm('s/u/')).then(() => fs.readdir('s/'))", "[\"v\"]"},
		{"fs.rm('s/', { recursive: true }).then(() => fs.exists('s'))", "false"},
		{"fs.rm('a/')", "Error: fs.rm: a/: Not a directory (os error 20)"},
		{"fs.rename('a/', 'b')", "Error: fs.rename: a/ -> b: Not a directory (os error 20)"},
		{"fs.rename('a', 'b/')", "Error: fs.rename: a -> b/: Not a directory (os error 20)"},
		{"fs.rm('todir/')", "Error: fs.rm: todir/: Not a directory (os error 20)"},
		{"fs.writeFile('n/', 1)", "Error: fs.writeFile: n/: Is a directory (os error 21)"},
		{"fs.copyFile('a', '.')", "Error: fs.copyFile: a -> .: Is a directory (os error 21)"},
		{"fs.mkdir('.')", "Error: fs.mkdir: .: File exists (os error 17)"},
		{"fs.mkdir('d/..', { recursive: true })", "undefined"},
		{"fs.mkdir('todir')", "Error: fs.mkdir: todir: File exists (os error 17)"},
		{"fs.mkdir('todir', { recursive: true })", "undefined"},
		{"fs.mkdir('link', { recursive: true })", "Error: fs.mkdir: link: File exists (os error 17)"},
		{"fs.mkdir('out', { recursive: true })", "Error: fs.mkdir: out: it is a symbolic link, and links are not written through: use the path of the real file"},
		{"fs.stat('x'.repeat(256)).catch((e) => e.code)", "ENAMETOOLONG"},
		{"fs.exists('/x'.repeat(3000))", "false"},
		{"fs.mkdir('end').then(() => fs.rm('end'.padEnd(5000, '/') + 'x')).catch((e) => e.code)", "ENAMETOOLONG"},
		{"fs.rename('end'.padEnd(5000, '/') + 'x', 'end2').catch((e) => fs.exists('end'))", "true"},
		{"fs.writeFile('ro', 1)", "Error: fs.writeFile: ro: Permission denied (os error 13)"},
		{"fs.rename('a', '')", "Error: fs.rename: a -> : No such file or directory (os error 2)"},
		{"fs.rename('a', './a')", "undefined"},
		{"fs.rename('d', 'd/e')", "Error: fs.rename: d -> d/e: Invalid argument (os error 22)"},
		{"fs.exists('a/b')", "false"},
		{"fs.exists('/etc/passwd')", "Error: fs.exists denied by policy: /etc/passwd is not allowed"},
		{"fs.readFile('nope').catch((e) => e.code)", "ENOENT"},
		{"Promise.all(Array.from({ length: 200 }, (_, i) => fs.writeFile('many' + i % 20, i))).then((a) => a.length)", "200"},
	} {
		code := "try { console.log(await " + c.code + ") } catch (e) { console.log(String(e)) }"
		if got := strings.TrimSuffix(said(t, d, code), "\n"); got != c.want {
			t.Errorf("%s: %q, want %q", c.code, got, c.want)
		}
	}
}

// The answer tells of changes that left something changed.
func TestChanged(t *testing.T) {
	t.Parallel()
	d, dir := opened(t, nil, asIs)
	put(t, dir+"/a", "a")
	put(t, dir+"/d/x", "x")
	r := ran(t, d, dialect.Call{}, `await fs.writeFile("a", "a"); await fs.mkdir("d", { recursive: true }); await fs.mkdir(".",
		{ recursive: true }); await fs.copyFile("a", "a"); await fs.rename("a", "a"); await fs.appendFile("a", "")`)
	if r.Error != nil || r.Changed != nil || r.Turn != "" {
		t.Errorf("nothing was changed: %+v", r)
	}
	r = ran(t, d, dialect.Call{}, `await fs.writeFile("a", "b"); await fs.mkdir("e/")`)
	if !slices.Equal(r.Changed, []string{dir + "/a", dir + "/e"}) {
		t.Errorf("%+v", r)
	}
}

// No number of megabytes is more than the operator gives.
func TestMemory(t *testing.T) {
	t.Parallel()
	o := Options{Config: config.Default().Tools.JS}
	for _, n := range []int{math.MaxInt, math.MaxInt >> 19, math.MaxInt>>20 + 1, 512} {
		if got := o.memory(&n); got != 512<<20 {
			t.Errorf("%d MB are %d bytes", n, got)
		}
	}
	if n := 4; o.memory(&n) != 4<<20 || o.memory(nil) != 64<<20 {
		t.Error("what is asked for is not what there is")
	}
}

// Where nothing may be changed the definition says so, and shows no script that does.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	d, _ := opened(t, nil, func(fs *config.FS) { fs.ReadOnly = true })
	is := d.Definitions()[0]
	if !is.ReadOnly || !strings.HasSuffix(is.Description, " Changes of files are refused here.") {
		t.Errorf("%+v", is)
	}
	if got := said(t, d, "await fs.writeFile('a', 1)"); got != "Error: fs.writeFile denied by policy: a is not allowed" {
		t.Error(got)
	}
}

// Without checkpoints there is no undo, and nothing tells of one.
func TestWithoutCheckpoints(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		d, _ := opened(t, nil, func(fs *config.FS) { fs.CheckpointBeforeMutation = on })
		r := ran(t, d, dialect.Call{}, "await fs.mkdir('d')")
		told := strings.Contains(d.Definitions()[0].Description, docUndo)
		if len(r.Changed) != 1 || (r.Turn != "") != on || told != on {
			t.Errorf("checkpoints %v: told of undo %v, %+v", on, told, r)
		}
	}
}

// The workspace root stays, and what it is in: a slash too many is no call for the end of everything.
func TestRootStays(t *testing.T) {
	t.Parallel()
	d, dir := opened(t, nil, func(fs *config.FS) {
		fs.WorkspaceRoot += "/in/root"
		put(t, fs.WorkspaceRoot+"/a", "a")
	})
	for _, p := range []string{"in/root", "in/root/", "in", "in/root/../root"} {
		for _, code := range []string{"fs.rm(%q, { recursive: true })", "fs.rename(%q, '../../other')"} {
			if got := said(t, d, "await "+fmt.Sprintf(code, dir+"/"+p)); !strings.Contains(got, "denied by policy") {
				t.Errorf("%s of %s: %q", code, p, got)
			}
		}
	}
	if got := said(t, d, "await fs.mkdir('../b'); await fs.rm('../b'); console.log(await fs.readFile('a'))"); got != "a\n" {
		t.Errorf("%q", got)
	}
}

// Without a policy there is no fs, a chain that fails denies, and the guard comes after a chain.
func TestChain(t *testing.T) {
	t.Parallel()
	yes := &chain{say: func(policy.Input) (bool, error) { return true, nil }}
	d, dir := opened(t, yes, asIs)
	put(t, dir+"/a", "a")
	must(t, os.Symlink("a", dir+"/link"))
	if got := said(t, d, "await fs.readFile('/etc/passwd')"); !strings.Contains(got, "denied by policy") {
		t.Error(got)
	}
	said(t, d, "await fs.rename('link/../link', 'sub/../new/x')")
	if in := yes.asked[len(yes.asked)-1]; in.ResolvedPath != dir+"/a" && in.ResolvedPath != dir+"/link" ||
		in.ResolvedDestination != dir+"/new/x" {
		t.Errorf("%+v", in)
	}
	yes.asked = nil
	said(t, d, "await fs.mkdir('s/'); await fs.rename('s/', 't//'); await fs.rm('t/'); await fs.mkdir('s/..', { recursive: true })")
	var asked []string
	for _, in := range yes.asked {
		if in.Dialect == Name && in.Operation != "stat" && !strings.HasPrefix(in.Path, "/") {
			asked = append(asked, strings.TrimSpace(in.ResolvedPath+" "+in.ResolvedDestination))
		}
		if strings.Contains(in.ResolvedPath, "s/s") || strings.Contains(in.ResolvedPath, "t/t") {
			t.Errorf("%+v", in)
		}
	}
	if want := []string{dir + "/s", dir + "/s " + dir + "/t", dir + "/t", dir}; !slices.Equal(asked, want) {
		t.Errorf("asked of %q, want %q", asked, want)
	}
	yes.say = func(policy.Input) (bool, error) { return true, errors.New("no answer") }
	if got := said(t, d, "await fs.exists('a')"); got != "Error: fs.exists: policy error: no answer" {
		t.Error(got)
	}
	d, _ = opened(t, nil, asIs)
	d.o.Config.Filesystem = false
	if is := d.Definitions()[0]; strings.Contains(is.Description, "fs") || !is.ReadOnly {
		t.Errorf("%+v", is)
	}
	r := ran(t, d, dialect.Call{}, "fs")
	if r.Error == nil || !strings.HasPrefix(*r.Error, "ReferenceError: fs is not defined") || r.Hint == "" {
		t.Errorf("%+v %s", r, *r.Error)
	}
}

// A refusal is an exception, and told where it was not awaited; what must be read must be read.
func TestRefusals(t *testing.T) {
	t.Parallel()
	d, dir := opened(t, nil, func(fs *config.FS) {
		fs.RequireApproval, fs.MustReadBeforeWrite, fs.TrackReads = true, true, true
	})
	put(t, dir+"/a", "a")
	put(t, dir+"/b", "b")
	asked := 0
	in := dialect.Call{Session: "s", Approver: approverFunc(func(q approval.Question) approval.Answer {
		asked++
		return approval.Answer{Decision: map[bool]approval.Decision{true: approval.Denied, false: approval.Approved}[strings.Contains(q.Summary+fmt.Sprint(q), "/b")]}
	})}
	r := ran(t, d, in, "await fs.writeFile('a', 1)")
	if asked != 0 || r.Error == nil || !strings.Contains(*r.Error, "read it with fs.readFile") {
		t.Errorf("unread: %+v", r)
	}
	r = ran(t, d, in, "await fs.readFile('a'); await fs.writeFile('a', 1)")
	if asked != 1 || r.Error != nil || !slices.Equal(r.Changed, []string{dir + "/a"}) || len(r.Checkpoints) != 1 || r.Turn == "" {
		t.Errorf("read: %+v", r)
	}
	r = ran(t, d, in, "await fs.readFile('b'); fs.writeFile('b', 1)")
	if asked != 2 || r.Error == nil || len(r.Changed) != 0 || !strings.Contains(*r.Error, "not approved") {
		t.Errorf("not approved: %+v", r)
	}
}

// Changes of one path side by side are made one after the other, where somebody approves each, too.
func TestSameAtOnce(t *testing.T) {
	t.Parallel()
	d, _ := opened(t, nil, func(fs *config.FS) { fs.RequireApproval = true })
	r := ran(t, d, dialect.Call{Approver: approval.Yes("test")}, `
		await Promise.all(Array.from({ length: 50 }, (_, i) => fs.appendFile("a", "x")));
		const all = await fs.readFile("a");
		const r = await Promise.allSettled([fs.rename("a", "b"), fs.rename("a", "c"), fs.rm("./a")]);
		console.log(all.length, r.map((x) => x.reason?.code ?? "done").sort().join());`)
	if r.Error != nil || r.Output != "50 ENOENT,ENOENT,done\n" {
		t.Errorf("%+v", r)
	}
}

// A person may think for longer than a script may run.
func TestPersonTakesTime(t *testing.T) {
	t.Parallel()
	d, _ := opened(t, nil, func(fs *config.FS) { fs.RequireApproval = true })
	slow := approverFunc(func(approval.Question) approval.Answer {
		time.Sleep(1200 * time.Millisecond) // longer than the script's second
		return approval.Answer{Decision: approval.Approved, By: "test"}
	})
	a, err := d.Call(t.Context(), dialect.Call{Tool: Tool, Approver: slow, Args: json.RawMessage(
		`{"code":"await fs.writeFile('a', 'x'); console.log('made')","timeout_secs":1}`)})
	if err != nil || !strings.Contains(a.Text(), `"output":"made\n"`) {
		t.Error(a, err)
	}
}

type approverFunc func(approval.Question) approval.Answer

func (f approverFunc) Ask(_ context.Context, q approval.Question) (approval.Answer, error) {
	return f(q), nil
}

// The answer of a run that was cancelled tells what it wrote and changed until then.
func TestCancelled(t *testing.T) {
	t.Parallel()
	d, dir := opened(t, nil, asIs)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(dir, "b")); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	a, err := d.Call(ctx, dialect.Call{Tool: Tool, Args: json.RawMessage(`{"code":` +
		`"console.log('begun'); await fs.writeFile('a', 'x'); await fs.writeFile('b', 'x'); for (;;) await 0;"}`)})
	must(t, err)
	for _, want := range []string{`"output":"begun\n"`, `"error":"the run was cancelled"`, dir + "/a", `"turn":"js-`} {
		if !strings.Contains(a.Text(), want) {
			t.Errorf("no %s in %s", want, a.Text())
		}
	}
}

// A worker that breaks takes nothing away from what the answer tells.
func TestBrokenWorker(t *testing.T) {
	t.Parallel()
	d, dir := opened(t, nil, asIs)
	d.o.Worker = append(d.o.Worker, dir+"/b")
	r := ran(t, d, dialect.Call{}, "console.log(1); await fs.writeFile('a', 'x'); await fs.writeFile('b', 'x'); for (;;) await 0;")
	if r.Error == nil || !strings.Contains(*r.Error, "cut off") || r.Output != "1\n" || len(r.Changed) == 0 {
		t.Errorf("%+v", r)
	}
}

// The cost of a call of fs in the server: the guarded call, without the way to the script and back.
func BenchmarkReadFile(b *testing.B) {
	d, dir := opened(b, nil, asIs)
	put(b, dir+"/a", strings.Repeat("a", 4096))
	r := &run{Dialect: d, in: dialect.Call{Tool: Tool}}
	for b.Loop() {
		if _, err := r.call(b.Context(), js.Request{Op: "readFile", Path: "a", Encoding: "utf8"}); err != nil {
			b.Fatal(err)
		}
	}
}

// A script renames a directory while it writes into it: what nobody was asked about, or what a rule or a
// policy closes under the new name, does not come there.
func TestRenameBesideWrites(t *testing.T) {
	t.Parallel()
	no := &chain{say: func(in policy.Input) (bool, error) {
		return !strings.HasSuffix(in.ResolvedPath+in.ResolvedDestination, "/plain/a.conf"), nil
	}}
	for name, c := range map[string]struct {
		chain    policy.Chain
		set      func(*config.FS)
		to, leaf string
	}{
		"code, asked":   {nil, asIs, ".vscode", "tasks.json"},
		"code, refused": {nil, func(fs *config.FS) { fs.ProtectExec = "refuse" }, ".cargo", "config.toml"},
		"CI":            {nil, asIs, ".github", "workflows"},
		"a secret":      {nil, asIs, ".aws", "credentials"},
		"a rule":        {nil, func(fs *config.FS) { fs.DenyPaths = []string{"**/locked/*.conf"} }, "locked", "a.conf"},
		"a policy":      {no, asIs, "plain", "a.conf"},
	} {
		d, dir := opened(t, c.chain, c.set)
		r := ran(t, d, dialect.Call{Approver: approverFunc(func(q approval.Question) approval.Answer {
			return approval.Answer{Decision: map[bool]approval.Decision{true: approval.Denied, false: approval.Approved}[len(q.Code) > 0]}
		})}, fmt.Sprintf(`
			let moved = 0, written = 0;
			for (let i = 0; i < 40; i++) {
				await fs.mkdir("d" + i); await fs.mkdir("d" + i + "/w");
				await Promise.all([fs.rename("d" + i + "/w", "d" + i + "/" + %[1]q).then(() => moved++, () => 0),
					fs.writeFile("d" + i + "/w/" + %[2]q, "x").then(() => written++, () => 0)]);
			}
			console.log(moved + written);`, c.to, c.leaf))
		in, err := filepath.Glob(dir + "/d*/" + c.to + "/" + c.leaf)
		if err != nil || in != nil || r.Error != nil || r.Output == "0\n" {
			t.Errorf("%s: it came to %q: %+v", name, in, r)
		}
	}
}

// However many scripts one principal runs and has waiting, another's runs at once.
func TestScriptsOfOthers(t *testing.T) {
	t.Parallel()
	d, _ := opened(t, nil, asIs)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for range 20 {
		running.Go(func() {
			_, _ = d.Call(ctx, dialect.Call{Principal: "alice", Tool: Tool, // it ends by the context
				Args: json.RawMessage(`{"code":"for (;;) await new Promise(r => setTimeout(r, 1000))","timeout_secs":300}`)})
		})
	}
	for d.slots.Try("alice", 1) { // until she has her part
		d.slots.Give("alice", 1)
	}
	if out := ran(t, d, dialect.Call{Principal: "bob"}, "console.log(1)"); out.Error != nil || out.Output != "1\n" {
		t.Errorf("%+v", out)
	}
}
