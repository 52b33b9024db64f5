// Command searchbench measures package grep beside the ripgrep that is in PATH, both as processes of their own, in turns.
//
//	searchbench [-rounds N] DIR...        a table for each tree: medians in ms, and the ratio of ours to ripgrep's
//	searchbench -once PATTERN DIR         one search as ours; prints the files with matches. PATTERN "" lists all files
//	searchbench -log >FILE                writes a log of 1 GB, the same each time
//	searchbench -count FILE...            the matches in such a log are counted
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
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

// logPatterns are those for a file.
var logPatterns = []string{"the needle", "return", "worker-42", "(?i)error", "(?i)LIMIT OFFSET", "update|delete|insert", "timeout|retry|connect|session",
	"token user|user token", `[A-Z]{5} \[worker-6[0-3]\]`, `DEBUG \[worker-1[0-9]\] id=00`, `dur=4\d{3} `, `dur=(1|22|333)\b`, `\bcache\b`, `offset$`, `^2026-11-01T2[0-3]`,
	`^.{24} WARN`, "ERROR.*timeout", "request.*response.*request", `id=\w+ dur=\d{4} alpha`, `dur=\d+ .*delete.*limit`, "[0-9]{4} select .* limit", "[a-f]{6}", "é|ü", `\p{Lu}{5} \[`}

func main() {
	rounds := flag.Int("rounds", 5, "rounds; each runs both programs once, in turns")
	once := flag.Bool("once", false, "one search in this process")
	count := flag.Bool("count", false, "count the matches in a file")
	log := flag.Bool("log", false, "write a log")
	flag.Parse()
	if *log {
		writeLog(os.Stdout)
		return
	}
	if err := run(*once, *count, *rounds, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "searchbench:", err)
		os.Exit(2)
	}
}

func run(once, count bool, rounds int, args []string) error {
	if once {
		if len(args) != 2 {
			return fmt.Errorf("want PATTERN and DIR, have %q", args)
		}
		return search(args[0], args[1], count)
	}
	for _, dir := range args {
		fmt.Printf("\n%s, median of %d, ms\n\n| pattern | rg | ours | ratio | CPU: rg | ours | ratio | same answer |\n|---|---|---|---|---|---|---|---|\n", filepath.Base(dir), rounds)
		all := patterns
		if count {
			all = logPatterns
		}
		for _, p := range all {
			if err := compare(p, dir, count, rounds); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare prints the row of one pattern.
func compare(pattern, dir string, count bool, rounds int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	rg := []string{"rg", "--hidden", "--no-config", "--glob=!.git", "--no-messages"}
	switch {
	case pattern == "":
		rg = append(rg, "--files", dir)
	case count:
		rg = append(rg, "--count-matches", "-e", pattern, dir)
	default:
		rg = append(rg, "-l", "-e", pattern, dir)
	}
	arms := [][]string{rg, {self, "-once", fmt.Sprintf("-count=%t", count), pattern, dir}}
	took, cpu := make([][]float64, len(arms)), make([][]float64, len(arms))
	answers := make([]string, len(arms))
	for range rounds {
		for i, a := range arms {
			begin := time.Now()
			c := exec.Command(a[0], a[1:]...)
			out, err := c.Output()
			if x, ok := err.(*exec.ExitError); ok && x.ExitCode() == 1 { // nothing was found
				err = nil
			}
			if err != nil {
				return fmt.Errorf("%q: %w", a, err)
			}
			took[i] = append(took[i], float64(time.Since(begin).Microseconds())/1000)
			cpu[i] = append(cpu[i], float64((c.ProcessState.UserTime()+c.ProcessState.SystemTime()).Microseconds())/1000)
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			slices.Sort(lines)
			answers[i] = strings.Join(lines, "\n")
		}
	}
	fmt.Printf("| `%s`", strings.ReplaceAll(pattern, "|", `\|`))
	for _, t := range [][][]float64{took, cpu} {
		slices.Sort(t[0])
		slices.Sort(t[1])
		a, b := t[0][rounds/2], t[1][rounds/2]
		fmt.Printf(" | %.0f | %.0f | %.2f", a, b, b/a)
	}
	fmt.Printf(" | %t |\n", answers[0] == answers[1])
	return nil
}

// words are those of the log, which end every line.
var words = strings.Fields(`alpha beta gamma delta request response handler buffer index value error return config timeout retry
	connect session user token cache parse render update delete insert select where from into table column row page limit offset`)

func writeLog(to io.Writer) {
	w, r := bufio.NewWriterSize(to, 1<<20), rand.New(rand.NewPCG(3, 4))
	defer w.Flush()
	for n := 0; n < 1<<30; {
		level := []string{"INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"}[r.IntN(6)]
		k, _ := fmt.Fprintf(w, "2026-11-01T%02d:%02d:%02d.%03dZ %s [worker-%d] id=%016x dur=%d", r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000), level, r.IntN(64),
			r.Uint64(), r.IntN(5000))
		n += k
		for range 3 + r.IntN(12) {
			k, _ = fmt.Fprint(w, " ", words[r.IntN(len(words))])
			n += k
		}
		w.WriteByte('\n')
	}
	w.WriteString("the last line has the needle in it\n")
}

// anything lets the bench see the whole tree, as ripgrep does.
type anything struct{}

func (anything) Judge(guardfs.Object, guardfs.Access) error { return nil }
func (anything) Dir(string, ...string) guardfs.DirVerdict   { return guardfs.DirVerdict{All: true} }

func search(pattern, root string, count bool) error {
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
	w, mode, out := grep.Walk{Name: root}, grep.FilesWithMatches, bufio.NewWriterSize(os.Stdout, 64<<10)
	if count {
		f, err := h.Open()
		if err != nil {
			return err
		}
		w.File, mode = grep.GuardedFile(f), grep.Count
	} else {
		d, err := h.Dir()
		if err != nil {
			return err
		}
		w.Dir = grep.Guarded(d)
	}
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
	r, err := grep.Search(context.Background(), w, grep.Query{Matcher: m, Mode: mode})
	if err != nil {
		return err
	}
	if count && r.Totals.Matches > 0 {
		fmt.Println(r.Totals.Matches)
		return nil
	}
	for _, f := range r.Files {
		fmt.Fprintln(out, f.Path)
	}
	return out.Flush()
}
