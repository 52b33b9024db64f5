package ergonomics

import (
	"math/rand"
	"strings"
)

// An intent is an edit as it should have been sent.
type intent struct {
	source
	old, new      string
	line, endLine int // of old, from 1
}

// said are lines of each language, without oddities; a block is wrapped by its first and last.
var said = map[string]struct{ plain, quoted, open, close string }{
	"go":   {"total += 1", `note("done")`, "if ready {", "}"},
	"py":   {"total += 1", `note("done")`, "if ready:", ""},
	"js":   {"total += 1;", `note("done");`, "if (ready) {", "}"},
	"c":    {"total += 1;", `note("done");`, "if (ready) {", "}"},
	"css":  {"color: red;", `content: "done";`, "@media print {", "}"},
	"html": {"<hr>", `<a id="done"></a>`, "<div>", "</div>"},
	"sh":   {"total=1", `echo "done"`, "if ready; then", "fi"},
	"yaml": {"total: 1", `note: "done"`, "ready:", ""},
	"make": {"$(CC) -c extra.c", `echo "done"`, "ifdef READY", "endif"},
	"md":   {"One more line of it.", `They say "done" to it.`, "> so:", ""},
}

func indentation(l string) string { return l[:len(l)-len(strings.TrimLeft(l, " \t"))] }

// intents picks n edits of a source: one to four whole lines that are in it once, changed as models
// change things. want says whether some lines will do for a slip.
func intents(s source, r *rand.Rand, n int, want func(lines []string) bool) (out []intent) {
	lines := strings.Split(strings.ReplaceAll(s.text, "\r\n", "\n"), "\n")
	for tries := 0; len(out) < n && tries < 400; tries++ {
		k := 1 + r.Intn(4)
		at := r.Intn(len(lines))
		if at+k > len(lines) {
			continue
		}
		region := lines[at : at+k]
		old := strings.Join(region, "\n")
		if strings.TrimSpace(region[0]) == "" || strings.TrimSpace(region[k-1]) == "" || len(old) > 400 ||
			len(strings.TrimSpace(old)) < 12 || strings.Count(s.text, old) != 1 || want != nil && !want(region) {
			continue
		}
		if new := changed(s, region, r); new != old && new != "" {
			out = append(out, intent{s, old, new, at + 1, at + k})
		}
	}
	return out
}

// changed is one of the changes that models make.
func changed(s source, region []string, r *rand.Rand) string {
	words := said[s.lang]
	i := r.Intn(len(region))
	for strings.TrimSpace(region[i]) == "" {
		i = r.Intn(len(region))
	}
	in := indentation(region[i])
	var out []string
	out = append(out, region[:i]...)
	switch r.Intn(6) {
	case 0, 1: // another word in a line
		line := renamed(region[i], r)
		out = append(out, line)
	case 2: // a line behind it
		out = append(out, region[i], in+words.plain)
	case 3: // a line before it
		out = append(out, in+words.quoted, region[i])
	case 4: // wrapped
		out = append(out, in+words.open, s.unit+region[i])
		if words.close != "" {
			out = append(out, in+words.close)
		}
	case 5: // dropped
		if len(region) < 2 {
			out = append(out, renamed(region[i], r))
		}
	}
	out = append(out, region[i+1:]...)
	return strings.Join(out, "\n")
}

// renamed changes one word of a line, or a number.
func renamed(l string, r *rand.Rand) string {
	type word struct{ from, to int }
	var words []word
	for i := 0; i < len(l); {
		j := i
		for j < len(l) && (l[j] >= 'a' && l[j] <= 'z' || l[j] >= 'A' && l[j] <= 'Z') {
			j++
		}
		if j-i >= 3 && strings.Count(l, l[i:j]) == 1 && (i == 0 || l[i-1] != '\\') {
			words = append(words, word{i, j})
		}
		i = max(j, i+1)
	}
	if len(words) == 0 {
		return l
	}
	w := words[r.Intn(len(words))]
	to := []string{"fresh", "limit", "queue", "second"}[r.Intn(4)]
	return l[:w.from] + to + l[w.to:]
}

// within narrows an intent to a part of one line: the words around what changes.
func (it intent) within() (intent, bool) {
	if strings.Contains(it.old, "\n") || strings.Contains(it.new, "\n") {
		return it, false
	}
	a, b := strings.TrimSpace(it.old), strings.TrimSpace(it.new)
	if strings.Count(it.text, a) != 1 || a == b {
		return it, false
	}
	it.old, it.new = a, b
	return it, true
}

// edit is the case of an intent of which old and new are sent as given.
func (it intent) edit(category, slip, old, new string) Case {
	after := strings.Replace(it.text, it.old, it.new, 1)
	return Case{Category: category, Slip: slip, Files: map[string]string{it.name: it.text},
		Read: []string{it.name}, Tool: "Edit",
		Args: map[string]any{"file_path": "{root}/" + it.name, "old_string": old, "new_string": new},
		Want: map[string]string{it.name: after}, Line: it.line, EndLine: it.endLine}
}
