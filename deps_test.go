package moltisfs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A room is one package of the floor plan: where it stands, and everything of weight that it may import.
type room struct {
	floor   int
	pkg     string // import path below the module
	ours    string // packages of this module
	std     string // those of weighty
	modules string // other people's
}

// plan is the floor plan of ARCHITECTURE.md. It is a statement of policy: imports go down only, rooms of one floor are
// strangers, except that a package may use those below its own directory, and whatever has weight is written here before
// it is imported. A permission that nobody uses is taken away. The files for every system count, whichever one the test runs on.
var plan = []room{
	{0, "approval", "", "os", "golang.org/x/sys golang.org/x/text"},
	{0, "checkpoint/localdir", "", "os path/filepath syscall", "golang.org/x/sys"},
	{0, "grep/ignore", "", "path/filepath unsafe", ""},
	{0, "grep/match/frequency", "", "", ""},
	{0, "grep/match/syntax", "", "", ""},
	{0, "grep/tree", "", "", ""},
	{0, "internal/edit/diff", "", "", ""},
	{0, "internal/glob", "", "", ""},
	{0, "internal/guardfs", "internal/guardfs/flock", "os path/filepath syscall", "github.com/fsnotify/fsnotify golang.org/x/sys"},
	{0, "internal/guardfs/flock", "", "os", "golang.org/x/sys"},
	{0, "internal/nearest", "", "", ""},
	{0, "internal/ndjson", "", "", ""},
	{0, "internal/share", "", "", ""},
	{0, "internal/buffer", "", "", ""},
	{0, "internal/child", "", "os os/exec syscall", ""},
	{0, "internal/tty", "", "os", "golang.org/x/sys"},
	{0, "readers/image/fit", "", "", "golang.org/x/image"},
	{0, "readers/unreadable", "", "", ""},
	{0, "readers/wasm", "", "os path/filepath syscall", "github.com/tetratelabs/wazero"},
	{0, "internal/text", "", "", "github.com/wlynxg/chardet golang.org/x/text"},

	{1, "checkpoint", "checkpoint/blob checkpoint/catalog checkpoint/localdir internal/guardfs/flock", "database/sql os path/filepath syscall",
		"modernc.org/sqlite"},
	{1, "checkpoint/catalog", "", "database/sql os path/filepath", "modernc.org/sqlite"},
	{1, "checkpoint/blob", "checkpoint/localdir", "os path/filepath syscall", "filippo.io/age github.com/klauspost/compress"},
	{1, "config", "internal/glob internal/nearest", "path/filepath reflect", "filippo.io/age github.com/BurntSushi/toml"},
	{1, "dialect", "approval internal/nearest", "", ""},
	{1, "hook", "", "os/exec path/filepath syscall", ""},
	{1, "grep", "grep/filetype grep/ignore grep/rulefiles grep/match grep/tree" +
		" internal/guardfs internal/text", "path/filepath", "golang.org/x/text"},
	{1, "grep/filetype", "grep/ignore internal/nearest", "", ""},
	{1, "grep/rulefiles", "grep/ignore grep/tree", "", ""},
	{1, "grep/match", "grep/match/frequency grep/match/literal grep/match/syntax", "unsafe",
		"github.com/dlclark/regexp2 golang.org/x/sys"},
	{1, "grep/match/literal", "grep/match/frequency grep/match/syntax", "", ""},
	{1, "internal/args", "internal/glob internal/nearest", "reflect", ""},
	{1, "internal/audit", "internal/guardfs/flock", "os os/user path/filepath syscall", ""},
	{1, "internal/datadir", "checkpoint/localdir", "os path/filepath", ""},
	{1, "internal/edit", "internal/edit/diff internal/edit/guard internal/edit/letters internal/edit/mend internal/text", "", "golang.org/x/text"},
	{1, "internal/edit/mend", "internal/edit/diff", "", "github.com/rivo/uniseg"},
	{1, "internal/edit/letters", "internal/edit/diff", "", "golang.org/x/text"},
	{1, "internal/edit/guard", "internal/edit/diff", "", ""},
	{1, "internal/gitrepo", "", "os os/exec path/filepath", ""},
	{1, "internal/feed", "", "", ""},
	{1, "internal/js", "internal/child", "reflect runtime/debug unsafe",
		"modernc.org/libc modernc.org/libquickjs modernc.org/quickjs"},
	{1, "internal/ledger", "", "os path/filepath", ""},
	{1, "internal/token", "internal/guardfs/flock", "os path/filepath syscall", ""},
	{1, "internal/listen", "internal/guardfs/flock", "net net/netip os syscall", "golang.org/x/sys"},
	{0, "internal/protect", "", "", ""},
	{1, "internal/policy", "internal/glob internal/guardfs internal/protect", "syscall", "golang.org/x/text"},
	{1, "internal/rank", "", "", ""},
	{1, "internal/tally", "", "", ""},
	{1, "readers", "internal/share internal/text readers/image readers/notebook readers/office readers/pdf readers/sqlite readers/unreadable readers/wasm", "unsafe",
		"github.com/gabriel-vasile/mimetype github.com/klauspost/compress github.com/ulikunitz/xz golang.org/x/text"},
	{1, "readers/image", "internal/child readers/image/fit readers/unreadable readers/wasm", "os/exec unsafe",
		"github.com/gen2brain/avif github.com/gen2brain/heic github.com/tetratelabs/wazero golang.org/x/image"},
	{1, "readers/pdf", "internal/share readers/image/fit readers/unreadable readers/wasm", "", "github.com/klauspost/compress github.com/klippa-app/go-pdfium github.com/tetratelabs/wazero"},
	{1, "readers/sqlite", "internal/text readers/unreadable", "", ""},
	{1, "readers/notebook", "", "", ""},
	{1, "readers/office", "internal/text readers/unreadable", "net/mail net/textproto", "golang.org/x/net"},

	{2, "internal/readings", "internal/edit/letters internal/glob internal/nearest", "", "golang.org/x/text"},
	{2, "approval/queue", "approval internal/guardfs/flock internal/share", "os path/filepath", ""},
	{2, "checkpoint/moltis", "checkpoint", "os path/filepath", ""},
	{2, "internal/engine/replace", "grep grep/match internal/args internal/edit internal/tally", "", ""},
	{2, "internal/engine/rewind", "checkpoint internal/edit/diff", "", ""},
	{2, "internal/engine", "approval checkpoint config dialect grep grep/ignore grep/rulefiles grep/match hook internal/args internal/audit internal/datadir internal/edit internal/edit/diff internal/edit/guard internal/engine/replace internal/engine/rewind internal/glob internal/guardfs" +
		" internal/ledger internal/policy internal/protect internal/share internal/text internal/buffer readers", "path/filepath runtime/debug syscall", ""},

	{2, "internal/sandbox/place", "config", "os/exec", ""},
	{2, "internal/confine", "internal/guardfs internal/policy", "syscall unsafe", "github.com/landlock-lsm/go-landlock golang.org/x/sys"},
	{2, "internal/sandbox", "grep grep/match internal/guardfs internal/policy", "os os/exec syscall", "golang.org/x/sys"},
	{2, "internal/policy/rego", "internal/policy", "net net/http os path/filepath", "github.com/open-policy-agent/opa"},
	{2, "internal/doctor", "internal/guardfs internal/policy", "os path/filepath syscall", "golang.org/x/sys"},
	{2, "internal/metrics", "hook", "", ""},
	{2, "telemetry", "hook", "", "github.com/prometheus/client_golang go.opentelemetry.io/otel go.opentelemetry.io/otel/trace"},

	{3, "tools", "checkpoint config dialect grep grep/ignore grep/match hook approval internal/args internal/datadir internal/edit internal/edit/diff internal/edit/guard internal/engine internal/guardfs" +
		" internal/ledger internal/nearest internal/policy internal/readings internal/buffer readers readers/notebook", "path/filepath reflect", ""},

	{3, "internal/dialect/capability", "approval checkpoint config dialect grep grep/match hook internal/args internal/edit internal/engine internal/engine/replace internal/feed internal/glob internal/guardfs internal/nearest internal/policy internal/rank internal/tally internal/text",
		"os/user reflect", "go.yaml.in/yaml/v3"},
	{3, "internal/dialect/jettson", "config dialect internal/args internal/engine internal/guardfs internal/nearest internal/policy internal/text", "", ""},

	{3, "internal/dialect/jsfs", "config dialect internal/args internal/engine internal/guardfs internal/js internal/nearest internal/policy internal/share", "syscall", ""},

	{3, "internal/dialect/acp", "approval config dialect internal/args internal/engine internal/guardfs internal/ledger internal/text",
		"path/filepath", ""},

	{4, "internal/serve/acp", "approval dialect", "os os/exec syscall", ""},
	{4, "internal/serve/approvals", "approval approval/queue", "net/http", "github.com/coder/websocket"},
	{4, "internal/serve/jsonrpc", "approval dialect internal/args internal/listen internal/metrics internal/share internal/token",
		"net net/http net/netip runtime/debug", "golang.org/x/sync"},
	{4, "internal/serve/mcp", "approval dialect internal/ndjson", "path/filepath syscall", "github.com/modelcontextprotocol/go-sdk"},

	{5, "mcp", "dialect internal/serve/mcp", "", ""},
	{5, "cmd/moltis-fs", "approval approval/queue checkpoint checkpoint/moltis config dialect grep/ignore " +
		"internal/audit internal/confine internal/datadir " +
		"internal/dialect/acp internal/dialect/capability internal/serve/acp " +
		"internal/dialect/jettson internal/dialect/jsfs internal/doctor internal/policy internal/policy/rego " +
		"internal/edit internal/edit/diff internal/engine internal/gitrepo internal/glob internal/ndjson internal/nearest " +
		"internal/serve/mcp " +
		"internal/serve/approvals internal/serve/jsonrpc " +
		"internal/js internal/listen internal/sandbox internal/sandbox/place " +
		"internal/metrics " +
		"internal/token internal/tty " +
		"readers tools",
		"net net/http os os/exec os/signal os/user path/filepath runtime/debug syscall", "github.com/spf13/cobra github.com/spf13/pflag"},

	{outside, "internal/toolstest", "config tools", "flag net os path/filepath syscall testing", "github.com/rogpeppe/go-internal"},
	{outside, "internal/ergonomics", "", "", ""},
	{outside, "internal/races", "", "", ""},
	{outside, "internal/testbox", "", "net os os/exec path/filepath testing", ""},
	{outside, "internal/testdir", "", "flag os os/exec testing", ""},
	{outside, "grep/ignore/peers", "", "os path/filepath", "github.com/boyter/gocodewalker github.com/sabhiram/go-gitignore"},
	{outside, "scripts/pack", "", "log os os/exec path/filepath", "github.com/klauspost/compress"},
	{outside + 1, "scripts/searchbench", "grep grep/match internal/guardfs", "flag os os/exec path/filepath runtime/debug", ""},
}

