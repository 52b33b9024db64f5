package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"moltisfs/grep"
	"moltisfs/internal/guardfs"
)

// bench is one run of everything.
type bench struct {
	dir    string // with bin and the trees
	rounds int
	self   string
	fs     *guardfs.FS
	out    *os.File
	only   string
	rows   *regexp.Regexp
	misses []string
}

// arm is a command that is measured.
type arm struct {
	name string
	args []string
	env  []string
}

// sample is what one run took.
type sample struct{ wall, cpu float64 } // milliseconds

func compare(args []string) error {
	b := &bench{}
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.StringVar(&b.dir, "dir", "", "directory with bin/rg15, bin/rg13, bin/peers and the trees")
	f.IntVar(&b.rounds, "rounds", 5, "rounds; each runs every arm once, in turn")
	f.StringVar(&b.only, "only", "", "part to run: walk, search, process or index")
	rows := f.String("rows", "", "regular expression: only rows of search whose tree and pattern, with a space between, match it")
	out := f.String("o", "", "file for the tables, standard output otherwise")
	if err := f.Parse(args); err != nil {
		return err
	}
	var err error
	if b.rows, err = regexp.Compile(*rows); err != nil {
		return err
	}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.fs, err = guardfs.New(guardfs.Options{Judge: anything{}}); err != nil {
		return err
	}
	b.out = os.Stdout
	if *out != "" {
		if b.out, err = os.Create(*out); err != nil {
			return err
		}
	}
	b.print("`make bench-search`, %s, %s/%s, %d processors, medians of %d interleaved rounds, caches warm. Ratios are to the better ripgrep in the same round.\n",
		time.Now().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), b.rounds)
	for _, part := range []struct {
		name string
		run  func() error
	}{{"walk", b.walks}, {"search", b.searches}, {"process", b.inProcess}, {"index", b.indexed}} {
		if b.only == "" || b.only == part.name {
			if err := part.run(); err != nil {
				return err
			}
		}
	}
	if len(b.misses) > 0 {
		b.print("Missed:\n\n- %s\n", strings.Join(b.misses, "\n- "))
	}
	return nil
}

func (b *bench) print(format string, args ...any) { fmt.Fprintf(b.out, format+"\n", args...) }

func (b *bench) bin(name string) string  { return filepath.Join(b.dir, "bin", name) }
func (b *bench) tree(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) has(name string) bool {
	_, err := os.Stat(b.tree(name))
	return err == nil
}

var rgFlags = []string{"--no-config", "--hidden", "--no-require-git", "--color=never"}

// spawn runs an arm and says what it took. Exit code 1 is ripgrep's "no match".
func spawn(a arm, keep bool) (sample, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, a.args[0], a.args[1:]...)
	c.Env = append(os.Environ(), a.env...)
	var out, errs bytes.Buffer
	c.Stderr = &errs
	if keep {
		c.Stdout = &out
	}
	begin := time.Now()
	err := c.Run()
	s := sample{wall: ms(time.Since(begin))}
	if c.ProcessState != nil {
		s.cpu = ms(c.ProcessState.UserTime() + c.ProcessState.SystemTime())
		if c.ProcessState.ExitCode() == 1 {
			err = nil
		}
	}
	if err != nil {
		err = fmt.Errorf("%q: %w: %s", a.args, err, errs.Bytes())
	}
	return s, out.Bytes(), err
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func median(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	if len(x) == 0 {
		return math.NaN()
	}
	return (x[len(x)/2] + x[(len(x)-1)/2]) / 2
}

// series are the samples of each arm, round by round.
type series [][]sample

func (s series) median(arm int, of func(sample) float64) float64 {
	var x []float64
	for _, v := range s[arm] {
		x = append(x, of(v))
	}
	return median(x)
}

func wall(s sample) float64 { return s.wall }
func cpu(s sample) float64  { return s.cpu }

