package audit

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Every record is read once and in order, whether it was moved away before, meanwhile or not at all.
func TestReadFollows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := Options{MaxBytes: 2000, Keep: -1}.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	append100 := func(from int) {
		for i := from; i < from+100; i++ {
			if err := l.Append(Record{Tool: strconv.Itoa(i), Outcome: "ok"}); err != nil {
				t.Error(err)
			}
		}
	}
	append100(0)
	logs, _ := filepath.Glob(filepath.Join(dir, FileName+"*"))
	if len(logs) < 5 {
		t.Fatalf("only %v: nothing is moved away, or not all stay", logs)
	}
	read := func(follow bool, most int, caughtUp func() error) (got []int) {
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		defer stop()
		err := Read(ctx, dir, follow, caughtUp, func(line []byte) error {
			var e Entry
			if err := json.Unmarshal(line, &e); err != nil {
				return err
			}
			n, err := strconv.Atoi(e.Tool)
			if got = append(got, n); len(got) == most {
				stop()
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return got
	}
	inOrder := func(got []int, n int) {
		t.Helper()
		want := make([]int, n)
		for i := range want {
			want[i] = i
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
	}
	inOrder(read(false, 0, nil), 100)
	inOrder(read(true, 200, func() error { append100(100); return nil }), 200)
	inOrder(read(false, 0, nil), 200)

	if err := Read(t.Context(), t.TempDir(), false, nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a log: %v", err)
	}
	stop := errors.New("enough")
	if err := Read(t.Context(), dir, true, nil, func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of the reader's: %v", err)
	}
}

// A line that a crash broke is given as it is, and the ones after it are whole.
func TestReadTorn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "{\"torn\n\n{\"tool\":\"a\",\"paths\":[\"/x\",{\"bytes\":\"/w==\"}]}\n{\"not yet"
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := Read(t.Context(), dir, false, nil, func(line []byte) error { got = append(got, string(line)); return nil }); err != nil {
		t.Fatal(err)
	}
	var e Entry
	if len(got) != 2 || got[0] != `{"torn` || json.Unmarshal([]byte(got[1]), &e) != nil || len(e.Paths) != 2 || e.Paths[1] != "\xff" {
		t.Errorf("%q %v", got, e.Paths)
	}
}

// What is written can be read back.
func TestEntriesAreRecords(t *testing.T) {
	var e Entry
	if err := json.Unmarshal([]byte(fullLine), &e); err != nil {
		t.Fatal(err)
	}
	back := e.Record
	back.Duration *= time.Microsecond
	want := full
	want.Time, want.Paths, back.Paths = full.Time.UTC().Truncate(time.Microsecond), nil, nil
	if !reflect.DeepEqual(back, want) {
		t.Errorf("%+v\nwant %+v", back, want)
	}
	if !strings.Contains(string(e.Paths[2]), "\xff") {
		t.Errorf("%q", e.Paths)
	}
}

// Records that hold a hash are counted in both logs, and a line that is no record of ours, too.
func TestCountMentions(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir)
	must(t, err)
	defer l.Close()
	a, b := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	for i, r := range []Record{{Before: a, After: b}, {After: a}, {After: b}, {Error: a + "0"}, {Error: "it is " + a + "."}} {
		if i%2 == 0 {
			must(t, l.AppendChange(r))
		} else {
			must(t, l.Append(r))
		}
	}
	must(t, os.WriteFile(filepath.Join(dir, FileName+".1"), []byte(strings.Repeat("x", 3<<20)+a+"\n"), 0o600))
	for _, x := range []struct {
		hashes []string
		want   int
	}{{nil, 0}, {[]string{a}, 4}, {[]string{a, b}, 5}, {[]string{strings.Repeat("ef", 32)}, 0}} {
		if n, err := CountMentions(dir, x.hashes); err != nil || n != x.want {
			t.Errorf("%.4v: %d %v, want %d", x.hashes, n, err, x.want)
		}
	}
	if n, err := CountMentions(t.TempDir(), []string{a}); err != nil || n > 0 {
		t.Errorf("without a log: %d %v", n, err)
	}
}