// outside is for what is no part of the program: conformance suites and scripts. Nothing in the house imports them.
const outside = 9

// fileAccess lists who may open, list, change or look at files by name, and whose files those are. A key is a package or one
// file of it. Everybody else works on handles of guardfs, or on what is handed in.
var fileAccess = map[string]string{
	"internal/guardfs": "the agent's tree; nobody else touches it",

	"approval/queue":       "its own questions and answers",
	"checkpoint":           "its own store",
	"checkpoint/blob":      "the files of large contents",
	"checkpoint/catalog":   "the database that is being mended",
	"checkpoint/localdir":  "the directory of the store",
	"checkpoint/moltis":    "the folder of Moltis that it reads",
	"internal/audit":       "its own log",
	"internal/gitrepo":     "the repositories that it makes",
	"internal/ledger":      "its own records",
	"internal/listen":      "the socket that it listens on, and the lock beside it",
	"internal/policy/rego": "the policies that the operator names",
	"internal/token":       "the file of tokens",
	"internal/tty":         "the null device, to tell it from others",
	"internal/datadir":     "the data directory itself",
	"internal/confine":     "the trees that it opens to a program, which it looks at by name only",
	"internal/doctor":      "modes of the operator's files, and the flags of a root",
	"readers/wasm":         "its own compiled code",
	"cmd/moltis-fs":        "the configuration, and the terminal",

	"grep/ignore/peers":  "the trees of tests, with the packages that are compared",
	"scripts/pack":       "the file of a module that it compresses",
	"internal/testbox":   "the keys of a server of tests",
	"internal/testdir":   "temporary directories of tests",
	"internal/toolstest": "trees for tests",
}

