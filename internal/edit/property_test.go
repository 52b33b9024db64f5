package edit

import (
	"bytes"
	"errors"
	"math/rand"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"moltisfs/internal/text"
)

// randomEdits is a list of edits of which most fit: words and runs of the text as it will be by then.
func randomEdits(r *rand.Rand, text, sample string, n int) (out []Edit) {
	words := strings.Fields(sample)
	for range n {
		from := r.Intn(len(text))
		to := min(len(text), from+1+r.Intn(30))
		for from > 0 && text[from]&0xc0 == 0x80 {
			from--
		}
		for to < len(text) && text[to]&0xc0 == 0x80 {
			to++
		}
		e := Edit{Old: text[from:to], New: words[r.Intn(len(words))] + strings.Repeat("\n", r.Intn(2)) + words[r.Intn(len(words))], All: r.Intn(3) == 0}
		switch r.Intn(6) {
		case 0:
			e.New = ""
		case 1:
			e.Old = "not in there"
		}
		out = append(out, e)
		if e.All || strings.Count(text, e.Old) == 1 {
			if after := strings.ReplaceAll(text, e.Old, e.New); after != "" {
				text = after
			}
		}
	}
	return out
}

// everyKind calls f for every charset × line ending × mark, a few times, with a text and its bytes.
func everyKind(t *testing.T, rounds int, f func(r *rand.Rand, charset, sample, text string, raw []byte)) {
	endings := map[string][]string{"lf": {"\n"}, "crlf": {"\r\n"}, "cr": {"\r"}, "mixed": {"\n", "\r\n", "\n"}}
	kinds := 0
	if testing.Short() {
		rounds = max(rounds/3, 1)
	}
	for _, s := range samples() {
		for name, ends := range endings {
			for _, bom := range []bool{false, true} {
				cs := text.Lookup(s.charset)
				if bom && cs.Mark == "" {
					continue
				}
				kinds++
				r := rand.New(rand.NewSource(int64(len(s.charset)*1000 + len(s.text)*10 + len(name))))
				for range rounds {
					content := charsetText(r, s.text, func() string { return ends[r.Intn(len(ends))] })
					f(r, s.charset, s.text, content, encodeText(t, s.charset, content, bom))
				}
			}
		}
	}
	if kinds < 80 {
		t.Errorf("only %d kinds of file", kinds)
	}
}

// enough is n, or what a third of the rounds, as everyKind makes under -short, gives at least.
func enough(n int) int {
	if testing.Short() {
		return n / 6
	}
	return n
}

// TestMultiEditIsTheFold: in every kind of file a list of edits does what the edits do one by one, and fails where they fail.
func TestMultiEditIsTheFold(t *testing.T) {
	t.Parallel()
	whole, failed := 0, 0
	everyKind(t, 12, func(r *rand.Rand, charset, sample, text string, raw []byte) {
		edits := randomEdits(r, text, sample, 1+r.Intn(5))
		if checkFold(t, raw, edits, Options{Encoding: charset}) != nil {
			whole++
		} else {
			failed++
		}
	})
	t.Logf("%d lists went through, %d failed on the way", whole, failed)
	if whole < enough(200) || failed < enough(200) {
		t.Error("too few of one kind to prove much")
	}
}

