package tools_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	utf "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"moltisfs/config"
	"moltisfs/readers"
	"moltisfs/tools"
)

// The call that gets a part of a file which is too large is the one that was made, but for its window; the sizes differ where they are told.
func TestTooLargeGoesOnAsAsked(t *testing.T) {
	s, root := suite(t, func(c *config.FS) { c.MaxReadBytes = 20 << 10 }, tools.Options{})
	page := write(t, filepath.Join(root, "p.html"), "<!doctype html><p>x</p>"+strings.Repeat("<p>long</p>\n", 20<<10/12))
	r, ok := call(t, s, "Read", map[string]any{"file_path": page, "render": true, "encoding": "utf-8"}).(*tools.Refusal)
	if !ok || r.Kind() != tools.KindTooLarge || r.Next == nil || r.Next.Args["render"] != true || r.Next.Args["encoding"] != "utf-8" || r.Next.Args["offset"] != 1 {
		t.Fatalf("%+v", r)
	}
	if !strings.Contains(r.Message, "the limit is 20,480") || strings.Contains(r.Message, "KB") {
		t.Errorf("%q", r.Message)
	}
	if p := call(t, s, "Read", r.Next.Args); p.Kind() != "text" {
		t.Errorf("the next call: %s", p.Text())
	}
}

// A notebook of which an output was shortened is not overwritten unseen. Its source, read whole, is what it takes.
func TestNotebookWithCutOutputsIsNotWhollySeen(t *testing.T) {
	s, root := suite(t, func(c *config.FS) { c.MustReadBeforeWrite, c.TrackReads = true, true }, tools.Options{})
	out := func(n int) string { return strings.Repeat("0123456789", n) }
	for _, c := range []struct {
		name, output string
		whole        bool
	}{{"short.ipynb", out(10), true}, {"long.ipynb", out(2000), false}} {
		file := write(t, filepath.Join(root, c.name), `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"cell_type":"code","id":"a","metadata":{},"source":"x",`+
			"\n"+`"outputs":[{"output_type":"stream","name":"stdout","text":"`+c.output[:len(c.output)/2]+`\n`+c.output[len(c.output)/2:]+`"}]}]}`)
		overwrite := map[string]any{"file_path": file, "content": `{"cells":[],"nbformat":4}`, "dry_run": true}
		call(t, s, "Read", map[string]any{"file_path": file})
		if p := call(t, s, "Write", overwrite); (p.Kind() == "write") != c.whole {
			t.Errorf("%s after its cells: %s", c.name, p.Text())
		}
		call(t, s, "Read", map[string]any{"file_path": file, "encoding": "utf-8"})
		if p := call(t, s, "Read", map[string]any{"file_path": file, "encoding": "utf-8", "offset": 2, "column": 1}); strings.Contains(p.Text(), " cut") {
			t.Fatalf("%s: %.200s", c.name, p.Text())
		}
		if p := call(t, s, "Write", overwrite); p.Kind() != "write" {
			t.Errorf("%s after its source: %s", c.name, p.Text())
		}
	}
}

