package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/approval"
	"moltisfs/internal/audit"
	"moltisfs/internal/engine"
	"moltisfs/internal/lazy"
)

func auditCommand() *command {
	return &command{
		name: "audit", run: showAudit,
		short: "show every call and its outcome",
		long: `The audit log, the oldest first: when, which tool, with what outcome, by whom, and on what. One with
"no outcome" was begun and is under way, or its process was killed. docs/operations.md says what a
record holds; --json gives the records as they are.`,
		below: []*command{auditSessionsCommand(), auditRefusedCommand(), verifyCommand()},
		options: options("principal session since until json data-dir sandbox config",
			opt("tool", "NAME", "only this tool, or this action of an operator, as purge or start"),
			opt("outcome", "NAME", "only this outcome, as ok or path_denied"),
			opt("path", "TEXT", "only paths that contain this"),
			opt("rule", "TEXT", "only what this rule denied, as deny_paths, or this pattern of deny_paths"),
			opt("changes", "", "only changes, actions of operators and starts"),
			opt("limit", "N", "the last N records, at most 1000000 (default: 100, with --since all)"),
			opt("cursor", "ID", "those before this one"),
		),
		examples: []string{
			"moltis-fs audit --since 1h --outcome path_denied",
			"moltis-fs audit --principal ci --changes",
			"moltis-fs audit --path secret --json",
		},
	}
}

// shownRecords is how many are shown by default.
const shownRecords = 100

// mostScanned bounds the records that a server looks at for one page: its other calls go on.
const mostScanned = 100_000

// An auditPage is part of the log, the newest record first.
type auditPage struct {
	Records []json.RawMessage `json:"records"`
	Next    string            `json:"next_cursor,omitempty"`

	entries []audit.Entry
	seen    map[string]int // outcomes of records that only their outcome kept out
}

func showAudit(ctx context.Context, in *invocation) error {
	most := 0
	var err error
	if in.given("limit") || !in.given("since") || in.remote != nil {
		if most, err = in.number("limit", shownRecords, 1_000_000); err != nil {
			return err
		}
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	page, err := in.auditPage(ctx, most)
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	case in.remote != nil:
		return in.answer(page, "")
	}
	var b strings.Builder
	for i := len(page.Records) - 1; i >= 0; i-- {
		if in.given("json") {
			b.WriteString(string(page.Records[i]) + "\n")
		} else {
			b.WriteString(auditLine(&page.entries[i]) + "\n")
		}
	}
	if b.Len() == 0 && !in.given("json") {
		var outcomes []string
		for _, o := range slices.Sorted(maps.Keys(page.seen)) {
			outcomes = append(outcomes, fmt.Sprintf("%s (%d)", visible(o), page.seen[o]))
		}
		if outcomes != nil {
			fmt.Fprintf(in.err, "%s: no matching records; there are outcomes %s\n", program, strings.Join(outcomes, ", "))
		} else {
			fmt.Fprintf(in.err, "%s: no matching records\n", program)
		}
	}
	if page.Next != "" && in.given("cursor") && !in.given("json") {
		fmt.Fprintf(in.err, "%s: before these: --cursor %s\n", program, page.Next)
	}
	return in.write([]byte(b.String()))
}