// environment lists who may look at variables, the working directory or the home. Below cmd nobody does: what a package depends on
// comes in as an argument.
var environment = map[string]string{
	"cmd/moltis-fs":       "this is where it is read",
	"checkpoint":          "Open takes a relative path",
	"internal/testdir":    "TMPDIR, which it sets for tests",
	"scripts/searchbench": "its arguments",
}

// weighty are the standard packages that reach out of the process, step around the type system or change what the whole process
// shares. A name that ends in a slash stands for all below it, except weightless. The other standard packages need no permission.
var weighty = []string{
	"C", "database/sql", "expvar", "flag", "io/ioutil", "log", "net", "net/", "os", "os/", "path/filepath", "plugin", "reflect",
	"runtime/cgo", "runtime/debug", "syscall", "testing", "testing/", "unsafe",
}

var weightless = []string{"net/url"}

// touches are the functions that work on files by name, for each package that has some.
var touches = map[string]string{
	"os": "Chdir Chmod Chown Chtimes CopyFS Create CreateTemp DirFS Lchown Link Lstat Mkdir MkdirAll MkdirTemp Open OpenFile OpenInRoot" +
		" OpenRoot ReadDir ReadFile Readlink Remove RemoveAll Rename Stat Symlink Truncate WriteFile",
	"path/filepath":         "EvalSymlinks Glob Walk WalkDir",
	"io/ioutil":             "ReadDir ReadFile TempDir TempFile WriteFile",
	"syscall":               unixCalls,
	"golang.org/x/sys/unix": unixCalls,
	"golang.org/x/sys/windows": "CreateDirectory CreateFile CreateHardLink CreateSymbolicLink DeleteFile FindFirstFile GetFileAttributes MoveFile" +
		" MoveFileEx NtCreateFile Open RemoveDirectory SetFileAttributes",
}

