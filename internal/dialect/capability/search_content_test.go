package capability

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/grep"
	matching "moltisfs/grep/match"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
)

// found is an answer of search_content, short: "name:line", in order.
func found(answer map[string]any, root string) (out []string) {
	results, _ := answer["results"].([]any)
	for _, r := range results {
		r := r.(map[string]any)
		name := strings.TrimPrefix(r["path"].(string), root+"/")
		out = append(out, fmt.Sprintf("%s:%v", name, r["line"]))
	}
	return out
}

func TestSearchContent(t *testing.T) {
	t.Parallel()
	r := open(t, func(c *config.Config, _ *engine.Host) {
		c.Tools.FS.DenyPaths = []string{"**/secret*"}
	})
	r.write(t, "src/server.go", "package src\n\n// Server serves.\ntype Server struct {\n\ta int\n}\n")
	r.write(t, "src/use.go", "package src\n\nfunc f() {\n\tvar s Server\n\t_ = s\n}\n")
	r.write(t, "src/use_test.go", "package src\n\ntype Server struct { test int }\n")
	r.write(t, "src/secret.go", "type Server struct { hidden int }\n")
	r.write(t, ".cache/x.go", "type Server struct { cached int }\n")
	r.write(t, "server.png", "\x00\x01")
	r.write(t, "words.txt", "the dial has a long timeout\nall good (really)\n")
	r.write(t, "wide.txt", strings.Repeat("x", 3000)+" Needle"+strings.Repeat("y", 3000)+"\n")
	for args, want := range map[string]string{
		`"pattern":"Server"`:                                               "src/server.go:4 src/use_test.go:3 server.png:0 src/use.go:4",
		`"pattern":"server","case_sensitive":true`:                         "server.png:0 src/server.go:0",
		`"pattern":"Server","context":0`:                                   "src/server.go:4 src/use_test.go:3 src/server.go:3 server.png:0 src/use.go:4",
		`"pattern":"src.Server"`:                                           "src/server.go:4 src/use_test.go:3",
		`"pattern":"Server","include_glob":"*_test.go"`:                    "src/use_test.go:3",
		`"pattern":"Server","include_hidden":true,"include_glob":".cache"`: "",
		`"pattern":"cached","include_hidden":true`:                         ".cache/x.go:1",
		`"pattern":"cached"`:                                               "",
		`"pattern":"timeout dial"`:                                         "words.txt:1",
		`"pattern":"good (re"`:                                             "words.txt:2",
		`"pattern":"^type \\w+ struct","regex":true,"max_results":1`:       "src/server.go:4",
		`"pattern":"needle"`:                                               "wide.txt:1",
		`"pattern":"^","regex":true,"include_glob":"words.txt"`:            "words.txt:1",
		`"pattern":"hidden"`:                                               "",
	} {
		a := r.call(t, "filesystem.search_content", `{"path":"R",`+args+`}`)
		if got := strings.Join(found(a, r.root), " "); got != want {
			t.Errorf("%s: %s, want %s\n%s", args, got, want, mustJSON(a))
		}
	}
	a := r.call(t, "filesystem.search_content", `{"path":"R","pattern":"Server","max_results":1}`)
	first := a["results"].([]any)[0].(map[string]any)
	if fmt.Sprint(first["before"], first["after"], first["more_lines"], first["column"]) !=
		"[ // Server serves.] [\ta int }] [3] 6" {
		t.Errorf("%v", first)
	}
	if fmt.Sprint(a["total_matches"], a["files_matched"], a["truncated"]) != "4 4 true" {
		t.Errorf("%s", mustJSON(a))
	}
	a = r.call(t, "filesystem.search_content", `{"path":"R","pattern":"needle"}`)
	if a["results"].([]any)[0].(map[string]any)["column"] != 3002.0 {
		t.Errorf("%s", mustJSON(a))
	}
}

func TestSearchContentRefuses(t *testing.T) {
	t.Parallel()
	r := open(t, nil)
	r.write(t, "f", "x")
	for args, want := range map[string]string{
		`"path":"R/none","pattern":"x"`:                             "DirectoryNotFound",
		`"path":"/etc","pattern":"x"`:                               "PathOutOfScope",
		`"path":"R","pattern":"(","regex":true`:                     "InvalidPattern",
		`"path":"R","pattern":"a\nb"`:                               "InvalidPattern",
		`"path":"R","pattern":"x","include_glob":"a{"`:              "InvalidPattern",
		`"path":"R","pattern":""`:                                   "InvalidArgument",
		`"path":"R","pattern":"x","context":21`:                     "InvalidArgument",
		`"path":"relative","pattern":"x"`:                           "InvalidArgument",
		`"path":"R","pattern":"x","max_results":"many"`:             "InvalidArgument",
		`"path":"R","pattern":"x","query":"y"`:                      "InvalidArgument",
		`"path":"R/f/g","pattern":"x"`:                              "",
		`"path":"R","pattern":"x","include_glob":"../**"`:           "InvalidPattern",
		`"path":"R","pattern":"\\p{No such}","regex":true`:          "InvalidPattern",
		`"path":"R","pattern":"` + strings.Repeat("x", 1<<20) + `"`: "InvalidPattern",
	} {
		a := r.call(t, "filesystem.search_content", `{`+args+`}`)
		if want != "" && a["type"] != want || a["type"] == nil {
			t.Errorf("%.80s: %.300s", args, mustJSON(a))
		}
		if want == "InvalidPattern" && !strings.Contains(string(mustJSON(a)), `"action":"simplify"`) {
			t.Errorf("%.80s: no simplify in %.300s", args, mustJSON(a))
		}
	}
	if a := r.call(t, "filesystem.search_content", `{"path":"R/f","pattern":"x"}`); a["total_matches"] != 1.0 {
		t.Errorf("a file: %s", mustJSON(a))
	}
}

