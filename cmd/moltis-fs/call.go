package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/ndjson"
	"moltisfs/internal/refusal"
	"moltisfs/tools"
)

func callCommand() *command {
	var names []string
	for _, d := range tools.Definitions() {
		names = append(names, d.Name)
	}
	return &command{
		name:  "call",
		short: "make one call, or with --batch many",
		long: `Calls TOOL with the arguments in JSON, {} unless told; "-" reads them from standard
input. "moltis-fs help TOOL" explains them. Relative paths are taken from the working directory.

On a terminal, and with --text, the answer is text, and a refusal is told on standard error.
Elsewhere, and with --json, it is the payload as one line of JSON. Approvals are asked on the
terminal, or with --approve queue answered from elsewhere, as by moltis-fs approvals; --yes answers
them with yes, but for what runs code later; --approve yes-exec answers that too.

The exit status is 0 for a success, 1 for a refusal, 2 for an unknown tool and other misuse, 3 when
the host is broken, and 130 after Ctrl-C.

With --batch, standard input holds one call a line:
  {"id": 1, "tool": "Read", "args": {"file_path": "/etc/hostname"}}
"session", "principal" and "turn" may be given too. Each line is answered at once, in order:
  {"id": 1, "result": {"kind": "text", ...}}
A line that can't be carried out is answered by an error, and the next one is read:
  {"id": 1, "error": {"code": "unknown_tool", "message": "...", "hint": "..."}}
with the code bad_line, unknown_tool or host_error. The exit status is that of the worst line.`,
		args: "TOOL [JSON | -]", min: 0, max: 2, values: names,
		options: options("yes approve json dialect read-only"+onSuite,
			opt("text", "", "answer as text for people; the default on a terminal"),
			opt("batch", "", "read calls from standard input, one a line"),
			opt("turn", "NAME", "the user's prompt that this call belongs to; it groups checkpoints"),
		),
		examples: []string{
			`moltis-fs call --root / Read '{"file_path": "/etc/hostname"}'`,
			`moltis-fs call Grep '{"pattern": "TODO"}'`,
			`moltis-fs call --yes Write - < arguments.json`,
			`moltis-fs call --batch --session s1 < calls.jsonl > answers.jsonl`,
		},
		run: runCall,
	}
}

// maxArguments is how many bytes the arguments of a call, or a line of a batch, may have.
const maxArguments = 64 << 20

