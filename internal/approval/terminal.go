package approval

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"moltisfs/internal/share"
)

// A Screen is where a person is asked.
type Screen struct {
	In  io.Reader
	Out io.Writer
	Ink Ink
	// Grants offers to say yes for a file or a session; [Remember] has to stand before the approver.
	Grants bool
	// Walks offers to pass a question over, which then waits on, and to end: Ask gives ErrPassed or ErrEnded. A context that ends passes
	// a question over too, and an empty line.
	Walks bool
}

// The errors of a question that was not answered on a [Screen] that walks.
var (
	ErrPassed = errors.New("the question was passed over")
	ErrEnded  = errors.New("the walk was ended")
)

// Terminal asks on a terminal, or on any in and out: see [Screen.Approver].
func Terminal(in io.Reader, out io.Writer) Approver { return Screen{In: in, Out: out}.Approver() }

// Approver asks on the screen. It shows the tool, the paths, the size of the change, the warnings
// and the diff; of many files it counts the lines of each instead. "y" and "yes" approve, "?" shows
// the diff and explains the answers. As long as part of the diff has not been shown, only "yes,
// unseen" approves. Anything else denies, with the typed line as the reason, and so does the end of
// input.
//
// Everything shown is escaped. An answer belongs to the question that was on screen: a line begun
// for an earlier question, which has timed out, never answers a later one. When In is a terminal,
// nor does anything typed before the question was shown.
func (s Screen) Approver() Approver {
	t := &terminal{Screen: s, in: bufio.NewReader(s.In), turn: share.New(1)}
	t.tty, _ = s.In.(*os.File)
	return t
}

const (
	diffLines = 60 // how much of a diff is shown at first. The hunks after it are counted
	fewFiles  = 5  // of more than these, no diff is shown at first
)

type terminal struct {
	Screen
	in   *bufio.Reader
	tty  *os.File    // in, when it is a file
	turn *share.Pool // of the question that is put
	late chan line   // the read in progress, or nil; it cannot be cancelled
}

type line struct {
	text string
	err  error
}

func (t *terminal) Ask(ctx context.Context, q Question) (Answer, error) {
	if ctx.Err() != nil && t.Walks {
		return Answer{}, ErrPassed
	}
	if ctx.Err() != nil || t.turn.Take(ctx, "", 1) != nil { // a call that is done must not get its turn by chance
		a, _ := ContextAnswer(ctx)
		return a, nil
	}
	defer t.turn.Give("", 1)

	stale := t.late != nil // its line was begun for a question that has timed out
	select {
	case <-t.late:
		t.late, stale = nil, false
	default:
	}
	if !stale && t.tty != nil && discardTypeahead(t.tty) {
		_, _ = t.in.Discard(t.in.Buffered()) // buffered lines were typed before, too
	}
	most := diffLines
	if len(q.Paths) > fewFiles {
		most = 0
	}
	a := asked{t: t, q: q, diff: splitDiff(q), unseen: Unseen(q, most)}
	if err := t.say("\n" + card(q, most, t.Ink)); err != nil {
		return Answer{}, err
	}
	for {
		if err := t.say(a.prompt()); err != nil {
			return Answer{}, err
		}
		select {
		case <-ctx.Done():
			if t.Walks {
				_ = t.say("\n") // whatever comes next has its own line
				return Answer{}, ErrPassed
			}
			over, _ := ContextAnswer(ctx)
			_ = t.say("\n" + over.Reason + ": not changed\n") // if it fails, the answer stands
			return over, nil
		case l := <-t.nextLine():
			t.late = nil
			if over, is := ContextAnswer(ctx); is { // the context ended at the same moment
				return over, nil
			}
			switch {
			case l.err != nil && strings.TrimSpace(l.text) == "":
				_ = t.say("\n") // whatever comes next has its own line
				if t.Walks {
					return Answer{}, ErrEnded
				}
				return Answer{Decision: Denied, By: "terminal", Reason: "end of input"}, nil
			case stale:
				stale = false
				again := "That line was begun before this question was shown; please answer again.\n"
				if err := t.say(again); err != nil {
					return Answer{}, err
				}
				continue
			}
			if answer, done, err := a.take(l.text); done || err != nil {
				return answer, err
			}
		}
	}
}

func (t *terminal) say(text string) error {
	if _, err := io.WriteString(t.Out, text); err != nil {
		return fmt.Errorf("showing the question: %w", err)
	}
	return nil
}

