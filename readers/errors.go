package readers

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"moltisfs/readers/unreadable"
)

// Hinter is the interface of all errors of this package: Error is the fact, Hint the next move in one sentence.
type Hinter = unreadable.Hinter

// The errors of a file of a known kind that cannot be read. All have What, the file: "image", "PDF". Damaged
// and Unsupported have Why, Unsupported what to Do; Limit has Resource ("pixels"), Is and Max.
type (
	Damaged     = unreadable.Damaged
	Encrypted   = unreadable.Encrypted
	Unsupported = unreadable.Unsupported
	Limit       = unreadable.Limit
)

// BadRequest is an argument that cannot be meant.
type BadRequest struct{ Field, Why, Do string }

func (e *BadRequest) Error() string { return fmt.Sprintf("%s cannot be used: %s", e.Field, e.Why) }

// Hint says how to ask instead.
func (e *BadRequest) Hint() string { return e.Do }

// endUnreachable refuses to pass the last line that can be read off as the last one.
func endUnreachable(o *Options, why string) error {
	field := "tail"
	if o.Offset < 0 {
		field = "a negative offset"
	}
	return &BadRequest{Field: field, Why: why, Do: "Unpack or copy it with another tool and read the end of that, or read on from the beginning with offset."}
}

// TooLarge is a file above MaxFileBytes that was not asked for in parts, or one that is too large for its kind even so.
type TooLarge struct {
	Size, Max int64  // bytes; Size is 0 when the file does not say
	What      string // "file", "image file", …
	Windowed  bool   // whether a part of it could be had
}

func (e *TooLarge) Error() string {
	if e.Size == 0 {
		return fmt.Sprintf("the %s is longer than %s", e.What, unreadable.Bytes(e.Max))
	}
	size, limit := unreadable.Bytes(e.Size), unreadable.Bytes(e.Max)
	if size == limit { // a little too large
		size, limit = unreadable.Number(e.Size)+" bytes", unreadable.Number(e.Max)
	}
	return fmt.Sprintf("the %s has %s; the limit is %s", e.What, size, limit)
}

// Hint names the arguments that get a part of the file.
func (e *TooLarge) Hint() string {
	switch {
	case e.Windowed && e.What == "PDF":
		return fmt.Sprintf(`Ask for some of its pages, at most %d in one call, like pages: "1-%d".`, MaxPages, MaxPages)
	case e.Windowed:
		return "Ask for a part with offset and limit, read the end with tail, or search it with Grep."
	case e.What == "notebook":
		return "Read its text in parts, with encoding: utf-8, offset and limit, or search it with Grep."
	}
	return "It cannot be read in parts; make a smaller version of it first."
}

// BadPages is a page list that cannot be read or does not fit the document.
type BadPages struct {
	Pages  string
	Why    string
	Total  int      // pages in the document; 0 when it was not opened
	Sheets []string // of a spreadsheet, which has sheets in place of pages
}

func (e *BadPages) Error() string { return fmt.Sprintf("pages %q: %s", e.Pages, e.Why) }

// Hint shows a list that would be taken.
func (e *BadPages) Hint() string {
	if len(e.Sheets) > 0 {
		return "Give the name of a sheet: " + sheetNames(e.Sheets) + "."
	}
	if e.Total > 0 {
		return fmt.Sprintf(`The document has %s; ask for at most %d of them, like "1-%d".`, unreadable.Plural(e.Total, "page"), MaxPages, min(e.Total, MaxPages))
	}
	return fmt.Sprintf(`Write pages like "3", "1-5", "1-3,7", "last" or "-3" for the last three, at most %d in one call.`, MaxPages)
}

// sheetNames lists up to twenty sheets.
func sheetNames(names []string) string {
	var b strings.Builder
	for i, name := range names[:min(len(names), 20)] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.QuoteToGraphic(unreadable.Clip(name, 80)))
	}
	if more := len(names) - 20; more > 0 {
		b.WriteString(" and " + unreadable.Number(int64(more)) + " more")
	}
	return b.String()
}

// BadEncoding is an encoding that is unknown, or that the file is not in.
type BadEncoding struct{ Name, Why string }

func (e *BadEncoding) Error() string { return fmt.Sprintf("encoding %q: %s", e.Name, e.Why) }

// Hint names common encodings.
func (e *BadEncoding) Hint() string {
	return "Leave encoding out to have it detected, or give one of: " + strings.Join(Encodings()[:12], ", ") + "."
}

// OutOfTime is a window of a long text that was not reached within the deadline.
type OutOfTime struct {
	Line    int   // that was being read, from 1
	Column  int   // in it, where a column was asked for; else 0
	Byte    int64 // of the file, as far as it was read
	Size    int64 // of the file; below zero when it does not say
	Unpacks bool  // it is a compressed file, and Byte counts what was unpacked
}

func (e *OutOfTime) Error() string {
	of := ""
	if e.Size > 0 {
		of = fmt.Sprintf(" (%d %% of the file)", e.Byte*100/e.Size)
	}
	at := "line " + unreadable.Number(int64(e.Line))
	if e.Column > 0 {
		at += ", column " + unreadable.Number(int64(e.Column))
	}
	return fmt.Sprintf("the time was over before what was asked for: it got to %s, %s in%s", at, unreadable.Bytes(e.Byte), of)
}

// Hint says whether to ask again.
func (e *OutOfTime) Hint() string {
	if e.Unpacks {
		return fmt.Sprintf("Ask for lines well before %d, or unpack the file with another program to read further.", e.Line)
	}
	if e.Column > 0 {
		return fmt.Sprintf("Ask for a column well before %d, or search the file with Grep.", e.Column)
	}
	return fmt.Sprintf("Ask for lines well before %d, search the file with Grep, or read its end with tail.", e.Line)
}

// Busy is a file for which no memory became free in time: others were being read.
type Busy struct {
	What   string
	Waited time.Duration
}

func (e *Busy) Error() string {
	return fmt.Sprintf("the memory for reading files was in use by other calls for %s, so the %s was not read", e.Waited.Round(time.Second/10), e.What)
}

// Hint says when to ask again.
func (e *Busy) Hint() string {
	return "Call again; read large images and documents one after the other, not side by side."
}
