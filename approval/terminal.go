package approval

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"unicode"
)

// Terminal asks on a terminal, or on any in and out. It shows the tool, the paths, the size of the
// change, the warnings and the diff. "y" and "yes" approve. When part of a long diff was left out,
// "?" shows the rest; until then only "yes, unseen" approves. Anything else denies, and so does the
// end of input.
//
// Everything shown is escaped. An answer belongs to the question that was on screen: a line begun
// for an earlier question, which has timed out, never answers a later one. When in is a terminal,
// nor does anything typed before the question was shown.
func Terminal(in io.Reader, out io.Writer) Approver {
	t := &terminal{in: bufio.NewReader(in), out: out, turn: make(chan struct{}, 1)}
	t.tty, _ = in.(*os.File)
	return t
}

// diffLines is how much of a diff is shown at first. The hunks after it are counted.
const diffLines = 60

type terminal struct {
	in   *bufio.Reader
	tty  *os.File // in, when it is a file
	out  io.Writer
	turn chan struct{} // holds a token while a question is put

	mu      sync.Mutex
	pending chan line // the read in progress, or nil; it cannot be cancelled
}

type line struct {
	text string
	err  error
}

func (t *terminal) Ask(ctx context.Context, q Question) (Answer, error) {
	if !q.Expires.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, q.Expires)
		defer cancel()
	}
	if !t.takeTurn(ctx) {
		a, _ := ContextAnswer(ctx)
		return a, nil
	}
	defer func() { <-t.turn }()

	stale := t.dropLateLine()
	if !stale && t.tty != nil && discardTypeahead(t.tty) {
		_, _ = t.in.Discard(t.in.Buffered()) // what is buffered was typed before, too
	}
	diff, unseen := splitDiff(q), Unseen(q, diffLines)
	if _, err := io.WriteString(t.out, "\n"+Card(q, diffLines)); err != nil {
		return Answer{}, fmt.Errorf("showing the question: %w", err)
	}
	for {
		choices := "[y/N]"
		if unseen > 0 {
			choices = fmt.Sprintf(`[? shows the other %d lines/"yes, unseen"/N]`, unseen)
		}
		if _, err := fmt.Fprintf(t.out, "Allow this change? %s ", choices); err != nil {
			return Answer{}, fmt.Errorf("showing the question: %w", err)
		}
		select {
		case <-ctx.Done():
			a, _ := ContextAnswer(ctx)
			_, _ = fmt.Fprintf(t.out, "\n%s: not changed\n", a.Reason) // if it fails, the answer stands
			return a, nil
		case l := <-t.nextLine():
			t.lineTaken()
			if a, over := ContextAnswer(ctx); over { // the context ended at the same moment
				return a, nil
			}
			answer := strings.ToLower(strings.TrimSpace(l.text))
			if l.err != nil && answer == "" {
				return Answer{Decision: Denied, By: "terminal", Reason: "end of input"}, nil
			}
			if stale {
				stale = false
				again := "That line was begun before this question was shown; please answer again.\n"
				if _, err := io.WriteString(t.out, again); err != nil {
					return Answer{}, fmt.Errorf("showing the question: %w", err)
				}
				continue
			}
			switch {
			case answer == "?":
				rest := diff[len(diff)-cmp.Or(unseen, len(diff)):]
				if _, err := io.WriteString(t.out, renderDiff(rest)); err != nil {
					return Answer{}, fmt.Errorf("showing the diff: %w", err)
				}
				unseen = 0
			case unseen > 0 && (answer == "y" || answer == "yes"):
				_, err := fmt.Fprintf(t.out, "%d lines of the diff have not been shown.\n", unseen)
				if err != nil {
					return Answer{}, fmt.Errorf("showing the question: %w", err)
				}
			case unseen > 0 && yesUnseen(answer):
				by := fmt.Sprintf("terminal, with %d lines unseen", unseen)
				return Answer{Decision: Approved, By: by}, nil
			case answer == "y", answer == "yes", yesUnseen(answer):
				return Answer{Decision: Approved, By: "terminal"}, nil
			default:
				return Answer{Decision: Denied, By: "terminal", Reason: reason(answer, l.text)}, nil
			}
		}
	}
}

// takeTurn waits until no other question is put. false means that ctx was done first.
func (t *terminal) takeTurn(ctx context.Context) bool {
	if ctx.Err() != nil { // a call that is done must not get its turn by chance
		return false
	}
	select {
	case t.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func yesUnseen(answer string) bool {
	words := strings.FieldsFunc(answer, func(r rune) bool { return !unicode.IsLetter(r) })
	return strings.Join(words, " ") == "yes unseen"
}

// reason passes on what was typed instead of a bare no. "no, use the other file" helps the model.
func reason(answer, typed string) string {
	switch answer {
	case "", "n", "no":
		return ""
	}
	return Escape(strings.TrimSpace(typed), false)
}

// dropLateLine forgets a line that came after its question had timed out. It reports whether one is
// still being read.
func (t *terminal) dropLateLine() (pending bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending == nil {
		return false
	}
	select {
	case <-t.pending:
		t.pending = nil
		return false
	default:
		return true
	}
}

// nextLine gives the read in progress, or begins one. Lines are read only on demand: of piped input
// each question takes one line.
func (t *terminal) nextLine() <-chan line {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending == nil {
		c := make(chan line, 1)
		t.pending = c
		go func() {
			text, err := t.readLine()
			c <- line{text, err}
		}()
	}
	return t.pending
}

func (t *terminal) lineTaken() {
	t.mu.Lock()
	t.pending = nil
	t.mu.Unlock()
}

// readLine reads to the end of the line and keeps only its beginning. An answer is short, and input
// without line ends must not fill the memory.
func (t *terminal) readLine() (string, error) {
	var text []byte
	for {
		part, more, err := t.in.ReadLine()
		if len(text) < 1<<10 {
			text = append(text, part...)
		}
		if err != nil || !more {
			return string(text), err
		}
	}
}
