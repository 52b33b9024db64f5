package rego

import (
	"flag"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"moltisfs/internal/policy"
	"moltisfs/internal/testdir"
)

var opa = flag.String("opa", "", "the program opa, to be asked as a server")

// A real OPA server decides as this package does, on the same file. make interop builds the server.
func TestOPA(t *testing.T) {
	if *opa == "" {
		t.Skip("SKIPPED: -opa names no program")
	}
	file := file(t, head+`
default allow := false
allow if {
	input.operation in {"readFile", "stat"}
	startswith(input.resolved_path, "/ws/")
	not contains(input.path, "..")
}
allow if {
	input.operation == "rm"
	input.recursive == false
	input.mcp_headers.team == "red"
	not input.destination
}
allow if regex.match("^/ws/[a-z]+[.]txt$", input.destination)
`)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	l.Close() //nolint:errcheck // nothing was written through it
	server := exec.Command(*opa, "run", "--server", "--addr", addr, "--disable-telemetry",
		strings.TrimPrefix(file, "file://"))
	must(t, server.Start())
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	testdir.Until(t, "the server", func() bool {
		r, err := http.Get("http://" + addr + "/health")
		if err == nil {
			r.Body.Close() //nolint:errcheck // it is read no further
		}
		return err == nil
	})
	here, there := open(t, "", file), open(t, "", "http://"+addr)
	yes, no := true, false
	allowed := 0
	for _, in := range []policy.Input{
		read,
		{Operation: "readFile", Path: "/ws/../etc/passwd", ResolvedPath: "/etc/passwd"},
		{Operation: "readFile", Path: "/ws/x/../a", ResolvedPath: "/ws/a"},
		{Operation: "stat", Path: "l", ResolvedPath: "/ws/a"},
		{Operation: "rm", Path: "/ws/a", Recursive: &no, Headers: map[string]string{"team": "red"}},
		{Operation: "rm", Path: "/ws/a", Recursive: &yes, Headers: map[string]string{"team": "red"}},
		{Operation: "rm", Path: "/ws/a", Headers: map[string]string{"team": "red"}},
		{Operation: "rm", Path: "/ws/a", Recursive: &no, Headers: map[string]string{"team": "blue"}},
		{Operation: "rename", Path: "/ws/a", Destination: "/ws/b.txt"},
		{Operation: "rename", Path: "/ws/a", Destination: "/ws/B.txt"},
		{Operation: "copyFile", Path: "/ws/\u00e9\"\\", Destination: "/ws/\u00e9.txt"},
	} {
		a, aerr := here.Decide(t.Context(), in)
		b, berr := there.Decide(t.Context(), in)
		if a != b || aerr != nil || berr != nil {
			t.Errorf("%+v: %v %v here, %v %v at the server", in, a, aerr, b, berr)
		}
		if a {
			allowed++
		}
	}
	if allowed != 4 {
		t.Errorf("%d were allowed, want 4", allowed)
	}
	if yes, err := open(t, "", "http://"+addr+" no/such").Decide(t.Context(), read); yes || verdict(yes, err) != "undefined" {
		t.Error("a policy that is not there:", yes, err)
	}
}