// ratio is the median over the rounds of arm to base.
func (s series) ratio(arm, base int, of func(sample) float64) float64 {
	var x []float64
	for i := range s[arm] {
		x = append(x, of(s[arm][i])/of(s[base][i]))
	}
	return median(x)
}

// best is the faster of the two ripgreps, which are the first two arms.
func (s series) best() int {
	if s.median(1, wall) < s.median(0, wall) {
		return 1
	}
	return 0
}

// measure interleaves the arms: one run each to warm up, then the rounds.
func (b *bench) measure(arms []arm, rounds int) (series, error) {
	out := make(series, len(arms))
	for r := range rounds + 1 {
		for i := range arms {
			s, _, err := spawn(arms[(i+r)%len(arms)], false)
			if err != nil {
				return nil, err
			}
			if r > 0 {
				k := (i + r) % len(arms)
				out[k] = append(out[k], s)
			}
		}
	}
	return out, nil
}

func (b *bench) walks() error {
	b.print("### Walk\n\nFiles listed with all ignore rules, as processes of their own, ms. The two Go packages walk by their own rules, which are not git's ([decision 1](decisions/0001-own-ignore-rules.md)).\n")
	b.print("| tree | rg 15 | rg 13 | ours | ratio | CPU ratio | gocodewalker | go-gitignore | goal |\n|---|---|---|---|---|---|---|---|---|")
	for _, tree := range []string{"linux", "go", "nm", "synth"} {
		if !b.has(tree) {
			continue
		}
		d := b.tree(tree)
		arms := []arm{
			{"rg15", append([]string{b.bin("rg15"), "--files"}, append(rgFlags, d)...), nil},
			{"rg13", append([]string{b.bin("rg13"), "--files"}, append(rgFlags, d)...), nil},
			{"ours", []string{b.self, "search", "-files", d}, nil},
		}
		others := []string{"—", "—"}
		at := map[int]int{} // arm to column
		for i, name := range []string{"gocodewalker", "gitignore"} {
			a := arm{name, []string{b.bin("peers"), name, d}, nil}
			s, _, err := spawn(a, false)
			switch {
			case !b.has("bin/peers"):
			case err != nil:
				others[i] = "fails"
			case s.wall > 5000:
				others[i] = fmt.Sprintf("%.0f (once)", s.wall)
			default:
				at[len(arms)] = i
				arms = append(arms, a)
			}
		}
		s, err := b.measure(arms, b.rounds)
		if err != nil {
			return err
		}
		best := s.best()
		r := s.ratio(2, best, wall)
		for k, i := range at {
			others[i] = fmt.Sprintf("%.0f", s.median(k, wall))
		}
		b.print("| %s | %.0f | %.0f | %.0f | %.2f | %.2f | %s | %s |", tree, s.median(0, wall), s.median(1, wall), s.median(2, wall), r, s.ratio(2, best, cpu), strings.Join(others, " | "), b.verdict("walk "+tree, r, goalWalk))
	}
	b.print("")
	return nil
}

// verdict compares a ratio with its goal.
func (b *bench) verdict(what string, ratio float64, g goal) string {
	if ratio <= float64(g)+0.005 {
		return fmt.Sprintf("≤ %g", float64(g))
	}
	b.misses = append(b.misses, fmt.Sprintf("%s: %.2f, wanted %g", what, ratio, float64(g)))
	return fmt.Sprintf("**missed** ≤ %g", float64(g))
}

func (b *bench) searches() error {
	b.print("### Search\n\nAs processes of their own, ms; `-l`, on the log `-c`. \"Held out\": chosen after the engine was tuned. \"Scalar\": without AVX2. \"Sets\": the answer is ripgrep's 15.\n")
	b.print("| tree | pattern | held out | rg 15 | rg 13 | ours | ratio | CPU ratio | scalar ratio | sets | goal |\n|---|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range rows {
		if !b.has(r.tree) || !b.rows.MatchString(r.tree+" "+r.pattern) {
			continue
		}
		if err := b.search(r); err != nil {
			return err
		}
	}
	b.print("")
	return nil
}

