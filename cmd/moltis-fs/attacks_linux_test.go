package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/testbox"
)

var allAttacks = flag.Bool("attacks", false, "every spelling of every row, longer races, and the table")

// rowsOf is how many rows each family of the catalogue has.
var rowsOf = []struct {
	family string
	rows   int
}{{"A", 25}, {"B", 22}, {"C", 13}, {"D", 21}, {"E", 15}, {"F", 20}, {"G", 11}, {"H", 18}, {"I", 8}, {"J", 18}}

// No row is missing, and each is driven here, or at length by a test that there is, or can't be.
func TestAttackRows(t *testing.T) {
	t.Parallel()
	var want, got []string
	for _, f := range rowsOf {
		for n := range f.rows {
			want = append(want, fmt.Sprintf("%s%02d", f.family, n+1))
		}
	}
	tests := testNames(t)
	for _, row := range attackRows {
		got = append(got, row.id)
		driven := len(row.tries) > 0 || row.run != nil
		if driven == (row.not != "") && row.test == "" || row.what == "" {
			t.Errorf("%s is neither driven nor left out with a reason", row.id)
		}
		if row.test != "" && !tests[row.test] {
			t.Errorf("%s names %s, which is not there", row.id, row.test)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rows are %v", got)
	}
}

func testNames(t *testing.T) map[string]bool {
	out := map[string]bool{}
	name := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range name.FindAllSubmatch(text, -1) {
			out[string(m[1])] = true
		}
		return err
	})
	must(t, err)
	return out
}

// An attackRun is the catalogue against the program.
type attackRun struct {
	t      *testing.T
	w      *attacked
	s      *attackedServers
	tools  []attackTool
	row    *attackRow
	lines  []attackLine
	before map[string]string
	door   *server // once it runs
}

// An attackLine is one of the table: how the calls of a row by a tool ended, and the slowest.
type attackLine struct {
	row, by, outcome string
	took             time.Duration
}

// Every row by every tool of every dialect: nothing outside changes, no secret is told, and what is
// denied answers the same whether it is there or not. Each family is also run against a broken engine, which must be caught.
// Through a worker the outcomes are those of this machine.
func TestAttackTable(t *testing.T) {
	t.Parallel()
	r := newAttackRun(t, "")
	for _, f := range rowsOf {
		r.family(f.family)
		row := controls[f.family](t)
		if row == "" {
			t.Errorf("the control of %s is not caught: the rows prove nothing", f.family)
		}
		r.lines = append(r.lines, attackLine{row, "control " + f.family, "FELL", 0})
	}
	if !*allAttacks {
		return
	}
	for _, how := range []string{"ssh", "bwrap"} {
		t.Run(how, func(t *testing.T) {
			in, began := newAttackRun(t, how), time.Now()
			for _, f := range rowsOf {
				in.family(f.family)
			}
			in.same(r.lines)
			r.lines = append(r.lines, attackLine{"all", how, fmt.Sprintf("%d lines, %d calls", len(in.lines), in.s.n), time.Since(began)})
		})
	}
	r.print()
}

// boxedRows are those that go through a worker each time, one or two of each family that has paths.
var boxedRows = []string{"A03", "A05", "A08", "B01", "B03", "B06", "B13", "C01", "D03", "E03", "E07", "G10", "H10"}

func TestAttacksInSandbox(t *testing.T) {
	t.Parallel()
	r := newAttackRun(t, "bwrap")
	r.tools = slices.DeleteFunc(r.tools, func(a attackTool) bool { return a.dialect == "jettson" && a.class != "read" })
	for i := range attackRows {
		if r.row = &attackRows[i]; slices.Contains(boxedRows, r.row.id) {
			r.attack()
		}
	}
	r.held("all rows")
	if r.s.n < 300 {
		t.Errorf("only %d calls", r.s.n)
	}
}

// newAttackRun starts the programs under attack over a tree of their own, in a sandbox if how is one.
func newAttackRun(t *testing.T, how string) *attackRun {
	t.Helper()
	r := &attackRun{t: t, w: newAttacked(t), tools: attackTools}
	if how != "" {
		var words []string
		for _, word := range append(testbox.Command(t, how, r.w.root), "env", "PATH="+filepath.Dir(binary(t))) {
			words = append(words, strconv.Quote(word))
		}
		r.w.boxed = fmt.Sprintf("[tools.sandbox]\nmode = \"all\"\nroot = %q\ncommand = [%s]\n", r.w.root, strings.Join(words, ", "))
		r.tools = slices.DeleteFunc(slices.Clone(attackTools), func(a attackTool) bool { return a.dialect == "acp" })
	}
	r.s = r.w.serve(t)
	r.before = r.w.closed(t)
	return r
}

