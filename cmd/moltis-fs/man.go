package main

import (
	"context"
	"fmt"
	"strings"
)

func manCommand() *command {
	return &command{
		name: "man", short: "write the manual page",
		examples: []string{"moltis-fs man > moltis-fs.1", "moltis-fs man | man -l -"},
		run:      func(_ context.Context, in *invocation) error { return in.write([]byte(manPage(commands()))) },
	}
}

// manPage is the table as roff, section 1.
func manPage(table []*command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1\n.SH NAME\n%s \\- %s\n", strings.ToUpper(program), roff(program), roff(aim))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n.I COMMAND\n[OPTIONS] [ARGUMENTS]\n.SH COMMANDS\n", roff(program))
	for _, c := range table {
		for _, one := range leaves(c) {
			if one.hidden {
				continue
			}
			fmt.Fprintf(&b, ".SS %s\n%s.\n", roff(strings.TrimPrefix(usage(one), program+" ")), roff(one.short))
			for para := range strings.SplitSeq(one.long, "\n\n") {
				if para == "" {
					continue
				}
				b.WriteString(".PP\n")
				for line := range strings.SplitSeq(para, "\n") {
					if strings.HasPrefix(line, "  ") {
						fmt.Fprintf(&b, ".br\n%s\n.br\n", roff(line))
						continue
					}
					b.WriteString(roff(line) + "\n")
				}
			}
			for _, r := range optionRows(one) {
				fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(r[0]), roff(r[1]))
			}
			if len(one.examples) > 0 {
				b.WriteString(".PP\n.nf\n")
				for _, e := range one.examples {
					b.WriteString("    " + roff(e) + "\n")
				}
				b.WriteString(".fi\n")
			}
		}
	}
	for _, s := range []struct {
		title string
		rows  [][2]string
	}{{"ENVIRONMENT", environment}, {"EXIT STATUS", exitStatuses}} {
		fmt.Fprintf(&b, ".SH %s\n", s.title)
		for _, r := range s.rows {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(r[0]), roff(r[1]))
		}
	}
	return b.String()
}

func leaves(c *command) []*command {
	if c.below == nil {
		return []*command{c}
	}
	return c.below
}

// roff escapes text.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
