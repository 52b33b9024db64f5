package main

import (
	"context"
	"fmt"
	"strings"

	"moltisfs/checkpoint"
	"moltisfs/internal/approval"
)

// repairStore is check --repair. What is lost is told; the exit status is then 1.
func (in *invocation) repairStore(ctx context.Context) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	dir, o, err := in.storePlace(false)
	if err != nil {
		return err
	}
	err = in.recorded(func() error {
		r, err := checkpoint.Repair(ctx, dir, o)
		if err != nil {
			return err
		}
		return ending(in.writeRepaired(r), refusedIf(len(r.Lost) > 0))
	})
	return storeError(err)
}

func (in *invocation) writeRepaired(r *checkpoint.Repaired) error {
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
	type repaired = checkpoint.Repaired
	r.Lost = list(r.Lost)
	return in.answer(struct {
		Repaired bool `json:"repaired"`
		*repaired
	}{r.Kept != "", r}, "%s", b.String())
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
