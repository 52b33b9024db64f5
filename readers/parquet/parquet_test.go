package parquet

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDescribe reads a file of another writer. Damaged ones give an answer or an error.
func TestDescribe(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "testdata", "readers", "binary", "small.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	describe := func(b []byte) (summary string, columns []string, err error) {
		summary, err = Describe(bytes.NewReader(b), int64(len(b)), func(column func() string) { columns = append(columns, column()) })
		return summary, columns, err
	}
	summary, columns, err := describe(raw)
	const want = `id int64
name string, optional
f double
when timestamp
day date
ok boolean
tags string, repeated
in.street string, optional
in.no int32`
	if got := strings.Join(columns, "\n"); got != want || !strings.HasPrefix(summary, "Parquet file, 30 rows in 2 groups, written by parquet-go") || err != nil {
		t.Errorf("%s, %v\n%s", summary, err, got)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 3000 {
		bad := bytes.Clone(raw)
		for range 1 + i%5 {
			bad[len(bad)-1-rng.IntN(1500)] ^= byte(1 << rng.IntN(8))
		}
		_, columns, _ := describe(bad)
		for _, c := range columns {
			if len(c) > 1000 {
				t.Fatalf("%d bytes: %s", len(c), c)
			}
		}
		if _, _, err := describe(raw[:len(raw)-1-i%len(raw)]); err == nil {
			t.Fatal("a cut file has columns")
		}
	}
}
