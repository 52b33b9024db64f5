package mcp

import (
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The session is named by our own key, else by the host, else by the client's conversation, else
// by the run.
func TestWhoseCallItIs(t *testing.T) {
	t.Parallel()
	codex := map[string]any{"session_id": "c1", "turn_id": "t1"}
	const key = "x-codex-turn-metadata"
	for _, c := range []struct {
		meta                 map[string]any
		given, session, turn string
	}{
		{nil, "", "run-1", ""},
		{nil, "mine", "mine", ""},
		{map[string]any{key: codex}, "", "c1", "t1"},
		{map[string]any{key: `{"session_id": "c1", "turn_id": "t1", "sandbox": 1}`}, "", "c1", "t1"},
		{map[string]any{key: codex}, "mine", "mine", "t1"},
		{map[string]any{key: codex, MetaSession: "ours"}, "mine", "ours", "t1"},
		{map[string]any{key: codex, MetaTurn: "two"}, "", "c1", "two"},
		{map[string]any{"vscode.conversationId": "v", "vscode.requestId": "r"}, "", "v", "r"},
		{map[string]any{"vscode.conversationId": 7, "progressToken": 1}, "", "run-1", ""},
		{map[string]any{key: "not json"}, "", "run-1", ""},
		{map[string]any{key: []any{"c1"}}, "", "run-1", ""},
		{map[string]any{key: map[string]any{"session_id": "a\x00b", "turn_id": "t"}}, "", "run-1", ""},
	} {
		s := &server{local: &Caller{}, o: Options{Session: c.given, Run: "run-1"}}
		got, err := s.callOf(&sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{Name: "Read", Meta: c.meta}})
		if err != nil || got.Session != c.session || got.Turn != c.turn {
			t.Errorf("%v, given %q: session %q, turn %q, %v", c.meta, c.given, got.Session, got.Turn, err)
		}
	}
}
