package approval

import "strings"

// Ink colours text that is escaped already: what it adds is the only thing that a terminal obeys.
type Ink bool

// The inks. Colour is for terminals whose user has not set NO_COLOR.
const (
	Plain  Ink = false
	Colour Ink = true
)

func (i Ink) paint(code, text string) string {
	if !i || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (i Ink) Added(text string) string   { return i.paint("32", text) }
func (i Ink) Removed(text string) string { return i.paint("31", text) }
func (i Ink) Strong(text string) string  { return i.paint("1", text) }
func (i Ink) Warning(text string) string { return i.paint("1;33", text) }

// DiffLine is one line of a unified diff, without its end.
func (i Ink) DiffLine(line string) string {
	switch {
	case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		return i.Strong(line)
	case strings.HasPrefix(line, "+"):
		return i.Added(line)
	case strings.HasPrefix(line, "-"):
		return i.Removed(line)
	case strings.HasPrefix(line, "@@"):
		return i.paint("36", line)
	}
	return line
}
