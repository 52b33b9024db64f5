package tools_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"moltisfs/readers"
	"moltisfs/tools"
)

// TestEditSeesWhatReadShows: whatever a file without a mark is taken for, Edit takes it for the same as Read, so that a line that Read
// showed is found, and a letter that stands in the file already can be written.
func TestEditSeesWhatReadShows(t *testing.T) {
	t.Parallel()
	s, root := suite(t, nil, tools.Options{})
	n, missed := 0, 0
	for _, c := range []struct {
		name string
		enc  encoding.Encoding
		text string
	}{
		{"iso-8859-1", charmap.ISO8859_1, "naïve café déjà vu, Straße, señor ¿qué?"},
		{"iso-8859-15", charmap.ISO8859_15, "naïve café 5 € déjà vu œuvre"},
		{"windows-1250", charmap.Windows1250, "Zażółć gęślą jaźń, příliš žluťoučký kůň"},
		{"windows-1251", charmap.Windows1251, "Съешь же ещё этих мягких французских булок"},
		{"windows-1252", charmap.Windows1252, "naïve café — “déjà vu” … 5 €"},
		{"windows-1253", charmap.Windows1253, "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία"},
		{"windows-1254", charmap.Windows1254, "Pijamalı hasta yağız şoföre çabucak güvendi"},
		{"koi8-r", charmap.KOI8R, "Съешь же ещё этих мягких булок"},
		{"gbk", simplifiedchinese.GBK, "我能吞下玻璃而不伤身体。价格 “引号”"},
		{"gb18030", simplifiedchinese.GB18030, "我能吞下玻璃而不伤身体。🙂 é ñ"},
		{"big5", traditionalchinese.Big5, "我能吞下玻璃而不傷身體。價格許功蓋"},
		{"shift_jis", japanese.ShiftJIS, "私はガラスを食べられます。ソ表能予ｱｲｳ"},
		{"euc-jp", japanese.EUCJP, "私はガラスを食べられます。ソ表能予"},
		{"euc-kr", korean.EUCKR, "나는 유리를 먹을 수 있어요. 그래도 아프지 않아요"},
		{"utf-16le", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "naïve café — 漢字 ☕"},
		{"utf-16le, Latin", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "naive cafe, all of it ASCII"},
		{"utf-16be", unicode.UTF16(unicode.BigEndian, unicode.UseBOM), "naïve café — 漢字 ☕"},
		{"utf-32le", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), "naïve café, Größe"},
		{"utf-32be", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), "naïve café, Größe"},
		{"damaged utf-8", encoding.Nop, "déjà vu, ça va être là \xe9 oui"},
	} {
		for _, lines := range []int{1, 3, 40} { // one word says less than a page
			for _, ascii := range []int{0, 30} {
				text := strings.Repeat("int main(void) { return 0; }\n", ascii)
				for i := range lines {
					text += fmt.Sprintf("line %d: %s\n", i+1, c.text)
				}
				raw, err := c.enc.NewEncoder().Bytes([]byte(text))
				if err != nil {
					t.Fatal(c.name, err)
				}
				file := write(t, filepath.Join(root, "f.txt"), string(raw))
				n++
				read := call(t, s, "Read", map[string]any{"file_path": file, "offset": ascii + 1})
				var seen struct{ Content, Encoding string }
				if err := json.Unmarshal([]byte(mustEncode(t, read)), &seen); err != nil {
					t.Fatal(err)
				}
				_, line, ok := strings.Cut(strings.SplitN(seen.Content, "\n", 2)[0], "→line 1: ")
				if !ok {
					t.Errorf("%s ×%d+%d: Read shows %.100q (%s)", c.name, lines, ascii, seen.Content, seen.Encoding)
					continue
				}
				if line != c.text {
					missed++
				}
				if strings.ContainsRune(line, '\ufffd') {
					continue // cannot be quoted
				}
				edited := call(t, s, "Edit", map[string]any{"file_path": file, "old_string": "line 1: " + line, "new_string": "line 1: <" + line + line + ">"})
				if tools.Refused(edited) {
					t.Errorf("%s ×%d+%d: Read took it for %s and showed %q; Edit: %s", c.name, lines, ascii, seen.Encoding, line, mustEncode(t, edited))
					continue
				}
				after, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				one, err := c.enc.NewEncoder().Bytes([]byte(c.text))
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Count(string(after), string(one)); got != lines+1 && !strings.HasPrefix(c.name, "utf-16be") {
					t.Errorf("%s ×%d+%d as %s: the line is there %d times, not %d: the letters were written as other bytes", c.name, lines, ascii, seen.Encoding, got, lines+1)
				}
			}
		}
	}
	t.Logf("%d files, %d taken for another charset than they were written in", n, missed)
}

