// Package edit changes text by quoting it: find the one place that reads like Old, put New there.
// It is pure: bytes in, bytes and a report out, no files, no clock.
//
// # Guarantees
//
//   - No byte outside the reported spans changes, whatever the charset, line endings or byte order
//     mark, and even in a file with NULs. Only the changed part of New is ever encoded.
//   - Nothing is replaced by similarity. The tiers below are equivalences. Each acts only if it finds
//     exactly one place (or Edit.All is set) and no stricter tier found any.
//   - All or nothing: after an error no edit took place. Each edit sees the text that the edits before it made.
//   - Errors are typed and say what to send instead. Apply never panics. An edit takes linear time,
//     but for a sort. Options.MaxBytes bounds the result before memory for it is taken.
//
// # Tiers
//
//	exact            the same bytes
//	line_endings     LF, CRLF and (in a file without LF) CR are the same
//	trailing_blanks  blanks at line ends do not count, nor a final newline that the file lacks
//	quotes           typographic quotes, dashes, ellipses, spaces are ASCII; the invisible is nothing
//	unicode          composed and decomposed letters are the same
//	indentation      the indentation differs by one consistent rule: depth, width or kind of blanks
//	repaired         escapes, entities or pasted line numbers in Old undone
//
// Tiers add up, except that repaired text is looked for by the first three only. Options.Strict
// ends the list after line_endings.
//
// # The text that is written
//
// New is written as it is sent, with these exceptions:
//
//   - Its line breaks become those of the lines there. A byte order mark is not doubled.
//   - After a tolerant tier, the lines and words that New shares with Old stay as the file has them.
//   - After indentation, the lines that New adds are indented by the same rule as Old.
//   - After repaired, line numbers are taken off New too, and escapes shared with Old are undone.
//   - The trailing_blanks tier adds no final newline to a file that has none.
//
// A client that sends a damaged Old most likely sends New with the same damage. An edit is refused, and
// NoMatchError.Detail says why, if New's additions could have suffered too: escapes, characters of a
// kind that differs, an indentation that more than one rule explains, text that may have to stay in
// its column (a here-document, a raw string, a #directive).
//
// An empty New deletes Old and no more: the line break of a line quoted without it stays.
//
// # Files, in the order of a call
//
//	edit.go              Apply and its types
//	match.go             the place of Old, tier by tier
//	adapt.go             New, written as the place is written
//	document.go          the bytes of the file: charset, spans, splices
//	diagnose.go          no match, or several: why, and what to show
//	nearest.go           the region that is likest to Old
//	repair.go, offer.go  damage undone, and the edit to send instead
//	normalize.go         characters that look alike, words, lines
//
// Everything in this package is safe for concurrent use; arguments are not changed, and results
// share no memory with them that will be written to.
package edit

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"moltisfs/internal/edit/diff"
	"moltisfs/internal/edit/guard"
)

// Edit is one replacement. An empty Old creates a file or fills an empty one.
type Edit struct {
	Old, New string
	All      bool // replace every match instead of insisting on one
}

// Options: the zero value is tolerant, detects the charset and allows results up to 64 MiB.
type Options struct {
	Strict   bool         // exact and line_endings only
	MaxBytes int64        // cap for the result, also between edits; 64 MiB when 0
	Encoding string       // charset of the file, by any common name; "" = detect
	Seen     []byte       // as the session last saw it, in the same charset, for "stale"; or nil
	Err      func() error // asked before each edit; an error ends the work; may be nil
}

// MaxEdits bounds the edits of one Apply, MaxReplacements the places that an edit with All changes.
const (
	MaxEdits        = 1000
	MaxReplacements = 1 << 20

	defaultMaxBytes = 64 << 20
)

// Result is the outcome of Apply or Splice.
type Result struct {
	Content      []byte // the file, in its charset, with its mark
	Steps        []Step // one an edit
	Replacements int    // of all steps
	Encoding     string // charset, as Detect names it
	Guessed      bool   // the charset rests on statistics
	LineEnding   string // of the result: "lf" | "crlf" | "mixed" | "none"

	before, after []byte // the texts as UTF-8, without mark
}

// Patch gives the changes as diff.Patch does for two texts.
func (r *Result) Patch() []diff.Hunk { return diff.Patch(r.before, r.after) }

