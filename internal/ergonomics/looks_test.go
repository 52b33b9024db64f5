package ergonomics

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// looked are cases of paths, searches and arguments, over one tree of the sources.
func looked(_ testing.TB, sources []source, each int) (out []Case) {
	dirs := []string{"src/net", "src/core/util", "web/js", "web/js/lib", "docs", "scripts", "src/core"}
	files, at := map[string]string{".gitignore": "build/\n", "build/gen/made.txt": "made_by_the_build 1\n"}, map[string]source{}
	var names []string
	for i, s := range sources[:min(len(sources), 14)] {
		p := dirs[i%len(dirs)] + "/" + s.name
		if files[p] == "" {
			files[p], at[p] = s.text, s
			names = append(names, p)
		}
	}
	files["web/js/[slug].ts"] = "export const slug = 1;\n"
	names = names[:min(len(names), 1+each/4)]
	for i, name := range names {
		out = append(out, pathSlips(files, names, name, i)...)
		out = append(out, grepSlips(files, at[name], name)...)
		out = append(out, globSlips(files, name)...)
		out = append(out, argumentSlips(files, at[name], name, i)...)
	}
	slices.SortStableFunc(out, func(a, b Case) int { return cmp.Compare(a.Category+a.Slip, b.Category+b.Slip) })
	if each > 1 {
		return out
	}
	var sample []Case
	for i := 0; i < len(out); i += 4 {
		sample = append(sample, out[i])
	}
	return sample
}

// line is a line of s that is there once, and worth a search.
func line(s source, want func(string) bool) string {
	for _, l := range strings.Split(s.text, "\n") {
		if t := strings.TrimSpace(l); len(t) > 12 && len(t) < 90 && strings.Count(s.text, t) == 1 && want(t) {
			return t
		}
	}
	return ""
}

