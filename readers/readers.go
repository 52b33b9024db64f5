// Package readers turns the bytes of an opened file into content that a model can use: numbered text in any
// encoding, images scaled to the size that a model looks at, the text and the pages of a PDF, notebook cells, the words of
// office documents, and for everything else its media type.
//
//	rs, err := readers.New(readers.Config{})
//	defer rs.Close()
//	content, err := rs.Read(ctx, readers.Source{R: file, Size: size}, readers.Options{})
//	switch c := content.(type) {
//	case *readers.Text:  // c.Content, c.TotalLines, …
//	case *readers.Image: // c.Base64, c.Width, …
//	}
//
// What it guarantees
//   - The bytes decide the kind, never the name.
//   - It opens nothing: it reads the io.ReaderAt it was given, and a file that grows or shrinks meanwhile is read as far as
//     it was said to be long (an empty-looking one, as under /proc, up to a byte limit).
//   - Every answer is bounded: characters in a line, lines, bytes, pages, pixels, archive entries, unpacked bytes. The answer
//     counts the parts that were left out.
//   - Hostile input costs an error of this package, within the deadline of the context. PDFs are parsed in a WebAssembly
//     sandbox that can reach no file and no network.
//
// What it does not
//   - It holds no policy and knows no session. A [ReadRecord] has the parts of a file that were shown, for a caller who keeps count.
//   - It runs nothing found in a document: no macro, no script, no external reference.
//   - The estimate of tokens is an estimate.
//
// A Readers is safe for concurrent use. PDFs are read one at a time; everything else runs side by side, as far as DecoderMemory
// goes, which all Readers of a process share.
//
// HTML is shown as its source, because it is written and edited as such; with Options.Render as a person would see it. An email
// whose source hides its text (base64, quoted-printable, several parts) is shown as a person would see it; with Options.Source as
// its source. A notebook is shown as cells. Where there is another view the content's Note says how to get it.
package readers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"moltisfs/readers/image"
	"moltisfs/readers/pdf"
)

// The limits that hold where an Options field is zero.
const (
	DefaultLines         = 2000      // lines in a window
	DefaultMaxBytes      = 256 << 10 // bytes of rendered text
	DefaultMaxFileBytes  = 10 << 20  // bytes in a file that is read without being asked for a part of it
	DefaultImageMaxEdge  = 1568      // pixels on the longer side
	DefaultImageMaxBytes = 5 << 20   // bytes of an image as base64, the form in which it travels
	MaxLineChars         = 2000      // characters of a line; the rest is cut and counted
	MaxPages             = 20        // pages of a PDF in one call
	MaxPixels            = image.MaxPixels
)

// memoryLimit is the longest file that is held in memory whole. A longer one is streamed.
const memoryLimit = 32 << 20

// Config is the part of a Readers that its host decides. The zero value reads everything, and compiles the PDF engine in every
// process.
type Config struct {
	// CacheDir is a directory of our own for compiled decoders (about 20 MB). Empty, or writable by others, whose code would then
	// be run: no cache, and the first PDF of a process costs some seconds.
	CacheDir string
	// Worker is the command line of a program that calls [RunWorker] on its standard input and output: usually
	// the program itself with a hidden subcommand. It decodes AVIF and HEIC images, which are refused when this is empty.
	Worker []string
	// Deadline bounds for one call, each for itself and below any deadline of the context, the wait for room in DecoderMemory, the
	// sandbox, the worker, and the decoding of images. For a PDF it is time of the processor, and six times as much of the clock. Zero: 20 s.
	Deadline time.Duration
	// PDFMemory caps the sandbox's memory in bytes. Zero: 512 MiB. While it grows there may be 64 MiB more.
	PDFMemory int64
	// Memory is how many bytes all decoders take together; zero, and every larger value, is DecoderMemory. A file that needs more is read alone.
	Memory int64
}

// Source is an opened file.
type Source struct {
	R    io.ReaderAt
	Size int64 // as the file system says; 0 may also mean that it does not know
	// Name appears in hints and never decides anything.
	Name string
	// Denied gives the error for a file in an archive, by its name, that may not be shown; nil: all may.
	Denied func(member string) error
	// Beside opens the file whose name has suffix behind this one's, such as the write-ahead log of a database; nil, nil where there is none. nil: nothing is.
	Beside func(suffix string) (io.ReadCloser, error)
}

