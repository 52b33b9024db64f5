package readers

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"
	"unicode/utf16"
)

func TestEncryptedDocument(t *testing.T) {
	raw := docxOf(t, "<w:p><w:r><w:t>secret</w:t></w:r></w:p>")
	for mark, at := range map[string]int{"PK\x03\x04": 6, "PK\x01\x02": 8} {
		for i := 0; ; {
			k := bytes.Index(raw[i:], []byte(mark))
			if k < 0 {
				break
			}
			raw[i+k+at] |= 1
			i += k + 4
		}
	}
	var e *Encrypted
	if _, err := readBytes(t, raw, Options{}); !errors.As(err, &e) {
		t.Errorf("%v", err)
	}
}

// A notebook shows so many images, and says how many it does not.
func TestNotebookImages(t *testing.T) {
	var b bytes.Buffer
	must(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 4))))
	out := map[string]any{"output_type": "display_data", "data": map[string]any{"image/png": base64.StdEncoding.EncodeToString(b.Bytes())}, "metadata": map[string]any{}}
	var outputs []any
	for range outputImages + 3 {
		outputs = append(outputs, out)
	}
	raw, err := json.Marshal(map[string]any{"nbformat": 4, "nbformat_minor": 5, "metadata": map[string]any{},
		"cells": []any{map[string]any{"id": "c", "cell_type": "code", "source": "draw()", "metadata": map[string]any{}, "execution_count": 1, "outputs": outputs}}})
	must(t, err)
	n := readAs[*Notebook](t, raw, Options{})
	shown := 0
	for _, o := range n.Cells[0].Outputs {
		if o.Base64 != "" {
			shown++
		}
	}
	if shown != outputImages || n.OutputsCut != 3 {
		t.Errorf("%d images shown, %d outputs cut", shown, n.OutputsCut)
	}
}

// Of a text whose end is not known no window is the whole.
func TestPartIsNotTheWhole(t *testing.T) {
	text := strings.Repeat("a line\n", 30_000)
	unsized := Source{R: strings.NewReader(text), Size: -1}
	c, err := testReaders(t).Read(t.Context(), unsized, Options{MaxFileBytes: 105_000, Limit: 30_000, MaxBytes: 1 << 20})
	must(t, err)
	if m := c.(*Text); m.Whole || m.TotalLines >= 0 || !m.Truncated || m.RenderedLines != 15_000 {
		t.Errorf("whole %v, %d lines of %d", m.Whole, m.RenderedLines, m.TotalLines)
	}
}

// In a window of UTF-16 a line ends at U+000A and at no other character with a byte 0A in it.
func TestWindowOfUTF16(t *testing.T) {
	for _, big := range []bool{false, true} {
		raw := []byte("\xff\xfe")
		if big {
			raw = []byte("\xfe\xff")
		}
		for i := range 500 {
			for _, u := range utf16.Encode([]rune(fmt.Sprintf("line %d Ċ ਅ ਊ ఊ\n", i+1))) {
				if big {
					raw = append(raw, byte(u>>8), byte(u))
				} else {
					raw = append(raw, byte(u), byte(u>>8))
				}
			}
		}
		m := readAs[*Text](t, raw, Options{Offset: 400, Limit: 2, MaxFileBytes: 1000})
		if want := "line 400 Ċ ਅ ਊ ఊ\nline 401 Ċ ਅ ਊ ఊ\n"; plainLines(m) != want || m.TotalLines != 500 {
			t.Errorf("big-endian %v: %q of %d lines", big, plainLines(m), m.TotalLines)
		}
	}
}

// A line with bytes that are no characters, which take more room when they are shown, is shown whole
// by the pages that follow one another.
func TestColumnsOfADamagedLine(t *testing.T) {
	line := strings.Repeat("abcdefgh", 100) + "\xff" + strings.Repeat("ijklmnop", 60) + "\xfe\xfe" + strings.Repeat("é", 900)
	var shown strings.Builder
	for column, pages := 1, 0; column > 0; pages++ {
		m := readAs[*Text](t, []byte(line+"\n"), Options{Offset: 1, Column: column, MaxBytes: 301, MaxFileBytes: 1000, Encoding: "utf-8"})
		_, text, _ := strings.Cut(strings.TrimSuffix(m.Content, "\n"), "→")
		shown.WriteString(strings.TrimSuffix(text, "…"))
		if len(m.Content) > 301 || pages > 30 {
			t.Fatalf("%d bytes, page %d", len(m.Content), pages)
		}
		column = m.NextColumn
	}
	if want := strings.ToValidUTF8(line, "\uFFFD"); shown.String() != want {
		t.Errorf("%d bytes shown of %d", shown.Len(), len(want))
	}
}
