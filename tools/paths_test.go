package tools_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/toolstest"
	"moltisfs/tools"
)

type pathCase struct {
	name, layout, path string
	read, change, walk string
	guarded            bool
}

// pathCases is run by every tool. layout is in the language of toolstest.
// read and change are the kind of the answer of a tool that reads or changes
// the path, "ok" for success. guarded says that it is the guard that refuses:
// the control, plain os calls by the same path, gets through.
var pathCases = []pathCase{
	{name: "plain file", layout: "f = a", path: "$ROOT/f", read: "ok", change: "ok", walk: "ok"},
	{name: "unclean spelling", layout: "d/\nf = a", path: "$ROOT//d/../././f", read: "ok", change: "ok", walk: "ok"},
	{name: "outside", layout: "../out = a", path: "$ROOT/../out", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "sibling with the same prefix", layout: "../ws-evil/f = a", path: "$ROOT-evil/f", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "outside, missing", path: "$ROOT/../missing", read: "path_denied", change: "path_denied", walk: "path_denied"},
	{name: "link to a file inside", layout: "f = a\nl => f", path: "$ROOT/l", read: "ok", change: "symlink_refused", walk: "ok"},
	{name: "absolute link inside", layout: "f = a\nl => $ROOT/f", path: "$ROOT/l", read: "ok", change: "symlink_refused", walk: "ok"},
	{name: "link out", layout: "../out = a\nl => ../out", path: "$ROOT/l", read: "path_denied", change: "symlink_refused|path_denied", walk: "path_denied", guarded: true},
	{name: "link out, dangling", layout: "l => ../missing", path: "$ROOT/l", read: "path_denied", change: "symlink_refused|path_denied", walk: "path_denied"},
	{name: "dangling link inside", layout: "l => missing", path: "$ROOT/l", read: "not_found", change: "symlink_refused", walk: "not_found"},
	{name: "parent is a link inside", layout: "d/f = a\nl => d", path: "$ROOT/l/f", read: "ok", change: "ok", walk: "ok"},
	{name: "parent is a link out", layout: "../o/f = a\nl => ../o", path: "$ROOT/l/f", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "parent is a link out, missing", layout: "../o/\nl => ../o", path: "$ROOT/l/f", read: "path_denied", change: "path_denied", walk: "path_denied"},
	{name: "dot-dot through a link", layout: "../o/d/\n../o/f = a\nl => ../o/d", path: "$ROOT/l/../f", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "loop", layout: "l => l", path: "$ROOT/l", read: "not_found", change: "symlink_refused|not_found", walk: "not_found"},
	{name: "long chain", layout: chain(45), path: "$ROOT/l00", read: "not_found", change: "symlink_refused|not_found", walk: "not_found"},
	{name: "denied", layout: "secret/f = a", path: "$ROOT/secret/f", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "denied, missing", path: "$ROOT/secret/f", read: "path_denied", change: "path_denied", walk: "path_denied"},
	{name: "the denied directory", layout: "secret/", path: "$ROOT/secret", read: "path_denied", change: "path_denied", walk: "path_denied"},
	{name: "denied by another case", layout: "SECRET/f = a", path: "$ROOT/SECRET/f", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "denied with a trailing dot", layout: "secret./f = a", path: "$ROOT/secret./f", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "denied behind a zero width joiner", layout: "sec\u200dret/f = a", path: "$ROOT/sec\u200dret/f", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "link to a denied file", layout: "secret/f = a\nl => secret/f", path: "$ROOT/l", read: "path_denied", change: "symlink_refused|path_denied", walk: "path_denied", guarded: true},
	{name: "denied name that is a link", layout: "f = a\nsecret => .", path: "$ROOT/secret/f", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "hard link to a denied file", layout: "secret/f = a\nh == secret/f", path: "$ROOT/h", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "directory", layout: "d/", path: "$ROOT/d", read: "not_regular_file", change: "not_regular_file", walk: "ok"},
	{name: "fifo", layout: "p fifo", path: "$ROOT/p", read: "not_regular_file", change: "not_regular_file", walk: "not_regular_file|bad_request"},
	{name: "socket", layout: "s socket", path: "$ROOT/s", read: "not_regular_file", change: "not_regular_file", walk: "not_regular_file|bad_request"},
	{name: "device", path: "/dev/zero", read: "path_denied", change: "path_denied", walk: "path_denied"},
	{name: "stdin", path: "/dev/stdin", read: "path_denied", change: "path_denied", walk: "path_denied"},
	{name: "proc", path: "/proc/self/root$ROOT/f", layout: "f = a", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "link to a magic link", layout: "l => /proc/self/root", path: "$ROOT/l$ROOT/f", read: "path_denied", change: "path_denied", walk: "path_denied"},
	{name: "relative", layout: "f = a", path: "f", read: "bad_request", change: "bad_request", walk: "bad_request"},
	{name: "empty", path: "", read: "bad_request", change: "bad_request", walk: "-"},
	{name: "home", path: "~/f", read: "bad_request", change: "bad_request", walk: "bad_request"},
	{name: "NUL", path: "$ROOT/f\x00.png", read: "bad_request", change: "bad_request", walk: "bad_request"},
	{name: "file as a directory", layout: "f = a", path: "$ROOT/f/g", read: "not_found", change: "not_found", walk: "not_found"},
	{name: "slash after a file", layout: "f = a", path: "$ROOT/f/", read: "not_found|bad_request", change: "not_found|bad_request", walk: "not_found|bad_request"},
	{name: "name too long", path: "$ROOT/" + strings.Repeat("x", 256), read: "bad_request", change: "bad_request", walk: "bad_request"},
	{name: "path too long", path: "$ROOT/" + strings.Repeat("x/", 3000), read: "bad_request", change: "bad_request", walk: "bad_request"},
	{name: "many dots", layout: "f = a", path: "$ROOT" + strings.Repeat("/.", 1000) + "/f", read: "ok", change: "ok", walk: "ok"},
	{name: "glob characters are literal", layout: "[a]{b}*? = a", path: "$ROOT/[a]{b}*?", read: "ok", change: "ok", walk: "ok"},
	{name: "backslash is a character", layout: "../out = a", path: `$ROOT\..\out`, read: "path_denied", change: "path_denied", walk: "path_denied"},
	{name: "newline and escape in a name", layout: "\"x\" = a", path: "$ROOT/a\n\x1b[31mb", read: "not_found", change: "ok", walk: "not_found"},
	{name: "looks deleted", layout: "f = a\nf\u00a0(deleted) = b", path: "$ROOT/f (deleted)", read: "not_found", change: "ok", walk: "not_found"},
	{name: "URL-encoded", layout: "../out = a", path: "$ROOT/%2e%2e/out", read: "not_found", change: "not_found", walk: "not_found"},
}

