package audit

import (
	"bufio"
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
	"slices"
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
	Principal: "ci", Session: "s1", Turn: "t1", Paths: []string{"/ws/a\nb\"\\", "/ws/<é>\u2028\u0085\x7f", "/ws/\xff"}, Pattern: "p", Window: "w",
	Outcome: "ok", DryRun: true, Decision: "allowed", Rule: "r", RuleText: "t", RuleAt: "m:1", Approval: "approved by terminal", Digest: "d", Checkpoint: "k",
	Before: "b", After: "a", Bytes: 12, Duration: 1500 * time.Microsecond, Hooks: []string{"h", "i"}, Injected: []string{"_a"}, Alert: "l", Version: "v", Policy: "y", Error: "e",
}

// opened is the log in a directory.
func opened(t testing.TB, dir string) *Log {
	t.Helper()
	l, err := open(dir)
	must(t, err)
	return l
}

// appended has a writer of its own append records.
func appended(t testing.TB, dir string, records ...Record) {
	t.Helper()
	l := opened(t, dir)
	for _, r := range records {
		must(t, l.Append(r))
	}
	must(t, l.Close())
}

func open(dir string) (*Log, error) { return Options{}.Open(dir) }

const fullLine = `{"time":"2026-11-21T02:04:05.678901Z","phase":"outcome","call":"c1",` +
	`"dialect":"tools","tool":"Edit","principal":"ci","session":"s1","turn":"t1","pid":7,"user":"u","where":"bwrap-1","client":"claude-code/2.1","by":"agent",` +
	`"injected":["_a"],"pattern":"p","window":"w","outcome":"ok","dry_run":true,"decision":"allowed","rule":"r","rule_text":"t","rule_at":"m:1",` +
	`"approval":"approved by terminal","digest":"d","checkpoint":"k","before":"b","after":"a","bytes":12,"hooks":["h","i"],"alert":"l",` +
	`"version":"v","policy":"y","error":"e","paths":["/ws/a\nb\"\\","/ws/<é>\u2028\u0085\u007f",{"bytes":"L3dzL/8="}],"duration_us":1500}` + "\n"

func TestRecord(t *testing.T) {
	line := func(r Record) string {
		text, err := encode(&r, tie{Seq: 1})
		must(t, err)
		return bare(append(text, '\n'))
	}
	if got := line(full); got != fullLine {
		t.Errorf("got  %s\nwant %s", got, fullLine)
	}
	if got, want := line(Record{}), `{"time":"0001-01-01T00:00:00.000000Z","phase":""}`+"\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	v := reflect.ValueOf(&full).Elem()
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not in the test", v.Type().Field(i).Name)
		}
	}
	if got := line(Record{Error: strings.Repeat("é", maxText)}); !json.Valid([]byte(got)) || !utf8.ValidString(got) || len(got) > maxText+200 {
		t.Errorf("a long error: %d bytes", len(got))
	}
	// A record can be read back.
	var e Entry
	must(t, json.Unmarshal([]byte(fullLine), &e))
	back, want := e.Record, full
	back.Duration *= time.Microsecond
	want.Time, want.Paths, back.Paths = full.Time.UTC().Truncate(time.Microsecond), nil, nil
	if !reflect.DeepEqual(back, want) || string(e.Paths[2]) != full.Paths[2] {
		t.Errorf("%+v %q\nwant %+v", back, e.Paths, want)
	}
}

// bare is a log without what the chain says.
func bare(log []byte) string {
	return regexp.MustCompile(`,"seq":[^\n]*"}\n`).ReplaceAllString(string(log), "}\n")
}

// A path comes back as it was, and no reader of lines or terminal finds an end or a control in its record.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "a", "\x00\x1f\"\\/", "é\u2028\u0080\x7f", "\xff", "a\xc3", "\U0001f642", "<&>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line, err := encode(&Record{Paths: []string{s}, Error: s}, tie{Seq: 1})
		must(t, err)
		for _, r := range string(line) {
			if unicode.IsControl(r) || r == 0x2028 || r == 0x2029 {
				t.Fatalf("%q: %U stands in %q", s, r, line)
			}
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil || len(s) <= maxText && string(e.Paths[0]) != s {
			t.Fatalf("%q came back as %q, %v", s, e.Paths, err)
		}
	})
}

