package edit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEnds: what is offered in the place of old begins and ends where old does, so that nothing of the text that was
// meant is left behind when it is sent with new as it was. want "" is nothing to send.
func TestEnds(t *testing.T) {
	for _, c := range []struct{ text, old, want string }{
		{"def run(self, x):\n    return x\n", "def run(x):", "def run(self, x):"},
		{"    def run(self, x):\n        return x\n", "    def run(x):", "    def run(self, x):"},
		{"    def run(self, x):\n        return x\n", "def run(x):", "def run(self, x):"},
		{"const total = sum(items)\nf()\n", "const total = sum(item)", "const total = sum(items)"},
		{"const total = sum(items) // of all\n", "const total = sum(item)", "const total = sum(items)"},
		{"const total = sum(items) // of all\n", "sum(item)", "sum(items)"},
		{"s = 'hello world'\nt = 1\n", `s = "hello world"`, ""}, // a tier of its own
		{"x = [1, 2, 3]\ny = 2\n", "x = [1, 2, 3)", "x = [1, 2, 3]"},
		{"// note: see below\nf()\n", "# note: see below", "// note: see below"},
		{"<p>a&nbsp;b</p>\n", "<p>a\u00a0b</p>", "<p>a&nbsp;b</p>"},
		{"re = /\\bfoo bar\\b/\n", "re = /\bfoo bar\b/", ""},
		{"⚠️ Warning: x\nb\n", "⚠ Warning: x", "⚠️ Warning: x"},
		{"a ⚠️ Warning: the disk is full\n", "⚠ Warning: the disk was full", "⚠️ Warning: the disk is full"},
		{"👨‍👩‍👧 family of three\nb\n", "👨 family of three", "👨‍👩‍👧 family of three"},
		{"👍🏽 well done, all\nb\n", "👍 well done, all", "👍🏽 well done, all"},
		{"#️⃣ number of it\nb\n", "# number of it", "#️⃣ number of it"},
		{"🇬🇧 English text\nb\n", "🇬 English text", "🇬🇧 English text"},
		{"say hello to all of them 🇬🇧\nb\n", "say hello to all of you 🇬", "say hello to all of them 🇬🇧"},
		{"class A {\n  constructor() {\n    if (x) {\n      a()\n    }\n    this.list = []\n  }\n\n  next() {\n  }\n}\n",
			"  constructor() {\n    made(up)\n  }", "  constructor() {\n    if (x) {\n      a()\n    }\n    this.list = []\n  }"},
		{"class A {\n  constructor() {\n    if (x) {\n      a()\n    }\n    this.list = []\n  }\n\n  next() {\n  }\n}\n",
			"  constructor() {\n    made(up)\n  }\n", "  constructor() {\n    if (x) {\n      a()\n    }\n    this.list = []\n  }\n"},
		{"func A() {\n\tif x {\n\t\ta()\n\t}\n\tb()\n}\n\nfunc B() {\n}\n", "func A() {\n\tmade(up)\n}\n", "func A() {\n\tif x {\n\t\ta()\n\t}\n\tb()\n}\n"},
		{"def a():\n    x = f()\n    if x:\n        return x\n    return y\n\ndef b():\n    pass\n",
			"def a():\n    z = 1\n    return y", "def a():\n    x = f()\n    if x:\n        return x\n    return y"},
		{"def a():\n    x = f()\n    if x:\n        return x\n    return y\n\ndef b():\n    pass\n",
			"def a():\n    z = 1\n    return made.up(z)", ""},
		{"f(a, b,\n  c, d)\ng()\n", "(a, b,\n  c, x)", "(a, b,\n  c, d)"},
	} {
		_, err := Apply([]byte(c.text), []Edit{{Old: c.old, New: "NEW"}}, Options{})
		e, ok := err.(*NoMatchError)
		if !ok {
			if err != nil || c.want != "" {
				t.Errorf("%q: %v", c.old, err)
			}
			continue
		}
		if e.Resend != c.want && (c.want != "" || !strings.Contains(c.text, "\n"+e.Resend+"\n") && !strings.HasPrefix(c.text, e.Resend+"\n")) {
			t.Errorf("%q: resend %q, want %q", c.old, e.Resend, c.want)
		}
		if e.Region == "" || e.Line == 0 {
			t.Errorf("%q: nothing is shown: %+v", c.old, e)
		}
		for _, r := range []*Edit{e.Repaired} {
			if r != nil && strings.Contains(c.text, "🇬🇧") && !strings.Contains(r.Old, "🇬🇧") {
				t.Errorf("%q: %q cuts a flag", c.old, r.Old)
			}
		}
	}
}

// TestEndsOfLines makes slips at both ends of real lines: what is offered for a whole line is all of it, or nothing is.
func TestEndsOfLines(t *testing.T) {
	slips := []func(l string) string{
		func(l string) string { return strings.TrimRight(l, "s);,:") },                        // the end is lost
		func(l string) string { return l[:len(l)-1] + "]" },                                   // another closing sign
		func(l string) string { return l + ";" },                                              // one too many
		func(l string) string { return "x" + l },                                              // at the beginning
		func(l string) string { return l[1:] },                                                // the beginning is lost
		func(l string) string { return strings.NewReplacer(`"`, "'", "'", `"`).Replace(l) },   // other quotes
		func(l string) string { a, b, _ := strings.Cut(l, ", "); return a + b },               // an argument is lost
		func(l string) string { return strings.Replace(l, "(", "(self, ", 1) },                // one is made up
		func(l string) string { return strings.NewReplacer("//", "#", "#", "//").Replace(l) }, // another comment
		func(l string) string {
			return strings.NewReplacer(" == ", " === ", "let ", "const ", "const ", "let ").Replace(l)
		}, // another dialect
	}
	tried, offered, short := 0, 0, 0
	files, err := filepath.Glob("testdata/samples/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		for _, l := range strings.Split(text, "\n") {
			l = strings.Trim(l, " \t\r")
			if len(l) < 12 || strings.Count(text, l) != 1 {
				continue
			}
			for i, slip := range slips {
				old := slip(l)
				if old == l || strings.Contains(text, old) {
					continue
				}
				_, err := Apply([]byte(text), []Edit{{Old: old, New: "NEW"}}, Options{Strict: true})
				e, ok := err.(*NoMatchError)
				if !ok || e.Cause != CauseUnknown {
					continue
				}
				tried++
				if e.Resend == "" {
					continue
				}
				if offered++; !strings.Contains(e.Resend, l) && strings.Contains(l, e.Resend) {
					short++
					t.Errorf("%s: slip %d of %q: offered is only %q", name, i, l, e.Resend)
				}
			}
		}
	}
	t.Logf("%d slips, %d offered, %d cut", tried, offered, short)
	if tried < 100 || offered*2 < tried {
		t.Errorf("%d slips, %d offered", tried, offered)
	}
}
