package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os/user"
	"slices"
	"strings"
	"sync"
	"time"

	"moltisfs/internal/approval"
	"moltisfs/internal/approval/queue"
	"moltisfs/internal/engine"
	"moltisfs/internal/outage"
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
				options:  options("json config data-dir principal session", opt("all", "", "include answered and expired requests")),
				examples: []string{"moltis-fs approvals list", "moltis-fs approvals list --principal ci", "moltis-fs approvals list --all --json"},
				run:      listApprovals,
			},
			{
				name: "watch", serves: true, run: watchApprovals, short: "tell of each change that waits, as it comes, and what becomes of it",
				long:     `It goes on until it is stopped. With --json each line is an object with "event", "waits" or "over", and the question.`,
				options:  options("json config data-dir principal session"),
				examples: []string{"moltis-fs approvals watch"},
			},
			{
				ids: waitingOf, name: "show", args: "ID", min: 1, max: 1, run: showApproval,
				short:    "show one change with its whole diff",
				long:     "What can't be seen in a name or a text is shown as \\u{…}.",
				options:  options("json config data-dir"),
				examples: []string{"moltis-fs approvals show 3fa9"},
			},
			approveCommand("approvals approve"),
			{
				ids: waitingOf, name: "deny", args: "[ID...]", max: maxPaths, run: denyApprovals,
				short:    "refuse changes",
				long:     answersLong + "\n\nInstead of IDs, --principal and --session refuse all that wait of theirs.",
				options:  options("json config data-dir principal session", reason),
				examples: []string{"moltis-fs approvals deny 3fa9 --reason 'put it into docs/'", "moltis-fs approvals deny --session s1"},
			},
		},
	}
}

var reason = opt("reason", "TEXT", "your reason; the caller reads it")

// approveCommand is a word of the day, and one of the group approvals: path says which.
func approveCommand(path string) *command {
	return &command{
		ids: waitingOf, name: "approve", args: "[ID...]", max: maxPaths,
		short: "go through the changes that wait for an answer, or approve some",
		long: answersLong + `

A diff that you were not shown, by approvals show, is approved only with --unseen. The record says so.

Without an ID it shows what waits on the terminal, the oldest first, and asks: y approves, n or a reason
denies, s lets it wait, q lets all wait. Where there is no terminal it lists them. --principal and
--session choose whose.`,
		options:  options("json config data-dir principal session", reason, opt("unseen", "", "approve a diff that you were not shown")),
		examples: []string{program + " " + path, program + " " + path + " 3fa9 77c0", program + " " + path + " --session s1"},
		run: func(ctx context.Context, in *invocation) error {
			switch {
			case len(in.args) > 0 && in.count("principal", "session") > 0:
				return misuse(seeHelp(in.command), "approve takes IDs, or --principal and --session")
			case len(in.args) > 0:
				return in.answerAll(approval.Approved, in.args)
			case in.count("reason", "unseen") > 0:
				return misuse(seeHelp(in.command), "--reason and --unseen go with IDs")
			case in.given("json") || !hasTerminal():
				return listApprovals(ctx, in)
			}
			return in.walkApprovals(ctx)
		},
	}
}

const answersLong = `The beginning of an ID is enough, where no other begins so. The first answer
counts. It is for this one change as it was shown: if a file moves on meanwhile, nothing happens.`

// queue opens the queue of questions: in the data directory, or that of the fleet.
func (in *invocation) queue() (*queue.Queue, error) {
	files, dir, err := in.shared("approvals")
	if err != nil || files == nil {
		return queue.Open(dir), err
	}
	return queue.OpenIn(files), nil
}

// grants has the answers of a fleet that hold for more than one change; nil without a fleet.
func (in *invocation) grants() (*approval.Grants, error) {
	files, _, err := in.shared("grants")
	if files == nil {
		return nil, err
	}
	return &approval.Grants{Files: files}, err
}

// waiting lists the questions that wait, or all on record, of --principal and --session.
func (in *invocation) waiting(q *queue.Queue, all bool) ([]queue.Entry, error) {
	entries, err := q.List(all)
	if err != nil {
		return nil, approvalsError(in, "", err)
	}
	return in.chosen(entries), nil
}

// chosen gives those of the entries that --principal and --session choose.
func (in *invocation) chosen(entries []queue.Entry) []queue.Entry {
	return slices.DeleteFunc(entries, func(e queue.Entry) bool {
		return in.given("principal") && e.Question.Principal != in.option("principal") || in.given("session") && e.Question.Session != in.option("session")
	})
}