// TestBytesThatMeanNothingAlone: in a text with escapes to other character sets the bytes of two letters may be one kanji. It is not
// edited, nor written over in another encoding by chance. Who says what it is to be is obeyed.
func TestBytesThatMeanNothingAlone(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	jis, err := japanese.ISO2022JP.NewEncoder().String("設定ファイル\nplain\n")
	must(t, err)
	hz, err := simplifiedchinese.HZGB2312.NewEncoder().String("己所不欲\nplain\n")
	must(t, err)
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
			does(t, s, tool, args)
			write(t, file, raw)
		}
	}
	// Escapes that only colour or reset a terminal are no such thing.
	for _, raw := range []string{"\x1b[1mplain\x1b(B\x1b[m\n", "~{a plain} and ~}\n", "plain ~{\n"} {
		file := write(t, filepath.Join(root, "log"), raw)
		does(t, s, "Edit", map[string]any{"file_path": file, "old_string": "plain", "new_string": "x"})
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
		must(t, err)
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

var written = []struct {
	name, language string // the name is the argument that Read and Edit take
	codec          encoding.Encoding
	mark           string
}{
	{"utf-8", "chinese", encoding.Nop, ""},
	{"utf-8", "turkish", encoding.Nop, "\xef\xbb\xbf"},
	{"utf-16le", "english", utf.UTF16(utf.LittleEndian, utf.IgnoreBOM), "\xff\xfe"},
	{"utf-16be", "greek", utf.UTF16(utf.BigEndian, utf.IgnoreBOM), "\xfe\xff"},
	{"utf-16le", "russian", utf.UTF16(utf.LittleEndian, utf.IgnoreBOM), ""},
	{"utf-16be", "japanese", utf.UTF16(utf.BigEndian, utf.IgnoreBOM), ""},
	{"utf-32le", "french", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), ""},
	{"utf-32be", "german", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), ""},
	{"windows-1252", "french", charmap.Windows1252, ""},
	{"windows-1252", "german", charmap.Windows1252, ""},
	{"iso-8859-1", "spanish", charmap.ISO8859_1, ""},
	{"iso-8859-15", "french", charmap.ISO8859_15, ""},
	{"windows-1252", "swedish", charmap.Windows1252, ""},
	{"windows-1250", "polish", charmap.Windows1250, ""},
	{"iso-8859-2", "czech", charmap.ISO8859_2, ""},
	{"windows-1250", "hungarian", charmap.Windows1250, ""},
	{"windows-1251", "russian", charmap.Windows1251, ""},
	{"windows-1251", "ukrainian", charmap.Windows1251, ""},
	{"koi8-r", "russian", charmap.KOI8R, ""},
	{"ibm866", "russian", charmap.CodePage866, ""},
	{"iso-8859-5", "russian", charmap.ISO8859_5, ""},
	{"windows-1253", "greek", charmap.Windows1253, ""},
	{"iso-8859-7", "greek", charmap.ISO8859_7, ""},
	{"windows-1254", "turkish", charmap.Windows1254, ""},
	{"windows-1255", "hebrew", charmap.Windows1255, ""},
	{"windows-1256", "arabic", charmap.Windows1256, ""},
	{"gb18030", "chinese", simplifiedchinese.GBK, ""},
	{"big5", "taiwanese", traditionalchinese.Big5, ""},
	{"shift_jis", "japanese", japanese.ShiftJIS, ""},
	{"euc-jp", "japanese", japanese.EUCJP, ""},
	{"iso-2022-jp", "japanese", japanese.ISO2022JP, ""},
	{"euc-kr", "korean", korean.EUCKR, ""},
	{"windows-874", "thai", charmap.Windows874, ""},
}

// ofLength cuts a language's text to one of four lengths: two KB, a sentence, fifteen characters, code with comments.
func ofLength(text, length string) string {
	sentences := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(".。", r) })
	if len(sentences) < 3 {
		sentences = strings.Fields(text) // Thai has blanks where others have full stops
	}
	switch length {
	case "2 KB":
		for len(text) < 2048 {
			text += text
		}
		return text
	case "sentence":
		return strings.TrimSpace(sentences[1]) + ".\n"
	case "15 characters":
		r := []rune(strings.TrimSpace(sentences[2]))
		return string(r[:15]) + "\n"
	}
	var b strings.Builder
	for i, s := range sentences[:3] {
		fmt.Fprintf(&b, "// %s\nfunc step%d(values []int) int {\n\treturn len(values) + %d\n}\n\n", strings.TrimSpace(s), i, i)
	}
	return b.String()
}

