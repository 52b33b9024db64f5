package ergonomics

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// Cases of kinds of files, and of texts that are exact and broken.

// notebooks are slips of NotebookEdit, and of Edit in a notebook.
func notebooks(_ []source, each int) (out []Case) {
	cells := []string{"import math\nimport sys", "total = 0\nfor i in range(10):\n    total += i", "print(total)", "# Notes\nThe end."}
	var b strings.Builder
	b.WriteString("{\n \"cells\": [\n")
	for i, src := range cells {
		kind, rest := "code", "   \"execution_count\": null,\n   \"outputs\": [],\n"
		if i == 3 {
			kind, rest = "markdown", ""
		}
		fmt.Fprintf(&b, "  {\n   \"cell_type\": %q,\n   \"id\": \"cell%d\",\n   \"metadata\": {},\n%s   \"source\": [\n", kind, i, rest)
		lines := strings.SplitAfter(src, "\n")
		for j, l := range lines {
			fmt.Fprintf(&b, "    %s", rendered(l))
			if j < len(lines)-1 {
				b.WriteString(",")
			}
			b.WriteString("\n")
		}
		b.WriteString("   ]\n  }")
		if i < len(cells)-1 {
			b.WriteString(",")
		}
		b.WriteString("\n")
	}
	b.WriteString(" ],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n")
	for n := range cells[:min(len(cells)-1, each)] {
		file, id := "{root}/work.ipynb", fmt.Sprintf("cell%d", n)
		right := map[string]any{"notebook_path": file, "cell_id": id, "new_source": "print(1)"}
		for slip, args := range map[string]map[string]any{
			"names of others":      {"path": file, "cell": id, "source": "print(1)"},
			"kebab and upper case": {"NOTEBOOK_PATH": file, "cell-id": id, "newSource": "print(1)"},
			"letter case of an id": {"notebook_path": file, "cell_id": strings.ToUpper(id), "new_source": "print(1)"},
			"id in quotes":         {"notebook_path": file, "cell_id": `"` + id + `"`, "new_source": "print(1)"},
			"mode misspelt":        {"notebook_path": file, "cell_id": id, "new_source": "print(1)", "edit_mode": "update"},
			"path quoted":          {"notebook_path": "'" + file + "'", "cell_id": id, "new_source": "print(1)"},
			"nested":               {"input": right},
		} {
			out = append(out, Case{Category: "J notebooks", Slip: slip, Files: map[string]string{"work.ipynb": b.String()}, Read: []string{"work.ipynb"},
				Tool: "NotebookEdit", Args: args, As: right})
		}
		if !strings.Contains(cells[n], "\n") {
			continue // that is in the file as it is shown
		}
		out = append(out, Case{Category: "J notebooks", Slip: "Edit of what is shown", Files: map[string]string{"work.ipynb": b.String()}, Read: []string{"work.ipynb"},
			Tool: "Edit", Args: map[string]any{"file_path": file, "old_string": cells[n], "new_string": "print(1)"}, Refuse: true, Want: map[string]string{}},
			Case{Category: "J notebooks", Slip: "number of a cell that is not there", Files: map[string]string{"work.ipynb": b.String()}, Read: []string{"work.ipynb"},
				Tool: "NotebookEdit", Args: map[string]any{"notebook_path": file, "cell_number": 40 + n, "new_source": "x"}, Refuse: true, Want: map[string]string{}})
	}
	return out
}

// broken are exact edits whose new text has a fault: they are done, and should be warned of.
func broken(sources []source, each int) (out []Case) {
	for _, k := range []struct {
		name string
		want func(it intent) bool
		do   func(it intent) string
	}{
		{"bracket lost", func(it intent) bool { return strings.Contains(it.new, ")") && balanced(it.text) },
			func(it intent) string { return strings.Replace(it.new, ")", "", 1) }},
		{"line number", nil, func(it intent) string { return fmt.Sprintf("%6d→%s", it.line, it.new) }},
		{"code fence", func(it intent) bool { return !strings.Contains(it.text, "```") }, func(it intent) string { return "```\n" + it.new + "\n```" }},
		{"merge marker", nil, func(it intent) string { return it.new + "\n>>>>>>> REPLACE" }},
		{"entities", func(it intent) bool {
			return strings.Contains(it.new, " && ") && !strings.Contains(it.text, "&amp;") && it.lang != "html" && it.lang != "md"
		}, func(it intent) string { return strings.ReplaceAll(it.new, " && ", " &amp;&amp; ") }},
		{"break as two letters", func(it intent) bool {
			return strings.Contains(it.new, ";\n") && !strings.Contains(it.text, `;\n`) && it.lang != "html" && it.lang != "md"
		}, func(it intent) string { return strings.ReplaceAll(it.new, ";\n", `;\n`) }},
		{"blanks for tabs", func(it intent) bool { return it.name == "Makefile" && strings.HasPrefix(it.new, "\t") },
			func(it intent) string { return strings.ReplaceAll(it.new, "\t", "    ") }},
	} {
		out = append(out, varied("X exact but broken", k.name, sources, each, func(it intent, c Case) (Case, bool) {
			if k.want != nil && !k.want(it) {
				return c, false
			}
			c.Contract, c.Args["new_string"] = true, k.do(it)
			return c, true
		})...)
	}
	return out
}

