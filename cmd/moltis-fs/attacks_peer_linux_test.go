package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var peerDir = flag.String("peer", "", "where npm has installed @modelcontextprotocol/server-filesystem: make attacks")

// peerTools are the tools of @modelcontextprotocol/server-filesystem that take a path.
var peerTools = []attackTool{
	{"server-filesystem", "read_text_file", "", "read", field("path")},
	{"server-filesystem", "read_media_file", "", "read", field("path")},
	{"server-filesystem", "get_file_info", "", "read", field("path")},
	{"server-filesystem", "list_directory", "", "walk", field("path")},
	{"server-filesystem", "search_files", "", "walk", field("path", "pattern", "**")},
	{"server-filesystem", "edit_file", "", "change", field("path", "edits", []any{map[string]any{"oldText": "a", "newText": "b"}})},
	{"server-filesystem", "write_file", "", "change", field("path", "content", "EVIL\n")},
	{"server-filesystem", "move_file", "from", "leaf", field("source", "destination", "R/scratch/x")},
}

// A peer is that server over a tree of its own. Its own words decide nothing here: it is caught where
// something outside of its root is told or has changed. Names inside it holds nothing against; where
// ours would, that is said.
type peer struct {
	t    *testing.T
	w    *attacked
	to   *wire
	n    int
	gone func()
}

func (p *peer) start() {
	cmd := exec.Command("node", filepath.Join(*peerDir, "node_modules", "@modelcontextprotocol", "server-filesystem", "dist", "index.js"), p.w.root)
	in, err := cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.gone = func() { _ = cmd.Process.Kill(); _ = in.Close(); _ = cmd.Wait() }
	p.to = newWire(p.t, out, in, nothing)
	p.to.ask("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "attacks", "version": "1"}})
	p.to.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

// call makes one call. Where no answer comes the server is started anew.
func (p *peer) call(tool attackTool, raw string) (kind string, answer []byte, took time.Duration) {
	p.n++
	start := time.Now()
	p.to.send(map[string]any{"jsonrpc": "2.0", "id": p.n, "method": "tools/call", "params": map[string]any{"name": tool.name, "arguments": json.RawMessage(raw)}})
	for {
		select {
		case m := <-p.to.lines:
			if id, ok := m["id"].(float64); m != nil && (!ok || int(id) != p.n) {
				continue
			}
			if m != nil {
				b, _ := json.Marshal(m)
				result, _ := m["result"].(map[string]any)
				if no, _ := result["isError"].(bool); no || result == nil {
					return "refused", b, time.Since(start)
				}
				return "ok", b, time.Since(start)
			}
			p.gone()
			p.start()
			return "ENDED", nil, time.Since(start)
		case <-time.After(10 * time.Second):
			p.gone()
			p.start()
			return "NO ANSWER", nil, time.Since(start)
		}
	}
}

var outsideTold = regexp.MustCompile(canary + `[\\" ]*\.\./`)

// peerLines drives the paths of the families A, B, C and E by the tools of that server, and the races
// of D.
func peerLines(t *testing.T) (out []attackLine) {
	if _, err := exec.LookPath("node"); err != nil || *peerDir == "" {
		fmt.Println("| – | SKIPPED: @modelcontextprotocol/server-filesystem is not installed | | |")
		return nil
	}
	p := &peer{t: t, w: newAttacked(t)}
	p.start()
	defer func() { p.gone() }()
	for i := range attackRows {
		row := &attackRows[i]
		if !slices.Contains([]string{"A", "B", "C", "E"}, row.id[:1]) {
			continue
		}
		for _, tool := range peerTools {
			l := attackLine{row: row.id, by: tool.String()}
			for _, try := range row.tries {
				kind, took := p.try(tool, try.path)
				l.add(kind, took)
			}
			if l.outcome != "" {
				out = append(out, l)
			}
		}
	}
	return append(out, p.race()...)
}

// try makes one call and says how it ended.
func (p *peer) try(tool attackTool, path string) (kind string, took time.Duration) {
	before := p.w.closed(p.t)
	kind, answer, took := p.call(tool, tool.at(p.w, p.w.written(path)))
	touched := changed(before, p.w.closed(p.t))
	outside := slices.ContainsFunc(touched, func(name string) bool { return !strings.HasPrefix(name, `"/ws/`) })
	switch {
	case outsideTold.Match(answer):
		kind = "FELL: tells what is outside"
	case outside:
		kind = "FELL: changes what is outside"
	case told(answer):
		kind = "tells a secret inside"
	case len(touched) > 0:
		kind = "changes what is protected"
	}
	if err := errors.Join(p.w.plant(), p.w.sweep()); err != nil {
		p.t.Fatal(err)
	}
	return kind, took
}

// race has it read and write while the parent and a link outside change places.
func (p *peer) race() (out []attackLine) {
	for _, tool := range []attackTool{peerTools[0], peerTools[6]} {
		dir := p.w.at("race/x")
		for _, err := range []error{os.MkdirAll(dir+"/d", 0o755), os.WriteFile(dir+"/d/there", []byte("plain\n"), 0o644), os.Symlink("../../../out", dir+"/l")} {
			if err != nil {
				p.t.Fatal(err)
			}
		}
		end := swapping(p.t, dir+"/d", dir+"/l")
		first, fell, tries := 0, 0, 5000
		start := time.Now()
		for n := 1; n <= tries; n++ {
			_, answer, _ := p.call(tool, tool.at(p.w, dir+"/d/there"))
			escaped := told(answer)
			if b, err := os.ReadFile(p.w.at("../out/there")); tool.class == "change" && (err != nil || !told(b)) {
				escaped = true
				if err := os.WriteFile(p.w.at("../out/there"), []byte(own("../out/there")), 0o644); err != nil {
					p.t.Fatal(err)
				}
			}
			if escaped {
				if fell++; first == 0 {
					first = n
				}
			}
		}
		swaps := end()
		_ = os.RemoveAll(dir)
		out = append(out, attackLine{"D01", tool.String(), fmt.Sprintf("%d of %d calls fell, first at %d (%d swaps)", fell, tries, first, swaps), time.Since(start) / time.Duration(tries)})
	}
	return out
}
