// Package browser drives the operators' page in a real Chromium, headless, against the built program on loopback.
package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var (
	drive   = flag.Bool("browser", false, "run these tests: they take a Chromium, half a minute and a machine that does nothing else")
	shots   = flag.String("shots", "", "leave screenshots in this directory")
	place   = flag.String("place", "", "make the tree of one test in this directory, for pictures")
	program = flag.String("program", "", "drive this program in the place of one that is built")
)

var built struct {
	program string
	browser context.Context
	skip    string
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

// run builds the program and starts the browser, once for all tests.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "moltis-fs-browser")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	chromium := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if chromium, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if !*drive {
		built.skip = "SKIPPED: these tests run with -browser only, as .ci/run has it"
		return m.Run()
	}
	if chromium == "" {
		built.skip = "SKIPPED: there is no chromium; .ci/run installs it where it can"
		return m.Run()
	}
	if built.program = *program; built.program == "" {
		built.program = filepath.Join(dir, "moltis-fs")
	}
	if out, err := build(); err != nil {
		fmt.Fprintf(os.Stderr, "building the program: %v\n%s", err, out)
		return 1
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(chromium), chromedp.UserDataDir(filepath.Join(dir, "profile"))}
	for _, f := range []string{"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "no-default-browser-check", "disable-background-networking",
		"disable-component-update", "disable-sync", "disable-dev-shm-usage", "disable-extensions", "mute-audio", "hide-scrollbars"} {
		options = append(options, chromedp.Flag(f, true))
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	ctx, cancel := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {})) // it does not know all events of newer browsers
	defer cancel()
	if err := chromedp.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "starting chromium:", err)
		return 1
	}
	built.browser = ctx
	return m.Run()
}

func build() ([]byte, error) {
	if *program != "" {
		return nil, nil
	}
	return exec.Command("go", "build", "-o", built.program, "moltisfs/cmd/moltis-fs").CombinedOutput()
}

// dependOnSources looks at every source file of the program, for the go command to see that the results rest on them.
var dependOnSources = sync.OnceValue(func() error {
	return filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && len(d.Name()) > 2 && (d.Name()[0] == '.' || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if err == nil && slices.Contains([]string{".go", ".js", ".css", ".html", ".mod"}, filepath.Ext(path)) {
			_, err = os.Stat(path)
		}
		return err
	})
})

// A world is a tree, a server of it with the page, and an agent's token.
type world struct {
	t               *testing.T
	root, data, url string
	agent, code     string
	server          *exec.Cmd
	said            *bufio.Reader
	mu              sync.Mutex
	errors          []string // of the page: exceptions, and what the Content-Security-Policy has stopped
	page            context.Context
}

// start starts a server with these lines in its configuration besides; a later one does not replace an earlier one.
func start(t *testing.T, config string) *world {
	t.Helper()
	if built.skip != "" {
		t.Skip(built.skip)
	}
	t.Parallel()
	if err := dependOnSources(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if *place != "" {
		dir = *place
	}
	w := &world{t: t, root: filepath.Join(dir, "shop"), data: filepath.Join(dir, "data")}
	file := filepath.Join(dir, "moltis.toml")
	w.write("src/cart/total.go", "package cart\n\nfunc Total(l []Line) int {\n\tsum := 0\n\tfor _, x := range l {\n\t\tsum += x.Price\n\t}\n\treturn sum\n}\n")
	w.write("docs/readme.md", "# Shop\r\nIt sells.\r\nOpen daily.\r\n")
	w.must(os.WriteFile(file, fmt.Appendf(nil, "[tools.fs]\nworkspace_root = %q\nallow_paths = [%q]\ndeny_paths = [%q]\ncheckpoint_before_mutation = true\n"+
		"must_read_before_write = false\n%s\n", w.root, w.root+"/**", w.root+"/**/*.log", config), 0o600))
	w.agent = w.run("token", "create", "--principal", "ci-bot")
	w.serve(file, "127.0.0.1:0")
	return w
}

func (w *world) serve(config, listen string) {
	w.t.Helper()
	w.server = exec.Command(built.program, "serve", "--console", "--config", config, "--data-dir", w.data, "--listen", listen)
	said, err := w.server.StderrPipe()
	w.must(err)
	w.must(w.server.Start())
	server := w.server
	w.t.Cleanup(func() { // in order: what the page has asked for last may be making files
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
	})
	w.said = bufio.NewReader(said)
	all := ""
	for at := regexp.MustCompile(`(http://\S+)/console/#code=(\S+)`); ; {
		line, err := w.said.ReadString('\n')
		all += line
		if m := at.FindStringSubmatch(line); m != nil {
			w.url, w.code = m[1], m[2]
			break
		}
		if err != nil {
			w.t.Fatalf("the server says %s", all)
		}
	}
	go io.Copy(io.Discard, w.said) //nolint:errcheck // it ends with the server
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) run(args ...string) string {
	w.t.Helper()
	var errs bytes.Buffer
	c := exec.Command(built.program, append(args, "--data-dir", w.data)...)
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		w.t.Fatalf("%v: %v\n%s%s", args, err, out, &errs)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.root, name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, []byte(text), 0o644))
}

