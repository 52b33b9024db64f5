//go:build !rooted

package sandbox

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"moltisfs/internal/guardfs"
)

// sides are this machine, and a worker under bubblewrap where there is one.
func sides(b *testing.B, dir string, each func(b *testing.B, f *guardfs.FS, s *Session)) {
	b.Run("host", func(b *testing.B) {
		f, err := guardfs.New(guardfs.Options{Judge: anything{}})
		must(b, err)
		defer f.Close()
		each(b, f, nil)
	})
	command := []string{os.Args[0], "worker", dir}
	name := "worker"
	if bwrap, err := exec.LookPath("bwrap"); err == nil {
		name = "bwrap"
		command = append([]string{bwrap, "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc"}, command...)
	}
	b.Run(name, func(b *testing.B) {
		s, err := Start(b.Context(), Options{Root: dir, Build: "test", Command: command})
		if err != nil {
			b.Skip(err)
		}
		defer s.Close()
		each(b, over(b, s), s)
	})
}

func BenchmarkRead4K(b *testing.B) {
	dir := b.TempDir()
	plant(b, dir, map[string]string{"f": strings.Repeat("0123456789abcde\n", 256)})
	sides(b, dir, func(b *testing.B, f *guardfs.FS, s *Session) {
		p := make([]byte, 8192)
		for b.Loop() {
			h, err := f.Resolve(dir+"/f", guardfs.Read)
			must(b, err)
			file, err := h.Open()
			must(b, err)
			if n, _ := file.ReadAt(p, 0); n != 4096 {
				b.Fatal(n)
			}
			file.Close()
			h.Close()
		}
	})
}

func BenchmarkReplace(b *testing.B) {
	for name, size := range map[string]int{"4KB": 4 << 10, "100MB": 100 << 20} {
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			sides(b, dir, func(b *testing.B, f *guardfs.FS, s *Session) {
				plant(b, dir, map[string]string{"f": ""})
				b.SetBytes(int64(size))
				content := strings.Repeat("0123456789abcde\n", size/16)
				for b.Loop() {
					plant(b, dir, map[string]string{"f": ""})
					must(b, replaced(f, "a", dir+"/f", content))
				}
			})
		})
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	s := begin(b, b.TempDir())
	for b.Loop() {
		if _, err := s.now.ask(&request{op: opPing}, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
