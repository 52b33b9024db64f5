// Package replace finds a text or a pattern in whole files, and puts another in its place. It is
// pure: bytes in, bytes and a report out.
//
// A rule matches where a search finds it: package match decides. A text matches exactly, but for the
// kind of line break. Groups of a pattern are told by package regexp, and only where it finds the
// very same matches; else the file is refused. In the replacement of a pattern ${1} and ${name} are
// groups, and $${1} is the text "${1}". Encodings, byte order marks and line endings stay.
package replace

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"moltisfs/grep/match"
	"moltisfs/internal/args"
	"moltisfs/internal/edit"
	"moltisfs/internal/lazy"
)

// A Rule is a pattern and its replacement. It is safe for concurrent use.
type Rule struct {
	old, with string // as they were sent
	matcher   *match.Matcher
	spans     bool           // matches may span lines
	parts     []part         // of with, of a pattern
	groups    *regexp.Regexp // tells the groups of a match; nil: none is asked for
}

// A part of a replacement is a text, or a group.
type part struct {
	text    string
	isGroup bool
	group   int // 0 is all of the match
}

// errGroups says that what the groups of a match hold can't be told for certain.
var errGroups = args.Errorf("use simpler groups, or classes like [0-9] instead of \\d",
	"the groups of a match cannot be told")

// Compile reads a text, or with regex a pattern. The error is a *match.PatternError or an
// *args.Error.
func Compile(old, with string, regex bool) (*Rule, error) {
	r := &Rule{old: old, with: with}
	o := match.Options{CRLF: true}
	pattern := old
	switch {
	case regex:
		r.spans = strings.Contains(old, "\n") || strings.Contains(old, `\n`)
	case strings.ContainsAny(old, "\r\n"): // whatever the line breaks of a file
		r.spans = true
		pattern = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(old)
		pattern = strings.ReplaceAll(regexp.QuoteMeta(pattern), "\n", `(?:\r\n|\n|\r)`)
	default:
		o.Literal = true
	}
	if r.spans {
		o.Multiline, pattern = true, "(?-s)"+pattern
	}
	var err error
	if r.matcher, err = match.Compile(pattern, o); err != nil {
		return nil, err
	}
	if regex {
		err = r.template()
	}
	return r, err
}

var reference = lazy.Regexp(`\$?\$(\{[^{}]*\}|[0-9])`)

// template takes the replacement of a pattern apart.
func (r *Rule) template() (err error) {
	at := 0
	for _, x := range reference().FindAllStringIndex(r.with, -1) {
		ref := r.with[x[0]:x[1]]
		r.parts = append(r.parts, part{text: r.with[at:x[0]]})
		at = x[1]
		if strings.HasPrefix(ref, "$$") {
			r.parts = append(r.parts, part{text: ref[1:]})
			continue
		}
		if ref[1] != '{' {
			return args.Errorf("write ${"+ref[1:]+"} for the group, or $"+ref+" for the text",
				"replace has %s", ref)
		}
		if r.groups == nil {
			if r.groups, err = regexp.Compile("(?m)" + r.old); err != nil {
				return &match.PatternError{Pattern: r.old, Why: "groups can be told of patterns in Go's syntax only"}
			}
		}
		group, ok := r.group(ref[2 : len(ref)-1])
		if !ok {
			return args.Errorf("number its groups from 1, or write $"+ref+" for the text",
				"pattern has no group for %s of replace", ref)
		}
		r.parts = append(r.parts, part{isGroup: true, group: group})
	}
	r.parts = append(r.parts, part{text: r.with[at:]})
	return nil
}

// group gives the number of a group by its number or name; false if there is none.
func (r *Rule) group(name string) (int, bool) {
	if n, err := strconv.Atoi(name); err == nil {
		return n, n >= 0 && n <= r.groups.NumSubexp()
	}
	i := r.groups.SubexpIndex(name)
	return i, i > 0
}

// Matcher finds what the rule changes; spans says that it was compiled as match.Options.Multiline.
func (r *Rule) Matcher() (m *match.Matcher, spans bool) { return r.matcher, r.spans }

// Apply makes all replacements in a file; nil where nothing matches. Errors are those of
// [edit.Apply], and an *args.Error.
func (r *Rule) Apply(content []byte, o edit.Options) (*edit.Result, error) {
	if r.parts == nil {
		o.Strict = true
		res, err := edit.Apply(content, []edit.Edit{{Old: r.old, New: r.with, All: true}}, o)
		if _, none := errors.AsType[*edit.NoMatchError](err); none {
			return nil, nil
		}
		return res, err
	}
	text, _, err := edit.Decode(content, o.Encoding)
	if err != nil {
		return nil, err
	}
	rs, err := r.find(text)
	if err != nil || len(rs) == 0 {
		return nil, err
	}
	return edit.Splice(content, r.with, rs, o)
}

// find makes the replacements of a pattern.
func (r *Rule) find(text []byte) (out []edit.Replacement, err error) {
	breaks := "\n"
	if n := bytes.Count(text, []byte("\r\n")); n > 0 && n == bytes.Count(text, []byte("\n")) {
		breaks = "\r\n"
	}
	s := r.matcher.Scanner()
	defer r.matcher.Put(s)
	if r.spans {
		out, err = r.within(s, text, 0, len(text), breaks, nil)
	}
	for pos := 0; !r.spans && err == nil && len(out) <= edit.MaxReplacements; {
		start, end, ok := s.NextLine(text, pos)
		if !ok {
			break
		}
		out, err = r.within(s, text, start, end, breaks, out)
		i := bytes.IndexByte(text[end:], '\n')
		if i < 0 {
			break
		}
		pos = end + i + 1
	}
	return out, err
}

// within adds the replacements in a line, or in all of a text.
func (r *Rule) within(s *match.Scanner, text []byte, start, end int, breaks string,
	out []edit.Replacement) ([]edit.Replacement, error) {
	spans := s.Spans(nil, text, start, end)
	groups, err := r.groupsOf(text[start:end], start, spans)
	for i := 0; err == nil && i < len(spans); i++ {
		var b strings.Builder
		for _, p := range r.parts {
			if p.isGroup {
				b.Write(groups[i][p.group])
			} else {
				b.WriteString(strings.ReplaceAll(p.text, "\n", breaks))
			}
		}
		out = append(out, edit.Replacement{Start: spans[i][0], End: spans[i][1], With: b.String()})
	}
	return out, err
}

// groupsOf gives the groups of each match in text, which begins at this place of what spans speaks of. They are told only where the
// matches are the very same.
func (r *Rule) groupsOf(text []byte, at int, spans [][2]int) ([][][]byte, error) {
	if r.groups == nil {
		return nil, nil
	}
	found := r.groups.FindAllSubmatchIndex(text, -1)
	if !slices.EqualFunc(found, spans, func(f []int, s [2]int) bool { return f[0]+at == s[0] && f[1]+at == s[1] }) {
		return nil, errGroups
	}
	out := make([][][]byte, len(found))
	for i, f := range found {
		for g := 0; g < len(f); g += 2 {
			var v []byte
			if f[g] >= 0 {
				v = text[f[g]:f[g+1]]
			}
			out[i] = append(out[i], v)
		}
	}
	return out, nil
}
