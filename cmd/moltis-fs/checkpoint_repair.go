package main

import (
	"context"
	"fmt"
	"strings"

	"moltisfs/approval"
	"moltisfs/checkpoint"
)

// repairStore is check --repair. What is lost is told; the exit status is then 1.
func (in *invocation) repairStore(ctx context.Context) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	dir, o, err := in.storeOptions(false)
	if err != nil {
		return err
	}
	r, err := checkpoint.Repair(ctx, dir, o)
	if err != nil {
		return storeError(err)
	}
	var outcome error
	if len(r.Lost) > 0 {
		outcome = refused
	}
	return ending(in.writeRepaired(r), outcome)
}

func (in *invocation) writeRepaired(r *checkpoint.Repaired) error {
	if in.given("json") {
		return writeJSON(in, struct {
			Repaired    bool             `json:"repaired"`
			Kept        string           `json:"kept,omitempty"`
			Checkpoints int              `json:"checkpoints"`
			Changes     int              `json:"changes"`
			Contents    int              `json:"contents"`
			Lost        []problemOfStore `json:"lost"`
		}{r.Kept != "", r.Kept, r.Checkpoints, r.Changes, r.Contents, problemRows(r.Lost)})
	}
	var b strings.Builder
	writeProblems(&b, r.Lost)
	fmt.Fprintf(&b, "%d checkpoints, %d contents: ", r.Checkpoints, r.Contents)
	switch {
	case r.Kept == "":
		b.WriteString("sound, nothing was changed\n")
	case len(r.Lost) == 0:
		fmt.Fprintf(&b, "repaired, nothing is lost; what it was made from is in %s\n", visible(r.Kept))
	default:
		fmt.Fprintf(&b, "repaired, the above is lost; what it was made from is in %s\n", visible(r.Kept))
	}
	return in.write([]byte(b.String()))
}

// problemOfStore is a checkpoint.Problem as the commands write it in JSON.
type problemOfStore struct {
	What  string   `json:"what"`
	Hash  string   `json:"sha256,omitempty"`
	Paths []string `json:"paths,omitempty"`
	Why   string   `json:"why"`
}

func problemRows(from []checkpoint.Problem) []problemOfStore {
	out := []problemOfStore{}
	for _, p := range from {
		out = append(out, problemOfStore(p))
	}
	return out
}

func writeProblems(b *strings.Builder, ps []checkpoint.Problem) {
	for _, p := range ps {
		fmt.Fprintf(b, "%s: %s", p.What, approval.Escape(p.Why, false))
		if p.Hash != "" {
			fmt.Fprintf(b, " (sha256 %.12s)", p.Hash)
		}
		for _, path := range p.Paths {
			b.WriteString(" " + visible(path))
		}
		b.WriteByte('\n')
	}
}
