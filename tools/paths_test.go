package tools_test

import (
	"encoding/json"
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
	{name: "link to a file inside", layout: "f = a\nl => f", path: "$ROOT/l", read: "ok", change: "symlink_refused", walk: "ok"},
	{name: "absolute link inside", layout: "f = a\nl => $ROOT/f", path: "$ROOT/l", read: "ok", change: "symlink_refused", walk: "ok"},
	{name: "link out", layout: "../out = a\nl => ../out", path: "$ROOT/l", read: "path_denied", change: "symlink_refused|path_denied", walk: "path_denied", guarded: true},
	{name: "dangling link inside", layout: "l => missing", path: "$ROOT/l", read: "not_found", change: "symlink_refused", walk: "not_found"},
	{name: "parent is a link inside", layout: "d/f = a\nl => d", path: "$ROOT/l/f", read: "ok", change: "ok", walk: "ok"},
	{name: "parent is a link out", layout: "../o/f = a\nl => ../o", path: "$ROOT/l/f", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "dot-dot through a link", layout: "../o/d/\n../o/f = a\nl => ../o/d", path: "$ROOT/l/../f", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "denied", layout: "secret/f = a", path: "$ROOT/secret/f", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "link to a denied file", layout: "secret/f = a\nl => secret/f", path: "$ROOT/l", read: "path_denied", change: "symlink_refused|path_denied", walk: "path_denied", guarded: true},
	{name: "hard link to a denied file", layout: "secret/f = a\nh == secret/f", path: "$ROOT/h", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "directory", layout: "d/", path: "$ROOT/d", read: "not_regular_file", change: "not_regular_file", walk: "ok"},
	{name: "fifo", layout: "p fifo", path: "$ROOT/p", read: "not_regular_file", change: "not_regular_file", walk: "not_regular_file|bad_request"},
	{name: "device", path: "/dev/zero", read: "path_denied", change: "path_denied", walk: "path_denied"},
	{name: "proc", path: "/proc/self/root$ROOT/f", layout: "f = a", read: "path_denied", change: "path_denied", walk: "path_denied", guarded: true},
	{name: "relative", layout: "f = a", path: "f", read: "bad_request", change: "bad_request", walk: "bad_request"},
	{name: "empty", path: "", read: "bad_request", change: "bad_request", walk: "-"},
	{name: "NUL", path: "$ROOT/f\x00.png", read: "bad_request", change: "bad_request", walk: "bad_request"},
	{name: "file as a directory", layout: "f = a", path: "$ROOT/f/g", read: "not_found", change: "not_found", walk: "not_found"},
	{name: "slash after a file", layout: "f = a", path: "$ROOT/f/", read: "not_found|bad_request", change: "not_found|bad_request", walk: "not_found|bad_request"},
	{name: "name too long", path: "$ROOT/" + strings.Repeat("x", 256), read: "bad_request", change: "bad_request", walk: "bad_request"},
	{name: "glob characters are literal", layout: "[a]{b}*? = a", path: "$ROOT/[a]{b}*?", read: "ok", change: "ok", walk: "ok"},
	{name: "newline and escape in a name", layout: "\"x\" = a", path: "$ROOT/a\n\x1b[31mb", read: "not_found", change: "ok", walk: "not_found"},
}

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
				toolstest.Layout(t, root, c.layout)
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

