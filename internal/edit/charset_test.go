package edit

import (
	"bytes"
	"errors"
	"math/rand"
	"strings"
	"testing"
	"unicode/utf8"

	"moltisfs/internal/text"
)

// samples holds text that each charset can write, and one character that it cannot.
func samples() []struct{ charset, text, foreign string } {
	return []struct{ charset, text, foreign string }{
		{"utf-8", "naïve café — 漢字 ☕ 𝄞 e\u0301", ""},
		{"utf-16le", "naïve café — 漢字 ☕ 𝄞 e\u0301", ""},
		{"utf-16be", "naïve café — 漢字 ☕ 𝄞 e\u0301", ""},
		{"utf-32le", "naïve café — 漢字 ☕ 𝄞", ""},
		{"utf-32be", "naïve café — 漢字 ☕ 𝄞", ""},
		{"iso-8859-1", "naïve café déjà vu, Straße, señor ¿qué?", "€"},
		{"iso-8859-15", "naïve café 5 € déjà vu œuvre", "漢"},
		{"windows-1250", "Zażółć gęślą jaźń, příliš žluťoučký kůň", "я"},
		{"windows-1251", "Съешь же ещё этих мягких французских булок", "é"},
		{"windows-1252", "naïve café — “déjà vu” … 5 €", "я"},
		{"windows-1253", "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία", "я"},
		{"windows-1254", "Pijamalı hasta yağız şoföre çabucak güvendi", "я"},
		{"koi8-r", "Съешь же ещё этих мягких булок", "é"},
		{"gbk", "我能吞下玻璃而不伤身体。价格 “引号”", "🙂"},
		{"gb18030", "我能吞下玻璃而不伤身体。🙂 é ñ", ""},
		{"big5", "我能吞下玻璃而不傷身體。價格許功蓋", "🙂"},
		{"shift_jis", "私はガラスを食べられます。ソ表能予ｱｲｳ", "é"},
		{"euc-jp", "私はガラスを食べられます。ソ表能予", "🙂"},
		{"euc-kr", "나는 유리를 먹을 수 있어요. 그래도 아프지 않아요", "🙂"},
	}
}

func encodeText(t testing.TB, name, content string, bom bool) []byte {
	cs := text.Lookup(name)
	if cs == nil {
		t.Fatalf("no charset %s", name)
	}
	raw, bad := cs.Encode(content)
	if bad >= 0 {
		t.Fatalf("%s: cannot encode %q", name, content[bad:])
	}
	if bom {
		raw = append([]byte(cs.Mark), raw...)
	}
	return raw
}

// document in a charset: some forty lines with text of the charset, code, and blanks at line ends.
func charsetText(r *rand.Rand, sample string, ending func() string) string {
	words := strings.Fields(sample)
	var b strings.Builder
	for i := range 12 + r.Intn(30) {
		b.WriteString(strings.Repeat("\t", r.Intn(3)))
		for range r.Intn(6) {
			b.WriteString(words[r.Intn(len(words))])
			b.WriteByte(' ')
		}
		if r.Intn(2) == 0 {
			b.WriteString("x" + strings.Repeat("y", i) + " = foo(")
		}
		b.WriteString(ending())
	}
	if r.Intn(2) == 0 {
		b.WriteString("the end")
	}
	return b.String()
}

// checkSpans: before and after are the same outside of the spans.
func checkSpans(t testing.TB, before, after []byte, spans []Span) {
	t.Helper()
	posB, posA := 0, 0
	for _, s := range spans {
		if s.Start < posB || s.End < s.Start || s.End > len(before) {
			t.Fatalf("bad span %+v behind %d in %d bytes", s, posB, len(before))
		}
		n := s.Start - posB
		if posA+n+s.Length > len(after) || !bytes.Equal(before[posB:s.Start], after[posA:posA+n]) {
			t.Fatalf("bytes changed before span %+v", s)
		}
		posB, posA = s.End, posA+n+s.Length
	}
	if !bytes.Equal(before[posB:], after[posA:]) {
		t.Fatalf("bytes changed behind the last span")
	}
}

// TestGuessed: by a guess a character is written only where every charset about as likely has it in the same bytes. So a Chinese file gets none of
// four bytes, and a German one no "ñ", which may be an "ń".
func TestGuessed(t *testing.T) {
	text := strings.Repeat("我能吞下玻璃而不伤身体。价格 “引号”\n", 5)
	var bad *UnencodableError
	if r, err := Apply(encodeText(t, "gbk", text+"end\n", false), []Edit{{Old: "end", New: "🙂"}}, Options{}); !errors.As(err, &bad) || bad.Rival != "gbk" {
		t.Errorf("%+v, %v", r, err)
	}
	german := encodeText(t, "windows-1252", "Die Größe für Öl und Äpfel, schöne Übung\nend\n", false)
	for new, written := range map[string]bool{"Ö, ä": true, "ñ": false, "è": false} {
		r, err := Apply(german, []Edit{{Old: "end", New: new}}, Options{})
		if written != (err == nil) || err != nil && (!errors.As(err, &bad) || bad.Rival == "") {
			t.Errorf("%s: %+v, %v", new, r, err)
		}
		if r, err := Apply(german, []Edit{{Old: "end", New: new}}, Options{Encoding: "windows-1252"}); err != nil {
			t.Errorf("%s, named: %+v, %v", new, r, err)
		}
	}
}

