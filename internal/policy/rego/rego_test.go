package rego

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/policy"
	"moltisfs/internal/testdir"
)

var must = testdir.Must

const head = "package mcp.filesystem\n"

// file writes a policy, and gives its URL.
func file(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "p.rego")
	must(t, os.WriteFile(name, []byte(text), 0o600))
	return "file://" + filepath.ToSlash(name)
}

func open(t testing.TB, mode string, policies ...string) *Chain {
	t.Helper()
	c, err := Open(mode, policies)
	must(t, err)
	return c
}

var read = policy.Input{Operation: "readFile", Path: "/ws/a.txt", Encoding: "utf8",
	ResolvedPath: "/ws/a.txt", Principal: "ci", Session: "s1", Dialect: "tools",
	Headers: map[string]string{"team": "red"}}

func TestOneFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"allow":         {"allow := true", "yes"},
		"deny":          {"default allow := false", "no"},
		"rule holds":    {"default allow := false\nallow if input.operation == \"readFile\"", "yes"},
		"prefix":        {`allow if startswith(input.resolved_path, "/ws/")`, "yes"},
		"undefined":     {`allow if input.operation == "rm"`, "undefined"},
		"no such rule":  {`other := true`, "undefined"},
		"absent field":  {`allow if input.destination == ""`, "undefined"},
		"not null":      {`allow if input.destination == null`, "undefined"},
		"header":        {`allow if input.mcp_headers.team == "red"`, "yes"},
		"who":           {`allow if {input.principal == "ci"; input.session == "s1"; input.dialect == "tools"}`, "yes"},
		"number":        {"allow := 1", "of type number"},
		"text":          {`allow := "true"`, "of type string"},
		"set":           {"allow contains 1 if true", "of type set"},
		"conflict":      {"allow := true if true\nallow := false if input.path", "conflict"},
		"builtin fails": {`allow if to_number(input.path) == 1`, "to_number"},
		"division":      {`allow if 1/(count(input.encoding)-4) == 1`, "divide by zero"},
		"v0":            {"allow { input.encoding == \"utf8\" }", "yes"},
		"v0 partial":    {"names[x] { x := input.operation }\nallow { names[\"readFile\"] }", "yes"},
		"two bodies":    {"allow if input.path == \"x\"\nallow if input.encoding == \"utf8\"", "yes"},
		"function":      {"allow if ok(input.path)\nok(p) if not contains(p, \"..\")", "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			yes, err := open(t, "all", file(t, head+c.text)).Decide(t.Context(), read)
			if got := verdict(yes, err); got != c.want && !(strings.Contains(got, c.want) && len(c.want) > 3) {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// verdict is a decision as a word, or the error.
func verdict(yes bool, err error) string {
	_, undecided := err.(*policy.Undecided)
	switch {
	case undecided && !yes:
		return "undefined"
	case err != nil:
		return fmt.Sprint(yes, " ", err)
	case yes:
		return "yes"
	}
	return "no"
}

func TestModes(t *testing.T) {
	t.Parallel()
	yes, no, undefined, broken := file(t, head+"allow := true"), file(t, head+"allow := false"),
		file(t, head+"allow if input.path == 1"), file(t, head+"allow := 3")
	for _, c := range []struct {
		mode     string
		policies []string
		want     string
	}{
		{"all", nil, "yes"}, {"any", nil, "yes"}, {"", nil, "yes"},
		{"all", []string{yes, yes}, "yes"}, {"all", []string{yes, no}, "no"}, {"all", []string{no, broken}, "no"},
		{"", []string{yes, no}, "no"},
		{"all", []string{yes, undefined}, "undefined"}, {"all", []string{yes, broken}, "type number"},
		{"any", []string{no, yes}, "yes"}, {"any", []string{no, no}, "no"}, {"any", []string{yes, broken}, "yes"},
		{"any", []string{undefined, yes}, "yes"}, {"any", []string{undefined, undefined}, "undefined"},
		{"any", []string{broken, yes}, "type number"}, // an error can't be made up for
	} {
		got := verdict(open(t, c.mode, c.policies...).Decide(t.Context(), read))
		if got != c.want && !(len(c.want) > 3 && strings.Contains(got, c.want)) {
			t.Errorf("%s %v: got %s, want %s", c.mode, c.policies, got, c.want)
		}
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(name), 0o700)
		must(t, os.WriteFile(name, []byte(text), 0o600))
		return "file://" + name
	}
	write("two/b.rego", head+"allow if ok")
	write("two/a.rego", head+"ok { true }") // before Rego 1
	write("two/c.txt", "not Rego")
	write("two/sub/d.rego", "not Rego")
	write("none/c.txt", "not Rego")
	two := "file://" + dir + "/two"
	c := open(t, "", two)
	if _, got := c.Explain(t.Context(), read); !strings.HasSuffix(got[0].Policy, defaultRule) ||
		!got[0].Allowed {
		t.Error(got)
	}
	if yes, err := c.Decide(t.Context(), read); !yes || err != nil {
		t.Error(yes, err)
	}
	other := write("other.rego", "package x.y\nmay := true")
	if yes, err := open(t, "", other+" data.x.y.may").Decide(t.Context(), read); !yes || err != nil {
		t.Error("another rule:", yes, err)
	}
	for policy, want := range map[string]string{
		"file://" + dir + "/none":                                          "no *.rego in this directory",
		"file://" + dir + "/absent.rego":                                   "no such file",
		write("bad.rego", head+"allow if {"):                               "bad.rego:2",
		write("empty.rego", ""):                                            "empty",
		write("twice.rego", head+"default allow := 1\ndefault allow := 2"): "multiple default",
		write("big.rego", strings.Repeat("# x\n", 1<<19)):                  "larger than",
		other + " input.allow":                                             "not the name of a rule",
		other + " data.x[_]":                                               "not the name of a rule",
		other + " data.x; data.y":                                          "not the name of a rule",
		"/p.rego":                                                          "neither file",
		"file://host/p.rego":                                               "neither file",
		"ftp://host/p.rego":                                                "neither file",
		"http:///v1":                                                       "neither file",
		write("net.rego", head+`allow if http.send({"url": "http://localhost", "method": "get"})`): "http.send (policies here reach no network",
		write("dns.rego", head+`allow if net.lookup_ip_addr("localhost")`):                         "net.lookup_ip_addr",
		write("run.rego", head+`allow if opa.runtime().env.HOME`):                                  "opa.runtime",
		write("old.rego", head+`allow { http.send({"url": "x", "method": "get"}) }`):               "http.send",
	} {
		if _, err := Open("all", []string{policy}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", policy, err, want)
		}
	}
	if _, err := Open("some", nil); err == nil {
		t.Error("a mode that is none is taken")
	}
}

// Rego that would never come to an end, or only with more memory than there is.
func TestEndless(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"comprehension": `allow if count([1 | some a in numbers.range(1, 10000); some b in numbers.range(1, 10000); a < b; a > b]) == 1`,
		"range":         `allow if count(numbers.range(1, 10000000000)) == 1`,
		"set":           `allow if count({x | some a in numbers.range(1, 100000); some b in numbers.range(1, 100000); x := a * b; x < 0}) == 1`,
		"rules": `all contains x if {some x in numbers.range(1, 30000)}
allow if {some a in all; some b in all; a + b == -1}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := open(t, "", file(t, head+text))
			c.links[0].(*local).time = 20 * time.Millisecond
			yes, err := c.Decide(t.Context(), read)
			if yes || err == nil || !strings.Contains(err.Error(), "took longer than 20ms") {
				t.Error(yes, err)
			}
			c.links[0].(*local).time = time.Minute
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if yes, err := c.Decide(ctx, read); yes || err != context.DeadlineExceeded {
				t.Error("the caller gave up:", yes, err)
			}
		})
	}
}

func TestInputIsBounded(t *testing.T) {
	t.Parallel()
	in := read
	in.Headers = map[string]string{"a": strings.Repeat("x", maxInput)}
	yes, err := open(t, "", file(t, head+"allow := true")).Decide(t.Context(), in)
	if yes || err == nil || !strings.Contains(err.Error(), "over the limit of 1048576") {
		t.Errorf("%v, %v", yes, err)
	}
}

func TestServer(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"result": {"allow": true}}`:           "yes",
		`{"result": {"allow": false, "x": 1}}`:  "no",
		`{"result": {}}`:                        "undefined",
		`{"result": {"allow": null}}`:           "undefined",
		`{}`:                                    "undefined",
		`{"result": true}`:                      "not an object with allow",
		`{"result": {"allow": "true"}}`:         "not true or false",
		`{"result": {"allow": 1}}`:              "not true or false",
		`[]`:                                    "no JSON object",
		`nonsense`:                              "no JSON object",
		`{"result": {"allow": true}} trailing`:  "no JSON object",
		"":                                      "no JSON object",
		strings.Repeat(" ", maxAnswer+1) + `{}`: "longer than",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, answer)
		}))
		got := verdict(open(t, "", s.URL).Decide(t.Context(), read))
		if s.Close(); got != want && !(len(want) > 3 && strings.Contains(got, want)) {
			t.Errorf("%.60s: got %s, want %s", answer, got, want)
		}
	}
}

