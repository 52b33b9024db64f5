package capability

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
	"moltisfs/internal/hook"
)

// told is a hook that does as it was told.
type told struct{ hook.Decision }

func (told) Name() string { return "test" }

func (h told) BeforeToolCall(context.Context, hook.BeforeToolCall) (hook.Decision, error) {
	return h.Decision, nil
}

func (h told) ToolResultPersist(context.Context, hook.ToolResultPersist) (hook.Decision, error) {
	return h.Decision, nil
}

// Hooks have their say over capabilities as over every call: they change arguments, block a call,
// change an answer, or withhold it.
func TestHooks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  func(root string) hook.Set
		want string
	}{
		{"arguments", func(root string) hook.Set {
			args := json.RawMessage(`{"path":"` + root + `/b"}`)
			return hook.Set{Before: []hook.Before{told{hook.Decision{Modify: args}}}}
		}, `"content":"two"`},
		{"blocked", func(string) hook.Set {
			return hook.Set{Before: []hook.Before{told{hook.Decision{Block: true, Reason: "not today"}}}}
		}, `"type":"BlockedByHook"`},
		{"answer", func(string) hook.Set {
			return hook.Set{Persist: []hook.Persist{told{hook.Decision{Modify: json.RawMessage(`{"result":{"content":"hidden","size":3,"modified":null,"checksum":"","truncated":false}}`)}}}}
		}, `"content":"hidden"`},
		{"withheld", func(string) hook.Set {
			return hook.Set{Persist: []hook.Persist{told{hook.Decision{Block: true, Reason: "secret"}}}}
		}, `"type":"AnswerWithheld"`},
	} {
		r := open(t, func(cfg *config.Config, h *engine.Host) { h.Hooks = c.set(cfg.Tools.FS.WorkspaceRoot) })
		p := r.write(t, "a", "one")
		r.write(t, "b", "two")
		a, err := r.Call(t.Context(), dialect.Call{Tool: "filesystem.read",
			Args: json.RawMessage(`{"path":"` + p + `"}`)})
		if err != nil || !strings.Contains(a.Text(), c.want) {
			t.Errorf("%s: %v, %v", c.name, a, err)
		}
	}
}
