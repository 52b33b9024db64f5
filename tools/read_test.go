package tools_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"

	"moltisfs/config"
	"moltisfs/readers"
	"moltisfs/tools"
)

// A notebook of which an output was shortened is not overwritten unseen. Its source, read whole, is what it takes.
func TestNotebookWithCutOutputsIsNotWhollySeen(t *testing.T) {
	s, root := suite(t, func(c *config.FS) { c.MustReadBeforeWrite, c.TrackReads = true, true }, tools.Options{})
	out := func(n int) string { return strings.Repeat("0123456789", n) }
	for _, c := range []struct {
		name, output string
		whole        bool
	}{{"short.ipynb", out(10), true}, {"long.ipynb", out(2000), false}} {
		file := write(t, filepath.Join(root, c.name), `{"nbformat":4,"nbformat_minor":5,"metadata":{},"cells":[{"cell_type":"code","id":"a","metadata":{},"source":"x",`+
			"\n"+`"outputs":[{"output_type":"stream","name":"stdout","text":"`+c.output[:len(c.output)/2]+`\n`+c.output[len(c.output)/2:]+`"}]}]}`)
		overwrite := map[string]any{"file_path": file, "content": `{"cells":[],"nbformat":4}`, "dry_run": true}
		call(t, s, "Read", map[string]any{"file_path": file})
		if p := call(t, s, "Write", overwrite); (p.Kind() == "write") != c.whole {
			t.Errorf("%s after its cells: %s", c.name, p.Text())
		}
		call(t, s, "Read", map[string]any{"file_path": file, "encoding": "utf-8"})
		if p := call(t, s, "Read", map[string]any{"file_path": file, "encoding": "utf-8", "offset": 2, "column": 1}); strings.Contains(p.Text(), " cut") {
			t.Fatalf("%s: %.200s", c.name, p.Text())
		}
		if p := call(t, s, "Write", overwrite); p.Kind() != "write" {
			t.Errorf("%s after its source: %s", c.name, p.Text())
		}
	}
}

// TestBytesThatMeanNothingAlone: in a text with escapes to other character sets the bytes of two letters may be one kanji. It is not
// edited, nor written over in another encoding by chance. A call that names an encoding is obeyed.
func TestBytesThatMeanNothingAlone(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	jis, err := japanese.ISO2022JP.NewEncoder().String("設定ファイル\nplain\n")
	must(t, err)
	hz, err := simplifiedchinese.HZGB2312.NewEncoder().String("己所不欲\nplain\n")
	must(t, err)
	for name, raw := range map[string]string{"iso-2022-jp": jis, "hz-gb-2312": hz, "iso-2022": "\x1b$)C\x0e0!3*\x0f\nplain\n"} {
		for tool, args := range map[string]map[string]any{
			"Edit":      {"old_string": "plain", "new_string": "x"},
			"MultiEdit": {"edits": []any{map[string]any{"old_string": "plain", "new_string": "x"}}},
			"Write":     {"content": "x\n"},
		} {
			file := write(t, filepath.Join(root, name+tool), raw) // of its own: the session keeps the encoding that it named
			args["file_path"] = file
			if p := call(t, s, tool, args); p.Kind() != tools.KindUnsupported || content(t, file) != raw || !strings.Contains(p.Text(), name) {
				t.Errorf("%s, %s: %s", name, tool, mustEncode(t, p))
			}
			if args["encoding"] = name; name != "iso-2022" {
				if p := call(t, s, tool, args); p.Kind() != tools.KindUnsupported || content(t, file) != raw {
					t.Errorf("%s, %s: %s", name, tool, mustEncode(t, p))
				}
			}
			args["encoding"] = "utf-8"
			does(t, s, tool, args)
		}
	}
	// Escapes that only colour or reset a terminal are no such thing.
	for _, raw := range []string{"\x1b[1mplain\x1b(B\x1b[m\n", "~{a plain} and ~}\n", "plain ~{\n"} {
		file := write(t, filepath.Join(root, "log"), raw)
		does(t, s, "Edit", map[string]any{"file_path": file, "old_string": "plain", "new_string": "x"})
	}
}

