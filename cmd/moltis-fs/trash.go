package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
)

func trashCommand() *command {
	return &command{
		name:  "trash",
		short: "list what was deleted, bring it back or remove it",
		below: []*command{
			{
				name: "list", short: "list what is in the trash, newest first", run: listTrash,
				long: "Below it stands what is kept beside a file: content of others that a call displaced,\n" +
					"and could not put back because the place was taken again.",
				options:  options("contains limit cursor principal session" + onStore),
				examples: []string{"moltis-fs trash list", "moltis-fs trash list --contains draft"},
			},
			{
				ids: trashOf, name: "restore", args: "ID", min: 1, max: 1, short: "bring a deleted file or directory back",
				long: "Under today's policy, with its old times, and never over something that " +
					"is there. --principal says whose trash it is." + ofAnySession,
				options:  options(onRestore),
				examples: []string{"moltis-fs trash restore tr-1H0"},
				run: func(ctx context.Context, in *invocation) error {
					if !isTrashID(in.arg(0)) {
						return misuse(program+" trash list shows the ids", "%q is no id of the trash", in.arg(0))
					}
					return in.restore(ctx, map[string]any{"id": in.arg(0)}, nil)
				},
			},
			{
				records: "empty_trash", ids: trashOf, name: "empty", args: "[ID...]", max: maxPaths, short: "remove entries, or with " +
					"--expired those whose time is over",
				long: `It asks on the terminal first; not for what has expired, and not with
--yes. What the store holds of an entry stays in the checkpoint of the deletion, as long as
retention keeps that. What was moved to the trash as a whole is gone.`,
				options: options("dry-run yes principal session"+onStore,
					opt("expired", "", "the expired ones"), opt("all", "", "all entries"),
					opt("kept", "", "what trash list shows as kept beside a file")),
				examples: []string{"moltis-fs trash empty --expired"},
				run:      emptyTrash,
			},
		},
	}
}

func (in *invocation) trashFilter() checkpoint.TrashFilter {
	return checkpoint.TrashFilter{
		Principal: in.option("principal"), AllPrincipals: !in.given("principal"),
		Session: in.option("session"), PathContains: in.option("contains"), Cursor: in.option("cursor"),
	}
}

func listTrash(ctx context.Context, in *invocation) error {
	f := in.trashFilter()
	var err error
	if f.Limit, err = in.number("limit", 20, 1000); err != nil {
		return err
	}
	var kept []engine.KeptFile // they are nobody's in particular
	if in.count("principal", "session", "contains", "cursor") == 0 {
		if kept, err = in.kept(ctx, false); err != nil {
			return err
		}
	}
	var page checkpoint.TrashPage
	err = in.withStoreIfAny(ctx, func(ctx context.Context, db *checkpoint.DB) (err error) {
		page, err = db.TrashList(ctx, f)
		return err
	})
	if err != nil {
		return err
	}
	var rows [][]string
	for _, t := range page.Entries {
		rows = append(rows, []string{string(t.ID), visible(t.Principal), "until " + timeText(t.Expires), bytesText(t.Size), visible(t.Path)})
	}
	for _, k := range kept {
		rows = append(rows, []string{fmt.Sprintf("kept beside %s, where something else is: %s", visible(k.Of), visible(k.Path))})
	}
	return in.table(struct {
		Entries []checkpoint.Trashed `json:"entries"`
		Next    string               `json:"next_cursor,omitempty"`
		Kept    []engine.KeptFile    `json:"kept,omitempty"`
	}{list(page.Entries), page.Next, kept}, rows, page.Next, "the trash holds nothing")
}

// kept lists the files that could not be put back and are kept beside their place.
func (in *invocation) kept(ctx context.Context, remove bool) ([]engine.KeptFile, error) {
	dir, err := in.dataDir()
	if err != nil {
		return nil, err
	}
	at, done, err := in.sandboxPlace()
	if err != nil {
		return nil, err
	}
	defer done()
	return engine.Kept(ctx, dir, at, remove)
}

// mayEmpty asks before what is gone for good. A dry run and an answer of yes need no question.
func (in *invocation) mayEmpty(ctx context.Context, what string) error {
	if in.given("dry-run") || in.given("yes") ||
		!in.given("json") && in.confirmed(ctx, "Remove for good "+what+"?") {
		return nil
	}
	return unsaid("it would remove " + what + ", and that can't be undone")
}

