package acp

import (
	"flag"
	"io"
	"strings"
	"testing"
)

var whole = flag.Bool("whole", false, "long lines of 100 MB")

// BenchmarkPass is what is done to a message of 430 bytes on its way from the agent to the editor.
func BenchmarkPass(b *testing.B) {
	line := []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"text":"` + strings.Repeat("some words ", 30) + `"}}}` + "\n")
	p := New(&deaf{}, io.Discard, io.Discard, Options{Terminal: "pass", Tell: func(string, ...any) {}})
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		must(b, p.fromAgent(b.Context(), line))
	}
}
