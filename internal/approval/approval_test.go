package approval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
)

var bg = context.Background()

func TestYesAndNobody(t *testing.T) {
	a, err := Yes("--yes").Ask(bg, Question{})
	if err != nil || a.Decision != Approved || a.By != "--yes" {
		t.Errorf("%+v %v", a, err)
	}
	over, cancel := context.WithCancel(bg)
	cancel()
	if a, _ := Yes("--yes").Ask(over, Question{}); a.Decision != Cancelled {
		t.Errorf("a cancelled call was approved: %+v", a)
	}
	a, err = Nobody([]string{"run with --yes", "use --approve elicitation"}).Ask(bg, Question{})
	if err != nil || a.Decision != NobodyToAsk || a.Reason != "there is nobody to ask here; run with --yes, or use --approve elicitation" {
		t.Errorf("%+v %v", a, err)
	}
	if (Answer{}).Decision == Approved {
		t.Error("the zero answer approves")
	}
}

func TestTerminal(t *testing.T) {
	q := Question{
		Tool: "Edit", Paths: []string{"/ws/a.go"}, Summary: "replace 1 line", Added: 1, Removed: 1,
		Warnings: []string{"runs at login"}, Diff: "@@ -1 +1 @@\n-a\n+b\n", Session: "s1", Principal: "ci",
	}
	for _, c := range []struct {
		in     string
		want   Decision
		reason string
	}{
		{"y\n", Approved, ""},
		{"YES\r\n", Approved, ""},
		{"  y  \n", Approved, ""},
		{"y", Approved, ""},
		{"\n", Denied, ""},
		{"n\n", Denied, ""},
		{"yy\n", Denied, "yy"},
		{"ye\n", Denied, "ye"},
		{"yes please\n", Denied, "yes please"},
		{"No, use b.go\n", Denied, "use b.go"},
		{"n: not now\n", Denied, "not now"},
		{"not now\n", Denied, "not now"},
		{"file\n", Denied, "file"}, // which was not offered
		{"use \x1b[31mb.go\n", Denied, `use \u{1b}[31mb.go`},
		{"", Denied, "end of input"},
		{"?\ny\n", Approved, ""},
		{"?\n", Denied, "end of input"},
		{strings.Repeat("y", 1<<20) + "\n", Denied, ""}, // the reason is its beginning
	} {
		var out bytes.Buffer
		a, err := Terminal(strings.NewReader(c.in), &out).Ask(bg, q)
		if err != nil || a.Decision != c.want {
			t.Errorf("%.20q: %v %v", c.in, a.Decision, err)
		}
		if len(c.in) < 100 && a.Reason != c.reason {
			t.Errorf("%.20q: reason %q", c.in, a.Reason)
		}
		if len(a.Reason) > 1<<13 {
			t.Errorf("%.20q: a reason of %d bytes", c.in, len(a.Reason))
		}
		for _, part := range []string{"Edit wants to change /ws/a.go  +1 −1\n", "replace 1 line\n", "session s1, principal ci\n", "WARNING: runs at login\n", "@@ -1 +1 @@\n-a\n+b\n", "Allow Edit of /ws/a.go, +1 −1? [y/N, ? for help, or type a reason] "} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%.20q: %q is not shown in:\n%s", c.in, part, &out)
			}
		}
	}
}

// Hunks that were not shown are not approved by a mere yes, and the record says when they were.
func TestUnseenIsSaid(t *testing.T) {
	q := Question{Tool: "Write", Paths: []string{"/a"}, Diff: "@@ -1,200 +1,200 @@\n" + strings.Repeat("+x\n", 200) + "@@ -300 +300 @@\n+rm -rf\n"}
	const unseen = 203 - diffLines
	if n := Unseen(q, diffLines); n != unseen || Unseen(q, 203) != 0 || Unseen(Question{}, 1) != 0 {
		t.Errorf("%d lines unseen", n)
	}
	for _, c := range []struct {
		in   string
		want Decision
		by   string
	}{
		{"y\n", Denied, "terminal"}, // the end of the input
		{"y\ny\nyes\n", Denied, "terminal"},
		{"y\n?\ny\n", Approved, "terminal"},
		{"?\nyes\n", Approved, "terminal"},
		{"?\n?\ny\n", Approved, "terminal"},
		{"yes, unseen\n", Approved, "terminal, with 143 lines unseen"},
		{"Yes unseen\n", Approved, "terminal, with 143 lines unseen"},
		{"y\nyes, unseen\n", Approved, "terminal, with 143 lines unseen"},
		{"unseen\n", Denied, "terminal"},
		{"no, unseen\n", Denied, "terminal"},
		{"?\nyes, unseen\n", Approved, "terminal"},
		{"y\nn\n", Denied, "terminal"},
	} {
		var out bytes.Buffer
		a, err := Terminal(strings.NewReader(c.in), &out).Ask(bg, q)
		if err != nil || a.Decision != c.want || a.By != c.by {
			t.Errorf("%q: %+v %v", c.in, a, err)
		}
		if !strings.Contains(out.String(), `Allow Write of /a, +0 −0? [? shows the rest of the diff, 143 lines; "yes, unseen" approves it without; N or a reason refuses] `) {
			t.Errorf("%q: the question was\n%s", c.in, &out)
		}
		first, _, _ := strings.Cut(out.String(), "Allow ")
		if strings.Count(first, "+x") != diffLines-1 || !strings.HasSuffix(first, "… 143 more lines of diff in 1 hunk\n") {
			t.Errorf("%q: not cut:\n%s", c.in, first)
		}
		if rest := out.String()[len(first):]; strings.Count(c.in, "?") == 1 && (strings.Count(rest, "rm -rf") != 1 || strings.Count(rest, "+x") != 201-diffLines) {
			t.Errorf("%q: the rest is not shown once:\n%s", c.in, rest)
		}
		if strings.HasPrefix(c.in, "y\n") && !strings.Contains(out.String(), "Not shown yet: 143 lines of the diff.\n") {
			t.Errorf("%q: nothing is said", c.in)
		}
	}
}

