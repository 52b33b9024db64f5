package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"moltisfs/internal/datadir"
)

// dataDir is where our own files live, or those of --sandbox, as an absolute path. earlier are files of ours in the place
// of earlier days, which nobody may touch either.
func (in *invocation) dataDir() (dir string, earlier []string, err error) {
	if dir, earlier, err = in.hostData(); err == nil {
		dir, err = in.sandboxDir(dir)
	}
	return dir, earlier, err
}

func (in *invocation) hostData() (dir string, earlier []string, err error) {
	if dir = in.option("data-dir"); dir == "" {
		if dir = in.env("MOLTIS_DATA_DIR"); dir != "" && !filepath.IsAbs(dir) {
			// Each program that has the variable starts somewhere else.
			return "", nil, misuse("give an absolute path there; --data-dir takes a relative one",
				"MOLTIS_DATA_DIR is the relative path %s", visible(dir))
		}
	}
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(home) {
			return "", nil, misuse("name one with --data-dir or MOLTIS_DATA_DIR",
				"there is no home directory for the data directory to be in")
		}
		dir = filepath.Join(home, ".moltis-fs")
		return dir, in.earlier(filepath.Join(home, ".moltis"), dir), nil
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", nil, fmt.Errorf("finding the data directory: %w", err)
	}
	return dir, nil, nil
}

// earlier looks for a data directory of ours in old, where they were before they had a place of
// their own, and says so. The directory is Moltis': only what is listed there is ours.
func (in *invocation) earlier(old, now string) (paths []string) {
	found := datadir.In(old)
	if found == nil {
		return nil
	}
	moves := map[string]string{} // by directory below
	for _, name := range found {
		paths = append(paths, filepath.Join(old, name))
		below, base := filepath.Split(name)
		moves[below] += " " + shellWord(base)
	}
	if in.told {
		return paths
	}
	in.told = true
	hint := "to go on with it use --data-dir " + shellWord(old)
	if runtime.GOOS != "windows" {
		to := shellWord(now)
		steps := []string{"mkdir -m 700 " + to, "cd " + shellWord(old)}
		if names := moves[""]; names != "" {
			steps = append(steps, "mv"+names+" "+to)
		}
		if names := moves["checkpoints/"]; names != "" {
			steps = append(steps, "mkdir -m 700 "+to+"/checkpoints", "cd checkpoints",
				"mv"+names+" "+to+"/checkpoints")
		}
		// This run makes the new one: it steps aside.
		hint += ", or end every " + program + " and move it: mv " + to + " " + to + ".unused; " +
			strings.Join(steps, " && ")
	}
	fmt.Fprintf(in.err, "%s: there is a history of ours in %s, but the data directory is %s "+
		"now\nhint: %s\n", program, old, now, hint)
	return paths
}
