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

// What is no file of ours is skipped and left alone, and nothing is followed.
func TestForeign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	q := Open(filepath.Join(dir, "approvals"))
	must(t, os.Mkdir(q.dir, 0o700))
	p, err := Open(dir).put(example()) // a real one, elsewhere
	must(t, err)
	defer p.file.Close()
	text, err := os.ReadFile(p.file.Name())
	must(t, err)
	at := func(name string) string { return filepath.Join(q.dir, name) }
	must(t, os.Mkdir(at("000000000001.question"), 0o700))
	must(t, os.WriteFile(at("000000000002.question"), []byte(`{"ID":"000000000002"`), 0o600))
	must(t, os.WriteFile(at("000000000003.question"), text, 0o600)) // that of another id
	must(t, os.WriteFile(at("000000000004.question"), []byte(`{"ID":"000000000004","More":1}`), 0o600))
	must(t, os.WriteFile(at("notes.txt"), text, 0o600))
	huge, err := os.Create(at("000000000005.question"))
	must(t, err)
	must(t, huge.Truncate(1<<40))
	must(t, huge.Close())
	if runtime.GOOS != "windows" {
		must(t, os.Symlink(p.file.Name(), at(p.ID+questionFile)))
	}
	for _, all := range []bool{false, true} {
		if list, err := q.List(all); err != nil || len(list) > 0 {
			t.Errorf("%v %v", list, err)
		}
	}
	before := namesIn(t, q.dir)
	asked, answer := ask(t.Context(), t, q, example())
	_, err = answered(q, asked.ID, approval.Approved, By{Name: "ann"}, "")
	must(t, err)
	if a := <-answer; a.Decision != approval.Approved {
		t.Errorf("%+v", a)
	}
	after := slices.DeleteFunc(namesIn(t, q.dir), func(n string) bool { return strings.HasPrefix(n, asked.ID) })
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
	ok := `{"ID":"ID","Digest":"d1","State":"approved","By":"ann","Reason":"","At":"2026-01-01T00:00:00Z"}`
	for name, c := range map[string]struct {
		text     string
		approves bool
	}{
		"good":            {ok, true},
		"empty":           {"", false},
		"half":            {ok[:40], false},
		"another digest":  {strings.Replace(ok, "d1", "d2", 1), false},
		"another id":      {strings.Replace(ok, `"ID":"ID"`, `"ID":"000000000001"`, 1), false},
		"no such state":   {strings.Replace(ok, "approved", "gone", 1), false},
		"of two minds":    {strings.Replace(ok, "}", `,"Approved":true}`, 1), false},
		"a link":          {"link", false},
		"a directory":     {"dir", false},
		"longer than any": {ok + strings.Repeat(" ", maxRecord), false},
	} {
		q := Open(t.TempDir())
		asked, answer := ask(t.Context(), t, q, example())
		file, elsewhere := q.file(asked.ID, answerFile), filepath.Join(t.TempDir(), "answer")
		text := strings.Replace(c.text, `"ID":"ID"`, `"ID":"`+asked.ID+`"`, 1)
		switch c.text {
		case "link":
			must(t, os.WriteFile(elsewhere, []byte(strings.Replace(ok, `"ID":"ID"`, `"ID":"`+asked.ID+`"`, 1)), 0o600))
			must(t, os.Symlink(elsewhere, file))
		case "dir":
			must(t, os.Mkdir(file, 0o700))
		default:
			must(t, os.WriteFile(elsewhere, []byte(text), 0o600))
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

// What is over stays for a while; what waits stays in any case.
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
		"too many": {keptMost + 2, time.Hour, 1 << 10, keptMost},
		"too much": {12, time.Hour, 10 << 20, 6},
	} {
		q := Open(t.TempDir())
		waits, err := q.put(example())
		must(t, err)
		defer waits.file.Close()
		answered, err := q.put(example()) // its asker has not looked yet
		must(t, err)
		defer answered.file.Close()
		must(t, q.settle(answer{ID: answered.ID, Digest: "d1", State: Approved, By: "ann"}))
		for i := range c.over {
			id := fmt.Sprintf("%012x", i)
			must(t, os.WriteFile(q.file(id, questionFile), []byte("{}"), 0o600))
			must(t, os.Truncate(q.file(id, questionFile), c.size))
			must(t, os.WriteFile(q.file(id, answerFile), []byte("{}"), 0o600))
			must(t, os.WriteFile(q.file(id, diffFile), []byte("+secret\n"), 0o600)) // its asker was killed
			must(t, os.Chtimes(q.file(id, questionFile), now, now.Add(-c.age-time.Duration(i)*time.Second)))
		}
		old := now.Add(-100 * keptFor)
		must(t, os.Chtimes(waits.file.Name(), old, old))
		must(t, os.Chtimes(answered.file.Name(), old, old))
		must(t, os.WriteFile(q.file("dddddddddddd", diffFile), []byte("+secret\n"), 0o600))
		must(t, os.WriteFile(q.file("ffffffffffff", answerFile), []byte("{}"), 0o600)) // a sweep was killed
		must(t, os.WriteFile(q.file("eeeeeeeeeeee", tempFile), []byte("{"), 0o600))    // an answerer was
		waiting, err := q.sweep(now)
		must(t, err)
		left := namesIn(t, q.dir)
		if waiting["agent"] != 1 || len(waiting) != 1 || len(left) != 2*c.left+5 {
			t.Errorf("%s: %v wait, %d files are left", name, waiting, len(left))
		}
	}
}
