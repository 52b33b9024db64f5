// Command picture draws the session that README.md shows as an SVG with text, for light and dark pages:
//
//	go run ./scripts/picture <README.md >docs/session.svg
package main

import (
	"fmt"
	"html"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

const style = `
  .page { fill: #ffffff; stroke: #d0d7de } text { fill: #1f2328; font: 13px ui-monospace, Menlo, Consolas, monospace }
  .typed { font-weight: bold } .added { fill: #116329 } .removed { fill: #a40e26 } .aside { fill: #656d76 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #30363d } text { fill: #e6edf3 }
    .added { fill: #56d364 } .removed { fill: #ff7b72 } .aside { fill: #8b949e }
  }`

func main() {
	readme, err := io.ReadAll(os.Stdin)
	_, rest, ok := strings.Cut(string(readme), "```console\n")
	session, _, ends := strings.Cut(rest, "\n```\n")
	if err != nil || !ok || !ends {
		fmt.Fprintln(os.Stderr, "picture: standard input is no README with a session:", err)
		os.Exit(1)
	}
	const columns, lineHeight, left, top = 104, 18, 16, 28
	var b strings.Builder
	y := top
	for line := range strings.SplitSeq(session, "\n") {
		for line = shown(line); ; line = "    " + line {
			part := line
			if utf8.RuneCountInString(line) > columns { // as a terminal breaks it
				part = string([]rune(line)[:columns])
			}
			if strings.TrimSpace(part) != "" {
				fmt.Fprintf(&b, "  <text x=\"%d\" y=\"%d\" xml:space=\"preserve\" class=\"%s\">%s</text>\n", left, y, class(line), html.EscapeString(part))
			}
			y += lineHeight
			if line = line[len(part):]; line == "" {
				break
			}
		}
	}
	fmt.Printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 860 %d\" role=\"img\" aria-label=\"A session at the terminal\">\n"+
		"  <style>%s\n  </style>\n  <rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"859\" height=\"%d\" rx=\"8\"/>\n%s</svg>\n", y+4, style, y+3, b.String())
}

// shown gives a line of the terminal as SVG can show it.
func shown(line string) string { return strings.ReplaceAll(line, "\t", "    ") }

// class gives the class of a line: what was typed, what a diff adds or removes, what stands beside the answer.
func class(line string) string {
	switch {
	case strings.HasPrefix(line, "$ "):
		return "typed"
	case strings.HasPrefix(line, "+"):
		return "added"
	case strings.HasPrefix(line, "-"):
		return "removed"
	case strings.HasPrefix(line, "hint: "), strings.HasPrefix(line, "@@"):
		return "aside"
	}
	return "text"
}
