package text

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// ofTheWorld are languages, each with the encodings that its text is written in; a + stands for a byte order mark.
var ofTheWorld = []struct{ language, encodings string }{
	{"english", "+utf-16le"}, {"french", "utf-32le windows-1252 iso-8859-15"}, {"german", "utf-32be windows-1252"}, {"spanish", "iso-8859-1"},
	{"swedish", "windows-1252"}, {"polish", "windows-1250"}, {"czech", "iso-8859-2"}, {"hungarian", "windows-1250"},
	{"russian", "utf-16le windows-1251 koi8-r ibm866 iso-8859-5"}, {"ukrainian", "windows-1251"}, {"greek", "+utf-16be windows-1253 iso-8859-7"},
	{"turkish", "+utf-8 windows-1254"}, {"hebrew", "windows-1255"}, {"arabic", "windows-1256"}, {"chinese", "utf-8 gbk"}, {"taiwanese", "big5"},
	{"japanese", "utf-16be shift_jis euc-jp iso-2022-jp"}, {"korean", "euc-kr"}, {"thai", "windows-874"},
}

// ofLengths cuts a language's text to four lengths: two KB, a sentence, fifteen characters, code with comments.
func ofLengths(text string) map[string]string {
	sentences := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(".。", r) })
	if len(sentences) < 3 {
		sentences = strings.Fields(text) // Thai has blanks where others have full stops
	}
	var code strings.Builder
	for i, s := range sentences[:3] {
		fmt.Fprintf(&code, "// %s\nfunc step%d(values []int) int {\n\treturn len(values) + %d\n}\n\n", strings.TrimSpace(s), i, i)
	}
	return map[string]string{
		"2 KB":          strings.Repeat(text, 2048/len(text)+1),
		"sentence":      strings.TrimSpace(sentences[1]) + ".\n",
		"15 characters": string([]rune(strings.TrimSpace(sentences[2]))[:15]) + "\n",
		"code":          code.String(),
	}
}

// plainFor drops the marks of a text that an encoding lacks; they are not the point.
func plainFor(e *Encoding, text string) string {
	text = strings.NewReplacer("„", `"`, "“", `"`, "”", `"`, "«", `"`, "»", `"`, "–", "-", "—", "-", "œ", "oe", "’", "'").Replace(text)
	return strings.Map(func(r rune) rune {
		if _, bad := e.Encode(string(r)); bad >= 0 {
			return -1
		}
		return r
	}, text)
}

// TestEncodingsOfTheWorld: text in the encodings of the world is guessed right in most cases, and read right in all when the encoding is said.
func TestEncodingsOfTheWorld(t *testing.T) {
	samples := 0
	var missed []string
	for _, w := range ofTheWorld {
		long, err := os.ReadFile("../../testdata/readers/encoding/" + w.language + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.FieldsSeq(w.encodings) {
			name, marked := strings.CutPrefix(name, "+")
			for length, text := range ofLengths(plainFor(Lookup(name), string(long))) {
				raw, bad := Lookup(name).Encode(text)
				if bad >= 0 {
					t.Fatalf("%s %s has %q", name, w.language, text[bad:])
				}
				if marked {
					raw = append([]byte(Lookup(name).Mark), raw...)
				}
				samples++
				if wrong := unsafe(raw, Lookup(name), string(long)+"éèñßÄøåçłşšž€"); wrong != "" {
					t.Errorf("%s %s, %s: %q would be written as other characters", name, w.language, length, wrong)
				}
				for _, asked := range []string{"", name} {
					e, mark := ToRead(asked, raw)
					if got, err := e.Decode(raw[mark:]); err == nil && string(got) == text {
						continue
					}
					if missed = append(missed, fmt.Sprintf("%s %s, %s", name, w.language, length)); asked != "" {
						t.Errorf("%s %s, %s, is not read in its encoding", name, w.language, length)
					}
				}
			}
		}
	}
	if t.Logf("%d of %d samples are not detected: %q", len(missed), samples, missed); samples < 96 || len(missed)*100 > samples*15 {
		t.Error("too many are not detected")
	}
}

// unsafe gives the characters of letters that every encoding near to the guess has in the same bytes, but not the encoding that raw is in.
func unsafe(raw []byte, in *Encoding, letters string) (wrong string) {
	is := Detect(raw)
	if !is.Guessed || !is.Mapped() {
		return ""
	}
	for _, r := range letters {
		ours, bad := is.Encode(string(r))
		same := func(e *Encoding) bool { theirs, _ := e.Encode(string(r)); return string(theirs) == string(ours) }
		if bad < 0 && !slices.ContainsFunc(is.Near, func(e *Encoding) bool { return !same(e) }) && !same(in) {
			wrong += string(r)
		}
	}
	return wrong
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
				is := Guess(raw)
				if back, err := is.Decode(raw); err != nil || string(back) != text {
					t.Errorf("%s, %d bytes of ASCII before it, %d times: taken for %s", c.name, len(before), times, is.Name)
				}
			}
		}
	}
}

// TestGuessOfAWord: where a word may be in several encodings the likeliest wins, and there is a runner-up.
func TestGuessOfAWord(t *testing.T) {
	for raw, want := range map[string]string{
		"Nem \xe1ll\xedthat\xf3 be fut\xe1si id\xf5ben, \xe9s t\xf6bb \xfbr\xf5l.\n": "windows-1250", "\xc4ndert\n": "iso-8859-1", "\xa4\xa4\xa4\xe5\n": "big5",
		"\x8eR\x93c\n": "shift_jis", "\xcd\xf5\xce\xb0\n": "gb18030", "15 \x80\n": "windows-1252", "21 \xb0C\n": "iso-8859-1",
	} {
		if is := Guess([]byte(raw)); is.Name != want || !is.Guessed || is.Next == nil {
			t.Errorf("%q: %s, next %+v", raw, is.Name, is.Next)
		}
	}
}

func TestMostlyUTF8(t *testing.T) {
	for text, want := range map[string]bool{
		"déjà vu, ça va \xe9": true, "d\xe9j\xe0 vu": false, "plain": true, "日本語 \x81\x82": false, "日本語日本語 \x81\x82": true,
		"w\u00f6rter, na\xefve": true, "w\u00f6rter, na\xefve caf\xe9": false, "\u0434 \xe4\xe0": false,
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
		if is := Guess(content); is.Encoding == nil || is.odds == 0 || is.Next == is.Encoding {
			t.Fatalf("%+v", is)
		}
	})
}
