package edit

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"moltisfs/internal/edit/diff"
	"moltisfs/internal/text"
)

// The targets below hold the promises of the package comment against arbitrary bytes. `make fuzz` runs all of them.

// checkApplied checks what must hold for every call of Apply, whatever came of it.
func checkApplied(t *testing.T, content []byte, edits []Edit, o Options) *Result {
	t.Helper()
	was := bytes.Clone(content)
	r, err := Apply(content, edits, o)
	if !bytes.Equal(was, content) {
		t.Fatal("the input was changed")
	}
	if err != nil {
		if r != nil {
			t.Fatal("a result and an error")
		}
		checkRefused(t, content, edits, o, err)
		return nil
	}
	again, err := Apply(content, edits, o)
	if err != nil || !bytes.Equal(again.Content, r.Content) || !reflect.DeepEqual(again.Steps, r.Steps) {
		t.Fatalf("a second time it is another result: %v", err)
	}
	if int64(len(r.Content)) > maxOf(o) {
		t.Fatalf("%d bytes", len(r.Content))
	}
	if len(r.Steps) != len(edits) {
		t.Fatalf("%d steps for %d edits", len(r.Steps), len(edits))
	}
	n := 0
	for i, s := range r.Steps {
		n += s.Replacements
		if s.Replacements < 1 || !edits[i].All && s.Replacements != 1 || s.Line < 1 || s.Strategy == "" {
			t.Fatalf("step %+v", s)
		}
		if o.Strict && s.Strategy != StrategyExact && s.Strategy != StrategyLineEndings {
			t.Fatalf("strict, and %s", s.Strategy)
		}
	}
	if n != r.Replacements {
		t.Fatal("the replacements do not add up")
	}
	if len(edits) == 1 {
		checkSpans(t, content, r.Content, r.Steps[0].Spans)
		if back := undo(content, r.Content, r.Steps[0].Spans); !bytes.Equal(back, content) {
			t.Fatalf("undone by its spans it is %q, was %q", back, content)
		}
	}
	// The file reads as the edit made it.
	before, name, err := Decode(content, o.Encoding)
	after, _, aerr := Decode(r.Content, name)
	if err != nil || aerr != nil {
		t.Fatal(err, aerr)
	}
	shown := func(hs []diff.Hunk) string { return diff.Unified("x", diff.Edited, hs) } // with the line breaks, which a Hunk does not show
	if got, want := shown(r.Patch()), shown(diff.Patch(before, after)); got != want {
		t.Fatalf("the patch is\n%s\nof the texts it would be\n%s", got, want)
	}
	return r
}

func maxOf(o Options) int64 {
	if o.MaxBytes > 0 {
		return o.MaxBytes
	}
	return defaultMaxBytes
}

// undo takes a step back with nothing but its spans and the bytes that it replaced.
func undo(before, after []byte, spans []Span) []byte {
	var out []byte
	at, shift := 0, 0
	for _, s := range spans {
		from := s.Start + shift
		out = append(out, after[at:from]...)
		out = append(out, before[s.Start:s.End]...)
		at = from + s.Length
		shift += s.Length - (s.End - s.Start)
	}
	return append(out, after[at:]...)
}

// checkRefused checks that an error is one of ours and that what it tells to send succeeds.
func checkRefused(t *testing.T, content []byte, edits []Edit, o Options, err error) {
	t.Helper()
	strict := Options{Strict: true, MaxBytes: o.MaxBytes}
	text, name, derr := Decode(content, o.Encoding)
	if derr != nil {
		return
	}
	strict.Encoding = name
	switch e := err.(type) {
	case *NoMatchError:
		if e.Cause == "" || e.Index < 0 || e.Index >= len(edits) || e.Line > 0 && e.EndLine < e.Line {
			t.Fatalf("%+v", e)
		}
		if e.Index == 0 && e.Resend != "" {
			if n := bytes.Count(text, []byte(e.Resend)); n != 1 {
				t.Fatalf("resend %q is in %q %d times", e.Resend, text, n)
			}
			checkSends(t, content, e.Resend, strict)
		}
	case *NotUniqueError:
		if e.Count < 2 || len(e.Lines) == 0 || len(e.Lines) > maxLines || !slices.IsSorted(e.Lines) {
			t.Fatalf("%+v", e)
		}
		for _, c := range e.Contexts {
			if e.Index == 0 {
				checkSends(t, content, c.OldString, strict)
			}
		}
	case *UnencodableError:
		if e.Line < 1 || e.Column < 1 || e.Encoding == "" {
			t.Fatalf("%+v", e)
		}
	case *EmptyOldError, *SameError, *NoopError, *TooLargeError, *TooManyError, *EncodingError, *DamagedError:
	default:
		t.Fatalf("%T: %v", err, err)
	}
}

