package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// told is what a proof says, as "changed dropped | moved".
func told(p Proof) string {
	var flaws, notes []string
	for _, f := range p.Flaws {
		flaws = append(flaws, string(f.Flaw))
	}
	for _, f := range p.Notes {
		notes = append(notes, string(f.Flaw))
	}
	text := strings.Join(slices.Compact(flaws), " ")
	if len(notes) > 0 {
		text += "|" + strings.Join(slices.Compact(notes), " ")
	}
	return text
}

func file(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func appendTo(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(t, err)
	_, err = f.WriteString(text)
	must(t, errors.Join(err, f.Close()))
}

// What is done to a log as a whole, and what is told of it: at once, and after one more record.
func TestMangledLogs(t *testing.T) {
	t.Parallel()
	const record = `{"time":"2026-11-23T00:00:00.000000Z","phase":"outcome"}`
	next := func(log string, seq uint64) string { // a record as its writer would make it
		lines := linesOf(t, log)
		prev := sha256.Sum256([]byte(strings.TrimSuffix(lines[len(lines)-1], "\n")))
		return string(appendTie([]byte(record[:len(record)-1]), &tie{Seq: seq, prev: prev}))
	}
	early := map[string][]byte{} // the files as they were seven records ago
	for _, c := range []struct {
		name, at, later string // later: after one more record
		archived        uint64
		do              func(dir, log, last string)
	}{
		{"nothing", "", "", 0, func(string, string, string) {}},
		{"end put back", "no_end", "", 0, func(_, _, last string) { must(t, os.WriteFile(last, early[lastName], 0o600)) }},
		{"end and log put back", "", "", 0, func(_, log, last string) { // only what was kept elsewhere tells
			must(t, errors.Join(os.WriteFile(last, early[lastName], 0o600), os.WriteFile(log, early[FileName], 0o600)))
		}},
		{"log put back", "truncated", "dropped", 0, func(_, log, _ string) { must(t, os.WriteFile(log, early[FileName], 0o600)) }},
		{"end removed", "no_end", "", 0, func(_, _, last string) { must(t, os.Remove(last)) }},
		{"end damaged", "no_end", "", 0, func(_, _, last string) { must(t, os.WriteFile(last, make([]byte, endLen), 0o600)) }},
		{"end of another log", "changed", "changed", 0, func(_, _, last string) {
			must(t, os.WriteFile(last, []byte((&end{seq: 10, from: 5, to: 9}).String()), 0o600))
		}},
		{"log removed", "truncated", "dropped", 0, func(_, log, _ string) { must(t, os.Remove(log)) }},
		{"log removed by its operator", "|gone", "|gone", 99, func(_, log, _ string) { must(t, os.Remove(log)) }},
		{"log emptied", "truncated", "dropped", 0, func(_, log, _ string) { must(t, os.Truncate(log, 0)) }},
		{"the last records", "truncated", "dropped", 0, func(_, log, _ string) { put(t, log, linesOf(t, log)[:8]) }},
		{"all begun anew", "new_chain", "new_chain", 0, func(dir, log, last string) {
			must(t, errors.Join(os.Rename(log, log+".1"), os.Remove(last)))
			l, err := Open(dir)
			must(t, errors.Join(err, l.Append(full), l.Close()))
		}},
		{"a record more", "|interrupted", "", 0, func(_, log, _ string) { appendTo(t, log, next(log, 11)) }}, // as of a killed process
		{"two records more", "no_end", "", 0, func(_, log, _ string) {
			appendTo(t, log, next(log, 11))
			appendTo(t, log, next(log, 12))
		}},
		{"the last one twice", "inserted", "inserted", 0, func(_, log, _ string) { appendTo(t, log, linesOf(t, log)[9]) }},
		{"without a number", "inserted", "inserted", 0, func(_, log, _ string) { appendTo(t, log, record+"\n") }},
		{"without an end", "inserted", "inserted", 0, func(_, log, _ string) { appendTo(t, log, record) }},
		{"a word", "inserted", "inserted", 0, func(_, log, _ string) { appendTo(t, log, "hello\n") }},
		{"blank lines", "", "", 0, func(_, log, _ string) { appendTo(t, log, "\n\n") }},
		{"torn", "|interrupted", "|interrupted", 0, func(_, log, _ string) { appendTo(t, log, record[:20]) }},
		{"torn twice", "|interrupted", "|interrupted", 0, func(_, log, _ string) { appendTo(t, log, record[:20]+"\n"+record[:40]) }},
		{"torn, and that cut", "changed", "changed", 0, func(dir, log, _ string) {
			appendTo(t, log, record[:20])
			l, err := Open(dir)
			must(t, errors.Join(err, l.Append(full), l.Close()))
			must(t, os.WriteFile(log, bytes.Replace(file(t, log), []byte(record[:20]+"\n"), []byte(record[:19]+"\n"), 1), 0o600))
		}},
		{"moved", "", "", 0, func(dir, log, _ string) {
			must(t, os.Rename(log, log+".1"))
			l, err := Open(dir)
			must(t, errors.Join(err, l.Append(full), l.Close()))
		}},
		{"copied and cut", "", "", 0, func(dir, log, _ string) {
			must(t, os.WriteFile(log+".1", file(t, log), 0o600))
			must(t, os.Truncate(log, 0))
			l, err := Open(dir)
			must(t, errors.Join(err, l.Append(full), l.Close()))
		}},
		{"another copy of it", "", "", 0, func(_, log, _ string) {
			text := file(t, log)
			must(t, errors.Join(os.Remove(log), os.WriteFile(log, text, 0o600)))
		}},
		{"cut at the front", "dropped", "dropped", 0, func(_, log, _ string) { put(t, log, linesOf(t, log)[1:]) }},
		{"another text", "changed", "changed", 0, func(_, log, _ string) {
			must(t, os.WriteFile(log, bytes.Replace(file(t, log), []byte("record 9"), []byte("record 8"), 1), 0o600))
		}},
	} {
		dir := t.TempDir()
		log, last := filepath.Join(dir, FileName), filepath.Join(dir, lastName)
		l, err := Open(dir)
		must(t, err)
		for i := range 10 {
			if i == 3 {
				early[lastName], early[FileName] = file(t, last), file(t, log)
			}
			r := full
			r.Error = fmt.Sprint("record ", i)
			must(t, l.Append(r))
		}
		must(t, l.Close())
		c.do(dir, log, last)
		verify := func() string {
			p, err := Verify(t.Context(), dir, Known{Archived: c.archived})
			must(t, err)
			return told(p)
		}
		if got := verify(); got != c.at {
			t.Errorf("%s: %q, want %q", c.name, got, c.at)
		}
		l, err = Open(dir)
		must(t, err)
		must(t, errors.Join(l.Append(full), l.Close()))
		if got := verify(); got != c.later {
			t.Errorf("%s: later %q, want %q", c.name, got, c.later)
		}
	}
}

var errKilled = errors.New("killed")

// A process may die between any two changes of files. What it has reported is there, the rest of the
// log is whole, and the next process goes on.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	for _, old := range []string{"", "{\"time\":\"2026\",\"phase\":\"outcome\"}\n", "{\"torn"} {
		for n := 1; ; n++ {
			dir := t.TempDir()
			if old != "" {
				must(t, os.WriteFile(filepath.Join(dir, FileName), []byte(old), 0o600))
			}
			reported, killed := 0, false
			o := Options{MaxBytes: 1500, Keep: 2}
			l, err := o.Open(dir)
			must(t, err)
			left := n
			l.calls.step = func() {
				if left--; left == 0 {
					panic(errKilled)
				}
			}
			func() {
				defer func() {
					if p := recover(); p != nil && p != errKilled { //nolint:errorlint // it is that one
						panic(p)
					}
				}()
				killed = true
				for range 16 {
					must(t, l.Append(full))
					reported++
				}
				killed = false
			}()
			l.calls.step = nil
			must(t, l.calls.closeFiles()) // as the system does
			if got := told(check(t, dir)); strings.Trim(strings.SplitN(got, "|", 2)[0], " ") != "" {
				t.Errorf("killed at %d: %q", n, got)
			}
			l, err = o.Open(dir)
			must(t, err)
			for range 3 {
				must(t, l.Append(full))
			}
			must(t, l.Close())
			p := check(t, dir)
			if len(p.Flaws) > 0 || p.Last < uint64(reported+3) || p.Last > uint64(reported+4) {
				t.Errorf("killed at %d, went on: %d of %d, %q", n, p.Last, reported, told(p))
			}
			if !killed {
				if n < 30 {
					t.Errorf("only %d steps", n)
				}
				break
			}
		}
	}
}

