package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"moltisfs/internal/approval"
	"moltisfs/internal/edit"
	"moltisfs/internal/nearest"
	"moltisfs/internal/tty"
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
	if _, err := io.WriteString(s.w, approval.Escape(string(text[:whole]), true)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// What a terminal gets beyond text: colour, a pager, and lines that fit.

// ink is colour for a terminal, unless its user wants none.
func (s streams) ink(f *os.File) approval.Ink {
	term := s.env("TERM")
	return approval.Ink(isTerminal(f) && s.env("NO_COLOR") == "" && term != "" && term != "dumb")
}

// page shows a text on a terminal, through the pager where it is longer than the screen. What is
// in it must be escaped. Where no pager starts, the text is written as it is.
func (s streams) page(f *os.File, text string) error {
	_, rows := tty.Size(f)
	if rows > 0 && strings.Count(text, "\n") >= rows {
		words := strings.Fields(s.env("PAGER"))
		if len(words) == 0 {
			words = []string{"less", "-R"}
		}
		pager := exec.Command(words[0], words[1:]...)
		pager.Stdin, pager.Stdout, pager.Stderr = strings.NewReader(text), f, f
		if words[0] == "less" && s.env("LESS") == "" {
			pager.Env = append(os.Environ(), "LESS=FRX")
		}
		err := pager.Run()
		if _, ran := errors.AsType[*exec.ExitError](err); err == nil || ran {
			return nil // who quits it has seen enough
		}
	}
	if _, err := f.WriteString(text); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// terminal is standard output where that is a terminal, else nil.
func (s streams) terminal() *os.File {
	if w, ok := s.out.(*shownWriter); ok {
		f, _ := w.w.(*os.File)
		return f
	}
	return nil
}

// width is that of the terminal, at most 100: longer lines are hard to read.
func (s streams) width() int {
	const most, least = 100, 40
	if f := s.terminal(); f != nil {
		if columns, _ := tty.Size(f); columns > 0 {
			return min(max(columns, least), most)
		}
	}
	return most
}

// wrap breaks the paragraphs of a text at a width. Lines that are indented stay as they are: they
// are examples.
func wrap(text string, width int) string {
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
				if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
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

// shownErr is f. On a terminal it is a bar too, which gives way to whatever is written.
func shownErr(f *os.File) io.Writer {
	if isTerminal(f) {
		return &bar{w: f, now: time.Now}
	}
	return f
}

// progressOn draws a bar for long work on w; it is nil if w is no terminal.
func progressOn(w io.Writer) func(what string, done, total int) {
	if b, ok := w.(*bar); ok {
		return b.step
	}
	return nil
}

// working shows on a terminal that a call goes on, until stop is called: as a bar where it is known
// how far it is, else as the seconds that it takes.
func (s streams) working() (stop func()) {
	b, ok := s.err.(*bar)
	if !ok {
		return func() {}
	}
	end := make(chan struct{})
	b.resume()
	go func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(barEvery):
				b.tick()
			}
		}
	}()
	return func() { close(end); b.hold() }
}

// asideBar keeps the bar away while the terminal is somebody else's.
func (s streams) asideBar() (back func()) {
	b, ok := s.err.(*bar)
	if !ok {
		return func() {}
	}
	b.hold()
	return b.resume
}

// bar is one line that is drawn over and over. It may be used from several goroutines.
type bar struct {
	w   io.Writer
	now func() time.Time

	mu    sync.Mutex
	what  string
	begun time.Time
	drawn time.Time
	quiet time.Time // since when nothing was told; zero: a tick draws nothing
	shown bool
}

const (
	barAfter  = 300 * time.Millisecond // what takes less needs no bar
	barEvery  = 100 * time.Millisecond
	quietMost = time.Second
	barWidth  = 30
)

func (b *bar) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	return b.w.Write(p)
}

func (b *bar) erase() {
	if b.shown {
		fmt.Fprint(b.w, "\r\x1b[K")
	}
	b.shown = false
}

func (b *bar) draw(format string, args ...any) {
	b.drawn, b.shown = b.now(), true
	fmt.Fprintf(b.w, "\r\x1b[K"+format, args...)
}

// hold erases the bar, and ticks draw nothing until resume.
func (b *bar) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	b.quiet = time.Time{}
}

func (b *bar) resume() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.quiet = b.now()
}

func (b *bar) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.quiet.IsZero() || b.now().Sub(b.quiet) < quietMost || b.now().Sub(b.drawn) < quietMost {
		return
	}
	b.draw("working: %d s", int(b.now().Sub(b.quiet).Seconds()))
}

func (b *bar) step(what string, done, total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if what != b.what {
		b.what, b.begun, b.drawn = what, now, time.Time{}
	}
	end := total > 0 && done >= total
	if now.Sub(b.begun) < barAfter || !end && now.Sub(b.drawn) < barEvery {
		return
	}
	if !b.quiet.IsZero() {
		b.quiet = now
	}
	if end {
		b.erase()
		b.what = ""
		return
	}
	if total <= 0 {
		b.draw("%s: %d", what, done)
		return
	}
	full := min(done*barWidth/total, barWidth)
	b.draw("%s [%s%s] %3d%% %d/%d", what, strings.Repeat("#", full),
		strings.Repeat(".", barWidth-full), min(done*100/total, 100), done, total)
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

// write is the answer of a command.
func (in *invocation) write(answer []byte) error {
	if _, err := in.out.Write(answer); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// empty says on standard error that a list is, and what narrows it.
func (in *invocation) empty(what string, narrowing ...string) {
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
	if tool := in.option("tool"); tool != "" {
		var names []string
		for _, d := range tools.Definitions() {
			names = append(names, d.Name)
		}
		if near := nearest.Of(tool, names); near != "" && near != tool {
			fmt.Fprintf(in.err, "hint: did you mean --tool %s?\n", near)
		}
	}
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

var plainWord = regexp.MustCompile(`^[\w./:@%+=,-]*$`)

// shellWord writes a word as a shell reads it.
func shellWord(s string) string {
	if plainWord.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// controlling opens the controlling terminal.
func controlling() (r, w *os.File, err error) {
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
			_, _ = io.WriteString(w, "\n") // Ctrl-D; if it fails, the answer stands
		}
		answer := strings.ToLower(strings.TrimSpace(line))
		return answer == "y" || answer == "yes"
	case <-ctx.Done():
		_, _ = io.WriteString(w, "\n") // if it fails, the answer stands
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