// Under rules with wildcards a directory that holds nothing allowed answers as if it were not there, whatever is asked of it, and
// its neighbour that does can be searched.
func TestNoExistenceOracleOnTheWay(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) {
		fs.AllowPaths = []string{fs.WorkspaceRoot + "/**/*.go", fs.WorkspaceRoot + "/.gitignore"}
		fs.DenyPaths = []string{fs.WorkspaceRoot + "/shut/**"}
	}, tools.Options{})
	toolstest.Layout(t, root, strings.Join([]string{
		"pkg/a.go = needle", "pkg/notes.txt = needle", "pkg/deep/b.go = needle", "main.go = needle", "TODO = needle",
		"hr/salaries.txt = needle", "hr/deep/more.txt = needle", "empty/", "vcs/.git/x.go = needle", "shut/c.go = needle", "out/o.txt = o",
		"afile = needle",
		".gitignore = " + strings.Join([]string{"hr/", "missing/", "empty/"}, "\n"),
	}, "\n"))
	// The calls, with NAME for the directory. No allowed name in NAME is asked for: that would ask whether NAME is there.
	calls := []struct{ tool, args string }{
		{"Glob", `{"pattern":"**","path":"$ROOT/NAME"}`},
		{"Glob", `{"pattern":"**/*.txt","path":"$ROOT/NAME"}`},
		{"Glob", `{"pattern":"NAME/**"}`},
		{"Glob", `{"pattern":"NAME/*"}`},
		{"Glob", `{"pattern":"NAME"}`},
		{"Glob", `{"pattern":"NAME/deep/**"}`},
		{"Glob", `{"pattern":"$ROOT/NAME/*.txt"}`},
		{"Glob", `{"pattern":"**","path":"$ROOT/NAME/deep"}`},
		{"Grep", `{"pattern":"needle","path":"$ROOT/NAME"}`},
		{"Grep", `{"pattern":"needle","glob":"NAME/**"}`},
		{"Grep", `{"pattern":"needle","glob":"!NAME"}`},
		{"Grep", `{"pattern":"needle","path":"$ROOT/NAME/salaries.txt"}`},
		{"Read", `{"file_path":"$ROOT/NAME"}`},
		{"Read", `{"file_path":"$ROOT/NAME/salaries.txt"}`},
		{"Read", `{"file_path":"$ROOT/NAME/../main.go"}`},
		{"Write", `{"file_path":"$ROOT/NAME","content":"x","dry_run":true}`},
		{"Write", `{"file_path":"$ROOT/NAME/x.txt","content":"x","dry_run":true}`},
		{"Edit", `{"file_path":"$ROOT/NAME/salaries.txt","old_string":"a","new_string":"b"}`},
	}
	ask := func(tool, args, name string) string {
		t.Helper()
		var in map[string]any
		must(t, json.Unmarshal([]byte(strings.ReplaceAll(strings.ReplaceAll(args, "$ROOT", root), "NAME", name)), &in))
		return strings.ReplaceAll(mustEncode(t, call(t, s, tool, in)), name, "NAME")
	}
	for _, c := range calls {
		want := ask(c.tool, c.args, "missing")
		for _, name := range []string{"hr", "empty", "vcs", "shut", "afile"} {
			if got := ask(c.tool, c.args, name); got != want {
				t.Errorf("%s %s for %s answers\n%s, for a missing one\n%s", c.tool, c.args, name, got, want)
			}
		}
	}
	// Read of an allowed name in them: the same, and no name beside it.
	for _, name := range []string{"hr", "empty"} {
		if got, want := ask("Read", `{"file_path":"$ROOT/NAME/x.go"}`, name), ask("Read", `{"file_path":"$ROOT/NAME/x.go"}`, "missing"); got != want {
			t.Errorf("Read %s/x.go answers\n%s, in a missing directory\n%s", name, got, want)
		}
	}

	for _, c := range []struct{ tool, args, want string }{
		{"Glob", `{"pattern":"**"}`, `"total":4,`}, // two in pkg, main.go, .gitignore
		{"Glob", `{"pattern":"**","path":"$ROOT/pkg"}`, `"total":2,`},
		{"Glob", `{"pattern":"*.md","path":"$ROOT/pkg"}`, `"total":0,"skipped":{"denied":{"count":2,`},
		{"Grep", `{"pattern":"needle","path":"$ROOT/pkg/deep"}`, `"files":["$ROOT/pkg/deep/b.go"]`},
		{"Read", `{"file_path":"$ROOT/pkg/aa.go"}`, `Did you mean $ROOT/pkg/a.go?`},
		{"Read", `{"file_path":"$ROOT/pkg"}`, `"kind":"path_denied"`},
		{"Read", `{"file_path":"$ROOT"}`, `"entries":[".gitignore","main.go"]`},
	} {
		got := ask(c.tool, c.args, "NAME")
		if got = strings.ReplaceAll(got, root, "$ROOT"); !strings.Contains(got, c.want) || strings.Contains(got, "notes") || strings.Contains(got, "hr") {
			t.Errorf("%s %s answers %s, without %s", c.tool, c.args, got, c.want)
		}
	}
}

