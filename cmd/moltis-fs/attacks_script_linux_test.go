package main

import (
	"bufio"
	"encoding/json"
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
