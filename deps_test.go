package moltisfs

import (
	"errors"
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

// floors are the rooms of the house, the highest floor first. Imports go down. A room holds the packages below its directory, and they
// may import one another; "internal/dialect/*" makes a room of each directory below. Rooms on one floor do not know one another: no
// dialect another one or tools, and neither checkpoint nor readers the agent's tree, which guardfs opens. A package in no room knows one
// thing: it stands on the lowest floor, and imports only others there.
var floors = []string{
	"cmd/moltis-fs scripts/*",
	"internal/toolstest internal/serve/*",
	"tools internal/dialect/*",
	"internal/serve/mcp",
	"internal/refusal",
	"internal/engine internal/sandbox internal/doctor internal/policy/rego",
	"internal/policy grep internal/datadir internal/alternatives",
	"internal/guardfs checkpoint readers config internal/edit",
	"internal/guardfs/flock", // and every package in no room
}

// reserved are imports that only some packages may have, each with those packages. Third-party modules have theirs in docs/internals/dependencies.md.
var reserved = []struct{ imports, by string }{
	{"C plugin expvar io/ioutil", ""}, // no cgo, and nothing that is loaded later
	{"net net/http net/netip", "checkpoint checkpoint/blob cmd/moltis-fs internal/issuer internal/serve internal/serve/jsonrpc internal/serve/approvals internal/serve/console internal/serve/mcp internal/policy/rego internal/fleetbox internal/testbox internal/toolstest"},
	{"net/mail net/textproto", "readers/office"}, // they parse
	{"os/exec", "cmd/moltis-fs internal/hook internal/child internal/run internal/sandbox internal/sandbox/place internal/serve/acp internal/fleetbox internal/testbox internal/testdir readers/image scripts/pack scripts/peerbench scripts/searchbench scripts/systems"},
	{"os/signal", "cmd/moltis-fs"},
	{"database/sql database/sql/driver", "checkpoint readers/sqlite internal/fleet internal/fleetbox"},
	{"unsafe", "grep/ignore grep/match internal/js internal/run readers readers/image"},
	{"flag log testing", "checkpoint/checkpointtest internal/fleetbox internal/state/statetest internal/testbox internal/testdir internal/toolstest scripts/pack scripts/peerbench scripts/searchbench"},
	{"moltisfs/internal/policy/rego", "cmd/moltis-fs"},                                                                                                                                                                          // whoever embeds a public package carries no evaluator of policies
	{"moltisfs/internal/fleetbox moltisfs/internal/state/statetest moltisfs/internal/testbox moltisfs/internal/testdir moltisfs/internal/races moltisfs/internal/ergonomics moltisfs/internal/toolstest", "internal/toolstest"}, // tests only
}

// fileAccess lists who may open, list, change or look at files by name, and whose files those are. A key is a package or one
// file of it. Everybody else works on handles of guardfs, or on what is handed in.
var fileAccess = map[string]string{
	"internal/guardfs":     "the agent's tree; nobody else touches it",
	"internal/state":       "the small files that processes share",
	"checkpoint":           "its own store",
	"checkpoint/blob":      "the files of large contents",
	"checkpoint/localdir":  "the directory of the store",
	"checkpoint/moltis":    "the folder of Moltis that it reads",
	"internal/audit":       "its own log",
	"internal/session":     "its own records",
	"internal/texts":       "the texts that it keeps",
	"internal/policy/rego": "the policies that the operator names",
	"internal/serve":       "the socket that it listens on, and the lock beside it",
	"internal/datadir":     "the data directory itself",
	"internal/run":         "the runs, and the root by its names when it lays one out and compares: no contents",
	"internal/doctor":      "modes of the operator's files, and the flags of a root",
	"readers/wasm":         "its own compiled code",
	"cmd/moltis-fs":        "the configuration, and the terminal",
	"scripts/pack":         "the file of a module that it compresses",
	"scripts/peerbench":    "the files that the servers work on",
	"internal/fleetbox":    "the servers of tests",
	"internal/testbox":     "the keys of a server of tests",
	"internal/testdir":     "temporary directories of tests",
	"internal/toolstest":   "trees for tests",
}

// environment lists who may look at variables, the working directory or the home. Below cmd nobody does: what a package depends on
// comes in as an argument.
var environment = map[string]string{
	"cmd/moltis-fs":       "this is where it is read",
	"checkpoint":          "Open takes a relative path",
	"internal/fleetbox":   "the keys of a store of tests, which it sets",
	"internal/testdir":    "TMPDIR, which it sets for tests",
	"scripts/peerbench":   "its arguments",
	"scripts/searchbench": "its arguments",
	"scripts/systems":     "what the go command is started with",
}

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
	path string // slashes, below the root
	test bool
	file *ast.File
}

func (s *source) pkg() string { return path.Dir(s.path) }

// names gives the import paths of a file by the names that they have in it.
func (s *source) names() map[string]string {
	out := map[string]string{}
	for _, spec := range s.file.Imports {
		imp, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(imp)
		if spec.Name != nil && spec.Name.Name != "_" {
			name = spec.Name.Name
		}
		if out[name] != "" { // of several "v3", who calls gives all but one another name
			name = imp
		}
		out[name] = imp
	}
	return out
}

func (s *source) imports() []string { return slices.Sorted(maps.Values(s.names())) }

// sources parses every Go file of this module, for every system.
func sources(t *testing.T) []*source {
	t.Helper()
	var out []*source
	for _, p := range files(t, []string{".go"}, "testdata", ".ci") {
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, &source{p, strings.HasSuffix(p, "_test.go"), f})
	}
	return out
}

