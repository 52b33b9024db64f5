package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

func (b *bench) searches() error {
	b.print("### Search\n\nAs processes of their own, ms; `-l`, on the log `-c`. \"Held out\": chosen after the engine was tuned. \"Scalar\": without AVX2. \"Sets\": the answer is ripgrep's 15.\n")
	b.print("| tree | pattern | held out | rg 15 | rg 13 | ours | ratio | CPU ratio | scalar ratio | sets | goal |\n|---|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range rows {
		if !b.has(r.tree) || !b.rows.MatchString(r.tree+" "+r.pattern) {
			continue
		}
		if err := b.search(r); err != nil {
			b.failed(r.tree+" `"+r.shown()+"`", err)
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
		return arm{name, append([]string{b.bin(name)}, flags...), nil, false}
	}
	own := arm{"ours", slices.Concat([]string{b.self, "search"}, r.flags(), []string{d}), nil, false}
	scalar := own
	scalar.name, scalar.env, scalar.few = "ours without AVX2", []string{"GODEBUG=cpu.avx2=off"}, true
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
	if _, _, err := spawn(arms[1], false); err != nil { // ripgrep 13 does not finish some searches of several lines
		arms[1] = arms[0]
	}
	if _, _, err := spawn(scalar, false); err != nil {
		return err
	}
	s, err := b.measure(arms)
	if err != nil {
		return err
	}
	best := s.best()
	ratio := s.ratio(2, best, wall)
	pattern := r.shown()
	held := ""
	if r.held {
		held = "yes"
	}
	b.print("| %s | `%s` | %s | %.0f | %.0f | %.0f | %.2f | %.2f | %.2f | %s | %s |", r.tree, strings.ReplaceAll(pattern, "|", `\|`), held, s.median(0, wall), s.median(1, wall),
		s.median(2, wall), ratio, s.ratio(2, best, cpu), s.median(3, wall)/s.median(best, wall), sets, b.verdict(fmt.Sprintf("%s `%s`", r.tree, pattern), ratio, r.goal))
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
