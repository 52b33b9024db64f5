package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"moltisfs/internal/dialect"
	"moltisfs/internal/ndjson"
)

// batchLine is one call as it comes in.
type batchLine struct {
	ID        json.RawMessage `json:"id"`
	Tool      string          `json:"tool"`
	Args      json.RawMessage `json:"args"`
	Session   string          `json:"session"`
	Principal string          `json:"principal"`
	Turn      string          `json:"turn"`
}

// batchAnswer is its answer: a result or an error.
type batchAnswer struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *batchError     `json:"error,omitempty"`
}

type batchError struct {
	Code    string `json:"code"` // "bad_line", "unknown_tool" or "host_error"
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// runBatch answers line after line, each before the next is read, until the input ends.
func runBatch(ctx context.Context, in *invocation, d dialect.Dialect, base dialect.Call) error {
	incoming := make(chan rawLine)
	go readLines(ctx, in.in, incoming)
	worst := exitOK
	for number := 1; ; number++ {
		var l rawLine
		select {
		case l = <-incoming:
		case <-ctx.Done():
			return exitOr(worst)
		}
		if l.end {
			if l.err != nil {
				return fmt.Errorf("reading the calls: %w", l.err)
			}
			return exitOr(worst)
		}
		if len(bytes.TrimSpace(l.text)) == 0 && l.err == nil {
			continue
		}
		answer, status := answerLine(ctx, d, base, l, number)
		worst = max(worst, status)
		out, err := encoded(answer, "")
		if err != nil {
			return err
		}
		if _, err := in.out.Write(out); err != nil {
			return ending(fmt.Errorf("writing the answers: %w", err), exitOr(worst))
		}
	}
}

func exitOr(status int) error {
	if status == exitOK {
		return nil
	}
	return &exitError{status: status}
}

func answerLine(ctx context.Context, d dialect.Dialect, base dialect.Call, l rawLine,
	number int) (batchAnswer, int) {
	line, err := decodeLine(l)
	a := batchAnswer{ID: line.ID}
	if err != nil {
		a.Error = &batchError{"bad_line", fmt.Sprintf("line %d: %v", number, err),
			`send one object a line: {"id": 1, "tool": "Read", "args": {"file_path": "/etc/hostname"}}`}
		return a, exitMisuse
	}
	c := base
	c.Tool, c.Args = line.Tool, line.Args
	for _, over := range []struct {
		to   *string
		from string
	}{{&c.Session, line.Session}, {&c.Principal, line.Principal}, {&c.Turn, line.Turn}} {
		if over.from != "" {
			*over.to = over.from
		}
	}
	answer, err := d.Call(ctx, c)
	if u, ok := errors.AsType[*dialect.UnknownToolError](err); ok {
		a.Error = &batchError{"unknown_tool", fmt.Sprintf("there is no tool %q", u.Tool),
			unknownToolHint(u, d)}
		return a, exitMisuse
	}
	if err == nil {
		if a.Result, err = answer.JSON(true); err == nil {
			if answer.Refused() {
				return a, exitRefused
			}
			return a, exitOK
		}
	}
	a.Error = &batchError{"host_error", err.Error(), ""}
	return a, exitBroken
}

// decodeLine reads a line strictly. It keeps the id, which tells the sender what went wrong.
func decodeLine(l rawLine) (batchLine, error) {
	var line batchLine
	if l.err != nil {
		return line, l.err
	}
	if err := json.Unmarshal(l.text, &line); err != nil {
		var only struct{ ID json.RawMessage }
		if json.Unmarshal(l.text, &only) == nil {
			line.ID = only.ID
		}
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
			return line, fmt.Errorf("%q is a %s, not a %s", wrong.Field, wrong.Value, wrong.Type)
		}
		return line, errors.New("not one JSON object, or one that is nested too deep")
	}
	dec := json.NewDecoder(bytes.NewReader(l.text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&batchLine{}); err != nil {
		return line, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if line.Tool == "" {
		return line, errors.New(`"tool" is missing`)
	}
	if line.Args == nil {
		line.Args = json.RawMessage("{}")
	}
	return line, nil
}

// rawLine is a line, why it can't be used, or the end of the input.
type rawLine struct {
	text []byte
	err  error
	end  bool
}

// readLines reads one line ahead, aside: a read can't be interrupted, and a signal must be heard.
func readLines(ctx context.Context, in io.Reader, out chan<- rawLine) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		l := readLine(r)
		select {
		case out <- l:
		case <-ctx.Done():
			return
		}
		if l.end {
			return
		}
	}
}

func readLine(r *bufio.Reader) rawLine {
	text, err := ndjson.ReadLine(r, maxArguments)
	switch {
	case errors.Is(err, ndjson.ErrTooLong):
		return rawLine{err: fmt.Errorf("longer than %d MiB", maxArguments>>20)}
	case errors.Is(err, io.EOF):
		return rawLine{end: true}
	case err != nil:
		return rawLine{err: err, end: true}
	}
	return rawLine{text: text}
}
