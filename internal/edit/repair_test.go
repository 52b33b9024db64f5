package edit

import (
	"strings"
	"testing"

	"moltisfs/internal/text"
)

// TestRepairsNotMade: what old_string would be after a repair is in the text, but whether that is meant, or what new_string should become, can't be told.
func TestRepairsNotMade(t *testing.T) {
	for _, c := range []struct{ name, text, old, new string }{
		{"numbers that don't count up", "a\nb\n", "     3→a\n     7→b", "     3→c\n     7→d"},
		{"numbers that go down", "a\nb\n", "     4→a\n     3→b", "x"},
		{"the number of another line", "x\na\n", "     1→a", "b"},
		{"new numbers that don't follow the old ones", "a\nb\nc\n", "1:a\n2:b", "7:a\n8:B"},
		{"escapes, and text that is none", "print(\"a\")\n", `print(\"a\")`, `print(\"b\", "c")`},
		{"an entity, and signs that are none", "if a < b {\n", "if a &lt; b {", "if a &lt; b && c &lt; d {"},
		{"an escape in what is new", "a = 1\nb = 2\n", `a = 1\nb = 2`, `a = 1\np = '\n'\nb = 2`},
		{"an entity in a string", "if (a < b) x();\n", "if (a &lt; b) x();", `if (a &lt; b) x("&lt;");`},
		{"odd quotes in what is new", "say(\"a\") # one\n", "say(“a”) # one", "say(“a”) # it’s one"},
		{"lines that may stay in their column", "if x:\n    a()\n    b()\n", "a()\nb()", "a()\ncat <<EOF\ntext\nEOF\nb()"},
		{"a first line without its indentation", "if x:\n    say(\"a\")\n", "say(“a”)", "if y:\n  say(“a”)"},
		{"the same, and entities", "if x:\n    if a < b:\n        c()\n", "if a &lt; b:", "d()\nif a &lt; b:"},
		{"numbers that do not follow", "a\nb\n", "1:a\n2:b", "1:a\n7:c\n2:b"},
	} {
		r, err := Apply([]byte(c.text), []Edit{{Old: c.old, New: c.new}}, Options{})
		if e, ok := err.(*NoMatchError); !ok || e.Repaired != nil {
			t.Errorf("%s: %T %v, %+v", c.name, err, err, r)
		}
	}
}

// TestOrphan: a sign behind old_string would end another line than it did. An exact edit says so; others keep it where it was.
func TestOrphan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, old, new, sign string }{
		{"exact", "a();\n", "a()", "a()\nb()", ";"},
		{"the last line is changed alone", "a();\n", "a()", "b()", ""},
		{"and there is one before", "a();\n", "a()", "b();\na()", ""},
		{"the text behind is more than a sign", "a() + b;\n", "a()", "a()\nb()", ""},
	} {
		r, err := Apply([]byte(c.text), []Edit{{Old: c.old, New: c.new}}, Options{})
		if err != nil || r.Steps[0].Orphan != c.sign {
			t.Errorf("%s: %v %+v", c.name, err, r)
		}
	}
}

// TestCombinedLettersOfBig5: four letters are one character in Big5 and two in Unicode. An edit of one half writes all of it, or is refused if what
// would be left of it can't be written.
func TestCombinedLettersOfBig5(t *testing.T) {
	cs := text.Lookup("big5")
	for _, pair := range []string{"\x88\x62", "\x88\x64", "\x88\xa3", "\x88\xa5"} {
		text, _ := cs.DecodePlaces([]byte(pair))
		letter, mark := string([]rune(string(text))[:1]), string([]rune(string(text))[1:])
		single, _ := cs.Encode(letter)
		raw := "one " + pair + " two"
		r, err := Apply([]byte(raw), []Edit{{Old: mark + " two", New: " 2"}}, Options{Encoding: "big5"})
		if err != nil || string(r.Content) != "one "+string(single)+" 2" {
			t.Errorf("%q without its mark: %v", text, err)
		}
		_, err = Apply([]byte(raw), []Edit{{Old: "one " + letter, New: "one "}}, Options{Encoding: "big5"})
		if _, ok := err.(*UnencodableError); !ok {
			t.Errorf("%q without its letter: %T %v", text, err, err)
		}
		all := strings.Repeat(pair, 3)
		r, err = Apply([]byte(all), []Edit{{Old: mark, New: "", All: true}}, Options{Encoding: "big5"})
		if err != nil || string(r.Content) != strings.Repeat(string(single), 3) {
			t.Errorf("%q thrice without marks: %v", text, err)
		}
	}
}

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

// TestFold: what a reader takes for ASCII is folded; signs of other scripts and of mathematics are not.
func TestFold(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"\u2018a\u2019": "'a'", "\u201ca\u201d": `"a"`, "1\u20132": "1-2", "a\u2014b": "a-b", "\u22121": "-1", "a\u2026": "a...",
		"a\u00a0b": "a b", "a\u3000b": "a b", "a\u200bb": "ab", "\ufeffa": "a", "so\u00adft": "soft",
		// not touched
		"\u00aba\u00bb": "\u00aba\u00bb", "a\u00b7b": "a\u00b7b", "\u00bd": "\u00bd", "a\u200db": "a\u200db", "\u05f3": "\u05f3",
		"caf\u00e9": "caf\u00e9", "a`b": "a`b", "\u00d7": "\u00d7", "\xff": "\xff",
	} {
		if got := string(Plain([]byte(s))); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
		if odd := oddRunes(s); (odd != "") != (s != want) {
			t.Errorf("%q: odd %q", s, odd)
		}
	}
}
