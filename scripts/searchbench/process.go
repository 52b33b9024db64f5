package main

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"moltisfs/grep"
)

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
		rounds := 4 * b.rounds
		if x.tree == "synth" { // long enough to need few
			rounds = b.rounds
		}
		for r := range rounds + 1 {
			for i, name := range []string{"rg15", "rg13"} {
				v, _, err := spawn(arm{name, append([]string{b.bin(name)}, args...), nil, false}, true)
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
			v, _, err := spawn(arm{"rg15", append([]string{b.bin("rg15"), "-l", "-e", p}, append(rgFlags, d)...), nil, false}, true)
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
