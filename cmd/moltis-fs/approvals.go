package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"moltisfs/internal/approval"
	"moltisfs/internal/approval/queue"
	"moltisfs/tools"
)

func approvalsCommand() *command {
	return &command{
		name:  "approvals",
		short: "answer the changes that wait for approval",
		below: []*command{
			{
				name: "list", short: "list the changes that wait for an answer, oldest first",
				long: `These are the questions of servers that run with --approve queue. A question
waits for approval_timeout, and as long as its process lives.

With --all it lists what became of the others too. That is kept for a week.`,
				options:  options("json data-dir", opt("all", "", "include answered and expired requests")),
				examples: []string{"moltis-fs approvals list", "moltis-fs approvals list --all --json"},
				run:      listApprovals,
			},
			{
				ids: waitingOf, name: "show", args: "ID", min: 1, max: 1, run: showApproval,
				short:    "show one change with its whole diff",
				long:     "What can't be seen in a name or a text is shown as \\u{…}.",
				options:  options("json data-dir"),
				examples: []string{"moltis-fs approvals show 3fa9"},
			},
			approving("ID", 1, "approve a change", "moltis-fs approvals approve 3fa9"),
			{
				ids: waitingOf, name: "deny", args: "ID", min: 1, max: 1, run: answerApproval(approval.Denied),
				short:    "refuse a change",
				long:     answersLong,
				options:  options("json data-dir", reason),
				examples: []string{"moltis-fs approvals deny 3fa9 --reason 'put it into docs/'"},
			},
		},
	}
}

var reason = opt("reason", "TEXT", "your reason; the caller reads it")

// approveCommand is the word of the day for approvals.
func approveCommand() *command {
	return approving("[ID]", 0, "list the changes that wait for an answer, or approve one", "moltis-fs approve", "moltis-fs approve 3fa9")
}

// approving is a command that approves the change ID. Without one, if it may be left out, it lists those that wait.
func approving(args string, least int, short string, examples ...string) *command {
	return &command{
		ids: waitingOf, name: "approve", args: args, min: least, max: 1, short: short,
		long: answersLong + `

A diff that you were not shown, by approvals show, is approved only with --unseen. The record says so.`,
		options:  options("json data-dir", reason, opt("unseen", "", "approve a diff that you were not shown")),
		examples: examples,
		run: func(ctx context.Context, in *invocation) error {
			if len(in.args) == 0 {
				return listApprovals(ctx, in)
			}
			return answerApproval(approval.Approved)(ctx, in)
		},
	}
}

const answersLong = `The beginning of an ID is enough, where no other begins so. The first answer
counts. It is for this one change as it was shown: if a file moves on meanwhile, nothing happens.`

// queue opens the queue of questions in the data directory.
func (in *invocation) queue() (*queue.Queue, error) {
	dir, err := in.dataDir()
	return queue.Open(filepath.Join(dir, "approvals")), err
}

