package edit

import "testing"

// TestNumberSigns: numbers that count up before each line are taken off, and nothing that is a list, a
// year, or counts otherwise.
func TestNumberSigns(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{"     3→a\n     4→b": "a\nb", "3\ta\n4\tb": "a\nb", "3: a\n4: b": "a\nb", "3:a\n4-b": "a\nb", "3 | a\n4 | b": "a\nb",
		"a\n4→b": "a\nb", "9→a\n\n11→b": "a\n\nb",
		"3. a\n4. b": "", "3→a\n5→b": "", "4→a\n3→b": "", "3→a\nb": "", "0→a": "", "3) a\n4) b": "", "123456789→a": ""} {
		got := ""
		for _, sign := range numberSigns() {
			if out, _, n, _, ok := stripNumbers(s, sign); ok && n > 0 && sign != " " && got == "" {
				got = out
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
