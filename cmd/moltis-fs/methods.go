package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"moltisfs/config"
	"moltisfs/internal/args"
	"moltisfs/internal/serve"
	"moltisfs/tools"
)

// A method is a command that operators may send to serve over JSON-RPC. Its parameters are the options of the command, with _ for -,
// and its arguments: of "restore ID [PATH...]" they are id and paths. It answers what the command answers with --json.
type method struct {
	name, command string
	without       []string // options that are not taken
}

// methods is the table, in the order of docs/http.md.
var methods = []method{
	{name: "sessions.list", command: "audit sessions"},
	{name: "checkpoints.list", command: "log", without: []string{"name-only", "all"}},
	{name: "checkpoints.show", command: "checkpoint show"},
	{name: "checkpoints.diff", command: "diff"},
	{name: "checkpoints.undo", command: "undo"},
	{name: "checkpoints.redo", command: "redo"},
	{name: "checkpoints.restore", command: "restore"},
	{name: "checkpoints.rewind", command: "checkpoint rewind"},
	{name: "trash.list", command: "trash list"},
	{name: "trash.restore", command: "trash restore"},
	{name: "audit.query", command: "audit"},
	{name: "audit.refused", command: "audit refused"},
	{name: "audit.verify", command: "audit verify", without: []string{"earlier"}},
	{name: "tokens.list", command: "token list"},
	// an operator's token may leak; it is not to make another one that holds longer
	{name: "tokens.create", command: "token create", without: []string{"operator"}},
	{name: "tokens.revoke", command: "token revoke"},
	{name: "store.stats", command: "store stats"},
	{name: "config.show", command: "status"},
	{name: "doctor.list", command: "doctor"},
}

// ofServer are the options that a server has from its own command line, for all methods.
var ofServer = []string{"json", "config", "policies-json", "data-dir", "root", "sandbox", "identity", "read-only"}

// A remote is the sender of a method, and the server that carries it out.
type remote struct {
	by       string // the operator's principal
	config   func() (cfg config.Config, from string)
	served   func() *served
	approver func() (tools.Approver, error) // of the server
}

// operatorMethods are the methods of the table, for the server in. config gives the configuration that holds.
func (in *invocation) operatorMethods(of remote) map[string]serve.Method {
	all := map[string]serve.Method{}
	for _, m := range methods {
		c := commandAt(commands(), m.command)
		all[m.name] = func(ctx context.Context, by string, params json.RawMessage) (any, error) {
			of := of
			of.by = by
			sent := in.sent(c, of)
			if err := sent.take(m, params); err != nil {
				return nil, asMethodError(err, nil)
			}
			var answer bytes.Buffer
			sent.out = &answer
			if err := asMethodError(c.run(ctx, sent), answer.Bytes()); err != nil {
				return nil, err
			}
			var compact bytes.Buffer
			err := json.Compact(&compact, answer.Bytes())
			return json.RawMessage(compact.Bytes()), err
		}
	}
	return all
}

// sent is the command c as it is sent to the server in.
func (in *invocation) sent(c *command, of remote) *invocation {
	sent := &invocation{command: c, values: map[string]string{"json": "true"}, remote: &of, joined: in.joined, implied: in.implied, streams: streams{env: in.env, err: io.Discard}}
	for _, name := range ofServer {
		if in.given(name) && slices.ContainsFunc(c.options, func(o option) bool { return o.name == name }) {
			sent.values[name] = in.values[name]
		}
	}
	return sent
}

// commandAt finds the command of a path, as "trash list".
func commandAt(table []*command, path string) *command {
	for _, c := range table {
		if c.path == path {
			return c
		}
		if found := commandAt(c.below, path); found != nil {
			return found
		}
	}
	return nil
}