// TestRefutedGuess: where the file has bytes that are none of the encoding that was guessed, new letters beyond ASCII are not written by that guess.
// ASCII is, and whoever names the encoding is obeyed.
func TestRefutedGuess(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	german := "Die Richtlinien f\u00fcr Gr\u00f6\u00dfe und sch\u00f6ne \u00dcbung w\u00e4ren\nzweite Zeile\n"
	refuted := 0
	for name, c := range map[string]struct {
		enc             encoding.Encoding
		raw, text, word string
	}{
		"ibm850": {charmap.CodePage850, "", german, "f\u00fcr \u00dcbung"}, "ibm437": {charmap.CodePage437, "", german, "f\u00fcr"}, "ibm852": {charmap.CodePage852, "", german, "f\u00fcr"},
		"macintosh": {charmap.Macintosh, "", german, "f\u00fcr"}, "windows-1252": {charmap.Windows1252, "", german, "f\u00fcr"},
		"shift_jis": {japanese.ShiftJIS, "\xff damaged\n", content(t, "../testdata/readers/encoding/japanese.txt") + "zweite Zeile\n", "保存"},
		"gbk":       {simplifiedchinese.GBK, "\xff damaged\n", content(t, "../testdata/readers/encoding/chinese.txt") + "zweite Zeile\n", "保存"},
	} {
		raw, err := c.enc.NewEncoder().String(c.text)
		must(t, err)
		raw += c.raw
		file := write(t, filepath.Join(root, name), raw)
		body, ok := call(t, s, "Read", map[string]any{"file_path": file}).(*tools.Content).Body.(*readers.Text)
		if !ok || body.InvalidBytes == 0 || body.Encoding == "utf-8" {
			continue // the guess holds
		}
		refuted++
		for tool, args := range map[string]map[string]any{
			"Edit":      {"old_string": "zweite", "new_string": c.word},
			"MultiEdit": {"edits": []any{map[string]any{"old_string": "zweite", "new_string": "dritte"}, map[string]any{"old_string": "dritte", "new_string": c.word}}},
			"Write":     {"content": c.word + "\n"},
		} {
			file := write(t, filepath.Join(root, name+tool), raw) // a session that has named the encoding of one knows it
			args["file_path"] = file
			if p := call(t, s, tool, args); !tools.Refused(p) || content(t, file) != raw || !strings.Contains(p.Text(), "encoding") {
				t.Errorf("%s, %s: %s", name, tool, mustEncode(t, p))
			}
			args["encoding"] = name
			want, _ := c.enc.NewEncoder().String(c.word)
			if p := call(t, s, tool, args); tools.Refused(p) || !strings.Contains(content(t, file), want) {
				t.Errorf("%s, %s, named: %s", name, tool, mustEncode(t, p))
			}
		}
		if p := call(t, s, "Edit", map[string]any{"file_path": file, "old_string": "zweite", "new_string": "ASCII"}); tools.Refused(p) ||
			content(t, file) != strings.Replace(raw, "zweite", "ASCII", 1) {
			t.Errorf("%s, ASCII: %s", name, mustEncode(t, p))
		}
	}
	if refuted == 0 {
		t.Error("no guess was refuted")
	}
}

// The write-ahead log of a database is read as a Read of it would be: a closed one gives nothing, whether or not it is there. Nothing is written beside the database.
func TestLogBesideDatabase(t *testing.T) {
	made := filepath.Join(t.TempDir(), "made.db")
	db, err := sql.Open("sqlite", made)
	must(t, err)
	defer db.Close() //nolint:errcheck // of a test
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(t.Context(), "PRAGMA journal_mode=wal; PRAGMA wal_autocheckpoint=0; CREATE TABLE t(a); INSERT INTO t VALUES ('only in the log')")
	must(t, err)
	s, root := suite(t, func(c *config.FS) { c.DenyPaths = []string{c.WorkspaceRoot + "/closed*-wal"} }, tools.Options{})
	for name, shown := range map[string]bool{"open": true, "closed": false, "closed without": false, "without": false} {
		file := write(t, filepath.Join(root, name+".db"), content(t, made))
		if !strings.HasSuffix(name, "without") {
			write(t, file+"-wal", content(t, made+"-wal"))
		}
		p := call(t, s, "Read", map[string]any{"file_path": file})
		if got := mustEncode(t, p); strings.Contains(got, "only in the log") != shown || strings.Contains(got, "is not shown") != strings.HasPrefix(name, "closed") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if names, err := filepath.Glob(filepath.Join(root, "*")); err != nil || len(names) != 6 {
		t.Error(names, err)
	}
}