const unixCalls = "Access Chdir Chmod Chown Creat Faccessat Fchmodat Fchownat Fstatat Getxattr Lchown Lgetxattr Link Linkat Listxattr Lsetxattr" +
	" Lstat Mkdir Mkdirat Mkfifo Mkfifoat Mknod Mknodat Mount Open OpenByHandleAt Openat Openat2 Readlink Readlinkat Removexattr Rename" +
	" Renameat Renameat2 RenameatxNp Rmdir Setxattr Stat Statx Symlink Symlinkat Truncate Unlink Unlinkat Unmount Utimes UtimesNanoAt"

// environ are the functions of os that look at the process's surroundings.
const environ = "Clearenv Environ ExpandEnv Getenv Getwd LookupEnv Setenv Unsetenv UserCacheDir UserConfigDir UserHomeDir"

// A source is one Go file of the house.
type source struct {
	path  string // slashes, below the root
	test  bool
	lines int
	file  *ast.File
	fset  *token.FileSet
}

func (s *source) pkg() string { return path.Dir(s.path) }

// sources parses every Go file of this module, for every system.
func sources(t *testing.T) []*source {
	t.Helper()
	var out []*source
	for _, p := range files(t, []string{".go"}, "testdata", ".ci") {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, &source{p, strings.HasSuffix(p, "_test.go"), strings.Count(string(text), "\n"), f, fset})
	}
	if len(out) < 100 {
		t.Fatalf("only %d Go files; is this the root of the module?", len(out))
	}
	return out
}

// files lists the files with one of the endings that belong to the house, with slashes: no build products, nothing below skip.
func files(t *testing.T, endings []string, skip ...string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && p != "." && (name == "dist" || name == "node_modules" || name == ".git" || slices.Contains(skip, name)) {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && name != ".git" && slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(name, e) }) {
			out = append(out, filepath.ToSlash(p))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFloorPlan(t *testing.T) {
	rooms := map[string]*room{}
	for i := range plan {
		rooms[plan[i].pkg] = &plan[i]
	}
	modules := slices.Collect(maps.Keys(directModules(t)))
	uses := map[string]map[string]bool{} // by package: its imports of weight, as the plan names them
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		r := rooms[s.pkg()]
		if r == nil {
			t.Errorf("%s: package %s has no row in the floor plan", s.path, s.pkg())
			continue
		}
		if uses[r.pkg] == nil {
			uses[r.pkg] = map[string]bool{}
		}
		for _, spec := range s.file.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			switch other, ours := strings.CutPrefix(imp, "moltisfs/"); {
			case ours:
				uses[r.pkg][other] = true
				if !slices.Contains(strings.Fields(r.ours), other) {
					t.Errorf("%s: %s is not in the plan of %s", s.path, other, r.pkg)
				}
				if to := rooms[other]; to != nil && to.floor >= r.floor && !strings.HasPrefix(other, r.pkg+"/") {
					t.Errorf("%s: %s is on floor %d, %s on floor %d: imports go down only", s.path, r.pkg, r.floor, other, to.floor)
				}
			case strings.Contains(strings.Split(imp, "/")[0], "."):
				module := moduleOf(imp, modules)
				uses[r.pkg][module] = true
				if !slices.Contains(strings.Fields(r.modules), module) {
					t.Errorf("%s: %s (%s) is not in the plan of %s", s.path, imp, module, r.pkg)
				}
			case hasWeight(imp):
				uses[r.pkg][imp] = true
				if !slices.Contains(strings.Fields(r.std), imp) {
					t.Errorf("%s: %s is not in the plan of %s", s.path, imp, r.pkg)
				}
			}
		}
	}
	for _, r := range plan {
		if uses[r.pkg] == nil {
			t.Errorf("the floor plan has a row for %s, which is not there", r.pkg)
			continue
		}
		for _, p := range strings.Fields(r.ours + " " + r.std + " " + r.modules) {
			if !uses[r.pkg][p] {
				t.Errorf("%s may import %s and does not; take the permission away", r.pkg, p)
			}
		}
	}
}

