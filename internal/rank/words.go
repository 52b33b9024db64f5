package rank

import "strings"

var (
	keywords = set(`
		func fn fun function def defn defp defmacro defmodule define class struct union enum
		interface trait protocol object record type typedef typealias newtype data const
		constexpr var val let macro macro_rules! #define sub proc procedure method module mod
		namespace package actor extension message service rpc theorem lemma alias defun defvar
		defparameter %macro .macro .globl TEXT GLOBL DATA`)
	// constants are the keywords behind which a type may stand before the name.
	constants = set("const constexpr typedef static final")
	modifiers = set(`
		export default pub public private protected internal static final abstract async extern
		inline virtual override readonly volatile unsafe sealed open partial mut declare local
		global constexpr friend synchronized native transient explicit lateinit suspend tailrec
		operator infix noinline`)
	statements = set(`
		if else elif for foreach while until switch match case when return throw raise yield
		await go defer new delete in not and or is import from using use include require print
		assert with catch do goto typeof sizeof unless then select echo export`)
	types   = set("struct interface class enum union record trait protocol")
	created = set(`
		table view index trigger function procedure type schema sequence role materialized
		unique temporary temp or replace if not exists`)
)

// names says whether s holds nothing but names and these marks.
func names(s, marks string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !partOfName(r) && !strings.ContainsRune(marks, r)
	})
}

// closes is the place behind the bracket that closes the first one; 0: none does.
func closes(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// comment says whether a line is one.
func comment(line string) bool {
	if strings.HasPrefix(line, "%macro") || strings.HasPrefix(line, "# define") {
		return false
	}
	for _, mark := range []string{"//", "/*", "* ", "*/", "--", ";", "# ", "#!", "%", `"""`, "'''",
		"<!--"} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	return line == "*"
}

// proseKind: in prose only headings define.
func proseKind(line string, indent int) kind {
	line = strings.TrimSpace(line)
	if indent > 3 || line == "" {
		return use
	}
	lower := strings.ToLower(line)
	for _, mark := range []string{"#", "= ", "== ", "<h1", "<h2", "<h3", "<h4", "<h5", "<h6"} {
		if strings.HasPrefix(lower, mark) {
			return heading
		}
	}
	return use
}

// underlined says whether the lines after a heading begin with the line under it.
func underlined(after []string) bool {
	if len(after) == 0 {
		return false
	}
	under := strings.TrimSpace(after[0])
	return len(under) >= 3 && strings.ContainsAny(under[:1], "=-~^*") &&
		strings.Trim(under, under[:1]) == ""
}

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}