// auditPage reads the records that the options ask for, at most so many; 0: all. Of a change it takes the outcome, and the intent only
// where there is none; with --json, both.
func (in *invocation) auditPage(ctx context.Context, most int) (*auditPage, error) {
	page := &auditPage{Records: []json.RawMessage{}, seen: map[string]int{}}
	since, until, err := in.sinceUntil()
	if err != nil {
		return nil, err
	}
	// The cursor names the changes whose outcome was given and whose intent is still to come.
	from, ended := audit.Mark{}, map[string]bool{}
	if cursor := in.option("cursor"); cursor != "" {
		mark, calls, _ := strings.Cut(cursor, "~")
		var ok bool
		if from, ok = audit.ParseMark(mark); !ok {
			return nil, misuse("take next_cursor of the answer before", "--cursor can't be %.200q", cursor)
		}
		for call := range strings.FieldsFuncSeq(calls, func(r rune) bool { return r == '~' }) {
			ended[call] = true
		}
	}
	both, scanned := in.given("json") && in.remote == nil, 0
	err = in.auditBack(ctx, from, until, in.given("changes"), func(line []byte, e *audit.Entry, at audit.Mark, change bool) bool {
		if e.Time.Before(since) {
			return true
		}
		intent := e.Phase == "intent"
		told := intent && ended[e.Call]
		if intent {
			delete(ended, e.Call)
		} else if e.Call != "" && change {
			ended[e.Call] = true
		}
		scanned++
		if (!told || both) && in.wantsRecord(e) {
			if want := in.option("outcome"); want == "" || e.Outcome == want {
				page.Records, page.entries = append(page.Records, line), append(page.entries, *e)
			} else if !intent {
				page.seen[e.Outcome]++
			}
		}
		if len(page.Records) == most && most > 0 || in.remote != nil && scanned == mostScanned {
			page.Next = strings.Join(append([]string{at.String()}, slices.Sorted(maps.Keys(ended))...), "~")
			return true
		}
		return false
	})
	return page, err
}

// wantsRecord says whether the options ask for a record, but for its outcome.
func (in *invocation) wantsRecord(e *audit.Entry) bool {
	is := func(option, value string) bool { return !in.given(option) || in.option(option) == value }
	return is("tool", e.Tool) && is("session", e.Session) && is("principal", e.Principal) &&
		(!in.given("rule") || slices.Contains([]string{e.Rule, e.RuleText}, in.option("rule"))) &&
		(!in.given("path") || slices.ContainsFunc(e.Paths, func(p audit.Name) bool {
			return strings.Contains(string(p), in.option("path"))
		}))
}

// sinceUntil reads both options.
func (in *invocation) sinceUntil() (since, until time.Time, err error) {
	if since, err = in.when("since"); err == nil {
		until, err = in.when("until")
	}
	return since, until, err
}

// auditBack reads the audit log backwards.
func (in *invocation) auditBack(ctx context.Context, from audit.Mark, until time.Time, changes bool, fn func([]byte, *audit.Entry, audit.Mark, bool) bool) error {
	dir, err := in.dataDir()
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, "audit")
	if err = audit.ReadBack(ctx, dir, from, until, changes, fn); errors.Is(err, fs.ErrNotExist) {
		return noLog(dir)
	}
	return err
}

// A sessionRow is what a session did in the time that is asked for.
type sessionRow struct {
	Principal string    `json:"principal"`
	Session   string    `json:"session"`
	Client    string    `json:"client,omitempty"` // the last program that called, as it says itself
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	Calls     int       `json:"calls"`
	Changes   int       `json:"changes"`
	Refused   int       `json:"refused"`
}

// recentHours is how far back the summaries look by default.
const recentHours = 24

func auditSessionsCommand() *command {
	return &command{
		name: "sessions", short: "list the sessions that called, the last one first", run: auditSessions,
		long: `Of each: who, with which program, since when, and how many calls and changes it made and how many were refused. In a fleet those of
other machines are listed, too, by what they changed: of their calls and refusals the audit log there tells.` + timesTaken,
		options: options("principal until limit json data-dir sandbox config",
			opt("since", "TIME", "only calls from this time on (default: 24h)"), opt("cursor", "ID", "go on after this one")),
		examples: []string{"moltis-fs audit sessions", "moltis-fs audit sessions --since 7d --json"},
	}
}

// recent gives the times of a summary, and has since be a day ago where nobody says it.
func (in *invocation) recent() (since, until time.Time, err error) {
	if since, until, err = in.sinceUntil(); err == nil && !in.given("since") {
		since = time.Now().Add(-recentHours * time.Hour)
	}
	return since, until, err
}