// Options choose the part of a file and its form. The zero value is the beginning of the file within the default limits.
type Options struct {
	Offset int // first line, from 1; negative: that many lines before the end. Binary content: first byte, from 1, or entry of the listing
	Limit  int // lines; 0: DefaultLines. Binary content: bytes
	Tail   bool
	Column int    // from 1: show the one line or cell at Offset, or the PDF's pages, from this character on, as much as the byte limit holds
	Pages  string // of a PDF: "3", "1-5", "1-3,7"; of a spreadsheet the name of a sheet, or its number, the first that is meant by either; of an archive the name of a file in it; of a large image the number of a part

	MaxBytes     int64  // rendered text; 0: DefaultMaxBytes. See [WindowBytes]
	MaxLines     int    // of text in one answer, whatever Limit says; 0: no limit
	MaxFileBytes int64  // 0: DefaultMaxFileBytes
	AllowLarge   bool   // lifts MaxFileBytes, but nothing that bounds the answer
	BinaryPolicy string // "reject" (also ""): say what it is; "base64": the bytes too
	LineNumbers  string // "arrow" (also ""), "tab" or "compact"
	Encoding     string // overrules what was detected; see [Encodings]
	Render       bool   // pages of a PDF as images; HTML and email as a person sees them
	ANSI         bool   // the codes of a terminal, and what it wrote over, are shown
	Source       bool   // an email as it is written, even where its text is encoded; Render beats it

	ImageMaxEdge  int
	ImageMaxBytes int64 // of an image as base64, which has four bytes for three of the file's

	all bool // for a search: all pages, long lines whole, no numbers and no pictures
}

// WindowBytes is the byte limit of an answer for a model with this many tokens of context: a fifth of them at four bytes
// each, clamped to 5 and 512 KB. Zero or less gives DefaultMaxBytes.
func WindowBytes(contextTokens int) int64 {
	if contextTokens <= 0 {
		return DefaultMaxBytes
	}
	if contextTokens > 1<<30 {
		contextTokens = 1 << 30
	}
	return min(max(int64(contextTokens)*4*20/100, 5<<10), 512<<10)
}

// Content is the answer of [Readers.Read]: *Text, *Image, *PDF, *Notebook or *Binary.
type Content interface {
	Kind() string // "text", "image", "pdf", "notebook", "binary"
	Seen() ReadRecord
	noted() *string
	record() *ReadRecord
}

// ReadRecord tells the caller how much of the file stands behind an answer. It is not part of the answer.
type ReadRecord struct {
	// Whole says that the answer shows all of the file (of a document: all of its text).
	Whole bool
	// Sum is the sha256 of the file in hex when all its bytes were read, shown or not; else empty.
	Sum string
	// Unit is the unit of Shown: "line" (of the file itself), "docx line" and the like (of the text made from it), "cell", "page" or
	// "byte"; "source line" when the source could have been shown and something else was; empty when nothing of the content was shown. Of them the file has Total, -1 when that is not known.
	Unit  string
	Total int
	// Shown are the units shown whole, in order. A line, cell or page that was cut is not among them.
	Shown []Span
	// Lossy says that the answer was made from the file, such as the text of a document, of a PDF or of a compressed file, or a picture: to
	// have seen all of it is not to have seen the file.
	Lossy bool
	// Sources are the cells of a notebook whose source was shown whole, in order, whatever became of their outputs.
	Sources []Span
	// Changed says that the file's length was not what Source said.
	Changed bool
}

// A Span is a run of units from 1, both ends included.
type Span struct{ First, Last int }

// shows adds the unit n, which follows those in Shown.
func (s *ReadRecord) shows(n int) { s.Shown = with(s.Shown, n) }

// with adds n to spans that end before it.
func with(spans []Span, n int) []Span {
	if k := len(spans); k > 0 && spans[k-1].Last == n-1 {
		spans[k-1].Last = n
		return spans
	}
	return append(spans, Span{n, n})
}

// all reports whether every unit was shown.
func (s *ReadRecord) all() bool {
	return s.Total > 0 && len(s.Shown) == 1 && s.Shown[0] == Span{1, s.Total}
}

// Seen returns the record itself; it makes every content type carry it.
func (s ReadRecord) Seen() ReadRecord { return s }

func (s *ReadRecord) record() *ReadRecord { return s }

// Readers reads files. Make it with New.
type Readers struct {
	config Config
	images image.Decoders
	pdfs   *pdf.Engine
	kept   kept
}

// New checks the configuration. It starts nothing: the PDF engine starts with the first PDF.
func New(c Config) (*Readers, error) {
	if c.PDFMemory < 0 || c.PDFMemory > 4<<30 {
		return nil, fmt.Errorf("a PDF memory of %d bytes is outside 0 to 4 GiB", c.PDFMemory)
	}
	if c.Deadline < 0 {
		return nil, fmt.Errorf("a deadline of %s is negative", c.Deadline)
	}
	if c.Deadline == 0 {
		c.Deadline = 20 * time.Second
	}
	c.Memory = min(cmp.Or(c.Memory, DecoderMemory), DecoderMemory)
	if c.PDFMemory == 0 {
		c.PDFMemory = min(512<<20, c.Memory)
	}
	images := image.Decoders{Worker: c.Worker, Deadline: c.Deadline, CacheDir: c.CacheDir}
	return &Readers{config: c, images: images, pdfs: pdf.New(c.PDFMemory, c.CacheDir)}, nil
}

// Close ends the PDF engine. No Read may run any more, and one after it that needs the PDF engine fails.
func (r *Readers) Close() error {
	return r.pdfs.Close()
}

