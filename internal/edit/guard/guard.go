// Package guard finds changes of a text that look like an accident: nothing is left of it, or a
// remark stands where code was. It is pure, and its functions are safe for concurrent use.
package guard

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"unicode"

	"moltisfs/internal/edit/diff"
	"moltisfs/internal/lazy"
)

// Finding is why a change looks like an accident. The caller refuses it, unless it is told not to.
type Finding struct {
	Guard   string // "placeholder" | "empties"
	Line    int    // of the placeholder in the new text, 1-based; 0 for "empties"
	Text    string // the placeholder line, without blanks around it
	Removed int    // lines of code that the change deletes, there or in all
}

// Empties finds a change that leaves nothing, or nothing but blanks, of a text that had more.
func Empties(before, after []byte) *Finding {
	if len(bytes.TrimSpace(after)) > 0 || len(bytes.TrimSpace(before)) == 0 {
		return nil
	}
	return &Finding{Guard: "empties", Removed: len(diff.Lines(before))}
}

// Placeholder finds a line such as "// ... rest of the code unchanged" that a change puts in where
// it deletes code of the file of that name. The line must be new: one that was in the text as often before is content
// like any other. Code is a line that is neither blank nor a comment, and is deleted only if it does not
// turn up elsewhere in the new text. Only the place of statements that go counts:
//
//   - A bare "..." counts where three lines go and a statement stands before it: behind a line that ends in a colon,
//     or behind a docstring, it is a body of Python.
//   - A remark that has words of its own counts where two lines more go than come.
//   - Nothing counts inside a fence of Markdown, and no bare "..." where it is text: prose, YAML, TAP.
func Placeholder(name string, before, after []byte) *Finding {
	head, tail := diff.SameEnds(before, after)
	a, b := diff.Lines(before[head:len(before)-tail]), diff.Lines(after[head:len(after)-tail])
	if !anyPlaceholder(b) {
		return nil
	}
	balance := make(map[string]int) // how often a line is in after, less how often in before
	count := func(lines [][]byte, n int) {
		for _, l := range lines {
			balance[string(bytes.TrimSpace(l))] += n
		}
	}
	cs := diff.Changes(a, b)
	for _, c := range cs {
		count(a[c.A0:c.A1], -1)
		count(b[c.B0:c.B1], +1)
	}
	code := func(lines [][]byte, sign int) (code, remarks int) { // that are in one of the texts more often
		for _, l := range lines {
			s := string(bytes.TrimSpace(l))
			if s == "" || placeholder(s) != notOne || sign*balance[s] <= 0 {
				continue
			}
			if remarks++; !isComment(s) {
				code++
			}
		}
		return code, remarks
	}
	prose, fence := isProse(name), false
	for l := range bytes.Lines(after[:head]) {
		fence = fence != isFence(l)
	}
	starts, fenced := make([]int, len(b)+1), make([]bool, len(b)) // of each line of b
	for i, l := range b {
		fence = fence != isFence(l)
		starts[i+1], fenced[i] = starts[i]+len(l), fence && prose
	}
	for i := 0; i < len(cs); {
		j := i + 1
		for j < len(cs) && cs[j].A0-cs[j-1].A1 <= 2*diff.Context {
			j++
		}
		removed, remarks, added := 0, 0, 0
		for _, c := range cs[i:j] {
			r, m := code(a[c.A0:c.A1], -1)
			n, _ := code(b[c.B0:c.B1], +1)
			removed, remarks, added = removed+r, remarks+m, added+n
		}
		for _, c := range cs[i:j] {
			for k, l := range b[c.B0:c.B1] {
				s := string(bytes.TrimSpace(l))
				is := placeholder(s)
				if is == notOne || balance[s] <= 0 {
					continue
				}
				lost := removed >= 1 || remarks > 3
				switch {
				case fenced[c.B0+k], is == bareDots && (prose || isData(name)):
					lost = false
				case is == bareDots:
					lost = removed >= 3 && !opensBody(after[:head+starts[c.B0+k]])
				case is == wordy:
					lost = removed-added >= 2
				}
				if lost {
					return &Finding{Guard: "placeholder", Line: bytes.Count(after[:head], []byte("\n")) + c.B0 + k + 1, Text: strings.ToValidUTF8(s, "\ufffd"), Removed: max(removed, remarks)}
				}
			}
		}
		i = j
	}
	return nil
}

