package edit

import "testing"

// TestOfferedByRule: what each rule offers, and what looks like it and is left alone.
func TestOfferedByRule(t *testing.T) {
	t.Parallel()
	const block = "func f() {\n\ta()\n\tb()\n\tc()\n}\nend()\n"
	for _, c := range []struct{ rule, text, old, new, want string }{
		{"elided", block, "func f() {\n\t...\n\tc()\n", "func f() {\n\t...\n\tc(1)\n", "func f() {\n\ta()\n\tb()\n\tc(1)\n}\nend()\n"},
		{"elided: new has no dots", block, "func f() {\n\t...\n\tc()\n", "func f() {\n\tc(1)\n", ""},
		{"elided: the first lines stand twice", "func f() {\n\ta()\n}\n" + block, "func f() {\n\t...\n\tc()\n", "func f() {\n\t...\n\tc(1)\n", ""},
		{"alike", "countdown(aaaa, bbbb, cccc)\n", "countdown(aaaa, bbxbb, cccc)", "countdown(aaaa, bbxbb, dddd)", "countdown(aaaa, bbbb, dddd)\n"},
		{"alike: a part of a word", "countdown(aaaa, bbbb, cccc)\n", "down(aaaa, bbxbb, cccc)", "down(aaaa, bbxbb, dddd)", ""},
		{"elided: the last lines stand twice", "x {\na\ny\nb\ny\n", "x {\n...\ny\n", "x {\n...\nz\n", ""},
		{"elided: the last is the beginning of another", "x {\n\ta\n\tyes\n", "x {\n...\n\ty", "x {\n...\n\tz", ""},
		{"dashes", "one -- two three four\n", "one — two three four", "one — two three five", "one -- two three five\n"},
		{"dashes: no sign of one", "one two three four\n", "one — two three four", "one — two three five", ""},
		{"written as the file escapes", `{"a": "say \"hi\" to them"}` + "\n", `say "hi" to them`, `say "hi" to us`, `{"a": "say \"hi\" to us"}` + "\n"},
		{"written as the file escapes: new adds some", `{"a": "say \"hi\" to them"}` + "\n", `say "hi" to them`, `say "hi" to "us"`, ""},
		{"written as the file has entities", "<p>a &lt; b</p>\n", "a < b", "a < c", "<p>a &lt; c</p>\n"},
		{"written as the file has entities: new adds some", "<p>a &lt; b</p>\n", "a < b", "a < <i>", ""},
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
