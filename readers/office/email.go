package office

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"

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
			return false
		}
		switch strings.ToLower(string(line[:i])) {
		case "from", "to", "subject", "date", "message-id", "received", "return-path", "mime-version", "content-type", "delivered-to", "dkim-signature":
			known++
		}
	}
	return known >= 3
}

// Email writes the headers a person sees, the text, and the names of attachments.
func (d *Document) Email(raw []byte) error {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return &unreadable.Damaged{What: "email", Why: err.Error()}
	}
	dec := mime.WordDecoder{CharsetReader: charsetReader}
	for _, h := range []string{"From", "To", "Cc", "Date", "Subject"} {
		if v := m.Header.Get(h); v != "" {
			if s, err := dec.DecodeHeader(v); err == nil {
				v = s
			}
			if err := d.add(h, ": ", strings.Join(strings.Fields(v), " "), "\n"); err != nil {
				return err
			}
		}
	}
	d.block()
	e := emailReader{d: d}
	if err := e.part(textproto.MIMEHeader(m.Header), m.Body, 0); err != nil {
		return err
	}
	if len(e.attached) > 0 {
		d.block()
		return d.add("Attachments:\n- ", strings.Join(e.attached, "\n- "), "\n")
	}
	return nil
}

type emailReader struct {
	d        *Document
	parts    int
	attached []string
}

func (e *emailReader) part(h textproto.MIMEHeader, body io.Reader, depth int) error {
	if e.parts++; e.parts > emailParts || depth > emailDepth {
		return &unreadable.Limit{What: "email", Resource: "parts", Max: emailParts}
	}
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil {
		media, params = "text/plain", nil
	}
	switch strings.ToLower(strings.TrimSpace(h.Get("Content-Transfer-Encoding"))) {
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, &base64Text{body})
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	}
	disposition, named, _ := mime.ParseMediaType(h.Get("Content-Disposition"))
	switch {
	case strings.HasPrefix(media, "multipart/"):
		return e.multipart(media, params["boundary"], body, depth)
	case disposition == "attachment" || !strings.HasPrefix(media, "text/"):
		n, _ := io.Copy(io.Discard, io.LimitReader(body, maxAttached))
		name := named["filename"]
		if name == "" {
			name = params["name"]
		}
		dec := mime.WordDecoder{CharsetReader: charsetReader}
		if s, err := dec.DecodeHeader(name); err == nil {
			name = s
		}
		e.attached = append(e.attached, unreadable.Entry(name, n)+" "+unreadable.Clip(media, 80))
		return nil
	}
	raw, err := io.ReadAll(body) // no longer than the file
	if err != nil && len(raw) == 0 {
		return &unreadable.Damaged{What: "email", Why: err.Error()}
	}
	var content []byte
	for _, asked := range []string{params["charset"], ""} {
		if enc, mark := text.ToRead(asked, raw); enc.Encoding != nil {
			if content, err = enc.Decode(raw[mark:]); err == nil {
				break
			}
		}
	}
	e.d.block()
	if media == "text/html" {
		return e.d.HTML(bytes.NewReader(content))
	}
	return e.d.add(strings.ReplaceAll(string(content), "\r\n", "\n"), "\n")
}

// multipart reads all parts, but of alternatives only the plainest text.
func (e *emailReader) multipart(media, boundary string, body io.Reader, depth int) error {
	mr := multipart.NewReader(body, boundary)
	type alternative struct {
		header textproto.MIMEHeader
		body   []byte
		plain  bool
	}
	var best *alternative
	for {
		p, err := mr.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if e.parts > 1 || best != nil {
				break // the beginning of a cut message is worth showing
			}
			return &unreadable.Damaged{What: "email", Why: err.Error()}
		}
		if media != "multipart/alternative" {
			if err := e.part(p.Header, p, depth+1); err != nil {
				return err
			}
			continue
		}
		raw, err := io.ReadAll(p)
		if err != nil && len(raw) == 0 {
			break
		}
		a := &alternative{p.Header, raw, strings.HasPrefix(p.Header.Get("Content-Type"), "text/plain")}
		if e.parts++; e.parts > emailParts {
			return &unreadable.Limit{What: "email", Resource: "parts", Max: emailParts}
		}
		if best == nil || a.plain && !best.plain {
			best = a
		}
	}
	if best == nil {
		return nil
	}
	return e.part(best.header, bytes.NewReader(best.body), depth+1)
}

func charsetReader(name string, in io.Reader) (io.Reader, error) {
	e, _ := text.ToRead(name, nil)
	if name == "" || e.Encoding == nil {
		return nil, fmt.Errorf("unknown encoding %q", name)
	}
	return e.Codec.NewDecoder().Reader(in), nil
}

// base64Text drops bytes that are not of the alphabet of base64, as mail readers do.
type base64Text struct{ r io.Reader }

func (b *base64Text) Read(p []byte) (int, error) {
	for {
		n, err := b.r.Read(p)
		kept := p[:0]
		for _, c := range p[:n] {
			if c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=' {
				kept = append(kept, c)
			}
		}
		if len(kept) > 0 || err != nil {
			return len(kept), err
		}
	}
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
