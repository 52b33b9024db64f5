package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"moltisfs/checkpoint"
	runs "moltisfs/internal/run"
)

// The functions below give completions: ids of changes, of the trash, of questions and of tokens, and sessions. A store that can't be
// opened has none.

// newestOf gives the names that name makes of the newest 100 changes, each once.
func newestOf(ctx context.Context, in *invocation, name func(*checkpoint.Checkpoint) string) (out []string) {
	_ = in.withStore(ctx, func(ctx context.Context, db *checkpoint.DB) error {
		page, err := db.List(ctx, checkpoint.Filter{AllSessions: true, NoReads: true, Limit: 100})
		for i := range page.Checkpoints {
			if n := name(&page.Checkpoints[i]); !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
		return err
	})
	return out
}

func changesOf(ctx context.Context, in *invocation) []string {
	return newestOf(ctx, in, func(c *checkpoint.Checkpoint) string {
		return fmt.Sprintf("%s\t%s %s, %s", c.ID, toolOf(c), pathsOf(c), ageText(time.Since(c.Time)))
	})
}

func sessionsOf(ctx context.Context, in *invocation) []string {
	return newestOf(ctx, in, func(c *checkpoint.Checkpoint) string { return c.Session })
}

func trashOf(ctx context.Context, in *invocation) (out []string) {
	_ = in.withStore(ctx, func(ctx context.Context, db *checkpoint.DB) error {
		page, err := db.TrashList(ctx, checkpoint.TrashFilter{AllPrincipals: true, Limit: 100})
		for _, t := range page.Entries {
			out = append(out, fmt.Sprintf("%s\t%s", t.ID, visible(t.Path)))
		}
		return err
	})
	return out
}

func waitingOf(_ context.Context, in *invocation) (out []string) {
	if q, err := in.queue(); err == nil {
		waiting, _ := q.List(false) // it may not be readable
		for i := range waiting {
			out = append(out, fmt.Sprintf("%s\t%s %s", waiting[i].ID, waiting[i].Question.Tool, pathsText(waiting[i].Question.Paths)))
		}
	}
	return out
}

func keptRuns(_ context.Context, in *invocation) (out []string) {
	if dir, err := in.hostData(); err == nil {
		kept, _ := runs.List(dir) // none are named
		for _, r := range kept {
			out = append(out, r.ID+"\t"+r.Command)
		}
	}
	return out
}

func tokensOf(_ context.Context, in *invocation) (out []string) {
	if s, err := in.tokens(); err == nil {
		all, _ := s.List() // it may not be readable
		for _, t := range all {
			out = append(out, fmt.Sprintf("%s\t%s", t.ID, visible(t.Principal)))
		}
	}
	return out
}
