package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A scriptedModel plays the model behind an agent: it makes the calls of its script, one a turn, and
// keeps what it is told. It speaks as much of Anthropic's messages, OpenAI's responses and chat completions, and Gemini's
// generateContent as agents need.
type scriptedModel struct {
	url    string
	script []scriptedCall

	mu      sync.Mutex
	offered map[string]int // tools of the first request that has any, with the bytes of each
	given   []string       // what came back of each call, as the model gets it
	notes   []string       // requests that were not understood
}

type scriptedCall struct {
	tool string // the end of the name that the client gave it; "own Read" is the client's own Read
	args map[string]any
}

func newScriptedModel(t *testing.T, script ...scriptedCall) *scriptedModel {
	m := &scriptedModel{script: script}
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	m.url = s.URL
	return m
}

// request has the fields of all four.
type request struct {
	Stream   bool
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
	Input    json.RawMessage
	Contents []struct {
		Parts []struct {
			FunctionResponse *struct{ Response json.RawMessage }
		}
	}
	Tools []json.RawMessage
}

func (m *scriptedModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var q request
	if err == nil && len(body) > 0 {
		err = json.Unmarshal(body, &q)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	names := m.offer(q.Tools)
	var results []string
	var write func(http.ResponseWriter, request, string, scriptedCall, int)
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/messages"):
		results, write = anthropicResults(q), writeAnthropic
	case strings.HasSuffix(path, "/responses"):
		results, write = responsesResults(q), writeResponses
	case strings.HasSuffix(path, "/chat/completions"):
		results, write = chatResults(q), writeChat
	case strings.Contains(path, "enerateContent"):
		if results, write = geminiResults(q), writeGemini; len(results) > 0 {
			results[len(results)-1] += imageMark(body) // beside its result
		}
	default:
		m.note(r.Method + " " + path)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[],"models":[],"input_tokens":1,"totalTokens":1}`)
		return
	}
	step := len(results)
	m.mu.Lock()
	if step > len(m.given) { // a client may shorten the older ones
		m.given = append(m.given, results[len(m.given):]...)
	}
	m.mu.Unlock()
	name := ""
	if step < len(m.script) {
		for n := range names {
			before, ok := strings.CutSuffix(n, m.script[step].tool)
			if "own "+n == m.script[step].tool {
				name = n
			}
			if ok && strings.Contains(n, "files") && !strings.HasSuffix(strings.ToLower(before), "k") && !strings.HasSuffix(before, "i") {
				name = n // of ours, and neither NotebookEdit nor MultiEdit
			}
		}
		if name == "" && len(names) > 0 {
			m.note("no tool " + m.script[step].tool + " is offered")
		}
	}
	var c scriptedCall
	if name != "" {
		c = m.script[step]
	}
	write(w, q, name, c, step)
}

func (m *scriptedModel) note(s string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes = append(m.notes, s)
}

// offer notes the tools of a request, by the names that a call of them has.
func (m *scriptedModel) offer(tools []json.RawMessage) map[string]int {
	names := map[string]int{}
	for _, raw := range tools {
		var t struct {
			Name, Type           string
			Function             struct{ Name string }
			Tools                []json.RawMessage
			FunctionDeclarations []json.RawMessage `json:"functionDeclarations"`
		}
		_ = json.Unmarshal(raw, &t) // what is no tool has no name
		for _, in := range append(t.Tools, t.FunctionDeclarations...) {
			var f struct{ Name string }
			_ = json.Unmarshal(in, &f)
			if t.Type == "namespace" {
				f.Name = t.Name + "|" + f.Name
			}
			names[f.Name] = len(in)
		}
		if n := t.Name + t.Function.Name; n != "" && t.Type != "namespace" {
			names[n] = len(raw)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.offered == nil && len(names) > 0 {
		m.offered = names
	}
	return names
}

func anthropicResults(q request) (out []string) {
	for _, msg := range q.Messages {
		var blocks []struct {
			Type    string
			Content json.RawMessage
		}
		if json.Unmarshal(msg.Content, &blocks) != nil {
			continue
		}
		for _, b := range blocks {
			if b.Type == "tool_result" {
				out = append(out, plainText(b.Content))
			}
		}
	}
	return out
}

func responsesResults(q request) (out []string) {
	var items []struct {
		Type   string
		Output json.RawMessage
	}
	_ = json.Unmarshal(q.Input, &items) // a string has no results
	for _, it := range items {
		if strings.HasSuffix(it.Type, "_call_output") {
			out = append(out, plainText(it.Output))
		}
	}
	return out
}

func chatResults(q request) (out []string) {
	for _, m := range q.Messages {
		if m.Role == "tool" {
			out = append(out, plainText(m.Content))
		} else if mark := imageMark(m.Content); mark != "" && len(out) > 0 {
			out[len(out)-1] += mark // an image comes behind its result
		}
	}
	return out
}

func geminiResults(q request) (out []string) {
	for _, c := range q.Contents {
		for _, p := range c.Parts {
			if p.FunctionResponse != nil {
				out = append(out, plainText(p.FunctionResponse.Response))
			}
		}
	}
	return out
}

func imageMark(raw []byte) string {
	if strings.Contains(string(raw), "iVBORw0KGgo") {
		return "[IMAGE]"
	}
	return ""
}

// plainText is a result as a model reads it: the text of its blocks, and [IMAGE] where there is one.
func plainText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s + imageMark(raw)
	}
	var blocks []struct {
		Text string
		Tool string `json:"tool_name"` // of a reference to one
	}
	if json.Unmarshal(raw, &blocks) == nil {
		for _, b := range blocks {
			s += b.Text
			if b.Tool != "" {
				s += b.Tool + "\n"
			}
		}
		return s + imageMark(raw)
	}
	var o struct{ Output string }
	if json.Unmarshal(raw, &o) == nil && o.Output != "" {
		return o.Output + imageMark(raw)
	}
	return string(raw)
}

// event writes one of a stream.
func event(w http.ResponseWriter, name string, v any) {
	b, _ := json.Marshal(v) // maps of strings and numbers
	if name != "" {
		fmt.Fprintf(w, "event: %s\n", name)
	}
	fmt.Fprintf(w, "data: %s\n\n", b)
}

type obj = map[string]any

func argsOf(c scriptedCall) string {
	b, _ := json.Marshal(c.args)
	return string(b)
}

func writeAnthropic(w http.ResponseWriter, q request, name string, c scriptedCall, step int) {
	id := fmt.Sprintf("toolu_%d", step)
	block, delta, stop := obj{"type": "text", "text": ""}, obj{"type": "text_delta", "text": "done"}, "end_turn"
	whole := obj{"type": "text", "text": "done"}
	if name != "" {
		block = obj{"type": "tool_use", "id": id, "name": name, "input": obj{}}
		delta, stop = obj{"type": "input_json_delta", "partial_json": argsOf(c)}, "tool_use"
		whole = obj{"type": "tool_use", "id": id, "name": name, "input": c.args}
	}
	usage := obj{"input_tokens": 1, "output_tokens": 1}
	message := obj{"id": "msg", "type": "message", "role": "assistant", "model": "scripted", "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": usage}
	if !q.Stream {
		message["content"], message["stop_reason"] = []any{whole}, stop
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(message)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event(w, "message_start", obj{"type": "message_start", "message": message})
	event(w, "content_block_start", obj{"type": "content_block_start", "index": 0, "content_block": block})
	event(w, "content_block_delta", obj{"type": "content_block_delta", "index": 0, "delta": delta})
	event(w, "content_block_stop", obj{"type": "content_block_stop", "index": 0})
	event(w, "message_delta", obj{"type": "message_delta", "delta": obj{"stop_reason": stop, "stop_sequence": nil}, "usage": usage})
	event(w, "message_stop", obj{"type": "message_stop"})
}

func writeResponses(w http.ResponseWriter, _ request, name string, c scriptedCall, step int) {
	item := obj{"type": "message", "role": "assistant", "id": "m", "content": []any{obj{"type": "output_text", "text": "done"}}}
	if name != "" {
		space, tool, ok := strings.Cut(name, "|")
		item = obj{"type": "function_call", "id": fmt.Sprint("f", step), "call_id": fmt.Sprint("c", step), "name": name, "arguments": argsOf(c)}
		if ok {
			item["name"], item["namespace"] = tool, space
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event(w, "response.created", obj{"type": "response.created", "response": obj{"id": "r"}})
	event(w, "response.output_item.done", obj{"type": "response.output_item.done", "output_index": 0, "item": item})
	event(w, "response.completed", obj{"type": "response.completed", "response": obj{"id": "r", "output": []any{item},
		"usage": obj{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}})
}

func writeGemini(w http.ResponseWriter, _ request, name string, c scriptedCall, _ int) {
	part := obj{"text": "done"}
	if name != "" {
		part = obj{"functionCall": obj{"name": name, "args": c.args}}
	}
	answer := obj{"candidates": []any{obj{"content": obj{"role": "model", "parts": []any{part}}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": obj{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
	w.Header().Set("Content-Type", "text/event-stream")
	event(w, "", answer)
}

func writeChat(w http.ResponseWriter, q request, name string, c scriptedCall, step int) {
	message, why := obj{"role": "assistant", "content": "done"}, "stop"
	if name != "" {
		message, why = obj{"role": "assistant", "content": nil, "tool_calls": []any{obj{"index": 0, "id": fmt.Sprint("call_", step), "type": "function",
			"function": obj{"name": name, "arguments": argsOf(c)}}}}, "tool_calls"
	}
	usage := obj{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
	answer := obj{"id": "c", "object": "chat.completion", "created": 1, "model": "scripted",
		"choices": []any{obj{"index": 0, "message": message, "finish_reason": why}}, "usage": usage}
	if !q.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
		return
	}
	answer["object"] = "chat.completion.chunk"
	delete(answer, "usage")
	w.Header().Set("Content-Type", "text/event-stream")
	for _, choice := range []obj{{"index": 0, "delta": message, "finish_reason": nil}, {"index": 0, "delta": obj{}, "finish_reason": why}} {
		answer["choices"] = []any{choice}
		event(w, "", answer)
	}
	answer["choices"], answer["usage"] = []any{}, usage
	event(w, "", answer)
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}