// A record of which only a part was written is told as that, whatever part it is.
func TestTornAnywhere(t *testing.T) {
	t.Parallel()
	dir := chained(t, 3)
	log, keys := filepath.Join(dir, FileName), filepath.Join(dir, lastName)
	whole, state := file(t, log), file(t, keys)
	l, err := Open(dir)
	must(t, err)
	must(t, errors.Join(l.Append(full), l.Close()))
	more := file(t, log)[len(whole):]
	for n := range len(more) + 1 {
		if n > 10 && n < len(more)-10 && n%23 > 0 {
			continue
		}
		must(t, os.WriteFile(log, append(whole[:len(whole):len(whole)], more[:n]...), 0o600))
		must(t, os.WriteFile(keys, state, 0o600))
		if got := told(check(t, dir)); got != "" && got != "|interrupted" {
			t.Fatalf("%d bytes: %q", n, got)
		}
		l, err := Open(dir)
		must(t, err)
		must(t, errors.Join(l.Append(full), l.Append(full), l.Close()))
		if got := told(check(t, dir)); got != "" && got != "|interrupted" {
			t.Fatalf("%d bytes, then two records: %q", n, got)
		}
	}
}

// What rotation removes is told, and nothing else may be missing.
func TestRotationIsNoFlaw(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := Options{MaxBytes: 1500, Keep: 2}.Open(dir)
	must(t, err)
	defer l.Close()
	for range 29 {
		must(t, l.Append(full))
	}
	if got := told(check(t, dir)); got != "|gone" {
		t.Errorf("%q", got)
	}
	long := full // the last of its file, as a restore of thousands of files
	long.Paths = slices.Repeat([]string{"/ws/a/file/of/many"}, 30_000)
	for range 4 {
		must(t, errors.Join(l.Append(long), l.Append(full)))
	}
	if got := told(check(t, dir)); got != "|gone" {
		t.Errorf("with long records: %q", got)
	}
	must(t, os.Remove(filepath.Join(dir, FileName+".1")))
	if got := told(check(t, dir)); got != "dropped|gone" {
		t.Errorf("with a file removed: %q", got)
	}
}

