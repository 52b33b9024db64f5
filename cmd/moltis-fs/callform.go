package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/tools"
)

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
		return in.showText(a.Text(), a.Refused(), false)
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
	return in.showText(text, tools.Refused(p), tools.HasDiffs(p))
}

// showText writes a text; on a terminal with colour, where it holds diffs, and through the pager.
func (in *invocation) showText(text string, isRefusal, diffs bool) error {
	text = strings.TrimRight(text, "\n") + "\n"
	if isRefusal {
		return &exitError{status: exitRefused, what: strings.TrimSpace(text)}
	}
	f := in.terminal()
	if f == nil {
		return in.write([]byte(text))
	}
	text = approval.Escape(text, true)
	if ink := in.ink(f); diffs && bool(ink) {
		lines := strings.Split(text, "\n")
		for i, l := range lines {
			lines[i] = ink.DiffLine(l)
		}
		text = strings.Join(lines, "\n")
	}
	return in.page(f, text)
}
