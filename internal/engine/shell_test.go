package engine

import (
	"strings"
	"testing"
)

// A mark is found however the output comes in pieces, nothing is lost, and nothing that only resembles it counts.
func TestMarks(t *testing.T) {
	t.Parallel()
	mark := NewMark()
	if mark == NewMark() || mark[0] != 0 || len(mark) < 20 {
		t.Fatalf("%q", mark)
	}
	for _, c := range []struct {
		out  string
		want int
	}{
		{"", 0}, {"plain", 0}, {mark, 1}, {"a" + mark + "b" + mark + mark + "c", 3}, {"\x00", 0}, {"a\x00\x00b\x00", 0}, {mark[:9] + mark + mark[:9], 1},
		{"\x00" + mark, 1}, {mark[1:], 0}, {mark[:len(mark)-1], 0}, {mark[:len(mark)-1] + "\x00", 0}, {NewMark(), 0},
	} {
		for size := range len(c.out) + 1 {
			var got strings.Builder
			n := 0
			m := Marks{To: &got, Mark: mark, At: func() { n++ }}
			for rest := c.out; rest != ""; {
				piece := rest[:min(size+1, len(rest))]
				if k, err := m.Write([]byte(piece)); k != len(piece) || err != nil {
					t.Fatal(k, err)
				}
				rest = rest[len(piece):]
			}
			if err := m.End(); err != nil || n != c.want || got.String() != strings.ReplaceAll(c.out, mark, "") {
				t.Errorf("%q in pieces of %d: %d marks, %q, %v", c.out, size+1, n, &got, err)
			}
		}
	}
}

// Of much output the beginning and the end are kept, and what is between is counted.
func TestOutputIsCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ size, left int64 }{{0, 0}, {1, 0}, {shownOutput, 0}, {shownOutput + 1, 1}, {1 << 20, 1<<20 - shownOutput}} {
		for _, step := range []int{1000, 1 << 17} {
			s := newShell("x")
			all := strings.Repeat("0123456789abcdef", int(c.size/16)+1)[:c.size]
			for rest := all; rest != ""; {
				piece := rest[:min(step, len(rest))]
				if _, err := s.out.Write([]byte(piece)); err != nil {
					t.Fatal(err)
				}
				rest = rest[len(piece):]
			}
			sum := s.hashed()
			got, _, left := s.Written()
			if left != c.left || !strings.HasPrefix(got, all[:min(len(all), shownOutput/2)]) || !strings.HasSuffix(got, all[max(0, len(all)-shownOutput/2):]) ||
				(left == 0) != (got == all) || len(got) > shownOutput+100 || sum != HashOf([]byte(all)) {
				t.Errorf("%d bytes: %d left out of it, %d given", c.size, left, len(got))
			}
			if again, _, left := s.Written(); again != "" || left != 0 {
				t.Errorf("it is given twice: %.100q", again)
			}
		}
	}
}