// calls gives take the outcomes of the calls of agents and persons, newest first, and says whether each began a change. partial: a server
// looked at no more than the newest so many.
func (in *invocation) calls(ctx context.Context, since, until time.Time, take func(e *audit.Entry, change bool)) (partial bool, err error) {
	left := 2 * mostScanned
	err = in.auditBack(ctx, audit.Mark{}, until, false, func(_ []byte, e *audit.Entry, _ audit.Mark, change bool) bool {
		if left--; left < 0 && in.remote != nil {
			partial = true
			return true
		}
		if e.Phase == "outcome" && e.Dialect != "operator" && !e.Time.Before(since) &&
			(!in.given("principal") || e.Principal == in.option("principal")) {
			take(e, change)
		}
		return e.Time.Before(since)
	})
	return partial, err
}

func auditSessions(ctx context.Context, in *invocation) error {
	since, until, err := in.recent()
	if err != nil {
		return err
	}
	limit, err := in.number("limit", 20, 1000)
	if err != nil {
		return err
	}
	// The cursor is the moment of the first page, so that later calls move nothing, and the number of rows before.
	now, skip := time.Now(), 0
	if until.IsZero() {
		until = now
	}
	if cursor := in.option("cursor"); cursor != "" {
		var at int64
		if n, err := fmt.Sscanf(cursor, "%d.%d", &at, &skip); err != nil || n != 2 || skip < 0 {
			return misuse("take next_cursor of the answer before", "--cursor can't be %.200q", cursor)
		}
		until = time.UnixMicro(at)
	}
	byName, rows := map[[2]string]*sessionRow{}, []*sessionRow{}
	partial, err := in.calls(ctx, since, until, func(e *audit.Entry, change bool) {
		if e.By == "person" && strings.HasPrefix(e.Tool, "checkpoint_") { // an operator looks at the session, or takes it back
			return
		}
		key := [2]string{e.Principal, e.Session}
		row := byName[key]
		if row == nil {
			row = &sessionRow{Principal: e.Principal, Session: e.Session, Last: e.Time}
			byName[key], rows = row, append(rows, row)
		}
		row.Client, row.First = cmp.Or(row.Client, e.Client), e.Time
		row.Calls++
		switch {
		case wasRefused(e):
			row.Refused++
		case change && !e.DryRun && e.Outcome == "ok":
			row.Changes++
		}
	})
	if err != nil {
		return err
	}
	changed, all, err := in.fleetSessions(ctx, checkpoint.Filter{Principal: in.option("principal"), Since: since, Until: until})
	if err != nil {
		return err
	}
	for _, s := range changed {
		row := byName[[2]string{s.Principal, s.Session}]
		if row == nil {
			row = &sessionRow{Principal: s.Principal, Session: s.Session, First: s.First}
			rows = append(rows, row)
		}
		row.Changes = max(row.Changes, s.Changes)
		if s.First.Before(row.First) {
			row.First = s.First
		}
		if s.Last.After(row.Last) {
			row.Last = s.Last
		}
	}
	slices.SortStableFunc(rows, func(a, b *sessionRow) int { return b.Last.Compare(a.Last) })
	partial = partial || !all
	next := ""
	if rows = rows[min(skip, len(rows)):]; len(rows) > limit {
		rows, next = rows[:limit], fmt.Sprintf("%d.%d", until.UnixMicro(), skip+limit)
	}
	var shown [][]string
	for _, r := range rows {
		shown = append(shown, []string{visible(r.Principal) + "/" + visible(r.Session), ageText(now.Sub(r.Last)), plural(r.Calls, "call", "calls"),
			plural(r.Changes, "change", "changes"), fmt.Sprintf("%d refused", r.Refused), visible(r.Client)})
	}
	return in.table(struct {
		Sessions []*sessionRow `json:"sessions"`
		Next     string        `json:"next_cursor,omitempty"`
		Partial  bool          `json:"partial,omitempty"` // only the newest records were looked at, or the fleet can't be reached
	}{rows, next, partial}, shown, next, "nobody called")
}

