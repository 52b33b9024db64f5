package tools

import (
	"fmt"
	"strings"

	"moltisfs/internal/session"
	"moltisfs/readers"
)

// Text is the content as Claude Code's models know it: for text the numbered
// lines and nothing else, with what a model must know besides in brackets.
func (c *Content) Text() string {
	var b strings.Builder
	switch body := c.Body.(type) {
	case *readers.Text:
		textText(&b, body)
	case *readers.Image:
		fmt.Fprintf(&b, "[%s image, %d x %d", body.Format, body.Width, body.Height)
		if body.WasResized {
			fmt.Fprintf(&b, ", shown smaller than the original %d x %d; multiply coordinates by %v", body.OriginalWidth, body.OriginalHeight, body.Scale)
		}
		b.WriteString("]")
		bracket(&b, body.Note)
		if body.NextPages != "" {
			b.WriteString("\n[go on with pages " + body.NextPages + "]")
		}
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
	if c.Note != "" {
		b.WriteString("\n[" + c.Note + "]")
	}
	if c.LoopWarning != "" {
		b.WriteString("\n[" + c.LoopWarning + "]")
	}
	return b.String()
}

func textText(b *strings.Builder, t *readers.Text) {
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
	if t.Encoding != "" && !strings.HasPrefix(t.Encoding, "utf-8") {
		note("read as %s", t.Encoding)
	}
	if t.InvalidBytes > 0 {
		note("%s shown as \uFFFD", plural(t.InvalidBytes, "invalid byte"))
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

func pdfText(b *strings.Builder, p *readers.PDF) {
	b.WriteString(strings.TrimSuffix(p.Text, "\n"))
	switch {
	case p.NextColumn > 0:
		fmt.Fprintf(b, "\n[the text of page %d of %d is cut; go on with pages %s, column %d]", p.PagesCut[0], p.Pages, p.NextPages, p.NextColumn)
	case p.NextPages != "":
		fmt.Fprintf(b, "\n[%d of %s; go on with pages %s]", p.RenderedPages, plural(p.Pages, "page"), p.NextPages)
	}
	if len(p.PagesFailed) > 0 {
		fmt.Fprintf(b, "\n[could not be read: pages %s]", strings.Trim(fmt.Sprint(p.PagesFailed), "[]"))
	}
	if p.HiddenChars > 0 {
		fmt.Fprintf(b, "\n[%s hidden in this text, in %s]", plural(p.HiddenChars, "invisible character"), places("page", p.HiddenPages))
	}
	bracket(b, p.Note)
}

// bracket writes a reader's note on a line of its own.
func bracket(b *strings.Builder, note string) {
	if note != "" {
		b.WriteString("\n[" + note + "]")
	}
}

func binaryText(b *strings.Builder, n *readers.Binary) {
	fmt.Fprintf(b, "[binary file, %s, %s]", n.MediaType, size(n.Bytes))
	if n.Summary != "" {
		b.WriteString("\n" + n.Summary)
	}
	for _, l := range n.Listing {
		b.WriteString("\n" + l)
	}
	if first := max(n.StartEntry, 1); n.Entries > len(n.Listing) && len(n.Listing) > 0 {
		fmt.Fprintf(b, "\n[entries %d to %d of %d]", first, first+len(n.Listing)-1, n.Entries)
	}
	if n.Base64 != "" {
		b.WriteString("\n" + n.Base64)
	}
	if n.NextOffset > 0 {
		fmt.Fprintf(b, "\n[go on with offset %d]", n.NextOffset)
	}
	bracket(b, n.Note)
}

// notebookText is Claude Code's form: each cell in a tag of its id.
func notebookText(b *strings.Builder, n *readers.Notebook) {
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
			if o.Text != "" {
				b.WriteString(strings.TrimSuffix(o.Text, "\n") + "\n")
			}
			if o.Base64 != "" {
				fmt.Fprintf(b, "[%s, %d x %d]\n", o.MediaType, o.Width, o.Height)
			}
			if len(o.LeftOut) > 0 {
				fmt.Fprintf(b, "[not shown: %s]\n", strings.Join(o.LeftOut, ", "))
			}
		}
	}
	if n.NextOffset > 0 && n.NextColumn == 0 {
		fmt.Fprintf(b, "[cells %d to %d of %d; go on with offset %d]\n", n.StartCell, n.NextOffset-1, n.TotalCells, n.NextOffset)
	}
	if n.NextColumn > 0 {
		fmt.Fprintf(b, "[cell %d of %d is cut; go on with offset %d, column %d]\n", n.StartCell, n.TotalCells, n.StartCell, n.NextColumn)
	}
	if n.CellsCut > 0 {
		fmt.Fprintf(b, "[the source of %s is cut]\n", plural(n.CellsCut, "cell"))
	}
	if n.OutputsCut > 0 {
		fmt.Fprintf(b, "[%s cut or left out]\n", plural(n.OutputsCut, "output"))
	}
	if len(n.Incomplete) > 0 {
		fmt.Fprintf(b, "[not all of cell %s; one of them in full: offset %d, column 1]\n", runs(n.Incomplete), n.Incomplete[0])
	}
	if n.HiddenChars > 0 {
		fmt.Fprintf(b, "[%s hidden in this text, in %s]\n", plural(n.HiddenChars, "invisible character"), places("cell", n.HiddenCells))
	}
	if n.Note != "" {
		fmt.Fprintf(b, "[%s]\n", n.Note)
	}
}