// TestBytesThatMeanNothingAlone: in a text with escapes to other character sets the bytes of two letters may be one kanji. It is not
// edited, nor written over in another encoding by chance. Who says what it is to be is obeyed.
func TestBytesThatMeanNothingAlone(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	jis, err := japanese.ISO2022JP.NewEncoder().String("設定ファイル\nplain\n")
	if err != nil {
		t.Fatal(err)
	}
	hz, err := simplifiedchinese.HZGB2312.NewEncoder().String("己所不欲\nplain\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string]string{"iso-2022-jp": jis, "hz-gb-2312": hz, "iso-2022": "\x1b$)C\x0e0!3*\x0f\nplain\n"} {
		file := write(t, filepath.Join(root, name), raw)
		for tool, args := range map[string]map[string]any{
			"Edit":      {"old_string": "plain", "new_string": "x"},
			"MultiEdit": {"edits": []any{map[string]any{"old_string": "plain", "new_string": "x"}}},
			"Write":     {"content": "x\n"},
		} {
			args["file_path"] = file
			if p := call(t, s, tool, args); p.Kind() != tools.KindUnsupported || content(t, file) != raw || !strings.Contains(p.Text(), name) {
				t.Errorf("%s, %s: %s", name, tool, mustEncode(t, p))
			}
			if args["encoding"] = name; name != "iso-2022" {
				if p := call(t, s, tool, args); p.Kind() != tools.KindUnsupported || content(t, file) != raw {
					t.Errorf("%s, %s: %s", name, tool, mustEncode(t, p))
				}
			}
			args["encoding"] = "utf-8"
			if p := call(t, s, tool, args); tools.Refused(p) {
				t.Errorf("%s, %s: %s", name, tool, mustEncode(t, p))
			}
			write(t, file, raw)
		}
	}
	// Escapes that only colour or reset a terminal are no such thing.
	for _, raw := range []string{"\x1b[1mplain\x1b(B\x1b[m\n", "~{a plain} and ~}\n", "plain ~{\n"} {
		file := write(t, filepath.Join(root, "log"), raw)
		if p := call(t, s, "Edit", map[string]any{"file_path": file, "old_string": "plain", "new_string": "x"}); tools.Refused(p) {
			t.Errorf("%q: %s", raw, mustEncode(t, p))
		}
	}
}