// fleetSessions lists what sessions have changed on all machines of the fleet; none where there is no fleet. all: it could be reached.
func (in *invocation) fleetSessions(ctx context.Context, of checkpoint.Filter) (changed []checkpoint.SessionChanges, all bool, err error) {
	cfg, from, err := in.loadConfig(in.option("config"))
	if err != nil {
		return nil, false, unusableConfig(err, from)
	}
	f, err := in.join(cfg)
	if f == nil || err != nil {
		return nil, true, err
	}
	changed, err = f.Sessions(ctx, cfg.Tools.FS.Checkpoint, of)
	if engine.CutOff(err) {
		fmt.Fprintf(in.err, "%s: warning: sessions of other machines are not listed: %v\n", program, err)
		return nil, false, nil
	}
	return changed, true, err
}

// A refusedRow counts the calls that were refused for one reason.
type refusedRow struct {
	Outcome  string    `json:"outcome"`
	Approval string    `json:"approval,omitempty"` // denied, timed_out or nobody_to_ask
	Rule     string    `json:"rule,omitempty"`
	Text     string    `json:"rule_text,omitempty"` // the pattern of deny_paths
	At       string    `json:"rule_at,omitempty"`   // where it stands
	Count    int       `json:"count"`
	Last     time.Time `json:"last"`
}

// wasRefused says that a rule, a hook or a person, or that nobody answered, kept a call from what it asked for. A call that failed, or was
// cancelled, is not refused.
func wasRefused(e *audit.Entry) bool {
	return e.Outcome != "ok" && (e.Decision == "denied" || strings.HasSuffix(e.Outcome, "denied") ||
		slices.Contains([]string{"denied", "timed_out", "nobody_to_ask"}, approvalOf(e)) ||
		slices.ContainsFunc(e.Hooks, func(note string) bool { return strings.Contains(note, " blocked: ") }))
}

// approvalOf is the decision in the approval of a record, "" where nobody was asked.
func approvalOf(e *audit.Entry) string {
	decision, _, _ := strings.Cut(e.Approval, " ")
	return decision
}

func auditRefusedCommand() *command {
	return &command{
		name: "refused", short: "count what was refused, by rule and pattern", run: auditRefused,
		long: "Of each reason: the outcome, how a person answered or the rule with its pattern and its line in the configuration, how many calls, and when the last one was." +
			timesTaken,
		options:  options("principal until json data-dir sandbox config", opt("since", "TIME", "only calls from this time on (default: 24h)")),
		examples: []string{"moltis-fs audit refused", "moltis-fs audit refused --principal ci --since 7d"},
	}
}