// With an allow list narrower than the root nothing but what is allowed is ever named, read or matched, by whatever road.
func TestNarrowAllowList(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) {
		fs.AllowPaths = []string{fs.WorkspaceRoot + "/src/**", fs.WorkspaceRoot + "/*.md", fs.WorkspaceRoot + "/ways/**/in/*.go", fs.WorkspaceRoot + "/later/**"}
	}, tools.Options{})
	toolstest.Layout(t, root, strings.Join([]string{
		"src/main.go = SECRETLESS", "src/deep/er/x.txt = SECRETLESS", "a.md = SECRETLESS", "ways/a/b/in/y.go = SECRETLESS", "ways/in/z.go = SECRETLESS", "elsewhere/e.go = SECRETLESS",
		"other/o.go = SECRET", "SRC2/s.go = SECRET", "b.MD = SECRET", "ways/a/b/out/y.go = SECRET", "ways/a/b/in/deep/y.go = SECRET", ".env = SECRET",
		"src/out => ../other", "dir.md/inside.txt = SECRET", "ways/link => ../other", "later => elsewhere", // the rule was made for the name, before it was a link
	}, "\n"))
	allowed := []string{"src/main.go", "src/deep/er/x.txt", "a.md", "ways/a/b/in/y.go", "ways/in/z.go"}
	for _, c := range []struct {
		path string
		want []string
	}{
		{root, allowed},
		{root + "/src", allowed[:2]},
		{root + "/ways", allowed[3:]},
		{root + "/ways/a", allowed[3:4]},
		{root + "/ways/a/b/in", allowed[3:4]},
		{filepath.Dir(root), allowed},
	} {
		if c.path == filepath.Dir(root) && *sandboxed == "bwrap" {
			continue // the root is a mount there, which no walk from above goes into
		}
		for _, p := range []tools.Payload{
			call(t, s, "Glob", map[string]any{"pattern": "**", "path": c.path}),
			call(t, s, "Grep", map[string]any{"pattern": "SECRET", "path": c.path}),
			call(t, s, "Grep", map[string]any{"pattern": "SECRET", "path": c.path, "output_mode": "content", "-C": 3}),
		} {
			got := mustEncode(t, p)
			for _, name := range allowed {
				if want := strings.Contains(strings.Join(c.want, " "), name); strings.Contains(got, root+"/"+name) != want {
					t.Errorf("%s: %s is named: %v in %s", c.path, name, !want, got)
				}
			}
			for _, no := range []string{"other", "SRC2", "b.MD", "/out", ".env", "inside", "in/deep", "elsewhere", `SECRET"`} {
				if strings.Contains(got, no) {
					t.Errorf("%s: %q in %s", c.path, no, got)
				}
			}
		}
	}
	for _, dir := range []string{"/other", "/SRC", "/Src", "/src2", "/ways/a/b/out", "/ways/a/b/in/deep", "/src/out", "/ways/link", "/dir.md/x", "/elsewhere", "/later"} {
		for _, tool := range []string{"Glob", "Grep"} {
			if p := call(t, s, tool, map[string]any{"pattern": "**", "path": root + dir}); p.Kind() != tools.KindPathDenied && !(tool == "Grep" && p.Kind() == tools.KindBadRequest) {
				t.Errorf("%s %s answers %s", tool, dir, mustEncode(t, p))
			}
		}
	}
}

