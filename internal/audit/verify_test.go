package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/testdir"
)

var must = testdir.Must

// told gives the words of a proof, as "changed dropped | moved".
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
	must(t, err)
	return b
}

func appendTo(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(t, err)
	_, err = f.WriteString(text)
	must(t, errors.Join(err, f.Close()))
}

// Damage to a log as a whole is told: at once, and after one more record.
func TestMangledLogs(t *testing.T) {
	t.Parallel()
	const record = `{"time":"2026-11-23T00:00:00.000000Z","phase":"outcome"}`
	next := func(log string, seq uint64) string { // a record as its writer would make it
		lines := linesOf(t, log)
		prev := sha256.Sum256([]byte(strings.TrimSuffix(lines[len(lines)-1], "\n")))
		return fmt.Sprintf(`%s,"seq":%d,"prev":"%x"}`+"\n", record[:len(record)-1], seq, prev)
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
			must(t, os.WriteFile(last, []byte((&end{seq: 10}).String()), 0o600))
		}},
		{"log removed", "truncated", "dropped", 0, func(_, log, _ string) { must(t, os.Remove(log)) }},
		{"log removed by its operator", "|gone", "|gone", 99, func(_, log, _ string) { must(t, os.Remove(log)) }},
		{"log emptied", "truncated", "dropped", 0, func(_, log, _ string) { must(t, os.Truncate(log, 0)) }},
		{"the last records", "truncated", "dropped", 0, func(_, log, _ string) { put(t, log, linesOf(t, log)[:8]) }},
		{"all begun anew", "new_chain", "new_chain", 0, func(dir, log, last string) {
			must(t, errors.Join(os.Rename(log, log+".1"), os.Remove(last)))
			appended(t, dir, full)
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
		{"moved", "", "", 0, func(dir, log, _ string) {
			must(t, os.Rename(log, log+".1"))
			appended(t, dir, full)
		}},
		{"copied and cut", "", "", 0, func(dir, log, _ string) {
			must(t, os.WriteFile(log+".1", file(t, log), 0o600))
			must(t, os.Truncate(log, 0))
			appended(t, dir, full)
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
		l := opened(t, dir)
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
		appended(t, dir, full)
		if got := verify(); got != c.later {
			t.Errorf("%s: later %q, want %q", c.name, got, c.later)
		}
	}
}

var errKilled = errors.New("killed")

// A process may die between any two changes of files. Each reported record is there, the rest of the
// log is whole, and the next process goes on.
func TestKilledAnywhere(t *testing.T) {
	t.Parallel()
	for _, old := range []string{"", "{\"time\":\"2026"} {
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
	appended(t, dir, full)
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
		appended(t, dir, full, full)
		if got := told(check(t, dir)); got != "" && got != "|interrupted" {
			t.Fatalf("%d bytes, then two records: %q", n, got)
		}
	}
}

// Records that rotation removes are told, and no others may be missing.
func TestRotationIsNoFlaw(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := Options{MaxBytes: 1500, Keep: 2}.Open(dir)
	must(t, err)
	defer l.Close()
	for range 29 {
		must(t, l.Append(full))
	}
	if got := told(check(t, dir)); got != "|gone" || len(logsOf(dir)) != 3 {
		t.Errorf("%q, %v", got, logsOf(dir))
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
		appended(t, dir, full)
		if after := check(t, dir); len(p.Flaws) == 0 && len(after.Flaws) > 0 {
			t.Errorf("one record more: %+v", after)
		}
	})
}

// chained makes a log of several files with records of number 1 to so many.
func chained(t testing.TB, records int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := Options{MaxBytes: 1500, Keep: 100}.Open(dir)
	must(t, err)
	defer l.Close()
	for i := range records {
		must(t, l.Append(Record{Time: time.Unix(int64(i), 0), Phase: "outcome", Tool: "Read", Error: fmt.Sprint("record ", i)}))
	}
	return dir
}

func check(t testing.TB, dir string, seen ...Seen) Proof {
	t.Helper()
	p, err := Verify(t.Context(), dir, Known{Seen: seen})
	must(t, err)
	return p
}

// logsOf are the files of a log, the oldest first.
func logsOf(dir string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, FileName+".*"))
	slices.SortFunc(names, func(a, b string) int {
		var i, j int
		fmt.Sscan(strings.TrimPrefix(filepath.Ext(a), "."), &i)
		fmt.Sscan(strings.TrimPrefix(filepath.Ext(b), "."), &j)
		return j - i
	})
	return append(names, filepath.Join(dir, FileName))
}

func linesOf(t testing.TB, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return strings.SplitAfter(strings.TrimSuffix(string(text), "\n")+"\n", "\n")[:strings.Count(string(text), "\n")]
}

func put(t testing.TB, path string, lines []string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600))
}

