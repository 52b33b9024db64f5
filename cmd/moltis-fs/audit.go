package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"moltisfs/internal/approval"
	"moltisfs/internal/audit"
)

func auditCommand() *command {
	return &command{
		name: "audit", run: showAudit,
		short: "show every call and its outcome",
		long: `The audit log, the oldest first: when, which tool, with what outcome, by whom, and on what. One with
"no outcome" was begun and is under way, or its process was killed. docs/operations.md says what a
record holds; --json gives the records as they are.`,
		below: []*command{verifyCommand()},
		options: options("session since json data-dir sandbox config",
			opt("tool", "NAME", "only this tool, or this action of an operator, as purge or start"),
			opt("outcome", "NAME", "only this outcome, as ok or path_denied"),
			opt("path", "TEXT", "only paths that contain this"),
			opt("limit", "N", "the last N records, at most 1000000 (default: 100, with --since all)"),
		),
		examples: []string{
			"moltis-fs audit --since 1h --outcome path_denied",
			"moltis-fs audit --session s1",
			"moltis-fs audit --path secret --json",
		},
	}
}

// shownRecords is how many are shown by default.
const shownRecords = 100

// An auditView takes records in and shows those that are asked for.
type auditView struct {
	in    *invocation
	since time.Time
	last  []string          // the lines that will be shown
	most  int               // of last; 0: all
	begun map[string]string // lines of calls without an outcome yet
	order []string          // of begun
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
	dir, err := in.dataDir()
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, "audit")
	ctx, stop := untilSignal(ctx)
	defer stop()
	err = audit.Read(ctx, dir, v.take)
	switch {
	case err == nil:
		return v.showAll()
	case errors.Is(err, fs.ErrNotExist):
		return noLog(dir)
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return nil
	}
	return err
}

func noLog(dir string) error {
	return misuse("it is made by the first call; --data-dir names another place", "there is no audit log in %s", visible(dir))
}

// take takes in a line of the log.
func (v *auditView) take(line []byte) error {
	var e audit.Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return nil // a crash broke it: the next one is whole
	}
	if !v.wanted(&e) {
		return nil
	}
	if v.in.given("json") {
		v.keep(string(line))
		return nil
	}
	if e.Phase == "intent" {
		v.begun[e.Call] = auditLine(&e)
		v.order = append(v.order, e.Call)
		return nil
	}
	delete(v.begun, e.Call)
	v.keep(auditLine(&e))
	return nil
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

func (v *auditView) keep(line string) {
	if v.last = append(v.last, line); v.most > 0 && len(v.last) >= 2*v.most {
		v.last = slices.Clone(v.last[len(v.last)-v.most:])
	}
}

