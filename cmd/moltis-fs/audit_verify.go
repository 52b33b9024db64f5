package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"moltisfs/internal/audit"
	"moltisfs/internal/engine"
)

func verifyCommand() *command {
	return &command{
		name: "verify", run: verifyAudit,
		short: "prove that the audit log is as it was written",
		long: `Follows the chain of the records and says which was changed, dropped, put in or moved, or that
the end is missing. Servers may go on writing meanwhile.

Each record has a key of its own, made from the one before, which is erased then. Without --key the
chain is held against the key of today: that finds what was done by somebody who can't write
audit.key, or did not know of it. With a key that audit key has told, and that was kept elsewhere,
it finds all that was done to records since then, also by somebody who took the whole account: he
can forge from that moment on, never before.

Records of changes stand in a log of their own too, which no other calls push out. Where its rotation
removed some and it does not reach back 30 days, that is a flaw, "early": whoever makes many changes
could have pushed others out.

Exit status: 0, nothing is wrong with what is there; 1, something is; 2, there is no log, or a key
can't be used; 3, it could not be read.`,
		options: []option{
			many("key", "FILE", "what audit key wrote"),
			opt("archived", "N", "records up to number N may be missing: you moved them elsewhere"),
			opt("archived-changes", "N", "the same of the log of changes, which has its own numbers"),
			opt("json", "", "as JSON"),
			opt("data-dir", "DIR", "whose log; else $MOLTIS_DATA_DIR, else ~/.moltis-fs"),
			sandboxOption(), configOption(),
		},
		examples: []string{
			"moltis-fs audit verify",
			"moltis-fs audit verify --key /media/stick/audit.key --json",
		},
	}
}

func auditKeyCommand() *command {
	return &command{
		name: "key", run: newAuditKey,
		short: "give the audit log a new key, and tell it once",
		long: `Writes the key to standard output, as one line for the log and one for its log of changes. It proves
every record from the next one on (see audit verify), and nobody else has it: the log keeps what
follows from it, never the key itself. Keep it on another machine. Whoever has it can forge those
records. An earlier key proves what came before.`,
		options: []option{
			configOption(),
			opt("data-dir", "DIR", "whose log; else $MOLTIS_DATA_DIR, else ~/.moltis-fs"),
		},
		examples: []string{"moltis-fs audit key > /media/stick/audit.key"},
	}
}

func newAuditKey(_ context.Context, in *invocation) error {
	cfg, from, err := in.loadConfig(in.option("config"))
	if err != nil {
		return unusableConfig(err, from)
	}
	if err := in.takeDataDir(); err != nil {
		return err
	}
	dir, _, err := in.dataDir()
	if err != nil {
		return err
	}
	key, err := engine.NewAuditKey(dir, cfg.Tools.FS.Audit)
	if err != nil {
		return &exitError{exitBroken, err.Error(), "", ""}
	}
	fmt.Fprintf(in.err, "%s: this key is shown this once\nhint: keep it on another machine; %s "+
		"audit verify --key FILE needs it\n", program, program)
	return in.write([]byte(key))
}

func verifyAudit(ctx context.Context, in *invocation) error {
	dir, _, err := in.dataDir()
	if err != nil {
		return err
	}
	archived, err := in.number("archived", 0, 1<<53)
	if err != nil {
		return err
	}
	changes, err := in.number("archived-changes", 0, 1<<53)
	if err != nil {
		return err
	}
	keys, err := in.auditKeys()
	if err != nil {
		return err
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	dir = filepath.Join(dir, "audit")
	p, err := audit.Verify(ctx, dir, keys, audit.Archived{All: uint64(archived), Changes: uint64(changes)})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return misuse("it is made by the first call; --data-dir names another place",
			"there is no audit log in %s", visible(dir))
	case err != nil:
		return err
	}
	outcome := refusedIf(!p.Whole())
	if in.given("json") {
		return ending(writeJSON(in, struct {
			OK bool `json:"ok"` // there is no flaw
			audit.Proof
		}{p.Whole(), p}), outcome)
	}
	text := proofText(p, len(keys) > 0)
	if p.Changes != nil {
		for line := range strings.Lines(proofText(*p.Changes, len(keys) > 0)) {
			text += "changes: " + line
		}
	}
	return ending(in.write([]byte(text)), outcome)
}

func (in *invocation) auditKeys() (keys []audit.Key, err error) {
	for _, name := range in.all("key") {
		text, err := readAtMost(name, maxKeyFile)
		if err != nil {
			return nil, misuse("name a file that audit key wrote", "reading the key: %v", err)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			k, err := audit.ParseKey(line)
			if err != nil {
				return nil, misuse("name a file that audit key wrote", "%s holds no key", visible(name))
			}
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// proofText is a proof for people: a line for each flaw and each note, then what holds.
func proofText(p audit.Proof, keyed bool) string {
	var b strings.Builder
	for _, f := range p.Flaws {
		fmt.Fprintf(&b, "%-11s %s\n", f.Flaw, findingText(f))
	}
	for _, f := range p.Notes {
		fmt.Fprintf(&b, "%-11s %s\n", "note", findingText(f))
	}
	if p.Chain == "" {
		b.WriteString("no record is chained yet; the next one begins the chain\n")
		return b.String()
	}
	fmt.Fprintf(&b, "%d records, number %d to %d: ", p.Records, p.First, p.Last)
	if slices.ContainsFunc(p.Flaws, func(f audit.Finding) bool { return f.Flaw != audit.Early }) {
		b.WriteString("not as they were written\n")
		return b.String()
	}
	b.WriteString("the chain is whole\n")
	if keyed {
		fmt.Fprintf(&b, "%d of them are proven by the key: they are as they were written\n", p.Proven)
	} else {
		b.WriteString("without a key from elsewhere, whoever can write to audit.key as well could " +
			"have made it anew; see " + program + " audit key --help\n")
	}
	return b.String()
}

// findingText says what a finding means, and where.
func findingText(f audit.Finding) string {
	where := ""
	if f.File != "" {
		where = visible(f.File)
		if f.Line > 0 {
			where += fmt.Sprint(":", f.Line)
		}
		where += ": "
	}
	records := fmt.Sprintf("record %d", f.First)
	if f.Last > f.First {
		records = fmt.Sprintf("records %d to %d", f.First, f.Last)
	}
	switch f.Flaw {
	case audit.Changed:
		return where + "it is not as it was written"
	case audit.Dropped:
		return where + records + " missing before it"
	case audit.Truncated:
		return where + records + " missing at the end; a power cut may do that as well"
	case audit.Inserted:
		return where + "the log did not write this, or wrote it elsewhere"
	case audit.Reordered:
		return where + records + " stands behind a later one"
	case audit.NewChain:
		if f.File == "" {
			return "the log is not the one of the key, or was begun anew"
		}
		return where + "the log was begun anew here; nothing binds it to what stands before"
	case audit.KeyState:
		return where + "audit.key is missing, put back or not the one of this log; after a later " +
			"audit key, give that key as well"
	case audit.NotChained:
		return where + "not chained before the chain began, from here on"
	case audit.Interrupted:
		return where + "what a killed process left of a record; what it was about has not happened"
	case audit.Moved:
		return where + "another program moved it away, so it has no seal; the chain goes on"
	case audit.Early:
		return records + " removed by rotation, and what is left does not reach back 30 days"
	case audit.Gone:
		return records + " removed by rotation, or moved elsewhere"
	}
	return where + string(f.Flaw)
}
