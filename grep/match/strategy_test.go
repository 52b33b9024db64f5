package match

import "testing"

// TestFrequentParts sees that a pattern is looked for by its rare part: where its literals are frequent, by a window
// around them.
func TestFrequentParts(t *testing.T) {
	t.Parallel()
	v := vectors()
	if !v.masks() {
		t.Skip("no vectors")
	}
	for pattern, want := range map[string]string{
		`case [A-Z]+_[A-Z]+:\s*/\*`:  "case ",
		`\w+_alloc\(`:                "_alloc(",
		`\);\s*/\* .* \*/$`:          "",
		`0x[0-9a-f]{16}`:             "",
		`"[a-z]+,[a-z]+-[a-z0-9]+"`:  "",
		`[A-Z]{8,}`:                  "",
		`struct [a-z]+_zebra`:        "_zebra",
		`kmalloc\(.*GFP_ATOMIC`:      "GFP_ATOMIC",
		`return -E[A-Z]+;\s*/\*`:     "return -E",
		`[a-z]+->[a-z]+_lock\);$`:    "_lock);",
		`\b[0-9]{1,3}(\.[0-9]+){3}`:  "",
		`if \(!?[a-z]+ == NULL\) \{`: " == NULL) {",
	} {
		m, err := Compile(pattern, Options{CRLF: true})
		must(t, err)
		switch f := m.prefilter.(type) {
		case *pairPrefilter:
			if string(f.Bytes) != want {
				t.Errorf("%s: by %q, want %q", pattern, f.Bytes, want)
			}
		case *windowPrefilter:
			if want != "" {
				t.Errorf("%s: by the window at %v, want %q", pattern, f.off, want)
			}
		default:
			t.Errorf("%s: by %T", pattern, f)
		}
	}
}