func (w *world) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(w.root, name)) //nolint:errcheck // "" is no file
	return string(text)
}

// call sends a call of the agent; its answer comes by the channel.
func (w *world) call(tool string, arguments map[string]any) <-chan string {
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "capabilities.invoke", "params": map[string]any{"capability": tool, "arguments": arguments}})
	w.must(err)
	out := make(chan string, 1)
	go func() {
		q, _ := http.NewRequest(http.MethodPost, w.url+"/rpc", bytes.NewReader(body)) //nolint:errcheck // it is one
		q.Header.Set("Authorization", "Bearer "+w.agent)
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("User-Agent", "curl/8.10")
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			out <- err.Error()
			return
		}
		defer a.Body.Close()
		text, _ := io.ReadAll(a.Body) //nolint:errcheck // then it is short
		out <- string(text)
	}()
	return out
}

func (w *world) writes(name, text string) <-chan string {
	return w.call("Write", map[string]any{"file_path": filepath.Join(w.root, name), "content": text, "create_parents": true})
}

// answered waits for the answer of a call.
func (w *world) answered(c <-chan string, want string) {
	w.t.Helper()
	select {
	case got := <-c:
		if !strings.Contains(got, want) {
			w.t.Fatalf("the agent is answered %s, and not %q", got, want)
		}
	case <-time.After(time.Minute):
		w.t.Fatalf("the agent has no answer; on the page is:\n%s", w.text("body"))
	}
}

