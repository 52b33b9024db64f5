package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/internal/audit"
	"moltisfs/internal/engine"
	"moltisfs/tools"
)

func checkpointPurgeCommand() *command {
	return &command{
		records: "purge", name: "purge", short: "remove contents for good, so that no byte of them stays in the store",
		long: `For secrets that got in, whichever session brought them. A content goes if a path
that matches --path, or one below such a path, ever had it. --sha256 names one content, wherever
it was. Links are followed only before the first wildcard. Where nothing is found it is an error.

The checkpoints stay and say "purged". The read histories of sessions, which show diffs of
conflicts, are forgotten, and so are the hashes. Files that a cut-off call left go too. A purge
can't be undone, and needs as much free space as the store takes.

Three things stay. The audit log is only ever appended to: its records still name the SHA-256,
which can confirm a guess of the content. The answer says how many; remove the files in
DATA-DIR/audit where that is too much. Files that were moved to the trash as a whole stay until it
is emptied. So do stores that were damaged and moved aside (damaged-…): remove them.
Both are listed.`,
		options: options("dry-run yes identity"+onStore,
			opt("path", "GLOB", "an absolute glob, with everything below; without a slash it matches at any depth"),
			opt("sha256", "HASH", "only this content"),
			opt("cut-off", "",
				"also remove what is needed to roll back an interrupted change (it may stay half-done)"),
		),
		examples: []string{
			"moltis-fs store purge --path '.env*' --dry-run",
			"moltis-fs store purge --path /home/user/project/secrets.txt --yes",
		},
		run: purgeCheckpoints,
	}
}

// noBytes is the SHA-256 of the empty content.
const noBytes = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func purgeCheckpoints(ctx context.Context, in *invocation) error {
	p := checkpoint.Purge{Hash: strings.ToLower(in.option("sha256")), DryRun: in.given("dry-run"),
		CutOff: in.given("cut-off")}
	switch {
	case in.count("path", "sha256") == 0:
		return misuse(seeHelp(in.command), "purge needs --path or --sha256")
	case p.Hash != "" && (len(p.Hash) != 64 || strings.Trim(p.Hash, "0123456789abcdef") != ""):
		return misuse("write 64 hexadecimal digits, as in checkpoint show --json",
			"--sha256 can't be %.100q", in.option("sha256"))
	case p.Hash == noBytes:
		return misuse("", "that is the SHA-256 of the empty content: there is nothing to purge")
	case !p.DryRun && !in.given("yes"):
		return unsaid("a purge can't be undone")
	}
	var err error
	if p.Match, err = in.purgedPaths(); err != nil {
		return err
	}
	dir, err := in.dataDir()
	if err != nil {
		return err
	}
	f, err := in.fleet()
	if err != nil {
		return err
	}
	return in.withStore(ctx, func(ctx context.Context, db *checkpoint.DB) error {
		recorded := 0
		p.Forget = func(hashes []string) (err error) {
			if err := in.shipping.Forget(hashes); err != nil {
				return err
			}
			// By hash they can't be told from the secret's other versions, so all go.
			if err := engine.PurgeKept(dir); err != nil {
				return err
			}
			recorded, err = engine.PurgeHashes(dir, f, hashes)
			return err
		}
		r, err := db.Purge(ctx, p)
		if err != nil {
			return err
		}
		a := purgeAnswer{
			Contents: r.Contents, Checkpoints: r.Checkpoints, AlsoAt: list(r.AlsoAt),
			Files: r.Files, Beside: list(r.Beside), AuditRecords: recorded, DryRun: p.DryRun,
		}
		if a.InTrash, err = inTrash(ctx, db, p.Match); err != nil {
			return err
		}
		if r.Paths+r.Contents+recorded+len(a.InTrash) == 0 && !r.Resumed {
			return in.nothingToPurge(a.Beside)
		}
		return in.answer(a, "%s", a.forPeople(filepath.Join(dir, "audit")))
	})
}