// family makes the calls of a family's rows, and those of its script.
func (r *attackRun) family(family string) {
	for i := range attackRows {
		if r.row = &attackRows[i]; r.row.id[:1] == family {
			r.attack()
			r.held("the row")
			must(r.t, r.w.sweep())
		}
	}
	r.runScript(family)
}

// sameNot are rows that count, and one that changes files below the parent of a root that is a mount
// in bubblewrap. Family D is left out, too, as races end as they do.
var sameNot = []string{"E11", "G11", "H15"}

// same wants the outcomes of another run.
func (r *attackRun) same(as []attackLine) {
	r.t.Helper()
	want := map[[2]string]string{}
	for _, l := range as {
		want[[2]string{l.row, l.by}] = l.outcome
	}
	for _, l := range r.lines {
		if was, ok := want[[2]string{l.row, l.by}]; l.row[:1] != "D" && !slices.Contains(sameNot, l.row) && (!ok || was != l.outcome) {
			r.t.Errorf("%s %s ends in %s, and on this machine in %q", l.row, l.by, l.outcome, was)
		}
	}
}

// data is the data directory of the programs: below theirs that of the sandbox.
func (r *attackRun) data() string {
	dir := r.w.data("d")
	if r.w.boxed == "" {
		return dir
	}
	sandboxes, err := filepath.Glob(filepath.Join(dir, "sandboxes", "*"))
	if err != nil || len(sandboxes) != 1 {
		r.t.Fatalf("the sandboxes are %q, %v", sandboxes, err)
	}
	return sandboxes[0]
}

// attack makes the calls of a row.
func (r *attackRun) attack() {
	for i, try := range r.row.tries {
		if *allAttacks || i == 0 {
			for _, tool := range r.tools {
				r.try(tool, try)
			}
		}
	}
	if r.row.run != nil {
		r.row.run(r)
	}
	if why := r.row.not; why != "" {
		r.lines = append(r.lines, attackLine{r.row.id, "n/a: " + why, "", 0})
	}
	if r.row.test != "" {
		r.lines = append(r.lines, attackLine{r.row.id, "at length: " + r.row.test, "", 0})
	}
}

// written is a path of a try in a tree.
func (w *attacked) written(path string) string {
	switch {
	case strings.HasPrefix(path, "R"):
		path = w.root + path[1:]
	case strings.HasPrefix(path, "B"):
		path = w.base + path[1:]
	}
	return strings.NewReplacer("/R/", "/"+w.root+"/", "//B/", "//"+w.base+"/", "rootB/", "root"+w.base+"/", "magicB/", "magic"+w.base+"/", "\x00R/", "\x00"+w.root+"/").Replace(path)
}

func (r *attackRun) try(tool attackTool, try attackTry) {
	r.t.Helper()
	path := r.w.written(try.path)
	a := r.call(tool, tool.at(r.w, path))
	if tool.dialect == "jettson" && !strings.Contains(path, "..") && !strings.HasPrefix(path, "/") {
		return // in its workspace, whatever it is
	}
	closed := try.want == "no" || try.want == "leaf" && tool.class != "leaf" && tool.class != "stat" || try.want == "shut" && (tool.class == "change" || tool.class == "leaf")
	switch {
	case tool.class == "look": // has nothing to say of most paths
	case closed && !a.refused:
		r.t.Errorf("%s %s of %q is not refused: %.600s", r.row.id, tool, path, a.raw)
	case try.want == "ok" && tool.class == "read" && a.refused && tool.dialect != "jettson":
		r.t.Errorf("%s %s of %q is refused: %.600s", r.row.id, tool, path, a.raw)
	}
	if twin := strings.ReplaceAll(path, "there", "absnt"); closed && try.want != "shut" && twin != path && tool.name != "filesystem__restore" { // which cuts what is no id
		b := r.call(tool, tool.at(r.w, twin))
		if !bytes.Equal(blur(a.raw), blur(b.raw)) {
			r.t.Errorf("%s %s tells of %q\n%.600s\nand of %q\n%.600s", r.row.id, tool, path, a.raw, twin, b.raw)
		}
	}
}

var whereOf = regexp.MustCompile(`"where":"(bwrap|ssh)-`)

// blur takes away what two paths differ in.
func blur(raw []byte) []byte { return bytes.ReplaceAll(raw, []byte("absnt"), []byte("there")) }

