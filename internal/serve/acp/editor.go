package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"moltisfs/internal/approval"
)

var errGone = errors.New("the editor has gone")

// An editorError is the editor's own.
type editorError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *editorError) Error() string {
	return fmt.Sprintf("the editor said: %s (%d)", approval.Escape(e.Message, false), e.Code)
}

// request asks the editor, in a request of our own, until ctx ends or the editor has gone.
func (p *Proxy) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	id := fmt.Sprintf(`%s%d"`, p.ours, p.count.Add(1))
	got := make(chan message, 1)
	p.waiting.put(id, got)
	defer p.waiting.take(id)
	if err := p.editor.send(request([]byte(id), method, encoded(params))); err != nil {
		return nil, err
	}
	select {
	case m := <-got:
		if m.failed == nil {
			return m.result, nil
		}
		var no editorError
		if json.Unmarshal(m.failed, &no) != nil {
			return nil, errors.New("the editor said what is no error object")
		}
		return nil, &no
	case <-ctx.Done():
		_ = p.editor.send(request(nil, cancelCall, fmt.Appendf(nil, `{"requestId":%s}`, id))) // else it has gone
		return nil, ctx.Err()
	case <-p.gone.Done():
		return nil, errGone
	}
}

// texts gives the texts that the editor has of files, nil where it has no method to tell.
func (s *session) texts() *texts {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if !s.p.gives {
		return nil
	}
	return &texts{s, s.p.takes}
}

// texts are asked for by the names that the editor knows files by. They are the session's: their
// Load and Store are those of [dialect.Overlay].
type texts struct {
	s     *session
	takes bool
}

// Takes reports whether the editor changes its texts for us.
func (t *texts) Takes() bool { return t.takes }

const notFound = -32002

func (t *texts) Load(ctx context.Context, path string) (string, bool, error) {
	raw, err := t.s.p.request(ctx, readFile, t.params(path, nil))
	if no, ok := errors.AsType[*editorError](err); ok && no.Code == notFound {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	var is struct {
		Content *string `json:"content"`
	}
	if json.Unmarshal(raw, &is) != nil || is.Content == nil {
		return "", false, errors.New("its answer has no content")
	}
	return *is.Content, true, nil
}

func (t *texts) Store(ctx context.Context, path, _, text string) error {
	_, err := t.s.p.request(ctx, writeFile, t.params(path, &text))
	return err
}

// params name a file below the working directory as the editor named that.
func (t *texts) params(path string, content *string) map[string]any {
	if rest, ok := strings.CutPrefix(path, t.s.true+"/"); ok && t.s.true != "" {
		path = strings.TrimSuffix(t.s.cwd, "/") + "/" + rest
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	m := map[string]any{"sessionId": t.s.id, "path": path}
	if content != nil {
		m["content"] = *content
	}
	return m
}

// leave asks the user by way of the editor, as agents do.
type leave struct{ s *session }

// reject is the id of the answer that is no.
const reject = "reject"

// An option is an answer as the protocol offers it.
type option struct {
	ID   string `json:"optionId"`
	Name string `json:"name"`
	Kind string `json:"kind"`
}

func (l *leave) Ask(ctx context.Context, q approval.Question) (a approval.Answer, err error) {
	l.s.mu.Lock()
	id, prompt := l.s.id, l.s.asking
	l.s.mu.Unlock()
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(prompt, cancel)()
	raw, err := l.s.p.request(asking, askLeave, map[string]any{
		"sessionId": id, "toolCall": toolCall(q), "options": options(q),
	})
	a = approval.Answer{Decision: approval.Denied, By: "the editor"}
	defer func() {
		if c := (&card{l.s.p, id, q.ID}); a.Decision == approval.Approved {
			a.Over = c
		} else {
			c.Over(false)
		}
	}()
	_, said := errors.AsType[*editorError](err)
	switch {
	case ctx.Err() != nil:
		a, _ = approval.ContextAnswer(ctx)
		return a, nil
	case prompt.Err() != nil:
		a.Decision, a.By = approval.Cancelled, ""
		return a, nil
	case said:
		a.Decision, a.Reason = approval.NobodyToAsk, "the editor does not ask its user: "+err.Error()+
			"; have the operator start the agent with --approve queue"
		return a, nil
	case err != nil:
		return a, err
	}
	var is struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			Option  string `json:"optionId"`
		} `json:"outcome"`
	}
	err = json.Unmarshal(raw, &is)
	switch o := is.Outcome; {
	case err != nil || o.Outcome != "selected":
		a.Reason = "the question was dismissed"
	case o.Option != reject:
		a = approval.Chosen(a.By, approval.Choices(q), o.Option)
	}
	return a, nil
}

