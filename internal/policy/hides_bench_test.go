package policy

import (
	"testing"
)

// BenchmarkHides is what the class of secrets costs a walk for each entry.
func BenchmarkHides(b *testing.B) {
	c, err := NewClasses(ClassOptions{Holds: Holds{Secret: true, Exec: true}})
	must(b, err)
	p, err := New(Options{Classes: c})
	must(b, err)
	names := []string{"server.go", "README.md", "index.test.ts", ".gitignore", "main_linux_test.go", "Makefile", "cert.pem", "image.png"}
	v := p.Dir("/ws/src/app")
	for b.Loop() {
		for _, n := range names {
			if !shows(v, n) {
				b.Fatal(n)
			}
		}
	}
}