func (b *bench) search(r row) error {
	d := b.tree(r.tree)
	if r.tree == "log" {
		d = filepath.Join(d, "app.log")
	}
	rg := func(name string) arm {
		flags := slices.Concat(rgFlags, r.flags()[:len(r.flags())-1], []string{"-e", r.pattern, d})
		return arm{name, append([]string{b.bin(name)}, flags...), nil}
	}
	own := arm{"ours", slices.Concat([]string{b.self, "search"}, r.flags(), []string{d}), nil}
	scalar := own
	scalar.env = []string{"GODEBUG=cpu.avx2=off"}
	arms := []arm{rg("rg15"), rg("rg13"), own, scalar}
	sets := "same"
	_, a, err := spawn(arms[0], true)
	if err != nil {
		return err
	}
	_, o, err := spawn(own, true)
	if err != nil {
		return err
	}
	if n := differences(a, o); n > 0 {
		sets = fmt.Sprintf("%d differ", n)
	}
	if _, _, err := spawn(arms[1], false); err != nil { // ripgrep 13 does not finish some multiline searches
		arms[1] = arms[0]
	}
	s, err := b.measure(arms, b.rounds)
	if err != nil {
		return err
	}
	best := s.best()
	ratio := s.ratio(2, best, wall)
	pattern := r.pattern
	for _, f := range r.flags() {
		if f == "-i" || f == "-U" {
			pattern = f + " " + pattern
		}
	}
	held := ""
	if r.held {
		held = "yes"
	}
	b.print("| %s | `%s` | %s | %.0f | %.0f | %.0f | %.2f | %.2f | %.2f | %s | %s |", r.tree, strings.ReplaceAll(pattern, "|", `\|`), held, s.median(0, wall), s.median(1, wall),
		s.median(2, wall), ratio, s.ratio(2, best, cpu), s.ratio(3, best, wall), sets, b.verdict(fmt.Sprintf("%s `%s`", r.tree, pattern), ratio, r.goal))
	return nil
}

// differences counts the lines that only one of two answers has. ripgrep prints a lone count without a name and says nothing for 0.
func differences(a, b []byte) int {
	count := map[string]int{}
	for _, l := range strings.Fields(string(a)) {
		count[l[strings.LastIndexByte(l, ':')+1:]]++
	}
	for _, l := range strings.Fields(string(b)) {
		count[l[strings.LastIndexByte(l, ':')+1:]]--
	}
	n := 0
	for _, k := range count {
		n += max(k, -k)
	}
	return n
}