func listApprovals(_ context.Context, in *invocation) error {
	q, err := in.queue()
	if err != nil {
		return err
	}
	entries, err := in.waiting(q, in.given("all"))
	if err != nil {
		return err
	}
	var rows [][]string
	for i := range entries {
		e, question := &entries[i], &entries[i].Question
		state, warned := "waits, "+until(question.Expires), ""
		if e.State != queue.Pending {
			state = string(e.State)
			if e.By != "" {
				state += " by " + approval.Escape(e.By, false)
			}
		}
		if n := len(question.Warnings); n > 0 {
			warned = "  " + plural(n, "warning", "warnings")
		}
		rows = append(rows, []string{e.ID, state, "asked " + ageText(time.Since(e.Asked)), visible(question.Principal) + "/" + visible(question.Session),
			visible(question.Tool), fmt.Sprintf("+%d −%d", question.Added, question.Removed), pathsText(question.Paths) + warned})
	}
	return in.table(struct {
		Approvals []queue.Entry `json:"approvals"`
	}{list(entries)}, rows, "", nothingWaits)
}

const nothingWaits = "nothing waits for an answer"

func watchApprovals(ctx context.Context, in *invocation) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	q, err := in.queue()
	if err != nil {
		return err
	}
	tell := func(event string, e *queue.Entry) error {
		if !in.given("json") && event == "waits" {
			return in.write([]byte(in.waitsText(e) + "\n"))
		} else if !in.given("json") {
			fate := e.Fate()
			if e.Reason != "" {
				fate += ": " + approval.Escape(e.Reason, false)
			}
			return in.write([]byte(e.ID + "  " + questionText(e) + ": " + fate + "\n"))
		}
		line, err := encoded(struct {
			Event    string       `json:"event"`
			Question *queue.Entry `json:"question"`
		}{event, e}, "")
		if err == nil {
			err = in.write(line)
		}
		return err
	}
	tick := time.NewTicker(queue.LookEvery)
	defer tick.Stop()
	for f := (queue.Follower{Queue: q}); ; {
		came, over, err := f.Look()
		if err != nil {
			return approvalsError(in, "", err)
		}
		for _, e := range in.chosen(came) {
			err = errors.Join(err, tell("waits", &e))
		}
		for _, e := range in.chosen(over) {
			err = errors.Join(err, tell("over", &e))
		}
		if err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// walkApprovals shows what waits on the terminal, one question after the other, and takes the answers.
func (in *invocation) walkApprovals(ctx context.Context) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	q, err := in.queue()
	if err != nil {
		return err
	}
	r, w, err := controlling()
	if err != nil {
		return err
	}
	defer r.Close()
	defer w.Close()
	screen := approval.Screen{In: r, Out: w, Ink: in.ink(w), Walks: true}.Approver()
	shown := map[string]bool{}
	for ctx.Err() == nil {
		entries, err := in.waiting(q, false)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(entries, func(e queue.Entry) bool { return !shown[e.ID] })
		if i < 0 {
			if len(shown) == 0 {
				in.empty(nothingWaits)
				return nil
			}
			fmt.Fprintf(in.err, "%s: nothing else waits\n", program)
			return nil
		}
		e, err := q.Get(entries[i].ID)
		if shown[entries[i].ID] = true; err != nil || e.State != queue.Pending {
			continue // it is over by now
		}
		answer, err := in.putTo(ctx, q, screen, e)
		switch {
		case errors.Is(err, approval.ErrEnded):
			return nil
		case errors.Is(err, approval.ErrPassed):
			if e, err := q.Get(e.ID); err == nil && e.State != queue.Pending {
				fmt.Fprintf(in.err, "%s: %s %s\n", program, e.ID, e.Fate())
			}
			continue
		case err != nil:
			return err
		}
		by := queue.By{Name: operator()}
		if rest, unseen := strings.CutPrefix(answer.By, "terminal"); unseen && rest != "" {
			by.Unseen = true
		} else if err = q.Saw(e.ID, by); err != nil {
			fmt.Fprintf(in.err, "%s: %v\n", program, approvalsError(in, e.ID, err))
			continue
		}
		if e, err = q.Answer(e.ID, answer.Decision, by, answer.Reason); err != nil {
			report(in.err, approvalsError(in, e.ID, err))
			continue
		}
		fmt.Fprintf(in.err, "%s: %s %s of %s\n", program, e.State, visible(e.Question.Tool), pathsText(e.Question.Paths))
	}
	return nil
}

// putTo asks about e on the screen, until somebody else has answered.
func (in *invocation) putTo(ctx context.Context, q *queue.Queue, screen approval.Approver, e queue.Entry) (approval.Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		tick := time.NewTicker(queue.LookEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			select {
			case <-tick.C:
				now, err := q.Get(e.ID)
				if !outage.Is(err) && (err != nil || now.State != queue.Pending) {
					cancel()
				}
			case <-ctx.Done():
			}
		}
	}()
	return screen.Ask(ctx, e.Question)
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
		return approvalsError(in, in.arg(0), err)
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

