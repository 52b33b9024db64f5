package queue

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/approval"
	"moltisfs/internal/state"
	"moltisfs/internal/testdir"
)

// role makes a test process one that asks, or answers, and is killed: "ask DIR", or "answer DIR ID BY STEP".
const role = "QUEUE_TEST_ROLE"

func TestMain(m *testing.M) {
	words := strings.Fields(os.Getenv(role))
	if len(words) == 0 {
		os.Exit(m.Run())
	}
	q := Open(words[1])
	switch words[0] {
	case "ask":
		a, err := q.Ask(context.Background(), example())
		fmt.Println(a, err)
	case "answer":
		d := q.files.(state.Dir)
		d.Fault = func(step string) error {
			if step == strings.ReplaceAll(words[4], "_", " ") {
				p, _ := os.FindProcess(os.Getpid())
				_ = p.Kill()
				select {}
			}
			return nil
		}
		q = OpenIn(d)
		fmt.Println("ready")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until all others are ready too
		_, err := answered(q, words[2], approval.Approved, By{Name: words[3]}, "")
		if over, ok := errors.AsType[*OverError](err); ok {
			fmt.Println("late", over.Entry.By)
		} else {
			fmt.Println("won", err)
		}
	}
}

// A child is a process in a role.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, words ...string) child {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), role+"="+strings.Join(words, " "))
	in, err := c.StdinPipe()
	must(t, err)
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	t.Cleanup(func() { c.Process.Kill(); c.Wait() }) //nolint:errcheck // it may have ended
	return child{c, in, bufio.NewReader(out)}
}

// The question of a killed process is gone, at once and whatever the clock says.
func TestAskerKilled(t *testing.T) {
	t.Parallel()
	q := Open(t.TempDir())
	asker := start(t, "ask", dirOf(q))
	var list []Entry
	testdir.Until(t, "the question", func() (there bool) {
		var err error
		list, err = q.List(false)
		must(t, err)
		return len(list) > 0
	})
	must(t, asker.Process.Kill())
	asker.Wait() //nolint:errcheck // it was killed
	if waits, err := q.List(false); err != nil || len(waits) > 0 {
		t.Error("it still waits", waits, err)
	}
	if all, err := q.List(true); err != nil || len(all) != 1 || all[0].State != Gone || all[0].PID != asker.Process.Pid {
		t.Error(all, err)
	}
	_, err := answered(q, list[0].ID, approval.Approved, By{Name: "ann"}, "")
	if over, ok := errors.AsType[*OverError](err); !ok || over.Entry.State != Gone {
		t.Error(err)
	}
	if waiting, err := q.sweep(time.Now()); err != nil || len(waiting) != 0 {
		t.Error(waiting, err)
	}
	if left := namesIn(t, dirOf(q)); len(left) != 1 || left[0] != list[0].ID+answerFile {
		t.Error("its question is left", left)
	}
}

// An answerer that is killed has answered, or has not: then the question waits for the next one.
func TestAnswererKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at string
		by string // whose answer counts
	}{
		{"create", "ann"}, {"write", "ann"}, {"sync", "ann"}, {"rename", "bob"}, {"sync_directory", "bob"},
	} {
		q := Open(t.TempDir())
		asked, answer := ask(t.Context(), t, q, example())
		killed := start(t, "answer", dirOf(q), asked.ID, "bob", c.at)
		fmt.Fprintln(killed.in)
		if err := killed.Wait(); err == nil {
			t.Errorf("%s: it was not killed", c.at)
		}
		_, err := answered(q, asked.ID, approval.Approved, By{Name: "ann"}, "")
		if over, late := errors.AsType[*OverError](err); late != (c.by == "bob") || late && over.Entry.By != "bob" {
			t.Errorf("%s: %v", c.at, err)
		}
		if a := <-answer; a.By != c.by || a.Decision != approval.Approved {
			t.Errorf("%s: %+v", c.at, a)
		}
		_, err = q.sweep(time.Now())
		must(t, err)
		if left := namesIn(t, dirOf(q)); len(left) != 1 {
			t.Errorf("%s: %v", c.at, left)
		}
	}
}

// Between processes too one answer alone wins.
func TestProcessesAnswer(t *testing.T) {
	t.Parallel()
	q := Open(t.TempDir())
	asked, answer := ask(t.Context(), t, q, example())
	var all []child
	for i := range 6 {
		c := start(t, "answer", dirOf(q), asked.ID, fmt.Sprint("p", i), "never")
		_, err := c.out.ReadString('\n')
		must(t, err)
		all = append(all, c)
	}
	for _, c := range all {
		fmt.Fprintln(c.in)
	}
	a := <-answer
	won := 0
	for i, c := range all {
		said, err := c.out.ReadString('\n')
		must(t, err)
		if said == "won <nil>\n" {
			won++
			if a.By != fmt.Sprint("p", i) {
				t.Errorf("p%d won, and the asker heard %s", i, a.By)
			}
		} else if said != "late "+a.By+"\n" {
			t.Errorf("p%d: %s", i, said)
		}
	}
	if won != 1 {
		t.Errorf("%d won", won)
	}
}
