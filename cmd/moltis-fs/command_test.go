package main

import (
	"strings"
	"testing"
)

// Every command has an example, and every example fits the table. The first page of help fits a screen.
func TestExamplesFitTheTable(t *testing.T) {
	if _, out, _ := runWith(t, "", "help"); strings.Count(out, "\n") > 24 {
		t.Errorf("the help has more than 24 lines:\n%s", out)
	}
	for _, c := range commands() {
		for _, one := range leaves(c) {
			if one.hidden {
				continue
			}
			if one.short == "" || len(one.examples) == 0 {
				t.Errorf("%s: a sentence or an example is missing", one.path)
			}
			ours := 0
			for _, e := range one.examples {
				words := shellWords(e)
				if words[0] != program {
					continue
				}
				ours++
				in, err := parse(words[1:], streams{})
				if err != nil {
					t.Errorf("%s: %v", e, err)
				} else if in.command.path != one.path {
					t.Errorf("%s is an example of %s", e, in.command.path)
				}
			}
			if ours == 0 {
				t.Errorf("%s: no example runs it", one.path)
			}
		}
	}
}

// An option takes the same values wherever it stands: completions know it by its name alone. Only --write names a client for init, and a
// directory for a token.
func TestOptionsTakeOneKindOfValue(t *testing.T) {
	known := map[string]option{}
	for _, c := range commands() {
		for _, one := range leaves(c) {
			for _, o := range one.options {
				if k, ok := known[o.name]; ok && o.name != "write" && (completes(k) != completes(o) || strings.Join(k.words, " ") != strings.Join(o.words, " ")) {
					t.Errorf("--%s of %s differs from that of another command", o.name, one.path)
				}
				known[o.name] = o
			}
		}
	}
}

// leaves are the commands that run.
func leaves(c *command) []*command {
	if c.run != nil {
		return append([]*command{c}, c.below...)
	}
	return c.below
}

// completes is the kind of an option's value as completions know it.
func completes(o option) string {
	switch o.value {
	case "", "FILE", "DIR":
		return o.value
	}
	return "anything"
}

// shellWords takes a simple command apart, up to the first redirection.
func shellWords(line string) []string {
	var words []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		for _, w := range strings.Fields(part) {
			if strings.ContainsAny(w, "<>|") {
				return words
			}
			words = append(words, w)
		}
	}
	return words
}
