//go:build linux

// Peerbench has servers of files over MCP do the same calls, turn about in one run, and prints for each call the median time, the
// processor's time, and both as ratios to ours, which is the first:
//
//	go run ./scripts/peerbench moltis-fs mcp-server-filesystem mcp-filesystem-server
//
// An argument is a program: ours (any name that begins with moltis-fs, with -config's file where there is one), the reference server of
// MCP, or the one of mark3labs. Each has a workspace of its own below TMPDIR, and changes are made once more in memory, below
// /dev/shm, where waiting for the disk costs nothing. An answer that is an error, or lacks what it has to have, ends the run.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

var (
	rounds = flag.Int("rounds", 200, "calls of each kind and server; searches of the larger tree are a tenth")
	only   = flag.String("only", "", "the rows whose names contain this")
	config = flag.String("config", "", "a configuration for ours, beside --root")
)

// A server is a program that runs, with the row's measurements.
type server struct {
	name, dir string
	tools     map[string]func(a args) call // what it calls each kind of call
	cmd       *exec.Cmd
	in        *bufio.Writer
	out       *bufio.Reader
	id        int
	took      []time.Duration
	used      time.Duration
}

// args is what a row asks for, in nobody's words.
type args struct{ path, old, new string }

type call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

func is(name string, pairs ...any) call {
	c := call{name, map[string]any{}}
	for i := 0; i < len(pairs); i += 2 {
		c.Arguments[pairs[i].(string)] = pairs[i+1]
	}
	return c
}

// speaks has, by the beginning of a program's name, how it is started and how it names the calls.
var speaks = []struct {
	program string
	args    []string
	tools   map[string]func(a args) call
}{
	{"moltis-fs", []string{"mcp", "--approve", "yes", "--root"}, map[string]func(a args) call{
		"read":  func(a args) call { return is("Read", "file_path", a.path) },
		"tail":  func(a args) call { return is("Read", "file_path", a.path, "offset", -2000) },
		"edit":  func(a args) call { return is("Edit", "file_path", a.path, "old_string", a.old, "new_string", a.new) },
		"write": func(a args) call { return is("Write", "file_path", a.path, "content", a.new) },
		"glob":  func(a args) call { return is("Glob", "path", a.path, "pattern", "**/*.go") },
		"grep":  func(a args) call { return is("Grep", "path", a.path, "pattern", "needle", "output_mode", "content") },
	}},
	{"mcp-server-filesystem", nil, map[string]func(a args) call{
		"read": func(a args) call { return is("read_text_file", "path", a.path) },
		"tail": func(a args) call { return is("read_text_file", "path", a.path, "tail", 2000) },
		"edit": func(a args) call {
			return is("edit_file", "path", a.path, "edits", []any{map[string]any{"oldText": a.old, "newText": a.new}})
		},
		"write": func(a args) call { return is("write_file", "path", a.path, "content", a.new) },
		"glob":  func(a args) call { return is("search_files", "path", a.path, "pattern", "**/*.go") },
	}},
	{"mcp-filesystem-server", nil, map[string]func(a args) call{
		"read":  func(a args) call { return is("read_file", "path", a.path) },
		"tail":  func(a args) call { return is("read_file", "path", a.path) }, // it has all or nothing
		"edit":  func(a args) call { return is("modify_file", "path", a.path, "find", a.old, "replace", a.new) },
		"write": func(a args) call { return is("write_file", "path", a.path, "content", a.new) },
		"glob":  func(a args) call { return is("search_files", "path", a.path, "pattern", "*.go") },
		"grep":  func(a args) call { return is("search_within_files", "path", a.path, "substring", "needle") },
	}},
}

var rows = []struct {
	name, kind, path string
	part             int    // of -rounds, a divisor
	has              string // a part of each answer that must be there; for an edit the file has it afterwards
}{
	{"Read 4 KB", "read", "4k.txt", 1, "the end"},
	{"Read 146 KB (ours gives 2,000 lines)", "read", "146k.txt", 2, "line 1000 "},
	{"last 2,000 lines of 1 MB", "tail", "1m.txt", 4, "the end"},
	{"Edit 10 KB", "edit", "10k.txt", 1, ""},
	{"Edit 200 KB", "edit", "200k.txt", 2, ""},
	{"Write 1 KB", "write", "1k.txt", 1, ""},
	{"Glob, 500 files", "glob", "500", 2, "/f7.go"},
	{"Glob, 11,000 files", "glob", "11000", 20, "/f10999.go"},
	{"Grep, 500 files", "grep", "500", 2, "needle 499"},
	{"Grep, 11,000 files", "grep", "11000", 20, "needle"},
}

