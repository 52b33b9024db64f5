package text

import (
	"math/rand/v2"
	"strings"
	"testing"
)

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
