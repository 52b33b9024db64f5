package mcp

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// told are the places in a call's _meta where clients name their conversation and the prompt that a
// call belongs to: in, where there is one, holds an object, or its JSON in a string.
var told = []struct{ in, session, turn string }{
	{"x-codex-turn-metadata", "session_id", "turn_id"},
	{"", "vscode.conversationId", "vscode.requestId"},
}

// conversation gives the session and turn that a client names in _meta. A value that can't be used counts as
// left out: these keys are not ours.
func conversation(meta map[string]any) (session, turn string) {
	for _, t := range told {
		m := meta
		if t.in != "" {
			m, _ = meta[t.in].(map[string]any)
			if text, ok := meta[t.in].(string); ok {
				_ = json.Unmarshal([]byte(text), &m) // a text that is no object names nothing
			}
		}
		if session = name(m[t.session]); session != "" {
			return session, name(m[t.turn])
		}
	}
	return "", ""
}

// name is a value as a session or turn can be called; "" when it can't.
func name(v any) string {
	s, _ := v.(string)
	if s = strings.TrimSpace(s); len(s) > 256 || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return ""
	}
	return s
}
