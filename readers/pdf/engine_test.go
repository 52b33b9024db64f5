package pdf

import "testing"

// TestSandboxCap: while a sandbox grows to its cap, page by page, no more than the cap and one step
// is ever held, and little is copied.
func TestSandboxCap(t *testing.T) {
	const most = 512 << 20
	m := newMemory(0, most)
	copies, held, last := 0, 0, 0
	for size := uint64(1 << 20); size <= most; size += 64 << 10 {
		b := m.Reallocate(size)
		if uint64(len(b)) != size {
			t.Fatalf("%d bytes of %d", len(b), size)
		}
		if cap(b) != last {
			copies, held = copies+1, max(held, last+cap(b))
			last = cap(b)
		}
		if size == 1<<20 {
			b[99] = 42
		} else if b[99] != 42 || b[size-1] != 0 {
			t.Fatal("the content is lost")
		}
	}
	if held > most+MemoryStep || copies > 8 {
		t.Errorf("%d bytes at once, %d copies", held, copies)
	}
}