// inProcess compares a call within this process with spawning ripgrep, as an agent's host would.
func (b *bench) inProcess() error {
	b.print("### In process\n\nA call in a process that runs, against spawning ripgrep and reading its answer, ms.\n")
	b.print("| tree | what | rg 15 | rg 13 | ours | times faster | wanted |\n|---|---|---|---|---|---|---|")
	for _, x := range []struct {
		tree  string
		t     task
		least float64
	}{
		{"small", task{files: true}, 5}, {"small", task{pattern: "WaitGroup"}, 5}, {"small", task{pattern: `\w+Err\b`}, 5},
		{"go", task{files: true}, 1.6}, {"go", task{pattern: "WaitGroup"}, 1.6}, {"go", task{pattern: `\w+Err\b`}, 1.6},
		{"synth", task{files: true}, 1.6}, {"synth", task{pattern: "offset limit page"}, 1},
	} {
		if !b.has(x.tree) {
			continue
		}
		d := b.tree(x.tree)
		what := "`" + x.t.pattern + "`"
		args := append([]string{"-l", "-e", x.t.pattern}, append(rgFlags, d)...)
		if x.t.files {
			what, args = "list", append([]string{"--files"}, append(rgFlags, d)...)
		}
		s := make(series, 3)
		for r := range 4*b.rounds + 1 {
			for i, name := range []string{"rg15", "rg13"} {
				v, _, err := spawn(arm{name, append([]string{b.bin(name)}, args...), nil}, true)
				if err != nil {
					return err
				}
				if r > 0 {
					s[i] = append(s[i], v)
				}
			}
			begin := time.Now()
			if _, err := x.t.run(b.fs, d, new(bytes.Buffer)); err != nil {
				return err
			}
			if r > 0 {
				s[2] = append(s[2], sample{wall: ms(time.Since(begin))})
			}
		}
		faster := 1 / s.ratio(2, s.best(), wall)
		wanted := fmt.Sprintf("≥ %g", x.least)
		if faster < x.least {
			wanted = "**missed** " + wanted
			b.misses = append(b.misses, fmt.Sprintf("in process, %s %s: %.1f times, wanted %g", x.tree, what, faster, x.least))
		}
		b.print("| %s | %s | %.1f | %.1f | %.2f | %.1f | %s |", x.tree, what, s.median(0, wall), s.median(1, wall), s.median(2, wall), faster, wanted)
	}
	b.print("")
	return nil
}

// indexed compares repeated searches with and without the index.
func (b *bench) indexed() error {
	const tree = "linux"
	if !b.has(tree) {
		return nil
	}
	d := b.tree(tree)
	x := grep.NewIndex(grep.IndexOptions{Open: grep.GuardedOpen(b.fs), Watch: grep.GuardedWatch(b.fs), Sweep: time.Hour})
	defer x.Close()
	begin := time.Now()
	for {
		r, err := task{pattern: "nanosleep_restart_zz", index: x}.run(b.fs, d, nil)
		if err != nil {
			return err
		}
		if r.Indexed {
			break
		}
		if time.Since(begin) > 2*time.Minute {
			return fmt.Errorf("no index of %s was made: too few inotify watches?", d)
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.print("### Repeated searches\n\nThe Linux tree in process, ms. The index was there %.0f s after the first search, made by half of the processors, and takes %d MB.\n", time.Since(begin).Seconds(), x.Bytes()>>20)
	b.print("| pattern | rg 15, spawned | no index | index | times faster than rg | same answer |\n|---|---|---|---|---|---|")
	for _, p := range []string{"nanosleep_restart_zz", "page_mapcount", `[A-Z]+_SUSPEND`, `\w+_alloc\(`, "deprecated|obsolete|legacy", "return"} {
		s := make(series, 3)
		same := "yes"
		for range b.rounds {
			v, _, err := spawn(arm{"rg15", append([]string{b.bin("rg15"), "-l", "-e", p}, append(rgFlags, d)...), nil}, true)
			if err != nil {
				return err
			}
			s[0] = append(s[0], v)
			var answers [2]*grep.Result
			for i, index := range []*grep.Index{nil, x} {
				begin := time.Now()
				if answers[i], err = (task{pattern: p, index: index}).run(b.fs, d, nil); err != nil {
					return err
				}
				s[1+i] = append(s[1+i], sample{wall: ms(time.Since(begin))})
			}
			if answers[0].Totals != answers[1].Totals || answers[0].Skipped != answers[1].Skipped || !answers[1].Indexed {
				same = "**no**"
			}
		}
		faster := 1 / s.ratio(2, 0, wall)
		b.print("| `%s` | %.0f | %.0f | %.1f | %.0f | %s |", strings.ReplaceAll(p, "|", `\|`), s.median(0, wall), s.median(1, wall), s.median(2, wall), faster, same)
		if p == "nanosleep_restart_zz" && faster < 50 {
			b.misses = append(b.misses, fmt.Sprintf("indexed `%s`: %.0f times faster, wanted 50", p, faster))
		}
	}
	b.print("")
	return nil
}