func runCall(ctx context.Context, in *invocation) error {
	batch := in.given("batch")
	switch {
	case batch && len(in.args) > 0:
		return misuse("the calls come from standard input", "--batch takes no %s", in.command.args)
	case !batch && len(in.args) == 0:
		return misuse(seeHelp(in.command), "call needs a tool")
	case in.given("text") && (in.given("json") || batch):
		return misuse(seeHelp(in.command), "--text goes with neither --json nor --batch")
	}
	args := []byte(in.arg(1))
	switch in.arg(1) {
	case "":
		args = []byte("{}")
	case "-":
		var err error
		if args, err = io.ReadAll(io.LimitReader(in.in, maxArguments+1)); err != nil {
			return fmt.Errorf("reading the arguments: %w", err)
		}
		if len(args) > maxArguments {
			return misuse("send less at once", "the arguments are longer than %d MiB", maxArguments>>20)
		}
	}
	if !batch {
		debug.SetGCPercent(200) // a process of one call: half of the collections, and a few MB more
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	s, err := in.forCalls(ctx)
	if err != nil {
		return err
	}
	base := dialect.Call{Principal: in.option("principal"), Session: in.option("session"),
		Turn: in.option("turn"), Client: program + " call"}
	if batch {
		err = runBatch(ctx, in, s, base)
	} else {
		base.Tool, base.Args = in.arg(0), args
		if here := s.directory(base); takesPaths(base.Tool) && here != "" {
			base.Args = absoluteArgs(args, here,
				searches(base.Tool) && s.cfg.Tools.FS.WorkspaceRoot == "")
		}
		err = callOnce(ctx, in, s, base)
	}
	return closing(s, err)
}

// forCalls opens what the calls of this command line are made on.
func (in *invocation) forCalls(ctx context.Context) (s *stand, err error) {
	if in.given("yes") && in.given("approve") {
		return nil, misuse(seeHelp(in.command), "--yes and --approve both say who approves")
	}
	approver := in.approver("run it with --yes", "run it in a terminal",
		"run it with --approve queue", "set require_approval = false in [tools.fs]")
	if how := in.option("approve"); how != "" {
		if approver, err = in.approveBy(how); err != nil {
			return nil, err
		}
	}
	if err := in.implyRoot(); err != nil {
		return nil, err
	}
	s, err = in.opens(ctx, approver, nil, func(_ *config.Config, o *tools.Options) { o.Program.Name = in.programName() })
	if err == nil && in.implied {
		in.tellOpen(s.cfg)
	}
	return s, err
}

func callOnce(ctx context.Context, in *invocation, d dialect.Dialect, c dialect.Call) error {
	a, err := d.Call(ctx, c)
	if u, ok := errors.AsType[*dialect.UnknownToolError](err); ok {
		return misuse(unknownToolHint(u, d), "there is no tool %q", u.Tool)
	}
	if err != nil {
		return err
	}
	if in.asText() {
		return in.showAnswer(a)
	}
	line, err := a.JSON(true)
	if err != nil {
		return err
	}
	return ending(in.write(append(line, '\n')), refusedIf(a.Refused()))
}

func unknownToolHint(u *dialect.UnknownToolError, d dialect.Dialect) string {
	if u.Nearest != "" {
		return "did you mean " + u.Nearest + "?"
	}
	var names []string
	for _, def := range d.Definitions() {
		names = append(names, def.Name)
	}
	return "the tools are " + strings.Join(names, ", ")
}

// How a call reads to a person: paths from the working directory, answers as text.

// pathKeys are the arguments of the tools that hold one path or a list of them.
var pathKeys = []string{"file_path", "filePath", "path", "notebook_path", "paths"}

// absoluteArgs are the arguments of a tool with every relative path taken from the directory
// here, as a person means it; agents have none. What is not an object is left to the tool.
// search is set where a tool wants a path and has no root to fall back on.
func absoluteArgs(raw []byte, here string, search bool) []byte {
	absolute := func(v json.RawMessage) json.RawMessage {
		var p string
		if json.Unmarshal(v, &p) != nil || p == "" || filepath.IsAbs(p) || strings.Contains(p, "://") {
			return v
		}
		out, err := encoded(filepath.Join(here, p), "")
		if err != nil {
			return v
		}
		return bytes.TrimSpace(out)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return raw
	}
	out := []byte{'{'}
	for dec.More() { // key by key: one that is given twice stays so, and is refused
		key, err := dec.Token()
		name, ok := key.(string)
		var v json.RawMessage
		if err != nil || !ok || dec.Decode(&v) != nil {
			return raw
		}
		if slices.Contains(pathKeys, name) {
			search = false
			var list []json.RawMessage
			if json.Unmarshal(v, &list) == nil && list != nil {
				for i := range list {
					list[i] = absolute(list[i])
				}
				v, _ = json.Marshal(list) // of what was JSON
			} else {
				v = absolute(v)
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		quoted, _ := json.Marshal(name) // a string is always JSON
		out = append(append(append(out, quoted...), ':'), v...)
	}
	if _, err := dec.Token(); err != nil || len(bytes.TrimSpace(raw[dec.InputOffset():])) > 0 {
		return raw
	}
	if search {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, `"path":`...), absolute(json.RawMessage(`"."`))...)
	}
	return append(out, '}')
}

// searches says whether a tool looks below its path, or below the root without one.
func searches(tool string) bool {
	return slices.ContainsFunc(tools.Definitions(), func(d dialect.Definition) bool {
		return d.Name == tool && slices.Contains(orderOf(d.InputSchema), "path")
	})
}

// takesPaths says whether a tool is one whose paths are those of the file system. Those of jettson
// are not, and the capabilities have their own rule.
func takesPaths(tool string) bool {
	return slices.ContainsFunc(tools.Definitions(), func(d dialect.Definition) bool {
		return d.Name == tool || slices.Contains(d.Also, tool)
	})
}

// asText says whether answers are for a person.
func (in *invocation) asText() bool {
	return in.given("text") || !in.given("json") && in.terminal() != nil
}

// payload is an answer of the tools.
type payload interface{ Unwrap() tools.Payload }

// showAnswer writes an answer for a person; a refusal goes to standard error.
func (in *invocation) showAnswer(a dialect.Answer) error {
	inside, where := a, ""
	if at, ok := a.(located); ok {
		inside, where = at.inside()
	}
	p, ok := inside.(payload)
	if !ok {
		return in.showText(a.Text(), a.Refused())
	}
	return in.showPayload(p.Unwrap(), where)
}

// showPayload is showAnswer for a payload of the tools, and a line on where that was.
func (in *invocation) showPayload(p tools.Payload, where string) error {
	p = in.forOperator(p)
	if r, ok := p.(*tools.Refusal); ok {
		e := &exitError{status: exitRefused, what: strings.TrimSpace(r.Message + " " + where), hint: aside(r.Hint)}
		if t, ok := r.Fields.(interface{ Text() string }); ok {
			return &withLines{e, t.Text()}
		}
		return e
	}
	text := strings.TrimRight(in.textOf(p), "\n") + "\n" + where
	return in.showText(text, tools.Refused(p))
}

// showText writes a text; one of a refusal goes to standard error.
func (in *invocation) showText(text string, isRefusal bool) error {
	text = strings.TrimRight(text, "\n") + "\n"
	if isRefusal {
		return &exitError{status: exitRefused, what: strings.TrimSpace(text)}
	}
	return in.write([]byte(text))
}

// forOperator is an answer with the hint for a person. A next call of a tool is none of it.
func (in *invocation) forOperator(p tools.Payload) tools.Payload {
	r, ok := p.(*tools.Refusal)
	if !ok {
		return p
	}
	names := func(name string) string { return optionNames[name] }
	if in.command.name == "call" {
		names = nil // the arguments are those of the tool
	}
	own := *r
	own.Next, own.Hint = nil, r.ForPerson(names, map[string]string{
		"config": in.findConfig(in.option("config")), "editor": in.besideEditor()})
	return &own
}

// optionNames maps the tools and arguments that hints name to the commands and options of the command line.
var optionNames = map[string]string{"checkpoints_list": program + " checkpoint list", "label": "--label", "on_conflict": "--on-conflict",
	"paths": "the PATHs", "since": "--since"}

// aside is a hint as it follows "hint: ".
func aside(hint string) string {
	if word, _, _ := strings.Cut(hint, " "); takesPaths(word) {
		return strings.TrimSuffix(hint, ".")
	}
	return refusal.Clause(hint)
}

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
