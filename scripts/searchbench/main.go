// Command searchbench measures package grep beside the ripgrep that is in PATH, both as processes of their own, in turns.
//
//	searchbench [-rounds N] DIR...        a table for each tree, or file: medians in ms, and the ratio of ours to ripgrep's
//	searchbench -once PATTERN DIR         one search as ours; prints the files with matches. PATTERN "" lists all files
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/guardfs"
)

// patterns are literals, rare and frequent ones, alternations, classes, and what no literal helps with.
var patterns = []string{"", "nanosleep_restart_zz", "return", "(?i)spin_lock_irqsave", `fn\s+main`, `\w+_alloc\(`, `[A-Z]+_SUSPEND`,
	`//\s*[a-z]+ing\b`, `0x[0-9a-f]{12,}`, "devm_kzalloc|nla_put_u32|rcu_barrier|idr_preload|skb_clone", "mutex_(un)?lock|down_(read|write)",
	`[A-Z]{6}[0-9]{4}[a-z]`, `\d{4}-\d{2}-\d{2}`, `^\s*$`, `\w{30}`, `case [A-Z]+_[A-Z]+_[A-Z]+:\s*/\*`, `\);\s*/\* .* \*/$`}

func main() {
	rounds := flag.Int("rounds", 5, "rounds; each runs both programs once, in turns")
	once := flag.Bool("once", false, "one search in this process")
	flag.Parse()
	if err := run(*once, *rounds, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "searchbench:", err)
		os.Exit(2)
	}
}

func run(once bool, rounds int, args []string) error {
	if once {
		if len(args) != 2 {
			return fmt.Errorf("want PATTERN and DIR, have %q", args)
		}
		return search(args[0], args[1])
	}
	for _, dir := range args {
		fmt.Printf("\n%s, median of %d, ms\n\n| pattern | rg | ours | ratio | same answer |\n|---|---|---|---|---|\n", filepath.Base(dir), rounds)
		for _, p := range patterns {
			if err := compare(p, dir, rounds); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare prints the row of one pattern.
func compare(pattern, dir string, rounds int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	rg := []string{"rg", "--hidden", "--no-config", "--glob=!.git", "--no-messages", "-l", "-e", pattern, dir}
	if pattern == "" {
		rg = []string{"rg", "--hidden", "--no-config", "--glob=!.git", "--no-messages", "--files", dir}
	}
	arms := [][]string{rg, {self, "-once", pattern, dir}}
	took := make([][]float64, len(arms))
	answers := make([]string, len(arms))
	for range rounds {
		for i, a := range arms {
			begin := time.Now()
			out, err := exec.Command(a[0], a[1:]...).Output()
			if x, ok := err.(*exec.ExitError); ok && x.ExitCode() == 1 { // nothing was found
				err = nil
			}
			if err != nil {
				return fmt.Errorf("%q: %w", a, err)
			}
			took[i] = append(took[i], float64(time.Since(begin).Microseconds())/1000)
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			slices.Sort(lines)
			answers[i] = strings.Join(lines, "\n")
		}
	}
	for _, t := range took {
		slices.Sort(t)
	}
	a, b := took[0][rounds/2], took[1][rounds/2]
	fmt.Printf("| `%s` | %.0f | %.0f | %.2f | %t |\n", strings.ReplaceAll(pattern, "|", `\|`), a, b, b/a, answers[0] == answers[1])
	return nil
}

// anything lets the bench see the whole tree, as ripgrep does.
type anything struct{}

func (anything) Judge(guardfs.Object, guardfs.Access) error { return nil }
func (anything) Dir(string, ...string) guardfs.DirVerdict   { return guardfs.DirVerdict{All: true} }

func search(pattern, root string) error {
	debug.SetGCPercent(200) // as the program has it for a single call
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	fs, err := guardfs.New(guardfs.Options{Judge: anything{}})
	if err != nil {
		return err
	}
	h, err := fs.Resolve(root, guardfs.Walk)
	if err != nil {
		return err
	}
	d, err := h.Dir()
	if err != nil {
		return err
	}
	w, out := grep.Walk{Dir: grep.Guarded(d)}, bufio.NewWriterSize(os.Stdout, 64<<10)
	if pattern == "" {
		r, err := grep.Files(context.Background(), w, grep.GlobQuery{Pattern: "**", Limit: 1 << 30})
		if err != nil {
			return err
		}
		for _, f := range r.Files {
			fmt.Fprintln(out, f.Path)
		}
		return out.Flush()
	}
	m, err := match.Compile(pattern, match.Options{})
	if err != nil {
		return err
	}
	r, err := grep.Search(context.Background(), w, grep.Query{Matcher: m})
	if err != nil {
		return err
	}
	for _, f := range r.Files {
		fmt.Fprintln(out, f.Path)
	}
	return out.Flush()
}
