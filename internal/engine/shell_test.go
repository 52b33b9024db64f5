package engine

import (
	"encoding/hex"
	"strings"
	"testing"
)

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
			sum := hex.EncodeToString(s.all.Sum(nil))
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
