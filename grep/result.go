package grep

import (
	"fmt"
	"time"
)

// FileHit is one file of a result.
type FileHit struct {
	Path    string // canonical
	Dir     bool   // it is a directory
	ModTime time.Time
	Size    int64
	Lines   int // matching lines; 0 in FilesWithMatches, which stops at the first
	Matches int // occurrences; counted in Count and with OnlyMatching
}

// Row is one line of Content.
type Row struct {
	Path    string
	Line    int // from 1
	Text    string
	Context bool // a line around a match, not one of its own
	Column  int  // of the first match, in bytes from 1; 0 for context
	// Of a line longer than Query.MaxColumns, Text is the part around the match. It starts at byte
	// From of the line, which is Bytes long.
	Cut   bool
	From  int
	Bytes int
	// Place is set in a document. Line is then that of all its text.
	Place *Place
}

// Totals count everything that matched, whatever Limit and Offset cut away.
type Totals struct {
	Files   int
	Lines   int // matching lines; not counted in FilesWithMatches
	Matches int // occurrences; counted in Count and with OnlyMatching
	Rows    int // of Content, context included
	Scanned int // files whose content was looked at
}

// Result is the answer to a Query.
type Result struct {
	Root  string
	Files []FileHit // FilesWithMatches and Count: newest first, ties by path
	Rows  []Row     // Content: by path, then line
	// Binary are the binary files that match, by path. They are among no Files and have no Rows, but for a
	// Walk.File where no row is asked for.
	Binary    []string
	Totals    Totals
	Truncated bool // rows or files were left out by Limit or Offset
	Partial   bool // the deadline came first: the result is right, and there may be more
	Skipped   Skipped

	why error
}

// Why says why the text of Walk.File, a document, was not searched; nil: it was, or there is none.
func (r *Result) Why() error { return r.why }

// FilesResult is the answer to a GlobQuery.
type FilesResult struct {
	Root      string
	Files     []FileHit // newest first, ties by path
	Total     int
	Truncated bool
	Partial   bool
	Skipped   Skipped
	Link      string // a symbolic link that matches, the first by name: its path from the root
}

// Skipped counts the files and directories that were left out, by reason. A directory counts once, with everything below it.
// Of files and links only those count that the globs and types of the query asked for.
type Skipped struct {
	Ignored    int // files and directories under an ignore rule
	VCS        int // directories of version control systems, and ".git" files
	Links      int // symbolic links, which are not followed
	Special    int // fifos, sockets, devices
	Mounts     int // directories on other mounts
	Deep       int // directories below Walk.MaxDepth
	Denied     int // hidden by policy, never named; with globs or types only those hidden by name
	Unreadable int // files and directories that could not be opened or read
	Binary     int // binary files of which only the first 256 KiB were searched, without a match
	TooLarge   int // files over Query.MaxFileBytes
	LongLines  int // files searched in pieces, for a line (Multiline: a match) over 8 MiB
	Encoding   int // files of unknown encoding: searched as bytes
	Rules      int // ignore files that could not be read, so that their rules did not hold
	Deadline   int // files and directories that the deadline left out, or cut short
	Documents  int // documents of which no text could be made, or only a part of it
	// LateDocuments counts the documents whose text could not be made before the deadline.
	LateDocuments int
}

func (s *Skipped) add(t *Skipped) {
	s.Ignored += t.Ignored
	s.VCS += t.VCS
	s.Links += t.Links
	s.Special += t.Special
	s.Mounts += t.Mounts
	s.Deep += t.Deep
	s.Denied += t.Denied
	s.Unreadable += t.Unreadable
	s.Binary += t.Binary
	s.TooLarge += t.TooLarge
	s.LongLines += t.LongLines
	s.Encoding += t.Encoding
	s.Rules += t.Rules
	s.Deadline += t.Deadline
	s.Documents += t.Documents
	s.LateDocuments += t.LateDocuments
}

// Note is one reason of Skipped.
type Note struct {
	Reason string // a word, as the fields are called, in lower case
	Count  int
	How    string // how to have them included, or why that can't be; at most 60 characters
}

// Notes lists the reasons that occurred, in a fixed order.
func (s Skipped) Notes() []Note {
	var out []Note
	for _, n := range []Note{
		{"deadline", s.Deadline, "search a smaller part"},
		{"late_documents", s.LateDocuments, "search again: the texts that were made are kept"},
		{"documents", s.Documents, "give one as path to search it, or to learn why not"},
		{"ignored", s.Ignored, "give one as path to search it"},
		{"binary", s.Binary, "behind the first 256 KiB; give one as path to search all"},
		{"unreadable", s.Unreadable, "the system refuses or fails to read them"},
		{"denied", s.Denied, "closed by policy: only the operator can open them"},
		{"encoding", s.Encoding, "unknown: search for an ASCII part of the text"},
		{"too_large", s.TooLarge, "give one as path to search it"},
		{"long_lines", s.LongLines, "in pieces: a match over 64 KiB may be missing or cut"},
		{"rules", s.Rules, "unreadable ignore files; more may be listed than git would"},
		{"links", s.Links, "give the target as path"},
		{"mounts", s.Mounts, "give one as path to search it"},
		{"special", s.Special, "fifos, sockets and devices are never read"},
		{"deep", s.Deep, "give one as path to search it"},
		{"vcs", s.VCS, "give one as path to search it"},
	} {
		if n.Count > 0 {
			out = append(out, n)
		}
	}
	return out
}

func (n Note) String() string {
	return fmt.Sprintf("%s: %d (%s)", n.Reason, n.Count, n.How)
}
