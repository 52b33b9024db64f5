package audit

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

var full = Record{
	Time: time.Date(2026, 11, 21, 3, 4, 5, 678901234, time.FixedZone("x", 3600)), Phase: "outcome", Call: "c1",
	PID: 7, User: "u", Where: "bwrap-1", Client: "claude-code/2.1", By: "agent", Dialect: "tools", Tool: "Edit",
	Principal: "ci", Session: "s1", Turn: "t1", Paths: []string{"/ws/a\nb\"\\", "/ws/é\u2028\u0085\x7f", "/ws/\xff"}, Pattern: "p", Window: "w",
	Outcome: "ok", DryRun: true, Decision: "allowed", Rule: "r", Approval: "approved by terminal", Digest: "d", Checkpoint: "k",
	Before: "b", After: "a", Bytes: 12, Duration: 1500 * time.Microsecond, Hooks: []string{"h", "i"}, Injected: []string{"_a"}, Alert: "l", Version: "v", Policy: "y", Error: "e",
}

const fullLine = `{"time":"2026-11-21T02:04:05.678901Z","phase":"outcome","call":"c1",` +
	`"dialect":"tools","tool":"Edit","principal":"ci","session":"s1","turn":"t1","pid":7,"user":"u","where":"bwrap-1","client":"claude-code/2.1","by":"agent",` +
	`"paths":["/ws/a\u000ab\"\\","/ws/é\u2028\u0085\u007f",{"bytes":"L3dzL/8="}],"injected":["_a"],"pattern":"p","window":"w","outcome":"ok","dry_run":true,"decision":"allowed","rule":"r",` +
	`"approval":"approved by terminal","digest":"d","checkpoint":"k","before":"b","after":"a","bytes":12,"duration_us":1500,"hooks":["h","i"],"alert":"l",` +
	`"version":"v","policy":"y","error":"e"}` + "\n"

func TestRecord(t *testing.T) {
	if got := string(appendRecord(nil, &full)) + "}\n"; got != fullLine {
		t.Errorf("got  %s\nwant %s", got, fullLine)
	}
	if got, want := string(appendRecord(nil, &Record{}))+"}\n", `{"time":"0001-01-01T00:00:00.000000Z","phase":""}`+"\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// Every field of Record is written: one that is added later must be added to the encoder.
	v := reflect.ValueOf(&full).Elem()
	var any map[string]any
	if err := json.Unmarshal([]byte(fullLine), &any); err != nil {
		t.Fatal(err)
	}
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not in the test", v.Type().Field(i).Name)
		}
	}
	if len(any) != v.NumField() {
		t.Errorf("%d keys for %d fields", len(any), v.NumField())
	}
	long := Record{Error: strings.Repeat("é", maxError)}
	if line := append(appendRecord(nil, &long), '}'); !json.Valid(line) || !utf8.Valid(line) || len(line) > maxError+200 {
		t.Errorf("a long error: %d bytes, valid %v", len(line), json.Valid(line))
	}
	for _, year := range []int{-5, 12345} {
		if line := appendRecord(nil, &Record{Time: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}); !bytes.Contains(line, []byte("0001-01-01T")) {
			t.Errorf("year %d: %s", year, line)
		}
	}
}

// bare is a log without what the chain says.
func bare(log []byte) string {
	return regexp.MustCompile(`,"seq":[^\n]*"}\n`).ReplaceAllString(string(log), "}\n")
}

func FuzzString(f *testing.F) {
	for _, s := range []string{"", "a", "\x00\x1f\"\\/", "é\u2028\u0080\x7f", "\xff", "a\xc3", "\U0001f642"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line := appendString(nil, s)
		for _, r := range string(line) {
			if unicode.IsControl(r) || r == 0x2028 || r == 0x2029 {
				t.Fatalf("%q: %U stands in %q", s, r, line)
			}
		}
		if !utf8.ValidString(s) {
			var v struct{ Bytes string }
			if err := json.Unmarshal(line, &v); err != nil {
				t.Fatal(err)
			}
			if raw, err := base64.StdEncoding.DecodeString(v.Bytes); err != nil || string(raw) != s {
				t.Fatalf("%q came back as %q, %v", s, raw, err)
			}
			return
		}
		var back string
		if err := json.Unmarshal(line, &back); err != nil || back != s {
			t.Fatalf("%q came back as %q, %v", s, back, err)
		}
	})
}

