package ndjson

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
)

func TestReadLine(t *testing.T) {
	const limit, buffer = 40, 16
	for _, end := range []string{"\n", ""} {
		// Around the limit, and around the buffer's multiples: at the end of the input a long line may fill the buffer exactly.
		for n := 1; n <= 3*buffer+limit; n++ {
			last := strings.Repeat("x", n) + end
			r := bufio.NewReaderSize(strings.NewReader("first\n\n"+last), buffer)
			for _, want := range []string{"first\n", "\n"} {
				if got, err := ReadLine(r, limit); string(got) != want || err != nil {
					t.Fatalf("%d: got %q, %v; want %q", n, got, err, want)
				}
			}
			got, err := ReadLine(r, limit)
			switch {
			case len(last) > limit && (got != nil || !errors.Is(err, ErrTooLong)):
				t.Errorf("%d bytes: got %q, %v; want ErrTooLong", len(last), got, err)
			case len(last) <= limit && (string(got) != last || err != nil):
				t.Errorf("%d bytes: got %q, %v", len(last), got, err)
			}
			if got, err := ReadLine(r, limit); got != nil || !errors.Is(err, io.EOF) {
				t.Errorf("%d bytes: after the end: %q, %v", len(last), got, err)
			}
		}
	}
}

func TestReadLineFails(t *testing.T) {
	broken := errors.New("broken")
	r := bufio.NewReaderSize(io.MultiReader(strings.NewReader("half a line"), brokenReader{broken}), 16)
	if got, err := ReadLine(r, 40); got != nil || !errors.Is(err, broken) {
		t.Errorf("got %q, %v: half a line must not pass for a whole one", got, err)
	}
}

type brokenReader struct{ err error }

func (b brokenReader) Read([]byte) (int, error) { return 0, b.err }

// The members are those that encoding/json finds, each where its value is.
func TestMembers(t *testing.T) {
	for _, text := range []string{`{}`, `{"a":1}`, ` { "a" : [1,{"b":"}"}] ,"c\"":-1.5e3,"d":"\\" } `, `{"a":{},"b":[],"c":null}`, `[1]`, `"x"`, `7`} {
		body := bytes.TrimSpace([]byte(text))
		want, got := map[string]json.RawMessage{}, map[string]json.RawMessage{}
		_ = json.Unmarshal(body, &want)
		Members(body, func(key []byte, from, to int) {
			var name string
			if err := json.Unmarshal(key, &name); err != nil {
				t.Error(err)
			}
			got[name] = body[from:to]
		})
		if !maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