// purgedPaths says which paths --path names; nil for none.
func (in *invocation) purgedPaths() (func(string) bool, error) {
	pattern := in.option("path")
	if pattern == "" {
		return nil, nil
	}
	if pattern != "/" {
		pattern = strings.TrimSuffix(pattern, "/")
	}
	named, err := engine.Named([]string{pattern})
	if err != nil {
		return nil, misuse("write it from the root: /home/user/project/**", "--path: %v", err)
	}
	return named.Covers, nil
}

// nothingToPurge is the answer where nothing was found. A success would be taken for its removal.
func (in *invocation) nothingToPurge(beside []string) error {
	what, hint := "no content in the store has the SHA-256 "+in.option("sha256"),
		"--path finds it by its name; it may have been purged before"
	if path := in.option("path"); path != "" {
		what = "no path in the store matches " + path
		if in.given("sha256") {
			what += ", and no content has that SHA-256"
		}
		hint = "files have their true names here, and links are followed only before the first " +
			"wildcard; " +
			program + " log --all --contains TEXT shows the names"
	}
	for _, dir := range beside {
		hint += "; " + dir + " holds an earlier store, which was damaged: remove it if it was there"
	}
	return &exitError{exitRefused, what, hint, tools.KindNotFound}
}

// A purgeAnswer counts the contents and checkpoints that a purge removed, or would remove with DryRun.
type purgeAnswer struct {
	Contents    int      `json:"contents"`
	Checkpoints int      `json:"checkpoints"`
	AlsoAt      []string `json:"also_at"`
	// InTrash was moved to the trash as a whole, from such paths. No purge touches it.
	InTrash []checkpoint.TrashID `json:"in_trash"`
	// AuditRecords still name one of the hashes.
	AuditRecords int `json:"audit_records"`
	// Files that nothing named any more, left by a call that was cut off.
	Files int `json:"files"`
	// Beside are directories that hold a store that was damaged: no purge touches them.
	Beside []string `json:"beside"`
	DryRun bool     `json:"dry_run"`
}

func (a *purgeAnswer) forPeople(auditDir string) string {
	var b strings.Builder
	verb := "purged"
	if a.DryRun {
		verb = "would purge"
	}
	fmt.Fprintf(&b, "%s %s of %s\n", verb, plural(a.Contents, "content", "contents"),
		plural(a.Checkpoints, "checkpoint", "checkpoints"))
	if a.Files > 0 {
		fmt.Fprintf(&b, "%s %s that nothing named any more: a call was interrupted\n", verb,
			plural(a.Files, "file", "files"))
	}
	for _, d := range a.Beside {
		fmt.Fprintf(&b, "%s holds an earlier store, which was damaged: remove that directory\n",
			visible(d))
	}
	for _, path := range a.AlsoAt {
		fmt.Fprintf(&b, "the same bytes were also at %s\n", visible(path))
	}
	for _, id := range a.InTrash {
		fmt.Fprintf(&b, "the trash holds one of these files itself: %s trash empty %s\n", program, id)
	}
	if a.AuditRecords > 0 {
		fmt.Fprintf(&b, "the audit log still names their SHA-256, in %s; remove the files in %s "+
			"and %s if that is too much\n", plural(a.AuditRecords, "record", "records"),
			visible(auditDir), visible(audit.ChangesDir(auditDir)))
	}
	return b.String()
}

// inTrash finds what was moved to the trash as a whole from paths that match.
func inTrash(ctx context.Context, db *checkpoint.DB,
	match func(string) bool) ([]checkpoint.TrashID, error) {
	ids := []checkpoint.TrashID{}
	if match == nil {
		return ids, nil
	}
	all, err := trashed(ctx, db, checkpoint.TrashFilter{AllPrincipals: true})
	for _, t := range all {
		if match(t.Path) {
			ids = append(ids, t.ID)
		}
	}
	return ids, err
}
