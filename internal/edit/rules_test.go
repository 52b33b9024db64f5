package edit

import "testing"

// TestOfferedByRule: what each rule offers, and what looks like it and is left alone.
func TestOfferedByRule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rule, text, old, new, want string }{
		{"alike", "countdown(aaaa, bbbb, cccc)\n", "countdown(aaaa, bbxbb, cccc)", "countdown(aaaa, bbxbb, dddd)", "countdown(aaaa, bbbb, dddd)\n"},
		{"alike: a part of a word", "countdown(aaaa, bbbb, cccc)\n", "down(aaaa, bbxbb, cccc)", "down(aaaa, bbxbb, dddd)", ""},
		{"dashes", "one -- two three four\n", "one — two three four", "one — two three five", "one -- two three five\n"},
		{"dashes: one too many", "one two three four\n", "one — two three four", "one — two three five", "one two three five\n"},
		{"written as the file escapes", `{"a": "say \"hi\" to them"}` + "\n", `say "hi" to them`, `say "hi" to us`, `{"a": "say \"hi\" to us"}` + "\n"},
		{"written as the file escapes: new adds some", `{"a": "say \"hi\" to them"}` + "\n", `say "hi" to them`, `say "hi" to "us"`, ""},
		{"a list is not numbered lines", "alpha one\nbeta two\n", "1. alpha one\n2. beta two", "1. alpha one\n2. gamma", ""},
	} {
		got := c.text
		r, err := Apply([]byte(c.text), []Edit{{Old: c.old, New: c.new}}, Options{})
		if e, ok := err.(*NoMatchError); ok && e.Repaired != nil {
			r, err = Apply([]byte(c.text), []Edit{*e.Repaired}, Options{Strict: true})
		}
		if err == nil {
			got = string(r.Content)
		}
		if want := c.want; got != want && (want != "" || got != c.text) {
			t.Errorf("%s: %v\n%q, want %q", c.rule, err, got, want)
		}
	}
}
