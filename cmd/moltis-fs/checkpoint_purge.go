package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/tools"
)

func checkpointPurgeCommand() *command {
	return &command{
		name: "purge", short: "remove contents so that no byte of them stays in the store",
		long: `For secrets that got in, whichever session brought them. Every content that a path matching --path, or one below, ever had goes, or the one whose hash is --sha256,
wherever it was; with --excluded that of all paths which exclude in the configuration names by now. Links are followed in what stands before the first wildcard. Where
nothing is found it is an error (with --excluded it is none). The checkpoints stay and say "purged". What sessions read is forgotten too, as far as it was kept to show diffs
of conflicts, and so are the hashes. The audit log is only ever appended to: its records go on naming the SHA-256, which can confirm a guess of
the content, and the answer says how many do. Remove the files in DATA-DIR/audit where even that is too much. Files that
were moved to the trash as they are stay there until it is emptied of them; they are listed, and so are directories in which a repair left the
store as it was (damaged-…): remove those. Files that a cut-off call left go too. It can't be undone, and it needs as much free space as the store takes.`,
		options: storeOptions(
			option{name: "path", value: "GLOB", doc: "an absolute glob, and all below what it names; without a slash it holds at any depth"},
			option{name: "sha256", value: "HASH", doc: "this content"},
			option{name: "excluded", doc: "whatever [tools.fs.checkpoint] exclude names today"},
			option{name: "cut-off", doc: "also what a change that was cut off half-way needs to be taken back: its paths may stay half-way then"},
			option{name: "dry-run", doc: "only count"},
			option{name: "yes", doc: "do it; without it, or --dry-run, it is refused"},
			identityOption(),
		),
		examples: []string{"moltis-fs checkpoint purge --path '.env*' --dry-run", "moltis-fs checkpoint purge --path /home/user/project/secrets.txt --yes", "moltis-fs checkpoint purge --config moltis.toml --excluded --dry-run"},
		run:      purgeCheckpoints,
	}
}

// noBytes is the SHA-256 of the empty content.
const noBytes = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func purgeCheckpoints(ctx context.Context, in *invocation) error {
	p := checkpoint.Purge{Hash: strings.ToLower(in.option("sha256")), DryRun: in.given("dry-run"), CutOff: in.given("cut-off")}
	switch {
	case in.given("excluded") && in.count("path", "sha256") > 0:
		return misuse(seeHelp(in.command), "--excluded says which paths; --path and --sha256 don't go with it")
	case in.count("path", "sha256", "excluded") == 0:
		return misuse(seeHelp(in.command), "purge needs --path, --sha256 or --excluded")
	case p.Hash != "" && strings.Trim(p.Hash, "0123456789abcdef") != "" || p.Hash != "" && len(p.Hash) != 64:
		return misuse("write its 64 hexadecimal digits, as checkpoint list --json and sha256sum have them", "--sha256 can't be %.100q", in.option("sha256"))
	case p.Hash == noBytes:
		return misuse("", "that is the SHA-256 of the empty content: it holds no byte, and nothing to purge")
	case !p.DryRun && !in.given("yes"):
		return misuse("--dry-run shows what would go; --yes does it", "a purge can't be undone")
	}
	var err error
	if p.Match, err = in.purgedPaths(); err != nil {
		return err
	}
	dir, _, err := in.dataDir()
	if err != nil {
		return err
	}
	return in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
		recorded := 0
		p.Forget = func(hashes []string) (err error) {
			// By hash they can't be told from the secret's other versions, so all go.
			if _, err := engine.PurgeKept(dir); err != nil {
				return err
			}
			recorded, err = engine.PurgeHashes(dir, hashes)
			return err
		}
		r, err := db.Purge(ctx, p)
		if err != nil {
			return err
		}
		a := purgeAnswer{Contents: r.Contents, Checkpoints: r.Checkpoints, AlsoAt: append([]string{}, r.AlsoAt...), Files: r.Files,
			Beside: append([]string{}, r.Beside...), AuditRecords: recorded, DryRun: p.DryRun}
		if a.InTrash, err = parkedAt(ctx, db, p.Match); err != nil {
			return err
		}
		if !in.given("excluded") && r.Paths+r.Contents+recorded+len(a.InTrash) == 0 && !r.Resumed {
			return in.nothingToPurge(a.Beside)
		}
		if in.given("json") {
			return writeJSON(in, a)
		}
		return in.write([]byte(a.text(filepath.Join(dir, "audit"))))
	})
}

