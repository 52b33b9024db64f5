package moltis

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"moltisfs/checkpoint"
	"moltisfs/internal/lazy"
)

// manifest is manifest.json of Moltis' store, one directory a checkpoint.
type manifest struct {
	ID         string  `json:"id"`
	CreatedAt  int64   `json:"created_at"` // Unix seconds
	Reason     string  `json:"reason"`
	SourcePath string  `json:"source_path"`
	SourceKind *string `json:"source_kind"` // "file", "directory"
	Existed    bool    `json:"existed"`
	BackupPath *string `json:"backup_path"` // "snapshot/file", "snapshot/dir"
}

// The bounds of created_at. Go's zero time is outside of them: elsewhere it means now.
var (
	oldestImport   = time.Date(1679, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	youngestImport = time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
)

const maxBytes = 256 << 20 // of one checkpoint: it is saved in one go, out of memory

var idForm = lazy.Regexp(`^[0-9a-f]{32}$`)

func (m *manifest) compare(o *manifest) int {
	return cmp.Or(cmp.Compare(m.CreatedAt, o.CreatedAt), strings.Compare(m.ID, o.ID))
}

// point is a manifest and the states it stands for.
type point struct {
	m       manifest
	changes []checkpoint.Change
	files   []string // below root, beside changes; "" for what has no content
	bytes   int64
}

func readPoint(root *os.Root, name string) (*point, error) {
	if err := plainDirs(root, name); err != nil {
		return nil, err
	}
	data, err := readBounded(root, name+"/manifest.json", 1<<20)
	if err != nil {
		return nil, err
	}
	p := &point{}
	if err := json.Unmarshal(data, &p.m); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	if p.m.ID != name {
		return nil, errors.New("manifest.json is that of another checkpoint")
	}
	if why := unusable(p.m.SourcePath); why != "" {
		return nil, fmt.Errorf("source_path %.100q %s", p.m.SourcePath, why)
	}
	if p.m.CreatedAt < oldestImport || p.m.CreatedAt >= youngestImport {
		return nil, fmt.Errorf("created_at %d is out of range", p.m.CreatedAt)
	}
	if !p.m.Existed {
		p.add(checkpoint.Change{Path: p.m.SourcePath, Role: "target", Before: checkpoint.State{Kind: checkpoint.Absent}}, "")
		return p, nil
	}
	if p.m.BackupPath == nil {
		return nil, errors.New("there is no backup_path")
	}
	switch *p.m.BackupPath {
	case "snapshot/file":
		if err := plainDirs(root, name, "snapshot"); err != nil {
			return nil, err
		}
		return p, p.file(root, name+"/snapshot/file", p.m.SourcePath)
	case "snapshot/dir":
		if err := plainDirs(root, name, "snapshot", "dir"); err != nil {
			return nil, err
		}
		return p, p.tree(root, name+"/snapshot/dir")
	}
	return nil, fmt.Errorf("backup_path is %.100q", *p.m.BackupPath)
}

// plainDirs checks that the names, one below the other, are directories and no links to some: those of other checkpoints, as a rule. Should one
// become a link later, it still leads nowhere out of root.
func plainDirs(root *os.Root, names ...string) error {
	for i := range names {
		at := strings.Join(names[:i+1], "/")
		info, err := root.Lstat(at)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", at)
		}
	}
	return nil
}

// unusable says why no tool would ever change path, so that a checkpoint of it could only be in the way of a restore of others. The
// rules are the rules of the guarded file system.
func unusable(path string) string {
	switch {
	case path == "" || !(filepath.IsAbs(path) || path[0] == '/') || filepath.Clean(path) != path:
		return "is not an absolute path"
	case filepath.Dir(path) == path:
		return "is the root directory"
	case len(path) > 4095:
		return "is longer than 4095 bytes"
	case strings.IndexByte(path, 0) >= 0:
		return "holds a NUL byte"
	case !utf8.ValidString(path):
		return "is not valid UTF-8"
	}
	for name := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if len(name) > 255 {
			return "has a component that is longer than 255 bytes"
		}
	}
	return ""
}

func (p *point) add(c checkpoint.Change, file string) {
	p.changes, p.files = append(p.changes, c), append(p.files, file)
}

// file takes in a file. Its content is only hashed: it is read when its checkpoint is saved.
func (p *point) file(root *os.Root, name, path string) error {
	f, info, err := openRegular(root, name)
	if err != nil {
		return err
	}
	defer f.Close()
	if p.bytes += info.Size(); p.bytes > maxBytes {
		return fmt.Errorf("it holds more than %d MiB", maxBytes>>20)
	}
	sum := sha256.New()
	size, err := io.Copy(sum, io.LimitReader(f, info.Size()))
	if err != nil {
		return err
	}
	p.add(checkpoint.Change{Path: path, Role: "target", Before: checkpoint.State{
		Kind: checkpoint.File, Mode: info.Mode().Perm(), Size: size, Hash: hex.EncodeToString(sum.Sum(nil)),
	}}, name)
	return nil
}

func (p *point) tree(root *os.Root, name string) error {
	return fs.WalkDir(root.FS(), name, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path := filepath.Join(p.m.SourcePath, filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(at, name), "/")))
		if why := unusable(path); why != "" {
			return fmt.Errorf("%.100q %s", path, why)
		}
		if e.IsDir() {
			p.add(checkpoint.Change{Path: path, Role: "target", Before: checkpoint.State{Kind: checkpoint.Dir, Mode: 0o755}}, "") // directories' modes are not kept there
			return nil
		}
		return p.file(root, at, path)
	})
}

// openRegular opens a file that is no link, and nothing that a reader would wait for ever at.
func openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := root.Open(name)
	return f, info, err
}

func readBounded(root *os.Root, name string, most int64) ([]byte, error) {
	f, info, err := openRegular(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := bytes.NewBuffer(make([]byte, 0, min(info.Size(), most)+bytes.MinRead)) // else it is copied as it grows, and there are two of it
	_, err = b.ReadFrom(io.LimitReader(f, most+1))
	data := b.Bytes()
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return data, err
}
