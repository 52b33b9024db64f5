package office

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"moltisfs/internal/text"
	"moltisfs/readers/unreadable"
)

const (
	emailParts = 200
	emailDepth = 8
)

// LooksEmail recognises a message by its header: several lines "Name: value" from the first, with names only mail has.
func LooksEmail(head []byte) bool {
	head = head[:min(len(head), 4096)]
	known := 0
	for len(head) > 0 {
		line, rest, _ := bytes.Cut(head, []byte{'\n'})
		head = rest
		line = bytes.TrimRight(line, "\r")
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			continue
		}
		i := bytes.IndexByte(line, ':')
		if i < 1 || bytes.IndexByte(line[:i], ' ') >= 0 {
			break
		}
		switch strings.ToLower(string(line[:i])) {
		case "from", "to", "subject", "date", "message-id", "received", "return-path", "mime-version", "content-type", "delivered-to", "dkim-signature":
			known++
		}
	}
	return known >= 3
}

// Email writes the headers a person sees, the text, and the names of attachments. A message that breaks the rules is shown as far as it goes, and a note
// says what is wrong.
func (d *Document) Email(raw []byte) error { return d.end(d.email(raw)) }

func (d *Document) email(raw []byte) error {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil { // a line of the header is none
		head, body, _ := bytes.Cut(bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
		var kept [][]byte
		for _, line := range bytes.Split(head, []byte("\n")) {
			name, _, named := bytes.Cut(line, []byte(":"))
			if goesOn := len(line) > 0 && (line[0] == ' ' || line[0] == '\t'); goesOn && len(kept) > 0 || named && len(name) > 0 && !bytes.ContainsAny(name, " \t") {
				kept = append(kept, line)
			}
		}
		d.note("Lines of its header that are none are left out.")
		if m, err = mail.ReadMessage(io.MultiReader(bytes.NewReader(bytes.Join(kept, []byte("\n"))), strings.NewReader("\n\n"), bytes.NewReader(body))); err != nil {
			return &unreadable.Damaged{What: "email", Why: err.Error()}
		}
	}
	for _, h := range []string{"From", "To", "Cc", "Date", "Subject"} {
		if v := m.Header.Get(h); v != "" {
			if err := d.add(h, ": ", strings.Join(strings.Fields(d.headerText(v)), " "), "\n"); err != nil {
				return err
			}
		}
	}
	d.block()
	body, err := io.ReadAll(m.Body)
	if err != nil {
		return err
	}
	e := emailReader{d: d}
	if err := e.part(textproto.MIMEHeader(m.Header), body, 0); err != nil {
		return err
	}
	if len(e.attached) > 0 {
		d.block()
		return d.add("Attachments:\n- ", strings.Join(e.attached, "\n- "), "\n")
	}
	return nil
}

// encodedWord is a word of a header in an encoding of its own.
var encodedWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`=\?[^?\s]+\?[bBqQ]\?[^?]*\?=`) })

// headerText decodes the words of a header. A word in an unknown encoding stays as it is.
func (d *Document) headerText(v string) string {
	dec := mime.WordDecoder{CharsetReader: charsetReader}
	s, err := dec.DecodeHeader(v)
	if err != nil {
		s = encodedWord().ReplaceAllStringFunc(v, func(word string) string {
			if s, err := dec.Decode(strings.ReplaceAll(word, " ", "_")); err == nil {
				return s
			}
			return word
		})
	}
	if encodedWord().MatchString(s) {
		d.note("Words of its header could not be decoded.")
	}
	if !utf8.ValidString(s) {
		s = string(decodeText("", []byte(s)))
	}
	return s
}

// decodeText makes UTF-8 of b, which says that it is in charset.
func decodeText(charset string, b []byte) []byte {
	for _, asked := range []string{charset, ""} {
		if enc, mark := text.ToRead(asked, b); enc.Encoding != nil {
			if content, err := enc.Decode(b[mark:]); err == nil {
				return content
			}
		}
	}
	return bytes.ToValidUTF8(b, []byte("\uFFFD"))
}

type emailReader struct {
	d        *Document
	parts    int
	attached []string
}

func (e *emailReader) part(h textproto.MIMEHeader, body []byte, depth int) error {
	if e.parts++; e.parts > emailParts || depth > emailDepth {
		e.d.note(fmt.Sprintf("It has more than %d parts, or they nest deeper than %d; those are not shown.", emailParts, emailDepth))
		return nil
	}
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil && (!errors.Is(err, mime.ErrInvalidMediaParameter) || media == "") {
		media, params = "text/plain", nil
	}
	disposition, named, _ := mime.ParseMediaType(h.Get("Content-Disposition"))
	if strings.HasPrefix(media, "multipart/") {
		return e.multipart(media, params["boundary"], body, depth)
	}
	switch strings.ToLower(strings.TrimSpace(h.Get("Content-Transfer-Encoding"))) {
	case "base64":
		body = fromBase64(body)
	case "quoted-printable":
		body = fromQuoted(body)
	}
	if disposition == "attachment" || !strings.HasPrefix(media, "text/") {
		name := e.d.headerText(cmp.Or(named["filename"], params["name"]))
		e.attached = append(e.attached, unreadable.Entry(name, int64(len(body)))+" "+unreadable.Clip(media, 80))
		return nil
	}
	content := decodeText(params["charset"], body)
	e.d.block()
	if media == "text/html" {
		return e.d.html(bytes.NewReader(content), false)
	}
	return e.d.add(strings.ReplaceAll(string(content), "\r\n", "\n"), "\n")
}

