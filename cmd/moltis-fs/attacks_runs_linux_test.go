package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// refused wants a call refused.
func (r *attackRun) refused(tool, raw string) {
	r.t.Helper()
	if a := r.by(tool, raw); !a.refused {
		r.t.Errorf("%s %s %.300s is not refused: %.600s", r.row.id, tool, raw, a.raw)
	}
}

// soon wants an answer, whatever it is, before something would be felt to hang.
func (r *attackRun) soon(tool, raw string) attackAnswer {
	r.t.Helper()
	a := r.by(tool, raw)
	if a.took > 20*time.Second {
		r.t.Errorf("%s %s %.300s took %s", r.row.id, tool, raw, a.took)
	}
	return a
}

// holds wants a file of the tree as it is.
func (r *attackRun) holds(name, want string) {
	r.t.Helper()
	if b, err := os.ReadFile(r.w.at(name)); err != nil || string(b) != want {
		r.t.Errorf("%s: %s holds %.60q, %v", r.row.id, name, b, err)
	}
}

// data is a file or directory beside the tree: where our own things are.
func (w *attacked) data(name string) string { return filepath.Join(w.base, "data", name) }

// own runs the program once.
func (r *attackRun) own(input string, args ...string) (status int, out string) {
	cmd := exec.Command(binary(r.t), args...)
	cmd.Stdin = strings.NewReader(input)
	withoutTerminal(cmd)
	b, _ := cmd.CombinedOutput()
	if told(b) {
		r.t.Errorf("%s %v TELLS A SECRET: %s", r.row.id, args, b)
	}
	if bytes.Contains(b, []byte("be reached")) {
		r.t.Errorf("%s %v: %s", r.row.id, args, b)
	}
	return cmd.ProcessState.ExitCode(), string(b)
}

func runNotUTF8(r *attackRun) {
	for _, tool := range r.tools {
		if tool.class == "read" {
			r.refused(tool.String(), tool.at(r.w, r.w.at("bad\ufffd\ufffd")))
		}
	}
}

func runBadText(r *attackRun) {
	for _, bad := range []string{`\ud800`, `\udc00\ud800`, "\xff\xfe", "\xc0\xaf"} {
		for _, tool := range r.tools {
			raw := strings.Replace(tool.at(r.w, r.w.at("plainXX")), "XX", bad, 1)
			r.refused(tool.String(), raw)
		}
	}
}

// runTwoNames changes one name of a file that has two.
func runTwoNames(r *attackRun) {
	for _, tool := range r.tools {
		if tool.class == "change" && tool.name != "NotebookEdit" {
			a := r.s.call(tool, tool.at(r.w, r.w.at("h1")))
			r.note(tool.String(), a.kind, a.took)
			r.holds("h2", "plain\n")
			must(r.t, r.w.plant())
		}
	}
}

func runSparse(r *attackRun) {
	dir := r.w.at("race/sparse")
	for _, tool := range r.tools {
		must(r.t, os.MkdirAll(dir, 0o755))
		f, err := os.Create(dir + "/big")
		if err == nil {
			err = f.Truncate(1 << 40)
		}
		if err != nil {
			r.t.Skip("SKIPPED: no sparse file of 1 TB here: ", err)
		}
		_ = f.Close()
		path := dir + "/big"
		if tool.name == "Glob" || tool.name == "filesystem__list" || tool.name == "filesystem__watch" || strings.Contains(tool.name, "search") {
			path = dir
		}
		r.soon(tool.String(), tool.at(r.w, path))
		_ = os.Remove(dir + "/big")
	}
}

func runManyEntries(r *attackRun) {
	dir := r.w.at("race/many")
	n := 2000
	switch {
	case strings.Contains(r.w.boxed, "ssh"): // each link takes several ways there and back
		n = 200
	case r.w.boxed != "": // five times what they take here
		n = 5000
	case *allAttacks:
		n = 20_000
	}
	must(r.t, os.MkdirAll(dir, 0o755))
	for i := range n {
		must(r.t, os.Symlink("../../../out", fmt.Sprintf("%s/l%d", dir, i)))
	}
	for _, tool := range r.tools {
		if tool.class == "walk" {
			r.soon(tool.String(), tool.at(r.w, dir))
		}
	}
	_ = os.RemoveAll(dir)
}

