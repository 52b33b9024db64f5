package readers

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	for _, name := range strings.Fields(os.Getenv("SMOKE")) {
		if strings.HasPrefix(name, "-") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		c, err := readBytes(t, b, Options{PDFEngine: os.Getenv("ENGINE")})
		t.Logf("%s: %v %T %.300q", name, time.Since(start), c, err)
		switch c := c.(type) {
		case *PDF:
			t.Logf("%.1500s\n%+v", c.Text, c.Pages)
		case *Text:
			t.Logf("%.600s", c.Content)
		}
	}
}

func BenchmarkText4K(b *testing.B) {
	data := []byte(strings.Repeat("func main() { return 12345 }\n", 141))
	r, _ := New(Config{})
	b.ReportAllocs()
	for b.Loop() {
		r.Read(context.Background(), Source{R: bytes.NewReader(data), Size: int64(len(data))}, Options{})
	}
}
