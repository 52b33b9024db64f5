package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNaming(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, b := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	for _, r := range []Record{{Before: a, After: b}, {After: a}, {After: b}, {Error: a + "0"}, {Error: "it is " + a + "."}} {
		if err := l.Append(r); err != nil {
			t.Fatal(err)
		}
	}
	old := strings.Repeat("x", 3<<20) + a + "\n"
	if err := os.WriteFile(filepath.Join(dir, FileName+".1"), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		hashes []string
		want   int
	}{{nil, 0}, {[]string{a}, 4}, {[]string{a, b}, 5}, {[]string{strings.Repeat("ef", 32)}, 0}} {
		if n, err := CountMentions(dir, x.hashes); err != nil || n != x.want {
			t.Errorf("%.4v: %d %v, want %d", x.hashes, n, err, x.want)
		}
	}
}