func checkSends(t *testing.T, content []byte, old string, o Options) {
	t.Helper()
	_, err := Apply(content, []Edit{{Old: old, New: "SENT"}}, o)
	var damaged *DamagedError
	var large *TooLargeError
	var same *SameError
	if err != nil && !errors.As(err, &damaged) && !errors.As(err, &large) && !errors.As(err, &same) {
		t.Fatalf("sending %q: %v", old, err)
	}
}

func seedTexts() []string {
	return []string{"", "a", "a\n", "a\r\nb\r\nc", "a\rb\r", "one two\nthree\n", "\tif x {\n\t\ty()\n\t}\n", "say “hi” – it’s…\n", "cafe\u0301 café\n",
		"a\x00b\xff\xfe\n", "\xef\xbb\xbfone\n", "  x  \n\n\n", "aaa aaa aaa", "if (a &amp;&amp; b) { return \"\\n\"; }\n", "\xe4\xb8", "x\u00a0=\u200b1\n",
		"a\r\nb\nc\r\n", "\r\r\n\n\r", "def f():\n    if x:\n        return 1\n\nclass A:\n    pass\n"}
}

func FuzzApply(f *testing.F) {
	for i, s := range seedTexts() {
		f.Add(s, "a", "b", i%2 == 0, i%3 == 0)
		f.Add(s, strings.TrimSpace(s), "new\nlines", false, false)
	}
	f.Add("a\r\nb", "a\nb", "c\nd", false, false)
	f.Add("if x {  \n\ty()\n}", "    if x {\n        y()\n    }", "z()", false, false)
	f.Add("say “hi”\n", `say "hi"`, "x", false, false)
	f.Fuzz(func(t *testing.T, text, old, new string, all, strict bool) {
		content := []byte(text)
		r := checkApplied(t, content, []Edit{{old, new, all}}, Options{Encoding: "utf-8", Strict: strict, MaxBytes: 1 << 20})
		// Text that is there exactly once, and is no matter of line ends, is replaced by exactly the text that was sent.
		body := strings.TrimPrefix(text, "\ufeff")
		if old != "" && old != new && strings.Count(body, old) == 1 && overlaps(body, old) == 1 && !strings.ContainsAny(old+new, "\r\n") && !strings.HasPrefix(new, "\ufeff") {
			if r == nil {
				_, err := Apply(content, []Edit{{old, new, all}}, Options{Encoding: "utf-8", Strict: strict})
				t.Fatalf("%q is there once: %v", old, err)
			}
			if want := text[:len(text)-len(body)] + strings.Replace(body, old, new, 1); string(r.Content) != want || r.Steps[0].Strategy != StrategyExact {
				t.Fatalf("got %q by %s, want %q", r.Content, r.Steps[0].Strategy, want)
			}
		}
	})
}

func overlaps(s, sub string) (n int) {
	for i := 0; ; n++ {
		j := strings.Index(s[i:], sub)
		if j < 0 {
			return n
		}
		i += j + 1
	}
}

// editable are the encodings in which text can be edited in place.
func editable() []string {
	return slices.DeleteFunc(text.Names(), func(name string) bool { return text.Lookup(name).Stateful() })
}

// FuzzCharset edits arbitrary bytes in every charset, and with the charset detected.
func FuzzCharset(f *testing.F) {
	list := editable()
	for i := range list {
		f.Add([]byte("one two three\n"), byte(i), "two", "deux")
	}
	for i, s := range samples() {
		raw := encodeText(f, s.charset, s.text, false)
		f.Add(raw, byte(i), strings.Fields(s.text)[0], "x")
		f.Add(append(raw, 0x81), byte(255), "a", "é")
	}
	f.Add([]byte("a\x81b"), byte(39), "b", "c")
	f.Fuzz(func(t *testing.T, content []byte, which byte, old, new string) {
		name := ""
		if int(which) < len(list) {
			name = list[which]
		}
		if d, err := open(content, name); err != nil || !bytes.Equal(d.bytes(), content) {
			t.Fatalf("%s: opened and written again it is %q", name, d.bytes())
		}
		checkApplied(t, content, []Edit{{Old: old, New: new}}, Options{Encoding: name})
	})
}