func TestAppend(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "audit")
	l, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(full); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Append(full); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(full); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil || bare(got) != fullLine+fullLine+fullLine {
		t.Errorf("%v\n%s", err, got)
	}
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, FileName): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Append(full); !errors.Is(err, errClosed) {
		t.Errorf("append after close: %v", err)
	}
	_ = again.Close()
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "file")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(plain); err == nil {
		t.Error("a file is taken for a directory")
	}
	linked := filepath.Join(dir, "linked")
	if err := os.MkdirAll(linked, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(plain, filepath.Join(linked, FileName)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(linked); err == nil {
		t.Error("the log follows a link")
	}
	was, _ := os.Stat(dir)
	if err := os.Chmod(dir, fs.ModeSticky|0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil && runtime.GOOS != "windows" {
		t.Error("a directory in which anybody may write is taken")
	}
	if info, _ := os.Stat(dir); info.Mode()&(fs.ModeSticky|0o777) != fs.ModeSticky|0o777 && runtime.GOOS != "windows" {
		t.Errorf("the mode of a directory that was there is %v", info.Mode())
	}
	if err := os.Chmod(dir, was.Mode()); err != nil {
		t.Fatal(err)
	}
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, FileName), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(taken); err == nil {
		t.Error("a directory is taken for the log")
	}
}

// A record that is half there is ended before the next one.
func TestTorn(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(`{"time":"2026`), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Append(full); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(filepath.Join(dir, FileName))
	if bare(got) != `{"time":"2026`+"\n"+fullLine {
		t.Errorf("%s", got)
	}
	if info, _ := os.Stat(filepath.Join(dir, FileName)); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

// Whoever removes or moves the log away loses no later record.
func TestRemovedAndMoved(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	path := filepath.Join(dir, FileName)
	_ = l.Append(full)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(full); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); bare(got) != fullLine {
		t.Errorf("after a removal: %q", got)
	}
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(full); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); bare(got) != fullLine {
		t.Errorf("after a move: %q", got)
	}
	removed := false
	l.calls.step = func() { // right after the write
		if !removed {
			removed = true
			must(t, os.Remove(path))
		}
	}
	if err := l.Append(full); err != nil || !removed {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); bare(got) != fullLine {
		t.Errorf("after a removal behind the write: %q", got)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(full); err == nil {
		t.Error("recorded in a directory that is gone")
	}
}

func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	dir := t.TempDir()
	l, err := Open(dir)
	must(t, err)
	defer l.Close()
	must(t, l.Append(full))
	for _, name := range []string{FileName, lastName} { // a record that can't be written, and one whose end can't
		path := filepath.Join(dir, name)
		must(t, errors.Join(os.Rename(path, path+".good"), os.Symlink("/dev/full", path)))
		if err := l.Append(full); err == nil {
			t.Errorf("%s: a record on a full disk is reported as written", name)
		}
		must(t, errors.Join(os.Remove(path), os.Rename(path+".good", path)))
		must(t, l.Append(full))
	}
	c := l.calls // the files are open already when the disk fills up
	for _, f := range []**os.File{&c.file, &c.last} {
		good := *f
		*f, err = os.OpenFile("/dev/full", os.O_RDWR, 0)
		must(t, err)
		c.named = func(*os.File, string) bool { return true }
		if err := l.Append(full); err == nil {
			t.Error("a record on a full disk is reported as written")
		}
		_ = (*f).Close()
		*f, c.named = good, isNamed
		must(t, l.Append(full))
	}
	if got := told(check(t, dir)); got != "" && got != "|interrupted" {
		t.Errorf("%q", got)
	}
}

