package match

import (
	"flag"
	"io/fs"
	"moltisfs/internal/testdir"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

var benchFile = flag.String("match.corpus", "", "file to benchmark on instead of Go's own source")

// corpus is 16 MiB of Go source in name order.
func corpus(t testing.TB) []byte {
	if *benchFile != "" {
		b, err := os.ReadFile(*benchFile)
		if err != nil {
			panic(err)
		}
		return b
	}
	const size = 16 << 20
	var out []byte
	var names []string
	filepath.WalkDir(testdir.GoSource(t), func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(p, ".go") {
			names = append(names, p)
		}
		return nil
	})
	sort.Strings(names)
	for i := range names { // spread over the tree
		b, _ := os.ReadFile(names[i*7%len(names)])
		if out = append(out, b...); len(out) > size {
			return out[:afterLine(out, size)]
		}
	}
	return out
}

type benchPattern struct {
	name, pattern string
	o             Options
}

var benchPatterns = []benchPattern{
	{name: "rare", pattern: "nanosleep"},
	{name: "common", pattern: "return"},
	{name: "fold", pattern: "unlocksched", o: Options{IgnoreCase: true}},
	{name: "inner", pattern: `\w+Alloc\(`},
	{name: "alt5", pattern: "nanosleep|epollwait|goparkunlock|SwissMap|gcMarkDone"},
	{name: "class-literal", pattern: `[A-Z]+_SHUT`},
	{name: "no-literal", pattern: `[A-Z]{6}[0-9]{4}[a-z]`},
	{name: "words", pattern: `\bfunc\b`},
	{name: "space", pattern: `func\s+main`},
	{name: "dotted", pattern: `[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+`},
	{name: "suffix", pattern: `const\s+[A-Z_]+_MAX\b`},
	{name: "fold-unicode", pattern: "straße|größe", o: Options{IgnoreCase: true}},
	{name: "multiline", pattern: `Lock\(\);?\n\s*defer`, o: Options{Multiline: true}},
	{name: "line-class", pattern: `^\s*[a-z]+ := [a-z]+\([a-z]+\)$`},
}

func countLines(s *Scanner, text []byte) int {
	n := 0
	for pos := 0; ; n++ {
		_, end, ok := s.NextLine(text, pos)
		if !ok {
			return n
		}
		pos = afterLine(text, end)
	}
}

// BenchmarkLines counts matching lines in chunks of 64 KiB, as the searcher hands them in.
func BenchmarkLines(b *testing.B) {
	for _, p := range benchPatterns {
		b.Run(p.name, func(b *testing.B) {
			text := corpus(b)
			m, err := Compile(p.pattern, p.o)
			must(b, err)
			s := m.Scanner()
			b.SetBytes(int64(len(text)))
			n := 0
			for b.Loop() {
				n = 0
				for pos := 0; pos < len(text); {
					stop := len(text)
					if stop-pos > 64<<10 {
						stop = afterLine(text, pos+64<<10)
					}
					n += countLines(s, text[pos:stop])
					pos = stop
				}
			}
			b.ReportMetric(float64(n), "lines")
		})
	}
}
