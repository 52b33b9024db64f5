package edit

import (
	"fmt"
	"strings"
	"testing"
)

// benchText is some code of about size bytes with one line, in the middle, that is there once.
func benchText(size int) string {
	line := "\tresult := compute(first, second) // déjà vu, line %d of many\n"
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		if i == size/60/2 {
			b.WriteString("\tneedle := \"the one\"\n")
		}
		fmt.Fprintf(&b, line, i)
	}
	return b.String()
}

// benchCharsets are one of each kind: bytes are the text, one byte a character, two bytes, mixed.
func benchCharsets() []string { return []string{"utf-8", "iso-8859-1", "utf-16le", "gb18030"} }

// BenchmarkEditLine changes one line. B/op is what docs/internals/benchmarks.md calls memory: all that was taken, so more than the peak.
func BenchmarkEditLine(b *testing.B) {
	for _, cs := range benchCharsets() {
		for _, size := range []int{1 << 10, 100 << 10, 10 << 20} {
			b.Run(fmt.Sprintf("%s/%dKB", cs, size>>10), func(b *testing.B) {
				raw := encodeText(b, cs, benchText(size), false)
				edits := []Edit{{Old: "needle := \"the one\"", New: "needle := \"another\"\n\tand := \"more\""}}
				b.SetBytes(int64(len(raw)))
				b.ReportAllocs()
				for b.Loop() {
					r, err := Apply(raw, edits, Options{Encoding: cs})
					if err != nil {
						b.Fatal(err)
					}
					if len(r.Patch()) != 1 {
						b.Fatal("patch")
					}
				}
			})
		}
	}
}

// BenchmarkNoMatch times a miss with its diagnosis.
func BenchmarkNoMatch(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10, 10 << 20} {
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) {
			raw := []byte(benchText(size))
			edits := []Edit{{Old: "needle := \"the only one there is\"", New: "x"}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Apply(raw, edits, Options{}); err == nil {
					b.Fatal("matched")
				}
			}
		})
	}
}
