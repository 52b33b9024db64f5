// Package unreadable has the errors that say why a file of a known kind cannot be read. Error says what is so, Hint the next move in one
// sentence. Beside them are the words that all readers share: counted nouns, sizes, and the names that strangers chose.
package unreadable

import "fmt"

// RatioCap is how many bytes one compressed byte may become, once RatioFree bytes have come out. What goes above is a bomb.
const (
	RatioCap  = 300
	RatioFree = 8 << 20
)

// Hinter is what all these errors are.
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

// Hint says what to do about the password.
func (e *Encrypted) Hint() string {
	return "Ask the user for a copy without a password."
}

// Unsupported is a file of a known kind that cannot be read here.
type Unsupported struct{ What, Why, Do string }

func (e *Unsupported) Error() string { return fmt.Sprintf("%s cannot be read: %s", e.What, e.Why) }

// Hint says what would make it readable.
func (e *Unsupported) Hint() string { return e.Do }

// Limit is a file that would cost too much to read: pixels, memory, unpacked bytes, ratio, entries, depth, time.
type Limit struct {
	What     string // the file: "image", "PDF", "archive"
	Resource string // "pixels", "memory", "unpacked bytes", "compression ratio", "entries", "depth", "time"
	Is, Max  int64  // 0 when unknown
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
	switch e.What {
	case "PDF":
		return "Ask for fewer pages; if one page alone fails, the file cannot be read here."
	case "image":
		return "Make a smaller version of the image first."
	}
	return "Unpack it with other tools and read the part you need."
}
