package office

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A pageMaker writes pages. It leaves out the end tags that optional names, as often as leave says, in hundredths.
type pageMaker struct {
	*rand.Rand
	b     strings.Builder
	leave int
	words int
}

// optional are the elements whose end tag HTML lets a page leave out, and some that mail is often sloppy with.
var optional = []string{"li", "dt", "dd", "p", "option", "thead", "tbody", "tfoot", "tr", "td", "th", "caption", "head", "body", "html", "div", "table", "ul", "b"}

func (m *pageMaker) word() {
	m.words++
	fmt.Fprintf(&m.b, "w%d", m.words)
}

func (m *pageMaker) element(name string, inner func()) {
	m.b.WriteString("<" + name + ">")
	inner()
	if m.IntN(100) < m.leave && slices.Contains(optional, name) {
		return
	}
	m.b.WriteString("</" + name + ">")
}

func (m *pageMaker) times(most int, f func()) {
	for range 1 + m.IntN(most) {
		f()
	}
}

func (m *pageMaker) flow(depth int) {
	kinds := 6
	if depth > 3 {
		kinds = 2
	}
	switch m.IntN(kinds) {
	case 0:
		m.element("p", m.word)
	case 1:
		m.b.WriteByte(' ')
		m.element("b", m.word)
		m.b.WriteString("<br>")
		m.word()
	case 2:
		m.element("ul", func() { m.times(3, func() { m.element("li", func() { m.flow(depth + 1) }) }) })
	case 3:
		m.element("dl", func() {
			m.times(2, func() { m.element("dt", m.word); m.element("dd", func() { m.flow(depth + 1) }) })
		})
	case 4:
		m.element("div", func() { m.times(2, func() { m.flow(depth + 1) }) })
	default:
		m.element("table", func() {
			if m.IntN(3) == 0 {
				m.element("caption", m.word)
			}
			rows := func() {
				m.times(3, func() {
					m.element("tr", func() {
						m.element("th", m.word)
						m.times(3, func() { m.element("td", func() { m.flow(depth + 1) }) })
					})
				})
			}
			if m.IntN(2) == 0 {
				m.element("thead", rows)
				m.element("tbody", rows)
			} else {
				rows()
			}
		})
	}
}

func makePage(seed uint64, leave int) string {
	m := &pageMaker{Rand: rand.New(rand.NewPCG(seed, 7)), leave: leave}
	m.element("html", func() {
		m.element("head", func() { m.b.WriteString("<title>unseen</title><style>unseen</style>") })
		m.element("body", func() {
			m.times(4, func() { m.flow(0) })
			if m.IntN(3) == 0 {
				m.element("select", func() { m.times(3, func() { m.element("option", m.word) }) })
			}
			m.element("p", m.word)
		})
	})
	return m.b.String()
}

// wordsOf are those of a text in order of the alphabet: where a page is sloppy a browser moves some.
func wordsOf(text string) []string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	slices.Sort(words)
	return words
}

// seenBy is the text of a page as the algorithm of browsers reads it.
func seenBy(t *testing.T, page string) string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	must(t, err)
	var b strings.Builder
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch n.DataAtom {
		case atom.Title, atom.Style, atom.Script, atom.Svg, atom.Math, atom.Iframe, atom.Noscript, atom.Template:
			return
		case atom.Br:
			b.WriteByte(' ')
		}
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		if blocks[n.DataAtom] {
			b.WriteByte(' ')
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
		if blocks[n.DataAtom] {
			b.WriteByte(' ')
		}
	}
	walk(root)
	return b.String()
}

func shownAs(t *testing.T, write func(*Document) error) string {
	t.Helper()
	d := New(context.Background())
	must(t, write(d))
	return string(d.Text())
}

// A page has the same words whichever of its end tags are left out, and those are the words that a browser shows.
func TestHTMLWithoutEndTags(t *testing.T) {
	for seed := range uint64(600) {
		page := makePage(seed, []int{0, 10, 50, 100}[seed%4])
		want := wordsOf(seenBy(t, page))
		shown, titled := strings.CutPrefix(shownAs(t, func(d *Document) error { return d.HTML(strings.NewReader(page)) }), "Title: unseen\n")
		if got := wordsOf(shown); !slices.Equal(got, want) || !titled {
			t.Fatalf("seed %d: %s\nis shown with %d words:\n%v\nnot with %d:\n%v", seed, page, len(got), got, len(want), want)
		}
		if seed%20 < 4 {
			mail := "From: a@example.com\r\nTo: b@example.com\r\nSubject: s\r\nMIME-Version: 1.0\r\nContent-Type: text/html; charset=us-ascii\r\n" +
				"Content-Transfer-Encoding: base64\r\n\r\n" + base64.StdEncoding.EncodeToString([]byte(page)) + "\r\n"
			_, body, _ := strings.Cut(shownAs(t, func(d *Document) error { return d.Email([]byte(mail)) }), "Subject: s\n")
			if got := wordsOf(body); !slices.Equal(got, want) {
				t.Fatalf("seed %d: the mail has the words %v", seed, got)
			}
			if got := wordsOf(bookOf(t, page)); !slices.Equal(got, want) {
				t.Fatalf("seed %d: the book has the words %v", seed, got)
			}
		}
	}
}

// bookOf is the text of a book of one chapter.
func bookOf(t *testing.T, chapter string) string {
	t.Helper()
	var raw bytes.Buffer
	w := zip.NewWriter(&raw)
	for _, part := range [][2]string{
		{"mimetype", "application/epub+zip"},
		{"META-INF/container.xml", `<container><rootfiles><rootfile full-path="book.opf"/></rootfiles></container>`},
		{"book.opf", `<package><manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine></package>`},
		{"c.xhtml", chapter},
	} {
		f, err := w.Create(part[0])
		must(t, err)
		f.Write([]byte(part[1]))
	}
	must(t, w.Close())
	z, err := zip.NewReader(bytes.NewReader(raw.Bytes()), int64(raw.Len()))
	must(t, err)
	d := Open(context.Background(), z)
	must(t, d.Write())
	return string(d.Text())
}

