package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/session"
	"moltisfs/readers"
)

// ReadArgs is what a model may say to Read.
type ReadArgs struct {
	FilePath   string  `json:"file_path" doc:"absolute"`
	Offset     *int    `json:"offset,omitempty" doc:"first line, from 1; negative: from the end"`
	Limit      *int    `json:"limit,omitempty" min:"0" default:"2000" doc:"lines"`
	Pages      *string `json:"pages,omitempty" form:"pages" doc:"PDF or TIFF pages: 3, 1-5 or 1-3,7; 20 a call"`
	AllowLarge *bool   `json:"allow_large,omitempty" doc:"read a file over the size limit; answers stay capped"`
	Encoding   *string `json:"encoding,omitempty" doc:"such as windows-1252, when the detected one is wrong"`
	Column     *int    `json:"column,omitempty" min:"1" doc:"first character to show of a cut line or page"`
	Tail       *bool   `json:"tail,omitempty" doc:"show the last limit lines"`
	Render     *bool   `json:"render,omitempty" doc:"true: PDF pages as images; false: source of HTML and email"`
}

func (a *ReadArgs) target() string { return a.FilePath }

func (a *ReadArgs) asked() engine.Asked {
	w := numbers("offset", a.Offset, "limit", a.Limit, "column", a.Column)
	if a.Pages != nil {
		w = strings.TrimSpace(w + " pages " + *a.Pages)
	}
	if value(a.Tail) {
		w = strings.TrimSpace(w + " tail")
	}
	return engine.Asked{Window: w}
}

// numbers is the numbers that are given, each behind its name.
func numbers(parts ...any) string {
	var b strings.Builder
	for i := 0; i < len(parts); i += 2 {
		if n, ok := parts[i+1].(*int); ok && n != nil {
			fmt.Fprintf(&b, " %s %d", parts[i], *n)
		}
	}
	return strings.TrimPrefix(b.String(), " ")
}

// given counts the bytes of content in an answer; 0 where its text is all of it.
func given(body readers.Content) int64 {
	switch b := body.(type) {
	case *readers.Text:
		return int64(len(b.Content))
	case *readers.Image:
		return int64(len(b.Base64) / 4 * 3)
	case *readers.Binary:
		return int64(len(b.Base64) / 4 * 3)
	}
	return 0
}

// check has 0 for what is left out, as Moltis does.
func (a *ReadArgs) check() error {
	if a.Offset != nil && *a.Offset == 0 {
		a.Offset = nil
	}
	if a.Limit != nil && *a.Limit == 0 {
		a.Limit = nil
	}
	return nil
}

// Content is a payload of Read: what the reader made of the file, with its
// own kind: "text", "image", "pdf", "notebook" or "binary".
type Content struct {
	FilePath string          `json:"file_path"`
	Body     readers.Content `json:"-"`
	// LoopWarning comes with the third Read of the same unchanged window in a row.
	LoopWarning string `json:"loop_warning,omitempty"`
	Note        string `json:"note,omitempty"` // which names of arguments were taken for which
	// BufferDiffers: the user's editor has another text of the file than the disk. Shown says which
	// of them this is: "editor" or "disk".
	BufferDiffers bool   `json:"buffer_differs_from_disk,omitempty"`
	Shown         string `json:"shown,omitempty"`

	beside session.BufferState
}

// inText and brief leave out the text of what was read.
func (c *Content) inText() []string {
	switch c.Body.(type) {
	case *readers.Text:
		return []string{"content"}
	case *readers.PDF:
		return []string{"text"}
	case *readers.Notebook:
		return []string{"cells"}
	case *readers.Image:
		return []string{"base64"}
	}
	return nil
}

func (c *Content) brief() (Payload, []string) {
	out := *c
	switch body := c.Body.(type) {
	case *readers.Text:
		b := *body
		b.Content, out.Body = "", &b
	case *readers.PDF:
		b := *body
		b.Text, out.Body = "", &b
	case *readers.Notebook:
		b := *body
		b.Cells, out.Body = []readers.Cell{}, &b
	default:
		return c, nil
	}
	return &out, c.inText()
}

func (c *Content) Kind() string { return c.Body.Kind() }
func (*Content) payload()       {}

// MarshalJSON splices the reader's fields behind the path.
func (c *Content) MarshalJSON() ([]byte, error) {
	type head Content
	out, err := plainJSON((*head)(c))
	if err != nil {
		return nil, err
	}
	body, err := plainJSON(c.Body)
	if err != nil || string(body) == "{}" {
		return out, err
	}
	out[len(out)-1] = ','
	return append(out, body[1:]...), nil
}