// runSetuid changes a setuid file: what another wrote must not run as its owner.
func runSetuid(r *attackRun) {
	for _, tool := range r.tools {
		if tool.class != "change" || tool.name == "NotebookEdit" {
			continue
		}
		a := r.s.call(tool, tool.at(r.w, r.w.at("suid")))
		r.note(tool.String(), a.kind, a.took)
		info, err := os.Stat(r.w.at("suid"))
		must(r.t, err)
		if b, _ := os.ReadFile(r.w.at("suid")); string(b) != "plain\n" && info.Mode()&fs.ModeSetuid != 0 {
			r.t.Errorf("%s %s leaves %s", r.row.id, tool, info.Mode())
		}
		must(r.t, r.w.plant())
	}
}

// swapping exchanges two names, without a rest, until it is told to end; it says how often.
func swapping(t *testing.T, a, b string) (end func() int64) {
	t.Helper()
	var n atomic.Int64
	var stop atomic.Bool
	ended := make(chan error, 1)
	go func() {
		for !stop.Load() {
			if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
				ended <- nil // a call took one of them: planted anew by the next round
				return
			}
			n.Add(1)
		}
		ended <- nil
	}()
	return func() int64 { stop.Store(true); <-ended; return n.Load() }
}

// race has every tool called while a directory, or a file, and a link change places.
func (r *attackRun) race(link string, file bool, targets ...string) {
	rounds := 1
	switch {
	case strings.Contains(r.w.boxed, "ssh"):
	case *allAttacks:
		rounds = 50
	}
	for _, tool := range r.tools {
		for range rounds {
			dir := r.w.at("race/x")
			_ = os.RemoveAll(dir)
			for _, err := range []error{os.MkdirAll(dir+"/d", 0o755), os.WriteFile(dir+"/d/there", []byte("plain\n"), 0o644), os.WriteFile(dir+"/f", []byte("plain\n"), 0o644)} {
				must(r.t, err)
			}
			must(r.t, os.Symlink(link, dir+"/l"))
			what := "/d"
			if file {
				what = "/f"
			}
			end := swapping(r.t, dir+what, dir+"/l")
			for _, target := range targets {
				r.by(tool.String(), tool.at(r.w, dir+target))
			}
			end()
		}
	}
	_ = os.RemoveAll(r.w.at("race/x"))
}

func runRace(link string) func(*attackRun) {
	return func(r *attackRun) { r.race("../"+link, false, "/d/there", "/d") }
}

func runLeafRace(r *attackRun) { r.race("../../secret/there", true, "/f") }

func runDataInside(r *attackRun) {
	status, out := r.own("", "call", "--root", r.w.root, "--data-dir", r.w.root+"/data", "--approve", "yes", "Read", `{"file_path":"`+r.w.at("plain")+`"}`)
	if status == 0 {
		r.t.Errorf("%s: it starts: %s", r.row.id, out)
	}
	_ = os.RemoveAll(r.w.root + "/data")
	r.note("call", fmt.Sprint("exit ", status), 0)
}

func runPatterns(r *attackRun) {
	for _, p := range []string{`.{1000}.{1000}x`, `[ab]*a[ab]{200}c`, `(.*a){20}b`, `(a*)*$x`, `(a+)+b`, `[^y]{1000}[^z]{1000}x`} {
		r.soon("tools Grep", fmt.Sprintf(`{"pattern":%q,"path":"R/text","multiline":true}`, p))
		r.soon("capability filesystem__search_content", fmt.Sprintf(`{"pattern":%q,"regex":true,"path":"R/text"}`, p))
		r.soon("capability filesystem__edit", fmt.Sprintf(`{"pattern":%q,"regex":true,"path":"R/text/long.txt","replace":"x","replace_all":true}`, p))
		if !*allAttacks {
			break
		}
	}
}

func runBrackets(r *attackRun) {
	p := strings.Repeat("(", 100_000)
	r.refused("tools Grep", fmt.Sprintf(`{"pattern":%q,"path":"R/text"}`, p+strings.Repeat(")", 100_000)))
	r.refused("capability filesystem__search_content", fmt.Sprintf(`{"pattern":%q,"regex":true,"path":"R/text"}`, p))
	r.refused("capability filesystem__edit", fmt.Sprintf(`{"pattern":%q,"regex":true,"path":"R/text/long.txt","replace":"x"}`, p))
}