// A log tells its ends also where it has written nothing itself.
func TestHeads(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	l := opened(t, dir)
	if got, err := l.Heads(); err != nil || got[0].Number != 0 || got[1].Number != 0 {
		t.Errorf("there is no record: %+v, %v", got, err)
	}
	must(t, errors.Join(l.Append(full), l.Append(full), l.AppendChange(full)))
	want, err := l.Heads()
	if err != nil || want[0].Number != 2 || want[1].Number != 1 || want[1].Chain != Changes {
		t.Errorf("%+v, %v", want, err)
	}
	must(t, l.Close())
	l = opened(t, dir)
	if got, err := l.Heads(); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	must(t, l.Close())
	if _, err := l.Heads(); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

func TestAppend(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "audit")
	l := opened(t, dir)
	must(t, l.Append(full))
	again := opened(t, dir)
	must(t, again.Append(full))
	must(t, l.Append(full))
	got, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil || bare(got) != fullLine+fullLine+fullLine {
		t.Errorf("%v\n%s", err, got)
	}
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, FileName): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	must(t, l.Close())
	must(t, l.Close())
	if err := l.Append(full); !errors.Is(err, errClosed) {
		t.Errorf("append after close: %v", err)
	}
	_ = again.Close()
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "file")
	must(t, os.WriteFile(plain, nil, 0o644))
	if _, err := open(plain); err == nil {
		t.Error("a file is taken for a directory")
	}
	linked := filepath.Join(dir, "linked")
	must(t, os.MkdirAll(linked, 0o755))
	must(t, os.Symlink(plain, filepath.Join(linked, FileName)))
	if _, err := open(linked); err == nil {
		t.Error("the log follows a link")
	}
	was, _ := os.Stat(dir)
	must(t, os.Chmod(dir, fs.ModeSticky|0o777))
	if _, err := open(dir); err == nil && runtime.GOOS != "windows" {
		t.Error("a directory in which anybody may write is taken")
	}
	if info, _ := os.Stat(dir); info.Mode()&(fs.ModeSticky|0o777) != fs.ModeSticky|0o777 && runtime.GOOS != "windows" {
		t.Errorf("the mode of a directory that was there is %v", info.Mode())
	}
	must(t, os.Chmod(dir, was.Mode()))
	taken := filepath.Join(dir, "taken")
	must(t, os.MkdirAll(filepath.Join(taken, FileName), 0o700))
	if _, err := open(taken); err == nil {
		t.Error("a directory is taken for the log")
	}
}

// A log that is removed or moved away loses no later record.
func TestRemovedAndMoved(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, dir)
	defer l.Close()
	path := filepath.Join(dir, FileName)
	_ = l.Append(full)
	must(t, os.Remove(path))
	must(t, l.Append(full))
	if got, _ := os.ReadFile(path); bare(got) != fullLine {
		t.Errorf("after a removal: %q", got)
	}
	must(t, os.Rename(path, path+".moved"))
	must(t, l.Append(full))
	if got, _ := os.ReadFile(path); bare(got) != fullLine {
		t.Errorf("after a move: %q", got)
	}
	must(t, os.RemoveAll(dir))
	if err := l.Append(full); err == nil {
		t.Error("recorded in a directory that is gone")
	}
}

func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	dir := t.TempDir()
	l := opened(t, dir)
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
		disk, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
		must(t, err)
		*f, c.named = disk, func(*os.File, string) bool { return true }
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

// appender is a way to write for the processes of the race below.
type appender interface{ Append(Record) error }

// careless rotates as if there were only one process: without a lock, without a look at what is there
// now, and without a look after the write.
type careless struct{ *chain }

func (c careless) Append(r Record) error {
	line, _ := encode(&r, tie{})
	if _, err := c.file.Write(append(line, '\n')); err != nil {
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
	var wg sync.WaitGroup
	for half := range 2 {
		wg.Go(func() {
			for i := half; i < each; i += 2 {
				if err := a.Append(Record{Time: time.Unix(1, 0), Phase: "intent", Call: name + "-" + strconv.Itoa(i), Error: strings.Repeat("x", i%300)}); err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
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
		must(t, err)
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

// Six processes write with two goroutines each, and rotate, and every record is there once.
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

func BenchmarkAppend(b *testing.B) {
	l, err := Options{MaxBytes: 1 << 40}.Open(b.TempDir())
	must(b, err)
	defer l.Close()
	r := full
	r.Paths = []string{"/home/user/project/internal/engine/mutate.go"}
	r.Before, r.After, r.Digest = strings.Repeat("0", 64), strings.Repeat("1", 64), strings.Repeat("2", 64)
	b.ReportAllocs()
	for b.Loop() {
		must(b, l.Append(r))
	}
}