func TestOnlyGuardfsTouchesTheTree(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for name := range calls(s.file, touches) {
			if !permitted(fileAccess, s, used) {
				t.Errorf("%s: %s works on files by name; only these may: %v", s.path, name, slices.Sorted(maps.Keys(fileAccess)))
			}
		}
	}
	unused(t, fileAccess, used)
}

func TestOnlyCmdReadsTheEnvironment(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for name := range calls(s.file, map[string]string{"os": environ, "syscall": environ, "path/filepath": "Abs"}) {
			if !permitted(environment, s, used) {
				t.Errorf("%s: %s depends on the process's surroundings; take it as an argument", s.path, name)
			}
		}
	}
	unused(t, environment, used)
}

func hasWeight(imp string) bool {
	return !slices.Contains(weightless, imp) && slices.ContainsFunc(weighty, func(w string) bool {
		return imp == w || strings.HasSuffix(w, "/") && strings.HasPrefix(imp, w)
	})
}

// permitted reports whether list names the file or its package, and notes which.
func permitted(list map[string]string, s *source, used map[string]bool) bool {
	for _, key := range []string{s.path, s.pkg()} {
		if list[key] != "" {
			used[key] = true
			return true
		}
	}
	return false
}

func unused(t *testing.T, list map[string]string, used map[string]bool) {
	for key := range list {
		if !used[key] {
			t.Errorf("%s has a permission that it does not use; take it away", key)
		}
	}
}

// calls gives the uses in a file of the named functions: import path → names, separated by blanks.
func calls(f *ast.File, functions map[string]string) map[string]bool {
	local := map[string]string{} // name in this file → import path
	out := map[string]bool{}
	for _, spec := range f.Imports {
		imp, _ := strconv.Unquote(spec.Path.Value)
		if functions[imp] == "" {
			continue
		}
		switch name := path.Base(imp); {
		case spec.Name == nil:
			local[name] = imp
		case spec.Name.Name == ".":
			out[imp+".*"] = true // nobody can tell what is used
		default:
			local[spec.Name.Name] = imp
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(strings.Fields(functions[local[x.Name]]), sel.Sel.Name) {
			out[x.Name+"."+sel.Sel.Name] = true
		}
		return true
	})
	return out
}

// moduleOf is the longest module path that imp begins with, "" when none does.
func moduleOf(imp string, modules []string) string {
	best := ""
	for _, m := range modules {
		if (imp == m || strings.HasPrefix(imp, m+"/")) && len(m) > len(best) {
			best = m
		}
	}
	return best
}

// directModules are those that go.mod requires without "// indirect", with their versions.
func directModules(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if w := strings.Fields(strings.TrimPrefix(line, "require ")); len(w) == 2 && strings.Contains(w[0], ".") {
			out[w[0]] = w[1]
		}
	}
	if len(out) == 0 {
		t.Fatal("no requirements found in go.mod")
	}
	return out
}

// Who embeds a public package carries no evaluator of policies: it is large, and cmd alone hands it in.
func TestPoliciesAreTheProgramsAlone(t *testing.T) {
	const rego = "internal/policy/rego"
	of := map[string][]string{}
	for _, r := range plan {
		of[r.pkg] = strings.Fields(r.ours)
	}
	var reaches func(pkg string) bool
	reaches = func(pkg string) bool { return pkg == rego || slices.ContainsFunc(of[pkg], reaches) }
	for _, r := range plan {
		if r.pkg != rego && reaches(r.pkg) != (r.pkg == "cmd/moltis-fs") {
			t.Errorf("%s: it reaches %s %v", r.pkg, rego, reaches(r.pkg))
		}
		if r.pkg != rego && strings.Contains(r.modules, "open-policy-agent") {
			t.Errorf("%s may import OPA", r.pkg)
		}
	}
}