// Nothing that a file name or a file holds can move the cursor, hide, or turn text around.
func TestNothingGetsThrough(t *testing.T) {
	evil := "a\x1b]52;c;x\x07\u202egpj\u200b\u2066\U000e0041\x7f\u0085\u009b31m\u00ad\u2028\ufeff\u061c\u180e\u115f\ufe0f\u00a0\ue000\xff\r\x00b"
	var out bytes.Buffer
	q := Question{Tool: evil, Paths: []string{evil + "\n", evil}, Summary: evil + "\n", Session: evil, Principal: evil, Warnings: []string{evil, "\nWARNING"}, Diff: "+" + evil + "\n-" + evil + " \t\n"}
	if _, err := Terminal(strings.NewReader("?\n"+evil+"\n"), &out).Ask(bg, q); err != nil {
		t.Fatal(err)
	}
	for _, r := range out.String() {
		if r == '\n' || r == '−' || r == '·' || r == '…' {
			continue
		}
		if r >= 0x7f || unicode.IsControl(r) {
			t.Errorf("%U got through", r)
		}
	}
	if !strings.Contains(out.String(), `a\u{1b}]52;c;x\u{7}\u{202e}gpj\u{200b}\u{2066}\u{e0041}\u{7f}\u{85}\u{9b}31m\u{ad}\u{2028}\u{feff}\u{61c}\u{180e}\u{115f}\u{fe0f}\u{a0}\u{e000}\x{ff}\u{d}\u{0}b`) {
		t.Errorf("%s", &out)
	}
	if !strings.Contains(out.String(), `b·\t`) {
		t.Errorf("blanks at the end of a line are not shown: %s", &out)
	}
	if s := "ordinary — text, naïve, 日本語, e\u0301, 🙂\n\t"; Escape(s, true) != s {
		t.Errorf("%q", Escape(s, true))
	}
}

// Of many files the lines of each are counted, and no diff is shown until it is asked for. A line of
// a file that looks like a header counts as a line.
func TestManyFiles(t *testing.T) {
	q := Question{Tool: "checkpoint_restore", New: []string{"/w/f0"}, Added: 50, Removed: 25}
	for i := range 25 {
		name := fmt.Sprintf("w/f%d", i)
		q.Paths = append(q.Paths, "/"+name)
		from := "a/" + name
		if i == 0 {
			from = "/dev/null"
		}
		q.Diff += "--- " + from + "\n+++ b/" + name + "\n@@ -1,1 +1,2 @@\n--- a/forged\n+++ b/forged\n+x\n"
	}
	var out bytes.Buffer
	a, err := Terminal(strings.NewReader("y\n?\ny\n"), &out).Ask(bg, q)
	if err != nil || a.Decision != Approved || a.By != "terminal" {
		t.Fatalf("%+v %v", a, err)
	}
	first, rest, _ := strings.Cut(out.String(), "Allow ")
	for _, want := range []string{"change 25 paths:  +50 −25\n  /w/f0  new  +2 −1\n  /w/f1  +2 −1\n", "  … 5 more paths\n", "… 150 lines of diff in 25 hunks\n"} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is not in\n%s", want, first)
		}
	}
	if strings.Contains(first, "@@") || strings.Count(rest, "@@ -1,1") != 25 || !strings.Contains(rest, "of 25 paths, +50 −25?") {
		t.Errorf("the diff is not shown where it is wanted:\n%s", &out)
	}
}

