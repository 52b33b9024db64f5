package tools

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"moltisfs/internal/edit"
	"moltisfs/internal/edit/diff"
	"moltisfs/internal/engine"
)

// A model that quotes a file wrongly writes its new text wrongly in the same way. Here old_string and new_string are both
// damaged, by one slip or by two. Whatever is answered, no other bytes than those that were meant may come of it: neither by
// the call, nor by the next of its refusal.

// slip is one way in which a text is damaged on its way. line is the number of its first line.
type slip struct {
	name string
	do   func(s string, line int) string
}

// none stands in what a slip can't be made of without a loss.
const none = "\x00"

func slips() []slip {
	lines := func(f func(i int, l string) string) func(string, int) string {
		return func(s string, first int) string {
			ls := strings.Split(s, "\n")
			for i, l := range ls {
				if l != "" || i < len(ls)-1 {
					ls[i] = f(first+i, l)
				}
			}
			return strings.Join(ls, "\n")
		}
	}
	indents := func(f func(in string) string) func(string, int) string {
		return lines(func(_ int, l string) string {
			rest := strings.TrimLeft(l, " \t")
			if rest == "" {
				return l
			}
			return f(l[:len(l)-len(rest)]) + rest
		})
	}
	numbers := func(format string, off int) func(string, int) string {
		return lines(func(i int, l string) string { return fmt.Sprintf(format, i+off) + l })
	}
	swap := func(pairs ...string) func(string, int) string {
		r := strings.NewReplacer(pairs...)
		return func(s string, _ int) string { return r.Replace(s) }
	}
	deeper := func(n int) func(string, int) string {
		return indents(func(in string) string { return strings.Repeat(" ", n) + in })
	}
	less := func(n int) func(string, int) string {
		return indents(func(in string) string {
			if len(in) < n {
				return none
			}
			return in[n:]
		})
	}
	return []slip{
		{"arrow", numbers("%6d→", 0)}, {"arrow and a blank", numbers("%6d→ ", 0)}, {"tab numbers", numbers("%6d\t", 0)},
		{"grep numbers", numbers("%d:", 0)}, {"numbers off by one", numbers("%6d→", 1)},
		{"lower case", func(s string, _ int) string { return strings.ToLower(s) }},
		{"tabs as 4", indents(func(in string) string { return strings.ReplaceAll(in, "\t", "    ") })},
		{"tabs as 2", indents(func(in string) string { return strings.ReplaceAll(in, "\t", "  ") })},
		{"4 as tab", indents(func(in string) string { return strings.ReplaceAll(in, "    ", "\t") })},
		{"4 as 2", indents(func(in string) string { return strings.ReplaceAll(in, "    ", "  ") })},
		{"2 as 4", indents(func(in string) string { return strings.ReplaceAll(in, "  ", "    ") })},
		{"2 deeper", deeper(2)}, {"1 deeper", deeper(1)}, {"4 deeper", deeper(4)},
		{"2 less", less(2)}, {"1 less", less(1)},
		{"dedented", func(s string, _ int) string {
			least := -1
			for l := range strings.SplitSeq(s, "\n") {
				if n := len(l) - len(strings.TrimLeft(l, " \t")); strings.TrimSpace(l) != "" && (least < 0 || n < least) {
					least = n
				}
			}
			return indents(func(in string) string { return in[max(least, 0):] })(s, 0)
		}},
		{"blanks at line ends", lines(func(_ int, l string) string { return l + "  " })},
		{"no blanks at line ends", lines(func(_ int, l string) string {
			if strings.HasPrefix(strings.TrimSpace(l), "hard") { // what only New has is its own affair
				return l
			}
			return strings.TrimRight(l, " \t")
		})},
		{"curly", swap(` "`, ` “`, `("`, `(“`, `"`, `”`, `'`, `’`, " - ", " – ")},
		{"straight", swap("“", `"`, "”", `"`, "’", "'", "–", "-", "—", "-", "…", "...")},
		{"no-break spaces", swap(", ", ",\u00a0", " = ", "\u00a0= ")}, {"spaces", swap("\u00a0", " ")},
		{"no-break indentation", indents(func(in string) string { return strings.ReplaceAll(in, " ", "\u00a0") })},
		{"zero-width space", swap("(", "(\u200b")}, {"mark", func(s string, _ int) string { return "\ufeff" + s }},
		{"decomposed", func(s string, _ int) string { return norm.NFD.String(s) }},
		{"composed", func(s string, _ int) string { return norm.NFC.String(s) }},
		{"quotes escaped", swap(`"`, `\"`)}, {"breaks escaped", swap("\n", `\n`, "\t", `\t`)},
		{"escaped twice", swap(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`)},
		{"entities", swap("&", "&amp;", "<", "&lt;", ">", "&gt;")}, {"entities undone", swap("&amp;", "&", "&lt;", "<", "&gt;", ">")},
		{"unicode escapes", func(s string, _ int) string {
			var b strings.Builder
			for _, r := range s {
				if r < 0x80 {
					b.WriteRune(r)
				} else {
					fmt.Fprintf(&b, `\u%04x`, r)
				}
			}
			return b.String()
		}},
		{"a blank line more", func(s string, _ int) string { return strings.Replace(s, "\n", "\n\n", 1) }},
		{"a blank line less", func(s string, _ int) string { return strings.Replace(s, "\n\n", "\n", 1) }},
		{"blanks inside", swap(" = ", "=", ", ", ",")},
	}
}

// changes gives what may be meant to become of some lines.
func changes(region, unit string) (out []string) {
	ls := strings.Split(region, "\n")
	first := ls[0]
	in := first[:len(first)-len(strings.TrimLeft(first, " \t"))]
	with := func(at int, more ...string) {
		all := append([]string{}, ls[:at]...)
		out = append(out, strings.Join(append(append(all, more...), ls[at:]...), "\n"))
	}
	with(1, in+"extra(1)")
	with(len(ls), in+"extra(1)")
	with(1, in+"if more {", in+unit+"nested(2)", in+"}")
	with(1, in+"foo(a,", in+"       b)")
	with(1, in+`say("it's - so...", '\n')`, in+"p = r'C:\\new\\table'")
	with(1, in+"cat <<EOF", "x", "EOF")
	with(1, "#ifdef X", in+"y()", "#endif")
	with(1, in+`s = """`, "  text", `"""`)
	with(1, in+"é = café <b> & c;")
	with(1, in+"if (a &lt; b) x(\"&lt;\");")
	with(1, in+"It’s “late” – so… now")
	with(1, in+"hard break  ", in+"next")
	with(1, "", in+"after a blank line")
	out = append(out, strings.Join(ls[:len(ls)-1], "\n"), "", in+"all(new)", in+"all(new)\n"+in+"and(more)")
	if at := strings.LastIndexFunc(first, func(r rune) bool { return r >= 'a' && r <= 'z' }); at >= 0 {
		out = append(out, first[:at]+"renamed"+region[at+1:])
	}
	last := ls[len(ls)-1]
	body := strings.TrimLeft(last, " \t")
	out = append(out, strings.TrimSuffix(region, body)+strings.Replace(body, " ", " Other ", 1))
	return out
}

// alikeFiles are the texts that are quoted: some of the Go tree, some made for what that has not.
func alikeFiles(t *testing.T) map[string]string {
	files := map[string]string{
		"two.py":     "class A:\n    def f(self, name):\n        a = 1\n        if a:\n            b = \"it's - so...\"\n            c = a, b\n        return c\n\n    def g(self):\n        a = 1\n        return a, 2\n",
		"two.js":     "export function f(a, b) {\n  const s = \"x\";\n  if (a < b && c > d) {\n    return say(\"hi\", 'you');\n  }\n  return `a\\n${b}`;\n}\n",
		"text.md":    "# Title\n\nIt’s “late” – so… now  \nand 10\u00a0km more,\u00a0or less  \nlast line of it\n\n- one — two\n- café au lait, naïve\n- cafe\u0301 too, nai\u0308ve\n",
		"cond.c":     "int f(void)\n{\n    int a = 1;\n#ifdef X\n    a = 2;\n#endif\n    if (a < 2 && a > 0)\n        return g(\"a\\n\", a);\n    return a;\n}\n",
		"script.sh":  "run() {\n    cat <<EOF\n  text = \"a\"\nEOF\n    echo \"done\", x = 1\n    exit 0\n}\n",
		"page.html":  "<ul>\n  <li>a &lt; b &amp; c</li>\n  <li>it's \"d\"</li>\n</ul>\n<p>x = 1, y</p>\n",
		"crlf.bat":   "@echo off\r\nif x (\r\n    echo one, two\r\n    set a = 1\r\n)\r\necho it's \"done\"\r\n",
		"blanks.txt": "alpha  \n    beta = 1\t\n\n    gamma, delta \nepsilon\n",
		"data.json":  "{\n  \"a\": \"say \\\"hi\\\" to \\u00e9 and x\\ny\",\n  \"b\": [1, 2]\n}\n",
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Logf("no go command, so no text of the Go tree: %v", err)
	}
	for _, f := range []string{"net/http/server.go", "go/ast/ast.go", "text/template/exec.go", "runtime/asm_arm64.s", "html/escape.go"} {
		raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "src", f))
		if err != nil {
			t.Logf("not in this Go tree: %v", err)
			continue
		}
		from := len(raw) / 3
		from += bytes.IndexByte(raw[from:], '\n') + 1
		files[f] = string(raw[from : from+1+bytes.LastIndexByte(raw[from:min(len(raw), from+12<<10)], '\n')])
	}
	return files
}

// literally makes an edit, and if it is refused what next says.
func literally(content []byte, e edit.Edit, strict bool) (got []byte, how string) {
	o := edit.Options{Strict: strict}
	r, err := edit.Apply(content, []edit.Edit{e}, o)
	if err == nil {
		return r.Content, r.Steps[0].Strategy
	}
	if strings.Contains((&Suite{}).refuse(nil, "Edit", &EditArgs{}, engine.Reason(err)).Hint, "end resend as old_string.") {
		return []byte("the hint pairs resend with what was sent"), "hint"
	}
	for tool, args := range map[string]any{
		"Edit":      &EditArgs{FilePath: "/f", OldString: e.Old, NewString: e.New},
		"MultiEdit": &MultiEditArgs{FilePath: "/f", Edits: []OneEdit{{OldString: e.Old, NewString: e.New}}},
	} {
		next := (&Suite{}).refuse(nil, tool, args, engine.Reason(err)).Next
		if next == nil || next.Tool == "Read" {
			continue
		}
		old, _ := next.Args["old_string"].(string)
		now, _ := next.Args["new_string"].(string)
		if list, ok := next.Args["edits"].([]map[string]any); ok {
			old, now = list[0]["old_string"].(string), list[0]["new_string"].(string)
		}
		if r, err = edit.Apply(content, []edit.Edit{{Old: old, New: now}}, o); err != nil {
			return nil, "next is refused: " + err.Error()
		}
		return r.Content, "next"
	}
	return nil, "refused"
}

// damagedAlike is one edit, as it was meant and as it is sent.
type damagedAlike struct {
	what       string // file, place and slips
	text, want string // the file before and after the edit that was meant
	old, new   string
}

// eachAlike calls f for some changes of some regions of a text with each slip, and with some pairs of slips.
func eachAlike(name, text string, f func(damagedAlike)) {
	nl, unit := "\n", "    "
	if strings.Contains(text, "\r\n") {
		nl = "\r\n"
	}
	plain := strings.ReplaceAll(text, nl, "\n")
	if strings.Contains(plain, "\n\t") {
		unit = "\t"
	} else if name == "two.js" {
		unit = "  "
	}
	ls := strings.SplitAfter(plain, "\n")
	for from := 0; from+1 < len(ls); from += max(1, len(ls)/3) {
		for _, size := range []int{1, 2, 5} {
			region := strings.TrimSuffix(strings.Join(ls[from:min(len(ls), from+size)], ""), "\n")
			if strings.Count(plain, region) != 1 || strings.TrimSpace(ls[from]) == "" || len(strings.TrimSpace(region)) < 8 ||
				strings.TrimRight(region, " \t") != region {
				continue
			}
			for ci, meant := range changes(region, unit) {
				want := strings.ReplaceAll(strings.Replace(plain, region, meant, 1), "\n", nl)
				eachSlip(plain, region, meant, from+1, from+ci+size, func(slipped, old, new string) {
					f(damagedAlike{fmt.Sprintf("%s:%d+%d, %s", name, from+1, size, slipped), text, want, old, new})
				})
			}
		}
	}
}

// eachSlip damages the lines of a region, and what is meant to become of them. round picks other pairs of slips each time.
func eachSlip(plain, region, meant string, line, round int, f func(slipped, old, new string)) {
	all := slips()
	for i, a := range all {
		for j, b := range all {
			if pick := i*31 + j*7 + round; i == j && pick%7 != 0 || i != j && pick%997 != 0 {
				continue
			}
			slipped, old, now := a.name, a.do(region, line), a.do(meant, line)
			shows := !strings.Contains(plain, old) // what is right in old_string is written as it is sent
			if i != j {
				again := b.do(old, line)
				shows = shows && again != old && !strings.Contains(plain, again) && !strings.Contains(plain, b.do(region, line))
				slipped, old, now = slipped+" and "+b.name, again, b.do(now, line)
			}
			if shows && old != now && !strings.Contains(now+old, none) {
				f(slipped, old, now)
			}
		}
	}
}

var everyAlike = flag.Bool("everyalike", false, "all edits of TestOldAndNewDamagedAlike, not a ninth")

func TestOldAndNewDamagedAlike(t *testing.T) {
	t.Parallel()
	done, count, bad := map[string]int{}, 0, 0
	for name, text := range alikeFiles(t) {
		eachAlike(name, text, func(c damagedAlike) {
			if count++; !*everyAlike && count%9 != 0 {
				return
			}
			for _, strict := range []bool{false, true}[:1+count%2] {
				got, how := literally([]byte(c.text), edit.Edit{Old: c.old, New: c.new}, strict)
				if done[how]++; how == "refused" || string(got) == c.want {
					continue
				}
				if bad++; bad < 12 {
					t.Errorf("%s, strict %v, by %s\nold %q\nnew %q\ngot what was meant with\n%s", c.what, strict, how, c.old, c.new,
						diff.Unified("f", diff.Edited, diff.Patch([]byte(c.want), got)))
				}
			}
		})
	}
	t.Logf("%d edits: %v, %d of them make other bytes than meant", count, done, bad)
	if done["next"] == 0 || done[edit.StrategyRepaired] == 0 || done[edit.StrategyIndentation] == 0 || done[edit.StrategyQuotes] == 0 {
		t.Error("too little was done to prove much")
	}
}
