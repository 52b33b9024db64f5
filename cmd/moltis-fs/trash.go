package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"moltisfs/checkpoint"
)

func trashCommand() *command {
	return &command{
		name:  "trash",
		short: "look at what was deleted, bring it back or let it go",
		below: []*command{
			{
				name: "list", short: "list what is in the trash, newest first", run: listTrash,
				options: storeOptions(
					option{name: "contains", value: "TEXT", doc: "of paths that hold this, letters of either case"},
					option{name: "limit", value: "N", doc: "so many; 20 unless told, at most 1000"},
					option{name: "cursor", value: "ID", doc: "go on behind this one"},
				),
				examples: []string{"moltis-fs trash list", "moltis-fs trash list --contains draft"},
			},
			{
				name: "restore", args: "ID", min: 1, max: 1, short: "bring an entry back to where it was",
				long:     "Under today's policy, and never over something that is there. --principal says whose trash it is.",
				options:  restoreOptions(),
				examples: []string{"moltis-fs trash restore tr-1H0"},
				run: func(ctx context.Context, in *invocation) error {
					return in.restore(ctx, map[string]any{"id": in.arg(0)}, nil)
				},
			},
			{
				name: "empty", args: "[ID...]", max: maxPaths, short: "forget entries, or with --expired those whose time is over",
				long:     "The content stays in the checkpoint of the deletion as long as retention keeps that.",
				options:  storeOptions(option{name: "expired", doc: "those whose time is over"}, option{name: "all", doc: "all of them"}),
				examples: []string{"moltis-fs trash empty --expired"},
				run:      emptyTrash,
			},
		},
	}
}

func (in *invocation) trashFilter() checkpoint.TrashFilter {
	return checkpoint.TrashFilter{Principal: in.option("principal"), AllPrincipals: !in.given("principal"), PathContains: in.option("contains"), Cursor: in.option("cursor")}
}

func listTrash(ctx context.Context, in *invocation) error {
	f := in.trashFilter()
	var err error
	if f.Limit, err = in.number("limit", 20); err != nil {
		return err
	}
	return in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
		page, err := db.TrashList(ctx, f)
		if err != nil {
			return err
		}
		type entry struct {
			ID         checkpoint.TrashID `json:"id"`
			Path       string             `json:"path"`
			Kind       checkpoint.Kind    `json:"kind"`
			Size       int64              `json:"size"`
			Files      int                `json:"files"`
			Principal  string             `json:"principal"`
			Session    string             `json:"session"`
			Checkpoint checkpoint.ID      `json:"checkpoint,omitempty"`
			Deleted    time.Time          `json:"deleted"`
			Expires    time.Time          `json:"expires"`
		}
		if in.given("json") {
			entries := []entry{}
			for _, t := range page.Entries {
				entries = append(entries, entry{t.ID, t.Path, t.Kind, t.Size, t.Files, t.Principal, t.Session, t.Checkpoint, t.Deleted, t.Expires})
			}
			return writeJSON(in, struct {
				Entries []entry `json:"entries"`
				Next    string  `json:"next_cursor,omitempty"`
			}{entries, page.Next})
		}
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, t := range page.Entries {
			fmt.Fprintf(w, "%s\t%s\tuntil %s\t%s\t%s\n", t.ID, t.Principal, t.Expires.Local().Format(time.DateTime), bytesText(t.Size), visible(t.Path))
		}
		w.Flush()
		if page.Next != "" {
			b.WriteString("more: --cursor " + page.Next + "\n")
		}
		return in.write([]byte(b.String()))
	})
}

func emptyTrash(ctx context.Context, in *invocation) error {
	which := 0
	for _, given := range []bool{len(in.args) > 0, in.given("expired"), in.given("all")} {
		if given {
			which++
		}
	}
	if which != 1 {
		return misuse(seeHelp(in.command), "trash empty needs IDs, --expired or --all")
	}
	return in.withStore(ctx, false, func(ctx context.Context, db *checkpoint.DB) error {
		var ids []checkpoint.TrashID
		for _, a := range in.args {
			t, err := db.TrashGet(ctx, checkpoint.TrashID(a), in.option("principal"), !in.given("principal"))
			if err != nil {
				return err
			}
			ids = append(ids, t.ID)
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
			for _, t := range page.Entries {
				ids = append(ids, t.ID)
			}
			f.Cursor, more = page.Next, page.Next != ""
		}
		for _, id := range ids {
			if err := db.TrashSettle(ctx, id, checkpoint.Gone); err != nil {
				return err
			}
			if err := db.TrashDrop(ctx, id); err != nil {
				return err
			}
		}
		if in.given("json") {
			return writeJSON(in, struct {
				Forgotten int `json:"forgotten"`
			}{len(ids)})
		}
		return in.write([]byte(fmt.Sprintf("forgot %d entries\n", len(ids))))
	})
}
