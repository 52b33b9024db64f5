package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine"
	"moltisfs/tools"
)

func trashCommand() *command {
	return &command{
		name: "trash", payload: true,
		short: "look at what was deleted, bring it back or let it go",
		below: []*command{
			{
				name: "list", short: "list what is in the trash, newest first", run: listTrash,
				long: "Below it stands what is kept beside a file: content of others that a call displaced,\n" +
					"and could not put back because the place was taken again.",
				options: storeOptions(append(whose(),
					option{name: "contains", value: "TEXT", doc: "of paths that hold this, letters of either case"},
					option{name: "limit", value: "N", doc: "so many; 20 unless told, at most 1000"},
					option{name: "cursor", value: "ID", doc: "go on behind this one"},
				)...),
				examples: []string{"moltis-fs trash list", "moltis-fs trash list --contains draft"},
			},
			{
				name: "restore", args: "ID", min: 1, max: 1, short: "bring an entry back to where it was",
				long: "Under today's policy, with its old times, and never over something that is there. --principal says whose trash it is.",
				// It never overwrites, and always keeps the times.
				options:  slices.DeleteFunc(restoreOptions(sessionOfID), func(o option) bool { return o.name == "on-conflict" || o.name == "keep-times" }),
				examples: []string{"moltis-fs trash restore tr-1H0"},
				run: func(ctx context.Context, in *invocation) error {
					if !isTrashID(in.arg(0)) {
						return misuse(program+" trash list shows the ids", "%q is no id of the trash", in.arg(0))
					}
					return in.restoreID(ctx, map[string]any{"id": in.arg(0)}, nil)
				},
			},
			{
				name: "empty", args: "[ID...]", max: maxPaths, short: "remove entries, or with --expired those whose time is over",
				long: `It asks on the terminal, but for what has expired, or with --yes does it. What the store holds of an entry stays in the checkpoint of the deletion as long as
retention keeps that; what was moved to the trash as a whole is gone.`,
				options: storeOptions(append(whose(), option{name: "expired", doc: "those whose time is over"}, option{name: "all", doc: "all of them"},
					option{name: "kept", doc: "what trash list says is kept beside a file"}, option{name: "dry-run", doc: "only list them"}, option{name: "yes", doc: "do it without asking"})...),
				examples: []string{"moltis-fs trash empty --expired"},
				run:      emptyTrash,
			},
		},
	}
}

func (in *invocation) trashFilter() checkpoint.TrashFilter {
	return checkpoint.TrashFilter{Principal: in.option("principal"), AllPrincipals: !in.given("principal"), Session: in.option("session"), PathContains: in.option("contains"), Cursor: in.option("cursor")}
}

// findTrashed is the entry of the trash with this id, if it is one of --principal and --session.
func (in *invocation) findTrashed(ctx context.Context, db *checkpoint.DB, id string) (t checkpoint.Trashed, err error) {
	t, err = db.TrashGet(ctx, checkpoint.TrashID(id), in.option("principal"), !in.given("principal"))
	if e, ok := errors.AsType[*checkpoint.BadIDError](err); ok {
		return t, misuse(program+" trash list shows the ids", "%v", e)
	}
	if errors.Is(err, checkpoint.ErrNotFound) || err == nil && in.given("session") && t.Session != in.option("session") {
		return t, &exitError{exitRefused, "there is no such entry in the trash: " + id, program + " trash list shows the ids", tools.KindNotFound}
	}
	return t, err
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
	return in.withTrash(ctx, len(kept) > 0, func(ctx context.Context, db *checkpoint.DB) error {
		var page checkpoint.TrashPage
		if db != nil {
			if page, err = db.TrashList(ctx, f); err != nil {
				return err
			}
		}
		if in.given("json") {
			return writeJSON(in, struct {
				Entries []checkpoint.Trashed `json:"entries"`
				Next    string               `json:"next_cursor,omitempty"`
				Kept    []engine.KeptFile    `json:"kept,omitempty"`
			}{append([]checkpoint.Trashed{}, page.Entries...), page.Next, kept})
		}
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, t := range page.Entries {
			fmt.Fprintf(w, "%s\t%s\tuntil %s\t%s\t%s\n", t.ID, visible(t.Principal), timeText(t.Expires), bytesText(t.Size), visible(t.Path))
		}
		w.Flush()
		if page.Next != "" {
			b.WriteString("more: --cursor " + page.Next + "\n")
		}
		for _, k := range kept {
			fmt.Fprintf(&b, "kept beside %s, where something else is: %s\n", visible(k.Of), visible(k.Path))
		}
		return in.write([]byte(b.String()))
	})
}