// take puts the parameters of the method m in the place of options and arguments.
func (in *invocation) take(m method, params json.RawMessage) error {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(params, &given); err != nil && len(params) > 0 {
		return misuse("", "params must be an object")
	}
	taken := map[string]option{}
	for _, o := range in.command.options {
		if !slices.Contains(ofServer, o.name) && !slices.Contains(m.without, o.name) {
			taken[strings.ReplaceAll(o.name, "-", "_")] = o
		}
	}
	for word := range strings.FieldsSeq(in.command.args) {
		word = strings.Trim(word, "[]")
		one, several := strings.CutSuffix(word, "...")
		o := option{name: strings.ToLower(one), value: one, many: several}
		if several {
			o.name += "s"
		}
		taken[o.name] = o
		if raw := given[o.name]; raw != nil {
			words, err := wordsOf(o, raw)
			if err != nil {
				return err
			}
			in.args = append(in.args, words...)
			delete(given, o.name)
		}
	}
	for name, raw := range given {
		o, known := taken[name]
		if !known {
			names := slices.Sorted(maps.Keys(taken))
			hint := "it takes " + cmp.Or(strings.Join(names, ", "), "no parameters")
			if near := args.Nearest(name, names); near != "" {
				hint = "did you mean " + near + "?"
			}
			return misuse(hint, "%s has no parameter %.60q", m.name, name)
		}
		words, err := wordsOf(o, raw)
		if err != nil {
			return err
		}
		for _, word := range words {
			if err := (&optionValue{o, in}).Set(word); err != nil {
				return err
			}
		}
	}
	switch n := len(in.args); {
	case n < in.command.min:
		return misuse("", "%s needs %s", m.name, strings.ToLower(in.command.args))
	case n > in.command.max:
		return misuse("", "%s takes at most %d", m.name, in.command.max)
	}
	return nil
}

// wordsOf gives the value of a parameter as the words of a command line: none for null and false, several for a list.
func wordsOf(o option, raw json.RawMessage) (words []string, err error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, misuse("", "params: %v", err)
	}
	kind := "a string"
	if o.value == "" {
		kind = "true or false"
	}
	all, isList := v.([]any)
	if !isList {
		all = []any{v}
	} else if !o.many {
		return nil, misuse("", "%s must be %s", o.name, kind)
	}
	for _, one := range all {
		word := ""
		switch v := one.(type) {
		case nil:
			continue
		case bool:
			if o.value != "" {
				return nil, misuse("", "%s must be %s", o.name, kind)
			}
			if !v {
				continue
			}
			word = "true"
		case string:
			word = v
		case json.Number:
			word = v.String()
		default:
			return nil, misuse("", "%s must be %s", o.name, kind)
		}
		switch {
		case o.value == "" && word != "true", strings.ContainsRune(word, 0):
			return nil, misuse("", "%s must be %s", o.name, kind)
		case (o.value == "PATH" || o.value == "DIR") && !filepath.IsAbs(word):
			return nil, misuse("a server has no working directory of yours", "%s takes absolute paths, and %.200q is none", o.name, word)
		}
		words = append(words, word)
	}
	return words, nil
}

// methodCodes are the codes for kinds of refusals; any other refusal is -32007.
var methodCodes = map[string]int{tools.KindNotFound: -32005, tools.KindConflict: -32006}

// asMethodError makes of the error of a command, and of its answer, the error of its method. It is nil where the answer itself tells what
// is bad, as that of a check that found a fault.
func asMethodError(err error, answer []byte) error {
	var told struct{ Kind, Error, Hint string }
	if _, ok := errors.AsType[*serve.Error](err); ok || err == nil {
		return err
	}
	e := exitOf(storeError(err))
	if json.Unmarshal(answer, &told); e.what != "" {
		told.Kind, told.Error, told.Hint = e.kind, e.what, e.hint
	}
	code := methodCodes[told.Kind]
	switch {
	case e.status == exitBroken && e.hint == "":
		return err // which the log has
	case told.Error == "":
		return nil
	case e.status == exitMisuse:
		code = -32602
	case code == 0:
		code = -32007
	}
	data := map[string]any{}
	if json.Unmarshal(answer, &data) != nil || len(data) == 0 {
		for name, text := range map[string]string{"kind": told.Kind, "hint": told.Hint} {
			if text != "" {
				data[name] = text
			}
		}
	}
	return &serve.Error{Code: code, Message: told.Error, Data: data}
}
