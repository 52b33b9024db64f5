package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"moltisfs/internal/approval"
	"moltisfs/internal/tty"
)

// What a terminal gets beyond text: colour, a pager, and lines that fit.

// ink is colour for a terminal, unless its user wants none.
func (s streams) ink(f *os.File) approval.Ink {
	term := s.env("TERM")
	return approval.Ink(isTerminal(f) && s.env("NO_COLOR") == "" && term != "" && term != "dumb")
}

// page shows a text on a terminal, through the pager where it is longer than the screen. What is
// in it must be escaped. Where no pager starts, the text is written as it is.
func (s streams) page(f *os.File, text string) error {
	_, rows := tty.Size(f)
	if rows > 0 && strings.Count(text, "\n") >= rows {
		words := strings.Fields(s.env("PAGER"))
		if len(words) == 0 {
			words = []string{"less", "-R"}
		}
		pager := exec.Command(words[0], words[1:]...)
		pager.Stdin, pager.Stdout, pager.Stderr = strings.NewReader(text), f, f
		if words[0] == "less" && s.env("LESS") == "" {
			pager.Env = append(os.Environ(), "LESS=FRX")
		}
		err := pager.Run()
		if _, ran := errors.AsType[*exec.ExitError](err); err == nil || ran {
			return nil // who quits it has seen enough
		}
	}
	if _, err := f.WriteString(text); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// terminal is standard output where that is a terminal, else nil.
func (s streams) terminal() *os.File {
	if w, ok := s.out.(*shownWriter); ok {
		f, _ := w.w.(*os.File)
		return f
	}
	return nil
}

// width is that of the terminal, at most 100: longer lines are hard to read.
func (s streams) width() int {
	const most, least = 100, 40
	if f := s.terminal(); f != nil {
		if columns, _ := tty.Size(f); columns > 0 {
			return min(max(columns, least), most)
		}
	}
	return most
}

// wrap breaks the paragraphs of a text at a width. Lines that are indented stay as they are: they
// are examples.
func wrap(text string, width int) string {
	var out []string
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		var line string
		flush := func() {
			if line != "" {
				out = append(out, line)
			}
			line = ""
		}
		for l := range strings.SplitSeq(paragraph, "\n") {
			if strings.HasPrefix(l, " ") {
				flush()
				out = append(out, l)
				continue
			}
			for _, word := range strings.Fields(l) {
				if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
					flush()
				}
				line = strings.TrimSpace(line + " " + word)
			}
		}
		flush()
		out = append(out, "")
	}
	return strings.Join(slices.Clip(out[:len(out)-1]), "\n")
}
