package tools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"

	"moltisfs/config"
	"moltisfs/readers"
	"moltisfs/tools"
)

// TestEncodingOfTheSession: the encoding that a session has named in Read holds for its Edit, MultiEdit, Write and Grep, with reads tracked or not. No
// other session has it, and what others have made UTF-8 meanwhile is UTF-8.
func TestEncodingOfTheSession(t *testing.T) {
	for _, tracked := range []bool{false, true} {
		s, root := suite(t, func(c *config.FS) { c.TrackReads = tracked }, tools.Options{})
		was := "Preis f\x81r \x8epfel\nzweite Zeile\n" // cp850
		latin := func(text string) string {
			raw, err := charmap.CodePage850.NewEncoder().String(text)
			must(t, err)
			return raw
		}
		file := filepath.Join(root, "dos.txt")
		for tool, c := range map[string]struct {
			args map[string]any
			want string
		}{
			"Edit": {map[string]any{"old_string": "f\u00fcr", "new_string": "f\u00fcr sch\u00f6ne"}, strings.Replace(was, "f\x81r", latin("f\u00fcr sch\u00f6ne"), 1)},
			"MultiEdit": {map[string]any{"edits": []any{map[string]any{"old_string": "f\u00fcr", "new_string": "\u00fcber"}, map[string]any{"old_string": "zweite", "new_string": "f\u00fcnfte"}}},
				strings.Replace(strings.Replace(was, "f\x81r", latin("\u00fcber"), 1), "zweite", latin("f\u00fcnfte"), 1)},
			"Write": {map[string]any{"content": "\u00dcbung\n"}, latin("\u00dcbung\n")},
		} {
			write(t, file, was)
			does(t, s, "Read", map[string]any{"file_path": file, "encoding": "cp850"})
			c.args["file_path"] = file
			does(t, s, tool, c.args)
			if got := content(t, file); got != c.want {
				t.Errorf("%s, tracked %v: %q, want %q", tool, tracked, got, c.want)
			}
			if p := call(t, s, "Grep", map[string]any{"pattern": "\u00fcr|\u00dcb|\u00fcb", "path": root, "output_mode": "content"}); !strings.Contains(p.Text(), "dos.txt") && !strings.Contains(p.Text(), "1:") {
				t.Errorf("Grep after %s: %s", tool, p.Text())
			}
		}
		write(t, file, was)
		does(t, s, "Read", map[string]any{"file_path": file, "encoding": "koi8-r"}) // wrong, and named
		must(t, os.WriteFile(file, []byte("f\u00fcr alle, \u00fcberall, sch\u00f6ne Gr\u00fc\u00dfe\n"), 0o600))
		if p := call(t, s, "Edit", map[string]any{"file_path": file, "old_string": "f\u00fcr", "new_string": "\u00fcber"}); !tools.Refused(p) && !strings.Contains(content(t, file), "\u00fcber alle") {
			t.Errorf("of a file that is UTF-8 now: %q", content(t, file))
		}
	}
}

// TestGrepEncoding: the argument is that of files that are not UTF-8, and of a file that is named alone.
func TestGrepEncoding(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	write(t, filepath.Join(root, "dos"), "f\x81r\n")
	write(t, filepath.Join(root, "utf8"), "f\u00fcr\n")
	nul := write(t, filepath.Join(root, "nul.log"), "a\x00b f\u00fcr\n")
	for _, c := range []struct{ path, encoding, want string }{
		{root, "cp850", "dos:1:f\u00fcr"}, {root, "cp850", "utf8:1:f\u00fcr"}, {filepath.Join(root, "utf8"), "latin1", "No matches"},
		{nul, "utf-8", "1:a"}, {root, "cp9999", "no such encoding"},
	} {
		if p := call(t, s, "Grep", map[string]any{"pattern": "f\u00fcr", "path": c.path, "encoding": c.encoding, "output_mode": "content"}); !strings.Contains(p.Text(), c.want) {
			t.Errorf("%s as %s: %s", c.path, c.encoding, p.Text())
		}
	}
}

