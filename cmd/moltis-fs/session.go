package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moltisfs/checkpoint"
)

// runName is what the session of a server's run is called where nobody names it.
func runName() string {
	return time.Now().UTC().Format("run-20060102-150405-") + strings.ToLower(rand.Text()[:6])
}

// newestSession has --session name the session that changed something last below the root or the
// working directory, or else anywhere, where nobody named one: each run of a server has its own.
func (in *invocation) newestSession(ctx context.Context, db *checkpoint.DB) error {
	if in.given("session") {
		return nil
	}
	here, err := in.root()
	if err == nil && here == "" {
		here, err = os.Getwd()
	}
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		here = "" // it is gone: anywhere then
	}
	for _, dir := range []string{here, ""} {
		page, err := db.List(ctx, checkpoint.Filter{Principal: cmp.Or(in.option("principal"), "local"),
			AllSessions: true, NoReads: true, PathContains: dir, Limit: 100})
		if err != nil {
			return err
		}
		for i := range page.Checkpoints {
			c := &page.Checkpoints[i]
			if !madeByTools(c) || !slices.ContainsFunc(c.Changes, func(ch checkpoint.Recorded) bool {
				return strings.HasPrefix(ch.Path, strings.TrimSuffix(dir, "/")+"/")
			}) {
				continue
			}
			if c.Session != "default" {
				in.values["session"] = c.Session
				fmt.Fprintf(in.err, "%s: of session %s, which changed something last\n", program,
					visible(c.Session))
			}
			return nil
		}
	}
	return nil
}

// madeByTools says that a checkpoint is of a change that a call made.
func madeByTools(c *checkpoint.Checkpoint) bool {
	return !slices.Contains([]string{checkpoint.KindExternal, checkpoint.KindRead,
		checkpoint.KindManual, checkpoint.KindImport}, c.Kind)
}
