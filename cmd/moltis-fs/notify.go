package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"moltisfs/config"
	"moltisfs/internal/approval/queue"
	"moltisfs/internal/hook"
	"moltisfs/internal/serve/approvals"
)

// mostTold is how many programs and webhooks are told of questions at the same time. More are left out, and that is said.
const mostTold = 32

// tellWaits gives the function that tells of a question that waits: a line on standard error, the programs of on_question and the
// webhooks of the configuration that holds then. It waits for none of them.
func (in *invocation) tellWaits() func(queue.Entry) {
	room := make(chan struct{}, mostTold)
	return func(e queue.Entry) {
		fmt.Fprintf(in.err, "%s: %s\n", program, in.waitsText(&e))
		h, err := in.hooks()
		if err != nil {
			fmt.Fprintf(in.err, "%s: nobody else is told of %s: %v\n", program, e.ID, err)
			return
		}
		body, err := encoded(struct {
			Event    string      `json:"event"`
			Question queue.Entry `json:"question"`
		}{"approval.requested", e}, "")
		if err != nil {
			return // strings and numbers: it can't fail
		}
		tell := func(who string, send func(context.Context) error) {
			select {
			case room <- struct{}{}:
			default:
				fmt.Fprintf(in.err, "%s: %s is not told of %s: too many are being told\n", program, who, e.ID)
				return
			}
			go func() {
				defer func() { <-room }()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				if err := send(ctx); err != nil {
					fmt.Fprintf(in.err, "%s: %s could not be told of %s: %v\n", program, who, e.ID, err)
				}
			}()
		}
		for _, line := range h.OnQuestion {
			c, err := hook.ParseCommand(line)
			tell("the hook "+c.Name(), func(ctx context.Context) error {
				if err != nil {
					return err
				}
				ctx, cancel := context.WithTimeout(ctx, time.Duration(h.Timeout))
				defer cancel()
				return c.OnQuestion(ctx, json.RawMessage(body))
			})
		}
		for _, line := range h.Webhooks {
			address, file, _ := strings.Cut(strings.TrimSpace(line), " ")
			name := "a webhook"
			if u, err := url.Parse(address); err == nil {
				name += " at " + u.Host // the rest may hold a secret
			}
			tell(name, func(ctx context.Context) error {
				w, err := webhook(address, strings.TrimSpace(file))
				if err != nil {
					return err
				}
				err = w.Send(ctx, e.ID, body)
				if u, is := errors.AsType[*url.Error](err); is {
					err = u.Err // its text has the address
				}
				return err
			})
		}
	}
}

// webhook reads the secret of one.
func webhook(address, file string) (w approvals.Webhook, err error) {
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		return w, fmt.Errorf("its secret %s is open to others (%s)", visible(file), info.Mode())
	}
	text, err := readAtMost(file, maxKeyFile)
	if err == nil {
		w.URL = address
		w.Secret, err = approvals.Key(string(text))
	}
	return w, err
}

// hooks gives [tools.fs.hooks] of the configuration that holds now.
func (in *invocation) hooks() (config.Hooks, error) {
	if in.serving != nil {
		now, done := in.serving.use()
		defer done()
		return now.cfg.Tools.FS.Hooks, nil
	}
	cfg, _, err := in.loadConfig(in.option("config"))
	return cfg.Tools.FS.Hooks, err
}

// waitsText says in one line what waits, and what answers it.
func (in *invocation) waitsText(e *queue.Entry) string {
	q, where := &e.Question, ""
	for _, name := range []string{"config", "data-dir"} { // the first names the fleet
		if in.given(name) {
			where += " --" + name + " " + shellWord(in.option(name))
		}
	}
	return fmt.Sprintf("%s  %s: waits for an answer, %s; see %s approve%s", e.ID, questionText(e), until(q.Expires), program, where)
}

// questionText is a question in one line: the tool, the paths, the lines, and by whom.
func questionText(e *queue.Entry) string {
	q := &e.Question
	text := fmt.Sprintf("%s of %s, +%d −%d, ", visible(q.Tool), pathsText(q.Paths), q.Added, q.Removed)
	if n := len(q.Warnings); n > 0 {
		text += plural(n, "warning", "warnings") + ", "
	}
	return text + "by " + visible(q.Principal) + "/" + visible(q.Session)
}
