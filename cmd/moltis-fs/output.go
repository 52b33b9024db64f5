package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"moltisfs/checkpoint"
	"moltisfs/internal/approval"
	"moltisfs/internal/edit"
	"moltisfs/internal/lazy"
	"moltisfs/tools"
)

// Names and contents that we show were chosen by agents. Two things keep them from speaking to the
// operator in our place: every name goes through visible, which keeps it in its line, and whatever
// reaches a terminal goes through a shownWriter. A pipe or a file gets contents as they are.

// shownOn is f. If f is a terminal, control characters are shown instead of sent.
func shownOn(f *os.File) io.Writer {
	if isTerminal(f) {
		return &shownWriter{w: f}
	}
	return f
}

type shownWriter struct {
	w    io.Writer
	rest []byte // the beginning of a character of which the last write had no more
}

func (s *shownWriter) Write(p []byte) (int, error) {
	text := append(s.rest, p...)
	whole := len(text)
	for i := max(0, whole-utf8.UTFMax+1); i < whole; i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			whole = i
		}
	}
	s.rest = append([]byte(nil), text[whole:]...)
	atWork.end()
	if _, err := io.WriteString(s.w, approval.Escape(string(text[:whole]), true)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// A working is a line on the terminal w: it tells how long the command has been at work. It shows from the second
// second on and goes for good with the first thing that is written or asked.
type working struct {
	w     io.Writer
	mu    sync.Mutex
	timer *time.Timer // nil: the line does not show, and will not
	drawn bool
}

// atWork is the line of this process; a process has one terminal.
var atWork working

// shownErr is f. If f is a terminal, the line of long work gives way to what is written.
func shownErr(f *os.File) io.Writer {
	if isTerminal(f) {
		atWork.w = f
		return &atWork
	}
	return f
}

// begin has the line tell of the command of that name, if there is a terminal.
func (p *working) begin(name string) {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	start := time.Now()
	p.timer = time.AfterFunc(2*time.Second, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.timer == nil {
			return
		}
		p.drawn = true
		fmt.Fprintf(p.w, "\r\x1b[K%s: %s has been at work for %d s", program, name, int(time.Since(start).Seconds()))
		p.timer.Reset(time.Second)
	})
}

// end takes the line away for good.
func (p *working) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	if p.drawn {
		_, _ = io.WriteString(p.w, "\r\x1b[K") // if it fails, so does what follows
		p.drawn = false
	}
}

func (p *working) Write(b []byte) (int, error) {
	p.end()
	return p.w.Write(b)
}

// ink is colour for a terminal, unless its user wants none.
func (s streams) ink(f *os.File) approval.Ink {
	term := s.env("TERM")
	return approval.Ink(isTerminal(f) && s.env("NO_COLOR") == "" && term != "" && term != "dumb")
}

// terminal is standard output where that is a terminal, else nil.
func (s streams) terminal() *os.File {
	if w, ok := s.out.(*shownWriter); ok {
		f, _ := w.w.(*os.File)
		return f
	}
	return nil
}

// width is the number of columns of help.
const width = 80

// wrap breaks the paragraphs of a text at so many columns. Lines that are indented stay as they are: they
// are examples.
func wrap(text string, columns int) string {
	var out []string
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		var line string
		flush := func() {
			if line != "" {
				out = append(out, line)
			}
			line = ""
		}
		for l := range strings.SplitSeq(paragraph, "\n") {
			if strings.HasPrefix(l, " ") {
				flush()
				out = append(out, l)
				continue
			}
			for _, word := range strings.Fields(l) {
				if line != "" && len([]rune(line))+1+len([]rune(word)) > columns {
					flush()
				}
				line = strings.TrimSpace(line + " " + word)
			}
		}
		flush()
		out = append(out, "")
	}
	return strings.Join(slices.Clip(out[:len(out)-1]), "\n")
}

// answer writes v in JSON, or for people what format says.
func (in *invocation) answer(v any, format string, args ...any) error {
	if in.given("json") {
		return writeJSON(in, v)
	}
	return in.write(fmt.Appendf(nil, format, args...))
}

// list is [] in JSON where it is empty, not null.
func list[T any](l []T) []T { return append([]T{}, l...) }

// writeJSON writes an answer for people and programs: indented, and < > & as they are.
func writeJSON(in *invocation, answer any) error {
	b, err := encoded(answer, "  ")
	if err != nil {
		return err
	}
	return in.write(b)
}

func encoded(answer any, indent string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(answer); err != nil {
		return nil, fmt.Errorf("encoding the answer: %w", err)
	}
	return b.Bytes(), nil
}

