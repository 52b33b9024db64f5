package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	processes  = flag.Int("processes", 8, "processes that count at once")
	increments = flag.Int("increments", 12, "what each of them adds, one by one")
	rebuilt    = flag.Bool("rebuilt", false, "count with programs built without the atomic exchange, too, and without locks: .ci/run does")
)

// buildBinary builds the command with some build tags.
func buildBinary(t *testing.T, tags string) string {
	t.Helper()
	if tags == "" {
		return binary(t)
	}
	must(t, dependOnSources("../.."))
	name := filepath.Join(t.TempDir(), "moltis-fs")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	out, err := exec.Command("go", "build", "-tags", tags, "-ldflags", "-s -w", "-o", name, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return name
}

// counter is one process that counts: it reads, and edits what it has read, as an agent would, and again when somebody was faster.
type counter struct {
	to       io.WriteCloser
	from     *bufio.Scanner
	refusals map[string]int
	rooted   bool
}

type payloadSeen struct{ Kind, Error, Content string }

func (c *counter) call(tool string, args any) (p payloadSeen, err error) {
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": map[string]any{"name": tool, "arguments": args}})
	if err != nil {
		return p, err
	}
	answer, err := c.ask(string(raw))
	if err != nil {
		return p, err
	}
	var a struct {
		Result struct{ StructuredContent *payloadSeen }
	}
	if err := json.Unmarshal(answer, &a); err != nil || a.Result.StructuredContent == nil {
		return p, fmt.Errorf("%w: %s", err, answer)
	}
	return *a.Result.StructuredContent, nil
}

func (c *counter) ask(line string) (answer []byte, err error) {
	if _, err := io.WriteString(c.to, line+"\n"); err != nil {
		return nil, err
	}
	if !c.from.Scan() {
		return nil, fmt.Errorf("no answer: %w", io.ErrUnexpectedEOF)
	}
	return c.from.Bytes(), nil
}

var count = regexp.MustCompile(`count = (\d+);`)

func (c *counter) run(file string, n int) error {
	pause := time.Millisecond
	if _, err := c.ask(readyMCP); err != nil {
		return err
	}
	for n > 0 {
		seen, err := c.call("Read", map[string]any{"file_path": file})
		if err != nil {
			return err
		}
		// Without the kernel's help a file that is replaced just now cannot always be opened. It has a
		// second name for a moment, and an ordinary user may not see whether a denied tree has it too.
		if k := seen.Kind; k == "conflict" || c.rooted && k == "path_denied" {
			c.refusals[k+" of Read"]++
			continue
		}
		m := count.FindStringSubmatch(seen.Content)
		if m == nil {
			return fmt.Errorf("read %+v", seen)
		}
		value, err := strconv.Atoi(m[1])
		if err != nil {
			return err
		}
		done, err := c.call("Edit", map[string]any{"file_path": file, "old_string": m[0], "new_string": fmt.Sprintf("count = %d;", value+1)})
		if err != nil {
			return err
		}
		switch k := done.Kind; {
		case k == "edit":
			n--
			pause = time.Millisecond
		case k == "no_match", k == "modified_since_read", k == "conflict", c.rooted && k == "path_denied":
			c.refusals[k]++           // somebody was faster
			time.Sleep(rand.N(pause)) // they would meet again and again
			pause = min(2*pause, 128*time.Millisecond)
		default:
			return fmt.Errorf("edit: %+v", done)
		}
	}
	return nil
}

// countTogether lets many processes count in one file. It gives what that comes to, what is left
// beside the file, and the first error that a process met.
func countTogether(t *testing.T, binary string, processes, increments int) (value int, left []os.DirEntry, failed error) {
	t.Helper()
	dir := realDir(t)
	root := filepath.Join(dir, "ws")
	file := filepath.Join(root, "counter.go")
	config := filepath.Join(dir, "moltis.toml")
	for name, text := range map[string]string{
		file:   "package counter\n\nvar count = 0;\n" + strings.Repeat("// filler\n", 20),
		config: fmt.Sprintf("[tools.fs]\nworkspace_root = %q\nallow_paths = [%q]\nrequire_approval = false\n", root, root+"/**"),
	} {
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte(text), 0o644))
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	refusals := map[string]int{}
	for i := range processes {
		cmd := exec.Command(binary, "mcp", "--structured", "always", "--config", config, "--data-dir", filepath.Join(dir, "data"), "--session", fmt.Sprint("s", i))
		var stderr strings.Builder
		cmd.Stderr = &stderr
		to, err := cmd.StdinPipe()
		must(t, err)
		from, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		wg.Go(func() {
			c := &counter{to: to, from: bufio.NewScanner(from), refusals: map[string]int{}, rooted: strings.Contains(t.Name(), "rooted")}
			c.from.Buffer(nil, 1<<20)
			err := c.run(file, increments)
			to.Close()
			cmd.Wait() //nolint:errcheck // a refusal is an exit status too
			mu.Lock()
			defer mu.Unlock()
			if err != nil && failed == nil {
				failed = fmt.Errorf("process %d: %w\n%s", i, err, stderr.String())
			}
			for k, n := range c.refusals {
				refusals[k] += n
			}
		})
	}
	wg.Wait()
	text, err := os.ReadFile(file)
	must(t, err)
	entries, err := os.ReadDir(root)
	must(t, err)
	left = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.Name() == filepath.Base(file) })
	m := count.FindSubmatch(text)
	if m == nil {
		t.Fatalf("the file has %q", text)
	}
	value, _ = strconv.Atoi(string(m[1]))
	t.Logf("%d processes × %d: %d, refused on the way: %v", processes, increments, value, refusals)
	return value, left, failed
}

// TestNoLostUpdates: many processes read and edit one file; no edit that was reported as done is lost.
func TestNoLostUpdates(t *testing.T) {
	t.Parallel()
	kinds := []string{"", "rooted"} // with the atomic exchange of Linux, and without
	if !*rebuilt {
		kinds = kinds[:1]
	}
	for _, tags := range kinds {
		t.Run("tags="+tags, func(t *testing.T) {
			t.Parallel()
			got, left, err := countTogether(t, buildBinary(t, tags), *processes, *increments)
			if want := *processes * *increments; err != nil || got != want || len(left) > 0 {
				t.Errorf("counted to %d, not %d; left beside the file: %v; %v", got, want, left, err)
			}
		})
	}
}

// TestLostUpdatesWithoutLocks is the control: with the locks switched off, where there is no atomic exchange either, updates get lost.
func TestLostUpdatesWithoutLocks(t *testing.T) {
	if !*rebuilt {
		t.Skip("SKIPPED: -rebuilt builds the program without locks")
	}
	t.Parallel()
	binary := buildBinary(t, "rooted nolock")
	each := 3 * *increments // rather one long try than many short ones
	for range 20 {
		if got, _, err := countTogether(t, binary, *processes, each); got != *processes*each {
			t.Log(err) // a process that finds the file gone is as good a proof
			return
		}
	}
	t.Error("nothing was lost without locks: the test proves nothing")
}
