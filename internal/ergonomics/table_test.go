package ergonomics

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var (
	whole  = flag.Bool("whole", false, "play the whole corpus, not a sample, and print the table")
	others = flag.Int("others", 1, "so many edits of each slip that are in no figure")
	show   = flag.String("show", "", "print the cases that end so, as \"misled\"; with a / the slip too")
)

// corpus is every case, so many of each slip.
func corpus(t testing.TB, sources []source, each int) (out []Case) {
	out = append(out, slipped(t, sources, each)...)
	out = append(out, looked(t, sources, each)...)
	for _, of := range []func([]source, int) []Case{stateful, encoded, inSeveral, written, notebooks, broken, foreignScripts, minified, elidedIn, columns, siblings} {
		out = append(out, of(sources, each)...)
	}
	return out
}

// TestErgonomics holds what a sample of the corpus gives. The figures may only get better.
func TestErgonomics(t *testing.T) {
	if *whole {
		t.Skip("SKIPPED: the whole corpus runs")
	}
	cases := corpus(t, allSources(t), 1)
	count, sizes := map[string]int{}, map[string][]int{}
	for i, r := range run(t, cases, openInside(t, "tolerant")) {
		count[r.Outcome]++
		told(t, cases[i], r, i)
		r.measured(sizes)
	}
	share := func(names ...string) float64 {
		sum := 0
		for _, x := range names {
			sum += count[x]
		}
		return 100 * float64(sum) / float64(len(cases))
	}
	t.Logf("%d cases: %v", len(cases), count)
	if got := share(First, Rightly, FollowUp); got < minSettled {
		t.Errorf("%.0f %% are settled without thought, and were %d", got, minSettled)
	}
	if got := share(DeadEnd); got > maxDeadEnds {
		t.Errorf("%.1f %% are dead ends, and were %d", got, maxDeadEnds)
	}
	if count[Wrong]+count[Misled] > maxHarm || count[Collateral] > maxCollateral {
		t.Errorf("%d silently wrong, %d misled, %d with collateral", count[Wrong], count[Misled], count[Collateral])
	}
	for what, most := range maxMedian {
		s := sizes[what]
		if slices.Sort(s); s[len(s)/2] > most || s[len(s)-1] > 4096 {
			t.Errorf("%s has %d bytes at the median, %d at most; %d and 4096 are allowed", what, s[len(s)/2], s[len(s)-1], most)
		}
	}
}

// Bounds of the outcome of the sample, in hundredths and in cases.
const (
	minSettled    = 79
	maxDeadEnds   = 2
	maxHarm       = 0
	maxCollateral = 0
)

// maxMedian bounds answers, in bytes.
var maxMedian = map[string]int{"edit payload": 400, "edit text": 200, "no_match payload": 500}

// measured notes how long the first answer is.
func (r *Report) measured(sizes map[string][]int) {
	name := r.First.Kind
	sizes[name+" payload"] = append(sizes[name+" payload"], r.First.Bytes)
	sizes[name+" text"] = append(sizes[name+" text"], r.First.Text)
}

// TestWhole plays the whole corpus and prints the table of docs/internals/ergonomics.md.
func TestWhole(t *testing.T) {
	if !*whole {
		t.Skip("SKIPPED: only with -whole")
	}
	cases := corpus(t, allSources(t), 9)
	table(t, "this commit", cases, run(t, cases, openInside(t, "tolerant")))
	npx, err := exec.LookPath("npx")
	if err != nil {
		t.Log("SKIPPED: npx is not there, so @modelcontextprotocol/server-filesystem was not asked")
		return
	}
	var changes []Case
	for _, c := range cases {
		if c.Right == nil && c.Tool != "NotebookEdit" {
			changes = append(changes, c)
		}
	}
	table(t, "server-filesystem", changes, run(t, changes, openBeside(t, npx)))
}

func told(t *testing.T, c Case, r *Report, i int) {
	outcome, slip, _ := strings.Cut(*show, "/")
	if *show == "" || outcome != "" && outcome != r.Outcome || !strings.Contains(c.Category+" "+c.Slip, slip) {
		return
	}
	var b strings.Builder
	fmt.Fprintf(&b, "#%d %s, %s: %s\n", i, c.Category, c.Slip, r.Outcome)
	fmt.Fprintf(&b, "args: %s\nfirst: %s\n", rendered(c.Args), rendered(r.First.Body))
	if r.Second.Body != nil {
		fmt.Fprintf(&b, "second: %s\n", rendered(r.Second.Body))
	}
	for f, w := range c.Want {
		fmt.Fprintf(&b, "meant in %s: %s\n", f, apart(w, c.Files[f]))
		fmt.Fprintf(&b, "got: %s\n", apart(r.Got[f], c.Files[f]))
	}
	t.Log(b.String())
}

// apart gives the part of a that is between its common ends with b.
func apart(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	m := 0
	for m < len(a)-n && m < len(b)-n && a[len(a)-1-m] == b[len(b)-1-m] {
		m++
	}
	return fmt.Sprintf("%q", a[n:len(a)-m])
}

func table(t *testing.T, title string, cases []Case, reports []*Report) {
	type key struct{ category, outcome string }
	count, sums, all := map[key]int{}, map[string]int{}, map[string]int{}
	var sizes = map[string][]int{}
	for i, r := range reports {
		c := cases[i]
		count[key{c.Category, r.Outcome}]++
		sums[c.Category]++
		all[r.Outcome]++
		told(t, c, r, i)
		r.measured(sizes)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n| category | n | %s |\n|---|---|%s\n", title, strings.Join(outcomes, " | "), strings.Repeat("---|", len(outcomes)))
	row := func(name string, n int, of func(string) int) {
		fmt.Fprintf(&b, "| %s | %d |", name, n)
		for _, o := range outcomes {
			if x := of(o); x == 0 {
				b.WriteString(" · |")
			} else {
				fmt.Fprintf(&b, " %d (%d %%) |", x, (200*x+n)/(2*n))
			}
		}
		b.WriteString("\n")
	}
	for _, c := range slices.Sorted(maps.Keys(sums)) {
		row(c, sums[c], func(o string) int { return count[key{c, o}] })
	}
	row("**all**", len(cases), func(o string) int { return all[o] })
	b.WriteString("\n| bytes | n | median | p90 | most |\n|---|---|---|---|---|\n")
	for _, k := range slices.Sorted(maps.Keys(sizes)) {
		s := sizes[k]
		slices.Sort(s)
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", k, len(s), s[len(s)/2], s[len(s)*9/10], s[len(s)-1])
	}
	fmt.Fprintln(os.Stdout, b.String())
}
