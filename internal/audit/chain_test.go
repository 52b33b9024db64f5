package audit

import (
	"bytes"
	"crypto/hmac"
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
	const record = `{"time":"2026-11-23T00:00:00Z","phase":"outcome"}`
	forged := func(dir string) string { // a record as its writer would make it, but for the key
		at, _ := parseLink(file(t, filepath.Join(dir, keyName)))
		at.key = digest{1}
		return string(at.extend([]byte(record[:len(record)-1]), mark{}))
	}
	early := map[string][]byte{} // the files as they were seven records ago
	for _, c := range []struct {
		name, without, with, later string // later: with a key, after one more record
		after                      uint64
		do                         func(dir, log, keys string)
	}{
		{"nothing", "", "", "", 0, func(string, string, string) {}},
		{"key put back", "key_state", "key_state", "", 0, func(_, _, keys string) {
			must(t, os.WriteFile(keys, early[keyName], 0o600))
		}},
		{"key and log put back", "", "", "", 0, func(_, log, keys string) { // only a copy of the number elsewhere tells
			must(t, os.WriteFile(keys, early[keyName], 0o600))
			must(t, os.WriteFile(log, early[FileName], 0o600))
		}},
		{"log put back", "truncated", "truncated", "dropped", 0, func(_, log, _ string) {
			must(t, os.WriteFile(log, early[FileName], 0o600))
		}},
		{"key removed", "key_state", "key_state", "new_chain", 0, func(_, _, keys string) { must(t, os.Remove(keys)) }},
		{"key damaged", "key_state", "key_state", "new_chain", 0, func(_, _, keys string) {
			must(t, os.WriteFile(keys, bytes.Repeat([]byte{0}, linkLen), 0o600))
		}},
		{"log removed", "truncated", "truncated", "dropped", 0, func(_, log, _ string) { must(t, os.Remove(log)) }},
		{"log removed by its operator", "|gone", "|gone", "|gone", 99, func(_, log, _ string) { must(t, os.Remove(log)) }},
		{"all removed", "", "new_chain", "new_chain", 0, func(dir, log, keys string) {
			must(t, errors.Join(os.Remove(log), os.Remove(keys)))
			l, err := Open(dir)
			must(t, errors.Join(err, l.Append(full), l.Close()))
		}},
		{"forged", "inserted", "inserted", "inserted", 0, func(dir, log, _ string) { appendTo(t, log, forged(dir)) }},
		{"forged without an end", "inserted", "inserted", "inserted", 0, func(dir, log, _ string) {
			appendTo(t, log, strings.TrimSuffix(forged(dir), "\n"))
		}},
		{"unchained", "inserted", "inserted", "inserted", 0, func(_, log, _ string) { appendTo(t, log, record+"\n") }},
		{"unchained without an end", "inserted", "inserted", "inserted", 0, func(_, log, _ string) { appendTo(t, log, record) }},
		{"torn", "|interrupted", "|interrupted", "|interrupted", 0, func(_, log, _ string) { appendTo(t, log, record[:20]) }},
		{"moved", "|moved", "|moved", "|moved", 0, func(dir, log, _ string) {
			must(t, os.Rename(log, log+".1"))
			l, err := Open(dir)
			must(t, errors.Join(err, l.Append(full), l.Close()))
		}},
		{"copied and cut", "|moved", "|moved", "|moved", 0, func(dir, log, _ string) {
			must(t, os.WriteFile(log+".1", file(t, log), 0o600))
			must(t, os.Truncate(log, 0))
			l, err := Open(dir)
			must(t, errors.Join(err, l.Append(full), l.Close()))
		}},
		{"cut at the front", "dropped", "dropped", "dropped", 0, func(_, log, _ string) {
			must(t, os.WriteFile(log, file(t, log)[bytes.IndexByte(file(t, log), '\n')+1:], 0o600))
		}},
		{"a key of its own", "changed", "changed", "changed", 0, func(_, log, keys string) { // without the key above he rewrites what he likes
			must(t, os.WriteFile(log, bytes.Replace(file(t, log), []byte("record 9"), []byte("record 8"), 1), 0o600))
		}},
	} {
		dir := t.TempDir()
		log, keys := filepath.Join(dir, FileName), filepath.Join(dir, keyName)
		l, err := Open(dir)
		must(t, err)
		must(t, l.Append(full))
		key, err := l.NewKey(full)
		must(t, err)
		for i := range 10 {
			if i == 3 {
				early[keyName], early[FileName] = file(t, keys), file(t, log)
			}
			r := full
			r.Error = fmt.Sprint("record ", i)
			must(t, l.Append(r))
		}
		must(t, l.Close())
		c.do(dir, log, keys)
		if got := told(verify(t, dir, c.after)); got != c.without {
			t.Errorf("%s: without a key %q, want %q", c.name, got, c.without)
		}
		if got := told(verify(t, dir, c.after, key)); got != c.with {
			t.Errorf("%s: with a key %q, want %q", c.name, got, c.with)
		}
		l, err = Open(dir)
		must(t, err)
		must(t, errors.Join(l.Append(full), l.Close()))
		if got := told(verify(t, dir, c.after, key)); got != c.later {
			t.Errorf("%s: later %q, want %q", c.name, got, c.later)
		}
	}
}