// emptied answers with a line for each thing that is gone, or would be.
func (in *invocation) emptied(v any, what string, lines []string) error {
	verb := "removed "
	if in.given("dry-run") {
		verb = "would remove "
	}
	return in.answer(v, "%s%s\n", strings.Join(append(lines, verb), "\n"), what)
}

// dropKept removes what is kept beside files.
func (in *invocation) dropKept(ctx context.Context) error {
	kept, err := in.kept(ctx, false)
	if err != nil {
		return err
	}
	what := plural(len(kept), "file", "files")
	if len(kept) > 0 {
		if err = in.mayEmpty(ctx, what); err == nil && !in.given("dry-run") {
			kept, err = in.kept(ctx, true)
		}
	}
	if err != nil {
		return err
	}
	var lines []string
	for _, k := range kept {
		lines = append(lines, visible(k.Path))
	}
	return in.emptied(struct {
		Kept   []engine.KeptFile `json:"kept"`
		DryRun bool              `json:"dry_run"`
	}{list(kept), in.given("dry-run")}, what, lines)
}

func emptyTrash(ctx context.Context, in *invocation) error {
	which := in.count("expired", "all", "kept")
	if len(in.args) > 0 {
		which++
	}
	switch {
	case which != 1:
		return misuse(seeHelp(in.command), "trash empty needs IDs, --expired, --all or --kept")
	case in.given("kept") && in.count("principal", "session") > 0:
		return misuse(seeHelp(in.command), "what is kept beside a file is nobody's in particular: "+
			"--kept goes without --principal and --session")
	case in.given("kept"):
		return in.recorded(func() error { return in.dropKept(ctx) })
	}
	return in.withStore(ctx, func(ctx context.Context, db *checkpoint.DB) error {
		going, err := in.leaving(ctx, db)
		if err != nil {
			return err
		}
		what := emptying(going)
		if len(going) > 0 && !in.given("expired") { // what has expired goes by itself sooner or later
			err = in.mayEmpty(ctx, what)
		}
		if err == nil && !in.given("dry-run") {
			err = in.remove(ctx, db, going)
		}
		if err != nil {
			return err
		}
		ids, lines := []checkpoint.TrashID{}, []string(nil)
		for _, t := range going {
			ids = append(ids, t.ID)
			if in.given("dry-run") {
				lines = append(lines, string(t.ID)+"  "+visible(t.Path))
			}
		}
		return in.emptied(struct {
			Forgotten int                  `json:"forgotten"`
			IDs       []checkpoint.TrashID `json:"ids"`
			DryRun    bool                 `json:"dry_run"`
		}{len(ids), ids, in.given("dry-run")}, what, lines)
	})
}

// leaving lists the entries that are to go: those of the IDs, or of --expired or --all.
func (in *invocation) leaving(ctx context.Context,
	db *checkpoint.DB) (going []checkpoint.Trashed, err error) {
	for _, a := range in.args {
		t, err := in.findTrashed(ctx, db, a)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(going, func(g checkpoint.Trashed) bool { return g.ID == t.ID }) {
			going = append(going, t)
		}
	}
	if len(in.args) > 0 {
		return going, nil
	}
	f := in.trashFilter()
	if in.given("expired") {
		f.Expired = time.Now()
	}
	return trashed(ctx, db, f)
}

// emptying describes entries, as in "/ws/a.txt with 1 file, 12 bytes".
func emptying(going []checkpoint.Trashed) string {
	if len(going) == 0 {
		return "nothing"
	}
	size, files := int64(0), 0
	for _, t := range going {
		size, files = size+t.Size, files+t.Files
	}
	what := plural(len(going), "entry", "entries")
	if len(going) == 1 {
		what = visible(going[0].Path)
	}
	return what + " with " + plural(files, "file", "files") + ", " + bytesText(size)
}

// remove removes entries of the trash for good.
func (in *invocation) remove(ctx context.Context, db *checkpoint.DB, going []checkpoint.Trashed) error {
	at, done, err := in.sandboxPlace()
	if err != nil {
		return err
	}
	defer done()
	return engine.EmptyTrash(ctx, at, db, going)
}
