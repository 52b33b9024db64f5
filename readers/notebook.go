package readers

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"moltisfs/internal/text"
	"moltisfs/readers/image"
	"moltisfs/readers/notebook"
	"moltisfs/readers/unreadable"
)

// Limits of a notebook's outputs. An output that is cut says so in its text.
const (
	outputBytes  = 10_000 // text of one output
	outputImages = 8      // of one answer
	maxCells     = 50_000
)

// Notebook is a Jupyter notebook as its cells. Offset, Limit and Tail count cells; Column pages within one.
type Notebook struct {
	ReadRecord `json:"-"`

	Language   string `json:"language,omitempty"`
	Format     string `json:"nbformat"` // "4.5"
	TotalCells int    `json:"total_cells"`
	StartCell  int    `json:"start_cell"` // from 1
	Cells      []Cell `json:"cells"`
	// Truncated: cells follow, or one is shown only in part. NextOffset and NextColumn are the offset and the column of
	// the next call.
	Truncated  bool `json:"truncated"`
	NextOffset int  `json:"next_offset,omitempty"`
	// OutputsCut counts outputs that were shortened or left out; CellsCut cells whose source was longer than the answer. Incomplete names the
	// cells that Column shows more of.
	OutputsCut int   `json:"outputs_cut,omitempty"`
	CellsCut   int   `json:"cells_cut,omitempty"`
	Incomplete []int `json:"incomplete_cells,omitempty"`
	// With Column one cell is shown: its source and then its outputs, counted as one text of characters, in which an image is one.
	StartColumn   int    `json:"start_column,omitempty"`
	NextColumn    int    `json:"next_column,omitempty"`
	HiddenChars   int    `json:"hidden_chars,omitempty"`
	HiddenCells   []int  `json:"hidden_cells,omitempty"` // which have them, from 1
	TokenEstimate int    `json:"token_estimate"`
	Note          string `json:"note,omitempty"`
}

// Cell is one cell. ID is its own, or "cell-N" (from 0) for notebooks that have none.
type Cell struct {
	ID             string   `json:"cell_id"`
	Type           string   `json:"cell_type"`
	Source         string   `json:"source"`
	ExecutionCount *int     `json:"execution_count,omitempty"`
	Outputs        []Output `json:"outputs,omitempty"`
}

// Output is one result of running a cell: text, an error with its traceback, or an image.
type Output struct {
	Type      string `json:"output_type"`
	Text      string `json:"text,omitempty"`
	MediaType string `json:"media_type,omitempty"`
	// LeftOut are the media types of the output's data that cannot be shown.
	LeftOut []string `json:"left_out,omitempty"`
	Base64  string   `json:"base64,omitempty"`
	Width   int      `json:"width,omitempty"`
	Height  int      `json:"height,omitempty"`
}

// Kind is "notebook".
func (*Notebook) Kind() string     { return "notebook" }
func (c *Notebook) noted() *string { return &c.Note }