// Guard finds a change that looks like an accident in the file of that name, as guard.Empties and guard.Placeholder do. It gives nil if
// there is none.
func (r *Result) Guard(name string) *guard.Finding {
	if f := guard.Empties(r.before, r.after); f != nil {
		return f
	}
	return guard.Placeholder(name, r.before, r.after)
}

// Strategies: the tiers by name, strictest first.
const (
	StrategyExact          = "exact"
	StrategyLineEndings    = "line_endings"
	StrategyTrailingBlanks = "trailing_blanks"
	StrategyQuotes         = "quotes"
	StrategyUnicode        = "unicode"
	StrategyIndentation    = "indentation"
	StrategyRepaired       = "repaired"

	StrategyPattern = "pattern" // of Splice
)

// Step is the outcome of one edit.
type Step struct {
	Replacements  int
	Strategy      string // the loosest tier that was needed
	RecoveredCRLF bool   // line endings differed between Old and the file
	Line          int    // of the first match in the text before this step, 1-based
	Orphan        string // signs behind Old that ended its last line, and now end another that New adds
	Shallow       bool   // Old is a part of an indented line, and the lines that New adds below begin further left
	Spans         []Span // the changes, sorted
}

// Span is a run of bytes in the file before a step, replaced by Length bytes. It does not hold the
// ends that Old and New have in common.
type Span struct{ Start, End, Length int }

// Apply makes the edits in order, each on the result of those before it. content nil or empty is a
// file that does not exist yet or is empty; a first edit with an empty Old gives it its text.
//
// Errors are *NoMatchError, *NotUniqueError, *UnencodableError, *DamagedError, *EmptyOldError,
// *SameError, *NoopError, *TooLargeError, *TooManyError or *EncodingError, never wrapped.
func Apply(content []byte, edits []Edit, o Options) (*Result, error) {
	if len(edits) > MaxEdits {
		return nil, &TooManyError{What: "edits", Count: len(edits), Max: MaxEdits}
	}
	d, res, err := begin(content, &o)
	if err != nil {
		return nil, err
	}
	res.Steps = make([]Step, 0, len(edits))
	for i, e := range edits {
		if o.Err != nil && o.Err() != nil {
			return nil, o.Err()
		}
		d.more = len(edits) - 1 - i
		step, err := d.apply(i, e, o)
		if err != nil {
			if e, ok := err.(*NoMatchError); ok {
				e.All = e.repairedAll(content, edits, e.Repaired, o)
			}
			return nil, err
		}
		res.Steps = append(res.Steps, step)
		res.Replacements += step.Replacements
	}
	return d.end(res), nil
}

// begin opens a file for changes.
func begin(content []byte, o *Options) (*document, *Result, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	d, err := openToChange(content, o.Encoding)
	if err != nil {
		return nil, nil, err
	}
	return d, &Result{Encoding: d.enc.Name, Guessed: d.guessed, before: d.text}, nil
}

// end fills in res with the file as the edits left it.
func (d *document) end(res *Result) *Result {
	res.Content = d.bytes()
	res.after = d.text
	res.LineEnding = lineEnding(d.text)
	return res
}

// repairedAll tries a list of edits with the one that failed repaired, and those after it.
func (e *NoMatchError) repairedAll(content []byte, edits []Edit, with *Edit, o Options) []Edit {
	const most = 20
	if with == nil || len(edits) > most {
		return nil
	}
	edits = slices.Clone(edits)
	edits[e.Index] = *with
	_, err := Apply(content, edits, o)
	if next, ok := err.(*NoMatchError); ok && next.Index > e.Index {
		return next.All
	} else if err != nil {
		return nil
	}
	return edits
}

