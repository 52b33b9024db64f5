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
	p.mu.Lock()
	p.waiting[id] = got
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.waiting, id)
		p.mu.Unlock()
	}()
	line := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}`+"\n",
		id, method, encoded(params))
	if err := p.editor.send(line); err != nil {
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
		_ = p.editor.send(fmt.Appendf(nil, // else it has gone
			`{"jsonrpc":"2.0","method":"%s","params":{"requestId":%s}}`+"\n", cancelCall, id))
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

// Takes says whether the editor changes its texts for us.
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