// The original may hold marks that a code page lacks; they are not the point.
func plainFor(e encoding.Encoding, text string) string {
	text = strings.NewReplacer("„", `"`, "“", `"`, "”", `"`, "«", `"`, "»", `"`, "–", "-", "—", "-", "œ", "oe", "’", "'").Replace(text)
	var b strings.Builder
	for _, r := range text {
		if _, err := e.NewEncoder().String(string(r)); err == nil {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// needle is a stretch of letters of the language that stands once in the text; "" when there is none.
func needle(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
	for _, w := range words {
		if r := []rune(w); len(r) > 12 {
			w = string(r[:12])
		}
		foreign := strings.IndexFunc(w, func(r rune) bool { return r > 0x7f }) >= 0
		if foreign && utf8.RuneCountInString(w) >= 2 && strings.Count(text, w) == 1 {
			return w
		}
	}
	return ""
}

// rendered gives lines as Read shows them.
func rendered(text string) string {
	var b strings.Builder
	for i, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		fmt.Fprintf(&b, "%6d→%s\n", i+1, l)
	}
	return b.String()
}

// Text in the encodings of the world is read, found and edited, and an edit leaves every other byte alone. What was written is guessed
// right in most cases, and read right in all when the encoding is said.
func TestEncodingsOfTheWorld(t *testing.T) {
	t.Parallel()
	s, root := suite(t, func(fs *config.FS) { fs.EditMatching = "strict" }, tools.Options{})
	samples, detected, found, searched := 0, 0, 0, 0
	var missed, unfound, guessed []string
	for _, w := range written {
		raw, err := os.ReadFile(filepath.Join("../testdata/readers/encoding", w.language+".txt"))
		must(t, err)
		for _, length := range []string{"2 KB", "sentence", "15 characters", "code"} {
			name := fmt.Sprintf("%s %s, %s", w.name, w.language, length)
			text := ofLength(plainFor(w.codec, string(raw)), length)
			body, err := w.codec.NewEncoder().String(text)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			before := []byte(w.mark + body)
			file := write(t, fmt.Sprintf("%s/%03d.txt", root, samples), string(before))
			samples++

			field := func(p tools.Payload, key string) string {
				v, _ := decodePayload(t, p)[key].(string)
				return v
			}
			want := rendered(text)
			shown := field(call(t, s, "Read", map[string]any{"file_path": file}), "content")
			if shown == want {
				detected++
			} else {
				missed = append(missed, name)
			}
			// Edit takes the file for the same as Read.
			if _, line, _ := strings.Cut(strings.SplitN(shown, "\n", 2)[0], "→"); !strings.ContainsRune(line, '\ufffd') && w.name != "iso-2022-jp" {
				if p := call(t, s, "Edit", map[string]any{"file_path": file, "old_string": line, "new_string": line + line, "dry_run": true, "replace_all": true}); tools.Refused(p) {
					t.Errorf("%s: Read shows %q; Edit: %s", name, line, p.Text())
				}
			}
			told := call(t, s, "Read", map[string]any{"file_path": file, "encoding": w.name})
			if got := field(told, "content"); got != want {
				t.Errorf("%s: with the encoding said\n%.200q\nwant\n%.200q", name, got, want)
			}
			word := needle(text)
			if word == "" {
				continue
			}
			searched++
			if hit := call(t, s, "Grep", map[string]any{"pattern": word, "path": file}); strings.Contains(mustEncode(t, hit), file) && !tools.Refused(hit) && strings.Contains(hit.Text(), filepath.Base(file)) {
				found++
			} else {
				unfound = append(unfound, name)
			}
			if dry := call(t, s, "Edit", map[string]any{"file_path": file, "old_string": word, "new_string": "X", "dry_run": true}); tools.Refused(dry) && w.name != "iso-2022-jp" {
				guessed = append(guessed, name)
			}
			p := call(t, s, "Edit", map[string]any{"file_path": file, "old_string": word, "new_string": "X", "encoding": w.name})
			if w.name == "iso-2022-jp" {
				// Stateful: bytes can't be spliced, so Edit refuses and says what to do.
				if got := content(t, file); p.Kind() != tools.KindUnsupported || got != string(before) {
					t.Errorf("%s: %s", name, p.Text())
				}
				continue
			}
			if tools.Refused(p) {
				t.Errorf("%s: edit of %q: %s", name, word, p.Text())
				continue
			}
			was, err := w.codec.NewEncoder().String(word)
			must(t, err)
			x, _ := w.codec.NewEncoder().String("X")
			after := []byte(content(t, file))
			if want := bytes.Replace(before, []byte(was), []byte(x), 1); !bytes.Equal(after, want) {
				t.Errorf("%s: other bytes changed: %s", name, base64.StdEncoding.EncodeToString(after))
			}
			again := field(call(t, s, "Read", map[string]any{"file_path": file, "encoding": w.name}), "content")
			if want := rendered(strings.Replace(text, word, "X", 1)); again != want {
				t.Errorf("%s: read back\n%.200q\nwant\n%.200q", name, again, want)
			}
		}
	}
	t.Logf("%d of %d samples are detected (%.1f %%), Grep finds %d of %d", detected, samples, 100*float64(detected)/float64(samples), found, searched)
	t.Logf("not detected: %s", strings.Join(missed, "; "))
	t.Logf("not found: %s", strings.Join(unfound, "; "))
	t.Logf("edited otherwise when the encoding is not said: %s", strings.Join(guessed, "; "))
	if len(guessed)*100 > searched*15 {
		t.Errorf("%d of %d edits need the encoding said", len(guessed), searched)
	}
	if samples < 96 || detected*100 < samples*85 {
		t.Errorf("%d of %d samples are detected", detected, samples)
	}
	if found*100 < searched*95 {
		t.Errorf("Grep finds %d of %d", found, searched)
	}
}

func decodePayload(t *testing.T, p tools.Payload) (m map[string]any) {
	t.Helper()
	must(t, json.Unmarshal([]byte(mustEncode(t, p)), &m))
	return m
}