// An old log is read as what it is: the chain begins behind it, and guards it from then on.
func TestOldLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := filepath.Join(dir, FileName)
	const line = `{"time":"2026-11-23T00:00:00Z","phase":"outcome"}` + "\n"
	must(t, os.WriteFile(log+".1", []byte(line), 0o600))
	must(t, os.WriteFile(log, []byte(line+line+"{torn"), 0o600))
	if got := told(check(t, dir)); !strings.HasPrefix(got, "|") {
		t.Errorf("before: %q", got)
	}
	l, err := Open(dir)
	must(t, err)
	must(t, errors.Join(l.Append(full), l.Append(full), l.Close()))
	if p := check(t, dir); told(p) != "|not_chained" || p.Records != 2 {
		t.Errorf("%+v", p)
	}
	must(t, os.WriteFile(log, bytes.Replace(file(t, log), []byte("11-23"), []byte("11-24"), 1), 0o600))
	if p := check(t, dir); told(p) != "changed|not_chained" || p.Flaws[0].Line != 1 {
		t.Errorf("%+v", p)
	}
}

// No log makes the verifier crash or run away, and what it calls whole is a log that a writer goes
// on with.
func FuzzVerify(f *testing.F) {
	dir := chained(f, 3)
	text, last := file(f, filepath.Join(dir, FileName)), file(f, filepath.Join(dir, lastName))
	f.Add(text, last)
	f.Add(append(text, "{torn"...), last)
	f.Add([]byte(nil), last)
	f.Add([]byte("{}\n{}\n"), []byte(nil))
	f.Fuzz(func(t *testing.T, log, last []byte) {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, FileName), log, 0o600))
		must(t, os.WriteFile(filepath.Join(dir, lastName), last, 0o600))
		p := check(t, dir)
		l, err := Open(dir)
		must(t, err)
		must(t, errors.Join(l.Append(full), l.Close()))
		if after := check(t, dir); len(p.Flaws) == 0 && len(after.Flaws) > 0 {
			t.Errorf("one record more: %+v", after)
		}
	})
}