// Who writes the log anew from some record on needs the key of that record. That of today is of no
// use, and one of his own is found by the key that is kept elsewhere.
func TestStolenKey(t *testing.T) {
	t.Parallel()
	dir, key := chained(t, 5)
	log, keys := filepath.Join(dir, FileName), filepath.Join(dir, keyName)
	at, ok := parseLink(file(t, keys))
	if !ok {
		t.Fatal("no key")
	}
	lines := linesOf(t, log)
	stolen := at // the key of today, set back to record 4
	s, ok := parse([]byte(strings.TrimSuffix(lines[2], "\n")))
	if !ok {
		t.Fatal(lines)
	}
	stolen.seq, stolen.head, stolen.count = 4, s.head(), 3
	for i := 3; i < 5; i++ {
		lines[i] = string(stolen.extend([]byte(`{"time":"2026-11-23T00:00:00Z","phase":"forged"`), mark{}))
	}
	stolen.size = int64(len(strings.Join(lines, "")))
	put(t, log, lines)
	must(t, os.WriteFile(keys, appendLink(nil, &stolen), 0o600))
	if got := told(verify(t, dir, 0)); got != "" {
		t.Errorf("without a key from outside %q: that proves more than is promised", got)
	}
	p := verify(t, dir, 0, key)
	if len(p.Flaws) == 0 || p.Flaws[0].Flaw != Inserted && p.Flaws[0].Flaw != Changed || p.Flaws[0].Line != 4 {
		t.Errorf("not found with the key: %+v", p.Flaws)
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
			l.step = func() {
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
			l.step = nil
			must(t, l.closeFiles()) // as the system does
			if got := told(verify(t, dir, 0)); strings.Trim(strings.SplitN(got, "|", 2)[0], " ") != "" {
				t.Errorf("killed at %d: %q", n, got)
			}
			l, err = o.Open(dir)
			must(t, err)
			for range 3 {
				must(t, l.Append(full))
			}
			must(t, l.Close())
			p := verify(t, dir, 0)
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
	dir, key := chained(t, 3)
	log, keys := filepath.Join(dir, FileName), filepath.Join(dir, keyName)
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
		if got := told(verify(t, dir, 0, key)); got != "" && got != "|interrupted" {
			t.Fatalf("%d bytes: %q", n, got)
		}
		l, err := Open(dir)
		must(t, err)
		must(t, errors.Join(l.Append(full), l.Append(full), l.Close()))
		if got := told(verify(t, dir, 0, key)); got != "" && got != "|interrupted" {
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
	if got := told(verify(t, dir, 0)); got != "|gone" {
		t.Errorf("%q", got)
	}
	long := full // the last of its file, as a restore of thousands of files
	long.Paths = slices.Repeat([]string{"/ws/a/file/of/many"}, 30_000)
	for range 4 {
		must(t, errors.Join(l.Append(long), l.Append(full)))
	}
	if got := told(verify(t, dir, 0)); got != "|gone" {
		t.Errorf("with long records: %q", got)
	}
	must(t, os.Remove(filepath.Join(dir, FileName+".1")))
	if got := told(verify(t, dir, 0)); got != "dropped|gone" {
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
	if got := told(verify(t, dir, 0)); !strings.HasPrefix(got, "|") {
		t.Errorf("before: %q", got)
	}
	l, err := Open(dir)
	must(t, err)
	must(t, errors.Join(l.Append(full), l.Append(full), l.Close()))
	if p := verify(t, dir, 0); told(p) != "|not_chained" || p.Records != 2 {
		t.Errorf("%+v", p)
	}
	must(t, os.WriteFile(log, bytes.Replace(file(t, log), []byte("11-23"), []byte("11-24"), 1), 0o600))
	if p := verify(t, dir, 0); told(p) != "changed|not_chained" || p.Flaws[0].Line != 1 {
		t.Errorf("%+v", p)
	}
}

// No log makes the verifier crash or run away, and what it calls whole is a log that a writer goes
// on with.
func FuzzVerify(f *testing.F) {
	dir, key := chained(f, 4)
	text, state := file(f, filepath.Join(dir, FileName)), file(f, filepath.Join(dir, keyName))
	f.Add(text, state)
	f.Add(append(text, "{torn"...), state)
	f.Add([]byte(nil), state)
	f.Add([]byte("{}\n{}\n"), []byte(nil))
	f.Fuzz(func(t *testing.T, log, keys []byte) {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, FileName), log, 0o600))
		must(t, os.WriteFile(filepath.Join(dir, keyName), keys, 0o600))
		p := verify(t, dir, 0, key)
		if p.Proven > 0 && len(p.Flaws) == 0 && !bytes.HasPrefix(log, text) {
			t.Errorf("a forged log is proven: %+v", p)
		}
		l, err := Open(dir)
		must(t, err)
		must(t, errors.Join(l.Append(full), l.Close()))
		if after := verify(t, dir, 0); len(p.Flaws) == 0 && len(after.Flaws) > 0 {
			t.Errorf("one record more: %+v", after)
		}
	})
}

// The MAC is that of the standard library.
func TestMacOf(t *testing.T) {
	for i := range 100 {
		key, d := sha256.Sum256([]byte{byte(i)}), sha256.Sum256([]byte{1, byte(i)})
		h := hmac.New(sha256.New, key[:])
		h.Write(d[:])
		if got := macOf(key, d); !bytes.Equal(got[:], h.Sum(nil)) {
			t.Fatalf("%x %x: %x", key, d, got)
		}
	}
}

func BenchmarkMac(b *testing.B) {
	var key, d digest
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			key = macOf(key, d)
		}
	})
	b.Run("crypto/hmac", func(b *testing.B) {
		for b.Loop() {
			h := hmac.New(sha256.New, key[:])
			h.Write(d[:])
			h.Sum(key[:0])
		}
	})
}
