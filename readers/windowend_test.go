package readers

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The end of a file is its end, also where the last line is longer than what is read from there.
func TestEndOfAGiantLine(t *testing.T) {
	t.Parallel()
	times := 9 << 20 // 45 MB, 36 M characters
	if testing.Short() {
		times /= 2 // above lineSearch still
	}
	line := strings.Repeat("ab·d", times)
	wide := []byte("\xff\xfe" + strings.Repeat("a\x00b\x00\xb7\x00d\x00", times/2) + "T\x00H\x00E\x00 \x00E\x00N\x00D\x00")
	for _, c := range []struct {
		name string
		raw  []byte
		last int
	}{
		{"one line", []byte(line + "THE END"), 1},
		{"with a newline", []byte("first\n" + line + "THE END\r\n"), 2},
		{"UTF-16", wide, 1},
		{"too far to count", []byte(strings.Repeat(line, tailCount/len(line)+1) + "THE END"), -1},
	} {
		m := readAs[*Text](t, c.raw, Options{Tail: true, AllowLarge: true})
		if !strings.HasSuffix(m.Content, "d"+"THE END\n") || m.StartLine != c.last || m.StartColumn != 0 || m.NextColumn != 0 || m.LinesCut != 0 || m.Whole || len(m.Shown) > 0 || !m.Truncated {
			t.Errorf("%s: …%q, line %d, column %d, next %d, %v", c.name, m.Content[max(len(m.Content)-20, 0):], m.StartLine, m.StartColumn, m.NextColumn, m.Shown)
		}
		if !strings.Contains(m.Note, "last 2,000 characters") {
			t.Errorf("%s: %q", c.name, m.Note)
		}
	}
	tiny := readAs[*Text](t, []byte(line+"THE END"), Options{Tail: true, MaxBytes: 60})
	if !strings.HasSuffix(tiny.Content, "THE END\n") || len(tiny.Content) > 60 {
		t.Errorf("within 60 bytes: %q", tiny.Content)
	}
}

// lateSource takes longer than any deadline of the test from a place of the file on. The clock is
// that of synctest.
type lateSource struct {
	*bytes.Reader
	from int64
}

func (s lateSource) ReadAt(b []byte, off int64) (int, error) {
	if off >= s.from {
		time.Sleep(1500 * time.Millisecond)
	}
	return s.Reader.ReadAt(b, off)
}

// An answer says how far unpacking came when the time was over: at the beginning, and behind it.
func TestUnpackingOutOfTime(t *testing.T) { // not parallel: in a bubble of synctest nobody may wait for the memory that all decoders share
	noise := make([]byte, 8<<20)
	rand.NewChaCha8([32]byte{5}).Read(noise)
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.HuffmanOnly)
	lines := make([]byte, 0, len(noise)/32*65)
	for ; len(noise) > 0; noise = noise[32:] {
		lines = append(hex.AppendEncode(lines, noise[:32]), '\n')
	}
	z.Write(lines)
	z.Close()
	for _, part := range []int64{0, 8} { // sixteenths of the file
		synctest.Test(t, func(t *testing.T) {
			r := newReaders(t, time.Second)
			src := lateSource{bytes.NewReader(b.Bytes()), int64(b.Len()) * part / 16}
			_, err := r.Read(t.Context(), Source{R: src, Size: int64(b.Len())}, Options{Offset: 10_000_000, Limit: 2})
			var late *OutOfTime
			var limit *Limit
			if part == 0 && errors.As(err, &limit) && limit.Resource == "time" && strings.Contains(limit.Hint(), "Unpack it") {
				return
			}
			if !errors.As(err, &late) || late.Line < 2 || strings.Contains(late.Hint(), "tail") || !strings.Contains(late.Hint(), fmt.Sprint(late.Line)) {
				t.Errorf("%d sixteenths: %v", part, err)
			}
		})
	}
}

// newReaders are readers of their own, which give a file that much time.
func newReaders(t *testing.T, deadline time.Duration) *Readers {
	t.Helper()
	c := testConfig()
	c.Deadline = deadline
	return opened(t, c)
}