// TestClassIsToldOfTheSpelling: the class is told of the name that was asked for, and of no name that
// a link leads to. A name that a rule closes, too, answers like any other that a rule closes. The
// answer is the same whether or not something is there.
func TestClassIsToldOfTheSpelling(t *testing.T) {
	t.Parallel()
	s, root := suite(t, func(fs *config.FS) {
		fs.DenyPaths, fs.Unprotected = []string{"**/closed/**"}, []string{"**/open/**"}
	}, tools.Options{})
	for _, name := range []string{"there/.env", "closed/.env", "closed/x", "open/.env"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(root, name), []byte("TOKEN\n"), 0o600))
	}
	must(t, os.MkdirAll(filepath.Join(root, "none"), 0o700))
	must(t, os.Symlink("there/.env", filepath.Join(root, "link")))
	must(t, os.Symlink("none/.env", filepath.Join(root, "dangling")))
	answers := map[string]string{}
	for _, name := range []string{"there/.env", "none/.env", "there/.ENV", "closed/.env", "closed/x", "closed/none", "link", "dangling", "open/.env"} {
		p := call(t, s, "Read", map[string]any{"file_path": root + "/" + name})
		answers[name] = strings.ReplaceAll(p.Text(), root+"/"+name, "PATH")
	}
	for name, want := range map[string]string{"none/.env": "there/.env", "there/.ENV": "there/.env", "closed/none": "closed/x", "closed/.env": "closed/x",
		"link": "closed/x", "dangling": "closed/x"} {
		if answers[name] != answers[want] {
			t.Errorf("%s answers\n%s\nand %s\n%s", name, answers[name], want, answers[want])
		}
	}
	if !strings.Contains(answers["there/.env"], "class secret") || strings.Contains(answers["closed/x"], "class") || !strings.Contains(answers["open/.env"], "TOKEN") {
		t.Errorf("%v", answers)
	}
}

// TestWhatIsNotSeenIsTold: hidden characters of a file with their lines, a name that reads as another,
// and on the card both, and that a file runs code.
func TestWhatIsNotSeenIsTold(t *testing.T) {
	t.Parallel()
	var warned []string
	s, root := suite(t, func(fs *config.FS) { fs.RequireApproval = true }, tools.Options{
		Approver: asker(func(q tools.Question) tools.Answer {
			warned = q.Warnings
			return tools.Answer{Decision: tools.Approved}
		})})
	must(t, os.WriteFile(root+"/a", []byte("plain\na\u200bb\u200b\nplain\n\u202eend\n"), 0o600))
	if p := call(t, s, "Read", map[string]any{"file_path": root + "/a"}); !strings.Contains(p.Text(), "[3 invisible characters hidden in this text, in lines 2, 4]") {
		t.Error(p.Text())
	}
	for _, c := range []struct{ name, content, card, answer string }{
		{"plain.py", "x\n", "", ""},
		{"\u0430pp.py", "x\n", "letters that look like others", "letters that look like others"},
		{"b.py", "x\u202e\n", "cannot be seen", ""},
		{"c.py", "p\u0430y()\n", "two scripts", ""},
		{"Makefile", "all:\n", "runs code when it is used", ""},
		{".envrc", "x\n", "class exec", ""},
	} {
		warned = nil
		p := call(t, s, "Write", map[string]any{"file_path": root + "/" + c.name, "content": c.content})
		card := strings.Join(warned, "\n")
		if !strings.Contains(card, c.card) || c.card == "" && card != "" {
			t.Errorf("the card of %s warns %q", c.name, card)
		}
		if got := mustEncode(t, p); !strings.Contains(got, `"kind":"write"`) || !strings.Contains(got, c.answer) || c.answer == "" && strings.Contains(got, "warning") {
			t.Errorf("%s answers %s", c.name, got)
		}
	}
}

const temporaryName = ".moltis-0123456789abcdef"

// TestLitterOfKilledProcesses: a temporary file that a killed process left is removed by the next start, which finds it in that
// process's record, and no search shows it before. A file that may be somebody's content is shown and
// stays.
func TestLitterOfKilledProcesses(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	data := filepath.Join(filepath.Dir(root), "data")
	write(t, filepath.Join(root, "a.txt"), "needle\n")
	tag := "0123456789abcdef"
	litter, kept := temporaryName+"-0.tmp", temporaryName+"01234567.kept"
	for _, name := range []string{litter, kept} {
		write(t, filepath.Join(root, name), "needle\n")
	}
	write(t, filepath.Join(data, "temporaries", tag), `"`+root+`/a.txt" `+litter+"\n")
	for tool, args := range searches {
		answer := mustEncode(t, call(t, s, tool, args))
		if strings.Contains(answer, litter) || strings.Contains(answer, "denied") || !strings.Contains(answer, "a.txt") || !strings.Contains(answer, kept) {
			t.Errorf("%s: %s", tool, answer)
		}
	}
	must(t, s.Close())
	cfg := config.Default()
	cfg.Tools.FS.WorkspaceRoot, cfg.Tools.FS.AllowPaths = root, []string{root + "/**"}
	s, err := tools.Open(cfg, tools.Options{DataDir: data})
	must(t, err)
	defer s.Close()
	if _, err := os.Lstat(filepath.Join(root, litter)); err == nil {
		t.Error("the next start did not remove it")
	}
	if _, err := os.Lstat(filepath.Join(root, kept)); err != nil {
		t.Error(err)
	}
}