func runGlobs(r *attackRun) {
	for _, g := range []string{strings.Repeat("{a,b}", 22), strings.Repeat("**/", 300) + "x", "[!", "{{{{", strings.Repeat("*a", 500)} {
		g = fmt.Sprintf("%q", g)
		r.soon("tools Glob", `{"pattern":`+g+`}`)
		r.soon("tools Grep", `{"pattern":"x","path":"R/text","glob":`+g+`}`)
		r.soon("capability filesystem__search", `{"path":"R/text","pattern":`+g+`}`)
		r.soon("capability filesystem__search_content", `{"path":"R/text","pattern":"x","include_glob":`+g+`}`)
		r.soon("capability filesystem__watch", `{"path":"R/text","pattern":`+g+`}`)
	}
}

// numbersOf are the arguments that are numbers.
var numbersOf = map[string][2]string{
	"tools Read": {`"file_path":"R/text/cr.txt"`, "offset limit column tail"}, "tools Glob": {`"pattern":"*"`, "limit offset"},
	"tools Grep": {`"pattern":"a","path":"R/text"`, "head_limit -C -A offset"}, "tools checkpoints_list": {`"tool":"x"`, "limit"},
	"capability filesystem__read":           {`"path":"R/text/cr.txt"`, "offset limit"},
	"capability filesystem__search":         {`"path":"R/text","pattern":"*"`, "max_results max_hash_bytes"},
	"capability filesystem__search_content": {`"path":"R/text","pattern":"a"`, "max_results context"},
	"capability filesystem__edit":           {`"path":"R/text/cr.txt","pattern":"zzz","replace":"y"`, "expected_replacements"},
	"acp fs/read_text_file":                 {`"path":"R/text/cr.txt"`, "line limit"},
}

func runNumbers(r *attackRun) {
	for tool, n := range numbersOf {
		if !slices.ContainsFunc(r.tools, func(a attackTool) bool { return a.String() == tool }) {
			continue
		}
		for name := range strings.FieldsSeq(n[1]) {
			for _, v := range []string{"9223372036854775807", "-9223372036854775808", "-1", "0", "1e9", "1.5", `"5"`, "1e400", "99999999999999999999", "null", "[]"} {
				r.soon(tool, fmt.Sprintf(`{%s,%q:%s}`, n[0], name, v))
			}
		}
	}
}

func runEdits(r *attackRun) {
	many := 1_001
	if *allAttacks {
		many = 20_000
	}
	edit := `{"old_string":"plain","new_string":"plain plain","replace_all":true},`
	r.refused("tools MultiEdit", `{"file_path":"R/plain","edits":[`+strings.TrimSuffix(strings.Repeat(edit, 40), ",")+`]}`)
	r.soon("tools MultiEdit", `{"file_path":"R/text/cr.txt","edits":[`+strings.TrimSuffix(strings.Repeat(`{"old_string":"zz","new_string":"z"},`, many), ",")+`]}`)
	r.refused("capability filesystem__edit", fmt.Sprintf(`{"path":"R/text/long.txt","pattern":"a","replace":%q,"replace_all":true}`, strings.Repeat("b", 1<<20)))
	r.holds("plain", "plain\n")
}

func runOldText(r *attackRun) {
	r.refused("tools Edit", `{"file_path":"R/plain","old_string":"","new_string":"x"}`)
	r.refused("tools MultiEdit", `{"file_path":"R/plain","edits":[{"old_string":"plain","new_string":"x"},{"old_string":"","new_string":"y"}]}`)
	r.refused("tools Edit", `{"file_path":"R/text/long.txt","old_string":"aa","new_string":"b"}`)
	r.refused("tools Edit", fmt.Sprintf(`{"file_path":"R/text/cr.txt","old_string":%q,"new_string":"b"}`, strings.Repeat("y", 1<<17)))
	r.refused("capability filesystem__edit", `{"path":"R/plain","pattern":"","replace":"x","replace_all":true}`)
	r.soon("capability filesystem__edit", `{"path":"R/plain","pattern":"x*","regex":true,"replace":"y","replace_all":true}`)
}