func balanced(s string) bool {
	return strings.Count(s, "(") == strings.Count(s, ")")
}

// foreignScripts are edits of files in GBK and Shift-JIS.
func foreignScripts(_ []source, each int) (out []Case) {
	for _, k := range []struct {
		name    string
		charset encoding.Encoding
		text    string
	}{
		{"GBK", simplifiedchinese.GBK, strings.Repeat("# 这个程序计算所有订单的总和，然后把结果写进报告里。\n", 3) + `def 合计(订单列表):
    总和 = 0
    for 订单 in 订单列表:
        if 订单.已付款:
            总和 += 订单.金额
    print("总和是", 总和)
    return 总和


def 报告(文件名, 结果):
    # 报告每天写一次，旧的会被覆盖。
    with open(文件名, "w") as 文件:
        文件.write("今天的结果：%d 元" % 结果)
`},
		{"Shift-JIS", japanese.ShiftJIS, strings.Repeat("# このプログラムは注文の合計を計算して、報告書に書きます。\n", 3) + `def total_of(orders):
    total = 0
    for order in orders:
        if order.paid:  # 支払い済みの注文だけ
            total += order.amount
    print("合計は", total, "円です")
    return total


def report(name, result):
    # 報告書は毎日書き直されます。
    with open(name, "w") as out:
        out.write("今日の結果は %d 円" % result)
`},
	} {
		encoded := func(s string) string {
			b, err := k.charset.NewEncoder().String(s)
			if err != nil {
				panic(err) // the texts are in their charsets
			}
			return b
		}
		s := source{"orders.py", "py", "    ", k.text}
		for name, do := range map[string]func(intent, string) string{
			"as meant":          func(_ intent, s string) string { return s },
			"arrow":             numbered("%6d→", 0),
			"a tab for blanks":  led(func(in string) string { return strings.ReplaceAll(in, "    ", "\t") }),
			"quotes escaped":    subst(`"`, `\"`),
			"wide signs narrow": subst("：", ":", "，", ",", "。", "."),
			"curly quotes":      func(_ intent, s string) string { return curled(s) },
			"last sign lost":    onceIn(func(w string) string { return w[:len(w)-1] }),
		} {
			out = append(out, varied("H encodings", k.name+", "+name, []source{s, s, s, s}, min(each, 4), func(it intent, c Case) (Case, bool) {
				old := do(it, it.old)
				c.Args["old_string"], c.Args["new_string"] = old, do(it, it.new)
				if name != "as meant" && (old == it.old || strings.Contains(it.text, old)) || old == do(it, it.new) {
					return c, false
				}
				c.Files = map[string]string{it.name: encoded(it.text)}
				c.Want = map[string]string{it.name: encoded(c.Want[it.name])}
				return c, true
			})...)
		}
	}
	return out
}

// minified are edits of code that is one line.
func minified(sources []source, each int) (out []Case) {
	var b strings.Builder
	b.WriteString(`(()=>{"use strict";`)
	names := strings.Fields("parse render attach detach measure schedule compare collect filter reduce")
	for i := range 400 {
		n := names[i%len(names)]
		fmt.Fprintf(&b, `function %s%d(t,e){var n=t.%s[%d],r="%s-%d";if(!n||e>%d)return null;return n.map(o=>o.%s(e+%d)).concat(r)}`, n, i, n, i%9, n, i, i*3, n, i)
	}
	b.WriteString("})();\n")
	text := b.String()
	spaced := func(s string) string {
		return strings.NewReplacer(",", ", ", "{", " { ", ";", "; ", "=>", " => ").Replace(s)
	}
	for name, do := range map[string]func(string) string{
		"blanks added":     spaced,
		"broken in lines":  func(s string) string { return strings.NewReplacer(";", ";\n", "{", "{\n  ").Replace(s) },
		"a letter doubled": func(s string) string { return strings.Replace(s, "return", "returnn", 1) },
		"other quotes":     func(s string) string { return strings.ReplaceAll(s, `"`, "'") },
		"letters swapped":  func(s string) string { return strings.Replace(s, "concat", "cnocat", 1) },
	} {
		for i := range each {
			from := strings.Index(text, fmt.Sprintf("function %s%d(", names[(i*37+3)%len(names)], i*37+3))
			old := text[from : from+strings.Index(text[from:], "}")+1]
			new := strings.Replace(old, "return null", "return void 0", 1)
			out = append(out, Case{Category: "H encodings", Slip: "minified, " + name, Files: map[string]string{"app.min.js": text}, Read: []string{"app.min.js"},
				Tool: "Edit", Args: map[string]any{"file_path": "{root}/app.min.js", "old_string": do(old), "new_string": do(new)},
				Want: map[string]string{"app.min.js": strings.Replace(text, old, new, 1)}, Line: 1, EndLine: 1})
		}
	}
	return out
}

