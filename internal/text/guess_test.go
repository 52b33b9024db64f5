package text

import (
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

func TestGuess(t *testing.T) {
	for _, c := range []struct {
		name string
		enc  encoding.Encoding
		text string
	}{
		{"iso-8859-1", charmap.ISO8859_1, "naïve café déjà vu, Straße, señor ¿qué?"},
		{"windows-1252", charmap.Windows1252, "naïve café — “déjà vu” … 5 €"},
		{"windows-1251", charmap.Windows1251, "Съешь же ещё этих мягких французских булок"},
		{"windows-1253", charmap.Windows1253, "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία"},
		{"koi8-r", charmap.KOI8R, "Съешь же ещё этих мягких булок"},
		{"gbk", simplifiedchinese.GBK, "我能吞下玻璃而不伤身体。价格 “引号”"},
		{"big5", traditionalchinese.Big5, "我能吞下玻璃而不傷身體。價格許功蓋"},
		{"shift_jis", japanese.ShiftJIS, "私はガラスを食べられます。ソ表能予"},
		{"euc-jp", japanese.EUCJP, "私はガラスを食べられます。ソ表能予"},
		{"euc-kr", korean.EUCKR, "나는 유리를 먹을 수 있어요. 그래도 아프지 않아요"},
	} {
		for _, code := range []int{0, 200} {
			text := strings.Repeat("if (x) { return 0; } // plain\n", code) + strings.Repeat(c.text+"\n", 12)
			raw, err := c.enc.NewEncoder().Bytes([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			name := Guess(raw)
			if c.name == "gbk" && name != "gb18030" {
				t.Errorf("%s taken for %s: its superset is meant, which holds every character", c.name, name)
			}
			if e := decoder(name); e == nil {
				t.Errorf("%s taken for %s, which nobody knows", c.name, name)
			} else if back, err := e.Codec.NewDecoder().Bytes(raw); err != nil || string(back) != text {
				t.Errorf("%s behind %d lines of code taken for %s", c.name, code, name)
			}
			if MostlyUTF8(raw) {
				t.Errorf("%s taken for UTF-8", c.name)
			}
		}
	}
}

// The encoding that is found reads the letters right, with ASCII before them or not: an answer is never
// thrown away for its name, and the sample are the lines that are not ASCII.
func TestGuessReadsLetters(t *testing.T) {
	german := "Die Richtlinien für Größe und schöne Übung wären\nÄpfel und Öl für die Straße\n"
	french := "Où êtes-vous allés cet été, à l'hôtel ou près du château ? Ça dépend, déjà vu.\n"
	spanish := "El niño comió piñones según mamá; ¿qué pasó después en España?\n"
	polish := "Zażółć gęślą jaźń. Święta są już blisko, więc proszę o łódź i książkę.\n"
	czech := "Příliš žluťoučký kůň úpěl ďábelské ódy, a přece ještě něco řekl.\n"
	hungarian := "Árvíztűrő tükörfúrógép, és még néhány szép szó a magyar nyelvről: őszi erdő.\n"
	russian := "Съешь же ещё этих мягких французских булок, да выпей чаю.\n"
	ukrainian := "Чуєш їх, доцю, га? Кумедна ж ти, прощайся без ґольфів! Її єдиний їжак і її мрії.\n"
	turkish := "Pijamalı hasta yağız şoföre çabucak güvendi. Işık söndü, çünkü gece oldu.\n"
	greek := "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, και η γρήγορη αλεπού πηδά.\n"
	licence := strings.Repeat("// Licensed under the terms of the licence; see the file LICENCE.\n", 40)
	for _, c := range []struct{ name, text string }{
		{"macintosh", german}, {"macintosh", french}, {"macintosh", spanish},
		{"ibm437", german}, {"ibm437", spanish}, {"ibm850", german}, {"ibm850", french}, {"ibm850", spanish},
		{"ibm852", polish}, {"ibm852", czech}, {"ibm852", hungarian},
		{"iso-8859-2", polish}, {"iso-8859-2", czech}, {"iso-8859-2", hungarian},
		{"windows-1250", polish}, {"windows-1250", czech}, {"windows-1250", hungarian},
		{"koi8-u", ukrainian}, {"windows-1251", ukrainian}, {"koi8-r", russian}, {"ibm866", russian},
		{"windows-1254", turkish}, {"windows-1253", greek}, {"iso-8859-7", greek}, {"windows-1252", french}, {"iso-8859-1", german},
	} {
		for _, before := range []string{"", licence, strings.Repeat(licence, 30)} {
			for _, times := range []int{1, 20} {
				text := before + strings.Repeat(c.text, times)
				raw, bad := Lookup(c.name).Encode(text)
				if bad >= 0 {
					t.Fatalf("%s lacks a character of %q", c.name, c.text)
				}
				name := Guess(raw)
				if back, err := Lookup(name).Decode(raw); err != nil || string(back) != text {
					t.Errorf("%s, %d bytes of ASCII before it, %d times: taken for %s", c.name, len(before), times, name)
				}
			}
		}
	}
}

func TestMostlyUTF8(t *testing.T) {
	for text, want := range map[string]bool{
		"déjà vu, ça va \xe9": true, "d\xe9j\xe0 vu": false, "plain": true, "日本語 \x81\x82": false, "日本語日本語 \x81\x82": true,
	} {
		if MostlyUTF8([]byte(text)) != want {
			t.Errorf("%q", text)
		}
	}
}

// FuzzGuess: whatever the bytes, there is an answer, and somebody can decode it.
func FuzzGuess(f *testing.F) {
	f.Add([]byte("caf\xe9"))
	f.Add([]byte("\x8e\x8c\xff\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if name := Guess(content); decoder(name) == nil {
			t.Fatalf("%q", name)
		}
	})
}

func TestLikeliest(t *testing.T) {
	for _, c := range []struct {
		encoding, text, answer string
		or                     string // reads the bytes alike
	}{
		{"windows-1250", "Zażółć gęślą jaźń", "windows-1252", ""},
		{"iso-8859-2", "Příliš žluťoučký kůň úpěl ďábelské ódy", "iso-8859-1", ""},
		{"windows-1251", "Съешь же ещё этих мягких булок", "maccyrillic", "x-mac-cyrillic"},
		{"koi8-r", "Съешь же ещё этих мягких булок", "", "koi8-u"},
		{"ibm866", "широкая электрификация", "", ""},
		{"windows-1252", "naïve café déjà vu, Straße, señor", "", "iso-8859-1"},
		{"windows-1254", "Pijamalı hasta yağız şoföre çabucak güvendi", "windows-1252", "iso-8859-9"},
		{"windows-1253", "Η γρήγορη αλεπού πηδά", "", "iso-8859-7"},
		{"windows-1256", "كان الجو جميلا في المدينة", "windows-1252", ""},
		{"shift_jis", "これは日本語の文章です", "windows-1252", ""},
		{"windows-1252", "// résumé of the naïve plan\nfunc main() {}\n", "", "iso-8859-1"},
	} {
		raw, err := Lookup(c.encoding).Codec.NewEncoder().Bytes([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if got := likeliest(raw, c.answer); got != c.encoding && got != c.or {
			t.Errorf("%q in %s is taken for %q", c.text, c.encoding, got)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		b := make([]byte, 400)
		for i := range b {
			b[i] = byte(1 + rng.IntN(255))
		}
		if got := likeliest(b, ""); got != "" {
			t.Errorf("noise is taken for %s", got)
		}
	}
	if got := likeliest([]byte("plain"), "windows-1252"); got != "windows-1252" {
		t.Errorf("nothing but ASCII: the answer %q is not kept", got)
	}
}

func BenchmarkLikeliest(b *testing.B) {
	raw, _ := Lookup("windows-1250").Codec.NewEncoder().Bytes([]byte(strings.Repeat("Zażółć gęślą jaźń i coś jeszcze\n", 200)))
	for b.Loop() {
		likeliest(raw, "windows-1252")
	}
}