func chain(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("l" + itoa(i) + " => l" + itoa(i+1) + "\n")
	}
	return b.String() + "l" + itoa(n) + " = a\n"
}

func itoa(n int) string { return string(rune('0'+n/10)) + string(rune('0'+n%10)) }

// pathTools are the tools that open the path they are sent.
var pathTools = slices.DeleteFunc(tools.PathTools(), func(t tools.PathTool) bool { return t.Class == "record" })

func TestEveryPathTimesEveryTool(t *testing.T) {
	t.Parallel()
	everyPathTimesEveryTool(t, *sandboxed, pathCases, func(fs *config.FS) *dialect.Scope { return nil })
}

// The scope of a call holds a path as the policy's allow list does: nothing else keeps these calls inside.
func TestEveryPathTimesEveryToolInAScope(t *testing.T) {
	t.Parallel()
	everyPathTimesEveryTool(t, *sandboxed, pathCases, func(fs *config.FS) *dialect.Scope {
		fs.AllowPaths = nil
		return &dialect.Scope{Readable: []string{fs.WorkspaceRoot}, Writable: []string{fs.WorkspaceRoot}}
	})
}

func everyPathTimesEveryTool(t *testing.T, through string, cases []pathCase, wall func(*config.FS) *dialect.Scope) {
	for _, c := range cases {
		for _, tool := range tools.PathTools() {
			want := map[string]string{"read": c.read, "change": c.change, "walk": c.walk,
				"cell":   strings.Replace(c.change, "ok", "unsupported|not_found", 1), // no file here is a notebook
				"record": "ok|not_found|bad_request|path_denied"}[tool.Class]          // the store knows no path here
			if want == "-" {
				continue
			}
			t.Run(c.name+"/"+tool.Name, func(t *testing.T) {
				var in *dialect.Scope
				s, root := suiteIn(t, through, func(fs *config.FS) {
					fs.DenyPaths = []string{fs.WorkspaceRoot + "/secret/**"}
					in = wall(fs)
				}, tools.Options{})
				layout := strings.ReplaceAll(c.layout, "sec\u200dret", "sec\u200dret")
				toolstest.Layout(t, root, layout)
				path := strings.ReplaceAll(c.path, "$ROOT", root)
				control, controlErr := readPlain(path)
				if c.guarded && (controlErr != nil || len(control) == 0) {
					t.Fatalf("the control can't read it either (%v): this case proves nothing", controlErr)
				}
				before := toolstest.Snapshot(t, root)
				start := time.Now()
				p := callWithin(t, s, in, tool.Name, tool.Args(path, controlErr == nil))
				if d := time.Since(start); d > time.Minute {
					t.Errorf("took %s", d) // a hang, not a speed claim
				}
				got := "ok"
				if tools.Refused(p) {
					got = p.Kind()
				}
				if tool.Name == "Glob" && got == "bad_request" && want == "ok" {
					got = "ok" // a file is no directory to walk; that it was named is the point
				}
				found := false
				for _, w := range strings.Split(want, "|") {
					found = found || w == got
				}
				if !found {
					t.Errorf("%s: want %s", mustEncode(t, p), want)
				}
				if got == "ok" && tool.Class == "change" {
					return
				}
				after := toolstest.Snapshot(t, root)
				for name, content := range after {
					if name != "../data" && !strings.HasPrefix(name, "../data/") && before[name] != content {
						t.Errorf("%s changed", name)
					}
				}
				for name := range before {
					if _, still := after[name]; !still {
						t.Errorf("%s is gone", name)
					}
				}
			})
		}
	}
}

