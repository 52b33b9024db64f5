package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"moltisfs/grep/ignore/peers"
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

func compare(args []string) error {
	b := &bench{}
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.StringVar(&b.dir, "dir", "", "directory with bin/rg15, bin/rg13 and the trees")
	f.IntVar(&b.rounds, "rounds", 4, "rounds; each runs every arm once, in turn")
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
	begin := time.Now()
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
	fmt.Fprintf(os.Stderr, "searchbench: took %.0f s\n", time.Since(begin).Seconds())
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

func (b *bench) walks() error {
	b.print("### Walk\n\nFiles listed with all ignore rules, as processes of their own, ms. The two Go packages walk by their own rules, which are not git's ([decision 1](decisions/0001-own-ignore-rules.md)).\n")
	b.print("| tree | rg 15 | rg 13 | ours | ratio | CPU ratio | gocodewalker | go-gitignore | goal |\n|---|---|---|---|---|---|---|---|---|")
trees:
	for _, tree := range []string{"linux", "go", "nm", "synth"} {
		if !b.has(tree) {
			continue
		}
		d := b.tree(tree)
		arms := []arm{
			{"rg15", append([]string{b.bin("rg15"), "--files"}, append(rgFlags, d)...), nil, false},
			{"rg13", append([]string{b.bin("rg13"), "--files"}, append(rgFlags, d)...), nil, false},
			{"ours", []string{b.self, "search", "-files", d}, nil, false},
		}
		for _, a := range arms {
			if _, _, err := spawn(a, false); err != nil {
				b.failed("walk "+tree, err)
				continue trees
			}
		}
		others := []string{"—", "—"}
		at := map[int]int{} // arm to column
		for i, name := range peers.Names {
			a := arm{name, []string{b.self, "peer", name, d}, nil, true}
			s, _, err := spawn(a, false)
			switch {
			case err != nil:
				others[i] = "fails"
			case s.wall > 5000:
				others[i] = fmt.Sprintf("%.0f (once)", s.wall)
			default:
				at[len(arms)] = i
				arms = append(arms, a)
			}
		}
		s, err := b.measure(arms)
		if err != nil {
			b.failed("walk "+tree, err)
			continue
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

// failed notes a row that could not be measured; the others go on.
func (b *bench) failed(row string, err error) {
	fmt.Fprintf(os.Stderr, "searchbench: %s: %v\n", row, err)
	b.misses = append(b.misses, fmt.Sprintf("%s: not measured: %v", row, err))
}

// verdict compares a ratio with its goal.
func (b *bench) verdict(what string, ratio float64, g goal) string {
	if ratio <= float64(g)+0.005 {
		return fmt.Sprintf("≤ %g", float64(g))
	}
	b.misses = append(b.misses, fmt.Sprintf("%s: %.2f, wanted %g", what, ratio, float64(g)))
	return fmt.Sprintf("**missed** ≤ %g", float64(g))
}