// FuzzMultiEdit: a list of edits is the fold of the single ones.
func FuzzMultiEdit(f *testing.F) {
	for i, s := range seedTexts() {
		f.Add([]byte(s), byte(i), "a", "b", "b", "c\n", "c", "", byte(i))
	}
	f.Add([]byte("a\xe9b\xe8"), byte(5), "a", "é", "é", "xx", "x", "yy", byte(4))
	f.Add([]byte("\xe40"+strings.Repeat("\t", 3000)+"0"), byte(slices.Index(editable(), "euc-jp")), "0", "x", "", "", "", "", byte(8))
	f.Fuzz(func(t *testing.T, content []byte, which byte, o1, n1, o2, n2, o3, n3 string, all byte) {
		list := editable()
		name := list[int(which)%len(list)]
		o := Options{Encoding: name, MaxBytes: 1 << 16, Strict: all&8 != 0}
		edits := []Edit{{o1, n1, all&1 != 0}, {o2, n2, all&2 != 0}, {o3, n3, all&4 != 0}}
		checkFold(t, content, edits, o)
	})
}

// checkFold compares a list of edits with the edits one by one.
func checkFold(t *testing.T, content []byte, edits []Edit, o Options) *Result {
	t.Helper()
	whole := checkApplied(t, content, edits, o)
	_, werr := Apply(content, edits, o)
	at := content
	for i, e := range edits {
		r, err := Apply(at, []Edit{e}, o)
		if err != nil {
			if werr == nil || fmt.Sprintf("%T", werr) != fmt.Sprintf("%T", err) {
				t.Fatalf("edit %d alone: %v; in the list: %v", i+1, err, werr)
			}
			if nm, ok := werr.(*NoMatchError); ok && (nm.Index != i || nm.Resend != err.(*NoMatchError).Resend || nm.Cause != err.(*NoMatchError).Cause) {
				t.Fatalf("edit %d alone: %+v; in the list: %+v", i+1, err, nm)
			}
			return nil
		}
		if whole != nil && !reflect.DeepEqual(r.Steps[0], whole.Steps[i]) {
			t.Fatalf("edit %d alone: %+v; in the list: %+v", i+1, r.Steps[0], whole.Steps[i])
		}
		at = r.Content
	}
	if werr != nil {
		t.Fatalf("one by one they succeed, in a list: %v", werr)
	}
	if !bytes.Equal(at, whole.Content) {
		t.Fatalf("one by one: %q, in a list: %q", at, whole.Content)
	}
	return whole
}

// FuzzRevert: an edit and the one that takes it back leave the file as it was.
func FuzzRevert(f *testing.F) {
	for _, s := range seedTexts() {
		f.Add(s, "a", "bb")
	}
	f.Fuzz(func(t *testing.T, text, old, new string) {
		r := checkApplied(t, []byte(text), []Edit{{Old: old, New: new}}, Options{Encoding: "utf-8"})
		if r == nil || new == "" || old == "" || r.Steps[0].Strategy != StrategyExact || strings.ContainsAny(old+new, "\r\n") ||
			strings.HasPrefix(new, "\ufeff") || strings.HasPrefix(old, "\ufeff") {
			return
		}
		if overlaps(strings.TrimPrefix(string(r.Content), "\ufeff"), new) != 1 {
			return // it cannot be told apart from what was there before
		}
		back, err := Apply(r.Content, []Edit{{Old: new, New: old}}, Options{Encoding: "utf-8"})
		if err != nil || string(back.Content) != text {
			t.Fatalf("%q → %q and back: %v", old, new, err)
		}
	})
}

// FuzzDetect: any bytes have a charset, and reading them in it loses nothing.
func FuzzDetect(f *testing.F) {
	for _, s := range seedTexts() {
		f.Add([]byte(s))
	}
	for _, s := range samples() {
		f.Add(encodeText(f, s.charset, s.text, true))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		name, bom, _ := Detect(content)
		if text.Lookup(name) == nil || bom > len(content) {
			t.Fatalf("%s, mark of %d", name, bom)
		}
		if utf8.Valid(content) && bytes.IndexByte(content, 0) < 0 && name != "utf-8" {
			t.Fatalf("valid UTF-8 taken for %s", name)
		}
		d, err := open(content, "")
		if err != nil || !bytes.Equal(d.bytes(), content) {
			t.Fatalf("%s: %v", name, err)
		}
		for at := range d.text { // every offset of the text is one of the bytes, in order
			if at > 64 {
				break
			}
			if d.enc.Mapped() && d.rawOffset(at) > d.rawOffset(at+1) {
				t.Fatalf("offset %d", at)
			}
		}
	})
}

