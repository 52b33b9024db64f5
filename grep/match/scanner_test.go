package match

import "testing"

// TestBorrowedScannerKeepsToItsMemory: each borrower of a scanner sets the memory that its automata may use, whatever the last borrower
// allowed: that of long lines too.
func TestBorrowedScannerKeepsToItsMemory(t *testing.T) {
	m, err := Compile(`(a|b)[ab]{3}c`, Options{})
	must(t, err)
	s := newScanner(m)
	s.reset(1 << 20)
	s.earliest()
	s.matchByDFA([]byte("abbbc"), 0)
	s.LongLine()
	s.reset(64 << 10)
	for name, d := range map[string]*dfa{
		"earliest": s.earliestDFA, "end": s.endDFA, "begin": s.beginDFA, "long line": s.longLineDFA,
	} {
		if d == nil || d.limit != 64<<10 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
