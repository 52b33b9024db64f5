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
		type repaired = checkpoint.Repaired
		r.Lost = append([]checkpoint.Problem{}, r.Lost...) // [] in JSON, not null
		return writeJSON(in, struct {
			Repaired bool `json:"repaired"`
			repaired
		}{r.Kept != "", *r})
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
