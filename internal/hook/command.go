package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Command is a program that is a hook of any event. It gets the event as one JSON object on
// standard input, and says what it wants:
//
//	exit 0, nothing written                        continue
//	exit 0, {"action":"modify","data":…} written   data takes the place of arguments or result
//	exit 1                                         block; standard error is the reason
//	anything else, or too slow                     it failed
//
// It runs in the directory that it lies in, with the environment of this process, and whatever it
// started is killed with it when its time is over.
type Command struct {
	Path string // absolute
	Args []string
}

// ParseCommand takes a line apart at its blanks. There is no shell and there are no quotes.
func ParseCommand(line string) (Command, error) {
	words := strings.Fields(line)
	switch {
	case len(words) == 0:
		return Command{}, errors.New("it is empty")
	case !filepath.IsAbs(words[0]):
		return Command{}, errors.New("the program is no absolute path")
	}
	return Command{words[0], words[1:]}, nil
}

// The bounds of the output of a program.
const (
	maxOutput = 16 << 20
	maxReason = 500
)

// Name gives the name of the program, without its directory.
func (c Command) Name() string { return filepath.Base(c.Path) }

// BeforeToolCall runs the program.
func (c Command) BeforeToolCall(ctx context.Context, p BeforeToolCall) (Decision, error) {
	return c.run(ctx, p)
}

// AfterToolCall runs the program and ignores its output.
func (c Command) AfterToolCall(ctx context.Context, p AfterToolCall) error {
	_, err := c.run(ctx, p)
	return err
}

// ToolResultPersist runs the program.
func (c Command) ToolResultPersist(ctx context.Context, p ToolResultPersist) (Decision, error) {
	return c.run(ctx, p)
}

// OnQuestion tells the program of a question that waits for an answer, and ignores its output.
func (c Command) OnQuestion(ctx context.Context, question any) error {
	_, err := c.run(ctx, question)
	return err
}

func (c Command) run(ctx context.Context, payload any) (Decision, error) {
	var in bytes.Buffer
	plain := json.NewEncoder(&in)
	plain.SetEscapeHTML(false) // a program may look for the text itself
	if err := plain.Encode(payload); err != nil {
		return Decision{}, err
	}
	out, reason := &bounded{most: maxOutput, fails: true}, &bounded{most: 8 * maxReason}
	cmd := exec.CommandContext(ctx, c.Path, c.Args...)
	cmd.Dir = filepath.Dir(c.Path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, out, reason
	cmd.WaitDelay = 100 * time.Millisecond // a child may hold the pipes open
	killGroup(cmd)
	err := cmd.Run()
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return Decision{}, ctx.Err()
	case exited && exit.ExitCode() == 1:
		return Decision{Block: true, Reason: string(reason.kept)}, nil
	case err != nil:
		return Decision{}, err
	}
	return decode(out.kept)
}

// decode reads the output of a program that ended well.
func decode(out []byte) (Decision, error) {
	if out = bytes.TrimSpace(out); len(out) == 0 {
		return Decision{}, nil
	}
	if !utf8.Valid(out) {
		return Decision{}, errors.New("what it wrote is not UTF-8")
	}
	var says struct {
		Action string
		Data   json.RawMessage
	}
	d := json.NewDecoder(bytes.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&says); err != nil || d.More() {
		return Decision{}, errors.New("what it wrote is not one JSON object with action and data")
	}
	switch {
	case says.Action == "continue" && says.Data == nil:
		return Decision{}, nil
	case says.Action == "modify" && says.Data != nil:
		return Decision{Modify: says.Data}, nil
	}
	return Decision{}, fmt.Errorf("its action %.40q is none, or has not the data that it needs", says.Action)
}

// bounded is a writer that keeps the beginning.
type bounded struct {
	kept  []byte // a bytes.Buffer would bring ReadFrom, which knows no bounds
	most  int
	fails bool // on more
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.most - len(b.kept)
	if len(p) > room && b.fails {
		return 0, fmt.Errorf("it wrote more than %d MiB", b.most>>20)
	}
	b.kept = append(b.kept, p[:min(len(p), room)]...)
	return len(p), nil
}

// clean makes one short line of a reason: it goes into records and to models.
func clean(reason string) string {
	reason = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(reason, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	}), " ")
	if len(reason) > maxReason {
		cut := maxReason
		for !utf8.RuneStart(reason[cut]) {
			cut--
		}
		reason = reason[:cut] + "…"
	}
	if reason == "" {
		return "no reason was given"
	}
	return reason
}