var readTool = define[ReadArgs](Tool{
	Name:  "Read",
	Title: "Read a file",
	Description: "Reads text (numbered lines), images, PDFs, notebooks and documents. Long files come " +
		"in parts: pass next_offset as offset. The type is told by content.",
	Effect: Reads,
	Search: dialect.Search{Hint: "read a file, view an image, PDF or notebook"},
	aliases: slices.Concat(fileAliases, []args.Alias{
		{Theirs: "paths files filepaths filenames", Ours: "file_path"},
		{Theirs: "startline linestart fromline startlineoneindexed startlinenumber firstline beginline line " +
			"linenumber lineoffset start from begin", Ours: "offset"},
		{Theirs: "linecount numlines numberoflines nlines maxlines linelimit head count numlinestoread", Ours: "limit"},
		{Theirs: "tail", Ours: "limit", Turn: args.TailLines},
		{Theirs: "endline lineend toline endlineoneindexed endlineoneindexedinclusive endlinenumber lastline " +
			"endlineinclusive stopline end to", Ours: "limit", Turn: args.LastLine},
		{Theirs: "viewrange linerange range lineranges lines", Ours: "offset", Turn: args.LineRange},
		{Theirs: "lines", Says: "true false"},
		{Theirs: "lines", Ours: "limit"},
		{Theirs: "page pagerange pagenumbers pagenumber", Ours: "pages"},
		{Theirs: "shouldreadentirefile readentirefile entirefile readfull full whole linenumbers showlinenumbers " +
			"withlinenumbers includelinenumbers numbered addlinenumbers", Says: "true false",
			Hint: "Read shows the lines with numbers, from offset on, limit of them"},
		{Theirs: verbNames, Says: "view read open cat get", Hint: "leave it out"},
	}),
	answers: []Payload{&Content{Body: &readers.Text{}}, &Content{Body: &readers.Image{}},
		&Content{Body: &readers.PDF{}}, &Content{Body: &readers.Notebook{}}, &Content{Body: &readers.Binary{}}},
}, runRead, func(path string, _ bool) ReadArgs { return ReadArgs{FilePath: path} })

// defaultLines is how many lines a Read shows unless told.
const defaultLines = readers.DefaultLines

func runRead(ctx context.Context, s *Suite, c *engine.Call, a *ReadArgs) (Payload, error) {
	out := &Content{}
	look := func(ctx context.Context, src *engine.Source) (*engine.Sight, error) {
		out.FilePath, out.beside = src.Path, src.Beside
		switch src.Beside {
		case session.Unsaved, session.Diverged:
			out.BufferDiffers, out.Shown = true, "editor"
		case session.Stale:
			out.BufferDiffers, out.Shown = true, "disk"
		}
		return s.look(ctx, src, a, out)
	}
	err := s.engine.Read(ctx, c, a.FilePath, look)
	if err != nil {
		return nil, err
	}
	if s.loops != nil {
		out.LoopWarning = s.loops.saw(c, a, out)
	}
	return out, nil
}

// look reads the file and says what of it was shown.
func (s *Suite) look(
	ctx context.Context, f *engine.Source, a *ReadArgs, out *Content,
) (*engine.Sight, error) {
	src := readers.Source{
		R: f.ReaderAt, Size: f.Info.Size, Name: f.Path, ID: f.Info.ID.String(),
		Changed: f.Info.ChangeTime,
	}
	body, err := s.engine.Readers().Read(ctx, src, s.readOptions(a))
	if err != nil {
		return nil, err
	}
	out.Body, f.Given = body, given(body)
	seen := body.Seen()
	sight := &engine.Sight{
		Hash: seen.Sum, Whole: seen.Whole && !seen.Lossy, Lossy: seen.Lossy,
		Unit: seen.Unit, Lines: seen.Total,
	}
	if sight.Hash == "" && s.engine.Tracks() && f.Info.Size <= max(s.cfg.MaxReadBytes,
		engine.InMemory) {
		if sight.Hash, err = f.Hash(ctx); err != nil {
			return nil, err
		}
	}
	for _, s := range seen.Shown {
		sight.Ranges = append(sight.Ranges, session.Range(s))
	}
	for _, s := range seen.Sources {
		sight.Sources = append(sight.Sources, session.Range(s))
	}
	return sight, nil
}

func (s *Suite) readOptions(a *ReadArgs) readers.Options {
	fs := s.cfg
	o := readers.Options{
		Offset: value(a.Offset), Limit: value(a.Limit), Pages: value(a.Pages), Tail: value(a.Tail),
		Column:   value(a.Column),
		MaxBytes: int64(s.page.Bytes), MaxLines: s.page.Lines, MaxFileBytes: fs.MaxReadBytes, AllowLarge: value(a.AllowLarge),
		BinaryPolicy: fs.BinaryPolicy,
		LineNumbers:  fs.LineNumbers, Encoding: value(a.Encoding), Render: value(a.Render),
		Source:       a.Render != nil && !*a.Render,
		ImageMaxEdge: fs.ImageMaxEdge,
	}
	return o
}
