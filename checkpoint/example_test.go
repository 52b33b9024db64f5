package checkpoint_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"moltisfs/checkpoint"
)

// Save before the change, change, and ask later what the way back is.
func ExampleDB() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := checkpoint.Open(dir, checkpoint.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	ctx := context.Background()
	saved, err := db.Save(ctx, checkpoint.Op{
		Tool: "Edit", Kind: checkpoint.KindEdit, Principal: "local", Session: "s1",
		Changes: []checkpoint.Change{{
			Path: "/srv/notes.txt", Role: "target",
			Before: checkpoint.State{Kind: checkpoint.File, Mode: 0o644}, Content: []byte("old\n"),
			After: checkpoint.State{Kind: checkpoint.File, Mode: 0o644}, AfterContent: []byte("new\n"),
		}},
	})
	if err != nil {
		log.Fatal(err) // then the file must not be changed
	}
	plan, err := db.Plan(ctx, checkpoint.Restore{ID: saved.ID, Principal: "local", Session: "s1"})
	if err != nil {
		log.Fatal(err)
	}
	for _, item := range plan.Items {
		content, err := db.Content(ctx, item.Want.Hash)
		fmt.Printf("%s %q %v\n", item.Path, content, err)
	}
	// Output:
	// /srv/notes.txt "old\n" <nil>
}