// program is the sources without tests.
func program(t *testing.T) []*source {
	return slices.DeleteFunc(sources(t), func(s *source) bool { return s.test })
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

// roomOf gives the room that a package is in and its floor, counted from the top. A package in no room is a room of its own, on the
// lowest floor.
func roomOf(pkg string) (room string, floor int) {
	room, floor = pkg, len(floors)-1
	longest := 0
	for i, rooms := range floors {
		for name := range strings.FieldsSeq(rooms) {
			dir, each := strings.CutSuffix(name, "*")
			if !each {
				dir += "/"
			}
			if !strings.HasPrefix(pkg+"/", dir) || len(dir) <= longest || each && pkg+"/" == dir {
				continue
			}
			room, floor, longest = strings.TrimSuffix(dir, "/"), i, len(dir)
			if each {
				first, _, _ := strings.Cut(pkg[len(dir):], "/")
				room = dir + first
			}
		}
	}
	return room, floor
}

func TestImportsGoDown(t *testing.T) {
	for _, s := range program(t) {
		room, floor := roomOf(s.pkg())
		for _, imp := range s.imports() {
			other, ours := strings.CutPrefix(imp, "moltisfs/")
			to, below := roomOf(other)
			if ours && to != room && below <= floor && below < len(floors)-1 {
				t.Errorf("%s: %s imports %s, which is not on a floor below; imports go down only", s.path, room, to)
			}
		}
	}
}

func TestReservedImports(t *testing.T) {
	for _, rule := range reserved {
		used := map[string]bool{}
		for _, s := range program(t) {
			for _, imp := range s.imports() {
				if slices.Contains(strings.Fields(rule.imports), imp) {
					used[s.pkg()] = true
					if !slices.Contains(strings.Fields(rule.by), s.pkg()) {
						t.Errorf("%s imports %s; only these may: %s", s.path, imp, rule.by)
					}
				}
			}
		}
		for pkg := range strings.FieldsSeq(rule.by) {
			if !used[pkg] {
				t.Errorf("%s may import %s and does not; take the permission away", pkg, rule.imports)
			}
		}
	}
}

// TestModules holds the table of docs/internals/dependencies.md against go.mod and the imports: each module that go.mod requires directly has a row
// with the packages that use it, a purpose and a reason.
func TestModules(t *testing.T) {
	text, err := os.ReadFile("docs/internals/dependencies.md")
	gomod, err2 := os.ReadFile("go.mod")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Modules\n")
	table, _, _ = strings.Cut(table, "\n## ")
	users := map[string][]string{} // as the table has them, by module
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		module := strings.Trim(cells[0], " `")
		if !strings.Contains(module, ".") {
			continue
		}
		if len(cells) != 4 || len(cells[2]) < 10 || len(cells[3]) < 10 {
			t.Fatalf("docs/internals/dependencies.md: a row has a module, its users, a purpose and a reason; this one has not: %s", line)
		}
		users[module] = strings.Fields(strings.Trim(cells[1], " `"))
	}
	required := map[string]bool{}
	for line := range strings.Lines(string(gomod)) {
		if w := strings.Fields(strings.TrimPrefix(line, "require ")); len(w) == 2 && strings.Contains(w[0], ".") {
			required[w[0]] = true
		}
	}
	if got, want := slices.Sorted(maps.Keys(users)), slices.Sorted(maps.Keys(required)); !slices.Equal(got, want) {
		t.Errorf("docs/internals/dependencies.md has rows for\n%v, and go.mod requires\n%v", got, want)
	}
	used := map[string]bool{}
	for _, s := range sources(t) {
		for _, imp := range s.imports() {
			module := imp // the longest that it begins with
			for module != "." && !required[module] {
				module = path.Dir(module)
			}
			if module == "." {
				continue
			}
			user := s.pkg()
			if s.test {
				user = "tests"
			}
			if used[module+" "+user] = true; !s.test && !slices.Contains(users[module], user) {
				t.Errorf("%s imports %s; docs/internals/dependencies.md says that only these do: %v", s.path, imp, users[module])
			}
		}
	}
	for module, list := range users {
		for _, pkg := range list {
			if !used[module+" "+pkg] {
				t.Errorf("docs/internals/dependencies.md: %s does not use %s", pkg, module)
			}
		}
	}
}

func TestOnlyGuardfsTouchesTheTree(t *testing.T) {
	onlyListed(t, fileAccess, touches, "works on files by name")
}

func TestOnlyCmdReadsTheEnvironment(t *testing.T) {
	onlyListed(t, environment, map[string]string{"os": environ, "syscall": environ, "path/filepath": "Abs"}, "depends on the process's surroundings")
}

// onlyListed demands that only the packages and files in list use the named functions, and that each of them does.
func onlyListed(t *testing.T, list, functions map[string]string, does string) {
	used := map[string]bool{}
	for _, s := range program(t) {
		key := s.pkg()
		if list[key] == "" {
			key = s.path
		}
		for name := range calls(s, functions) {
			if used[key] = true; list[key] == "" {
				t.Errorf("%s: %s %s; only these may: %v", s.path, name, does, slices.Sorted(maps.Keys(list)))
			}
		}
	}
	for key := range list {
		if !used[key] {
			t.Errorf("%s has a permission that it does not use; take it away", key)
		}
	}
}

// calls gives the uses in a file of the named functions: import path → names, separated by blanks.
func calls(s *source, functions map[string]string) map[string]bool {
	out := map[string]bool{}
	local := s.names()
	if functions[local["."]] != "" {
		out[local["."]+".*"] = true // nobody can tell what is used
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(strings.Fields(functions[local[x.Name]]), sel.Sel.Name) {
				out[x.Name+"."+sel.Sel.Name] = true
			}
		}
		return true
	})
	return out
}