// A log that is written anew from some record on, hashes and all, is found by a last record that was kept elsewhere.
func TestRewritten(t *testing.T) {
	t.Parallel()
	dir := chained(t, 4)
	seen := check(t, dir)
	log := filepath.Join(dir, FileName)
	l := opened(t, dir)
	for range 3 {
		must(t, l.Append(full))
	}
	must(t, l.Close())
	kept := Seen{seen.Last, seen.Hash}
	if got := told(check(t, dir, kept)); got != "" {
		t.Fatalf("nothing was done: %q", got)
	}
	for name, c := range map[string]struct {
		from, want int // the first record that is another, and so many
		told       string
	}{
		"another text": {2, 7, "not_seen"}, "fewer": {4, 3, "not_seen"}, "only later ones": {5, 7, ""}, "begun anew": {1, 2, "not_seen"},
	} {
		dir := t.TempDir()
		l := opened(t, dir)
		for i, line := range linesOf(t, log) {
			if i+1 == c.from {
				break
			}
			var e Entry
			must(t, json.Unmarshal([]byte(line), &e))
			r := e.Record
			r.Paths, r.Duration = nil, r.Duration*time.Microsecond
			for _, p := range e.Paths {
				r.Paths = append(r.Paths, string(p))
			}
			c := l.calls
			c.mu.Lock()
			ok, err := c.write(&r)
			c.mu.Unlock()
			if must(t, err); !ok {
				t.Fatal("not written")
			}
		}
		for i := c.from; i <= c.want; i++ {
			must(t, l.Append(Record{Phase: "outcome", Error: "forged"}))
		}
		must(t, l.Close())
		if got := told(check(t, dir)); got != "" {
			t.Errorf("%s: without it %q: that is more than is promised", name, got)
		}
		if got := told(check(t, dir, kept)); got != c.told {
			t.Errorf("%s: %q, want %q", name, got, c.told)
		}
	}
	zero := Seen{1 << 60, hex.EncodeToString(make([]byte, 32))}
	if got := told(check(t, dir, zero, kept)); got != "not_seen" {
		t.Errorf("of another log: %q", got)
	}
}

// Damage to any record is found, and where: at the line, the one before or the next.
func TestMangled(t *testing.T) {
	t.Parallel()
	dir := chained(t, 20)
	manglings := []struct {
		name string
		flaw []Flaw
		do   func(lines []string, i int) []string // nil: not here
	}{
		{"a byte", []Flaw{Changed}, func(l []string, i int) []string {
			l[i] = strings.Replace(l[i], "record", "Record", 1)
			return l
		}},
		{"its number", []Flaw{Changed}, func(l []string, i int) []string {
			l[i] = strings.Replace(l[i], `,"seq":`, `,"seq":1`, 1)
			return l
		}},
		{"its prev", []Flaw{Changed}, func(l []string, i int) []string {
			at := strings.Index(l[i], `"prev":"`) + 9
			l[i] = l[i][:at] + string('a'+(l[i][at]-'a'+1)%6) + l[i][at+1:]
			return l
		}},
		{"its end", []Flaw{Changed, Inserted, Dropped, Truncated}, func(l []string, i int) []string {
			l[i] = l[i][:strings.Index(l[i], `,"seq"`)] + "}\n"
			return l
		}},
		{"dropped", []Flaw{Dropped, Truncated}, func(l []string, i int) []string { return slices.Delete(l, i, i+1) }},
		{"swapped", []Flaw{Inserted, Dropped, Changed}, func(l []string, i int) []string {
			if i+1 == len(l) {
				return nil
			}
			l[i], l[i+1] = l[i+1], l[i]
			return l
		}},
		{"twice", []Flaw{Inserted}, func(l []string, i int) []string { return slices.Insert(l, i, l[i]) }},
		{"a line more", []Flaw{Inserted}, func(l []string, i int) []string {
			return slices.Insert(l, i, `{"time":"2026-11-23T00:00:00Z","phase":"outcome"}`+"\n")
		}},
		{"cut here", []Flaw{Dropped, Truncated}, func(l []string, i int) []string { return l[:i] }},
		{"cut within", []Flaw{Dropped, Truncated}, func(l []string, i int) []string {
			return append(l[:i:i], l[i][:40])
		}},
	}
	for f, log := range logsOf(dir) {
		whole := linesOf(t, log)
		for i := range whole {
			for _, m := range manglings {
				lines := m.do(slices.Clone(whole), i)
				if lines == nil {
					continue
				}
				put(t, log, lines)
				p := check(t, dir)
				name := fmt.Sprintf("%s, file %d, line %d", m.name, f, i+1)
				if len(p.Flaws) == 0 {
					t.Errorf("%s: not found: %+v", name, p)
					continue
				}
				near := false
				for _, got := range p.Flaws {
					near = near || got.File == filepath.Base(log) && got.Line >= i && got.Line <= i+2 || got.Flaw == Truncated ||
						got.Flaw == Dropped && got.Line == 1 // it is told before the first record that is there
					if !slices.Contains(m.flaw, got.Flaw) {
						t.Errorf("%s: %+v", name, p.Flaws)
					}
				}
				if !near {
					t.Errorf("%s: told elsewhere: %+v", name, p.Flaws)
				}
			}
		}
		put(t, log, whole)
	}
}