// A yes for the file or the session says so, on record too; colour is where it is asked for.
func TestScreen(t *testing.T) {
	q := Question{Tool: "Edit", Paths: []string{"/w/a"}, Added: 1, Removed: 1, Warnings: []string{"w"}, Diff: "--- a/w/a\n+++ b/w/a\n@@ -1,1 +1,1 @@\n-a\x1b[2J\n+b\n"}
	for _, c := range []struct {
		in    string
		grant Grant
	}{{"y\n", Once}, {"f\n", ThisFile}, {"File\n", ThisFile}, {"session\n", ThisSession}} {
		var out bytes.Buffer
		s := Screen{In: strings.NewReader("?\n" + c.in), Out: &out, Grants: true, Ink: Colour}
		a, err := s.Approver().Ask(bg, q)
		if err != nil || a.Decision != Approved || a.By != "terminal" || a.Grant != c.grant {
			t.Errorf("%q: %+v %v", c.in, a, err)
		}
		for _, want := range []string{"\x1b[31m-a\\u{1b}[2J\x1b[0m\n", "\x1b[32m+b\x1b[0m\n", "[y/file/session/N, ? for help, or type a reason] "} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is not in %q", want, &out)
			}
		}
	}
}

func TestTimeout(t *testing.T) { synctest.Test(t, timesOut) }

func timesOut(t *testing.T) {
	in, feed := io.Pipe()
	defer feed.Close()
	var out syncBuffer
	term := Terminal(in, &out)
	ctx, cancel := context.WithTimeout(bg, 20*time.Millisecond)
	defer cancel()
	if a, err := term.Ask(ctx, Question{Tool: "First"}); err != nil || a.Decision != TimedOut {
		t.Fatalf("%+v %v", a, err)
	}
	if a, err := term.Ask(ctx, Question{Tool: "Second"}); err != nil || a.Decision != TimedOut {
		t.Fatalf("expired: %+v %v", a, err)
	}
	gone, cancel := context.WithCancel(bg)
	cancel()
	if a, err := term.Ask(gone, Question{}); err != nil || a.Decision != Cancelled {
		t.Fatalf("cancelled: %+v %v", a, err)
	}

	// A line that was typed for the first question does not answer the third; one that is typed after it does.
	got := make(chan Answer)
	go func() {
		a, _ := term.Ask(bg, Question{Tool: "Third"})
		got <- a
	}()
	out.wait(t, "Third wants")
	_, _ = io.WriteString(feed, "y\n")
	out.wait(t, "answer again")
	select {
	case a := <-got:
		t.Fatalf("a line begun earlier answered: %+v", a)
	default:
	}
	_, _ = io.WriteString(feed, "y\n")
	if a := <-got; a.Decision != Approved {
		t.Errorf("%+v", a)
	}
}

// A line that came while no question was up is dropped.
func TestLateLine(t *testing.T) { synctest.Test(t, comesLate) }

func comesLate(t *testing.T) {
	in, feed := io.Pipe()
	defer feed.Close()
	var out syncBuffer
	term := Terminal(in, &out).(*terminal)
	ctx, cancel := context.WithTimeout(bg, 10*time.Millisecond)
	defer cancel()
	if a, _ := term.Ask(ctx, Question{Tool: "First"}); a.Decision != TimedOut {
		t.Fatal("not timed out")
	}
	_, _ = io.WriteString(feed, "y\n")
	synctest.Wait() // the reader has taken it
	go func() { _, _ = io.WriteString(feed, "n\n") }()
	if a, _ := term.Ask(bg, Question{Tool: "Second"}); a.Decision != Denied || a.Reason != "" {
		t.Errorf("%+v", a)
	}
}

func TestOneAtATime(t *testing.T) {
	in, feed := io.Pipe()
	var out syncBuffer
	term := Terminal(in, &out)
	const n = 8
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if a, err := term.Ask(bg, Question{Tool: "T"}); err != nil || a.Decision != Approved {
				t.Errorf("%+v %v", a, err)
			}
		})
	}
	go func() {
		for range n {
			_, _ = io.WriteString(feed, "y\n")
		}
	}()
	wg.Wait()
	// Every card is followed by its own prompt.
	if got := strings.Count(out.String(), "T wants to change 0 paths:  +0 −0\nAllow T of 0 paths, +0 −0? [y/N, ? for help, or type a reason] "); got != n {
		t.Errorf("%d whole questions of %d:\n%s", got, n, out.String())
	}
}

func TestBrokenOutput(t *testing.T) {
	if a, err := Terminal(strings.NewReader("y\n"), broken{}).Ask(bg, Question{}); err == nil || a.Decision == Approved {
		t.Errorf("approved without being seen: %+v %v", a, err)
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\x1b\u202e\xff\U000e0041 b")
	f.Fuzz(func(t *testing.T, s string) {
		e := Escape(s, false)
		for _, r := range e {
			if invisible(r) || r == unicode.ReplacementChar && !strings.ContainsRune(s, r) {
				t.Fatalf("%q -> %q holds %U", s, e, r)
			}
		}
		if Escape(e, false) != e {
			t.Fatalf("%q is not stable", e)
		}
	})
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// wait is for a bubble of synctest: text is there once nobody has anything to do.
func (s *syncBuffer) wait(t *testing.T, text string) {
	t.Helper()
	if synctest.Wait(); !strings.Contains(s.String(), text) {
		t.Fatalf("%q never came:\n%s", text, s.String())
	}
}