// apply makes one edit.
func (d *document) apply(index int, e Edit, o Options) (Step, error) {
	if e.Old == e.New {
		return Step{}, &SameError{index}
	}
	if e.Old == "" && len(d.text) > 0 {
		return Step{}, &EmptyOldError{index}
	}
	src := newSource(d.text)
	if d.enc.Mapped() && !utf8.ValidString(e.Old) {
		// It is no text, so it is not there. As bytes it might be part of a letter of our UTF-8.
		return Step{}, &NoMatchError{Index: index, Cause: CauseUnknown, Detail: "old_string is not valid UTF-8"}
	}
	p, err := find(src, e, o.Strict)
	if err != nil {
		switch err := err.(type) {
		case *NotUniqueError:
			err.Index = index
		case *TooManyError:
			err.Index = index
		case *NoMatchError:
			err.Index = index
			seen, _, _ := Decode(o.Seen, d.enc.Name)
			near := diagnose(err, src, seen, e)
			if o.Strict && !err.Partial && err.Cause != CauseCase && err.Cause != CauseWhitespace {
				err.Detail = "" // why no tier took it is beside the point: none was asked
				err.Repaired = tolerated(src, e)
			}
			if at := applied(src, e); at > 0 && err.Repaired == nil {
				*err = NoMatchError{Index: index, Cause: CauseApplied, Line: at, EndLine: at + strings.Count(e.New, "\n")}
			} else if err.Repaired == nil && err.Cause != CauseStale {
				err.Repaired = offer(src, e, near)
			}
		}
		return Step{}, err
	}
	step := Step{Replacements: len(p.rs), Strategy: p.strategy, RecoveredCRLF: p.recovered, Line: lineAt(d.text, p.rs[0].start),
		Shallow: further(src, e, p.rs[0].start) && !spansLines(e.New), Orphan: orphan(src, e.Old, e.New, p.rs[0].end)}
	if step.Spans, err = d.put(index, e, p.rs, o); err != nil {
		return Step{}, err
	}
	if len(step.Spans) == 0 {
		return Step{}, &NoopError{index, step.Line}
	}
	return step, nil
}

// further says that the lines which New adds below begin further left than the line that Old is a part of.
func further(src *source, e Edit, at int) bool {
	pre := string(src.text[lineStart(src.text, at):at])
	first, rest, many := strings.Cut(e.New, "\n")
	if pre == "" || strings.TrimSpace(pre) != "" || !many || strings.Contains(e.Old, "\n") || strings.TrimSpace(first) == "" ||
		strings.TrimSpace(rest) == "" {
		return false
	}
	if in, _, _ := parts(first); strings.HasPrefix(e.Old, in) {
		pre += in // Old begins within the indentation
	}
	for l := range strings.SplitSeq(rest, "\n") {
		if strings.TrimSpace(l) != "" && strings.HasPrefix(l, pre) {
			return false
		}
	}
	return true
}

// applied gives the line where new stands in the text as a whole line or more, once, and 0 where it
// doesn't, or says too little.
func applied(src *source, e Edit) int {
	const least = 12
	body := strings.TrimSpace(e.New)
	if len(body) < least || strings.Contains(e.Old, body) {
		return 0
	}
	at := bytes.Index(src.text, []byte(body))
	if at < 0 || bytes.Contains(src.text[at+1:], []byte(body)) {
		return 0
	}
	l := lineFrom(src.text, at+len(body))
	if len(trimBlanks(src.text[lineStart(src.text, at):at])) > 0 || len(trimBlanks(src.text[at+len(body):l.end])) > 0 {
		return 0
	}
	return lineAt(src.text, at)
}

// tolerated gives the exact edit that does the same as a tolerant tier; nil if no tier finds one place.
func tolerated(src *source, e Edit) *Edit {
	p, err := find(src, e, false)
	if err != nil || len(p.rs) != 1 || e.All {
		return nil
	}
	return offered(src, p.rs[0])
}

// A Replacement puts With in the place of the bytes from Start to End of a text, as [Decode] gives
// it.
type Replacement struct {
	Start, End int
	With       string
}

// Splice makes replacements that the caller has found, sorted and apart from each other. sent is the text that they were made of, for
// errors. Its errors are those of Apply.
func Splice(content []byte, sent string, rs []Replacement, o Options) (*Result, error) {
	if len(rs) > MaxReplacements {
		return nil, &TooManyError{What: "replacements", Count: len(rs), Max: MaxReplacements}
	}
	d, res, err := begin(content, &o)
	if err != nil || len(rs) == 0 {
		return nil, err
	}
	step := Step{Replacements: len(rs), Strategy: StrategyPattern, Line: lineAt(d.text, rs[0].Start)}
	list := make([]replacement, len(rs))
	for i, r := range rs {
		list[i] = replacement{r.Start, r.End, r.With}
	}
	if step.Spans, err = d.put(0, Edit{New: sent}, list, o); err != nil {
		return nil, err
	}
	res.Steps, res.Replacements = []Step{step}, len(rs)
	return d.end(res), nil
}
