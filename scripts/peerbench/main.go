//go:build linux

// Peerbench has servers of files over MCP do the same calls, turn about in one run, and prints for each call the median time, the
// processor's time, and both as ratios to ours, which is the first:
//
//	go run ./scripts/peerbench moltis-fs mcp-server-filesystem mcp-filesystem-server
//
// An argument is a program: ours (any name that begins with moltis-fs; MOLTIS_CONFIG has its configuration), the reference server of
// MCP, or the one of mark3labs. One that is not there is skipped. Changes are made once more in memory, below /dev/shm, where waiting
// for the disk costs nothing. A wrong answer ends the run. Last comes how long our program takes to start, beside rg and cat.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

var (
	rounds = flag.Int("rounds", 200, "calls of each kind and server; searches of the larger tree are a twentieth")
	only   = flag.String("only", "", "the rows whose names contain this")
)

// A server is a program that runs, with the measurements of the row.
type server struct {
	name, dir string
	speaks    int // the index in speaks
	cmd       *exec.Cmd
	in        *bufio.Writer
	out       *bufio.Reader
	id        int
	took      []time.Duration
	used      time.Duration
}

// speaks has the beginnings of the programs' names, and how each is started; calls how each, in that order, names a kind of call.
var (
	speaks = []string{"moltis-fs mcp --approve yes --root", "mcp-server-filesystem", "mcp-filesystem-server"}
	calls  = map[string][]string{
		"read":  {`Read {"file_path":PATH}`, `read_text_file {"path":PATH}`, `read_file {"path":PATH}`},
		"tail":  {`Read {"file_path":PATH,"offset":-2000}`, `read_text_file {"path":PATH,"tail":2000}`, `read_file {"path":PATH}`}, // all or nothing
		"write": {`Write {"file_path":PATH,"content":NEW}`, `write_file {"path":PATH,"content":NEW}`, `write_file {"path":PATH,"content":NEW}`},
		"edit": {`Edit {"file_path":PATH,"old_string":OLD,"new_string":NEW}`, `edit_file {"path":PATH,"edits":[{"oldText":OLD,"newText":NEW}]}`,
			`modify_file {"path":PATH,"find":OLD,"replace":NEW}`},
		"glob": {`Glob {"path":PATH,"pattern":"**/*.go"}`, `search_files {"path":PATH,"pattern":"**/*.go"}`, `search_files {"path":PATH,"pattern":"*.go"}`},
		"grep": {`Grep {"path":PATH,"pattern":"needle","output_mode":"content"}`, "", `search_within_files {"path":PATH,"substring":"needle"}`},
	}
)

var rows = []struct {
	name, kind, path string
	part             int    // of -rounds, a divisor
	has              string // what each answer must have
}{
	{"Read 4 KB", "read", "4k.txt", 1, "the end"},
	{"Read 146 KB (ours: 2,000 lines)", "read", "146k.txt", 2, "line 1000 "},
	{"last 2,000 lines of 1 MB", "tail", "1m.txt", 4, "the end"},
	{"Edit 10 KB", "edit", "10k.txt", 1, ""},
	{"Edit 200 KB", "edit", "200k.txt", 2, ""},
	{"Write 1 KB", "write", "1k.txt", 1, ""},
	{"Glob, 500 files", "glob", "500", 2, "/f7.go"},
	{"Glob, 11,000 files", "glob", "11000", 20, "/f10999.go"},
	{"Grep, 500 files", "grep", "500", 2, "needle 499"},
	{"Grep, 11,000 files", "grep", "11000", 20, "needle"},
}

const label = "%-34s" // of a row

func main() {
	log.SetFlags(0)
	flag.Parse()
	var programs []string
	header := fmt.Sprintf(label, "p50 ms | CPU ms a call | ratios")
	for _, program := range flag.Args() {
		if _, err := exec.LookPath(program); err != nil {
			fmt.Println("SKIPPED:", err)
			continue
		}
		programs, header = append(programs, program), header+fmt.Sprintf(" %-30s", filepath.Base(program))
	}
	if len(programs) == 0 {
		log.Fatal("name the programs, ours first")
	}
	fmt.Println(header)
	serve(programs, os.TempDir(), "")
	serve(programs, "/dev/shm", " (in memory)")
	starts(programs[0])
}

