//go:build linux || darwin

package match

import "testing"

// TestASCIIPrefix puts every kind of byte at every place of texts that fill their memory to either
// end, for every level.
func TestASCIIPrefix(t *testing.T) {
	memory := fenced(t, 1)
	for _, v := range levels() {
		for n := range 140 {
			for _, text := range [][]byte{memory[:n:n], memory[len(memory)-n:]} {
				for i := range text {
					text[i] = "x\x00\x7f\n\x1a\x1c"[i%6]
				}
				if got := v.asciiPrefix(text); got != n {
					t.Fatalf("level %d: %d of %d ASCII bytes", v, got, n)
				}
				for at := range text {
					old := text[at]
					for _, c := range []byte{0, 1, 0x1a, 0x1b, 0x1c, ' ', 0x7f, 0x80, 0x9b, 0xff} {
						want := n
						if text[at] = c; c >= 0x80 || c == 0x1b {
							want = at
						}
						if got := v.asciiPrefix(text); got != want {
							t.Fatalf("level %d, %#x at %d of %d: %d", v, c, at, n, got)
						}
					}
					text[at] = old
				}
			}
		}
	}
}