// TestDamagedBytesStay puts bytes that are no character anywhere into files of every charset.
func TestDamagedBytesStay(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(7))
	for _, s := range samples() {
		for range 60 {
			text := charsetText(r, s.text, func() string { return "\n" })
			marker := "MARKER_" + strings.Fields(s.text)[0]
			i := strings.IndexByte(text, '\n') + 1
			text = text[:i] + "-- " + marker + " --\n" + text[i:]
			head := encodeText(t, s.charset, text[:i], false)
			rest := encodeText(t, s.charset, text[i:], false)
			junk := make([]byte, 2*(1+r.Intn(4)))
			r.Read(junk)
			if strings.HasPrefix(s.charset, "utf-32") {
				junk = append(junk, junk...)
			}
			// Junk at a line's end cannot swallow anything but the line break, which is not quoted.
			unit := len(encodeText(t, s.charset, "\n", false))
			raw := append(append(append(bytes.Clone(head[:len(head)-unit]), junk...), head[len(head)-unit:]...), rest...)
			raw = append(append(raw, junk...), junk...)
			res, err := Apply(raw, []Edit{{Old: marker, New: "done"}}, Options{Encoding: s.charset})
			if err != nil {
				t.Fatalf("%s: %v", s.charset, err)
			}
			checkSpans(t, raw, res.Content, res.Steps[0].Spans)
			want := bytes.Replace(raw, encodeText(t, s.charset, marker, false), encodeText(t, s.charset, "done", false), 1)
			if !bytes.Equal(res.Content, want) {
				t.Fatalf("%s: got %q\nwant %q", s.charset, res.Content, want)
			}
		}
	}
}

// TestNoRoundTrip: two-byte sequences that decode to something which encodes differently stay as they are, next to the edit too.
func TestNoRoundTrip(t *testing.T) {
	t.Parallel()
	found := 0
	for _, name := range []string{"gbk", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr"} {
		cs := text.Lookup(name)
		for a := 0x81; a < 0xff; a++ {
			for b := 0x40; b < 0xff; b++ {
				pair := []byte{byte(a), byte(b)}
				read, _ := cs.DecodePlaces(pair)
				if bytes.Contains(read, []byte(text.Opaque)) {
					continue
				}
				back, bad := cs.Encode(string(read))
				if bad < 0 && bytes.Equal(back, pair) {
					continue
				}
				found++
				raw := append(append([]byte("one "), pair...), " two"...)
				old := string(read) + " two"
				res, err := Apply(raw, []Edit{{Old: old, New: string(read) + " three"}}, Options{Encoding: name})
				if err != nil || !bytes.Equal(res.Content, append(append([]byte("one "), pair...), " three"...)) {
					t.Fatalf("%s %x (%q): %v", name, pair, read, err)
				}
			}
		}
	}
	if found < 500 {
		t.Errorf("only %d such sequences", found)
	}
}

func TestUnencodable(t *testing.T) {
	for _, s := range samples() {
		if s.foreign == "" {
			continue
		}
		raw := encodeText(t, s.charset, s.text+"\nrest\n", false)
		_, err := Apply(raw, []Edit{{Old: "rest", New: "a\nbc" + s.foreign}}, Options{Encoding: s.charset})
		var un *UnencodableError
		want, _ := utf8.DecodeRuneInString(s.foreign)
		if !errors.As(err, &un) || un.Char != want || un.Line != 2 || un.Column != 3 || un.Encoding != s.charset {
			t.Errorf("%s: %v %+v", s.charset, err, un)
		}
		// Where the character stands already, quoting it is no writing.
	}
}

func TestMarks(t *testing.T) {
	for _, c := range []struct{ name, text, old, new, encoding, want string }{
		{"kept", "\xef\xbb\xbfone\n", "one", "two", "", "\xef\xbb\xbftwo\n"},
		{"not doubled", "\xef\xbb\xbfone\n", "\ufeffone", "\ufefftwo", "", "\xef\xbb\xbftwo\n"},
		{"fills behind the mark", "\xef\xbb\xbf", "", "two", "", "\xef\xbb\xbftwo"},
		{"created with a mark", "", "", "ab", "utf-16", "\xff\xfea\x00b\x00"},
		{"created without", "", "", "ab", "utf-16le", "a\x00b\x00"},
		{"big-endian mark decides", "\xfe\xff\x00a", "a", "b", "utf-16", "\xfe\xff\x00b"},
		{"deleted to the mark", "\xef\xbb\xbfone", "one", "", "", "\xef\xbb\xbf"},
	} {
		r, err := Apply([]byte(c.text), []Edit{{Old: c.old, New: c.new}}, Options{Encoding: c.encoding})
		if err != nil || string(r.Content) != c.want {
			t.Errorf("%s: %v %+v", c.name, err, r)
		}
	}
}

// TestASCIIWhateverTheGuess: ASCII is found and replaced in a file of any charset that contains it, under any other such charset.
func TestASCIIWhateverTheGuess(t *testing.T) {
	for _, s := range samples() {
		if strings.HasPrefix(s.charset, "utf-16") || strings.HasPrefix(s.charset, "utf-32") {
			continue
		}
		raw := encodeText(t, s.charset, s.text+"\nkey = value\n"+s.text+"\n", false)
		want := bytes.Replace(raw, []byte("key = value"), []byte("key = other\nmore = 1"), 1)
		for _, guess := range samples() {
			if strings.HasPrefix(guess.charset, "utf-16") || strings.HasPrefix(guess.charset, "utf-32") {
				continue
			}
			r, err := Apply(raw, []Edit{{Old: "key = value", New: "key = other\nmore = 1"}}, Options{Encoding: guess.charset})
			if err != nil || !bytes.Equal(r.Content, want) {
				t.Errorf("%s as %s: %v", s.charset, guess.charset, err)
			}
		}
	}
}

// Detect names the encoding of a file's bytes, as Apply would assume it, and the length of its byte
// order mark. guessed: by statistics.
func Detect(content []byte) (name string, bom int, guessed bool) {
	is, bom := encodingOf("", content)
	return is.Name, bom, is.Guessed
}