// call makes one call, looks for secrets in its answer, and puts right what it changed.
func (r *attackRun) call(tool attackTool, raw string) attackAnswer {
	r.t.Helper()
	a := r.s.call(tool, raw)
	if told(a.raw) {
		r.t.Errorf("%s %s %.300s TELLS A SECRET: %s", r.row.id, tool, raw, around(a.raw))
	}
	if r.w.boxed != "" && !whereOf.Match(a.raw) && !strings.HasPrefix(a.kind, "error -") || a.kind == "unavailable" {
		r.t.Errorf("%s %s %.300s ran elsewhere: %.600s", r.row.id, tool, raw, a.raw)
	}
	if strings.HasPrefix(a.kind, "error -32603") {
		r.t.Errorf("%s %s %.300s: the host is broken: %.600s", r.row.id, tool, raw, a.raw)
	}
	if !a.refused && (tool.class == "change" || tool.class == "leaf" || tool.class == "look" || tool.name == "filesystem__copy") {
		r.held(tool.String() + " " + raw[:min(len(raw), 300)])
		must(r.t, r.w.plant())
	}
	r.note(tool.String(), a.kind, a.took)
	return a
}

// held wants all that is closed as it was.
func (r *attackRun) held(after string) {
	r.t.Helper()
	for _, c := range changed(r.before, r.w.closed(r.t)) {
		r.t.Errorf("%s after %s: %s", r.row.id, after, c)
	}
}

// by calls a tool by its name in the table.
func (r *attackRun) by(tool, raw string) attackAnswer {
	r.t.Helper()
	i := slices.IndexFunc(attackTools, func(a attackTool) bool { return a.String() == tool })
	if i < 0 {
		r.t.Fatal("there is no ", tool)
	}
	return r.call(attackTools[i], strings.NewReplacer(`"R/`, `"`+r.w.root+"/", `"B/`, `"`+r.w.base+"/").Replace(raw))
}

// note adds an outcome to the table.
func (r *attackRun) note(by, outcome string, took time.Duration) {
	for i := range r.lines {
		if l := &r.lines[len(r.lines)-1-i]; l.row != r.row.id {
			break
		} else if l.by == by {
			l.add(outcome, took)
			return
		}
	}
	r.lines = append(r.lines, attackLine{r.row.id, by, outcome, took})
}

func (l *attackLine) add(outcome string, took time.Duration) {
	if all := strings.Split(l.outcome, ", "); l.outcome == "" {
		l.outcome = outcome
	} else if !slices.Contains(all, outcome) {
		l.outcome += ", " + outcome
	}
	l.took = max(l.took, took)
}

func (r *attackRun) print() {
	fmt.Println("| row | by | outcome | slowest |\n|---|---|---|---:|")
	for _, l := range r.lines {
		took := ""
		if l.took > 0 {
			took = l.took.Round(10 * time.Microsecond).String()
		}
		fmt.Printf("| %s | %s | %s | %s |\n", l.row, l.by, l.outcome, took)
	}
}

// The controls are caught by the same signs that the program is held to.
var controls = map[string]func(t *testing.T) string{
	"A": func(t *testing.T) string { return caughtAt(t, "A", lexical) },
	"B": func(t *testing.T) string { return caughtAt(t, "B", canonical) },
	"C": func(t *testing.T) string { return caughtAt(t, "C", canonical) },
	"D": controlSwap,
	"E": func(t *testing.T) string { return caughtAt(t, "E", contained) },
	"F": controlDoubles,
	"G": func(t *testing.T) string { return caughtAt(t, "G", talkative) },
	"H": controlIDs,
	"I": controlDoor,
	"J": controlRules,
}

var errHangs = errors.New("it hangs")

// caughtAt is the first row of a family at which an engine tells a secret, tells what is there, or hangs.
func caughtAt(t *testing.T, family string, read func(w *attacked, path string) ([]byte, error)) string {
	w := newAttacked(t)
	said := func(path string) []byte {
		b, err := read(w, path)
		if errors.Is(err, errHangs) {
			return []byte(canary)
		}
		if err != nil {
			return []byte(strings.ReplaceAll(err.Error(), path, "PATH"))
		}
		return b
	}
	for _, row := range attackRows {
		if row.id[:1] != family {
			continue
		}
		for _, try := range row.tries {
			if try.want != "no" && try.want != "leaf" {
				continue
			}
			path := w.written(try.path)
			a := said(path)
			if told(a) {
				return row.id
			}
			if twin := strings.ReplaceAll(path, "there", "absnt"); twin != path && !bytes.Equal(a, said(twin)) {
				return row.id
			}
		}
	}
	return ""
}

// around is the text before and behind a secret.
func around(raw []byte) []byte {
	i := max(0, bytes.Index(raw, []byte(canary)))
	return raw[max(0, i-300):min(len(raw), i+100)]
}
