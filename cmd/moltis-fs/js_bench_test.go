package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A timed is what a benchmark does in one of several ways, by turns; it gives what it measured.
type timed struct {
	unit string
	do   func() float64
}

// byTurns runs each way once in each round, and reports the medians.
func byTurns(b *testing.B, ways ...timed) {
	all := make([][]float64, len(ways))
	for b.Loop() {
		for i, w := range ways {
			all[i] = append(all[i], w.do())
		}
	}
	b.ReportMetric(0, "ns/op") // of the sum of all ways
	for i, w := range ways {
		slices.Sort(all[i])
		b.ReportMetric(all[i][len(all[i])/2], w.unit)
	}
}

// milliseconds runs a program to its end, and gives its output too.
func milliseconds(b *testing.B, cmd *exec.Cmd) (float64, string) {
	b.Helper()
	begin := time.Now()
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err, string(out))
	}
	return float64(time.Since(begin).Microseconds()) / 1000, string(out)
}

// served speaks MCP with a server of ours on a root.
type served struct {
	b   *testing.B
	in  io.Writer
	out *bufio.Reader
	id  int
}

func serveFor(b *testing.B, root string) *served {
	b.Helper()
	dir := b.TempDir()
	config := filepath.Join(dir, "moltis.toml")
	if err := os.WriteFile(config, []byte(withFS), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(binary(b), "mcp", "--root", root, "--config", config, "--data-dir", filepath.Join(dir, "data"),
		"--dialect", "tools,jsfs")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	s := &served{b: b, in: in, out: bufio.NewReaderSize(out, 1<<20)}
	s.ask("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "bench", "version": "1"}})
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

func (s *served) ask(method string, params any) string {
	s.b.Helper()
	s.id++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params})
	if err != nil {
		s.b.Fatal(err)
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		s.b.Fatal(err)
	}
	answer, err := s.out.ReadString('\n')
	if err != nil || strings.Contains(answer, `"isError":true`) {
		s.b.Fatalf("%v: %.500s", err, answer)
	}
	return answer
}

// call calls a tool. It gives what a model reads and writes of that: the arguments and the text.
func (s *served) call(tool string, args any) string {
	s.b.Helper()
	answer := s.ask("tools/call", map[string]any{"name": tool, "arguments": args})
	raw, _ := json.Marshal(args) // it was marshalled before
	var a struct {
		Result struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil || len(a.Result.Content) == 0 {
		s.b.Fatalf("%v: %s", err, answer)
	}
	return tool + string(raw) + a.Result.Content[0].Text
}

// What a first result takes: the program from its start, Node, and run_js of a server that runs.
func BenchmarkJSStart(b *testing.B) {
	dir := b.TempDir()
	file := filepath.Join(dir, "script.mjs")
	if err := os.WriteFile(file, []byte("console.log(6 * 7)"), 0o600); err != nil {
		b.Fatal(err)
	}
	data, s := filepath.Join(b.TempDir(), "data"), serveFor(b, b.TempDir())
	byTurns(b, timed{"ours-ms", func() float64 { ms, _ := milliseconds(b, ourScript(b, file, dir, data)); return ms }},
		timed{"node-ms", func() float64 { ms, _ := milliseconds(b, nodeScript(b, file, dir)); return ms }},
		timed{"run_js-ms", func() float64 {
			begin := time.Now()
			s.call("run_js", map[string]string{"code": "console.log(6 * 7)"})
			return float64(time.Since(begin).Microseconds()) / 1000
		}})
}

// fs.readFile of 4 KB in a loop, as the script's own clock has it.
func BenchmarkJSReadFile(b *testing.B) {
	dir := b.TempDir()
	file := filepath.Join(dir, "script.mjs")
	for name, text := range map[string]string{"script.mjs": `const n = 3000;
for (let i = 0; i < 100; i++) await fs.readFile("four.txt");
const begin = Date.now();
for (let i = 0; i < n; i++) await fs.readFile("four.txt");
console.log(1000 * (Date.now() - begin) / n);`, "four.txt": strings.Repeat("a line of text of forty-one characters\n", 106)[:4096]} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	said := func(cmd *exec.Cmd) float64 {
		_, out := milliseconds(b, cmd)
		us, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
		if err != nil {
			b.Fatal(err)
		}
		return us
	}
	data := filepath.Join(b.TempDir(), "data")
	byTurns(b, timed{"ours-us", func() float64 { return said(ourScript(b, file, dir, data)) }},
		timed{"node-us", func() float64 { return said(nodeScript(b, file, dir)) }})
}

const rewriting = `for (const f of await fs.readdir(".")) {
  const s = await fs.readFile(f);
  const t = s.replace('from "./util"', 'from "#util"');
  if (t !== s) await fs.writeFile(f, t);
}
console.log("done");`

var words = flag.String("words", "", "begin of the names of files for what a model writes and reads in BenchmarkJSRewrite, to be counted")

// 300 files rewritten: by one run_js, by 300 calls of Edit over MCP, and by Node.
func BenchmarkJSRewrite(b *testing.B) {
	fresh := func() string {
		dir := b.TempDir()
		for i := range 300 {
			text := strings.Repeat(fmt.Sprintf("export const v%d = %d;\n", i, i), 40)
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("mod%03d.ts", i)), []byte("import { clamp } from \"./util\";\n"+text), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		return dir
	}
	file := filepath.Join(b.TempDir(), "script.mjs")
	if err := os.WriteFile(file, []byte(rewriting), 0o600); err != nil {
		b.Fatal(err)
	}
	measured := func(name string, work func(s *served, dir string) string) timed {
		return timed{name + "-ms", func() float64 {
			dir := fresh()
			s := serveFor(b, dir)
			begin := time.Now()
			said := work(s, dir)
			took := time.Since(begin)
			if now, err := os.ReadFile(filepath.Join(dir, "mod299.ts")); err != nil || !strings.HasPrefix(string(now), `import { clamp } from "#util"`) {
				b.Fatalf("%s left %.100s, %v", name, now, err)
			}
			b.ReportMetric(float64(len(said)), name+"-bytes")
			if *words != "" {
				if err := os.WriteFile(*words+name, []byte(said), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			return float64(took.Milliseconds())
		}}
	}
	byTurns(b, measured("run_js", func(s *served, _ string) string {
		return s.call("run_js", map[string]string{"code": rewriting})
	}), measured("Edit", func(s *served, dir string) string {
		var all strings.Builder
		for i := range 300 {
			all.WriteString(s.call("Edit", map[string]string{"file_path": fmt.Sprintf("%s/mod%03d.ts", dir, i),
				"old_string": `from "./util"`, "new_string": `from "#util"`}))
		}
		return all.String()
	}), timed{"node-ms", func() float64 { ms, _ := milliseconds(b, nodeScript(b, file, fresh())); return ms }})
}
