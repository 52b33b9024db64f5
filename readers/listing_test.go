package readers

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// madeELF is a shared object with two libraries, in either width and byte order.
func madeELF(wide bool, order binary.AppendByteOrder) []byte {
	word := func(b []byte, v uint64) []byte { // of the file's width
		if wide {
			return order.AppendUint64(b, v)
		}
		return order.AppendUint32(b, uint32(v))
	}
	class, header, entry := byte(1), 52, 40
	if wide {
		class, header, entry = 2, 64, 64
	}
	data := byte(1)
	if order.String() == "BigEndian" {
		data = 2
	}
	dynstr := "\x00libone.so.1\x00lib\ttwo.so\x00"
	names := "\x00.dynstr\x00.dynamic\x00.bss\x00.shstrtab\x00"
	var dynamic []byte
	for _, v := range []uint64{1, 1, 1, 13, 0, 0} {
		dynamic = word(dynamic, v)
	}
	body := append([]byte(dynstr), dynamic...)
	body = append(body, names...)
	at := uint64(header)
	b := append([]byte("\x7fELF"), class, data, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	b = order.AppendUint16(b, 3)
	b = order.AppendUint16(b, 62)
	b = order.AppendUint32(b, 1)
	b = word(word(word(b, 0), 0), at+uint64(len(body)))
	b = order.AppendUint32(b, 0)
	for _, v := range []uint16{uint16(header), 0, 0, uint16(entry), 5, 4} {
		b = order.AppendUint16(b, v)
	}
	b = append(b, body...)
	section := func(name, kind uint32, offset, size uint64, link uint32) {
		b = order.AppendUint32(order.AppendUint32(b, name), kind)
		b = word(word(word(word(b, 0), 0), offset), size)
		b = order.AppendUint32(order.AppendUint32(b, link), 0)
		b = word(word(b, 0), 0)
	}
	section(0, 0, 0, 0, 0)
	section(1, 3, at, uint64(len(dynstr)), 0)
	section(9, 6, at+uint64(len(dynstr)), uint64(len(dynamic)), 1)
	section(18, 8, at, 1<<30, 0) // takes no place in the file
	section(23, 3, at+uint64(len(dynstr)+len(dynamic)), uint64(len(names)), 0)
	return b
}

func TestELF(t *testing.T) {
	for _, wide := range []bool{true, false} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			raw := madeELF(wide, order)
			b := readAs[*Binary](t, raw, Options{})
			if b.Entries != 6 || b.EntriesCut || !strings.HasSuffix(b.Summary, "-endian, 4 sections, 2 libraries") || !strings.HasPrefix(b.Summary, "ELF shared object") {
				t.Errorf("%d entries, %q", b.Entries, b.Summary)
			}
			if len(b.Listing) != 6 || b.Listing[0] != "needs libone.so.1" || b.Listing[1] != `needs "lib\ttwo.so"` || b.Listing[2] != ".dynstr (24 bytes)" || b.Listing[4] != ".bss (1024 MB)" {
				t.Errorf("%q", b.Listing)
			}
			for cut := len(raw) - 1; cut > 64; cut-- {
				if b := readAs[*Binary](t, raw[:cut], Options{}); !strings.Contains(b.Summary, "truncated") {
					t.Fatalf("the first %d of %d bytes: %q", cut, len(raw), b.Summary)
				}
			}
			for i := range raw[16:] { // hostile ones end
				bad := slices.Clone(raw)
				bad[16+i] = 0xff
				readAs[*Binary](t, bad, Options{})
			}
		}
	}
}

func TestAr(t *testing.T) {
	member := func(name, body string) string {
		s := fmt.Sprintf("%-16s%-12d%-6d%-6d%-8s%-10d`\n%s", name, 0, 0, 0, "644", len(body), body)
		if len(body)%2 == 1 {
			s += "\n"
		}
		return s
	}
	raw := "!<arch>\n" + member("/", "\x00\x00\x00\x00") + member("//", "a_name_of_more_than_16.o/\n") + member("/0", "abc") + member("b.o/", "\x00\x01") + member("#1/8", "bsd.o\x00\x00\x00body!")
	b := readAs[*Binary](t, []byte(raw), Options{})
	if want := []string{"a_name_of_more_than_16.o (3 bytes)", "b.o (2 bytes)", "bsd.o (5 bytes)"}; !slices.Equal(b.Listing, want) || b.Summary != "ar archive, 3 entries, 10 bytes" || b.EntriesCut {
		t.Errorf("%q, %q", b.Summary, b.Listing)
	}
	for _, bad := range []string{raw[:len(raw)-4], raw[:len(raw)-30], raw + "\x00 no member here"} {
		if b := readAs[*Binary](t, []byte(bad), Options{}); !strings.Contains(b.Summary, "truncated") || !b.EntriesCut || len(b.Listing) < 2 {
			t.Errorf("%q, %q", b.Summary, b.Listing)
		}
	}
}

// A database says when its end is missing; a name that breaks the line is quoted.
func TestSQLiteCutAndQuoted(t *testing.T) {
	raw := corpusFile(t, "binary/one.db")
	if b := readAs[*Binary](t, raw, Options{}); strings.Contains(b.Summary, "truncated") {
		t.Errorf("intact: %q", b.Summary)
	}
	if b := readAs[*Binary](t, raw[:len(raw)-1], Options{}); !strings.Contains(b.Summary, "truncated") {
		t.Errorf("cut: %q", b.Summary)
	}
	bad := []byte(strings.ReplaceAll(string(raw), "adults", "ad\nl\x1bs"))
	b := readAs[*Binary](t, bad, Options{})
	if got := b.Listing[2]; !strings.HasPrefix(got, `view "ad\nl\x1bs": CREATE VIEW`) || strings.ContainsAny(got, "\n\x1b") {
		t.Errorf("%q", got)
	}
}

func TestBinaryNamesTheNextMove(t *testing.T) {
	raw := []byte("\x00\x01\x02\x03 noise \x00\x00\x00")
	if b := readAs[*Binary](t, raw, Options{}); !strings.Contains(b.Note, "binary_policy") {
		t.Errorf("%q", b.Note)
	}
	if b := readAs[*Binary](t, raw, Options{BinaryPolicy: "base64"}); b.Note != "" {
		t.Errorf("%q", b.Note)
	}
}
