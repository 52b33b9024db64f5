package tools

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"

	"moltisfs/internal/args"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/session"
	"moltisfs/readers"
)

// ReadArgs are the arguments of Read.
type ReadArgs struct {
	FilePath   string  `json:"file_path" doc:"absolute"`
	Offset     *int    `json:"offset,omitempty" doc:"first line, from 1; negative: from the end"`
	Limit      *int    `json:"limit,omitempty" min:"0" default:"2000" doc:"lines"`
	Pages      *string `json:"pages,omitempty" form:"pages" doc:"pages 3, 1-3,7, last or -3; a sheet; file of an archive"`
	AllowLarge *bool   `json:"allow_large,omitempty" doc:"over the size limit"`
	Encoding   *string `json:"encoding,omitempty" doc:"like cp1252, if the guess is wrong"`
	Column     *int    `json:"column,omitempty" min:"1" doc:"first character of a cut line or page"`
	Tail       *bool   `json:"tail,omitempty" doc:"the last limit lines"`
	ANSI       *bool   `json:"ansi,omitempty"`
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

// check takes 0 as an argument that is left out, as Moltis does.
func (a *ReadArgs) check() error {
	if a.Offset != nil && *a.Offset == 0 {
		a.Offset = nil
	}
	if a.Limit != nil && *a.Limit == 0 {
		a.Limit = nil
	}
	return nil
}

// Content is a payload of Read, in the kind of its reader: "text", "image", "pdf", "notebook" or "binary".
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

// brief leaves out the text of the file.
func (c *Content) brief() (Payload, []string) {
	out, left := *c, ""
	switch body := c.Body.(type) {
	case *readers.Text:
		b := *body
		b.Content, out.Body, left = "", &b, "content"
	case *readers.PDF:
		b := *body
		b.Text, out.Body, left = "", &b, "text"
	case *readers.Notebook:
		b := *body
		b.Cells, out.Body, left = []readers.Cell{}, &b, "cells"
	default:
		return c, nil
	}
	return &out, []string{left}
}

func (c *Content) Kind() string   { return c.Body.Kind() }
func (*Content) payload()         {}
func (c *Content) noted() *string { return &c.Note }

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

var readTool = define[ReadArgs](toolRow{
	Name:  "Read",
	Title: "Read a file",
	Description: "Reads text (numbered lines), images, PDFs, notebooks and documents. Long files come " +
		"in parts: pass next_offset as offset. The type is told by content.",
	Search: dialect.Search{Hint: "read a file, view an image, PDF or notebook"},
	aliases: slices.Concat(fileAliases, []args.Alias{
		{Theirs: "paths files filepaths filenames", Ours: "file_path"},
		{Theirs: "startline linestart fromline startlineoneindexed startlinenumber firstline beginline line " +
			"linenumber lineoffset start from begin", Ours: "offset"},
		{Theirs: "linecount numlines numberoflines nlines maxlines linelimit head count numlinestoread", Ours: "limit"},
		{Theirs: "endline lineend toline endlineoneindexed endlineoneindexedinclusive endlinenumber lastline " +
			"endlineinclusive stopline end to", Ours: "limit", Turn: args.LastLine},
		{Theirs: "viewrange linerange range lineranges lines", Ours: "offset", Turn: args.LineRange},
		{Theirs: "lines", Says: "true false"},
		{Theirs: "lines", Ours: "limit"},
		{Theirs: "page pagerange pagenumbers pagenumber", Ours: "pages"},
		{Theirs: "shouldreadentirefile readentirefile entirefile readfull full whole linenumbers showlinenumbers " +
			"withlinenumbers includelinenumbers numbered addlinenumbers", Says: "true false",
			Hint: "the lines are shown with numbers, from offset on, limit of them"},
		{Theirs: verbNames, Says: "view read open cat get", Hint: "leave it out"},
	}),
}, runRead)

func runRead(ctx context.Context, s *Suite, c *engine.Call, a *ReadArgs) (Payload, error) {
	out := &Content{}
	look := func(ctx context.Context, src *engine.Source) (*engine.ReadRecord, error) {
		out.FilePath, out.beside = src.Path, src.Beside
		switch src.Beside {
		case session.Unsaved, session.Diverged:
			out.BufferDiffers, out.Shown = true, "editor"
		case session.Stale:
			out.BufferDiffers, out.Shown = true, "disk"
		}
		return s.look(ctx, src, a, out)
	}
	err := c.Read(ctx, a.FilePath, look)
	if err != nil {
		return nil, err
	}
	if s.loops != nil {
		out.LoopWarning = s.loops.saw(c, a, out)
	}
	return out, nil
}

// look reads the file and gives the parts of it that are shown.
func (s *Suite) look(
	ctx context.Context, f *engine.Source, a *ReadArgs, out *Content,
) (*engine.ReadRecord, error) {
	room := s.page.Bytes
	if s.client {
		room -= notes
	}
	o := readers.Options{
		Offset: value(a.Offset), Limit: value(a.Limit), Pages: value(a.Pages), Tail: value(a.Tail), Column: value(a.Column),
		MaxBytes: int64(room), MaxLines: s.page.Lines, MaxFileBytes: s.cfg.MaxReadBytes, AllowLarge: value(a.AllowLarge),
		BinaryPolicy: s.cfg.BinaryPolicy, LineNumbers: s.cfg.LineNumbers, Encoding: value(a.Encoding), Render: value(a.Render), ANSI: value(a.ANSI),
		Source: a.Render != nil && !*a.Render,
	}
	body, err := f.Content(ctx, o)
	for tries := 0; err == nil && s.client && tries < 5; tries++ { // JSON escapes take room too
		out.Body = body
		over := s.page.Over(out.Text()) + notes/2 // some come later
		if over <= 0 {
			break
		}
		o.MaxBytes = max(512, min(o.MaxBytes-int64(over), o.MaxBytes*int64(room)/int64(room+over)))
		body, err = f.Content(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	switch b := body.(type) { // bytes of content in the answer; 0 where its text is all of it
	case *readers.Text:
		f.Given = int64(len(b.Content))
	case *readers.Image:
		f.Given = int64(len(b.Base64) / 4 * 3)
	case *readers.Binary:
		f.Given = int64(len(b.Base64) / 4 * 3)
	}
	out.Body = body
	seen := body.Seen()
	sight := &engine.ReadRecord{
		Hash: seen.Sum, Whole: seen.Whole && !seen.Lossy, Lossy: seen.Lossy,
		Unit: seen.Unit, Lines: seen.Total,
	}
	if sight.Hash == "" && s.engine.Tracks() && f.Info.Size <= max(s.cfg.MaxReadBytes,
		engine.InMemory) {
		if sight.Hash, err = f.Hash(ctx); err != nil {
			return nil, err
		}
	}
	if t, ok := body.(*readers.Text); ok && !seen.Lossy {
		sight.Encoding = t.Known(o)
	}
	for _, s := range seen.Shown {
		sight.Ranges = append(sight.Ranges, session.Range(s))
	}
	for _, s := range seen.Sources {
		sight.Sources = append(sight.Sources, session.Range(s))
	}
	return sight, nil
}

// Text is the content as Claude Code's models know it: for text the numbered
// lines and nothing else, with what a model must know besides in brackets.
func (c *Content) Text() string {
	var b lines
	switch body := c.Body.(type) {
	case *readers.Text:
		textText(&b, body)
	case *readers.Image:
		fmt.Fprintf(&b, "[%s image, %d x %d", body.Format, body.Width, body.Height)
		b.add(body.WasResized, ", shown smaller than the original %d x %d; multiply coordinates by %v", body.OriginalWidth, body.OriginalHeight, body.Scale)
		b.WriteString("]")
		b.add(body.Note != "", "\n[%s]", body.Note)
		b.add(body.NextPages != "", "\n[go on with pages %s]", body.NextPages)
	case *readers.PDF:
		pdfText(&b, body)
	case *readers.Notebook:
		notebookText(&b, body)
	case *readers.Binary:
		binaryText(&b, body)
	}
	switch c.beside {
	case session.Unsaved:
		b.WriteString("\n[this is unsaved text of the user's editor; the disk has another]")
	case session.Diverged:
		b.WriteString("\n[this is unsaved text of the user's editor; the disk has another, which " +
			"has changed too]")
	case session.Stale:
		b.WriteString("\n[this is on the disk; the user's editor still shows an earlier text]")
	}
	b.add(c.Note != "", "\n[%s]", c.Note)
	b.add(c.LoopWarning != "", "\n[%s]", c.LoopWarning)
	return b.String()
}

func textText(b *lines, t *readers.Text) {
	b.WriteString(strings.TrimSuffix(t.Content, "\n"))
	note := func(format string, args ...any) {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "["+format+"]", args...)
	}
	switch {
	case t.Empty:
		note("the file is empty")
	case t.NextOffset > 0 && t.NextColumn == 0:
		note("lines %d to %d of %s; go on with offset %d", t.StartLine, t.StartLine+t.RenderedLines-1, totalLines(t), t.NextOffset)
	}
	switch {
	case t.NextColumn > 0 && t.StartLine != 1:
		note("line %d of %s is cut; go on with offset %d, column %d", t.StartLine, totalLines(t), t.StartLine, t.NextColumn)
	case t.NextColumn > 0:
		note("line 1 of %s is cut; go on with column %d", totalLines(t), t.NextColumn)
	case t.LinesCut > 0:
		note("%s cut (%s); one of them goes on with offset %d, column %d", plural(t.LinesCut, "long line"), runs(t.CutLines), t.CutLines[0], t.CutColumn)
	}
	switch {
	case t.RunnerUp != "":
		note("read as %s, a guess; else %s", t.Encoding, t.RunnerUp)
	case t.Encoding != "" && !strings.HasPrefix(t.Encoding, "utf-8"):
		note("read as %s", t.Encoding)
	}
	if t.InvalidBytes > 0 {
		note("%s shown as \uFFFD", plural(t.InvalidBytes, "invalid byte"))
	}
	if t.ANSILines > 0 {
		note("%s shown without terminal codes and what was written over; ansi: true shows them", plural(t.ANSILines, "line"))
	}
	if t.ChangedBelow {
		note("the file changed while it was read")
	}
	if t.HiddenChars > 0 {
		note("%s hidden in this text, in %s", plural(t.HiddenChars, "invisible character"), places("line", t.HiddenLines))
	}
	if t.Note != "" {
		note("%s", t.Note)
	}
}

// places names the lines, pages or cells that have something.
func places(what string, known []int) string {
	if len(known) > 1 {
		what += "s"
	}
	return what + " " + runs(known)
}

// runs writes ascending numbers as "3, 5-8".
func runs(known []int) string {
	var s []string
	for i := 0; i < len(known); {
		j := i
		for j+1 < len(known) && known[j+1] == known[j]+1 {
			j++
		}
		if i == j {
			s = append(s, fmt.Sprint(known[i]))
		} else {
			s = append(s, fmt.Sprintf("%d-%d", known[i], known[j]))
		}
		i = j + 1
	}
	return strings.Join(s, ", ")
}

func totalLines(t *readers.Text) string {
	if t.TotalLinesAtLeast > 0 {
		return fmt.Sprintf("%d or more", t.TotalLinesAtLeast)
	}
	return fmt.Sprint(t.TotalLines)
}

func pdfText(b *lines, p *readers.PDF) {
	b.WriteString(strings.TrimSuffix(p.Text, "\n"))
	switch {
	case p.NextColumn > 0:
		fmt.Fprintf(b, "\n[the text of page %d of %d is cut; go on with pages %s, column %d]", p.PagesCut[0], p.Pages, p.NextPages, p.NextColumn)
	case p.NextPages != "":
		fmt.Fprintf(b, "\n[%d of %s; go on with pages %s]", p.RenderedPages, plural(p.Pages, "page"), p.NextPages)
	}
	b.add(len(p.PagesFailed) > 0, "\n[could not be read: pages %s]", strings.Trim(fmt.Sprint(p.PagesFailed), "[]"))
	b.add(p.HiddenChars > 0, "\n[%s hidden in this text, in %s]", plural(p.HiddenChars, "invisible character"), places("page", p.HiddenPages))
	b.add(p.Note != "", "\n[%s]", p.Note)
}

func binaryText(b *lines, n *readers.Binary) {
	fmt.Fprintf(b, "[binary file, %s, %s]", n.MediaType, size(n.Bytes))
	b.add(n.Summary != "", "\n%s", n.Summary)
	for _, l := range n.Listing {
		b.WriteString("\n" + l)
	}
	if first := max(n.StartEntry, 1); n.Entries > len(n.Listing) && len(n.Listing) > 0 {
		fmt.Fprintf(b, "\n[entries %d to %d of %d]", first, first+len(n.Listing)-1, n.Entries)
	}
	b.add(n.Base64 != "", "\n%s", n.Base64)
	b.add(n.NextOffset > 0, "\n[go on with offset %d]", n.NextOffset)
	b.add(n.Note != "", "\n[%s]", n.Note)
}

// notebookText is Claude Code's form: each cell in a tag of its id.
func notebookText(b *lines, n *readers.Notebook) {
	for _, c := range n.Cells {
		tag := ""
		switch {
		case c.Type != "code":
			tag = "<cell_type>" + c.Type + "</cell_type>"
		case n.Language != "" && n.Language != "python":
			tag = "<language>" + n.Language + "</language>"
		}
		fmt.Fprintf(b, "<cell id=%q>%s%s</cell id=%q>\n", c.ID, tag, c.Source, c.ID)
		for _, o := range c.Outputs {
			b.add(o.Text != "", "%s\n", strings.TrimSuffix(o.Text, "\n"))
			b.add(o.Base64 != "", "[%s, %d x %d]\n", o.MediaType, o.Width, o.Height)
			b.add(len(o.LeftOut) > 0, "[not shown: %s]\n", strings.Join(o.LeftOut, ", "))
		}
	}
	b.add(n.NextOffset > 0 && n.NextColumn == 0, "[cells %d to %d of %d; go on with offset %d]\n", n.StartCell, n.NextOffset-1, n.TotalCells, n.NextOffset)
	b.add(n.NextColumn > 0, "[cell %d of %d is cut; go on with offset %d, column %d]\n", n.StartCell, n.TotalCells, n.StartCell, n.NextColumn)
	b.add(n.CellsCut > 0, "[the source of %s is cut]\n", plural(n.CellsCut, "cell"))
	b.add(n.OutputsCut > 0, "[%s cut or left out]\n", plural(n.OutputsCut, "output"))
	if len(n.Incomplete) > 0 {
		fmt.Fprintf(b, "[not all of cell %s; one of them in full: offset %d, column 1]\n", runs(n.Incomplete), n.Incomplete[0])
	}
	b.add(n.HiddenChars > 0, "[%s hidden in this text, in %s]\n", plural(n.HiddenChars, "invisible character"), places("cell", n.HiddenCells))
	b.add(n.Note != "", "[%s]\n", n.Note)
}

// loops notices a session that reads the same unchanged window again and
// again (docs/internals/rulings.md, loop detection). It only warns: the content is always
// sent. It forgets at a restart, which is harmless.
type loops struct {
	mu       sync.Mutex
	sessions session.Recent[*lastRead]
}

type lastRead struct {
	key   string
	times int
}

const loopAfter = 3 // identical reads in a row

func (l *loops) saw(c *engine.Call, a *ReadArgs, out *Content) string {
	body, err := plainJSON(out.Body)
	if err != nil {
		return ""
	}
	key := fmt.Sprint(out.FilePath, value(a.Offset), value(a.Limit), value(a.Column), value(a.Tail),
		value(a.Pages), engine.HashOf(body))
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.sessions.Get(keyOf(c))
	if last == nil {
		last = &lastRead{}
		l.sessions.Set(keyOf(c), last)
	}
	if last.key != key {
		last.key, last.times = key, 0
	}
	if last.times++; last.times < loopAfter {
		return ""
	}
	return fmt.Sprintf("this is the same unchanged content, read %d times in a row; work with "+
		"what you have, or read another window", last.times)
}

// reset forgets the last Read of the session: it changed something meanwhile.
func (l *loops) reset(c *engine.Call) {
	if l != nil {
		l.sessions.End(keyOf(c))
	}
}

func keyOf(c *engine.Call) session.Key {
	return session.Key{Principal: c.Principal, Session: c.Session}
}

// blocks are the images of the content, and the bytes of a binary file.
func (c *Content) blocks() (out []dialect.Block, err error) {
	add := func(path, mediaType, encoded string) {
		data, derr := base64.StdEncoding.DecodeString(encoded)
		if err == nil {
			err = derr
		}
		if len(data) > 0 {
			out = append(out, dialect.Block{Path: path, MediaType: mediaType, Data: data})
		}
	}
	switch body := c.Body.(type) {
	case *readers.Image:
		add("", body.MediaType, body.Base64)
	case *readers.PDF:
		for i := range body.Images {
			add("", body.Images[i].MediaType, body.Images[i].Base64)
		}
	case *readers.Notebook:
		for _, cell := range body.Cells {
			for _, o := range cell.Outputs {
				add("", o.MediaType, o.Base64)
			}
		}
	case *readers.Binary:
		add(c.FilePath, body.MediaType, body.Base64)
	}
	return out, err
}