func isProse(name string) bool {
	return slices.Contains(strings.Fields(".md .markdown .mdx .rst .txt .adoc .org .tex .po"), strings.ToLower(path.Ext(name)))
}

// isData says that "..." is a sign of the language of a file: the end of a document of YAML.
func isData(name string) bool {
	return slices.Contains(strings.Fields(".yaml .yml .tap .t"), strings.ToLower(path.Ext(name)))
}

func isFence(l []byte) bool {
	l = bytes.TrimLeft(l, " \t>")
	return bytes.HasPrefix(l, []byte("```")) || bytes.HasPrefix(l, []byte("~~~"))
}

// opensBody says that a text ends where a body of Python begins: in a line that ends in a colon, or in the docstring
// or the remark below it.
func opensBody(above []byte) bool {
	above = bytes.TrimSpace(above)
	if bytes.HasSuffix(above, []byte(`"""`)) || bytes.HasSuffix(above, []byte("'''")) || len(above) == 0 {
		return true
	}
	last := above[bytes.LastIndexByte(above, '\n')+1:]
	if code, _, ok := bytes.Cut(last, []byte("  #")); ok {
		last = bytes.TrimSpace(code)
	}
	return bytes.HasSuffix(last, []byte(":"))
}

func anyPlaceholder(lines [][]byte) bool {
	for _, l := range lines {
		if len(l) <= 200 && placeholder(string(bytes.TrimSpace(l))) != notOne {
			return true
		}
	}
	return false
}

type kind int

const (
	notOne   kind = iota
	bareDots      // "..." and no more
	spoken        // a comment or dots that speak of code which is not there
	wordy         // the same in words that may mean another thing
)

// commentMarks open a comment in some language. Of two that begin alike, the longer comes first.
func commentMarks() []string {
	return []string{"<!--", "{/*", "{{/*", "/**", "/*", "//", "--[[", "--", "#", "(*", "{-", "%", ";", "*", `"""`, "'", "REM ", "rem "}
}

func isComment(s string) bool {
	for _, m := range commentMarks() {
		if strings.HasPrefix(s, m) && m != "*" && m != "'" && m != `"""` && m != "--" || m == "--" && strings.HasPrefix(s, "-- ") {
			return !directive().MatchString(s)
		}
	}
	return false
}

var (
	trailing  = lazy.Regexp(`[\pL\pN)\]:{}]\s*(?:\.\.\.|…)[\s}\])]*((?:#|//|/\*).*)$`) // a remark behind code and dots
	directive = lazy.Regexp(`^#(?:include|define|if|\[)`)
	glued     = lazy.Regexp(`(?:\.\.\.|…)[\pL_]`) // ...props, {...rest}
)

// placeholder judges one line without blanks around it.
func placeholder(s string) kind {
	if s == "" || len(s) > 160 {
		return notOne
	}
	if !strings.Contains(s, "...") && !strings.Contains(s, "…") {
		// most lines: nothing trails
	} else if m := trailing().FindStringSubmatch(s); m != nil {
		if placeholder(m[1]) == spoken {
			return spoken // def f(): ...  # unchanged
		}
		return notOne
	}
	body, comment := s, false
	for _, m := range commentMarks() {
		if strings.HasPrefix(body, m) {
			body, comment = strings.TrimLeft(body[len(m):], m+" \t!"), true
			break
		}
	}
	for _, m := range []string{"*/}}", "*/}", "*/", "-->", "*)", "-}", "]]", `"""`} {
		body = strings.TrimSuffix(body, m)
	}
	body = strings.TrimSpace(body)
	framed := len(body) > 2 && strings.ContainsRune("[(<{", rune(body[0])) && strings.ContainsRune("])>}", rune(body[len(body)-1]))
	dots := strings.HasPrefix(body, "...") || strings.HasSuffix(body, "...") || strings.HasPrefix(body, "…") || strings.HasSuffix(body, "…") ||
		framed && (strings.Contains(body, "...") || strings.Contains(body, "…"))
	words := strings.FieldsFunc(strings.ToLower(body), func(r rune) bool {
		return !unicode.IsLetter(r) && r != '\''
	})
	if len(words) == 0 {
		switch {
		case !dots || strings.Trim(body, ".… ()[]{}<>") != "":
			return notOne
		case comment:
			return spoken
		}
		return bareDots
	}
	if !comment && !dots && !framed || len(words) > 12 {
		return notOne
	}
	if saidElsewhere(body, dots || comment && len(words) <= 6) {
		return spoken
	}
	if !comment && (glued().MatchString(body) || len(words) < 3 && !dots) {
		return notOne // [other], <rest>, ...props, {...rest}: a name as likely as anything
	}
	if comment && framed && oneOf(words, "previous", "original", "existing") && oneOf(words, "code", "content", "file", "implementation", "body", "logic") {
		dots = true // [previous code here]
	}
	return spokenBy(words, dots)
}

