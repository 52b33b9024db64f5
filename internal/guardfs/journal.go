package guardfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// A Journal is the record of the names that operations give beside the agent's files as long as no row of the store has them. It has a
// file for each operation, called like its tag, with a line for each name. Only names on record in a journal or in the store are ours:
// any other is somebody's file, and stays. An object that could not be put back, and has a name ending in ".kept", is on record too. A
// nil Journal keeps no record.
//
// A journal survives kills. After a power cut the last lines may be missing; then a name may stay that nobody knows.
type Journal struct{ dir string }

// OpenJournal is the journal in a directory of its own, which SHOULD be in the data directory. It is made when it is needed.
func OpenJournal(dir string) *Journal { return &Journal{dir} }

const keptDir = "kept"

// Note adds a line to the record of the operation that has that tag.
func (j *Journal) Note(tag, line string) error {
	if j == nil {
		return nil
	}
	open := func() (*os.File, error) {
		return os.OpenFile(filepath.Join(j.dir, tag), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	}
	f, err := open()
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(j.dir, 0o700); err == nil {
			f, err = open()
		}
	}
	if err == nil {
		_, err = f.WriteString(line + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return &RecordError{err}
	}
	return nil
}

// A GivenName is the name Base, which was given in the directory of Beside. A Judge was asked about Beside.
type GivenName struct{ Beside, Base string }

// give is called before the name base is given beside the true path name.
func (j *Journal) give(name, base string) error {
	tag, ok := ParseTemp(base)
	if !ok {
		return nil // it is made in its own place
	}
	return j.Note(tag, strconv.Quote(name)+" "+base)
}

// Tags are the operations that are on record.
func (j *Journal) Tags() (tags []string) {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if isTag(e.Name()) {
			tags = append(tags, e.Name())
		}
	}
	return tags
}

// Names are the names that the operation gave while it was made ready, and notes the lines that Note added. A line that is cut is none.
func (j *Journal) Names(tag string) (names []GivenName, notes []string, err error) {
	text, err := os.ReadFile(filepath.Join(j.dir, tag))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	for line := range strings.Lines(string(text)) {
		line, whole := strings.CutSuffix(line, "\n")
		at := strings.LastIndexByte(line, ' ')
		if !whole {
			continue
		}
		if beside, err := strconv.Unquote(line[:max(at, 0)]); err == nil {
			names = append(names, GivenName{beside, line[at+1:]})
		} else {
			notes = append(notes, line)
		}
	}
	return names, notes, err
}

// Has says that the operation is on record.
func (j *Journal) Has(tag string) bool {
	if j == nil {
		return false
	}
	_, err := os.Lstat(filepath.Join(j.dir, tag))
	return err == nil
}

// Forget takes the operation from the record: none of its names is there any more, or its row has them.
func (j *Journal) Forget(tag string) {
	if j != nil {
		os.Remove(filepath.Join(j.dir, tag)) //nolint:errcheck // then the next start finds nothing to remove
	}
}

// A KeptFile is an object that could not be put back at Of, where another one is; it is at Path now.
type KeptFile struct {
	Path string `json:"path"`
	Of   string `json:"of"`
}

// keep puts a file on record that has a lasting name now. The answer names it in any case.
func (j *Journal) keep(k KeptFile) {
	if j == nil {
		return
	}
	dir := filepath.Join(j.dir, keptDir)
	if os.MkdirAll(dir, 0o700) != nil {
		return
	}
	text := strconv.Quote(k.Path) + "\n" + strconv.Quote(k.Of) + "\n"
	os.WriteFile(filepath.Join(dir, path.Base(k.Path)), []byte(text), 0o600) //nolint:errcheck // see above
}

// Kept lists the kept files on record; there says of each whether it still is where it was, and one that is not is forgotten.
func (j *Journal) Kept(there func(KeptFile) bool) (kept []KeptFile, err error) {
	dir := filepath.Join(j.dir, keptDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(name)
		if err != nil {
			return kept, err
		}
		var lines []string
		for line := range strings.Lines(string(text)) {
			if s, err := strconv.Unquote(strings.TrimSuffix(line, "\n")); err == nil {
				lines = append(lines, s)
			}
		}
		if len(lines) != 2 {
			continue // it is being written
		}
		if k := (KeptFile{lines[0], lines[1]}); there(k) {
			kept = append(kept, k)
		} else {
			os.Remove(name) //nolint:errcheck // then it is found to be gone again
		}
	}
	return kept, err
}