func TestServerIsAskedAsOPAIs(t *testing.T) {
	t.Parallel()
	var got, path string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, path = r.Method+" "+r.Header.Get("Content-Type")+" "+string(b), r.URL.Path
		io.WriteString(w, `{"result": {"allow": true}}`)
	}))
	s.Start()
	defer s.Close()
	yesNo := true
	in := policy.Input{Operation: "rm", Path: "d/../x", Recursive: &yesNo}
	for i, c := range []struct{ policy, path string }{
		{s.URL, "/v1/data/mcp/filesystem"}, {s.URL + "/ other/policy", "/v1/data/other/policy"},
		{s.URL + "/opa/ /a/", "/opa/v1/data/a"},
	} {
		if yes, err := open(t, "", c.policy).Decide(t.Context(), in); !yes || err != nil {
			t.Error(i, yes, err)
		}
		if strings.TrimSuffix(path, "/") != c.path {
			t.Errorf("%s: asked at %s, want %s", c.policy, path, c.path)
		}
	}
	if want := `POST application/json {"input":{"operation":"rm","path":"d/../x","recursive":true}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestServerFails(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"result": {"allow": true}}`)
	}))
	defer elsewhere.Close()
	stop := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "moved"):
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case strings.HasSuffix(r.URL.Path, "slow"):
			<-stop
		case strings.HasSuffix(r.URL.Path, "drip"):
			io.WriteString(w, `{"result":`)
			http.NewResponseController(w).Flush() //nolint:errcheck // who asks has gone
			<-stop
		default:
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, `{"result": {"allow": true}}`)
		}
	}))
	defer s.Close()
	defer close(stop)
	gone := httptest.NewServer(nil)
	gone.Close()
	for policy, want := range map[string]string{
		s.URL: "500", s.URL + " moved": "307", gone.URL: "refused", s.URL + " slow": "no answer within 50ms",
		s.URL + " drip": "no answer within 50ms",
	} {
		c := open(t, "any", policy)
		c.links[0].(*remote).client.Timeout = 50 * time.Millisecond
		if !strings.HasPrefix(want, "no answer") {
			c.links[0].(*remote).client.Timeout = askTime
		}
		yes, err := c.Decide(t.Context(), read)
		if yes || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v, want %q", policy, yes, err, want)
		}
	}
	secret := strings.Replace(gone.URL, "http://", "http://me:sesame@", 1)
	if _, err := open(t, "", secret).Decide(t.Context(), read); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Error("the password is told:", err)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	p := file(t, head+`
default allow := false

allow if {
	input.operation == "readFile"
	startswith(input.resolved_path, "/ws/")
}

allow if input.operation == "stat"
`)
	yes, why := open(t, "", p).Explain(t.Context(), read)
	if !yes || len(why) != 1 || !why[0].Allowed || why[0].Policy != p+" "+defaultRule {
		t.Errorf("%v %+v", yes, why)
	}
	if yes, why = open(t, "", p, file(t, head)).Explain(t.Context(), read); yes || len(why) != 2 || why[1].Failed || !strings.Contains(why[1].Why, "undefined") {
		t.Errorf("%v %+v", yes, why)
	}
	yes, why = open(t, "any", file(t, head+"allow := 3"), p).Explain(t.Context(), read)
	if yes || len(why) != 1 || !why[0].Failed || !strings.Contains(why[0].Why, "type number") {
		t.Errorf("%v %+v", yes, why)
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	u, _ := url.Parse("https://opa.example:8181/base?x=1#y")
	if got := newRemote(u, "").String(); got != "https://opa.example:8181/base/v1/data/mcp/filesystem" {
		t.Error(got)
	}
}

// The promise is 40 µs on a quiet machine.
func BenchmarkDecide(b *testing.B) {
	c := open(b, "", file(b, head+`
default allow := false
allow if {
	input.operation in {"readFile", "stat", "readdir"}
	startswith(input.resolved_path, "/ws/")
	not contains(input.path, "..")
}
allow if {
	input.operation == "writeFile"
	startswith(input.resolved_path, "/ws/out/")
}`))
	b.ReportAllocs()
	for b.Loop() {
		if yes, err := c.Decide(context.Background(), read); !yes || err != nil {
			b.Fatal(yes, err)
		}
	}
}
