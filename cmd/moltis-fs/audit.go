package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moltisfs/internal/approval"
	"moltisfs/internal/audit"
)

func auditCommand() *command {
	return &command{
		name: "audit", payload: true, run: showAudit,
		short: "show what was called and what became of it",
		long: `The audit log, the oldest first: when, which tool, with what outcome, by whom, and on what. One with
"no outcome" was begun and is under way, or its process was killed. docs/operations.md says what a
record holds; --json gives the records as they are.`,
		below: []*command{verifyCommand()},
		options: []option{
			opt("tool", "NAME", "of this tool, or of an operator's action, as purge or start"),
			opt("session", "NAME", "of this session"),
			opt("outcome", "NAME", "with this outcome, as ok or path_denied"),
			opt("path", "TEXT", "of paths that hold this"),
			opt("since", "TIME", "not before"),
			opt("limit", "N", "the last so many, up to 1000000; else 100, or with --since all"),
			opt("follow", "", "go on with what comes, until Ctrl-C; also -f"),
			opt("json", "", "the records, one a line"),
			opt("data-dir", "DIR", "whose log; else $MOLTIS_DATA_DIR, else ~/.moltis-fs"),
			sandboxOption(), configOption(),
		},
		examples: []string{
			"moltis-fs audit --since 1h --outcome path_denied",
			"moltis-fs audit -f --session s1",
			"moltis-fs audit --path secret --json",
		},
	}
}

// shownRecords is how many are shown unless somebody says otherwise.
const shownRecords = 100

// An auditView takes records in and shows those that are asked for.
type auditView struct {
	in    *invocation
	since time.Time
	last  []string          // the lines that will be shown, or were
	most  int               // of last; 0: all
	begun map[string]string // lines of calls without an outcome yet
	order []string          // of begun
	live  bool              // each line is shown at once
}

func showAudit(ctx context.Context, in *invocation) error {
	v := &auditView{in: in, begun: map[string]string{}}
	var err error
	if v.since, err = in.when("since"); err != nil {
		return err
	}
	if in.given("limit") || !in.given("since") {
		if v.most, err = in.number("limit", shownRecords, 1_000_000); err != nil {
			return err
		}
	}
	dir, _, err := in.dataDir()
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, "audit")
	ctx, stop := untilSignal(ctx)
	defer stop()
	err = audit.Read(ctx, dir, in.given("follow"), v.caughtUp, v.take)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return misuse("it is made by the first call; --data-dir names another place",
			"there is no audit log in %s", visible(dir))
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return nil
	}
	return err
}

// take is a line of the log.
func (v *auditView) take(line []byte) error {
	var e audit.Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return nil // a crash broke it: the next one is whole
	}
	if !v.wanted(&e) {
		return nil
	}
	if v.in.given("json") {
		return v.show(string(line))
	}
	if e.Phase == "intent" {
		v.begun[e.Call] = auditLine(&e)
		v.order = append(v.order, e.Call)
		return nil
	}
	delete(v.begun, e.Call)
	return v.show(auditLine(&e))
}

func (v *auditView) wanted(e *audit.Entry) bool {
	is := func(option, value string) bool {
		return !v.in.given(option) || v.in.option(option) == value
	}
	outcome := is("outcome", e.Outcome) || e.Phase == "intent" && !v.in.given("json")
	return outcome && is("tool", e.Tool) && is("session", e.Session) && !e.Time.Before(v.since) &&
		(!v.in.given("path") || slices.ContainsFunc(e.Paths, func(p audit.Name) bool {
			return strings.Contains(string(p), v.in.option("path"))
		}))
}

func (v *auditView) show(line string) error {
	if v.live {
		return v.in.write([]byte(line + "\n"))
	}
	if v.last = append(v.last, line); v.most > 0 && len(v.last) >= 2*v.most {
		v.last = slices.Clone(v.last[len(v.last)-v.most:])
	}
	return nil
}

// caughtUp shows what there is until now.
func (v *auditView) caughtUp() error {
	if !v.in.given("follow") && !v.in.given("outcome") {
		for _, call := range v.order {
			if line := v.begun[call]; line != "" {
				v.last = append(v.last, line)
			}
		}
	}
	lines := v.last
	if v.most > 0 {
		lines = lines[max(0, len(lines)-v.most):]
	}
	v.last, v.live = nil, true
	if len(lines) == 0 {
		if !v.in.given("json") && !v.in.given("follow") {
			fmt.Fprintf(v.in.err, "%s: no record is like that\n", program)
		}
		return nil
	}
	return v.in.write([]byte(strings.Join(lines, "\n") + "\n"))
}

// auditLine is a record for people.
func auditLine(e *audit.Entry) string {
	tool, pattern := e.Tool, "pattern "
	if e.Dialect != "tools" && e.Dialect != "" {
		tool = e.Dialect + " " + e.Tool
	}
	if e.Dialect == "operator" || e.Tool == "terminal/create" { // there it has the options, or the program
		pattern = ""
	}
	outcome := e.Outcome
	if e.Phase == "intent" {
		outcome = "no outcome"
	}
	parts := []string{e.Time.Local().Format(time.RFC3339), visible(tool), visible(outcome)}
	if e.Principal != "" || e.Session != "" {
		parts = append(parts, visible(e.Principal)+"/"+visible(e.Session))
	}
	for i, p := range e.Paths {
		if i == 3 {
			parts = append(parts, fmt.Sprintf("and %d more", len(e.Paths)-i))
			break
		}
		parts = append(parts, visible(string(p)))
	}
	for _, f := range []struct{ what, value string }{
		{"", e.Checkpoint}, {pattern, e.Pattern}, {"", e.Window}, {"", e.Approval}, {"rule ", e.Rule},
		{"turn ", e.Turn}, {"in ", e.Where}, {"client ", e.Client}, {"", e.Version}, {"policy ", shortHash(e.Policy)},
		{"alert: ", e.Alert},
	} {
		if f.value != "" {
			parts = append(parts, f.what+visible(f.value))
		}
	}
	if e.By == "person" {
		parts = append(parts, "by a person")
	}
	if e.DryRun {
		parts = append(parts, "dry run")
	}
	if e.Bytes > 0 {
		parts = append(parts, bytesText(e.Bytes))
	}
	if e.Error != "" {
		parts = append(parts, approval.Escape(e.Error, false))
	}
	return strings.Join(parts, "  ")
}

func shortHash(h string) string { return h[:min(len(h), 12)] }