func listApprovals(_ context.Context, in *invocation) error {
	q, err := in.queue()
	if err != nil {
		return err
	}
	entries, err := q.List(in.given("all"))
	if err != nil {
		return approvalsError(in, err)
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i := range entries {
		e, question := &entries[i], &entries[i].Question
		state := "waits, " + until(question.Expires)
		if e.State != queue.Pending {
			state = string(e.State)
			if e.By != "" {
				state += " by " + approval.Escape(e.By, false)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t+%d −%d\t%s\n", e.ID, state, visible(question.Tool), question.Added,
			question.Removed, pathsText(question.Paths))
	}
	w.Flush()
	if len(entries) == 0 && !in.given("json") {
		in.empty("nothing waits for an answer")
	}
	return in.answer(struct {
		Approvals []queue.Entry `json:"approvals"`
	}{list(entries)}, "%s", b.String())
}

// until says how long a question still waits, by our clock; its asker has another.
func until(t time.Time) string {
	if t.IsZero() {
		return "until its caller gives up"
	}
	return max(time.Until(t), 0).Round(time.Second).String() + " left"
}

func pathsText(paths []string) string {
	switch len(paths) {
	case 0:
		return ""
	case 1:
		return visible(paths[0])
	}
	return fmt.Sprintf("%s and %d more", visible(paths[0]), len(paths)-1)
}

func showApproval(_ context.Context, in *invocation) error {
	q, err := in.queue()
	if err != nil {
		return err
	}
	e, err := q.Find(in.arg(0))
	if err == nil && e.State == queue.Pending {
		err = q.Saw(e.ID, queue.By{Name: operator()})
	}
	if err != nil {
		return approvalsError(in, err)
	}
	card := approval.Card(e.Question, math.MaxInt)
	status := "it " + e.Fate()
	if e.State == queue.Pending {
		status += ", " + until(e.Question.Expires)
	}
	if e.Reason != "" {
		status += ": " + approval.Escape(e.Reason, false)
	}
	return in.answer(struct {
		Approval queue.Entry `json:"approval"`
		Card     string      `json:"card"`
	}{e, card}, "%s%s: %s\n", card, e.ID, status)
}

func answerApproval(d approval.Decision) func(context.Context, *invocation) error {
	return func(_ context.Context, in *invocation) error {
		q, err := in.queue()
		if err != nil {
			return err
		}
		e, err := q.Find(in.arg(0))
		if err == nil {
			e, err = q.Answer(e.ID, d, queue.By{Name: operator(), Unseen: d == approval.Approved && in.given("unseen")}, in.option("reason"))
		}
		if err != nil {
			return approvalsError(in, err)
		}
		e.Question.Diff = ""
		return in.answer(struct {
			Approval queue.Entry `json:"approval"`
		}{e}, "%s %s of %s\n", e.State, visible(e.Question.Tool), pathsText(e.Question.Paths))
	}
}

// operator names the person at the command line.
func operator() string {
	u, err := user.Current()
	if err != nil {
		return "the command line"
	}
	return fmt.Sprintf("%s (%s) at the command line", u.Username, u.Uid)
}

// approvalsError says what came instead of a question.
func approvalsError(in *invocation, err error) error {
	if over, ok := errors.AsType[*queue.OverError](err); ok {
		hint := ""
		if over.Entry.State != queue.Approved {
			hint = "nothing was changed by it; whoever asked may ask again"
		}
		return &exitError{exitRefused, "too late: " + over.Error(), hint, tools.KindConflict}
	}
	if many, ok := errors.AsType[*queue.AmbiguousError](err); ok {
		some := strings.Join(many.IDs[:min(len(many.IDs), 5)], ", ")
		return misuse("give more of it: "+some, "%v", many)
	}
	if errors.Is(err, queue.ErrUnseen) {
		return &exitError{exitRefused, "you were not shown the diff of " + visible(in.arg(0)),
			program + " approvals show " + visible(in.arg(0)) + " shows it; --unseen approves it without",
			tools.KindConflict}
	}
	if errors.Is(err, queue.ErrReason) {
		return misuse("say it in fewer words", "%v", err)
	}
	if errors.Is(err, queue.ErrNotFound) {
		return &exitError{exitRefused, "there is no question " + visible(in.arg(0)),
			program + " approvals list shows those that wait; --data-dir names another place",
			tools.KindNotFound}
	}
	return fmt.Errorf("looking into the queue: %w", err)
}

// approver says yes with --yes. Else the terminal asks; instead is what helps where there is none.
// A call that an agent may have written takes --approve yes-exec for what runs code.
func (in *invocation) approver(instead ...string) tools.Approver {
	switch ofCall := slices.Contains([]string{"call", "js run", "run"}, in.command.path); {
	case in.given("yes") && ofCall:
		return approval.Yes("--yes")
	case in.given("yes"):
		return approval.YesToCode("--yes")
	}
	return &terminal{streams: in.streams, instead: instead}
}

// approveBy gives the approver that --approve names as how. Commands that ask by elicitation or in an editor
// do so themselves.
func (in *invocation) approveBy(how string) (tools.Approver, error) {
	switch how {
	case "queue":
		q, err := in.queue()
		return q, err
	case "yes":
		return approval.Yes("--approve yes"), nil
	case "yes-exec":
		return approval.YesToCode("--approve yes-exec"), nil
	case "never":
		return approval.Nobody([]string{"have the operator start " + in.command.path + " with another --approve, such as queue"}), nil
	case "terminal":
		return approval.Remember(&terminal{streams: in.streams, grants: true, instead: []string{
			"have the operator start " + in.command.path + " from a terminal",
			"with --approve queue or --approve yes"}}), nil
	}
	return nil, misuse("use terminal, queue, yes, yes-exec or never", "%s can't ask by %s",
		in.command.path, how)
}

// approves names for people who approves changes by the way that --approve names, or by default.
func (in *invocation) approves(byDefault string) string {
	switch how := cmp.Or(in.option("approve"), byDefault); {
	case in.given("yes"):
		return "--yes"
	case how == "elicitation":
		return "the client's user"
	case how == "editor":
		return "the editor's user"
	case how == "queue":
		return "the queue (" + program + " approve)"
	case how == "never":
		return "nobody, each change is refused"
	case how == "terminal":
		return "the terminal"
	default:
		return "--approve " + how
	}
}

// terminal asks on the controlling terminal, wherever standard input and output lead. It is opened
// for the first question; calls that ask nothing need none. Without one, instead says what would
// help.
type terminal struct {
	streams
	grants  bool // more questions may come: a yes can be for them too
	instead []string
	once    sync.Once
	ask     tools.Approver
}

func (t *terminal) Ask(ctx context.Context, q tools.Question) (tools.Answer, error) {
	t.once.Do(func() {
		t.ask = approval.Nobody(t.instead)
		if r, w, err := controlling(); err == nil {
			t.ask = approval.Screen{In: r, Out: w, Ink: t.ink(w), Grants: t.grants}.Approver()
		}
	})
	return t.ask.Ask(ctx, q)
}