func TestHTMLDropsNothing(t *testing.T) {
	for page, want := range map[string]string{
		"<p>Dear customer,<table><tr><th>Item<th>Price<tr><td>Book<td>42 EUR</table><p>Please pay by Friday.": "Dear customer,\n\n| Item | Price |\n| --- | --- |\n| Book | 42 EUR |\n\nPlease pay by Friday.\n",
		"<table><tr><td>1</td><td>2</td><tr><td>3</td><td>4</td></table>after":                                "| 1 | 2 |\n| --- | --- |\n| 3 | 4 |\n\nafter\n",
		"<table><tr><td>a<td>b<table><tr><td>c<td>d":                                                          "a\n\nb\n\n| c | d |\n| --- | --- |\n",
		"<table><tr><td>a</td><td><table><tr><td>b</td></tr></table></td><td>c</td></tr></table>":             "a\n\nb\n\nc\n",
		"<table><td>a<td>b<tr><td>c":                                          "| a | b |\n| --- | --- |\n| c |\n",
		"<table><tr><td>a<br>b</table>":                                       "a\nb\n",
		"<table><tr><td>a<br>b<td>c</table>":                                  "| a b | c |\n| --- | --- |\n",
		"<ul><li>a<li>b<ol><li>c<li>d</ul><p>e":                               "- a\n- b\n  1. c\n  2. d\n\ne\n",
		"<html><head><title>t &amp;\nu</title><p>a":                           "Title: t & u\n\na\n",
		"<html xmlns='x'><head><title/></head><body><p>a</p></body>":          "a\n",
		"<html><head><script src='x'/></head><body><p>a</p></body></html>":    "a\n",
		"<p>a<svg><circle r=1><text>x</text><p>b":                             "a\n\nb\n",
		"<p>a<object data=x>instead":                                          "ainstead\n",
		"<pre>a\n  b":                                                         "```\na\n  b\n```\n",
		"<table><tr><td><a href='http://x/'>l</a> m":                          "[l](http://x/) m\n",
		"<table><tr><td>a<pre>b<svg>c":                                        "a\n\n```\nb\n```\n",
		"<table><tr><td>a<td>b<script>c":                                      "| a | b |\n| --- | --- |\n",
		"<table><tr><td>a" + strings.Repeat("<table>", 40) + "b<title>c":      "a\n\nb\n\nTitle: c\n",
		"<select><option>a<option>b</select>":                                 "a\n\nb\n",
		"<a href=x><div><img src=y><p>a<p>b</div></a>c":                       "[a](x)\n\nb\n\nc\n",
		"<table><tr><td>h<td>i<tr><td colspan=2>j<tr><td>k<td>l</table>":      "| h | i |\n| --- | --- |\n| j |\n| k | l |\n",
		"<table><tr><td><ul><li>a<li>b</ul><td><pre>c\n d</pre><td></table>e": "- a\n- b\n\n```\nc\n d\n```\n\ne\n",
		"<table><tr><td>a<td>b</tr>between<tr><td>c<td>d</table>":             "| a | b |\n| --- | --- |\n\nbetween\n\n| c | d |\n| --- | --- |\n",
		"<ol><li>a<table><tr><td>b<td>c</table><li>d</ol>":                    "1. a\n\n| b | c |\n| --- | --- |\n\n2. d\n",
		"\x00<td>a\x00b<table><td>\x00":                                       "\uFFFD\n\na\uFFFDb\n\n\uFFFD\n",
	} {
		if got := shownAs(t, func(d *Document) error { return d.HTML(strings.NewReader(page)) }); got != want {
			t.Errorf("%s\nis shown as %q\nand not as   %q", page, got, want)
		}
	}
}

// Text that a browser would not show is counted, in links and listings too.
func TestHTMLUnseen(t *testing.T) {
	d := New(context.Background())
	must(t, d.HTML(strings.NewReader("<a hidden href=x>four</a><pre hidden>five5</pre><p style='display: none'>s<a href=y>i</a>x6!<p>seen<td hidden>seven77</td>")))
	if d.hidden.vanished != 4+5+5+7 {
		t.Errorf("%d characters are hidden", d.hidden.vanished)
	}
}

// A page of many elements that are never closed shows the text in them.
func TestHTMLDeep(t *testing.T) {
	for _, tag := range []string{"div", "table", "table><tr><td", "ul><li", "b", "a href=x", "pre", "svg", "span hidden", "select><option", "font color=1"} {
		page := "w1" + strings.Repeat("<"+tag+">", 100_000) + " w2"
		want := 2
		if tag == "svg" {
			want = 1 // what is drawn is no text
		}
		if got := wordsOf(shownAs(t, func(d *Document) error { return d.HTML(strings.NewReader(page)) })); len(slices.DeleteFunc(got, func(w string) bool { return w[0] != 'w' })) != want {
			t.Errorf("<%s>: %.80q", tag, got)
		}
	}
}

// A cell that is never closed takes no more time for the links in it.
func TestHTMLOpenCellOfLinks(t *testing.T) {
	page := "<table><tr><td>" + strings.Repeat("<a href='http://example.com/'>link</a><p>", 40_000)
	began := time.Now()
	text := shownAs(t, func(d *Document) error { return d.HTML(strings.NewReader(page)) })
	if n := strings.Count(text, "[link]"); n != 40_000 {
		t.Errorf("%d links", n)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