func denyApprovals(_ context.Context, in *invocation) error {
	if len(in.args) > 0 == (in.count("principal", "session") > 0) {
		return misuse(seeHelp(in.command), "deny takes IDs, or --principal and --session")
	}
	if len(in.args) > 0 {
		return in.answerAll(approval.Denied, in.args)
	}
	q, err := in.queue()
	if err != nil {
		return err
	}
	entries, err := in.waiting(q, false)
	if err != nil {
		return err
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	if len(ids) == 0 && !in.given("json") {
		in.empty(nothingWaits)
	}
	return in.answerAll(approval.Denied, ids)
}

// answerAll answers the questions whose ids begin so, one after the other, whatever becomes of one of them. The error is the last one.
func (in *invocation) answerAll(d approval.Decision, ids []string) error {
	q, err := in.queue()
	if err != nil {
		return err
	}
	var failed error
	for _, id := range ids {
		e, err := q.Find(id)
		if err == nil {
			e, err = q.Answer(e.ID, d, queue.By{Name: operator(), Unseen: d == approval.Approved && in.given("unseen")}, in.option("reason"))
		}
		if err != nil {
			if failed != nil && in.given("json") { // the last one is told at the end
				reportJSON(in, failed)
			} else if failed != nil {
				report(in.err, failed)
			}
			failed = approvalsError(in, id, err)
			continue
		}
		e.Question.Diff = ""
		if err := in.answer(struct {
			Approval queue.Entry `json:"approval"`
		}{e}, "%s %s of %s\n", e.State, visible(e.Question.Tool), pathsText(e.Question.Paths)); err != nil {
			return err
		}
	}
	return failed
}

// operator names the person at the command line.
func operator() string { return operatorAt("the command line") }

// operatorAt names the person who has started this process, and where they answer.
func operatorAt(place string) string {
	u, err := user.Current()
	if err != nil {
		return place
	}
	return fmt.Sprintf("%s (%s) at %s", u.Username, u.Uid, place)
}

// approvalsError gives err, of a call about the question id, with its exit status and a hint.
func approvalsError(in *invocation, id string, err error) error {
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
		return &exitError{exitRefused, "you were not shown the diff of " + visible(id),
			program + " approvals show " + visible(id) + " shows it; --unseen approves it without",
			tools.KindConflict}
	}
	if errors.Is(err, queue.ErrReason) {
		return misuse("say it in fewer words", "%v", err)
	}
	if errors.Is(err, queue.ErrNotFound) {
		return &exitError{exitRefused, "there is no question " + visible(id),
			program + " approvals list shows those that wait; --data-dir names another place",
			tools.KindNotFound}
	}
	if engine.CutOff(err) {
		return storeError(err)
	}
	return fmt.Errorf("looking into the queue: %w", err)
}

// approver says yes with --yes. Else the terminal asks; instead is what helps where there is none.
// A call that an agent may have written takes --approve yes-exec for what runs code.
// A method asks as the server does; its yes is the operator's.
func (in *invocation) approver(instead ...string) (tools.Approver, error) {
	switch ofCall := slices.Contains([]string{"call", "js run", "run"}, in.command.path); {
	case in.given("yes") && ofCall:
		return approval.Yes("--yes"), nil
	case in.given("yes") && in.remote != nil:
		return approval.YesToCode("operator " + in.remote.by), nil
	case in.given("yes"):
		return approval.YesToCode("--yes"), nil
	case in.remote != nil:
		return in.remote.approver()
	}
	return &terminal{streams: in.streams, instead: instead}, nil
}

// approveBy gives the approver that --approve names as how. Commands that ask by elicitation or in an editor
// do so themselves.
func (in *invocation) approveBy(how string) (tools.Approver, error) {
	switch how {
	case "queue":
		q, err := in.queue()
		q.Waits = in.tellWaits()
		return q, err
	case "yes":
		return approval.Yes("--approve yes"), nil
	case "yes-exec":
		return approval.YesToCode("--approve yes-exec"), nil
	case "never":
		return approval.Nobody([]string{"have the operator start " + in.command.path + " with another --approve, such as queue"}), nil
	case "terminal":
		grants, err := in.grants()
		return approval.RememberIn(&terminal{streams: in.streams, grants: true, instead: []string{
			"have the operator start " + in.command.path + " from a terminal",
			"with --approve queue or --approve yes"}}, cmp.Or(grants, &approval.Grants{})), err
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