func TestRotateKeeps(t *testing.T) {
	dir := t.TempDir()
	l, err := Options{MaxBytes: int64(len(fullLine)+80) * 3, Keep: 2}.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 10 {
		if err := l.Append(full); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int{"": 1, ".1": 3, ".2": 3, ".3": -1} {
		got, err := os.ReadFile(filepath.Join(dir, FileName+name))
		n := bytes.Count(got, []byte("\n"))
		if err != nil {
			n = -1
		}
		if n != want {
			t.Errorf("%q holds %d records, want %d", name, n, want)
		}
	}
}

// appender is what the processes of the race below write with.
type appender interface{ Append(Record) error }

// careless rotates as if there were only one process: without a lock, without a look at what is there
// now, and without a look after the write.
type careless struct{ *chain }

func (c careless) Append(r Record) error {
	c.buf = append(appendRecord(c.buf[:0], &r), "}\n"...)
	if _, err := c.file.Write(c.buf); err != nil {
		return err
	}
	if there, err := c.file.Stat(); err == nil && there.Size() >= c.o.MaxBytes {
		for i := c.o.Keep; i > 1; i-- {
			_ = os.Rename(c.older(i-1), c.older(i))
		}
		_ = os.Rename(c.path, c.older(1))
		return c.open()
	}
	return nil
}

const (
	processes = 6
	each      = 600
)

// TestMain becomes one of the writing processes when it is told to.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AUDIT_TEST_DIR"); dir != "" {
		write(dir, os.Getenv("AUDIT_TEST_NAME"), os.Getenv("AUDIT_TEST_CARELESS") != "")
		return
	}
	os.Exit(m.Run())
}

func write(dir, name string, bad bool) {
	l, err := Options{MaxBytes: 8 << 10, Keep: 2000}.Open(dir)
	if err != nil {
		panic(err)
	}
	var a appender = l
	if bad {
		a = careless{l.calls}
	}
	for i := range each {
		if err := a.Append(Record{Time: time.Unix(1, 0), Phase: "intent", Call: name + "-" + strconv.Itoa(i), Error: strings.Repeat("x", i%300)}); err != nil {
			panic(err)
		}
	}
}

// race runs the processes and counts the records that are missing and the lines that are broken.
func race(t *testing.T, bad bool) (missing, broken int) {
	t.Helper()
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "AUDIT_TEST_DIR="+dir, fmt.Sprint("AUDIT_TEST_NAME=p", i))
			if bad {
				cmd.Env = append(cmd.Env, "AUDIT_TEST_CARELESS=1")
			}
			if out, err := cmd.CombinedOutput(); err != nil && !bad {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	if !bad {
		if p := check(t, dir); len(p.Flaws)+len(p.Notes) > 0 || p.Records != processes*each {
			t.Errorf("the chain is not whole: %+v", p)
		}
	}
	seen := map[string]int{}
	names, _ := filepath.Glob(filepath.Join(dir, FileName+"*"))
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var r struct{ Call string }
			if len(lines.Bytes()) == 0 {
				continue
			}
			if json.Unmarshal(lines.Bytes(), &r) != nil {
				broken++
			}
			seen[r.Call]++
		}
		_ = f.Close()
	}
	for i := range processes {
		for k := range each {
			if n := seen[fmt.Sprint("p", i, "-", k)]; n != 1 {
				missing++
			}
		}
	}
	if !bad && len(names) < 20 {
		t.Errorf("only %d files: hardly any rotation", len(names))
	}
	return missing, broken
}

// Six processes write and rotate, and every record is there once.
func TestManyProcesses(t *testing.T) {
	if missing, broken := race(t, false); missing > 0 || broken > 0 {
		t.Errorf("%d records are missing or twice there, %d lines are broken", missing, broken)
	}
	// The same race has to catch the careless way, or it proves nothing.
	for range 5 {
		if missing, _ := race(t, true); missing > 0 {
			return
		}
	}
	t.Error("careless rotation loses nothing here: the race is too tame")
}

func TestManyGoroutines(t *testing.T) {
	dir := t.TempDir()
	l, err := Options{MaxBytes: 16 << 10, Keep: 1000}.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if err := l.Append(full); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	total := 0
	names, _ := filepath.Glob(filepath.Join(dir, FileName+"*"))
	for _, name := range names {
		data, _ := os.ReadFile(name)
		total += strings.Count(bare(data), fullLine)
	}
	if total != 1600 {
		t.Errorf("%d of 1600 records", total)
	}
}

func BenchmarkAppend(b *testing.B) {
	l, err := Options{MaxBytes: 1 << 40}.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	r := full
	r.Paths = []string{"/home/user/project/internal/engine/mutate.go"}
	r.Before, r.After, r.Digest = strings.Repeat("0", 64), strings.Repeat("1", 64), strings.Repeat("2", 64)
	b.Run("record", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := l.Append(r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) { // what the system takes for the same bytes
		line := appendRecord(nil, &r)
		for b.Loop() {
			if _, err := l.calls.file.Write(append(line, "}\n"...)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf = appendRecord(buf[:0], &r)
		}
	})
}