func main() {
	log.SetFlags(0)
	flag.Parse()
	if flag.NArg() < 1 {
		log.Fatal("name the programs, ours first")
	}
	fmt.Printf("%-38s", "p50 ms | CPU ms a call | ratios")
	for _, program := range flag.Args() {
		fmt.Printf(" %-32s", filepath.Base(program))
	}
	fmt.Println()
	run(os.TempDir(), "", "")
	run("/dev/shm", "0k", " (in memory)") // edits and writes
}

// run makes the rows whose paths contain part, in workspaces below a directory.
func run(below, part, suffix string) {
	if _, err := os.Stat(below); err != nil {
		fmt.Println("SKIPPED: there is no", below)
		return
	}
	dir, err := os.MkdirTemp(below, "peerbench")
	check(err)
	defer os.RemoveAll(dir)
	home := filepath.Join(dir, "home")
	dir = filepath.Join(dir, "root")
	if part == "" {
		tree(filepath.Join(dir, "500"), 500)
		tree(filepath.Join(dir, "11000"), 11000)
	}
	var servers []*server
	for i, program := range flag.Args() {
		servers = append(servers, start(program, dir, home, i))
		defer servers[i].stop()
	}
	for _, row := range rows {
		changes := row.kind == "edit" || row.kind == "write"
		if suffix != "" && !changes || !strings.Contains(row.name+suffix, *only) {
			continue
		}
		n := max(10, *rounds/row.part)
		for round := -n / 10; round < n; round++ { // the first are for warmth alone
			for i := range servers {
				s := servers[(i+max(round, 0))%len(servers)]
				make := s.tools[row.kind]
				if make == nil {
					continue
				}
				a := args{filepath.Join(s.dir, row.path), fmt.Sprintf("the mark is %d;", round-1), fmt.Sprintf("the mark is %d;", round)}
				if row.kind == "glob" || row.kind == "grep" {
					a.path = filepath.Join(dir, row.path)
				}
				if row.kind == "write" {
					a.new = string(text(1<<10)) + a.new
				}
				if row.kind == "edit" && round == -n/10 {
					a.old = "the mark is here;"
				}
				before, began := s.cpu(), time.Now()
				answer := s.ask("tools/call", make(a))
				took, used := time.Since(began), s.cpu()-before
				if !strings.Contains(answer, row.has) || strings.Contains(answer, `"isError":true`) {
					log.Fatalf("%s, %s: %.2000s", s.name, row.name, answer)
				}
				if changes {
					now, err := os.ReadFile(a.path)
					if check(err); !strings.Contains(string(now), a.new) {
						log.Fatalf("%s, %s: the file has not changed: %.2000s", s.name, row.name, answer)
					}
				}
				if round >= 0 {
					s.took, s.used = append(s.took, took), s.used+used
				}
			}
		}
		fmt.Printf("%-38s", row.name+suffix)
		ours, n50 := servers[0].used, median(servers[0].took)
		for i, s := range servers {
			said := "–"
			if len(s.took) > 0 {
				n := time.Duration(len(s.took))
				said = fmt.Sprintf("%6.2f | %6.2f", ms(median(s.took)), ms(s.used/n))
				if i > 0 {
					said += fmt.Sprintf(" | %5.2f %5.2f", float64(median(s.took))/float64(n50), float64(s.used)/float64(ours))
				}
			}
			fmt.Printf(" %-32s", said)
			s.took, s.used = nil, 0
		}
		fmt.Println()
	}
	fmt.Printf("%-38s", "memory at the end, MB"+suffix)
	for _, s := range servers {
		var status, kb = "", 0
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
		if _, status, _ = strings.Cut(string(b), "VmRSS:"); err == nil {
			fmt.Sscan(status, &kb) //nolint:errcheck // 0 says so
		}
		fmt.Printf(" %-32s", fmt.Sprintf("%6d", kb>>10))
	}
	fmt.Println()
}