// tab opens a window of its own; a page in the background would not be drawn. The server has a port, and so cookies, of its own.
func (w *world) tab(width, height int64, scheme string) {
	w.t.Helper()
	browser := chromedp.FromContext(built.browser).Browser
	id, err := target.CreateTarget("about:blank").WithNewWindow(true).Do(cdp.WithExecutor(built.browser, browser))
	w.must(err)
	tab, cancel := chromedp.NewContext(built.browser, chromedp.WithTargetID(id))
	w.t.Cleanup(cancel)
	w.must(chromedp.Run(tab)) // the tab lives as long as its first context
	w.page, cancel = context.WithTimeout(tab, 3*time.Minute)
	w.t.Cleanup(cancel)
	chromedp.ListenTarget(tab, func(ev any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			w.errors = append(w.errors, ev.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			failed := ev.Entry.Source == log.SourceNetwork && regexp.MustCompile(`/(sign-in|who|events|rpc)$`).MatchString(ev.Entry.URL) // which tests provoke
			if ev.Entry.Level == log.LevelError && !failed {
				w.errors = append(w.errors, ev.Entry.Text+" "+ev.Entry.URL)
			}
		}
	})
	w.do(emulation.SetDeviceMetricsOverride(width, height, 1, false),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
}

// open shows the page, signed in by the code.
func (w *world) open(width, height int64, scheme string) {
	w.t.Helper()
	w.tab(width, height, scheme)
	w.do(chromedp.Navigate(w.url + "/console/#code=" + w.code))
	w.until("it is signed in", `document.getElementById('nav-waiting') && !document.getElementById('top').hidden`)
	w.until("it hears the server", `document.getElementById('live').dataset.state === 'on'`)
}

func (w *world) do(actions ...chromedp.Action) {
	w.t.Helper()
	if err := chromedp.Run(w.page, actions...); err != nil {
		var body string
		again, cancel := context.WithTimeout(context.WithoutCancel(w.page), 2*time.Second)
		defer cancel()
		_ = chromedp.Run(again, chromedp.Text("body", &body, chromedp.ByQuery))
		w.t.Fatalf("%v; on the page is:\n%s\n%v", err, body, w.errors)
	}
}

// is evaluates an expression on the page.
func (w *world) is(expression string) (out bool) {
	w.t.Helper()
	w.do(chromedp.Evaluate("!!("+expression+")", &out))
	return out
}

func (w *world) value(expression string) (out string) {
	w.t.Helper()
	w.do(chromedp.Evaluate("String("+expression+")", &out))
	return out
}

// until waits for an expression to hold.
func (w *world) until(what, expression string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.page, time.Minute)
	defer cancel()
	if err := chromedp.Run(ctx, chromedp.Poll("!!("+expression+")", nil, chromedp.WithPollingMutation(), chromedp.WithPollingTimeout(time.Minute))); err != nil {
		w.t.Fatalf("waiting until %s: %v; on the page is:\n%s\n%v", what, err, w.text("body"), w.errors)
	}
}

func (w *world) shows(text string) {
	w.t.Helper()
	w.until("it shows "+text, fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

func (w *world) text(selector string) (out string) {
	w.t.Helper()
	w.do(chromedp.Evaluate(fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector), &out))
	return out
}

// press presses one key; its text comes only if the page does not take the key.
func (w *world) press(key string) {
	w.t.Helper()
	down, up := input.DispatchKeyEvent(input.KeyDown).WithKey(key), input.DispatchKeyEvent(input.KeyUp).WithKey(key)
	if k := kb.Keys[[]rune(key)[0]]; k != nil {
		down = down.WithKey(k.Key).WithCode(k.Code).WithText(k.Text).WithWindowsVirtualKeyCode(k.Windows)
		up = up.WithKey(k.Key).WithCode(k.Code).WithWindowsVirtualKeyCode(k.Windows)
	}
	w.do(down, up)
}

// types writes words where the focus is, and presses Enter.
func (w *world) types(words string) { w.t.Helper(); w.do(input.InsertText(words)); w.press(kb.Enter) }

func (w *world) click(selector string) {
	w.t.Helper()
	w.do(chromedp.Click(selector, chromedp.ByQuery, chromedp.NodeVisible))
}

// shot leaves a screenshot, if there is a place for it.
func (w *world) shot(name string) {
	w.t.Helper()
	if *shots == "" {
		return
	}
	var picture []byte
	w.do(chromedp.CaptureScreenshot(&picture))
	w.must(os.WriteFile(filepath.Join(*shots, name+".png"), picture, 0o644))
}

// view shows a view by its address.
func (w *world) view(name string) {
	w.t.Helper()
	w.do(chromedp.Evaluate(fmt.Sprintf("location.hash = '#/%s'", name), nil))
	w.until("it is there", fmt.Sprintf(`document.querySelector('#main h1')?.innerText.toLowerCase() === %q && document.querySelector('#main h1 ~ *')`, name))
}

// fine ends a test: nothing has gone wrong on the page, and nothing reaches over its edge.
func (w *world) fine() {
	w.t.Helper()
	if w.is(`document.documentElement.scrollWidth > innerWidth`) {
		w.t.Errorf("it scrolls sideways: %s", w.value(`[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth).map(e => e.outerHTML.slice(0, 120)).join('\n')`))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.errors) > 0 {
		w.t.Errorf("on the page went wrong: %v", w.errors)
	}
}
