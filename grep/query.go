package grep

import (
	"errors"
	"fmt"

	"moltisfs/grep/match"
	"moltisfs/internal/text"
)

// Mode is the kind of rows that a Query returns.
type Mode uint8

// The modes.
const (
	FilesWithMatches Mode = iota // files that hold a match
	Content                      // the matching lines, with context
	Count                        // how many lines match in each file, and how often
)

// Query is a search: the pattern, and the form of the result. Matcher is required.
type Query struct {
	Matcher   *match.Matcher
	Mode      Mode
	Multiline bool // Matcher was compiled so: a match may span lines

	// Glob are lists of globs. A file must match one; "!" excludes, and the last that matches
	// decides. Commas and blanks outside braces separate globs. The whole list is one more glob,
	// for names with blanks. A backslash escapes a comma or a blank.
	Glob []string
	Type []string // file types by ripgrep's names, one of which a file must be of

	Before, After int  // lines of context in Content
	OnlyMatching  bool // rows are the matches, not their lines; no context

	Limit  int // rows of Content, files otherwise; 0: all
	Offset int // rows or files to skip

	// Encoding names the encoding by which files that are not UTF-8 are read, and Walk.File in any case; "": it is guessed.
	Encoding string

	MaxColumns   int   // bytes of a line that a row shows; 0: 500
	MaxFileBytes int64 // larger files are skipped and counted, except Walk.File; 0: no limit

	// Found, in Content, is handed the rows of each file instead of the result, in no order and by
	// many workers at once. Limit then holds for each file. Path is from the root.
	Found func(f FileHit, rows []Row)
	// Named is called for every file that is searched, in the same way.
	Named func(path string)
}

const (
	defaultColumns = 500
	maxContext     = 10_000 // lines on either side
)

func (q *Query) columns() int {
	if q.MaxColumns > 0 {
		return q.MaxColumns
	}
	return defaultColumns
}

// check refuses a query that can't be run, and brings its numbers within their bounds.
func (q *Query) check() error {
	switch {
	case q.Matcher == nil:
		return errors.New("grep: Query needs a Matcher")
	case q.Encoding != "" && text.Lookup(q.Encoding) == nil:
		return fmt.Errorf("grep: there is no encoding %q", q.Encoding)
	case q.Mode > Count:
		return errors.New("grep: unknown Mode")
	}
	q.Before, q.After = clamp(q.Before), clamp(q.After)
	if q.OnlyMatching {
		q.Before, q.After = 0, 0
	}
	return nil
}

func clamp(n int) int { return min(max(n, 0), maxContext) }
