package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// makeTrees writes what is not fetched, the same each time: 200,000 small files with nested ignore files, a log of 1 GB, and
// 500 files of the Go tree. What is there already stays.
func makeTrees(dir string) error {
	for name, make := range map[string]func(string) error{"synth": makeSynth, "log/app.log": makeLog, "small": makeSmall} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := make(path + ".part"); err != nil {
			return err
		}
		if err := os.Rename(path+".part", path); err != nil {
			return err
		}
	}
	return nil
}

var words = strings.Fields(`alpha beta gamma delta request response handler buffer index value error return config timeout retry
	connect session user token cache parse render update delete insert select where from into table column row page limit offset`)

func sentence(r *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[r.IntN(len(words))])
	}
	return b.String()
}

func makeSynth(dir string) error {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 4000 {
		d := filepath.Join(dir, fmt.Sprintf("m%02d", i%40), fmt.Sprintf("p%02d", i/40%10), fmt.Sprintf("d%d", i/400))
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
		if i%5 == 0 {
			rules := "*.tmp\n/local-*\n!keep.tmp\nbuild/\n**/cache/*.bin\n"
			if err := os.WriteFile(filepath.Join(d, ".gitignore"), []byte(rules), 0o644); err != nil {
				return err
			}
		}
		for k := range 50 {
			name := fmt.Sprintf("file%d.%s", k, []string{"c", "h", "txt", "tmp", "md"}[r.IntN(5)])
			if err := os.WriteFile(filepath.Join(d, name), []byte(sentence(r, 5+r.IntN(60))+"\n"), 0o644); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*.o\n*.a\n/out/\nfile7.md\nm3[0-9]/p01/\n"), 0o644)
}

func makeLog(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	r := rand.New(rand.NewPCG(3, 4))
	for n, i := 0, 0; n < 1<<30; i++ {
		level := []string{"INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"}[r.IntN(6)]
		k, err := fmt.Fprintf(w, "2026-11-%02dT%02d:%02d:%02d.%03dZ %s [worker-%d] id=%016x dur=%d %s\n", 1+i/20_000_000, r.IntN(24), r.IntN(60), r.IntN(60),
			r.IntN(1000), level, r.IntN(64), r.Uint64(), r.IntN(5000), sentence(r, 3+r.IntN(12)))
		if err != nil {
			return err
		}
		n += k
	}
	if _, err := w.WriteString("the last line has the needle in it\n"); err != nil {
		return err
	}
	return w.Flush()
}

func makeSmall(dir string) error {
	n := 0
	src := filepath.Join(filepath.Dir(dir), "go", "src") // a copy of the Go tree
	return filepath.WalkDir(filepath.Join(src, "net"), func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || n == 500 {
			return err
		}
		n++
		rel, err := filepath.Rel(src, p)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644)
	})
}