// runDoubles gives the path twice: as it is looked at, and as it might be taken.
func runDoubles(r *attackRun) {
	for _, tool := range r.tools {
		honest := tool.at(r.w, r.w.at("plain"))
		var fields map[string]any
		must(r.t, json.Unmarshal([]byte(honest), &fields))
		secret := tool.at(r.w, r.w.at("secret/there"))
		var other map[string]any
		must(r.t, json.Unmarshal([]byte(secret), &other))
		for name, v := range fields {
			if fmt.Sprint(v) == fmt.Sprint(other[name]) {
				continue
			}
			first, second := mustJSON(r.t, other[name]), mustJSON(r.t, v)
			for _, key := range []string{name, strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:], strings.Replace(name, "a", "\\u0061", 1)} {
				r.refused(tool.String(), fmt.Sprintf(`{"%s":%s,%s`, key, first, honest[1:]))
				r.refused(tool.String(), fmt.Sprintf(`%s,"%s":%s}`, honest[:len(honest)-1], key, first))
				if key == name {
					r.refused(tool.String(), fmt.Sprintf(`%s,"%s":%s}`, honest[:len(honest)-1], key, second))
				}
				if !*allAttacks {
					break
				}
			}
			r.refused(tool.String(), fmt.Sprintf(`%s,"x":%s%s}`, honest[:len(honest)-1], strings.Repeat("[", 9000), strings.Repeat("]", 9000)))
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	b, err := json.Marshal(v)
	must(t, err)
	return string(b)
}

func runAgain(r *attackRun) {
	for range 60 {
		r.refused("tools Read", `{"file_path":"R/secret/there"}`)
		r.refused("tools Edit", `{"file_path":"R/plain","old_string":"none","new_string":"x"}`)
	}
}

func runHidden(r *attackRun) {
	if a := r.by("tools Read", `{"file_path":"R/text/bidi.txt"}`); !bytes.Contains(a.raw, []byte(`"hidden_chars":4`)) {
		r.t.Errorf("%s: %s", r.row.id, a.raw)
	}
}

// runLog reads the log of all that was called: one record a line, each as it was chained.
func runLog(r *attackRun) {
	n := 0
	for line := range strings.Lines(recordsOf(r.t, r.data())) {
		if n++; !json.Valid([]byte(line)) {
			r.t.Errorf("%s: line %d of the log is %.300s", r.row.id, n, line)
		}
	}
	if n < r.s.n {
		r.t.Errorf("%s: %d calls, and %d lines in the log", r.row.id, r.s.n, n)
	}
	r.note("audit.jsonl", fmt.Sprint(n, " lines"), 0)
}

// calls makes calls, each "SESSION PRINCIPAL TOOL ARGUMENTS", with nobody to approve them.
func (r *attackRun) calls(config string, calls ...string) string {
	var all strings.Builder
	for _, c := range calls {
		f := strings.SplitN(strings.ReplaceAll(c, `"R/`, `"`+r.w.root+"/"), " ", 4)
		_, out := r.own("", "call", "--approve", "never", "--config", config, "--data-dir", r.w.data("e"),
			"--session", f[0], "--principal", f[1], f[2], f[3])
		all.WriteString(out)
	}
	return all.String()
}

func runNobody(r *attackRun) {
	config := r.w.data("ask.toml")
	text, err := os.ReadFile(r.w.data("c.toml"))
	must(r.t, err)
	laid(r.t, config, strings.Replace(string(text), "require_approval = false", "require_approval = true", 1))
	out := r.calls(config, `s local Write {"file_path":"R/plain","content":"EVIL"}`, `s local Edit {"file_path":"R/plain","old_string":"plain","new_string":"EVIL"}`)
	if strings.Count(out, "approval_denied") != 2 {
		r.t.Errorf("%s: %s", r.row.id, out)
	}
	r.holds("plain", "plain\n")
	r.note("call", "approval_denied", 0)
}

func runOneOfSeveral(r *attackRun) {
	r.refused("tools MultiEdit", `{"file_path":"R/plain","edits":[{"old_string":"plain","new_string":"x"},{"old_string":"none","new_string":"y"}]}`)
	r.refused("capability filesystem__edit", `{"path":"R/plain","pattern":"plain","replace":"x","expected_replacements":2}`)
	r.holds("plain", "plain\n")
}

// runPrograms has programs do by a shell what the tools are kept from: nothing outside changes, and no secret is said.
func runPrograms(r *attackRun) {
	if err := runsHere(); err != nil || strings.HasPrefix(r.w.boxed, "ssh") {
		r.note("Bash", "no runs here", 0)
		return
	}
	config := r.w.config(r.t, "run.toml", "[tools.run]\nenabled = true\n")
	for _, c := range []struct{ command, kind string }{
		{"cat R/secret/there R/SECRET/there R/d0there9/.env R/hl R/s-there R/app/*/there R/named/.env", "bash"},
		{"grep -r . R B 2>/dev/null | head -c 100000", "bash"},
		{"find / -xdev -name there -exec cat {} + 2>/dev/null", "bash"},
		{"rm -rf R/secret B/out B/ws-evil", "bash"},
		{"echo EVIL > B/out/there; ln -sfn B/out R/linkdir2; echo EVIL > R/linkdir2/there; rm R/linkdir2", "bash"},
		{"mkdir -p R/secret; echo EVIL > R/secret/there", "path_denied"},
		{"ln -s B/out/there R/secret", "path_denied"},
		{"cp /bin/true R/suid2; chmod 4755 R/suid2", "path_denied"},
		{"mkfifo R/fifo2", "path_denied"},
		{"echo x > R/.moltis-0123456789abcdef01234567.tmp", "path_denied"},
	} {
		command := strings.NewReplacer("R/", r.w.root+"/", " R ", " "+r.w.root+" ", "B/", r.w.base+"/", " B ", " "+r.w.base+" ").Replace(c.command)
		out := r.calls(config, "s local Bash "+mustJSON(r.t, map[string]any{"command": command}))
		if !strings.HasPrefix(out, `{"kind":"`+c.kind+`"`) || strings.Contains(out, canary) {
			r.t.Errorf("%s: %s: %.2000s", r.row.id, c.command, out)
		}
		r.held(c.command)
		r.note("Bash", c.kind, 0)
	}
}

func runUnread(r *attackRun) {
	config := r.w.config(r.t, "read.toml", "track_reads = true\nmust_read_before_write = true\n")
	out := r.calls(config, `a local Read {"file_path":"R/plain"}`, `b local Write {"file_path":"R/plain","content":"EVIL"}`, `a p Write {"file_path":"R/plain","content":"EVIL"}`)
	if strings.Count(out, "must_read_before_write") != 2 {
		r.t.Errorf("%s: %s", r.row.id, out)
	}
	r.holds("plain", "plain\n")
	r.note("call", "must_read_before_write", 0)
}

// pathsAsIDs are ids of checkpoints that lead to a secret, if they are joined to a directory of the tree.
var pathsAsIDs = []string{"../../out/there", "../secret/there", "../../../../../../../../../../etc/passwd", "a/b", "ck-../x", "trash:../../../out/there", "\x00", ""}

func runIDs(r *attackRun) {
	for _, id := range append(pathsAsIDs, r.w.base+"/out/there", r.w.at("secret/there")) {
		q := mustJSON(r.t, id)
		r.refused("tools checkpoint_diff", `{"id":`+q+`}`)
		r.refused("tools checkpoint_restore", `{"id":`+q+`}`)
		r.refused("capability filesystem__restore", `{"path":`+q+`}`)
	}
}

// runOutput has nothing to do: a line of standard output that is no message has failed the test already.
func runOutput(r *attackRun) { r.note("mcp, acp", fmt.Sprint(r.s.n, " messages"), 0) }

// badRules are no rules: each lacks something.
var badRules = []string{"R/secret/[", "secret/**", "~/secret/**", "R/secret/../secret/**", "R/secret/{a", "", "R/secret/[]"}

func runBadRules(r *attackRun) {
	for _, list := range []string{"deny_paths", "allow_paths", "unprotected"} {
		for _, rule := range badRules {
			config := r.w.laid(r.t, "bad.toml", fmt.Sprintf("[tools.fs]\n%s = [%q]\n", list, r.w.written(rule)))
			if status, out := r.own("", "call", "--config", config, "--data-dir", r.w.data("f"), "--root", r.w.root, "Read", `{"file_path":"`+r.w.at("secret/there")+`"}`); status != exitMisuse {
				r.t.Errorf("%s: with %s = %q it says %d %s", r.row.id, list, rule, status, out)
			}
			if !*allAttacks {
				break
			}
		}
	}
	r.note("call", "exit 2", 0)
}

func runEmptyAllow(r *attackRun) {
	config := r.w.laid(r.t, "empty.toml", "[tools.fs]\nallow_paths = []\n")
	for _, p := range []string{"../out/there", "l-there"} {
		if status, out := r.own("", "call", "--config", config, "--root", r.w.root, "--data-dir", r.w.data("f"), "Read", `{"file_path":"`+r.w.at(p)+`"}`); status != exitRefused {
			r.t.Errorf("%s: %s: %d %s", r.row.id, p, status, out)
		}
	}
	r.note("call --root", "path_denied", 0)
}