// regionOf picks some lines of a text.
func regionOf(text string, from, size byte) (string, int) {
	lines := strings.SplitAfter(text, "\n")
	a := int(from) % len(lines)
	b := min(len(lines), a+1+int(size)%8)
	return strings.Join(lines[a:b], ""), a + 1
}

// FuzzNumbers: what Read shows of some lines, pasted with its numbers, is those lines or nothing.
func FuzzNumbers(f *testing.F) {
	for i, s := range seedTexts() {
		f.Add(s, byte(i), byte(i), byte(i))
	}
	f.Fuzz(func(t *testing.T, text string, from, size, style byte) {
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\r\ufeff") {
			return
		}
		region, first := regionOf(text, from, size)
		formats := []string{"%6d→", "%d\t", "%6d\t", "%d: ", "%d:", "%4d | "}
		var old strings.Builder
		for i, l := range strings.SplitAfter(region, "\n") {
			if l != "" {
				fmt.Fprintf(&old, formats[int(style)%len(formats)], first+i)
			}
			old.WriteString(l)
		}
		r := checkApplied(t, []byte(text), []Edit{{Old: old.String(), New: "REPLACED"}}, Options{Encoding: "utf-8"})
		if r == nil || r.Steps[0].Strategy != StrategyRepaired {
			return
		}
		if want := strings.Replace(text, region, "REPLACED", 1); squeeze(string(r.Content)) != squeeze(want) && overlaps(text, region) == 1 {
			t.Fatalf("%q by %s made %q, want %q", old.String(), r.Steps[0].Strategy, r.Content, want)
		}
	})
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), "") }

// FuzzIndent: lines quoted at another depth or with other blanks: what is written has the same lines, and nothing else moves.
func FuzzIndent(f *testing.F) {
	f.Add("def f():\n    if x:\n        return 1\n    return 2\n", byte(1), byte(2), "\t", byte(0))
	f.Add("\tif x {\n\t\ty()\n\t}\n", byte(0), byte(3), "    ", byte(1))
	f.Fuzz(func(t *testing.T, text string, from, size byte, unit string, deeper byte) {
		if strings.Trim(unit, " \t") != "" || len(unit) > 8 {
			return
		}
		region, _ := regionOf(text, from, size)
		var old strings.Builder
		for l := range strings.SplitAfterSeq(region, "\n") {
			in := string(indentOf([]byte(l)))
			if strings.TrimSpace(l) != "" {
				old.WriteString(strings.Repeat(unit, int(deeper)%3) + strings.ReplaceAll(in, "    ", unit))
			}
			old.WriteString(l[len(in):])
		}
		r := checkApplied(t, []byte(text), []Edit{{Old: old.String(), New: old.String() + "z"}}, Options{Encoding: "utf-8"})
		if r == nil || r.Steps[0].Strategy != StrategyIndentation {
			return
		}
		want, got := squeeze(text)+"z", squeeze(string(r.Content))
		if len(want) != len(got) || strings.Count(want, "z") != strings.Count(got, "z") {
			t.Fatalf("made %q of %q with %q", r.Content, text, old.String())
		}
	})
}

// FuzzEscapes: text sent with one escaping too many ends where it was meant, or is refused.
func FuzzEscapes(f *testing.F) {
	f.Add(`s := "a\n"`+"\nt := `<b>&amp;</b>`\n", byte(0), byte(1), byte(0))
	f.Add("if (a && b < c) {\n\treturn \"é\";\n}\n", byte(0), byte(2), byte(1))
	f.Fuzz(func(t *testing.T, text string, from, size, how byte) {
		if !utf8.ValidString(text) {
			return
		}
		region, _ := regionOf(text, from, size)
		old := region
		switch how % 3 {
		case 0:
			old = strings.NewReplacer("\\", `\\`, "\n", `\n`, "\t", `\t`, `"`, `\"`).Replace(region)
		case 1:
			old = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(region)
		case 2:
			old = unicodeEscapes(region)
		}
		checkApplied(t, []byte(text), []Edit{{Old: old, New: "REPLACED"}}, Options{Encoding: "utf-8"})
	})
}

// FuzzStale: what was seen and is gone is found, or not, but never edited by guess.
func FuzzStale(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nB\nc\n", "b")
	f.Add("x\n", "", "x")
	f.Fuzz(func(t *testing.T, seen, text, old string) {
		checkApplied(t, []byte(text), []Edit{{Old: old, New: "NEW"}}, Options{Encoding: "utf-8", Seen: []byte(seen)})
	})
}

// unicodeEscapes writes all of s but ASCII as \u escapes.
func unicodeEscapes(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