// Read reads the source s as the kind that its bytes say. A bad request or a bad file is one of this package's errors;
// the context's own error, or a failing R, comes back wrapped.
func (r *Readers) Read(ctx context.Context, s Source, o Options) (c Content, err error) {
	// No panic is known. Should a stranger's file find one, it costs that file and not the caller's process.
	defer func() {
		if v := recover(); v != nil {
			c, err = nil, &Damaged{What: "file", Why: fmt.Sprintf("%s (%.120q)", gaveUp, fmt.Sprint(v))}
		}
	}()
	if err := o.check(); err != nil {
		return nil, err
	}
	asked := o
	o.fill()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f := &file{Source: s}
	if err := f.begin(); err != nil {
		return nil, fmt.Errorf("reading the beginning of the file: %w", err)
	}
	defer f.release()
	if o.Pages != "" {
		if c, is, err := r.readMember(ctx, f, &o); is || err != nil {
			return c, err
		}
	}
	err = errNotMine
	for i := 0; errors.Is(err, errNotMine); i++ {
		if inOrder[i].knows(f, &o) {
			c, err = inOrder[i].read(ctx, r, f, &o)
		}
	}
	if err != nil {
		return nil, err
	}
	c.record().Changed = f.grown
	if t, ok := c.(*Text); ok {
		t.ChangedBelow = f.grown
		t.countReplaced()
	}
	remark(f, c, &asked)
	return c, nil
}

// gaveUp is in the error that stands for a panic.
const gaveUp = "its reader gave up"

// errNotMine sends a file on to the next reader in the order: the first bytes promised what the rest does not hold.
var errNotMine = errors.New("not a file of this kind")

// reader is one row of the table of kinds.
type reader struct {
	knows func(*file, *Options) bool // from the first bytes only
	read  func(context.Context, *Readers, *file, *Options) (Content, error)
}

// inOrder is asked from top to bottom. The last row knows everything.
var inOrder = [...]reader{
	{knowsImage, readImage},
	{knowsPDF, readPDF},
	{knowsZip, readZip},
	{knowsEncrypted, refuseEncrypted},
	{knowsCompressed, readCompressed},
	{knowsNotebook, readNotebook},
	{knowsMarkup, readMarkup},
	{knowsText, readText},
	{func(*file, *Options) bool { return true }, readBinary},
}

func (o *Options) check() error {
	switch {
	case o.Limit < 0:
		return &BadRequest{Field: "limit", Why: "it is negative", Do: "Give the number of lines, or leave limit out."}
	case o.Column < 0:
		return &BadRequest{Field: "column", Why: "it is negative", Do: "Give a column from 1, or leave it out."}
	case o.Tail && o.Offset > 0:
		return &BadRequest{Field: "tail", Why: "it was given together with an offset", Do: "Give one of the two."}
	case o.Column > 0 && o.Tail:
		return &BadRequest{Field: "column", Why: "it is of one line, and tail shows several", Do: "Give the line as offset, in place of tail."}
	}
	for _, c := range []struct{ field, value, a, b, c string }{
		{"binary_policy", o.BinaryPolicy, "", "reject", "base64"},
		{"line_numbers", o.LineNumbers, "arrow", "tab", "compact"},
	} {
		if c.value != "" && c.value != c.a && c.value != c.b && c.value != c.c {
			return &BadRequest{Field: c.field, Why: fmt.Sprintf("%q is not one of its values", c.value), Do: "Correct it in the configuration."}
		}
	}
	return CheckEncoding(o.Encoding)
}

func (o *Options) fill() {
	if o.Offset < 0 {
		o.Tail = false // how many lines from the end is said
	}
	o.MaxBytes = cmp.Or(max(o.MaxBytes, 0), DefaultMaxBytes)
	o.MaxFileBytes = cmp.Or(max(o.MaxFileBytes, 0), DefaultMaxFileBytes)
	o.ImageMaxEdge = cmp.Or(max(o.ImageMaxEdge, 0), DefaultImageMaxEdge)
	o.ImageMaxBytes = cmp.Or(max(o.ImageMaxBytes, 0), DefaultImageMaxBytes)
}

// longest is the most bytes of a file that is held as a whole: up to most if a part of it is asked for, or all of it in spite of
// its length.
func (o *Options) longest(part bool, most int64) int64 {
	if part || o.AllowLarge {
		return max(o.MaxFileBytes, most)
	}
	return o.MaxFileBytes
}

// lines is how many lines of text a window has.
func (o *Options) lines() int {
	n := cmp.Or(o.Limit, DefaultLines)
	if o.MaxLines > 0 {
		n = min(n, o.MaxLines)
	}
	return n
}

// window says whether the caller asked for a part of a text.
func (o *Options) window() bool { return o.Offset != 0 || o.Limit != 0 || o.Tail || o.Column != 0 }

// fromEnd says whether the end was asked for.
func (o *Options) fromEnd() bool { return o.Tail || o.Offset < 0 }

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// RunWorker does one piece of work for a [Readers] in another process, whose Config.Worker started this one: it reads the
// request and the file from in, puts limits on its own process (on Linux: memory, processor time, no files written, no core) and
// writes the reply to out. Call it from a subcommand that does nothing else, and exit afterwards.
func RunWorker(in io.Reader, out io.Writer) error { return image.RunWorker(in, out) }