// showAll shows the lines that were kept, and the calls that have no outcome.
func (v *auditView) showAll() error {
	if !v.in.given("outcome") {
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
	if len(lines) == 0 {
		if !v.in.given("json") {
			fmt.Fprintf(v.in.err, "%s: no matching records\n", program)
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
		{"", e.Checkpoint}, {pattern, e.Pattern}, {"", e.Window}, {"", e.Approval}, {"rule ", e.Rule}, {"", e.RuleText},
		{"turn ", e.Turn}, {"in ", e.Where}, {"client ", e.Client}, {"", e.Version}, {"policy ", e.Policy[:min(len(e.Policy), 12)]},
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

func verifyCommand() *command {
	return &command{
		name: "verify", run: verifyAudit,
		short: "check that nobody changed the audit log",
		long: `Follows the records of both logs, that of changes and that of all other calls. Each record has the
hash of the record before. So a record that was changed, removed, put in or moved is told, and so is
an end that is missing.

Whoever can write the log can write it anew, with all hashes. Against that, keep elsewhere what this
prints. --earlier FILE later says whether the last records of then, and so all before them, are still
what they were.

Where rotation removed records of changes and the others do not reach back 30 days, that is a flaw,
"early": whoever makes many changes could have pushed others out.

Exit status: 0, nothing is wrong with what is there; 1, something is; 2, there is no log, or FILE
can't be used; 3, it could not be read.`,
		options: options(onStore,
			many("earlier", "FILE", "what audit verify printed earlier"),
			opt("archived", "N", "records up to number N may be missing, since you moved them elsewhere"),
			opt("archived-changes", "N", "the same for the log of changes, which has its own numbers"),
		),
		examples: []string{
			"moltis-fs audit verify > /media/stick/verified",
			"moltis-fs audit verify --earlier /media/stick/verified",
		},
	}
}

func verifyAudit(ctx context.Context, in *invocation) error {
	dir, err := in.dataDir()
	if err != nil {
		return err
	}
	var calls, changes audit.Known
	for option, known := range map[string]*audit.Known{"archived": &calls, "archived-changes": &changes} {
		n, err := in.number(option, 0, 1<<53)
		if err != nil {
			return err
		}
		known.Archived = uint64(n)
	}
	for _, name := range in.all("earlier") {
		if err := seenIn(name, &calls, &changes); err != nil {
			return err
		}
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	dir = filepath.Join(dir, "audit")
	p, err := audit.Verify(ctx, dir, calls)
	if errors.Is(err, fs.ErrNotExist) {
		return noLog(dir)
	}
	if err != nil {
		return err
	}
	c, err := audit.VerifyChanges(ctx, dir, changes)
	if err != nil {
		return err
	}
	ok := len(p.Flaws)+len(c.Flaws) == 0
	return ending(in.answer(struct {
		OK bool `json:"ok"` // there is no flaw
		audit.Proof
		Changes audit.Proof `json:"changes"`
	}{ok, p, c}, "%s%s", proofText("calls", p), proofText("changes", c)), refusedIf(!ok))
}

var lastRecord = regexp.MustCompile(`(?m)^(calls|changes): last record ([0-9]{1,18}) ([0-9a-f]{64})\r?$`)

// seenIn adds the last records that an earlier verification printed.
func seenIn(name string, calls, changes *audit.Known) error {
	const hint = "name a file that audit verify printed"
	text, err := readAtMost(name, maxKeyFile)
	if err != nil {
		return misuse(hint, "reading what was verified earlier: %v", err)
	}
	found := lastRecord.FindAllSubmatch(text, -1)
	if found == nil {
		return misuse(hint, "%s names no last record", visible(name))
	}
	for _, f := range found {
		n, _ := strconv.ParseUint(string(f[2]), 10, 64) // it has 18 digits at most
		known := map[string]*audit.Known{"calls": calls, "changes": changes}[string(f[1])]
		known.Seen = append(known.Seen, audit.Seen{Number: n, Hash: string(f[3])})
	}
	return nil
}

// proofText is a proof for people: a line for each flaw and each note, then what holds.
func proofText(log string, p audit.Proof) string {
	var lines []string
	for _, f := range p.Flaws {
		lines = append(lines, fmt.Sprintf("%-11s %s", f.Flaw, findingText(f)))
	}
	for _, f := range p.Notes {
		lines = append(lines, fmt.Sprintf("%-11s %s", "note", findingText(f)))
	}
	whole := "the chain is whole"
	if slices.ContainsFunc(p.Flaws, func(f audit.Finding) bool { return f.Flaw != audit.Early }) {
		whole = "not as they were written"
	}
	if p.Records == 0 {
		lines = append(lines, "no record is there")
	} else {
		lines = append(lines, fmt.Sprintf("%d records, number %d to %d: %s", p.Records, p.First, p.Last, whole),
			fmt.Sprintf("last record %d %s", p.Last, p.Hash))
	}
	return log + ": " + strings.Join(lines, "\n"+log+": ") + "\n"
}

// flaws are the texts of findings: {at} is the place, and {records} the records that are missing.
var flaws = map[audit.Flaw]string{
	audit.Changed:     "{at}it is not as it was written",
	audit.Dropped:     "{at}{records} missing before it",
	audit.Truncated:   "{at}{records} missing at the end; a power cut may do that as well",
	audit.Inserted:    "{at}the log did not write this here",
	audit.NewChain:    "{at}the log was begun anew here; nothing binds it to what stands before",
	audit.NoEnd:       "audit.last, or all of the log, is missing or was put back; the next record writes audit.last anew",
	audit.Not:         "{at}it is not the record that an earlier verification saw",
	audit.Interrupted: "{at}incomplete record of a killed process; the call did not run",
	audit.Early:       "{records} removed by rotation, and what is left does not reach back 30 days",
	audit.Gone:        "{records} removed by rotation, or moved elsewhere",
}

// findingText says what a finding means, and where.
func findingText(f audit.Finding) string {
	at, records := "", fmt.Sprintf("record %d", f.First)
	if f.Last > f.First {
		records = fmt.Sprintf("records %d to %d", f.First, f.Last)
	}
	switch {
	case f.File == "" && f.Flaw == audit.Not:
		return records + " was there at an earlier verification, and is missing"
	case f.File != "" && f.Line > 0:
		at = fmt.Sprintf("%s:%d: ", visible(f.File), f.Line)
	case f.File != "":
		at = visible(f.File) + ": "
	}
	return strings.NewReplacer("{at}", at, "{records}", records).Replace(cmp.Or(flaws[f.Flaw], "{at}"+string(f.Flaw)))
}
