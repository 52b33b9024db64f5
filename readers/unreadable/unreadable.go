// Package unreadable has the errors that say why a file of a known kind cannot be read. Error says what is so, Hint the next move in one
// sentence. Beside them are the words that all readers share: counted nouns, sizes, and the names that strangers chose.
package unreadable

import (
	"fmt"
	"strconv"
	"strings"
)

// RatioCap is how many bytes one compressed byte may become, once RatioFree bytes have come out. More is a bomb.
const (
	RatioCap  = 300
	RatioFree = 8 << 20
)

// Hinter is the interface of all these errors.
type Hinter interface {
	error
	Hint() string
}

// Damaged is a file of a known kind whose inside is broken.
type Damaged struct {
	What string // "PDF", "PNG image", "zip archive", …
	Why  string
}

func (e *Damaged) Error() string { return fmt.Sprintf("the %s is damaged: %s", e.What, e.Why) }

// Hint says that reading again is of no use.
func (e *Damaged) Hint() string {
	return "Reading it again will not help; get an intact copy or repair the file."
}

// Encrypted is a document that needs a password.
type Encrypted struct{ What string }

func (e *Encrypted) Error() string { return "the " + e.What + " is encrypted and needs a password" }

// Hint sends the model to the user for a copy without a password.
func (e *Encrypted) Hint() string {
	return "Ask the user for a copy without a password."
}

// Unsupported is a file of a known kind that cannot be read here.
type Unsupported struct{ What, Why, Do string }

func (e *Unsupported) Error() string { return fmt.Sprintf("%s cannot be read: %s", e.What, e.Why) }

// Hint says how to make the file readable.
func (e *Unsupported) Hint() string { return e.Do }

// Limit is a file that would cost too much to read: pixels, memory, unpacked bytes, ratio, entries, depth, time.
type Limit struct {
	What     string // the file: "image", "PDF", "archive"
	Resource string // "pixels", "memory", "unpacked bytes", "compression ratio", "entries", "depth", "time"
	Is, Max  int64  // 0 when unknown
	Do       string // the next move, where it is another than the usual one
}

func (e *Limit) Error() string {
	switch {
	case e.Resource == "compression ratio":
		return fmt.Sprintf("the %s unpacks to more than %d times its size", e.What, e.Max)
	case e.Is > 0:
		return fmt.Sprintf("the %s needs %s %s; the limit is %s", e.What, Number(e.Is), e.Resource, Number(e.Max))
	case e.Max > 0:
		return fmt.Sprintf("the %s goes over the limit of %s %s", e.What, Number(e.Max), e.Resource)
	}
	return fmt.Sprintf("the %s goes over its limit of %s", e.What, e.Resource)
}

// Hint says how to ask for less.
func (e *Limit) Hint() string {
	switch {
	case e.Do != "":
		return e.Do
	case e.What == "PDF":
		return "Ask for fewer pages; if one page alone fails, the file cannot be read here."
	case e.What == "image":
		return "Make a smaller version of the image first."
	}
	return "Unpack it with other tools and read the part you need."
}

// Bytes writes a size: "12 bytes", "20 KB".
func Bytes(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 10<<10:
		return Number(n) + " bytes"
	case n < 10<<20:
		return strconv.FormatInt(n>>10, 10) + " KB"
	}
	return strconv.FormatInt(n>>20, 10) + " MB"
}

// Number writes 1234567 as 1,234,567.
func Number(n int64) string {
	s := strconv.FormatInt(n, 10)
	from := 0
	if n < 0 {
		from = 1
	}
	for i := len(s) - 3; i > from; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural counts a noun: "1 page", "1,200 entries".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "ry"); ok {
		noun = stem + "rie"
	}
	return Number(int64(n)) + " " + noun + "s"
}

// Entry shows a name from inside an archive. Such names come from strangers: they are quoted when they hold
// anything that does not show, and cut.
func Entry(name string, size int64) string {
	return Clip(Graphic(name), 1000) + " (" + Bytes(size) + ")"
}

// Graphic is a stranger's name, quoted when it holds anything that does not show.
func Graphic(name string) string {
	if q := strconv.QuoteToGraphic(name); q != `"`+name+`"` {
		return q
	}
	return name
}

// Clip cuts a string to n bytes at a character.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n] + "…"
}