// elidedIn are remarks in place of code, in several languages.
func elidedIn(sources []source, each int) (out []Case) {
	for _, remark := range []string{"# ... 其余代码保持不变 ...", "// ... 既存のコード ...", "# ... restlicher Code unverändert ...", "// ... reste du code inchangé ...",
		"# ... resto del código sin cambios ...", "// ... остальной код без изменений ...", "// ... 나머지 코드 ...", "# ... rest of the code unchanged ..."} {
		out = append(out, varied("N Write", "elided: "+remark, sources, min(each, 2), func(it intent, c Case) (Case, bool) {
			lines := strings.Split(it.text, "\n")
			c.Tool, c.Args = "Write", map[string]any{"file_path": "{root}/" + it.name, "content": strings.Join(lines[:6], "\n") + "\n" + remark + "\n"}
			c.Refuse, c.Want = true, nil
			return c, len(lines) > 30
		})...)
		out = append(out, varied("N Write", "elided in an edit: "+remark, sources, min(each, 2), func(it intent, c Case) (Case, bool) {
			lines := strings.Split(it.old, "\n")
			c.Args["new_string"] = lines[0] + "\n" + remark
			c.Refuse, c.Want = true, nil
			code := it.lang == "go" || it.lang == "py" || it.lang == "js"
			return c, code && len(lines) == 4 && !strings.Contains(it.old, "//") && !strings.Contains(it.old, "#") && !strings.Contains(it.old, "\n\n")
		})...)
	}
	return out
}

// columns are edits whose new lines must stay in the first column, in a block whose indentation was lost.
func columns(sources []source, each int) (out []Case) {
	for name, k := range map[string]struct{ lang, lines string }{
		"here-document": {"sh", "cat <<EOF\nplain text\n  of it\nEOF"}, "directive": {"c", "#ifdef READY\nnote(1);\n#endif"},
		"raw string": {"go", "text := `first\nsecond\n  third`"}, "long string": {"py", "text = \"\"\"first\nsecond\n\"\"\""},
	} {
		out = append(out, varied("A indentation", name+" in what is new", sources, each, func(it intent, c Case) (Case, bool) {
			in := common(it.old)
			if it.lang != k.lang || in == "" {
				return c, false
			}
			lines := strings.Split(k.lines, "\n")
			if name != "directive" {
				lines[0] = in + lines[0]
			}
			new := it.old + "\n" + strings.Join(lines, "\n")
			dedent := func(s string) string {
				return eachLine(func(l string) string { return strings.TrimPrefix(l, in) })(it, s)
			}
			c.Args["old_string"], c.Args["new_string"] = dedent(it.old), dedent(it.old)+"\n"+k.lines
			c.Want = map[string]string{it.name: strings.Replace(it.text, it.old, new, 1)}
			return c, !strings.Contains(it.text, dedent(it.old)+"\n") && strings.Count(it.text, dedent(it.old)) < 2
		})...)
	}
	return out
}

// siblings are edits of one file with the text of another, both of them read.
func siblings(sources []source, each int) []Case {
	return varied("G state", "text of the file beside it", sources, each, func(it intent, c Case) (Case, bool) {
		c.Files = maps.Clone(c.Files)
		c.Files["other/notes.txt"] = "Nothing of that kind\nis in this file.\n"
		c.Read = append(c.Read, "other/notes.txt")
		c.Args["file_path"] = "{root}/other/notes.txt"
		return c, len(strings.TrimSpace(it.old)) >= 12
	})
}

// TestBrokenIsWarnedOf: nearly all that is exact and broken carries a warning, and what is meant carries none.
func TestBrokenIsWarnedOf(t *testing.T) {
	sources := allSources(t)
	warned := func(cases []Case) (n int) {
		for i, r := range run(t, cases, openInside(t, "tolerant")) {
			if r.Warned() {
				n++
			} else if cases[i].Contract {
				t.Logf("%s of %s: no warning", cases[i].Slip, rendered(cases[i].Args))
			}
		}
		return n
	}
	faulty := broken(sources, 2)
	if n := warned(faulty); n*10 < len(faulty)*9 {
		t.Errorf("%d of %d are warned of", n, len(faulty))
	}
	right := varied("", "right", sources, 40, func(_ intent, c Case) (Case, bool) { return c, true })
	if n := warned(right); n*20 > len(right) {
		t.Errorf("%d of %d right ones are warned of", n, len(right))
	}
}
