package queue

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/approval"
)

// A file that is none of ours is skipped and left alone, and nothing is followed.
func TestForeign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	q := Open(filepath.Join(dir, "approvals"))
	must(t, os.Mkdir(dirOf(q), 0o700))
	elsewhere := Open(dir)
	p, release, _, err := elsewhere.put(example())
	must(t, err)
	defer release()
	real := fileOf(elsewhere, p.ID, questionFile)
	text, err := os.ReadFile(real)
	must(t, err)
	at := func(name string) string { return filepath.Join(dirOf(q), name) }
	must(t, os.Mkdir(at("000000000001.question"), 0o700))
	must(t, os.WriteFile(at("000000000002.question"), text[:len(text)/2], 0o600))
	must(t, os.WriteFile(at("000000000003.question"), text, 0o600)) // that of another id
	must(t, os.WriteFile(at("notes.txt"), text, 0o600))
	huge, err := os.Create(at("000000000005.question"))
	must(t, err)
	must(t, huge.Truncate(1<<40))
	must(t, huge.Close())
	if runtime.GOOS != "windows" {
		must(t, os.Symlink(real, at(p.ID+questionFile)))
	}
	for _, all := range []bool{false, true} {
		if list, err := q.List(all); err != nil || len(list) > 0 {
			t.Errorf("%v %v", list, err)
		}
	}
	before := namesIn(t, dirOf(q))
	asked, answer := ask(t.Context(), t, q, example())
	_, err = answered(q, asked.ID, approval.Approved, By{Name: "ann"}, "")
	must(t, err)
	if a := <-answer; a.Decision != approval.Approved {
		t.Errorf("%+v", a)
	}
	after := slices.DeleteFunc(namesIn(t, dirOf(q)), func(n string) bool { return strings.HasPrefix(n, asked.ID) })
	if !slices.Equal(before, after) {
		t.Errorf("%v became %v", before, after)
	}
}

func namesIn(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		if e.Name() != "lock" {
			out = append(out, e.Name())
		}
	}
	return out
}

// An answer that can't be read, or that is for another question, does not approve.
func TestForeignAnswer(t *testing.T) {
	t.Parallel()
	good := Entry{State: Approved, By: "ann", Question: approval.Question{Digest: "d1"}}
	for name, c := range map[string]struct {
		change   func(*Entry)
		cut      int // bytes of it that are there; 0: all
		approves bool
	}{
		"good":           {func(*Entry) {}, 0, true},
		"empty":          {func(*Entry) {}, -1, false},
		"half":           {func(*Entry) {}, 40, false},
		"another digest": {func(e *Entry) { e.Question.Digest = "d2" }, 0, false},
		"another id":     {func(e *Entry) { e.ID = "000000000001" }, 0, false},
		"no such state":  {func(e *Entry) { e.State = "approved " }, 0, false},
		"no end":         {func(e *Entry) { e.State = Pending }, 0, false},
		"a link":         {func(*Entry) {}, 0, false},
		"a directory":    {func(*Entry) {}, 0, false},
	} {
		q := Open(t.TempDir())
		asked, answer := ask(t.Context(), t, q, example())
		file, elsewhere := fileOf(q, asked.ID, answerFile), filepath.Join(t.TempDir(), "answer")
		e := good
		e.ID = asked.ID
		c.change(&e)
		pieces, err := encode(e)
		must(t, err)
		text := pieces[0]
		if c.cut != 0 {
			text = text[:max(c.cut, 0)]
		}
		must(t, os.WriteFile(elsewhere, text, 0o600))
		switch name {
		case "a link":
			must(t, os.Symlink(elsewhere, file))
		case "a directory":
			must(t, os.Mkdir(file, 0o700))
		default:
			must(t, os.Link(elsewhere, file))
		}
		a := <-answer
		if approved := a.Decision == approval.Approved; approved != c.approves || approved == (a.err != nil) {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestDirOfOthers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: there are no modes and no links there")
	}
	dir := t.TempDir()
	open, link, file := filepath.Join(dir, "open"), filepath.Join(dir, "link"), filepath.Join(dir, "file")
	must(t, os.Mkdir(open, 0o700))
	must(t, os.Symlink(open, link))
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, os.Chmod(open, 0o777))
	for _, dir := range []string{open, link, file} {
		if a, err := Open(dir).Ask(t.Context(), example()); err == nil || a.Decision == approval.Approved {
			t.Errorf("%s: %+v", dir, a)
		}
		if _, err := Open(dir).List(true); err == nil {
			t.Errorf("%s is listed", dir)
		}
	}
	if list, err := Open(filepath.Join(dir, "none")).List(true); err != nil || len(list) > 0 {
		t.Error(list, err)
	}
}

// A question that is over stays for a while; one that waits stays in any case.
func TestRetention(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		over int
		age  time.Duration
		size int64
		left int
	}{
		"some":     {3, time.Hour, 1 << 10, 3},
		"too old":  {3, keptFor + time.Hour, 1 << 10, 0},
		"too many": {keptMost + 2, time.Hour, 1 << 10, keptMost - 1},
		"too much": {12, time.Hour, 7 << 20, 9},
	} {
		q := Open(t.TempDir())
		waits, let, _, err := q.put(example())
		must(t, err)
		defer let()
		asked, release, _, err := q.put(example()) // its asker has not looked yet
		must(t, err)
		defer release()
		asked.State, asked.By = Approved, "ann"
		must(t, q.recordEnd(t.Context(), asked))
		for i := range c.over {
			name := fileOf(q, fmt.Sprintf("%012x", i), answerFile)
			must(t, os.WriteFile(name, nil, 0o600))
			must(t, os.Truncate(name, c.size))
			must(t, os.Chtimes(name, now, now.Add(-c.age-time.Duration(i)*time.Second)))
		}
		old := now.Add(-100 * keptFor)
		must(t, os.Chtimes(fileOf(q, waits.ID, questionFile), old, old))
		must(t, os.Chtimes(fileOf(q, asked.ID, questionFile), old, old))
		killed, dead, _, err := q.put(example())
		must(t, err)
		dead()
		must(t, os.WriteFile(fileOf(q, "dddddddddddd", shownFile), nil, 0o600))
		must(t, os.WriteFile(fileOf(q, "eeeeeeeeeeee", questionFile), []byte("half"), 0o600))
		must(t, os.Chtimes(fileOf(q, "eeeeeeeeeeee", questionFile), old, old))
		waiting, err := q.sweep(now)
		must(t, err)
		left := namesIn(t, dirOf(q))
		if waiting["agent"] != 1 || len(waiting) != 1 || len(left) != c.left+4 {
			t.Errorf("%s: %v wait, %d files are left", name, waiting, len(left))
		}
		if e, err := q.Get(killed.ID); err != nil || e.State != Gone || e.Question.Diff != "" {
			t.Errorf("%s: %+v %v", name, e, err)
		}
	}
}
