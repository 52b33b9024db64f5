// Package guard finds changes of a text that look like an accident: nothing is left of it, or a
// remark stands where code was. It is pure, and its functions are safe for concurrent use.
package guard

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"moltisfs/internal/edit/diff"
)

// Finding is why a change looks like an accident. The caller refuses it, unless told not to.
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
// it deletes code. The line must be new: one that was in the text as often before is content like
// any other. Code is a line that is neither blank nor a comment, and is deleted only if it does not
// turn up elsewhere in the new text. A bare "..." (an idiom of Python) counts only where three
// lines go.
func Placeholder(before, after []byte) *Finding {
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
	for i := 0; i < len(cs); {
		j := i + 1
		for j < len(cs) && cs[j].A0-cs[j-1].A1 <= 2*diff.Context {
			j++
		}
		removed, remarks := 0, 0
		for _, c := range cs[i:j] {
			for _, l := range a[c.A0:c.A1] {
				s := string(bytes.TrimSpace(l))
				if s == "" || placeholder(s) != notOne || balance[s] >= 0 {
					continue
				}
				if remarks++; !isComment(s) {
					removed++
				}
			}
		}
		for _, c := range cs[i:j] {
			for k, l := range b[c.B0:c.B1] {
				s := string(bytes.TrimSpace(l))
				need := 1
				switch placeholder(s) {
				case notOne:
					continue
				case bareDots:
					need = 3
				}
				if balance[s] > 0 && (removed >= need || remarks > 3) {
					return &Finding{Guard: "placeholder", Line: bytes.Count(after[:head], []byte("\n")) + c.B0 + k + 1, Text: strings.ToValidUTF8(s, "\ufffd"), Removed: max(removed, remarks)}
				}
			}
		}
		i = j
	}
	return nil
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
)

// commentMarks open a comment in some language. Of two that begin alike, the longer comes first.
func commentMarks() []string {
	return []string{"<!--", "{/*", "{{/*", "/**", "/*", "//", "--[[", "--", "#", "(*", "{-", "%", ";", "*", `"""`, "'", "REM ", "rem "}
}

func isComment(s string) bool {
	for _, m := range commentMarks() {
		if strings.HasPrefix(s, m) && m != "*" && m != "'" && m != `"""` && m != "--" || m == "--" && strings.HasPrefix(s, "-- ") {
			return !strings.HasPrefix(s, "#include") && !strings.HasPrefix(s, "#define") && !strings.HasPrefix(s, "#if") && !strings.HasPrefix(s, "#[")
		}
	}
	return false
}

// placeholder judges one line without blanks around it.
func placeholder(s string) kind {
	if s == "" || len(s) > 160 {
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
	if glued := !strings.HasPrefix(body, "... ") && !strings.HasPrefix(body, "… "); !comment && len(words) < 3 && (glued || !dots) {
		return notOne // [other], <rest>, ...props, {...rest}: a name as likely as anything
	}
	if comment && framed && oneOf(words, "previous", "original", "existing") && oneOf(words, "code", "content", "file") {
		dots = true // [previous code here]
	}
	return spokenBy(words, dots)
}

func oneOf(words []string, some ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(some, w) })
}

// elsewhere is what such lines say in other languages than English.
var elsewhere = strings.Fields(`其余代码 其他代码 其余部分 剩余代码 代码省略 此处省略 现有代码 原有代码 保持不变 其餘 保持不變 程式碼不變
	残りのコード 既存のコード 変更なし 以下省略 나머지_코드 기존_코드 변경_없음 이하_생략
	rest_unverändert rest_bleibt rest_wie restlicher_code rest_des_codes bestehender_code unverändert wie_bisher
	reste_du_code reste_inchangé code_existant inchangé resto_del_código código_existente sin_cambios
	resto_do_código sem_alterações resto_del_codice codice_esistente invariato rest_van_de_code bestaande_code
	ongewijzigd остальной_код остальное_без без_изменений существующий_код reszta_kodu istniejący_kod bez_zmian`)

// saidElsewhere looks for that; clear: dots, or a short remark, leave no doubt of what it is.
func saidElsewhere(body string, clear bool) bool {
	if !clear {
		return false
	}
	body = strings.ReplaceAll(strings.ToLower(body), " ", "_")
	return slices.ContainsFunc(elsewhere, func(w string) bool { return strings.Contains(body, w) })
}

// spokenBy decides by the words. All must be words that such lines are made of, but for a few names
// if the rest is clear.
func spokenBy(words []string, dots bool) kind {
	var key, noun, state, strange int
	for _, w := range words {
		switch w {
		case "rest", "remainder", "remaining", "existing":
			key++
		case "unchanged", "omitted", "unmodified", "untouched", "elided", "snip", "snipped", "truncated":
			state += 2
		case "same", "here", "before", "above", "remains", "remain", "stays", "stay", "kept", "is", "as", "continues", "follows",
			"goes", "brevity", "changes", "change", "changed", "identical":
			state++
		case "code", "file", "function", "functions", "method", "methods", "class", "classes", "implementation", "content", "contents",
			"lines", "line", "body", "logic", "imports", "fields", "tests", "test", "props", "properties", "handlers", "routes",
			"cases", "section", "sections", "component", "components", "module", "block", "statements", "definitions", "members",
			"config", "configuration", "elements", "items", "entries", "stuff", "things", "script", "document", "text", "part", "parts":
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
	case strange <= 3 && key > 0 && state >= 2:
		return spoken
	case strange <= 3 && key > 0 && dots && noun > 0:
		return spoken
	case strange <= 2 && dots && state >= 2 && words[len(words)-1] != "change":
		return spoken
	case dots && strange == 0 && noun > 0 && (key > 0 || len(words) <= 3):
		return spoken // "... code ...", "... other methods"
	}
	return notOne
}
