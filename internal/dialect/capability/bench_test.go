package capability

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"moltisfs/internal/dialect"
)

// What the dialect adds to a read of 4 KB: the plain one is beside it.
func BenchmarkRead4K(b *testing.B) {
	r := open(b, nil)
	p := r.write(b, "a", strings.Repeat("0123456789abcde\n", 256))
	b.Run("capability", func(b *testing.B) {
		c := dialect.Call{Session: "s", Tool: "filesystem.read", Args: json.RawMessage(`{"path":"` + p + `"}`)}
		for b.Loop() {
			if a, err := r.Call(b.Context(), c); err != nil || a.Refused() {
				b.Fatal(a, err)
			}
		}
	})
	b.Run("os", func(b *testing.B) {
		for b.Loop() {
			if _, err := os.ReadFile(p); err != nil {
				b.Fatal(err)
			}
		}
	})
}