// write writes the answer of a command.
func (in *invocation) write(answer []byte) error {
	if _, err := in.out.Write(answer); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// table answers with v in JSON, or for people with the rows in columns and a line for the next page. Where there are no rows it says so
// by the words none.
func (in *invocation) table(v any, rows [][]string, next, none string) error {
	if in.given("json") {
		return writeJSON(in, v)
	}
	if len(rows) == 0 {
		in.empty(none)
	}
	return in.write([]byte(columns(rows) + more(next)))
}

// columns sets rows in columns, each as wide as its widest cell.
func columns(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // into memory
	return b.String()
}

// more is the line that says how to see the page behind the cursor next; "" for the last page.
func more(next string) string {
	if next == "" {
		return ""
	}
	return "more: --cursor " + next + "\n"
}

// narrowing are the options that choose what a list has.
var narrowing = []string{"principal", "session", "path", "contains", "turn", "tool", "label", "since", "until", "cursor"}

// empty says on standard error that a list is, and what narrows it.
func (in *invocation) empty(what string) {
	var by []string
	for _, name := range narrowing {
		if in.given(name) {
			by = append(by, "--"+name+" "+visible(in.option(name)))
		}
	}
	if len(by) > 0 {
		what += " with " + strings.Join(by, ", ")
	}
	fmt.Fprintf(in.err, "%s: %s\n", program, what)
}

// timeText is a time for people, in their zone and with it: as --since and --until take it.
func timeText(t time.Time) string { return t.Local().Format(time.RFC3339) }

// visible keeps a name, which an agent may have chosen, in its line; no terminal obeys it.
func visible(name string) string { return edit.ShownPath(name) }

// plural counts: one is the word, or words, for exactly one.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

func bytesText(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return plural(int(n), "byte", "bytes")
}

var plainWord = lazy.Regexp(`^[\w./:@%+=,-]*$`)

// shellWord writes a word as a shell reads it.
func shellWord(s string) string {
	if plainWord().MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// controlling opens the controlling terminal.
func controlling() (r, w *os.File, err error) {
	atWork.end()
	in, out := "/dev/tty", "/dev/tty"
	if runtime.GOOS == "windows" {
		in, out = "CONIN$", "CONOUT$"
	}
	if r, err = os.OpenFile(in, os.O_RDONLY, 0); err != nil {
		return nil, nil, err
	}
	if w, err = os.OpenFile(out, os.O_WRONLY, 0); err != nil {
		_ = r.Close() // nothing was read
		return nil, nil, err
	}
	return r, w, nil
}

// hasTerminal says whether there is a terminal to ask on.
func hasTerminal() bool {
	r, w, err := controlling()
	if err == nil {
		_, _ = r.Close(), w.Close() // nothing was read or written
	}
	return err == nil
}

// confirmed asks a question on the controlling terminal. Where there is none, and after Ctrl-C, the
// answer is no.
func (in *invocation) confirmed(ctx context.Context, question string) bool {
	r, w, err := controlling()
	if err != nil {
		return false
	}
	defer r.Close()
	defer w.Close()
	if _, err := io.WriteString(w, in.ink(w).Strong(question)+" [y/N] "); err != nil {
		return false
	}
	typed := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(r).ReadString('\n')
		typed <- line
	}()
	select {
	case line := <-typed:
		if !strings.HasSuffix(line, "\n") {
			_, _ = io.WriteString(w, "\n") // Ctrl-D; if it fails, the answer holds
		}
		answer := strings.ToLower(strings.TrimSpace(line))
		return answer == "y" || answer == "yes"
	case <-ctx.Done():
		_, _ = io.WriteString(w, "\n") // if it fails, the answer holds
		return false
	}
}

// isTerminal says whether a person may be at the other end of f.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a service has it as standard input, under that name
	return err != nil || !os.SameFile(info, null)
}

// unsaid refuses what needs a yes that nobody has said.
func unsaid(what string) error {
	return &exitError{exitRefused, what, "--dry-run shows what would go; --yes does it",
		tools.KindApprovalDenied}
}

// toolOf is the tool or else the kind of call.
func toolOf(c *checkpoint.Checkpoint) string { return visible(cmp.Or(c.Tool, c.Kind)) }

// likeThis is a command line with those of our options that say where, and in whose history.
func (in *invocation) likeThis(command string) string {
	line := program + " " + command
	for _, name := range []string{"config", "data-dir", "root", "principal", "session", "sandbox", "identity"} {
		if in.given(name) {
			line += " --" + name + " " + shellWord(in.option(name))
		}
	}
	return line
}
