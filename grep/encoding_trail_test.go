package grep

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"moltisfs/grep/match"
)

// TestTrailBytes: the second byte of a character is no letter, brace or backslash, whatever it
// looks like.
func TestTrailBytes(t *testing.T) {
	t.Parallel()
	const japaneseText, chinese = "ソフトウェア本体の表示予定能力 foo\n", "我們的軟體功能許可與誤差,這是一個測試 foo\n"
	for name, c := range map[string]struct {
		text string
		e    encoding.Encoding
	}{
		"Shift-JIS":   {japaneseText, japanese.ShiftJIS},
		"ISO-2022-JP": {japaneseText, japanese.ISO2022JP},
		"GBK":         {strings.Repeat("丂亄亊俙倈偁僡儊, 这是一个测试，我们在这里写一些中文，文件可以打开。 foo\n", 3), simplifiedchinese.GBK},
		"Big5":        {chinese, traditionalchinese.Big5},
	} {
		raw, err := c.e.NewEncoder().String(c.text)
		must(t, err)
		for _, size := range []int{1, 30_000} { // in one buffer, and shared between workers
			text := strings.Repeat(raw, size)
			d := FS(fstest.MapFS{"f": &fstest.MapFile{Data: []byte(text)}})
			for _, multiline := range []bool{false, true} {
				m := compile(t, `[a-z\\{}|~@^_\[\]]+`, match.Options{Multiline: multiline})
				r := searched(t, Walk{Dir: d, Workers: 2}, Query{Matcher: m, Multiline: multiline, Mode: Content, OnlyMatching: true, Limit: 5})
				want := strings.Count(c.text, "foo") * size
				if r.Totals.Matches != want || len(r.Rows) == 0 || r.Rows[0].Text != "foo" {
					t.Errorf("%s × %d, multiline %v: %d matches, want %d: %v", name, size, multiline, r.Totals.Matches, want, fmt.Sprint(r.Rows))
				}
			}
		}
	}
}

// TestBytesAreBytes: a pattern that asks for bytes finds them in a file of any encoding, alone and
// among others.
func TestBytesAreBytes(t *testing.T) {
	dir := fstest.MapFS{}
	sjis, err := japanese.ShiftJIS.NewEncoder().String("ソフトウェア本体の表示予定能力 foo\n")
	must(t, err)
	for name, text := range map[string]string{
		"latin1": "na\xefve caf\xe9\n", "sjis": sjis, "utf8": "naïve café\n", "torn": "ok\nfoo\xffbar\n",
	} {
		dir[name] = &fstest.MapFile{Data: []byte(text)}
	}
	for pattern, want := range map[string]string{
		`(?-u)\xff`: "torn", `(?-u:\xe9)`: "latin1", `caf(?-u:[^a-z])`: "latin1 utf8", `(?-u)\x83\\`: "sjis", `(?-u:\x97)\\`: "sjis", `é`: "latin1 utf8", `\xe9`: "latin1 utf8",
	} {
		m := compile(t, pattern, match.Options{CRLF: true})
		for _, mode := range []Mode{FilesWithMatches, Content} {
			r := searched(t, Walk{Dir: FS(dir)}, Query{Matcher: m, Mode: mode})
			var got []string
			for _, f := range r.Files {
				got = append(got, filepath.Base(f.Path))
			}
			for _, f := range r.Rows {
				got = append(got, filepath.Base(f.Path))
			}
			slices.Sort(got)
			if s := strings.Join(got, " "); s != want {
				t.Errorf("%s, mode %d: %s, want %s", pattern, mode, s, want)
			}
		}
	}
}
