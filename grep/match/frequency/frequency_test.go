package frequency

import "testing"

func of(bytes string) *Set {
	return Of(func(b byte) bool {
		for i := range len(bytes) {
			if bytes[i] == b {
				return true
			}
		}
		return false
	})
}

// TestPairs asks of the table what everybody knows of text.
func TestPairs(t *testing.T) {
	t.Parallel()
	if len(pairs) != signs*(signs+1) {
		t.Fatalf("%d bytes", len(pairs))
	}
	if all := Chance(func(byte) bool { return true }); all < 0.9 {
		t.Errorf("a byte stands at %.2f of all positions", all)
	}
	digits, capitals := of("0123456789"), of("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	for _, c := range []struct {
		name        string
		often, rare float64
	}{
		{"e, q", of("e").Chance(), of("q").Chance()},
		{"qu, qa", of("q").Then(of("u")), of("q").Then(of("a"))},
		{"; and the end of the line, ;x", of(";").Then(of("\n")), of(";").Then(of("x"))},
		{"digits, digits and a capital", digits.Then(digits), digits.Then(capitals)},
		{"digits and digits, capitals, near one another", digits.Near(digits), digits.Near(capitals)},
		{"nothing", 1, of("").Chance() + of("").Then(of("e")) + of("e").Then(of(""))},
	} {
		if c.often < 2*c.rare {
			t.Errorf("%s: %g, %g", c.name, c.often, c.rare)
		}
	}
}