// start starts a program in a workspace of its own and shakes hands.
func start(program, below, home string, n int) *server {
	s := &server{name: filepath.Base(program), dir: filepath.Join(below, fmt.Sprint("ws", n))}
	check(os.MkdirAll(s.dir, 0o755))
	for name, size := range map[string]int{"4k.txt": 4 << 10, "146k.txt": 146 << 10, "1m.txt": 1 << 20, "10k.txt": 10 << 10, "200k.txt": 200 << 10, "1k.txt": 1 << 10} {
		check(os.WriteFile(filepath.Join(s.dir, name), text(size), 0o644))
	}
	var words []string
	for _, row := range speaks {
		if strings.HasPrefix(s.name, row.program) {
			words, s.tools = slices.Clone(row.args), row.tools
			if *config != "" && row.program == "moltis-fs" {
				words = append([]string{words[0], "--config", *config}, words[1:]...)
			}
		}
	}
	if s.tools == nil {
		log.Fatalf("%s is no server that is known here", program)
	}
	path, err := filepath.Abs(program)
	check(err)
	s.cmd = exec.Command(path, append(words, below)...)
	s.cmd.Dir = below
	s.cmd.Env = append(os.Environ(), "HOME="+home+fmt.Sprint(n))
	if os.Getenv("PEERBENCH_STDERR") != "" {
		s.cmd.Stderr = os.Stderr
	}
	in, err := s.cmd.StdinPipe()
	check(err)
	out, err := s.cmd.StdoutPipe()
	check(err)
	s.in, s.out = bufio.NewWriter(in), bufio.NewReaderSize(out, 1<<20)
	check(s.cmd.Start())
	s.ask("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "@langchain/mcp-adapters", "version": "1"}})
	s.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return s
}

func (s *server) stop() {
	check(s.cmd.Process.Kill())
	s.cmd.Wait() //nolint:errcheck // it was killed
}

// ask makes a request and gives the line of its answer; lines that are no answer are passed over.
func (s *server) ask(method string, params any) string {
	s.id++
	s.send(map[string]any{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params})
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			log.Fatalf("%s has ended: %v", s.name, err)
		}
		if strings.Contains(line, `"result":`) {
			return line
		} else if strings.Contains(line, `"error":`) {
			log.Fatalf("%s: %s", s.name, line)
		}
	}
}

func (s *server) send(message any) {
	line, err := json.Marshal(message)
	check(err)
	s.in.Write(append(line, '\n')) //nolint:errcheck // Flush has it
	check(s.in.Flush())
}

// cpu is the processor's time that the program has used, in its threads and in the kernel.
func (s *server) cpu() time.Duration {
	var t unix.Timespec
	check(unix.ClockGettime(int32(^s.cmd.Process.Pid<<3|2), &t))
	return time.Duration(t.Nano())
}

// text is a file of about that many bytes in lines of 60, with a mark in its middle.
func text(size int) []byte {
	var b strings.Builder
	for i := 0; b.Len() < size-70; i++ {
		fmt.Fprintf(&b, "line %-6d of a file with \"quotes\", <tags> & a\ttab in it\n", i)
		if before := b.Len() - 60; before <= size/2 && b.Len() > size/2 {
			b.WriteString("the mark is here;\n")
		}
	}
	return []byte(b.String() + "the end\n")
}

// tree makes files in directories of twenty, half of them Go's by their name. One in ten has a line that is searched for.
func tree(dir string, files int) {
	for i := range files {
		at := filepath.Join(dir, fmt.Sprintf("d%d", i/400), fmt.Sprintf("e%d", i/20%20))
		check(os.MkdirAll(at, 0o755))
		content := text(1<<10 + i*7919%(6<<10))
		if i%10 == 9 && i < 1000 {
			content = fmt.Appendf(content, "a needle %d\n", i)
		}
		check(os.WriteFile(filepath.Join(at, fmt.Sprintf("f%d.%s", i, []string{"txt", "go"}[i%2])), content, 0o644))
	}
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