// A card is a question as the editor shows it.
type card struct {
	p           *Proxy
	session, id string
}

// Over tells the editor what came of a question: the change was made, or not.
func (c *card) Over(made bool) {
	status := "failed"
	if made {
		status = "completed"
	}
	_ = c.p.editor.send(request(nil, "session/update", encoded(map[string]any{"sessionId": c.session, // else it has gone
		"update": map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": "moltis-fs-" + c.id, "status": status}})))
}

// options gives the answers that the user may pick.
func options(q approval.Question) (all []option) {
	for _, c := range approval.Choices(q) {
		kind := "allow_always"
		if c.Grant == approval.Once {
			kind = "allow_once"
		}
		all = append(all, option{c.Word, c.Title, kind})
	}
	return append(all, option{reject, "Reject", "reject_once"})
}

// toolCall is a question as the protocol shows a tool call: what there is to say of it, and a diff
// of each changed part. A diff of several files is told as text.
func toolCall(q approval.Question) map[string]any {
	type located struct {
		Path string `json:"path"`
	}
	kind, title := "edit", fmt.Sprintf("%s +%d −%d", strings.Join(q.Paths, ", "), q.Added, q.Removed)
	if len(q.Paths) == 0 {
		kind, title = "execute", q.Summary
	}
	at := []located{}
	for _, path := range q.Paths {
		at = append(at, located{path})
	}
	var content []any
	shown := q
	if len(q.Paths) == 1 {
		shown.Diff = ""
	}
	if details := approval.Details(shown, 1<<20); len(q.Warnings) > 0 || shown.Diff != "" {
		content = append(content, map[string]any{"type": "content",
			"content": map[string]any{"type": "text", "text": details}})
	}
	if len(q.Paths) == 1 {
		for _, h := range hunks(q.Diff) {
			d := map[string]any{"type": "diff", "path": q.Paths[0], "oldText": strings.Join(h[0], ""), "newText": strings.Join(h[1], "")}
			if len(q.New) > 0 {
				d["oldText"] = nil
			}
			content = append(content, d)
		}
	}
	return map[string]any{"toolCallId": "moltis-fs-" + q.ID, "title": approval.Escape(title, false),
		"kind": kind, "status": "pending", "content": content, "locations": at}
}

// A hunk has the lines of a part of a diff, with their ends: the old ones and the new ones.
type hunk [2][]string

// hunks are the parts of a unified diff of one file.
func hunks(diff string) (out []hunk) {
	last := byte(0)
	for kind, line := range approval.DiffLines(diff) {
		if kind == '@' {
			out = append(out, hunk{})
		}
		changed := kind
		if kind == '\\' { // the line before has no end
			changed = last
		}
		for side, other := range []byte{'+', '-'} {
			switch {
			case !strings.ContainsRune(" +-", rune(changed)) || changed == other:
			case kind == '\\':
				end := &out[len(out)-1][side][len(out[len(out)-1][side])-1]
				*end = strings.TrimSuffix(*end, "\n")
			default:
				out[len(out)-1][side] = append(out[len(out)-1][side], approval.Escape(line[1:], true)+"\n")
			}
		}
		last = kind
	}
	return out
}