func pathSlips(files map[string]string, names []string, name string, i int) (out []Case) {
	dir, base := path.Split(name)
	ext := path.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	abs := "{root}/" + name
	for slip, p := range map[string]string{
		"quoted": `"` + abs + `"`, "backticks": "`" + abs + "`", "blank before": " " + abs, "newline behind": abs + "\n",
		"mention": "@" + name, "diff side": "b/" + name, "file URL": "file://" + abs,
		"escaped URL":     "file://{root}/" + strings.ReplaceAll(url.PathEscape(name), "%2F", "/"),
		"workspaceFolder": "${workspaceFolder}/" + name, "home": "~/" + name, "PWD": "$PWD/" + name,
		"backslashes": `{root}\` + strings.ReplaceAll(name, "/", `\`), "drive": `C:\` + strings.ReplaceAll(name, "/", `\`),
		"sandbox root": "/workspace/" + name, "other root": "/home/user/checkout/" + name, "line": abs + ":12", "line and column": abs + ":12:5",
		"fragment": abs + "#L12-L20", "upper case": "{root}/" + dir + strings.ToUpper(base), "slash behind": abs + "/",
		"relative": name, "relative with dot": "./" + name, "bare name": "{root}/" + base,
		"too shallow": "{root}/" + path.Base(path.Dir(name)) + "/" + base,
		"too deep":    "{root}/" + dir + "impl/" + base, "twice the root": "{root}/ws/" + name, "letter lost": "{root}/" + dir + stem[1:] + ext,
		"letters swapped": "{root}/" + dir + stem[:1] + swapped(stem[1:]) + ext, "directory misspelt": "{root}/" + strings.Replace(name, "/", "s/", 1),
	} {
		out = append(out, Case{Category: "K paths", Slip: slip, Files: files, Tool: "Read", Args: map[string]any{"file_path": p, "limit": 5},
			Right: map[string]any{"file_path": abs, "limit": 5}})
	}
	old := line(source{text: files[name]}, func(string) bool { return true })
	if old == "" {
		return out
	}
	for slip, p := range map[string]string{"edit, sandbox root": "/workspace/" + name, "edit, line": abs + ":3", "edit, quoted": "'" + abs + "'",
		"edit, case": "{root}/" + strings.ToUpper(dir[:1]) + dir[1:] + base} {
		out = append(out, Case{Category: "K paths", Slip: slip, Files: files, Read: []string{name}, Tool: "Edit",
			Args: map[string]any{"file_path": p, "old_string": old, "new_string": "changed " + old},
			Want: map[string]string{name: strings.Replace(files[name], old, "changed "+old, 1)}})
	}
	for slip, p := range map[string]string{"new file, sandbox root": "/workspace/" + dir + "fresh.txt", "new file, quoted": `"{root}/` + dir + `fresh.txt"`,
		"new file, directory misspelt": "{root}/" + strings.Replace(dir, "/", "s/", 1) + "fresh.txt"} {
		out = append(out, Case{Category: "K paths", Slip: slip, Files: files, Tool: "Write", Args: map[string]any{"file_path": p, "content": "x\n"},
			Want: map[string]string{dir + "fresh.txt": "x\n"}})
	}
	return append(out, Case{Category: "K paths", Slip: "nothing like it", Files: files, Tool: "Read", Args: map[string]any{"file_path": "{root}/zzqq/wxyz.qqq"}, Refuse: true,
		Want: map[string]string{}})
}

func swapped(s string) string {
	if len(s) < 2 {
		return s + "x"
	}
	return s[1:2] + s[:1] + s[2:]
}

func grepSlips(files map[string]string, s source, name string) (out []Case) {
	add := func(slip string, args, right map[string]any) {
		if pattern, _ := args["pattern"].(string); args["glob"] == nil && args["path"] == nil {
			if re, err := regexp.Compile(pattern); err == nil {
				for _, text := range files {
					if re.MatchString(text) {
						return // it finds something: no slip that can be seen
					}
				}
			}
		}
		out = append(out, Case{Category: "L Grep", Slip: slip, Files: files, Tool: "Grep", Args: args, Right: right})
	}
	p := func(pattern string) map[string]any { return map[string]any{"pattern": pattern} }
	l := line(s, func(l string) bool { return strings.ContainsAny(l, "()[]{}$?*+") && regexp.QuoteMeta(l) != l })
	if l != "" {
		add("literal text", p(l), p(regexp.QuoteMeta(l)))
		add("quoted", p(`"`+l+`"`), p(regexp.QuoteMeta(l)))
		add("escaped twice", p(strings.ReplaceAll(regexp.QuoteMeta(l), `\`, `\\`)), p(regexp.QuoteMeta(l)))
		if strings.Contains(l, "(") {
			add("call left open", p(l[:strings.Index(l, "(")+1]), p(regexp.QuoteMeta(l[:strings.Index(l, "(")+1])))
		}
	}
	word := regexp.MustCompile(`[A-Za-z_]{7,}`).FindAllString(s.text, -1)
	if len(word) < 4 {
		return out
	}
	w, v := word[len(word)/2], word[len(word)/3]
	add("slashes", p("/"+w+"/"), p(w))
	add("single quotes", p("'"+w+"'"), p(w))
	add("option in the pattern", p("-i "+strings.ToUpper(w)), map[string]any{"pattern": strings.ToUpper(w), "-i": true})
	add("basic alternatives", p(`qqzz\|`+w), p("qqzz|"+w))
	add("basic group", p(`\(`+w+`\|qqzz\)`), p("("+w+"|qqzz)"))
	if up := strings.ToUpper(w); !strings.Contains(s.text, up) {
		add("letter case", p(up), map[string]any{"pattern": up, "-i": true})
	}
	add("class of everything", p(regexp.QuoteMeta(w)+`[\s\S]*\n[\s\S]*`+regexp.QuoteMeta(v)+`|qqzz\n`), map[string]any{"pattern": regexp.QuoteMeta(w) + `[\s\S]*\n[\s\S]*` + regexp.QuoteMeta(v) + `|qqzz\n`, "multiline": true})
	ext := path.Ext(name)
	bare := strings.TrimPrefix(ext, ".")
	glob := func(g string) map[string]any { return map[string]any{"pattern": w, "glob": g} }
	add("glob: alternatives in parentheses", glob("*.("+bare+"|zz)"), glob("*.{"+bare+",zz}"))
	add("glob: backslashes", glob(`**\*`+ext), glob("**/*"+ext))
	add("glob: extension", glob(ext), glob("*"+ext))
	add("glob: upper case", glob("*"+strings.ToUpper(ext)), glob("*"+ext))
	add("glob: a regular expression", glob(`.*\`+ext+"$"), glob("*"+ext))
	add("glob in path", map[string]any{"pattern": w, "path": "{root}/" + path.Dir(name) + "/*" + ext}, map[string]any{"pattern": w, "path": "{root}/" + path.Dir(name), "glob": "/*" + ext})
	add("path of a sandbox", map[string]any{"pattern": w, "path": "/workspace/" + path.Dir(name)}, map[string]any{"pattern": w, "path": "{root}/" + path.Dir(name)})
	add("path undefined", map[string]any{"pattern": w, "path": "undefined"}, p(w))
	add("ignored", p("made_by_the_build"), map[string]any{"pattern": "made_by_the_build", "path": "{root}/build/gen"})
	return out
}

func globSlips(files map[string]string, name string) (out []Case) {
	add := func(slip, pattern, right string) {
		out = append(out, Case{Category: "M Glob", Slip: slip, Files: files, Tool: "Glob", Args: map[string]any{"pattern": pattern}, Right: map[string]any{"pattern": right}})
	}
	ext, dir, base := path.Ext(name), path.Dir(name), path.Base(name)
	bare := strings.TrimPrefix(ext, ".")
	add("alternatives in parentheses", "*.("+bare+"|zz)", "*.{"+bare+",zz}")
	add("backslashes", strings.ReplaceAll(dir, "/", `\`)+`\*`+ext, dir+"/*"+ext)
	add("extension", ext, "*"+ext)
	add("upper case", "*"+strings.ToUpper(ext), "*"+ext)
	add("a regular expression", `.*\`+ext+"$", "*"+ext)
	add("quoted", `"*`+ext+`"`, "*"+ext)
	add("directory", path.Base(dir), "**/"+path.Base(dir)+"/**")
	add("brackets in a name", "web/js/[slug].ts", `web/js/\[slug\].ts`)
	add("name in another case", strings.ToUpper(base), base)
	add("too shallow", strings.Split(name, "/")[0]+"/"+base, "**/"+base)
	add("ignored", "made.txt", "build/gen/made.txt")
	return out[:len(out)-1]
}

func argumentSlips(files map[string]string, s source, name string, i int) (out []Case) {
	abs := "{root}/" + name
	look := func(slip, tool string, args, right map[string]any) {
		out = append(out, Case{Category: "O arguments", Slip: slip, Files: files, Tool: tool, Args: args, Right: right})
	}
	for _, key := range []string{"path", "filename", "file", "target_file", "absolute_path", "FILE_PATH", "file-path", "filePath"} {
		look("Read "+key, "Read", map[string]any{key: abs, "limit": 4}, map[string]any{"file_path": abs, "limit": 4})
	}
	window := map[string]any{"file_path": abs, "offset": 3, "limit": 5}
	look("lines by start and end", "Read", map[string]any{"file_path": abs, "start_line": 3, "end_line": 7}, window)
	look("view_range", "Read", map[string]any{"path": abs, "command": "view", "view_range": []any{3, 7}}, window)
	look("explained", "Read", map[string]any{"target_file": abs, "explanation": "to see it", "offset": "3", "limit": "5"}, window)
	look("nested", "Read", map[string]any{"input": window}, window)
	look("misspelt", "Read", map[string]any{"file_pth": abs, "ofset": 3, "limit": 5}, window)
	if words := regexp.MustCompile(`[a-z]{6,}`).FindAllString(s.text, -1); len(words) > 2 {
		w := words[len(words)/2]
		right := map[string]any{"pattern": w, "glob": "*" + path.Ext(name), "output_mode": "content"}
		look("Grep query, include", "Grep", map[string]any{"query": w, "include": "*" + path.Ext(name), "output_mode": "content"}, right)
		look("Grep regex, file_pattern", "Grep", map[string]any{"regex": w, "file_pattern": "*" + path.Ext(name), "output": "content"}, right)
		look("Grep ignore_case, max_results", "Grep", map[string]any{"pattern": w, "ignore_case": true, "max_results": 2}, map[string]any{"pattern": w, "-i": true, "head_limit": 2})
		look("Grep directory, case_sensitive", "Grep", map[string]any{"search": w, "directory": "{root}/" + path.Dir(name), "case_sensitive": false}, map[string]any{"pattern": w, "path": "{root}/" + path.Dir(name), "-i": true})
	}
	look("Glob query", "Glob", map[string]any{"query": "*" + path.Ext(name), "target_directory": "{root}"}, map[string]any{"pattern": "*" + path.Ext(name)})
	old := line(s, func(string) bool { return true })
	if old == "" {
		return out
	}
	now := strings.Replace(s.text, old, "changed "+old, 1)
	for n, keys := range [][2]string{{"old_text", "new_text"}, {"oldText", "newText"}, {"search", "replace"}, {"find", "replace_with"}, {"old_str", "new_str"}, {"OLD_STRING", "NEW_STRING"}, {"old-string", "new-string"}} {
		args := map[string]any{keys[0]: old, keys[1]: "changed " + old}
		args[[]string{"file_path", "path", "filename", "target_file"}[n%4]] = abs
		if n%2 == 0 {
			args["instruction"] = "change it"
		}
		out = append(out, Case{Category: "O arguments", Slip: fmt.Sprintf("Edit %s, %s", keys[0], keys[1]), Files: files, Read: []string{name}, Tool: "Edit", Args: args, Want: map[string]string{name: now}})
	}
	edits := []any{map[string]any{"oldText": old, "newText": "changed " + old}}
	for slip, c := range map[string]Case{
		"edits sent to Edit": {Tool: "Edit", Args: map[string]any{"path": abs, "edits": edits}}, "edits of others": {Tool: "MultiEdit", Args: map[string]any{"path": abs, "edits": edits}},
		"one edit sent to MultiEdit": {Tool: "MultiEdit", Args: map[string]any{"file_path": abs, "old_string": old, "new_string": "changed " + old}},
	} {
		c.Category, c.Slip, c.Files, c.Read, c.Want = "O arguments", slip, files, []string{name}, map[string]string{name: now}
		out = append(out, c)
	}
	for _, key := range []string{"file_text", "contents", "text"} {
		out = append(out, Case{Category: "O arguments", Slip: "Write " + key, Files: files, Tool: "Write", Args: map[string]any{"filename": "{root}/docs/fresh.md", key: "x\n"}, Want: map[string]string{"docs/fresh.md": "x\n"}})
	}
	for slip, args := range map[string]map[string]any{
		"append":         {"file_path": abs, "content": "x", "append": true},
		"insert_line":    {"file_path": abs, "old_string": old, "new_string": "x", "insert_line": 3},
		"two old_string": {"file_path": abs, "old_string": old, "old_text": old + " ", "new_string": "x"},
	} {
		tool := "Edit"
		if slip == "append" {
			tool = "Write"
		}
		out = append(out, Case{Category: "O arguments", Slip: slip, Files: files, Read: []string{name}, Tool: tool, Args: args, Refuse: true})
	}
	return out
}