// TestRefutedGuess: where the file has bytes that are none of the encoding that was guessed, new letters beyond ASCII are not written by that guess.
// ASCII is, and whoever names the encoding is obeyed.
func TestRefutedGuess(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	german := "Die Richtlinien f\u00fcr Gr\u00f6\u00dfe und sch\u00f6ne \u00dcbung w\u00e4ren\nzweite Zeile\n"
	refuted := 0
	for name, c := range map[string]struct {
		enc             encoding.Encoding
		raw, text, word string
	}{
		"ibm850": {charmap.CodePage850, "", german, "f\u00fcr \u00dcbung"}, "ibm437": {charmap.CodePage437, "", german, "f\u00fcr"}, "ibm852": {charmap.CodePage852, "", german, "f\u00fcr"},
		"macintosh": {charmap.Macintosh, "", german, "f\u00fcr"}, "windows-1252": {charmap.Windows1252, "", german, "f\u00fcr"},
		"shift_jis": {japanese.ShiftJIS, "\xff damaged\n", content(t, "../testdata/readers/encoding/japanese.txt") + "zweite Zeile\n", "保存"},
		"gbk":       {simplifiedchinese.GBK, "\xff damaged\n", content(t, "../testdata/readers/encoding/chinese.txt") + "zweite Zeile\n", "保存"},
	} {
		raw, err := c.enc.NewEncoder().String(c.text)
		if err != nil {
			t.Fatal(err)
		}
		raw += c.raw
		file := write(t, filepath.Join(root, name), raw)
		body, ok := call(t, s, "Read", map[string]any{"file_path": file}).(*tools.Content).Body.(*readers.Text)
		if !ok || body.InvalidBytes == 0 || body.Encoding == "utf-8" {
			continue // the guess holds
		}
		refuted++
		for tool, args := range map[string]map[string]any{
			"Edit":      {"old_string": "zweite", "new_string": c.word},
			"MultiEdit": {"edits": []any{map[string]any{"old_string": "zweite", "new_string": "dritte"}, map[string]any{"old_string": "dritte", "new_string": c.word}}},
			"Write":     {"content": c.word + "\n"},
		} {
			args["file_path"] = file
			if p := call(t, s, tool, args); !tools.Refused(p) || content(t, file) != raw || !strings.Contains(p.Text(), "encoding") {
				t.Errorf("%s, %s: %s", name, tool, mustEncode(t, p))
			}
			args["encoding"] = name
			want, _ := c.enc.NewEncoder().String(c.word)
			if p := call(t, s, tool, args); tools.Refused(p) || !strings.Contains(content(t, file), want) {
				t.Errorf("%s, %s, named: %s", name, tool, mustEncode(t, p))
			}
			write(t, file, raw)
		}
		if p := call(t, s, "Edit", map[string]any{"file_path": file, "old_string": "zweite", "new_string": "ASCII"}); tools.Refused(p) ||
			content(t, file) != strings.Replace(raw, "zweite", "ASCII", 1) {
			t.Errorf("%s, ASCII: %s", name, mustEncode(t, p))
		}
	}
	if refuted == 0 {
		t.Error("no guess was refuted")
	}
}

// TestGBKStaysGBK: a file whose characters have two bytes at most gets none of four, which readers of GBK stop at.
func TestGBKStaysGBK(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	text := content(t, "../testdata/readers/encoding/chinese.txt") + "\nend\n"
	two, err := simplifiedchinese.GBK.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	four, err := simplifiedchinese.GB18030.NewEncoder().String("😀" + text)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		raw, word string
		fits      bool
	}{
		"emoji": {two, "// \u2705", false}, "astral": {two, "\U0001F600", false}, "no GBK": {two, "\u0e01", false},
		"accents of GBK": {two, "\u00e9 \u4fdd", true}, "four already": {four, "\u2705", true},
	} {
		file := write(t, filepath.Join(root, name), c.raw)
		for tool, args := range map[string]map[string]any{"Edit": {"old_string": "end", "new_string": c.word}, "Write": {"content": text + c.word}} {
			args["file_path"] = file
			p := call(t, s, tool, args)
			if tools.Refused(p) == c.fits || !c.fits && (content(t, file) != c.raw || !strings.Contains(p.Text(), "gbk")) {
				t.Errorf("%s, %s: %s", name, tool, mustEncode(t, p))
			}
			if back, err := simplifiedchinese.GB18030.NewDecoder().String(content(t, file)); c.fits && (err != nil || !strings.Contains(back, c.word)) {
				t.Errorf("%s, %s: the file reads %q", name, tool, back)
			}
			write(t, file, c.raw)
		}
	}
}
