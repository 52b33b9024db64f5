package readers

import (
	"strings"
	"testing"
)

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
