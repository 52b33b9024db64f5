package tools

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"moltisfs/config"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// DataDirError is a data directory that can't be ours.
type DataDirError struct{ Dir, Why, Do string }

func (e *DataDirError) Error() string { return "data directory " + e.Dir + ": " + e.Why }

// Hint says where it could be instead.
func (e *DataDirError) Hint() string { return e.Do }

// marker is the file that a data directory of ours begins with.
const marker = "moltis-fs-data"

const markerText = "This directory belongs to moltis-fs: its audit log, checkpoints, locks and read histories.\n"

// ours says whether dir is a data directory of ours: it has the marker, or what stands in one that is older than markers.
func ours(dir string) bool {
	for _, name := range []string{marker, "audit/audit.jsonl", "checkpoints/checkpoints.db", "locks/bytes"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// parts are what we keep in a data directory, and in its checkpoints.
var parts = map[string][]string{
	"":            {marker, "audit", "cache", "ledger", "locks", "temporaries"},
	"checkpoints": {"blobs", "checkpoints.db*", "damaged-*", "in-use", "journal*", "numbers*", "purging*", "writers"},
}

// DataIn lists what is ours in a data directory that others keep things in as well, such as Moltis in ~/.moltis: relative
// paths, sorted. nil: there is no data directory of ours.
func DataIn(dir string) (found []string) {
	if !ours(dir) {
		return nil
	}
	for below, patterns := range parts {
		entries, _ := os.ReadDir(filepath.Join(dir, below))
		for _, e := range entries {
			if slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, e.Name()); return ok }) {
				found = append(found, path.Join(below, e.Name()))
			}
		}
	}
	slices.Sort(found)
	return found
}

// dataDir makes the directory, or takes one that is empty or ours, and leaves its mode as it is. It refuses one that the
// agent could write to by name, or others by its mode: history and records must not be within reach of who makes them.
// The directory itself may be named by a link; no part of it may be one.
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
	const another = "name an empty directory, or one that is not there yet, with --data-dir or MOLTIS_DATA_DIR"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", &DataDirError{dir, "it can't be made: " + err.Error(), another}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", &DataDirError{dir, "it can't be read: " + err.Error(), another}
	}
	if len(entries) > 0 && !ours(dir) { // in this order: another process may be making it, and begins with the marker
		return "", &DataDirError{dir, "it holds " + strconv.Quote(entries[0].Name()) + " and is no data directory of moltis-fs", another}
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 && (parts[e.Name()] != nil || slices.Contains(parts[""], e.Name())) {
			return "", &DataDirError{dir, "its " + e.Name() + " is a link", "move what it leads to back in; the data directory as a whole may be a link"}
		}
	}
	if err := s.othersMay(dir); err != nil {
		return "", err
	}
	if len(entries) == 0 {
		if err := mark(dir); err != nil {
			return "", &DataDirError{dir, "it can't be written: " + err.Error(), another}
		}
	}
	return dir, nil
}

// mark makes dir ours. Another process may have done so just now.
func mark(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, marker), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(markerText)
	return errors.Join(err, f.Close())
}

// othersMay refuses a data directory in which others may write, and warns of one that they may look into. It is left to its
// owner to change that: what the mode of a directory is for, only he knows.
func (s *Suite) othersMay(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("looking at the data directory: %w", err)
	}
	switch mode := info.Mode(); {
	case runtime.GOOS == "windows": // there the bits say nothing
	case mode.Perm()&0o022 != 0:
		return &DataDirError{dir, "others may write in it (" + mode.String() + ")",
			"chmod 700 it, or, on a volume that keeps no modes, choose another place with --data-dir"}
	case mode.Perm()&0o055 != 0:
		s.logger.Warn("others may look into the data directory; chmod 700 makes it yours alone", "dir", dir, "mode", mode.String())
	}
	return nil
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
	o.Canonical, o.Identify, o.Census = s.free.Canonical, policy.Identify(s.free), policy.Census(s.free)
	o.Trouble = func(err error) { s.logger.Warn("files with several hard links are refused", "err", err) }
	for _, p := range append([]string{dataDir}, protect...) {
		if p == "" {
			continue
		}
		// Who can put another link in the place of one of the names decides what the next start reads there.
		for _, name := range guardfs.Names(p) {
			o.Protected = append(o.Protected, policy.Protected{Path: name, Why: "our own data, configuration or program"})
		}
	}
	if s.policy, err = policy.New(o); err != nil {
		return errors.Join(err, s.free.Close())
	}
	return nil
}