// multipart reads all parts, but of alternatives only the plainest text.
func (e *emailReader) multipart(media, boundary string, body []byte, depth int) error {
	if boundary == "" || !bytes.Contains(body, []byte("--"+boundary)) {
		e.d.note("Its parts are not parted as its header says.")
		found := dashes().FindSubmatch(body)
		if found == nil {
			return e.part(textproto.MIMEHeader{}, body, depth+1)
		}
		boundary = string(found[1])
	}
	mr := multipart.NewReader(bytes.NewReader(body), boundary)
	type alternative struct {
		header textproto.MIMEHeader
		body   []byte
		plain  int // how much it is to be preferred
	}
	var best *alternative
	found := 0
	for ; ; found++ {
		p, err := mr.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		var raw []byte
		if err == nil {
			raw, err = io.ReadAll(p)
		}
		if err != nil {
			e.d.note("It ends in the middle, or a part of it is damaged.")
			if len(raw) == 0 {
				break
			}
		}
		if media != "multipart/alternative" {
			if err := e.part(p.Header, raw, depth+1); err != nil {
				return err
			}
			continue
		}
		a := &alternative{p.Header, raw, 0}
		for i, kind := range []string{"multipart/", "text/html", "text/plain"} {
			if strings.HasPrefix(strings.ToLower(p.Header.Get("Content-Type")), kind) && len(bytes.TrimSpace(raw)) > 0 {
				a.plain = i + 1
			}
		}
		if best == nil || a.plain > best.plain {
			best = a
		}
	}
	switch {
	case found == 0: // no parts after all
		return e.part(textproto.MIMEHeader{}, body, depth+1)
	case best == nil:
		return nil
	}
	return e.part(best.header, best.body, depth+1)
}

// dashes finds the line before the first part of a message that does not say how its parts are parted.
var dashes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^--([!-~]{1,70})\r?\n[A-Za-z-]+:`) })

func charsetReader(name string, in io.Reader) (io.Reader, error) {
	e, _ := text.ToRead(name, nil)
	if name == "" || e.Encoding == nil {
		return nil, fmt.Errorf("unknown encoding %q", name)
	}
	return e.Codec.NewDecoder().Reader(in), nil
}

// fromBase64 decodes b, and drops what is not of the alphabet, as mail readers do.
func fromBase64(b []byte) (out []byte) {
	for _, run := range bytes.Split(b, []byte("=")) {
		kept := run[:0:0]
		for _, c := range run {
			if c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' {
				kept = append(kept, c)
			}
		}
		if len(kept)%4 == 1 {
			kept = kept[:len(kept)-1]
		}
		out, _ = base64.RawStdEncoding.AppendDecode(out, kept) // nothing else is left
	}
	return out
}

// fromQuoted decodes quoted-printable text. A "=" that stands before no code stays.
func fromQuoted(b []byte) (out []byte) {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '=')
		if i < 0 {
			return append(out, b...)
		}
		out, b = append(out, b[:i]...), b[i:]
		var code [1]byte
		if end := bytes.IndexByte(b[:min(len(b), 80)], '\n'); end > 0 && len(bytes.TrimSpace(b[1:end])) == 0 {
			b = b[end+1:]
		} else if len(b) >= 3 {
			if _, err := hex.Decode(code[:], b[1:3]); err == nil {
				out, b = append(out, code[0]), b[3:]
				continue
			}
			out, b = append(out, '='), b[1:]
		} else {
			return append(out, b...)
		}
	}
	return out
}

// HidesText reports whether an email's header says that its text is not readable in the source.
func HidesText(head []byte) bool {
	for len(head) > 0 {
		line, rest, _ := bytes.Cut(head, []byte{'\n'})
		head = rest
		if len(bytes.TrimRight(line, "\r")) == 0 {
			break
		}
		l := strings.ToLower(string(line))
		if strings.Contains(l, "=?") && strings.Contains(l, "?=") {
			return true
		}
		name, value, _ := strings.Cut(l, ":")
		switch value = strings.TrimSpace(value); name {
		case "content-transfer-encoding":
			if value == "base64" || value == "quoted-printable" {
				return true
			}
		case "content-type":
			if strings.HasPrefix(value, "multipart/") || strings.HasPrefix(value, "text/html") {
				return true
			}
		}
	}
	return false
}
