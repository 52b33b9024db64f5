package tools

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"moltisfs/config"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// DataDirError is a data directory that can't be ours.
type DataDirError struct{ Dir, Why, Do string }

func (e *DataDirError) Error() string { return "data directory " + e.Dir + ": " + e.Why }

// Hint says where it could be instead.
func (e *DataDirError) Hint() string { return e.Do }

// dataDir makes the directory 0700 and refuses one that the agent could write
// to by name: history and records must not be within reach of who makes them.
func (s *Suite) dataDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("tools.Options.DataDir is empty")
	}
	if !filepath.IsAbs(dir) {
		return "", &DataDirError{dir, "the path is relative", "give an absolute one"}
	}
	dir = guardfs.Canonical(dir)
	if err := s.outOfReach(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", &DataDirError{dir, "it can't be made: " + err.Error(), "name a directory of your own with --data-dir or MOLTIS_DATA_DIR"}
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", fmt.Errorf("looking at the data directory: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return "", &DataDirError{dir, "others may enter it (" + info.Mode().String() + ")", "chmod 700 it, or choose another with --data-dir"}
		}
	}
	return dir, nil
}

// outOfReach refuses a data directory inside a tree that the configuration
// opens to the agent for writing. Without an allow list everything is open and
// only the protection stands, which is what it is for.
func (s *Suite) outOfReach(dir string) error {
	if !s.writes() {
		return nil
	}
	fs := s.cfg.Tools.FS
	inside := &DataDirError{dir, "it lies inside a tree that the agent may write", "put it elsewhere with --data-dir or MOLTIS_DATA_DIR, or deny it"}
	if len(fs.AllowPaths) > 0 {
		bare, err := policy.New(rules(fs))
		if err != nil {
			return err
		}
		for _, o := range []string{dir, filepath.Join(dir, "audit")} {
			if bare.Judge(guardfs.Object{Spelled: o, True: o}, guardfs.Create) == nil {
				return inside
			}
		}
		return nil
	}
	if fs.WorkspaceRoot == "" {
		return nil
	}
	root := guardfs.Canonical(fs.WorkspaceRoot)
	if rel, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(rel) {
		bare, err := policy.New(rules(fs))
		if err == nil && bare.Judge(guardfs.Object{Spelled: dir, True: dir}, guardfs.Create) != nil {
			return nil // denied there
		}
		return inside
	}
	return nil
}

// writes says whether any tool that changes files may be called.
func (s *Suite) writes() bool {
	for i := range All {
		if All[i].Effect != Reads && All[i].allowed(s.tools) {
			return true
		}
	}
	return false
}

// rules are the operator's.
func rules(fs config.FS) policy.Options {
	return policy.Options{Allow: fs.AllowPaths, Deny: fs.DenyPaths, Canonical: guardfs.Canonical}
}

// newPolicy adds what is ours to the operator's rules, and the looks that hold bind mounts and hard links to them.
func (s *Suite) newPolicy(dataDir string, protect []string) (err error) {
	if s.free, err = guardfs.New(guardfs.Options{Judge: policy.Free{}}); err != nil {
		return fmt.Errorf("opening the file system: %w", err)
	}
	o := rules(s.cfg.Tools.FS)
	o.Identify, o.Census = policy.Identify(s.free), policy.Census(s.free)
	o.Trouble = func(err error) { s.logger.Warn("files with several hard links are refused", "err", err) }
	o.Protected = append(o.Protected, policy.Protected{Path: dataDir, Why: "our own data"})
	for _, p := range protect {
		if p != "" {
			o.Protected = append(o.Protected, policy.Protected{Path: guardfs.Canonical(p), Why: "our own configuration or program"})
		}
	}
	if s.policy, err = policy.New(o); err != nil {
		return errors.Join(err, s.free.Close())
	}
	return nil
}