// kept is what could not be put back and is kept beside its place.
func (in *invocation) kept(ctx context.Context, remove bool) ([]engine.KeptFile, error) {
	dir, _, err := in.dataDir()
	if err != nil {
		return nil, err
	}
	return engine.Kept(ctx, dir, remove)
}

// withTrash is withStore. Where something is kept beside a file it goes on without a store that is
// not there: db is nil then.
func (in *invocation) withTrash(ctx context.Context, kept bool, use func(context.Context, *checkpoint.DB) error) error {
	dir, _, err := in.dataDir()
	if err == nil && kept && thereIsAStore(filepath.Join(dir, "checkpoints")) != nil {
		return use(ctx, nil)
	}
	return in.withStore(ctx, false, use)
}

// dropKept removes what is kept beside files.
func (in *invocation) dropKept(ctx context.Context) error {
	kept, err := in.kept(ctx, false)
	if err != nil {
		return err
	}
	what, verb, dry := plural(len(kept), "file", "files"), "removed ", in.given("dry-run")
	if dry {
		verb = "would remove "
	}
	if len(kept) > 0 && !dry {
		if !in.given("yes") && (in.given("json") || !confirmed("Remove for good "+what+"?")) {
			return misuse("--dry-run lists them; --yes does it", "it would remove %s, and that can't be undone", what)
		}
		if kept, err = in.kept(ctx, true); err != nil {
			return err
		}
	}
	if in.given("json") {
		return writeJSON(in, struct {
			Kept   []engine.KeptFile `json:"kept"`
			DryRun bool              `json:"dry_run"`
		}{append([]engine.KeptFile{}, kept...), dry})
	}
	var b strings.Builder
	for _, k := range kept {
		b.WriteString(visible(k.Path) + "\n")
	}
	return in.write([]byte(b.String() + verb + what + "\n"))
}

func emptyTrash(ctx context.Context, in *invocation) error {
	which := 0
	for _, given := range []bool{len(in.args) > 0, in.given("expired"), in.given("all"), in.given("kept")} {
		if given {
			which++
		}
	}
	if which != 1 {
		return misuse(seeHelp(in.command), "trash empty needs IDs, --expired, --all or --kept")
	}
	if in.given("kept") {
		if in.count("principal", "session") > 0 {
			return misuse(seeHelp(in.command), "what is kept beside a file is nobody's in particular: --kept goes without --principal and --session")
		}
		return in.dropKept(ctx)
	}
	return in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
		var going []checkpoint.Trashed
		for _, a := range in.args {
			t, err := in.findTrashed(ctx, db, a)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(going, func(g checkpoint.Trashed) bool { return g.ID == t.ID }) {
				going = append(going, t)
			}
		}
		f := in.trashFilter()
		f.Limit = 1000
		if in.given("expired") {
			f.Expired = time.Now()
		}
		for more := len(in.args) == 0; more; {
			page, err := db.TrashList(ctx, f)
			if err != nil {
				return err
			}
			going = append(going, page.Entries...)
			f.Cursor, more = page.Next, page.Next != ""
		}
		what := emptying(going)
		// What has expired goes by itself sooner or later.
		if len(going) > 0 && !in.given("yes") && !in.given("expired") && !in.given("dry-run") {
			if in.given("json") || !confirmed("Remove for good "+what+"?") {
				return misuse("--dry-run lists them; --yes does it", "it would remove %s, and that can't be undone", what)
			}
		}
		if !in.given("dry-run") {
			if err := engine.EmptyTrash(ctx, db, going); err != nil {
				return err
			}
		}
		if in.given("json") {
			ids := []checkpoint.TrashID{}
			for _, t := range going {
				ids = append(ids, t.ID)
			}
			return writeJSON(in, struct {
				Forgotten int                  `json:"forgotten"`
				IDs       []checkpoint.TrashID `json:"ids"`
				DryRun    bool                 `json:"dry_run"`
			}{len(ids), ids, in.given("dry-run")})
		}
		verb := "removed "
		if in.given("dry-run") {
			verb = "would remove "
			for _, t := range going {
				if err := in.write([]byte(string(t.ID) + "  " + visible(t.Path) + "\n")); err != nil {
					return err
				}
			}
		}
		return in.write([]byte(verb + what + "\n"))
	})
}

// emptying says what would be gone.
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