func auditRefused(ctx context.Context, in *invocation) error {
	since, until, err := in.recent()
	if err != nil {
		return err
	}
	byReason, rows := map[[5]string]*refusedRow{}, []*refusedRow{}
	partial, err := in.calls(ctx, since, until, func(e *audit.Entry, _ bool) {
		if !wasRefused(e) {
			return
		}
		key := [5]string{e.Outcome, approvalOf(e), e.Rule, e.RuleText, e.RuleAt}
		row := byReason[key]
		if row == nil {
			row = &refusedRow{Outcome: e.Outcome, Approval: approvalOf(e), Rule: e.Rule, Text: e.RuleText, At: e.RuleAt, Last: e.Time}
			byReason[key], rows = row, append(rows, row)
		}
		row.Count++
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(rows, func(a, b *refusedRow) int { return b.Count - a.Count })
	var shown [][]string
	for _, r := range rows {
		shown = append(shown, []string{strconv.Itoa(r.Count), visible(r.Outcome), visible(r.Approval + r.Rule), visible(r.Text), visible(r.At), ageText(time.Since(r.Last))})
	}
	return in.table(struct {
		Refused []*refusedRow `json:"refused"`
		Partial bool          `json:"partial,omitempty"` // only the newest records were looked at
	}{rows, partial}, shown, "", "nothing was refused")
}

func noLog(dir string) error {
	return misuse("it is made by the first call; --data-dir names another place", "there is no audit log in %s", visible(dir))
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
		{"", e.Checkpoint}, {pattern, e.Pattern}, {"", e.Window}, {"", e.Approval}, {"rule ", e.Rule}, {"", e.RuleText}, {"at ", e.RuleAt},
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
what they were. In a fleet the last records of each machine are in the database as well, and are looked at.
Where that can't be, or where another log was on record for this host and directory, that is noted.

Where rotation removed records of changes and the others do not reach back 30 days, that is a flaw,
"early": whoever makes many changes could have pushed others out.

Exit status: 0, nothing is wrong with what is there; 1, something is; 2, there is no log, or FILE
can't be used; 3, it could not be read, or nothing is wrong but not all was compared.`,
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
	told, doubt, err := in.fleetEnds(ctx, dir, &calls, &changes)
	if err != nil {
		return err
	}
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
	outcome := refusedIf(len(p.Flaws)+len(c.Flaws) > 0)
	if doubt != "" {
		p.Notes, c.Notes = append(p.Notes, audit.Finding{Flaw: doubt}), append(c.Notes, audit.Finding{Flaw: doubt})
		outcome = cmp.Or(outcome, error(&exitError{status: exitBroken}))
	}
	return ending(in.answer(struct {
		OK bool `json:"ok"` // there is no flaw, and all was compared
		audit.Proof
		Changes audit.Proof `json:"changes"`
	}{outcome == nil, p, c}, "%s%s%s", proofText("calls", p), proofText("changes", c), told), outcome)
}

// fleetEnds adds the ends of the log in dir that are on record in the fleet, and tells people how many. doubt is why the log can't be fully
// verified by them; "": it can, or there is no fleet.
func (in *invocation) fleetEnds(ctx context.Context, dir string, calls, changes *audit.Known) (told string, doubt audit.Flaw, err error) {
	f, err := in.fleet()
	if f == nil || err != nil {
		return "", "", err
	}
	n, others := 0, false
	cut := f.Cut()
	for chain, known := range map[string]*audit.Known{audit.Calls: calls, audit.Changes: changes} {
		if cut == nil {
			var seen []audit.Seen
			seen, others, cut = f.Heads(ctx, dir, chain)
			known.Seen, n = append(known.Seen, seen...), n+len(seen)
		}
	}
	switch {
	case engine.CutOff(cut):
		fmt.Fprintf(in.err, "%s: warning: the ends of this log that are on record in the fleet were not compared: %v\n", program, cut)
		return "", audit.NotCompared, nil
	case cut != nil:
		return "", "", cut
	case others:
		doubt = audit.OtherLog
	}
	return fmt.Sprintf("fleet: %s on record for this log\n", plural(n, "end is", "ends are")), doubt, nil
}

var lastRecord = lazy.Regexp(`(?m)^(calls|changes): last record ([0-9]{1,18}) ([0-9a-f]{64})\r?$`)

// seenIn adds the last records that an earlier verification printed.
func seenIn(name string, calls, changes *audit.Known) error {
	const hint = "name a file that audit verify printed"
	text, err := readAtMost(name, maxKeyFile)
	if err != nil {
		return misuse(hint, "reading what was verified earlier: %v", err)
	}
	found := lastRecord().FindAllSubmatch(text, -1)
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
	audit.NotCompared: "the ends that are on record in the fleet were not compared: it can't be reached",
	audit.OtherLog:    "another log is on record in the fleet for this host and directory: the directory was made anew, or somebody removed its file machine",
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
