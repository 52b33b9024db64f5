package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A purge that is cut off after its commit has forgotten what it purged, while files and other people's records still hold it. So all that no
// row names goes with the next purge, and the hashes that others are still to forget lie in a file until they have.
// unpurgedNew is that file while it is written: should that be cut off, what it said before is still there.
const (
	unpurgedName = "purging"
	unpurgedNew  = "purging-new"
)

func readUnpurged(dir string) (hashes []string, err error) {
	b, err := os.ReadFile(filepath.Join(dir, unpurgedName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && json.Unmarshal(b, &hashes) != nil {
		return nil, nil // damaged; the purge goes on with what it knows itself
	}
	return hashes, err
}

// noteUnpurged adds hashes to those that others are to forget. It runs inside the writing transaction that forgets them here, so that nobody else
// does meanwhile, and they are on the disk before its commit.
func noteUnpurged(dir string, hashes []string) error {
	have, err := readUnpurged(dir)
	if err != nil {
		return err
	}
	all := append(have, hashes...)
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == len(have) {
		return syncDir(dir) // whoever put it there may not have come to that
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, unpurgedNew)
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(temp, filepath.Join(dir, unpurgedName))
	}
	if err != nil {
		return errors.Join(err, removeFile(temp))
	}
	return syncDir(dir)
}

// removeLoose removes the files of contents that no row names, however young, and hashes that were being noted: what a purge or a save left that was cut off. Nobody commits
// meanwhile, and whoever is about to finds its file gone then and writes it again: see writePart.
func (d *DB) removeLoose(ctx context.Context) (n int, err error) {
	err = d.com.do(ctx, func(ctx context.Context, c *committer) error {
		var names []string
		err := loose(ctx, c, d.dir, func(name string, _ fs.DirEntry) error {
			if checkExtName(name) {
				names = append(names, name)
			}
			return nil
		})
		n = len(names)
		return errors.Join(err, d.removeNamed(names), removeFile(filepath.Join(d.dir, unpurgedNew)))
	})
	return n, err
}

// besides finds the directories in which repairs have left an older state of the store.
func besides(dir string) (out []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if ok, _ := filepath.Match("damaged-*", e.Name()); ok && e.IsDir() {
			out = append(out, filepath.Join(dir, e.Name()))
		}
		if ok, _ := filepath.Match("repair-*", e.Name()); ok && e.IsDir() {
			out = append(out, filepath.Join(dir, e.Name()))
		}
	}
	return out, nil
}