// purgedPaths is what the options say of paths; nil for nothing.
func (in *invocation) purgedPaths() (func(string) bool, error) {
	var globs []string
	switch pattern := in.option("path"); {
	case in.given("excluded"):
		cfg, from, err := in.loadConfig(in.option("config"))
		if err != nil {
			return nil, unusableConfig(err, from)
		}
		if globs = cfg.Tools.FS.Checkpoint.Exclude; len(globs) == 0 {
			return nil, misuse("name the configuration with --config, or the paths with --path", "exclude in [tools.fs.checkpoint] is empty")
		}
	case pattern == "":
		return nil, nil
	case pattern != "/":
		pattern = strings.TrimSuffix(pattern, "/")
		fallthrough
	default:
		globs = []string{pattern}
	}
	named, err := engine.Named(globs)
	if err != nil {
		return nil, misuse("write it from the root: /home/user/project/**", "--path: %v", err)
	}
	return named.Covers, nil
}

// nothingToPurge is the answer where something was named and nothing was there. A success would be taken for its removal.
func (in *invocation) nothingToPurge(beside []string) error {
	what, hint := "no content in the store has the SHA-256 "+in.option("sha256"), "--path finds it by its name; it may have been purged before"
	if path := in.option("path"); path != "" {
		what = "no path in the store matches " + path
		if in.given("sha256") {
			what += ", and no content has that SHA-256"
		}
		hint = "files are stored under their true names, and links are followed only in what stands before the first wildcard; " +
			program + " checkpoint list --contains TEXT shows the names"
	}
	for _, dir := range beside {
		hint += "; " + dir + " holds the store as it was before a repair: remove that directory if it was there"
	}
	return &exitError{exitRefused, what, hint, tools.KindNotFound}
}

// purgeAnswer is what a purge did, or with DryRun would do.
type purgeAnswer struct {
	Contents    int      `json:"contents"`
	Checkpoints int      `json:"checkpoints"`
	AlsoAt      []string `json:"also_at"`
	// InTrash are entries of such paths that were moved to the trash as they are: no purge touches them.
	InTrash []checkpoint.TrashID `json:"in_trash"`
	// AuditRecords still name one of the hashes.
	AuditRecords int `json:"audit_records"`
	// Files that nothing named any more, left by a call that was cut off.
	Files int `json:"files"`
	// Beside are directories that hold the store as it was before a repair: no purge touches them.
	Beside []string `json:"beside"`
	DryRun bool     `json:"dry_run"`
}

func (a *purgeAnswer) text(audit string) string {
	var b strings.Builder
	verb := "purged"
	if a.DryRun {
		verb = "would purge"
	}
	fmt.Fprintf(&b, "%s %s of %s\n", verb, plural(a.Contents, "content", "contents"), plural(a.Checkpoints, "checkpoint", "checkpoints"))
	if a.Files > 0 {
		fmt.Fprintf(&b, "%s %s that nothing named any more: a call was cut off\n", verb, plural(a.Files, "file", "files"))
	}
	for _, d := range a.Beside {
		fmt.Fprintf(&b, "%s holds the store as it was before a repair, with whatever was to be purged: remove that directory\n", visible(d))
	}
	for _, path := range a.AlsoAt {
		fmt.Fprintf(&b, "the same bytes were also at %s\n", visible(path))
	}
	for _, id := range a.InTrash {
		fmt.Fprintf(&b, "the trash holds one of these files itself: %s trash empty %s\n", program, id)
	}
	if a.AuditRecords > 0 {
		fmt.Fprintf(&b, "the audit log goes on naming their SHA-256, in %s: it is only ever appended to; remove the files in %s if even that is too much\n",
			plural(a.AuditRecords, "record", "records"), visible(audit))
	}
	return b.String()
}

// parkedAt finds what was moved to the trash as it is from paths that match.
func parkedAt(ctx context.Context, db *checkpoint.DB, match func(string) bool) ([]checkpoint.TrashID, error) {
	ids := []checkpoint.TrashID{}
	if match == nil {
		return ids, nil
	}
	f := checkpoint.TrashFilter{AllPrincipals: true, Limit: 1000}
	for {
		page, err := db.TrashList(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Entries {
			if t.Parked != "" && match(t.Path) {
				ids = append(ids, t.ID)
			}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			return ids, nil
		}
	}
}