// serve makes the rows in workspaces below a directory; with a suffix those that change something.
func serve(programs []string, below, suffix string) {
	dir := must(os.MkdirTemp(below, "peerbench"))
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "root")
	for files, name := range map[int]string{500: "500", 11000: "11000"} {
		if suffix == "" {
			tree(filepath.Join(root, name), files)
		}
	}
	var servers []*server
	for i, program := range programs {
		servers = append(servers, start(program, root, fmt.Sprint(dir, "/home", i), fmt.Sprint(root, "/ws", i)))
		defer servers[i].cmd.Process.Kill() //nolint:errcheck // it ends with us
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
				tool, arguments, ok := strings.Cut(calls[row.kind][s.speaks], " ")
				if !ok {
					continue
				}
				path, old, now := filepath.Join(s.dir, row.path), fmt.Sprintf("the mark is %d;", round-1), fmt.Sprintf("the mark is %d;", round)
				switch {
				case row.kind == "glob", row.kind == "grep":
					path = filepath.Join(root, row.path)
				case row.kind == "write":
					now = string(text(1<<10)) + now
				case round == -n/10:
					old = "the mark is here;"
				}
				arguments = strings.NewReplacer("PATH", strconv.Quote(path), "OLD", strconv.Quote(old), "NEW", strconv.Quote(now)).Replace(arguments)
				before, began := s.cpu(), time.Now()
				answer := s.ask("tools/call", `{"name":"`+tool+`","arguments":`+arguments+`}`)
				took, used := time.Since(began), s.cpu()-before
				if !strings.Contains(answer, row.has) || strings.Contains(answer, `"isError":true`) {
					log.Fatalf("%s, %s: %.2000s", s.name, row.name, answer)
				}
				if changes {
					if content := must(os.ReadFile(path)); !strings.Contains(string(content), now) {
						log.Fatalf("%s, %s: the file has not changed: %.2000s", s.name, row.name, answer)
					}
				}
				if round >= 0 {
					s.took, s.used = append(s.took, took), s.used+used
				}
			}
		}
		fmt.Printf(label, row.name+suffix)
		p50, cpu := ms(median(servers[0].took)), float64(servers[0].used)
		for i, s := range servers {
			said := "–"
			if len(s.took) > 0 {
				said = fmt.Sprintf("%6.2f | %6.2f", ms(median(s.took)), ms(s.used)/float64(len(s.took)))
				if i > 0 {
					said += fmt.Sprintf(" | %5.2f %5.2f", ms(median(s.took))/p50, float64(s.used)/cpu)
				}
			}
			fmt.Printf(" %-30s", said)
			s.took, s.used = nil, 0
		}
		fmt.Println()
	}
	fmt.Printf(label, "memory at the end, MB"+suffix)
	for _, s := range servers {
		statm := string(must(os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.cmd.Process.Pid))))
		resident := must(strconv.Atoi(strings.Fields(statm)[1]))
		fmt.Printf(" %6d%24s", resident*os.Getpagesize()>>20, "")
	}
	fmt.Println()
}

// start starts a program over a root, with a home and a directory for its own files, and shakes hands.
func start(program, root, home, dir string) *server {
	s := &server{name: filepath.Base(program), dir: dir}
	check(os.MkdirAll(dir, 0o755))
	for name, size := range map[string]int{"1k": 1, "4k": 4, "10k": 10, "146k": 146, "200k": 200, "1m": 1024} {
		check(os.WriteFile(filepath.Join(dir, name+".txt"), text(size<<10), 0o644))
	}
	s.speaks = slices.IndexFunc(speaks, func(how string) bool { return strings.HasPrefix(s.name, strings.Fields(how)[0]) })
	if s.speaks < 0 {
		log.Fatalf("%s is no server that is known here", program)
	}
	s.cmd = exec.Command(must(filepath.Abs(program)), append(strings.Fields(speaks[s.speaks])[1:], root)...)
	s.cmd.Dir, s.cmd.Env = root, append(os.Environ(), "HOME="+home)
	s.in, s.out = bufio.NewWriter(must(s.cmd.StdinPipe())), bufio.NewReaderSize(must(s.cmd.StdoutPipe()), 1<<20)
	check(s.cmd.Start())
	// A client that shows a model all that it is given.
	s.ask("initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"@langchain/mcp-adapters","version":"1"}}`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

// ask makes a request and gives the line of its answer; lines that are no answer are passed over.
func (s *server) ask(method, params string) string {
	s.id++
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, s.id, method, params))
	for {
		line, err := s.out.ReadString('\n')
		if err != nil || strings.Contains(line, `"error":`) {
			log.Fatalf("%s: %v %s", s.name, err, line)
		}
		if strings.Contains(line, `"result":`) {
			return line
		}
	}
}

func (s *server) send(line string) {
	s.in.WriteString(line + "\n") //nolint:errcheck // Flush has it
	check(s.in.Flush())
}

// cpu is the processor's time that the program has used, in its threads and in the kernel.
func (s *server) cpu() time.Duration {
	var t unix.Timespec
	check(unix.ClockGettime(int32(^s.cmd.Process.Pid<<3|2), &t))
	return time.Duration(t.Nano())
}

// starts prints how long processes of ours take from start to exit, beside two of others. Cold: their files are not in the page cache.
func starts(ours string) {
	rg, err := exec.LookPath("rg")
	if err != nil || !strings.Contains("start", *only) {
		fmt.Println("SKIPPED: starts", err)
		return
	}
	dir := must(os.MkdirTemp("", "peerbench"))
	defer os.RemoveAll(dir)
	small := filepath.Join(dir, "root", "small")
	check(os.Mkdir(filepath.Dir(small), 0o755))
	check(os.WriteFile(small, text(4<<10), 0o644))
	all := [][]string{{ours, "version"}, {rg, "--version"}, {ours, "call", "Read", "small"}, {"/bin/cat", "small"}}
	for _, cold := range []string{"", ", cold"} {
		took, used := make([][]time.Duration, len(all)), make([][]time.Duration, len(all))
		for round := range max(6, *rounds/8) {
			for i, words := range all {
				for _, name := range []string{words[0], small} {
					f := must(os.Open(name))
					if cold != "" {
						check(unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
					}
					check(f.Close())
				}
				cmd := exec.Command(must(filepath.Abs(words[0])), words[1:]...)
				cmd.Dir, cmd.Env = filepath.Dir(small), []string{"HOME=" + dir + "/home", "MOLTIS_DATA_DIR=" + dir + "/home"}
				began := time.Now()
				if check(cmd.Run()); round > 0 {
					took[i], used[i] = append(took[i], time.Since(began)), append(used[i], cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
				}
			}
		}
		for i, words := range all {
			fmt.Printf(label+" %6.2f | %6.2f\n", "start: "+filepath.Base(words[0])+" "+words[1]+cold, ms(median(took[i])), ms(median(used[i])))
		}
	}
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

// tree makes files in directories of twenty, half of them Go's by their name. One in ten of the first has a line that is searched for.
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

func median(d []time.Duration) time.Duration { return slices.Sorted(slices.Values(d))[len(d)/2] }

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