// A denied path must not tell whether it exists: same answer but for the name.
func TestNoExistenceOracle(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) { fs.DenyPaths = []string{fs.WorkspaceRoot + "/secret/**"} }, tools.Options{})
	toolstest.Layout(t, root, "secret/there = a\nsecret/dir/\nsecret/fifo fifo\nsecret/link => /etc/passwd\n../outside = x")
	for _, tool := range pathTools {
		for _, base := range []string{root + "/secret/", filepath.Dir(root) + "/"} {
			want := ""
			for _, name := range []string{"missing", "there", "dir", "fifo", "link", "dir/deeper", "there/x", "outside"} {
				got := strings.ReplaceAll(mustEncode(t, call(t, s, tool.Name, tool.Args(base+name, true))), base+name, "PATH")
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("%s %s%s answers\n%s, a missing one\n%s", tool.Name, base, name, got, want)
				}
			}
		}
	}
}

// Nor must a path that passes it and comes back by "..", which would work, fail or be missing by
// what is there. secret is denied, out and /proc are not allowed, data is ours; into leads to each.
func TestNoExistenceOracleThroughDotDot(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) { fs.DenyPaths = []string{fs.WorkspaceRoot + "/secret/**"} }, tools.Options{})
	base := filepath.Dir(root)
	const things = "D/dir/y/\nD/file = a\nD/fifo fifo\nD/link => /etc\nD/inside => $ROOT/d\nD/dangling => nowhere\n"
	toolstest.Layout(t, root, "ok = a\nd/e/\ninto/secret => ../secret\ninto/out => ../../out\ninto/data => ../../data\ninto/proc => /proc\n"+
		strings.ReplaceAll(things, "D/", "secret/")+strings.ReplaceAll(things, "D/", "../out/"))
	call(t, s, "Read", map[string]any{"file_path": root + "/ok"}) // makes the record
	kinds := strings.Fields("missing dir file fifo link inside dangling dir/y/deep file/x")
	ours := strings.Fields("missing audit audit/audit.jsonl audit/audit.jsonl/x")
	procs := []string{"999999999", "1", "self", "self/status", "self/exe", "self/cwd", "meminfo"}
	for _, at := range []struct {
		dir   string
		names []string
	}{
		{root + "/secret", kinds}, {base + "/out", kinds}, {base + "/data", ours}, {"/proc", procs},
		{root + "/into/secret", kinds}, {root + "/into/out", kinds}, {root + "/into/data", ours}, {root + "/into/proc", procs},
	} {
		// Up to the root of everything, where ".." stays, and down again.
		for _, tail := range []string{strings.Repeat("/..", 30) + root + "/ok", "/./..//." + strings.Repeat("/..", 30) + root + "/none", "/..", "/../dir/../../ok"} {
			for _, tool := range append(tools.PathTools(), dryWrite) {
				want := ""
				for _, name := range at.names {
					path := at.dir + "/" + name + tail
					got := strings.ReplaceAll(mustEncode(t, call(t, s, tool.Name, tool.Args(path, true))), path, "PATH")
					got = strings.ReplaceAll(got, filepath.Clean(path), "CLEAN") // a hint of the tools that take no ".."
					if want == "" {
						want = got
					}
					if got != want || !strings.Contains(got, `"path_denied"`) && !strings.Contains(got, `"bad_request"`) {
						t.Errorf("%s %s answers\n%s, a missing one\n%s", tool.Name, path, got, want)
					}
				}
			}
		}
	}
}

// dryWrite takes a path in another way than the rows of the tools show.
var dryWrite = tools.PathTool{Name: "Write", Class: "change", Args: func(p string, _ bool) map[string]any {
	return map[string]any{"file_path": p, "content": "b\n", "create_parents": true, "dry_run": true}
}}

// A link that comes to a denied name closes what it leads to.
func TestLateLinkToTheDenied(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) { fs.DenyPaths = []string{fs.WorkspaceRoot + "/late/**"} }, tools.Options{})
	toolstest.Layout(t, root, "real/k = a")
	read := func() tools.Payload { return call(t, s, "Read", map[string]any{"file_path": root + "/real/k"}) }
	if p := read(); tools.Refused(p) {
		t.Fatal(mustEncode(t, p))
	}
	toolstest.Layout(t, root, "late => real")
	for end := time.Now().Add(5 * time.Second); read().Kind() != tools.KindPathDenied; {
		if time.Now().After(end) {
			t.Fatal("the link is not followed")
		}
	}
	for _, tool := range pathTools {
		if p := call(t, s, tool.Name, tool.Args(root+"/real/k", true)); p.Kind() != tools.KindPathDenied {
			t.Errorf("%s: %s", tool.Name, mustEncode(t, p))
		}
	}
}

// readPlain is the control: what a program without a guard gets by this name.
// A FIFO or a device would block it, or feed it for ever.
func readPlain(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, os.ErrInvalid
	}
	return os.ReadFile(path)
}
