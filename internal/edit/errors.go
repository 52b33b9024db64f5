package edit

import (
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf8"

	"moltisfs/internal/text"
)

// Causes of a NoMatchError: why old_string is not in the text although something close to it is.
const (
	CauseTabsVsSpaces   = "tabs_vs_spaces"  // indented with the other kind of blanks
	CauseIndentation    = "indentation"     // the same blanks, another depth
	CauseTrailingBlanks = "trailing_blanks" // blanks at line ends
	CauseWhitespace     = "whitespace"      // blanks inside lines, or blank lines, differ
	CauseLineEndings    = "line_endings"
	CauseQuotes         = "quotes"        // typographic quotes or dashes
	CauseUnicodeSpace   = "unicode_space" // no-break and other odd or invisible spaces
	CauseNormalisation  = "normalisation" // composed and decomposed letters
	CauseEscaped        = "escaped"       // backslash or \u escapes
	CauseEntity         = "entity"        // HTML entities
	CauseLineNumbers    = "line_numbers"  // line numbers pasted from Read or grep output
	CauseCase           = "case"
	CauseStale          = "stale"           // it was there when the session last saw the file (Options.Seen)
	CauseApplied        = "already_applied" // new_string stands there, and old_string does not
	CauseUnknown        = "unknown"
)

// NoMatchError says that an edit's old string is not in the text, and what comes closest. The text
// is the one which the edit saw: with several edits, the result of those before it. All but Index
// and Cause may be empty.
type NoMatchError struct {
	Index         int    // of the edit, 0-based
	Cause         string // one of the Cause constants
	Line, EndLine int    // of the closest region, 1-based, inclusive; 0 when nothing is close
	Region        string // those lines, shortened to some 2 KB
	Resend        string // matches exactly once if sent as old_string; "" for bytes that are no text
	Partial       bool   // Resend covers less or more than old_string meant: check new_string
	Repaired      *Edit  // the exact edit that was most likely meant, tried; nil where in doubt
	All           []Edit // all edits, with this one and those after it repaired: all of them apply
	Detail        string // a sentence on why a near match was not taken, where there is one to say
}

func (e *NoMatchError) Error() string {
	s := fmt.Sprintf("edit %d: old_string not found (%s)", e.Index+1, e.Cause)
	if e.Line > 0 {
		s += fmt.Sprintf(", closest at line %d", e.Line)
	}
	return s
}

// NotUniqueError says that the text has an edit's old string, or its equal by a tier, repeatedly.
type NotUniqueError struct {
	Index    int
	Count    int       // of all matches
	Lines    []int     // where they start, the first 50
	Contexts []Context // for the first three: no line of it can be left out at either end
	Strategy string    // "exact", or the tier that found them
}

// Context is a match with as many lines around it as make it unique.
type Context struct {
	Line      int    `json:"line"`       // of the match, not of the context's first line
	OldString string `json:"old_string"` // matches exactly once
}

func (e *NotUniqueError) Error() string {
	return fmt.Sprintf("edit %d: old_string matches %d places", e.Index+1, e.Count)
}

// UnencodableError says that a new string holds a character which the file's charset does not have.
type UnencodableError struct {
	Index        int
	Char         rune // U+FFFD where the new string is not valid UTF-8
	Line, Column int  // in the new string, 1-based, columns in characters
	Encoding     string
	Guessed      bool   // the charset was guessed from the bytes: Options.Encoding may set it right
	Refuted      bool   // the guess leaves bytes without meaning, so nothing beyond ASCII is written by it
	Rival        string // the charset that the file may be in as well, where the character is in other bytes; "" for none
}

// Why says what keeps the character from being written.
func (e *UnencodableError) Why() string {
	switch {
	case e.Refuted:
		return "can't be written for certain: the encoding " + e.Encoding + " is a guess, and the file has bytes that are none of it"
	case e.Rival == text.UTF8.Name:
		return "can't be written in " + e.Encoding + ": the file is UTF-8"
	case e.Rival != "":
		return "can't be written for certain: the encoding " + e.Encoding + " is a guess, " + e.Rival + " is about as likely and has other bytes for it"
	}
	return "does not exist in " + e.Encoding
}

func (e *UnencodableError) Error() string {
	name := fmt.Sprintf("%q (U+%04X)", e.Char, e.Char)
	if !unicode.IsPrint(e.Char) {
		name = fmt.Sprintf("U+%04X", e.Char)
	}
	return fmt.Sprintf("edit %d: %s at line %d, column %d of new_string %s", e.Index+1, name, e.Line, e.Column, e.Why())
}

// DamagedError refuses an edit beside bytes that are no character: with the new text they may be.
type DamagedError struct {
	Index    int
	Line     int // where the bytes are, in the text that the edit saw
	Encoding string
}

func (e *DamagedError) Error() string {
	if e.Index < 0 { // no edit, but an addition
		return fmt.Sprintf("the file is taken for %s and holds bytes that are not, up to line %d: nothing can be added in its encoding", e.Encoding, e.Line)
	}
	return fmt.Sprintf("edit %d: line %d holds bytes that are not %s and would swallow a part of the new text", e.Index+1, e.Line, e.Encoding)
}

// EmptyOldError refuses an empty old string on a file with content: it only fills an empty file.
type EmptyOldError struct{ Index int }

func (e *EmptyOldError) Error() string {
	return fmt.Sprintf("edit %d: old_string is empty and the file is not", e.Index+1)
}

// SameError refuses an edit whose two strings are the same.
type SameError struct{ Index int }

func (e *SameError) Error() string {
	return fmt.Sprintf("edit %d: old_string and new_string are the same", e.Index+1)
}

// NoopError says that the text which a tolerant tier found already reads as the new string.
type NoopError struct {
	Index int
	Line  int // of the text in question
}

func (e *NoopError) Error() string {
	return fmt.Sprintf("edit %d: line %d already reads like new_string", e.Index+1, e.Line)
}

// TooLargeError refuses a result over Options.MaxBytes, before memory is taken for it.
type TooLargeError struct {
	Index     int
	Size, Max int64 // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("edit %d: the result would have %d bytes, more than %d", e.Index+1, e.Size, e.Max)
}

// TooManyError refuses more than MaxEdits edits, or more than MaxReplacements replacements in one.
type TooManyError struct {
	Index      int    // of the edit; 0 when the edits themselves are too many
	What       string // "edits" | "replacements"
	Count, Max int    // Count is a lower bound for replacements
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%d %s, more than %d", e.Count, e.What, e.Max)
}

// EncodingError refuses an unknown Options.Encoding, and one whose text can't be edited in place.
type EncodingError struct {
	Name string
	Is   bool // the file is in it: nobody said so
}

func (e *EncodingError) Error() string {
	if e.Is {
		return "the file is in " + e.Name + ", where the same byte is a letter here and a part of another one there"
	}
	return fmt.Sprintf("unknown encoding %q", e.Name)
}

// ShownPath writes a path, or another name, into a text for people and models: in one line and with
// nothing in it that a terminal obeys. A name that needs it, or looks quoted, is quoted as in Go.
func ShownPath(name string) string {
	for i, r := range name {
		if !strconv.IsPrint(r) || r == utf8.RuneError || i == 0 && r == '"' {
			return strconv.Quote(name)
		}
	}
	return name
}
