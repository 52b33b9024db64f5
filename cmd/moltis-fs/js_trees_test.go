package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scriptTrees are the trees of the scripts: a program, a larger one, notes and data; the same every time.
var scriptTrees = map[string]func(r *rand.Rand, add func(name, text string)){
	"project": func(r *rand.Rand, add func(string, string)) { addProject(r, 40, add) },
	"large":   func(r *rand.Rand, add func(string, string)) { addProject(r, 300, add) },
	"notes":   addNotes, "data": addData,
}

// makeTree makes a tree in a new directory, which it gives.
func makeTree(t testing.TB, name string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	scriptTrees[name](rand.New(rand.NewPCG(7, uint64(len(name)))), func(file, text string) {
		p := filepath.Join(root, file)
		must(t, os.MkdirAll(filepath.Dir(p), 0o700))
		must(t, os.WriteFile(p, []byte(text), 0o600))
	})
	return root
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func addProject(r *rand.Rand, modules int, add func(string, string)) {
	dirs := []string{"core", "ui", "api"}
	add("src/core/util.ts", "export const clamp = (x: number) => x;\n")
	for i := range modules {
		var b strings.Builder
		switch i % 10 {
		case 3:
			b.WriteString("#!/usr/bin/env node\n")
		case 5:
			b.WriteString("// SPDX-License-Identifier: MIT\n")
		}
		for _, line := range []string{`import { clamp } from "./util";`, `import { text } from '../lib/text';`, `import React from "react";`,
			`const lazy = () => import("./util");`, `const old = require('../lib/text');`} {
			if r.IntN(3) > 0 {
				b.WriteString(line + "\n")
			}
		}
		if modules <= 40 && r.IntN(2) == 0 {
			fmt.Fprintf(&b, "import { run%d } from \"../%s/mod%03d\";\n", i, pick(r, dirs...), r.IntN(modules))
		}
		fmt.Fprintf(&b, "\nexport const value%d = %d;\nexport function run%d(total: number, x1 = total) {\n\tconsole.log(\"run\", total);\n"+
			"\t\tif (total > x1) { return total; }   \n  console.warn('x');\n\t// %s(%s): make total faster\n\treturn x1;\n}\nexport class Config%d {}\n",
			i, i, i, pick(r, "TODO", "FIXME", "XXX", "NOTE"), pick(r, "ada", "bob"), i)
		if r.IntN(4) == 0 {
			b.WriteString("const Config = run" + fmt.Sprint(i) + ";  \t\n<<<<<<< HEAD\nlet a = 1;\n=======\nlet a = 2;\nlet b = 3;\n>>>>>>> topic\n")
		}
		text := b.String()
		if i%7 == 6 {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		name := fmt.Sprintf("src/%s/mod%03d", dirs[i%3], i)
		add(name+".ts", text)
		if i%4 == 0 {
			add(name+".test.ts", fmt.Sprintf("import { run%d } from \"./mod%03d\";\ntest(\"run\", () => run%d(1));\n", i, i, i))
		}
	}
	add("src/ui/LoginForm.tsx", "import React from 'react';\nexport const Login = () => <b/>;\n")
	add("src/ui/user_Menu Bar.js", "module.exports = require(\"react\");\n")
	add("dist/bundle.js", strings.Repeat("x", 5000))
	add("dist/maps/bundle.js.map", "{}")
	add("coverage/index.html", "<html>")
	add("package.json", "{\n  \"scripts\": {\"test\": \"vitest\", \"build\": \"tsc\"},\n  \"name\": \"demo\",\n  \"version\": \"1.9.12\",\n"+
		"  \"dependencies\": {\"react\": \"^18.0.0\", \"@acme/text\": \"1.0.0\", \"10\": \"x\"},\n  \"files\": [\"dist\", \"a\"],\n  \"type\": \"module\"\n}\n")
	add("README.md", "# Demo\n\n<!-- toc -->\nold\n<!-- /toc -->\n\n## Start here\n\n```sh\n## no heading\n```\n\n### In détail: a & b\n\n## Ende ##\n")
	add("CHANGELOG.md", "# Changes\n\n## 1.9.12\n")
}

func addNotes(r *rand.Rand, add func(string, string)) {
	words := strings.Fields("the a file Über naïve don't well-known 日本語 code agent tree state-of-the-art 42 x² année İstanbul wrote reads and of to in")
	for i := range 40 {
		var b strings.Builder
		if i%5 != 4 {
			fmt.Fprintf(&b, "---\ntitle: \"Post %d: what's new\"\ndate: 2024-%02d-%02d\ntags: [%s, %s]\ndraft: %t\nweight: %d.5\n---\n", i, i%12+1, i%28+1,
				pick(r, "go", "js", "c++"), pick(r, "fs", "ünicode", "go-lang"), i%2 == 0, i)
		}
		fmt.Fprintf(&b, "# Post %d\n\n", i)
		for range r.IntN(60) + 5 {
			b.WriteString(pick(r, words...) + pick(r, " ", " ", ", ", "\n"))
		}
		fmt.Fprintf(&b, "\n\n## Links  \n\n[one](../images/a.png) [gone](nothing-%d.md) [web](https://example.com) [sp](my%%20file.md)\n\n- [ ] todo %d\n- [x] done\n  * [X] also\n\n", i, i)
		if i%3 == 0 {
			b.WriteString("```" + pick(r, "js", "python", "sh", "") + "\nlet a = 1;\n\n#  not a heading\n```\n\nTODO: write more\n")
		}
		name := fmt.Sprintf("posts/2024-%02d-%02d-post %d.md", i%12+1, i%28+1, i)
		if i%9 == 8 {
			name = fmt.Sprintf("posts/Undated Élan %d.md", i)
		}
		add(name, b.String())
	}
	add("posts/my file.md", "plain\n")
	add("posts/日本 メモ.md", "# メモ\n\n猫と犬\n")
	add("posts/emoji 🎉.md", "🎉🎉 done\r\nmixed\rends\n")
	add("images/a.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
	add("images/copy of a.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
	add("empty.md", "")
	add("README.md", "# Notes\n<!-- toc --><!-- /toc -->\n## Über uns\n### 日本\n## a_b-c (d)\n")
	add("CHANGES.md", "# Changes\n\n## 1.2.0\n- feat(api): add js\n- fix: a leak\n- words only\n\n## 1.0.0\n- feat!: first\n\n## 0.9.1\n- chore: x\n")
}

func addData(r *rand.Rand, add func(string, string)) {
	var people, jsonl, log, orders strings.Builder
	people.WriteString("name,city,age\n")
	orders.WriteString("[\n    ")
	for i := range 200 {
		fmt.Fprintf(&people, "P%d,%s,%d\n", i, pick(r, "Ulm", "Łódź", "São Paulo", ""), r.IntN(80))
		if i > 0 {
			orders.WriteString(",\n    ")
		}
		fmt.Fprintf(&orders, `{"id": %d, "price": %d.%02d, "note": %q%s}`, i, r.IntN(1000), r.IntN(100), pick(r, "a,b", "say \"hi\"", "two\nlines", "ok"), pick(r, "", `, "tags": ["x", {"id": 1}]`, `, "__proto__": 1`))
	}
	for i := range 1500 {
		fmt.Fprintf(&jsonl, `{"level":"%s","msg":"request %d took %d ms"}`+"\n", pick(r, "error", "info", "warn"), i, r.IntN(500))
		if i%400 == 399 {
			jsonl.WriteString("{broken\n\n")
		}
		fmt.Fprintf(&log, "2024-03-%02dT%02d:%02d:%02d.123Z %s path=/x/%d\n", i/700+1, r.IntN(24), r.IntN(60), r.IntN(60), pick(r, "INFO", "WARN", "ERROR"), i)
	}
	add("people.csv", people.String())
	add("quoted.csv", "id,text,\"a \"\"b\"\"\"\n1,\"x, y\nz\",\n2,\"é\",007\n,,\n")
	add("crlf.csv", "a,b\r\n1,2\r\n3,\"4\r\n5\"")
	add("app.jsonl", jsonl.String())
	add("server.log", log.String())
	add("orders.json", orders.String()+"\n]\n")
	add("config/base.json", `{"name": " demo ", "list": [1, 2], "db": {"host": "a", "port": 1}, "off": null}`)
	add("config/local.json", `{"list": [3], "db": {"port": 2, "tls": {"on": true}}, "off": {"x": 1}}`)
	add("i18n/de.json", `{"hello": "Hallo", "menu": {"open": "Öffnen"}}`)
	add("i18n/en.json", `{"hello": "Hello", "menu": {"open": "Open", "close": "Close"}, "bye": "Bye"}`)
	blob := make([]byte, 3000)
	for i := range blob {
		blob[i] = byte(r.IntN(256))
	}
	add("blob.bin", string(blob))
	add("latin1.txt", "caf\xe9 na\xefve\n")
	add("bom.txt", "\ufeffwith a mark\n")
	add("a.zip", "PK\x03\x04\x00\x00")
	add("copies/one.txt", "same")
	add("copies/two.txt", "same")
	add("copies/deep/three.txt", "same")
	add("empty.txt", "")
	add("settings.ini", "top = 1\n[server]\nhost = example.com ; the host\nport=80\r\n\n[paths]\nroot=/a=b\n# all\n")
	add("urls.txt", "https://Example.com:443/a/../b?utm_source=x&id=1#top\nhttp://user@h:8080/?id=a%20b+c\nnot a url\nhttps://münchen.example/ä?utm_source=é\n")
	add("log/.keep", string(bytes.Repeat([]byte{'x'}, 3)))
}
