package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"moltisfs/internal/approval"
)

// leave asks the user by way of the editor, as agents do.
type leave struct{ s *session }

// The answers that are offered.
const (
	yesOnce = "allow"
	yesFile = "allow-file"
	yesAll  = "allow-session"
	no      = "reject"
)

var grants = map[string]approval.Grant{yesFile: approval.ThisFile, yesAll: approval.ThisSession}

type choice struct {
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
		"sessionId": id, "toolCall": toolCall(q), "options": choices(q),
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
	case o.Option != no:
		offered := map[string]approval.Grant{}
		for _, c := range choices(q) {
			offered[c.ID] = grants[c.ID]
		}
		delete(offered, no)
		a = approval.Chosen(a.By, offered, o.Option)
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
	params := encoded(map[string]any{"sessionId": c.session, "update": map[string]any{
		"sessionUpdate": "tool_call_update", "toolCallId": "moltis-fs-" + c.id, "status": status}})
	_ = c.p.editor.send(fmt.Appendf(nil, // else it has gone
		`{"jsonrpc":"2.0","method":"session/update","params":%s}`+"\n", params))
}

// choices gives the answers that the user may pick. A question with a warning is asked each time.
func choices(q approval.Question) []choice {
	all := []choice{{yesOnce, "Allow", "allow_once"}}
	if len(q.Warnings) == 0 {
		hours := fmt.Sprintf(" for %d minutes", int(approval.GrantFor/time.Minute))
		all = append(all, choice{yesFile, "Allow changes of this file" + hours, "allow_always"},
			choice{yesAll, "Allow all changes of this session" + hours, "allow_always"})
	}
	return append(all, choice{no, "Reject", "reject_once"})
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
	told := q
	if len(q.Paths) == 1 {
		told.Diff = ""
	}
	if details := approval.Details(told, 1<<20); len(q.Warnings) > 0 || told.Diff != "" {
		content = append(content, map[string]any{"type": "content",
			"content": map[string]any{"type": "text", "text": details}})
	}
	if len(q.Paths) == 1 {
		for _, h := range hunks(q.Diff) {
			d := map[string]any{"type": "diff", "path": q.Paths[0], "oldText": h[0], "newText": h[1]}
			if len(q.New) > 0 {
				d["oldText"] = nil
			}
			content = append(content, d)
		}
	}
	return map[string]any{"toolCallId": "moltis-fs-" + q.ID, "title": approval.Escape(title, false),
		"kind": kind, "status": "pending", "content": content, "locations": at}
}

// hunks are the old and the new text of each part of a unified diff of one file.
func hunks(diff string) (out [][2]string) {
	var old, text strings.Builder
	begun := false
	flush := func() {
		if begun {
			out = append(out, [2]string{old.String(), text.String()})
		}
		old.Reset()
		text.Reset()
	}
	var last []*strings.Builder
	for line := range strings.Lines(diff) {
		if strings.HasPrefix(line, "@@") {
			flush()
			begun = true
			continue
		}
		if !begun {
			continue
		}
		switch line[0] {
		case '-':
			last = []*strings.Builder{&old}
		case '+':
			last = []*strings.Builder{&text}
		case '\\': // the line before has no end
			for _, b := range last {
				s := strings.TrimSuffix(b.String(), "\n")
				b.Reset()
				b.WriteString(s)
			}
			continue
		default:
			last = []*strings.Builder{&old, &text}
		}
		for _, b := range last {
			b.WriteString(approval.Escape(line[1:], true))
		}
	}
	flush()
	return out
}
