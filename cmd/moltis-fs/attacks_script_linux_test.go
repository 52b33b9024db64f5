package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
)

// attackScript tries every method of a script's fs on each path, and says how each ended.
const attackScript = `
const say = (at, by, how) => console.log(JSON.stringify([at, by, how]));
for (const [i, [want, path]] of TRIES.entries()) {
  const reads = { readFile: p => fs.readFile(p), readdir: p => fs.readdir(p), stat: p => fs.stat(p),
    exists: async p => { if (!await fs.exists(p)) throw { message: "absent" } }, "copyFile from": p => fs.copyFile(p, "R/scratch/j") };
  const changes = { writeFile: p => fs.writeFile(p, "EVIL\n"), appendFile: p => fs.appendFile(p, "EVIL\n"),
    "copyFile to": p => fs.copyFile("R/sub/plain", p) };
  const leaves = { mkdir: p => fs.mkdir(p + "/x", { recursive: true }), "rename from": p => fs.rename(p, "R/scratch/k"), unlink: p => fs.unlink(p), rm: p => fs.rm(p, { recursive: true }) };
  const all = want === "shut" ? { ...changes, ...leaves } : want === "leaf" ? { ...reads, ...changes } : want === "no" ? { ...reads, ...changes, ...leaves } : reads;
  for (const [by, f] of Object.entries(all)) {
    try { const got = await f(path); say(i, by, "ok " + JSON.stringify(got ?? null).slice(0, 300)) }
    catch (e) { say(i, by, (e.code ?? "refused") + " " + e.message.replaceAll(path, "PATH").slice(0, 200)) }
  }
}`

// runScript is the paths of a family in one script, by every method of fs.
func (r *attackRun) runScript(family string) {
	var all []attackTry
	var rows []*attackRow
	for i := range attackRows {
		row := &attackRows[i]
		for _, try := range row.tries {
			path := r.w.written(try.path)
			if row.id[:1] != family || !strings.HasPrefix(path, "/") && !strings.Contains(path, "..") { // below the root, whatever it is
				continue
			}
			all, rows = append(all, attackTry{try.want, path}), append(rows, row)
			if twin := strings.ReplaceAll(path, "there", "absnt"); twin != path && try.want == "no" {
				all, rows = append(all, attackTry{try.want, twin}), append(rows, row)
			}
		}
	}
	if len(all) == 0 {
		return
	}
	var pairs [][2]string
	for _, try := range all {
		pairs = append(pairs, [2]string{try.want, try.path})
	}
	script := strings.NewReplacer("TRIES", mustJSON(r.t, pairs), `"R/`, `"`+r.w.root+"/").Replace(attackScript)
	status, out := r.own(script, "js", "run", "--timeout", "300", "--approve", "yes", "--config", r.w.data("c.toml"), "--data-dir", r.w.data("d"), "-")
	if status != 0 {
		r.t.Fatalf("%s: the script ends with %d: %s", family, status, out[max(0, len(out)-1000):])
	}
	said := map[string]string{}
	n := 0
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		var at int
		var by, how string
		if json.Unmarshal(lines.Bytes(), &[]any{&at, &by, &how}) != nil {
			continue
		}
		n++
		try := all[at]
		r.row = rows[at]
		kind, _, _ := strings.Cut(how, " ")
		r.note("jsfs "+by, kind, 0)
		if ofLink := try.want == "leaf" && by == "stat" || by == "exists" && try.want == "leaf"; kind == "ok" && try.want != "ok" && try.want != "" && !ofLink {
			r.t.Errorf("%s jsfs %s of %q: %.300s", r.row.id, by, try.path, how)
		}
		key := by + string(blur([]byte(try.path)))
		if was, twice := said[key]; twice && was != string(blur([]byte(how))) {
			r.t.Errorf("%s jsfs %s tells of %q\n%s\nand\n%s", r.row.id, by, try.path, was, how)
		}
		said[key] = string(blur([]byte(how)))
	}
	if n < 3*len(all) {
		r.t.Errorf("%s: %d lines of the script for %d paths: %.2000s", family, n, len(all), out)
	}
	r.held("the script of " + family)
	must(r.t, r.w.plant())
	must(r.t, r.w.sweep())
}

const regoHead = "package mcp.filesystem\nimport rego.v1\n"

// policies want a call refused under each of these chains, or the program to say that it can't be used.
func (r *attackRun) policies(mode string, urls ...string) {
	for _, url := range urls {
		config := r.w.laid(r.t, "rego.toml", fmt.Sprintf("[tools.fs]\npolicies_mode = %q\npolicies = [%q]\n", mode, url))
		for _, method := range [][2]string{{"Read", "{\"file_path\":%q}"}, {"filesystem.write", `{"path":%q,"content":"EVIL"}`}} {
			status, out := r.own("", "call", "--dialect", "tools,capability", "--approve", "yes", "--config", config, "--root", r.w.root, "--data-dir", r.w.data("f"),
				method[0], fmt.Sprintf(method[1], r.w.at("plain")))
			if status != exitRefused && status != exitMisuse {
				r.t.Errorf("%s: %s under %s: %d %s", r.row.id, method[0], url, status, out)
			}
			r.note("call "+method[0], fmt.Sprint("exit ", status), 0)
		}
		r.holds("plain", "plain\n")
	}
}

func (r *attackRun) rego(text string) string {
	return "file://" + laid(r.t, filepath.Join(r.w.base, "data", fmt.Sprintf("p%d.rego", len(text))), regoHead+text)
}

func runRegoFails(r *attackRun) {
	r.policies("all", r.rego("allow := 3"), r.rego("allow if input.path == 1"), r.rego("allow := true if true\nallow := false if true"), r.rego("allow := {"))
}

func runRegoReaches(r *attackRun) {
	r.policies("all", r.rego(`allow if http.send({"method":"get","url":"http://127.0.0.1/"}).status_code == 200`), r.rego("allow if opa.runtime().env.HOME"))
	if *allAttacks {
		r.policies("all", r.rego("allow if count(numbers.range(1, 1000000000)) > 1"))
	}
}

func runRegoServer(r *attackRun) {
	answers := []string{`{}`, `{"result":null}`, `{"result":"true"}`, `{"result":1}`, "", "moved", "failed"}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch _, at, _ := strings.Cut(q.URL.Path, "/v1/data/a"); {
		case strings.HasSuffix(q.URL.Path, "yes"):
			_, _ = io.WriteString(w, `{"result":true}`)
		case at == "5":
			http.Redirect(w, q, "/v1/data/yes", http.StatusTemporaryRedirect)
		case at == "6":
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"result":true}`)
		default:
			_, _ = io.WriteString(w, answers[at[0]-'0'])
		}
	}))
	defer s.Close()
	for i := range answers {
		r.policies("any", fmt.Sprintf("%s a%d", s.URL, i))
	}
}

func runRegoElsewhere(r *attackRun) {
	r.policies("all", "gopher://127.0.0.1/", "file:///proc/self/environ", "file://"+r.w.at("absnt"), "http://127.0.0.1:1")
}

func runRegoMode(r *attackRun) {
	r.policies("some", r.rego("allow := true"))
	r.policies("any", r.rego("allow := false"))
}
