package approval

import (
	"strings"
	"testing"
)

func TestLookalike(t *testing.T) {
	for name, want := range map[string]string{
		"/ws/app.py":              "",
		"/ws/\u0430pp.py":         `'а' is U+0430 (Cyrillic)`, // аpp
		"/ws/app.р\u0443":         `'р' is U+0440 (Cyrillic)`,
		"/ws/\u0440\u0430ss":      `'р' is U+0440 (Cyrillic), 'а' is U+0430 (Cyrillic)`,
		"/ws/\u0441\u0430\u0440":  `'с' is U+0441 (Cyrillic), 'а' is U+0430 (Cyrillic), 'р' is U+0440 (Cyrillic)`, // a renderDiff word of twins
		"/\u0430pp/x.py":          `'а' is U+0430 (Cyrillic)`,                                                     // in a directory
		"/ws/c\u03bfnfig.go":      `'ο' is U+03BF (Greek)`,
		"/ws/\uff41pp.py":         `'ａ' is U+FF41 (Latin)`, // full width
		"/ws/\U0001d41aPP":        `'𝐚' is U+1D41A (Common)`,
		"/ws/con\u0131g":          `'ı' is U+0131 (Latin)`,
		"/ws/\u0251pp":            `'ɑ' is U+0251 (Latin)`,
		"/ws/\u13aapp":            `'Ꭺ' is U+13AA (Cherokee)`,
		"/ws/отчёт.txt":           "",
		"/ws/отчёт_final_2.txt":   "",
		"/ws/Ελληνικά.md":         "",
		"/ws/naïve-café.txt":      "",
		"/ws/Straße/größe.go":     "",
		"/ws/cafe\u0301.txt":      "",
		"/ws/設定file.toml":         "",
		"/ws/テストtest.go":          "",
		"/ws/한글abc.txt":           "",
		"/ws/שלום.txt":            "",
		"/ws/\xffx\u0430bc":       `'а' is U+0430 (Cyrillic)`,
		"/ws/отчёт/config\u0435d": `'е' is U+0435 (Cyrillic)`,
	} {
		got := Lookalike(name)
		if want == "" != (got == "") || !strings.HasSuffix(got, want) && want != "" && !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestOdd: what a diff adds and a reader would take for something else; not what it shows or takes away.
func TestOdd(t *testing.T) {
	t.Parallel()
	for diff, want := range map[string]string{
		"":                          "",
		"+plain\n":                  "",
		"+a\tb\r\n":                 "",
		"+x = 1 // \u202e hidden\n": "what is added holds 1 character that cannot be seen, the first of them U+202E",
		"+a\u200bb\n+c\u2066\n":     "what is added holds 2 characters that cannot be seen, the first of them U+200B",
		"+esc \x1b[2J\n":            "",
		"-a\u200bb\n b\u200bc\n":    "",
		"+❤️ 👨‍👩‍👧 ❤️‍🔥 ok\n":                        "",
		"+😀\ufe0f\u200d\ufe0f\u200d\u200d\n":         "what is added holds 2 characters that cannot be seen, the first of them U+FE0F",
		"+p\u0430yload()\n":                          "what is added holds words with letters of two scripts that look alike: \"p\u0430yload\"",
		"+привет, с мира; μs Δx πr 日本語text straße\n": "",
		"+++ b/p\u0430yload\n":                       "",
		"--- a/x\n+++ b/p\u0430y\n@@ -1,2 +1,2 @@\n--- x\n+++ \u202ex\n y\n\\ No newline\n--- a/x\n+++ b/p\u0430y\n@@ -0,0 +1,1 @@\n+++ \u200b\n": "what is added holds 2 characters that cannot be seen, the first of them U+202E",
	} {
		if !strings.Contains(diff, "+++ b/") {
			diff = "@@ -1,9 +1,9 @@\n" + diff
		}
		if got := strings.Join(Odd(diff), "; "); got != want {
			t.Errorf("%q: %q, want %q", diff, got, want)
		}
	}
}