// TestCloseGuess: where another encoding is about as likely, Read says which, and no character is written that it has in other bytes. Characters that are
// the same in both are, ASCII is, and who names the encoding is obeyed.
func TestCloseGuess(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	raw := "\x8andert\nzweite Zeile\n" // Ä in macintosh, Š in windows-1252
	file := write(t, filepath.Join(root, "a"), raw)
	body := call(t, s, "Read", map[string]any{"file_path": file}).(*tools.Content).Body.(*readers.Text)
	if !body.EncodingGuess || body.RunnerUp == "" {
		t.Fatalf("%+v is no guess", body)
	}
	for tool, args := range map[string]map[string]any{
		"Edit":      {"old_string": "zweite", "new_string": "\u00e4ndere"},
		"MultiEdit": {"edits": []any{map[string]any{"old_string": "zweite", "new_string": "\u00e4ndere"}}},
		"Write":     {"content": "\u00e4ndere\n"},
	} {
		file := write(t, filepath.Join(root, tool), raw) // a session that has named the encoding of one knows it
		args["file_path"] = file
		if p := call(t, s, tool, args); !tools.Refused(p) || content(t, file) != raw || !strings.Contains(p.Text(), body.RunnerUp) {
			t.Errorf("%s: %s", tool, mustEncode(t, p))
		}
		args["encoding"] = "macintosh"
		if p := call(t, s, tool, args); tools.Refused(p) || !strings.Contains(content(t, file), "\x8andere") {
			t.Errorf("%s, named: %s", tool, mustEncode(t, p))
		}
	}
	does(t, s, "Read", map[string]any{"file_path": file})
	does(t, s, "Edit", map[string]any{"file_path": file, "old_string": "zweite", "new_string": "dritte"})
	// A named encoding that the file is surely not in.
	surely := "f\u00fcr alle, \u00fcberall, sch\u00f6ne Gr\u00fc\u00dfe\n"
	write(t, file, surely)
	does(t, s, "Read", map[string]any{"file_path": file, "encoding": "latin1"})
	if p := call(t, s, "Edit", map[string]any{"file_path": file, "old_string": "alle", "new_string": "\u00e4lle"}); !tools.Refused(p) || content(t, file) != surely {
		t.Errorf("two tables: %s %q", mustEncode(t, p), content(t, file))
	}
}

// TestTerminalCodes: Read shows a log as a terminal does, an old_string that was taken from there leads to the file's own text, and whoever has not seen
// the codes does not write over them unasked.
func TestTerminalCodes(t *testing.T) {
	s, root := suite(t, func(c *config.FS) { c.TrackReads, c.MustReadBeforeWrite = true, true }, tools.Options{})
	raw := "start\n\x1b[32mok\x1b[0m build\nfetch 10%\rfetch 99%\rfetch 100%, done\nMac 1\rOld line\n"
	file := write(t, filepath.Join(root, "log"), raw)
	body := call(t, s, "Read", map[string]any{"file_path": file}).(*tools.Content).Body.(*readers.Text)
	if want := "start\nok build\nfetch 100%, done\nMac 1\rOld line\n"; plainLines(body.Content) != want || body.ANSILines != 2 {
		t.Errorf("%q, %d lines", plainLines(body.Content), body.ANSILines)
	}
	for _, old := range []string{"ok build"} {
		p := call(t, s, "Edit", map[string]any{"file_path": file, "old_string": old, "new_string": "x"})
		if r, ok := p.(*tools.Refusal); !ok || r.Next == nil || r.Next.Args["ansi"] != true {
			t.Errorf("%q: %s", old, mustEncode(t, p))
		}
	}
	p := call(t, s, "Write", map[string]any{"file_path": file, "content": "x\n"})
	if r, ok := p.(*tools.Refusal); !ok || r.Next == nil || r.Next.Args["ansi"] != true {
		t.Errorf("Write: %s", mustEncode(t, p))
	}
	body = call(t, s, "Read", map[string]any{"file_path": file, "ansi": true}).(*tools.Content).Body.(*readers.Text)
	if plainLines(body.Content) != raw || body.ANSILines != 0 {
		t.Errorf("with its codes: %q", body.Content)
	}
	does(t, s, "Edit", map[string]any{"file_path": file, "old_string": "\x1b[32mok", "new_string": "\x1b[31mbad"})
	does(t, s, "Write", map[string]any{"file_path": file, "content": "x\n"})
}

// plainLines takes the numbers off numbered lines.
func plainLines(numbered string) (out string) {
	for l := range strings.Lines(numbered) {
		_, l, _ = strings.Cut(l, "\u2192")
		out += l
	}
	return out
}