// asked is a question on the screen.
type asked struct {
	t      *terminal
	q      Question
	diff   []string
	unseen int // lines of it that have not been shown
}

// prompt names the tool and the paths once more: the card may have left the screen.
func (a *asked) prompt() string {
	what := fmt.Sprintf("%d paths", len(a.q.Paths))
	if len(a.q.Paths) == 1 {
		what = Escape(a.q.Paths[0], false)
	}
	choices := "y/N, ? for help, or type a reason"
	switch {
	case a.t.Grants:
		choices = "y/file/session/N, ? for help, or type a reason"
	case a.t.Walks:
		choices = "y/n/s/q, ? for help, or type a reason for no"
	}
	if a.unseen > 0 {
		rest := ""
		if a.unseen < len(a.diff) {
			rest = "rest of the "
		}
		choices = fmt.Sprintf(`? shows the %sdiff, %s; "yes, unseen" approves it without; N or a reason refuses`, rest, counted(a.unseen, "line"))
		if a.t.Walks {
			choices += "; s, q"
		}
	}
	ask := fmt.Sprintf("Allow %s of %s, +%d −%d?", Escape(a.q.Tool, false), what, a.q.Added, a.q.Removed)
	return a.t.Ink.Strong(ask) + " [" + choices + "] "
}

// take makes an answer of the typed line. done is false where the question is to be put again.
func (a *asked) take(typed string) (_ Answer, done bool, err error) {
	answer := strings.ToLower(strings.TrimSpace(typed))
	offered := []Choice{{Word: "y"}, {Word: "yes"}}
	if a.t.Grants {
		offered = append(offered, Choice{Word: "f", Grant: ThisFile}, Choice{Word: "file", Grant: ThisFile},
			Choice{Word: "s", Grant: ThisSession}, Choice{Word: "session", Grant: ThisSession})
	}
	if yesUnseen(answer) {
		offered = append(offered, Choice{Word: answer})
	}
	said := Chosen("terminal", offered, answer)
	isYes := said.Decision == Approved
	switch {
	case a.t.Walks && (answer == "" || answer == "s" || answer == "skip"):
		return Answer{}, false, ErrPassed
	case a.t.Walks && (answer == "q" || answer == "quit"):
		return Answer{}, false, ErrEnded
	case answer == "?":
		return Answer{}, false, a.explain()
	case isYes && a.unseen > 0 && !yesUnseen(answer):
		return Answer{}, false, a.t.say("Not shown yet: " + counted(a.unseen, "line") +
			" of the diff.\n")
	case isYes && a.unseen > 0:
		said.By += UnseenBy(a.unseen)
	case !isYes:
		said.Reason = reason(typed)
	}
	return said, true, nil
}

// explain shows the unseen part of the diff, or all of it once more, and the answers.
func (a *asked) explain() error {
	if err := a.t.say(renderDiff(a.diff[len(a.diff)-cmp.Or(a.unseen, len(a.diff)):], a.t.Ink)); err != nil {
		return err
	}
	a.unseen = 0
	text := "y        yes, to this change\n"
	if a.t.Grants {
		end := time.Now().Add(GrantFor)
		text += "file     yes, to " + ThisFile.Until(end) + "\n" +
			"session  yes, to " + ThisSession.Until(end) + "\n" +
			"         (what carries a warning is asked about all the same)\n"
	}
	if a.t.Walks {
		text += "s        let it wait, and show the next one\nq        let all wait\n"
	}
	return a.t.say(text + "N        no; anything else that you type is a no too, and the caller is " +
		"told it as the reason\n")
}

func yesUnseen(answer string) bool {
	words := strings.FieldsFunc(answer, func(r rune) bool { return !unicode.IsLetter(r) })
	return strings.Join(words, " ") == "yes unseen"
}

// reason gives the words that were typed with a no, or instead of one. "no, use the other file" helps the model.
func reason(typed string) string {
	typed = strings.TrimSpace(typed)
	word, rest, _ := strings.Cut(typed, " ")
	if w := strings.ToLower(strings.TrimRight(word, ",;:.!")); w == "n" || w == "no" {
		typed = strings.TrimSpace(rest)
	}
	return Escape(typed, false)
}

// nextLine gives the read in progress, or begins one. Lines are read only on demand: of piped input
// each question takes one line.
func (t *terminal) nextLine() <-chan line {
	if t.late == nil {
		c := make(chan line, 1)
		t.late = c
		go func() {
			text, err := t.readLine()
			c <- line{text, err}
		}()
	}
	return t.late
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