func oneOf(words []string, some ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(some, w) })
}

// elsewhere has the words of such lines in other languages than English.
var elsewhere = strings.Fields(`其余代码 其他代码 其余部分 剩余代码 代码省略 此处省略 现有代码 原有代码 保持不变 其餘 保持不變 程式碼不變
	残りのコード 既存のコード 変更なし 以下省略 나머지_코드 기존_코드 변경_없음 이하_생략
	rest_unverändert rest_bleibt rest_wie restlicher_code rest_des_codes bestehender_code unverändert wie_bisher
	reste_du_code reste_inchangé code_existant inchangé resto_del_código código_existente sin_cambios
	resto_do_código sem_alterações resto_del_codice codice_esistente invariato rest_van_de_code bestaande_code
	ongewijzigd остальной_код остальное_без без_изменений существующий_код reszta_kodu istniejący_kod bez_zmian`)

// saidElsewhere looks in body, a line without its signs, for words of elsewhere. Without clear (dots, or a short remark) they may be anything.
func saidElsewhere(body string, clear bool) bool {
	if !clear {
		return false
	}
	body = strings.ReplaceAll(strings.ToLower(body), " ", "_")
	return slices.ContainsFunc(elsewhere, func(w string) bool { return strings.Contains(body, w) })
}

// spokenBy decides by the words. All must be words that such lines are made of, but for a few names
// if the rest is clear and the last word is none of them.
func spokenBy(words []string, dots bool) kind {
	var key, noun, state, strange int
	var said int // of noun and state, before the last word
	for _, w := range words {
		said = noun + state
		switch w {
		case "rest", "remainder", "remaining", "existing":
			key++
		case "unchanged", "omitted", "unmodified", "untouched", "elided", "snip", "snipped", "truncated":
			state += 2
		case "same", "here", "before", "above", "below", "remains", "remain", "stays", "stay", "kept", "is", "as", "continues", "follows",
			"goes", "brevity", "changes", "change", "changed", "identical":
			state++
		case "code", "file", "function", "functions", "method", "methods", "class", "classes", "implementation", "content", "contents",
			"lines", "line", "body", "logic", "imports", "fields", "tests", "test", "props", "properties", "handlers", "routes",
			"cases", "section", "sections", "component", "components", "module", "block", "statements", "definitions", "members",
			"config", "configuration", "elements", "items", "entries", "stuff", "things", "script", "document", "text", "part", "parts",
			"style", "styles", "page", "jsx", "html", "markup", "template", "keys", "values", "rules", "settings", "options":
			noun++
		case "previous", "original", "other", "old", "current":
			if dots {
				key++
			}
		case "of", "the", "this", "your", "my", "all", "and", "in", "for", "from", "to", "it", "its", "are", "with", "no", "not",
			"keep", "leave", "insert", "include", "see", "stays'", "be", "will", "should", "exactly", "etc", "more", "goes'":
		default:
			strange++
		}
	}
	switch {
	case strange == 0 && key > 0 && (noun > 0 || state > 0 || dots):
		return spoken
	case strange == 0 && state >= 2 && (key > 0 || noun > 0 || dots || state > 2 || len(words) <= 2):
		return spoken
	case strange <= 3 && key > 0 && dots && noun > 0:
		return spoken
	case strange <= 2 && dots && state >= 2 && words[len(words)-1] != "change":
		return spoken
	case dots && strange == 0 && noun > 0 && (key > 0 || len(words) <= 3):
		return spoken // "... code ...", "... other methods"
	case (strange <= 3 && key > 0 || strange <= 2) && state >= 2 && noun+state > said && words[len(words)-1] != "change":
		return wordy // "getters and setters stay the same"
	case len(words) <= 5 && strings.HasPrefix(strings.Join(words, " "), "rest of "):
		return wordy
	}
	return notOne
}
