// Package datadir makes and takes the data directory: where the audit log, checkpoints, locks and
// read histories are kept. It looks at that one directory and at nothing of the agent's.
package datadir

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"moltisfs/checkpoint/localdir"
	"moltisfs/internal/guardfs/flock"
)

// Error is a data directory that can't be ours.
type Error struct{ Dir, Why, Do string }

func (e *Error) Error() string { return "data directory " + e.Dir + ": " + e.Why }

// Hint says where it could be instead.
func (e *Error) Hint() string { return e.Do }

// marker is the file that a data directory of ours begins with.
const marker = "moltis-fs-data"

const markerText = "This directory belongs to moltis-fs: its audit log, checkpoints, locks and read histories.\n"

// ours reports whether dir is a data directory of ours: it has the marker, or the files of an older
// one.
func ours(dir string) bool {
	for _, name := range []string{marker, "audit/audit.jsonl", "checkpoints/checkpoints.db", "locks/bytes"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// parts names the files and directories that we keep in a data directory.
var parts = []string{marker, "approvals", "audit", "audit-changes", "cache", "checkpoints", "ledger", "locks", machineName, "runs", "sandboxes",
	"serve", "temporaries", "texts", "tokens"}

// Take makes the directory, or takes one that is empty or ours, and leaves its mode as it is. It
// refuses one that others may write to by its mode, or that another user owns any of, also for root:
// history and records must not be within reach of the agents that make them. The directory itself may be named by a link; no part of it may be one.
func Take(dir string, logger *slog.Logger) error {
	const another = "name an empty directory, or one that is not there yet, with --data-dir or MOLTIS_DATA_DIR"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &Error{dir, "it can't be made: " + err.Error(), another}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return &Error{dir, "it can't be read: " + err.Error(), another}
	}
	if len(entries) > 0 && !ours(dir) { // its maker begins with the marker
		return &Error{dir, "it holds " + strconv.Quote(entries[0].Name()) + " and is no data directory of moltis-fs", another}
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 && slices.Contains(parts, e.Name()) {
			return &Error{dir, "its " + e.Name() + " is a link", "move what it leads to back in; the data directory as a whole may be a link"}
		}
	}
	if what := foreign(dir, entries); what != "" {
		return &Error{dir, what, another + "; or chown and chmod it if you know what it holds"}
	}
	if err := othersMay(dir, logger); err != nil {
		return err
	}
	if len(entries) == 0 {
		if err := mark(dir); err != nil {
			return &Error{dir, "it can't be written: " + err.Error(), another}
		}
	}
	return nil
}

// foreign says what of a data directory another user may have written: itself, a part, or a file right
// in a part that is his, and a record that is open to all. "" is nothing. A file that is gone by the time of the
// look is passed by.
func foreign(dir string, entries []fs.DirEntry) string {
	if info, err := os.Stat(dir); err != nil || localdir.Own(info) != nil {
		return "it belongs to another user"
	}
	for _, e := range entries {
		if !slices.Contains(parts, e.Name()) {
			continue
		}
		below, _ := os.ReadDir(filepath.Join(dir, e.Name())) // nil of a file
		for _, f := range append(below, e) {
			name := path.Join(e.Name(), f.Name())
			if f == e {
				name = e.Name()
			}
			switch info, err := f.Info(); {
			case err != nil:
			case localdir.Own(info) != nil:
				return "its " + name + " belongs to another user"
			case (e.Name() == "audit" || e.Name() == "audit-changes") && info.Mode().Perm()&0o022 != 0 && runtime.GOOS != "windows":
				return "others may write to its " + name
			}
		}
	}
	return ""
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

// othersMay refuses a data directory in which others may write, and warns of one that they may look
// into. It leaves the mode to the owner, who knows why it is so.
func othersMay(dir string, logger *slog.Logger) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("looking at the data directory: %w", err)
	}
	switch mode := info.Mode(); {
	case runtime.GOOS == "windows": // there the bits say nothing
	case mode.Perm()&0o022 != 0:
		return &Error{dir, "others may write in it (" + mode.String() + ")",
			"chmod 700 it, or, on a volume that keeps no modes, choose another place with --data-dir"}
	case mode.Perm()&0o055 != 0:
		logger.Warn("others may look into the data directory; chmod 700 makes it yours alone", "dir", dir, "mode", mode.String())
	}
	return nil
}

// machineName is the file that says which machine of a fleet a data directory is.
const machineName = "machine"

// Machine gives the name of the machine that the data directory dir is, such as "web-1-X3QJ7T2M5K4A": the name that the host had when it was
// made, for people, and something random. Where there is none it is "", or with create it is made, once, whichever process comes first.
// All that tells machines apart goes by it: a directory that is copied is the same machine twice.
func Machine(dir string, create bool) (name string, err error) {
	flags := os.O_RDONLY
	if create {
		flags = os.O_RDWR | os.O_CREATE
	}
	f, err := os.OpenFile(filepath.Join(dir, machineName), flags|flock.NoFollow, 0o600)
	if errors.Is(err, fs.ErrNotExist) && !create {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, flock.Close(f)) }()
	if create {
		if err := flock.Lock(f); err != nil {
			return "", err
		}
	}
	var b [512]byte
	n, err := f.ReadAt(b[:], 0)
	if err != nil && err != io.EOF {
		return "", err
	}
	if line, _, whole := bytes.Cut(b[:n], []byte("\n")); whole && len(line) > 0 {
		return string(line), nil
	}
	if !create { // somebody is just making it
		return "", nil
	}
	host, _ := os.Hostname() //nolint:errcheck // then the random part has to do
	name = cmp.Or(strings.Join(strings.Fields(host), "-"), "host") + "-" + rand.Text()[:12]
	if _, err = f.WriteAt([]byte(name+"\n"), 0); err == nil {
		err = errors.Join(f.Sync(), localdir.Sync(dir)) // rows of the fleet go by it
	}
	return name, err
}