// TestRevert is the promise of the package, for every kind of file: nothing changes outside the spans, and undoing a step by its spans gives
// the same bytes (checkApplied); the text is what a plain replacement in the decoded text makes of it; and editing back gives the same bytes.
func TestRevert(t *testing.T) {
	t.Parallel()
	done, back := 0, 0
	everyKind(t, 12, func(r *rand.Rand, charset, sample, content string, raw []byte) {
		for _, e := range randomEdits(r, content, sample, 3) {
			o := Options{Encoding: charset}
			if mark := text.Lookup(charset).Mark; charset == "utf-8" || mark != "" && bytes.HasPrefix(raw, []byte(mark)) {
				o.Encoding = "" // it is detected
			}
			res := checkApplied(t, raw, []Edit{e}, o)
			if res == nil {
				continue
			}
			if res.Encoding != charset {
				t.Errorf("%s taken for %s", charset, res.Encoding)
			}
			n := 1
			if e.All {
				n = -1
			}
			if got, _, _ := Decode(res.Content, charset); !strings.Contains(e.Old+e.New, "\n") && string(got) != strings.Replace(content, e.Old, e.New, n) {
				t.Fatalf("%s: %q → %q: %q", charset, e.Old, e.New, got)
			}
			done++
			if e.All || e.New == "" || strings.ContainsAny(e.Old+e.New, "\r\n") {
				continue
			}
			now, _, _ := Decode(res.Content, charset)
			if overlaps(string(now), e.New) != 1 {
				continue
			}
			again, err := Apply(res.Content, []Edit{{Old: e.New, New: e.Old}}, Options{Encoding: charset})
			if err != nil || !bytes.Equal(again.Content, raw) {
				t.Fatalf("%s: %q → %q and back: %v", charset, e.Old, e.New, err)
			}
			back++
		}
	})
	t.Logf("%d edits undone by their spans, %d edited back", done, back)
	if done < enough(1000) || back < enough(100) {
		t.Error("too few to prove much")
	}
}

// TestBesideDamagedBytes: a lone lead byte swallows what is put behind it. Either the file reads as the edit says, or the edit is refused.
func TestBesideDamagedBytes(t *testing.T) {
	t.Parallel()
	refused, done, step := 0, 0, 1
	if testing.Short() {
		step = 7
	}
	for _, name := range []string{"gbk", "gb18030", "big5", "shift_jis", "euc-jp", "euc-kr", "utf-16le", "utf-16be"} {
		for lead := 0x80; lead <= 0xff; lead += step {
			for _, new := range []string{"a", "@", "1", "\u00e9", "人", "0a", "𝄞"} {
				unit := func(s string) []byte { return encodeText(t, name, s, false) }
				bad := []byte{byte(lead)}
				if strings.HasPrefix(name, "utf-16") {
					if bad = []byte{0x3d, byte(lead)}; name == "utf-16be" {
						bad = []byte{byte(lead), 0x3d}
					}
				}
				raw := append(append(unit("key = "), bad...), unit(" x;")...)
				for _, e := range []Edit{{Old: " x", New: new + "x"}, {Old: " ", New: new, All: true}, {Old: " x;", New: ""}, {Old: " x", New: ""}} {
					o := Options{Encoding: name}
					r, err := Apply(raw, []Edit{e}, o)
					var damaged *DamagedError
					if errors.As(err, &damaged) {
						refused++
						continue
					}
					if err != nil {
						continue
					}
					done++
					checkSpans(t, raw, r.Content, r.Steps[0].Spans)
					before, _, _ := Decode(raw, name)
					after, _, _ := Decode(r.Content, name)
					n := 1
					if e.All {
						n = -1
					}
					if want := bytes.Replace(before, []byte(e.Old), []byte(e.New), n); !bytes.Equal(after, want) {
						t.Fatalf("%s %x: %+v made %q, want %q", name, raw, e, after, want)
					}
				}
			}
		}
	}
	t.Logf("%d done, %d refused", done, refused)
	if refused == 0 {
		t.Error("no edit was refused")
	}
}

// TestFoldedLetterIsDecomposed: every letter, folded, is its canonical decomposition, whichever way it was found.
func TestFoldedLetterIsDecomposed(t *testing.T) {
	t.Parallel()
	for r := rune(0x80); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		if _, ok := foldRune(r); ok {
			continue
		}
		if got, _ := appendFolded(nil, []byte(string(r)), 0); string(got) != norm.NFD.String(string(r)) {
			t.Fatalf("U+%04X: %q, want %q", r, got, norm.NFD.String(string(r)))
		}
	}
}
