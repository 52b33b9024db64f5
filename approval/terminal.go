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

// Terminal asks on a terminal, or whatever in and out are. It shows the tool, the paths, the size of the change, the warnings and
// the diff, and takes "y" or "yes" for yes. Of a long diff the rest is shown by "?"; before that only "yes, unseen" is a yes.
// Anything else, and the end of input, is no.
//
// Everything shown is escaped. A line that was begun for an earlier question, which ran out meanwhile, never answers a
// later one; and when in is a terminal, neither does what was typed before the question was shown.
func Terminal(in io.Reader, out io.Writer) Approver {
	t := &terminal{in: bufio.NewReader(in), out: out, turn: make(chan struct{}, 1)}
	t.tty, _ = in.(*os.File)
	return t
}

// diffLines is how much of a diff is shown unasked. The hunks that follow are counted.
const diffLines = 60

type terminal struct {
	in   *bufio.Reader
	tty  *os.File // in, when it is a file
	out  io.Writer
	turn chan struct{} // holds a token while a question is put

	mu      sync.Mutex
	reading chan line // the read under way, nil when there is none: it can't be given up, only waited for
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
	select { // a call that is over must not win the turn by chance
	case <-ctx.Done():
		a, _ := ended(ctx)
		return a, nil
	default:
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		a, _ := ended(ctx)
		return a, nil
	}

	stale := t.drop()
	if !stale && t.tty != nil && typedAhead(t.tty) {
		_, _ = t.in.Discard(t.in.Buffered()) // what is buffered is there already
	}
	diff, unseen := diffOf(q), Unseen(q, diffLines)
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
			a, _ := ended(ctx)
			_, _ = fmt.Fprintf(t.out, "\n%s: not changed\n", a.Reason) // best effort, the decision stands
			return a, nil
		case l := <-t.next():
			t.done()
			if a, over := ended(ctx); over { // both were ready
				return a, nil
			}
			answer := strings.ToLower(strings.TrimSpace(l.text))
			if l.err != nil && answer == "" {
				return Answer{Decision: Denied, By: "terminal", Reason: "end of input"}, nil
			}
			if stale {
				stale = false
				if _, err := io.WriteString(t.out, "That line was begun before this question was shown; please answer again.\n"); err != nil {
					return Answer{}, fmt.Errorf("showing the question: %w", err)
				}
				continue
			}
			switch {
			case answer == "?":
				if _, err := io.WriteString(t.out, whole(diff[len(diff)-cmp.Or(unseen, len(diff)):])); err != nil {
					return Answer{}, fmt.Errorf("showing the diff: %w", err)
				}
				unseen = 0
			case unseen > 0 && (answer == "y" || answer == "yes"):
				if _, err := fmt.Fprintf(t.out, "%d lines of the diff have not been shown.\n", unseen); err != nil {
					return Answer{}, fmt.Errorf("showing the question: %w", err)
				}
			case unseen > 0 && yesUnseen(answer):
				return Answer{Decision: Approved, By: fmt.Sprintf("terminal, with %d lines unseen", unseen)}, nil
			case answer == "y", answer == "yes", yesUnseen(answer):
				return Answer{Decision: Approved, By: "terminal"}, nil
			default:
				return Answer{Decision: Denied, By: "terminal", Reason: reason(answer, l.text)}, nil
			}
		}
	}
}

func yesUnseen(answer string) bool {
	return strings.Join(strings.FieldsFunc(answer, func(r rune) bool { return !unicode.IsLetter(r) }), " ") == "yes unseen"
}

// reason passes on what was typed instead of a bare no: "no, use the other file" helps the model.
func reason(answer, typed string) string {
	switch answer {
	case "", "n", "no":
		return ""
	}
	return Escape(strings.TrimSpace(typed), false)
}

// drop forgets a line that came after its question had run out. It reports whether one is still being read.
func (t *terminal) drop() (pending bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reading == nil {
		return false
	}
	select {
	case <-t.reading:
		t.reading = nil
		return false
	default:
		return true
	}
}

// next is the read under way, or a new one. Lines are read only on demand, so that what is piped in
// answers one question a line.
func (t *terminal) next() <-chan line {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reading == nil {
		c := make(chan line, 1)
		t.reading = c
		go func() {
			text, err := t.readLine()
			c <- line{text, err}
		}()
	}
	return t.reading
}

func (t *terminal) done() {
	t.mu.Lock()
	t.reading = nil
	t.mu.Unlock()
}

// readLine reads to the end of the line and keeps its beginning: an answer is short, and input without line ends
// must not fill the memory.
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