// knowsNotebook looks for an object that names nbformat near its beginning or, as usual, near its end.
func knowsNotebook(f *file, o *Options) bool {
	if o.Encoding != "" {
		return false
	}
	b := bytes.TrimLeft(bytes.TrimPrefix(f.head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(b) == 0 || b[0] != '{' {
		return false
	}
	if !f.ended && !bytes.Contains(b, []byte(`"nbformat"`)) {
		tail := make([]byte, min(max(f.Size, 0), 8192))
		n, err := readAt(f.R, tail, max(f.Size, 0)-int64(len(tail)))
		if err != nil {
			return false
		}
		b = tail[:n]
	}
	return bytes.Contains(b, []byte(`"nbformat"`))
}

func readNotebook(ctx context.Context, r *Readers, f *file, o *Options) (Content, error) {
	limit := o.longest(o.window(), memoryLimit)
	raw, err := f.all(ctx, limit, "notebook", limit < memoryLimit)
	if err != nil {
		return nil, err
	}
	nb := notebook.Parse(raw)
	if nb == nil {
		return nil, errNotMine // shown as the text it is, so that nothing in it stays unseen
	}
	if len(nb.Cells) > maxCells {
		return nil, &Limit{What: "notebook", Resource: "cells", Is: int64(len(nb.Cells)), Max: maxCells}
	}
	drawing, cancel := context.WithTimeout(ctx, r.config.Deadline) // of all images; those that come too late are left out, and counted
	defer cancel()
	n := &Notebook{Format: nb.Format, Language: nb.Language, TotalCells: len(nb.Cells), Cells: []Cell{}}
	n.Sum = sum(raw)
	n.Unit, n.Total = "cell", n.TotalCells
	first := firstCell(nb.Cells, o)
	end := n.TotalCells
	if o.Limit > 0 {
		end = min(end, first-1+o.Limit)
	}
	n.StartCell = first
	room, images, attached, leftOut := int(o.MaxBytes), 0, 0, false
	i := first - 1
	for ; i < end; i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		raw := &nb.Cells[i]
		was := *n
		var s shownCell
		if o.Column > 0 {
			s = n.cellFrom(drawing, r, raw, i, o)
		} else {
			s = n.cell(drawing, r, raw, i, room, &images, o)
		}
		if len(n.Cells) > 0 && (s.used > room || s.imagesCut) {
			*n = was // it belongs to the next answer
			break
		}
		room -= s.used
		s.leftOut = s.leftOut || raw.Unknown
		attached += len(raw.Attachments)
		leftOut = leftOut || s.leftOut
		n.Cells = append(n.Cells, s.Cell)
		if s.cut {
			n.Incomplete = append(n.Incomplete, i+1)
		}
		if !s.cut && !s.leftOut && len(raw.Attachments) == 0 && o.Column <= 1 && n.NextColumn == 0 {
			n.shows(i + 1)
		}
		if s.sourced {
			n.Sources = with(n.Sources, i+1)
		}
		if o.Column > 0 {
			if n.NextColumn == 0 {
				i++
			}
			break
		}
	}
	if attached > 0 {
		n.Note = fmt.Sprintf("Not shown: %s of text cells.", unreadable.Plural(attached, "attached image"))
	}
	if attached > 0 || leftOut {
		n.Note = strings.TrimSpace(n.Note + " What is not shown is in the file's source: encoding: utf-8.")
	}
	n.Truncated = i < n.TotalCells || len(n.Incomplete) > 0
	if i < n.TotalCells && len(n.Cells) > 0 {
		n.NextOffset = i + 1
	}
	n.Whole = n.all()
	return n, nil
}

// firstCell is the number of the first cell that was asked for.
func firstCell(cells []notebook.Cell, o *Options) int {
	switch {
	case o.Tail:
		return max(lastCells(cells, o), 1)
	case o.Offset < 0:
		return max(len(cells)+max(o.Offset, -len(cells))+1, 1)
	}
	return max(o.Offset, 1)
}

// lastCells is the number of the first of the last cells: Limit of them, and no more than surely fit the answer.
func lastCells(cells []notebook.Cell, o *Options) int {
	room, first := int(o.MaxBytes), len(cells)
	for i := len(cells) - 1; i >= 0 && (o.Limit == 0 || len(cells)-i <= o.Limit); i-- {
		room -= len(cells[i].Source) + len(cells[i].ID) + 80
		for _, out := range cells[i].Outputs {
			room -= min(len(out), outputBytes) + 100
		}
		if room < 0 {
			break
		}
		first = i + 1
	}
	return first
}

// shownCell is a cell as it is shown, with the parts that were left out.
type shownCell struct {
	Cell
	used      int  // of the room, by its text
	cut       bool // some of it was left out that cellFrom shows
	sourced   bool // its source is shown whole
	leftOut   bool // something that only the file's source shows
	imagesCut bool // because the answer has as many as it may
}

func newCell(raw *notebook.Cell, index int) shownCell {
	c := Cell{ID: raw.ID, Type: raw.Type, Source: string(raw.Source), ExecutionCount: raw.Count}
	if c.ID == "" {
		c.ID = fmt.Sprintf("cell-%d", index)
	}
	return shownCell{Cell: c}
}

// cell shows one cell with its outputs shortened.
func (n *Notebook) cell(ctx context.Context, r *Readers, raw *notebook.Cell, index, room int, images *int, o *Options) shownCell {
	c := newCell(raw, index)
	if len(c.Source) > room && len(n.Cells) == 0 {
		c.Source, c.cut = unreadable.Clip(c.Source, room), true
		n.CellsCut++
	}
	c.sourced = !c.cut
	c.used = len(c.Source) + len(c.ID) + 60
	for _, out := range raw.Outputs {
		var ro notebook.Output
		if json.Unmarshal(out, &ro) != nil {
			n.OutputsCut++
			c.leftOut = true
			continue
		}
		had := *images
		shown := output(ctx, r, &ro, images, o)
		if len(shown.LeftOut) > 0 {
			n.OutputsCut++
			if had >= outputImages && strings.HasPrefix(shown.LeftOut[0], "image/") {
				c.imagesCut, c.cut = true, true
			} else {
				c.leftOut = true
			}
		}
		if !o.all && shown.shorten() {
			c.cut = true
			if len(shown.LeftOut) == 0 { // else it counts already
				n.OutputsCut++
			}
		}
		if cost := len(shown.Text) + 40; c.used+cost > room && len(n.Cells) == 0 || len(c.Outputs) >= 100 {
			n.OutputsCut++
			c.cut = true
			continue
		} else {
			c.used += cost
		}
		c.Outputs = append(c.Outputs, shown)
	}
	n.weigh(&c.Cell, index)
	return c
}

// cellFrom shows one cell from Column on, with as much of its outputs as the answer holds.
func (n *Notebook) cellFrom(ctx context.Context, r *Readers, raw *notebook.Cell, index int, o *Options) shownCell {
	c := newCell(raw, index)
	n.StartColumn = o.Column
	at, room, images := 1, int(o.MaxBytes)-len(c.ID)-60, 0 // at: the column of the next character
	// take returns the part of s that is shown: from Column on, as far as there is room.
	take := func(s string) string {
		size, chars := skipChars([]byte(s), o.Column-at)
		at += chars
		s = s[size:]
		end := min(len(s), max(room, 1))
		for end < len(s) && !utf8.RuneStart(s[end]) {
			end++
		}
		if end < len(s) {
			s = s[:end]
			n.NextColumn = at + utf8.RuneCountInString(s)
		}
		at += utf8.RuneCountInString(s)
		room -= len(s)
		return s
	}
	c.Source = take(c.Source)
	c.sourced = o.Column == 1 && n.NextColumn == 0
	for _, out := range raw.Outputs {
		if n.NextColumn > 0 {
			break
		}
		if room < 40 && at > o.Column {
			n.NextColumn = at
			break
		}
		var ro notebook.Output
		if json.Unmarshal(out, &ro) != nil {
			n.OutputsCut++
			c.leftOut = true
			continue
		}
		begins := at >= o.Column
		had := images
		shown := output(ctx, r, &ro, &images, o)
		switch {
		case shown.Base64 != "":
			if at++; at <= o.Column {
				images = had
				continue
			}
		case had >= outputImages && len(shown.LeftOut) > 0 && strings.HasPrefix(shown.LeftOut[0], "image/"):
			n.NextColumn = at
			continue
		case len(shown.LeftOut) > 0:
			n.OutputsCut++
			c.leftOut = true
		}
		long := shown.Text != ""
		if shown.Text = take(shown.Text); shown.Text == "" && (long || !begins) && shown.Base64 == "" {
			continue
		}
		room -= 40
		c.Outputs = append(c.Outputs, shown)
	}
	n.weigh(&c.Cell, index)
	return c
}

// weigh adds the tokens and the hidden characters of a shown cell.
func (n *Notebook) weigh(c *Cell, index int) {
	n.TokenEstimate += tokensOf(c.Source) + 12
	hidden := text.Hidden(c.Source)
	for _, out := range c.Outputs {
		n.TokenEstimate += tokensOf(out.Text) + imageTokens(out.Width, out.Height)
		hidden += text.Hidden(out.Text)
	}
	if hidden > 0 {
		n.HiddenChars, n.HiddenCells = n.HiddenChars+hidden, append(n.HiddenCells, index+1)
	}
}

// output prefers an image, then plain text, then any other text.
func output(ctx context.Context, r *Readers, ro *notebook.Output, images *int, o *Options) Output {
	out := Output{Type: ro.Type}
	switch {
	case ro.Type == "error":
		out.Text = ro.Name + ": " + ro.Value
		if len(ro.Traceback) > 0 {
			out.Text += "\n" + notebook.Plain(strings.Join(ro.Traceback, "\n"))
		}
	case ro.Type == "stream":
		out.Text = notebook.Plain(string(ro.Text))
	default:
		for _, kind := range []string{"image/png", "image/jpeg", "image/gif", "image/webp"} {
			data, ok := ro.Data[kind]
			if !ok {
				continue
			}
			if o.all {
				return out // it is shown as the picture
			}
			if *images >= outputImages {
				out.LeftOut = append(out.LeftOut, kind)
				break
			}
			var s notebook.Text
			if json.Unmarshal(data, &s) != nil {
				continue
			}
			if img := notebookImage(ctx, r, string(s), o); img != nil {
				*images++
				out.MediaType, out.Base64, out.Width, out.Height = img.MediaType, img.Base64, img.Width, img.Height
				out.LeftOut = nil
				return out
			}
			out.LeftOut = append(out.LeftOut, kind)
		}
		for _, kind := range []string{"text/markdown", "text/plain", "text/latex", "image/svg+xml", "text/html", "application/json"} {
			data, ok := ro.Data[kind]
			if !ok {
				continue
			}
			var s notebook.Text
			if json.Unmarshal(data, &s) != nil {
				s = notebook.Text(data)
			}
			out.Text, out.MediaType = notebook.Plain(string(s)), kind
			break
		}
		if out.MediaType == "" {
			out.LeftOut = slices.Sorted(maps.Keys(ro.Data))
			for i, kind := range out.LeftOut {
				out.LeftOut[i] = unreadable.Clip(kind, 80)
			}
			out.LeftOut = out.LeftOut[:min(len(out.LeftOut), 5)]
		}
	}
	return out
}

// shorten takes out the middle of a long text, and reports whether it was long.
func (out *Output) shorten() bool {
	if len(out.Text) <= outputBytes {
		return false
	}
	cut := len(out.Text) - outputBytes
	tail := out.Text[len(out.Text)-outputBytes/4:]
	for len(tail) > 0 && tail[0]&0xc0 == 0x80 {
		tail = tail[1:]
	}
	out.Text = unreadable.Clip(out.Text, outputBytes*3/4) + fmt.Sprintf("\n[%s left out]\n", unreadable.Bytes(int64(cut))) + tail
	return true
}

// notebookImage passes an embedded image through the image reader, so that it is checked and scaled like a file. Nil when
// it is none.
func notebookImage(ctx context.Context, r *Readers, encoded string, o *Options) *Image {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded), ""))
	if err != nil || image.FormatOf(data) == nil {
		return nil
	}
	inner := Options{ImageMaxEdge: o.ImageMaxEdge, ImageMaxBytes: o.ImageMaxBytes, MaxFileBytes: memoryLimit}
	inner.fill()
	f := &file{Source: Source{R: bytes.NewReader(data), Size: int64(len(data))}}
	if err := f.begin(); err != nil {
		return nil
	}
	defer f.release()
	c, err := readImage(ctx, r, f, &inner)
	if err != nil {
		return nil
	}
	img, _ := c.(*Image)
	return img
}
