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

	"moltisfs/config"
	"moltisfs/tools"
)

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

// rendered is what Read shows of lines.
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
		if err != nil {
			t.Fatal(err)
		}
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
			if got := field(call(t, s, "Read", map[string]any{"file_path": file}), "content"); got == want {
				detected++
			} else {
				missed = append(missed, name)
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
			if err != nil {
				t.Fatal(err)
			}
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
	if err := json.Unmarshal([]byte(mustEncode(t, p)), &m); err != nil {
		t.Fatal(err)
	}
	return m
}
