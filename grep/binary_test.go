package grep

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"moltisfs/grep/match"
)

func utf16le(s string) string {
	b := []byte("\xff\xfe")
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return string(b)
}

// A file is binary by a NUL in its first 8,000 bytes, as in git. A NUL that comes later takes no line away, and one that comes earlier
// does not keep the file from being named.
func TestNULs(t *testing.T) {
	code := strings.Repeat("export function fn(){}\n", 600)
	log := strings.Repeat("2026-01-01 12:00:00 nothing to see\n", 46_000)
	texts := map[string]string{ // name: text
		"end":      code + "needle\n\x00",
		"log":      log + "needle\n\x00",
		"big":      strings.Repeat(log, 4) + "\x00\x00needle\n", // several workers share it
		"block":    code + "before\n" + strings.Repeat("\x00", 600) + "\nneedle\n",
		"wide":     utf16le("one\x00two\nneedle\n"),
		"script":   "#!/bin/sh\n" + code + "needle é\nexit\n" + strings.Repeat("\x1f\x8b\x00\xff\x81", 9000),
		"8000":     strings.Repeat("x", 7992) + "\nneedle\n\x00",
		"one line": strings.Repeat("x", 9<<20) + "\x00 needle",
	}
	files := []string{"plain", "needle\n"}
	binaries := map[string]string{
		"head": "# Title\nneedle \x00 two\n", "7999": strings.Repeat("x", 7991) + "\nneedle\n\x00", "zeros": strings.Repeat("\x00", 7000) + "\nneedle\n",
		"object": "\x7fELF\x01\x01\x00\x00\x00needle\x00", "middle": code[:3000] + "\x00" + code + "needle\n",
	}
	for name, text := range texts {
		files = append(files, name, text)
	}
	for name, text := range binaries {
		files = append(files, name, text)
	}
	files = append(files, "other", "\x00nothing", "large", "\x00"+strings.Repeat("nothing", 60_000)+"needle")
	d := FS(treeFS(files...))
	for _, multi := range []bool{false, true} {
		for _, mode := range []Mode{FilesWithMatches, Count, Content} {
			for _, workers := range []int{1, 3} {
				m := compile(t, "needle", match.Options{Multiline: multi})
				r := searched(t, Walk{Dir: d, Workers: workers}, Query{Matcher: m, Mode: mode, Multiline: multi})
				want := []string{"7999", "head", "middle", "object", "zeros"}
				if !slices.Equal(r.Binary, want) || r.Skipped.Binary != 1 || r.Totals.Files != len(texts)+1 {
					t.Errorf("multiline %v, mode %d: binary %v, skipped %+v, %d files", multi, mode, r.Binary, r.Skipped, r.Totals.Files)
				}
				if mode == Content && len(r.Rows) != len(texts)+1 {
					t.Errorf("multiline %v: %d rows", multi, len(r.Rows))
				}
			}
		}
	}
}