var searches = map[string]map[string]any{
	"Glob": {"pattern": "**"}, "Grep": {"pattern": "needle", "output_mode": "files_with_matches"},
}

// A file of the user's own with a name like our temporary ones is refused to every tool, also as
// the target of a restore, and counted by a search. It is there at any age, whatever is changed
// beside it and however often somebody starts.
func TestOurNamesHideNothing(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) { fs.CheckpointBeforeMutation = true }, tools.Options{})
	for _, name := range []string{temporaryName + "-0.tmp", temporaryName + "-1.old", temporaryName + "-12.new", strings.ToUpper(temporaryName) + "-3.TMP"} {
		path := filepath.Join(root, name)
		refuses := func(when string) {
			t.Helper()
			for _, at := range []string{path, path + "/f"} {
				for _, tool := range pathTools {
					if p := call(t, s, tool.Name, tool.Args(at, false)); p.Kind() != tools.KindPathDenied {
						t.Errorf("%s, %s: %s", when, tool.Name, mustEncode(t, p))
					}
				}
			}
		}
		refuses("nothing there")
		write(t, path, "needle\n")
		old := time.Now().Add(-10000 * time.Hour)
		must(t, os.Chtimes(path, old, old))
		refuses("a file there")
		for tool, args := range searches {
			if answer := mustEncode(t, call(t, s, tool, args)); strings.Contains(answer, name) || !strings.Contains(answer, `"denied":{"count":1`) {
				t.Errorf("%s does not count it: %s", tool, answer)
			}
		}
		does(t, s, "Write", map[string]any{"file_path": root + "/beside", "content": name})
		has(t, path, "needle\n")
		must(t, os.Remove(path))
	}
}

// TestSuggestionsKeepTheRules: a denied path answers as a missing one, and nothing that is denied is
// offered, by whatever reading.
func TestSuggestionsKeepTheRules(t *testing.T) {
	t.Parallel()
	s, root := suite(t, func(fs *config.FS) { fs.DenyPaths = []string{fs.WorkspaceRoot + "/secret/**", "/**/*.key"} }, tools.Options{})
	write(t, root+"/secret/plan.txt", "needle\n")
	write(t, root+"/open/id.key", "needle\n")
	write(t, root+"/open/a.txt", "b\n")
	asked := []string{"plan.txt", "$/plan.txt", "$/Secret/plan.txt", `"$/secret/plan.txt"`, "/workspace/secret/plan.txt", "$/open/Id.key", "$/open/id.ky",
		"secret/plan.txt:12", "$/secrt/plan.txt", "$/open/../secret/*", "$/secret*/plan.txt", "id.key", "/home/user/open/id.key", "$/*/id.key"}
	answers := func() (out []string) {
		for _, p := range asked {
			for _, c := range []struct{ tool, key, with string }{{"Read", "file_path", ""}, {"Grep", "path", "pattern"}, {"Glob", "path", "pattern"}, {"Edit", "file_path", "old_string"}} {
				args := map[string]any{c.key: strings.ReplaceAll(p, "$", root)}
				if c.tool == "Edit" {
					args["new_string"] = "x"
				}
				if c.with != "" {
					args[c.with] = "needle"
				}
				raw, err := tools.Encode(call(t, s, c.tool, args))
				must(t, err)
				out = append(out, c.tool+" "+string(raw))
			}
		}
		return out
	}
	with := answers()
	for _, dir := range []string{"/secret", "/open/id.key"} {
		must(t, os.RemoveAll(root+dir))
	}
	for i, without := range answers() {
		if with[i] != without {
			t.Errorf("what is denied shows:\n%s\n%s", with[i], without)
		}
	}
}