var wholeTree = flag.Bool("tree", false, "search the whole Go source tree, and measure it")

// goSource is Go's own source tree.
func goSource(t testing.TB) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	src, serr := filepath.EvalSymlinks(strings.TrimSpace(string(root)) + "/src")
	if err != nil || serr != nil {
		t.Skip("SKIPPED: there is no source tree of Go here")
	}
	return src
}

// Some questions of Go's own source, as an agent asks them. TestWhereInGo asks more of them.
func TestSearchContentOfGo(t *testing.T) {
	src := goSource(t)
	root := src + "/net/http"
	if *wholeTree {
		root = src
	}
	r := open(t, func(c *config.Config, _ *engine.Host) {
		c.Tools.FS.AllowPaths, c.Tools.FS.WorkspaceRoot = []string{src + "/**"}, src
	})
	for query, want := range map[string]string{
		"http.Server": "server.go", "Hijacker": "server.go", "CookieJar": "jar.go",
		"ErrServerClosed": "server.go", "HandlerFunc": "server.go",
	} {
		args := fmt.Sprintf(`{"path":%q,"pattern":%q}`, root, query)
		start := time.Now()
		a := r.call(t, "filesystem.search_content", args)
		t.Logf("%s: %v", query, time.Since(start).Round(time.Millisecond))
		if got := found(a, src+"/net/http"); len(got) == 0 || !strings.HasPrefix(got[0], want+":") {
			t.Errorf("%s: %.300s", query, mustJSON(a))
		}
	}
}

// What ranking costs beside a plain search for the same lines, as Grep of tools has it.
func BenchmarkSearchContent(b *testing.B) {
	src := goSource(b)
	cfg := config.Default()
	cfg.Tools.FS.AllowPaths = []string{src + "/**"}
	e, err := engine.Open(cfg, engine.Host{DataDir: filepath.Join(b.TempDir(), "data")})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close() //nolint:errcheck // nothing is read of it any more
	d, err := Over(e, cfg.Tools.Capability)
	if err != nil {
		b.Fatal(err)
	}
	for _, pattern := range []string{"ListenAndServe", "http.Server", "Builder", "err"} {
		b.Run(pattern+"/ranked", func(b *testing.B) {
			args := json.RawMessage(fmt.Sprintf(`{"path":%q,"pattern":%q}`, src, pattern))
			for b.Loop() {
				a, err := d.Call(b.Context(), dialect.Call{Tool: "filesystem.search_content", Args: args})
				if err != nil || a.Refused() {
					b.Fatal(err)
				}
			}
		})
		b.Run(pattern+"/plain", func(b *testing.B) {
			m, err := matching.Compile(pattern, matching.Options{IgnoreCase: true, Literal: true, CRLF: true})
			if err != nil {
				b.Fatal(err)
			}
			q := grep.Query{Matcher: m, Mode: grep.Content, Before: 2, After: 2, Limit: 250}
			c := &engine.Call{}
			for b.Loop() {
				if err := e.Do(b.Context(), c, engine.Operation{Run: func(ctx context.Context) error {
					_, err := e.Search(ctx, c, src, q)
					return err
				}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A binary file that matches is named, beside what was found elsewhere; one whose first NUL comes after 8,000 bytes is text.
func TestSearchContentOfBinaries(t *testing.T) {
	r := open(t, nil)
	r.write(t, "note.md", "# Title\nneedle \x00 two\n")
	r.write(t, "other.txt", "a needle\n")
	r.write(t, "late.log", strings.Repeat("nothing\n", 2000)+"needle\n\x00")
	for _, more := range []string{"", `,"regex":true`, `,"files_only":true`, `,"total_only":true`} {
		got := r.call(t, "filesystem.search_content", `{"path":"R","pattern":"needle"`+more+`}`)
		if list, _ := got["binary_matches"].([]any); got["files_matched"] != 2.0 || len(list) != 1 || list[0] != filepath.Join(r.root, "note.md") {
			t.Errorf("%s: %v", more, got)
		}
	}
}
