package mcp

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
)

// The SDK encodes a result and then goes over all of its bytes three times more: of a long Read that
// is most of the time. So a long text travels through it as a mark, and stands in its place when the
// line is written.
type longTexts struct {
	mu     sync.Mutex
	prefix string // unguessable: no file holds a mark
	last   int
	texts  map[string]string // by mark
}

const (
	longText = 16 << 10 // bytes from which on a text is marked
	mostLong = 64       // marks under way; beyond them texts go as they are
)

// mark gives the text to send in the place of text: a mark for a long one.
func (l *longTexts) mark(text string) string {
	if len(text) < longText {
		return text
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.texts) >= mostLong {
		return text
	}
	if l.texts == nil {
		l.prefix, l.texts = rand.Text(), map[string]string{}
	}
	l.last++
	mark := fmt.Sprintf("%s-%d.", l.prefix, l.last)
	l.texts[mark] = text
	return mark
}

// restored is a line with the text in the place of its mark.
func (l *longTexts) restored(line []byte) ([]byte, error) {
	l.mu.Lock()
	begin := -1
	if len(l.texts) > 0 {
		begin = bytes.Index(line, []byte(`"`+l.prefix))
	}
	if begin < 0 {
		l.mu.Unlock()
		return line, nil
	}
	end := begin + 1 + bytes.IndexByte(line[begin+1:], '"')
	mark := string(line[begin+1 : end])
	text, ok := l.texts[mark]
	delete(l.texts, mark)
	l.mu.Unlock()
	if !ok {
		return line, nil
	}
	var b bytes.Buffer
	b.Grow(len(line) + len(text) + len(text)/8)
	b.Write(line[:begin])
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		return nil, fmt.Errorf("encoding a text: %w", err)
	}
	b.Truncate(b.Len() - 1) // its newline
	b.Write(line[end+1:])
	return b.Bytes(), nil
}
