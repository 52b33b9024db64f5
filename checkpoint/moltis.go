package checkpoint

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Imported says what ImportMoltis did.
type Imported struct {
	Imported int        `json:"imported"`
	Known    int        `json:"known"` // taken over before
	Skipped  []NotTaken `json:"skipped"`
}

// NotTaken is one directory that was passed over.
type NotTaken struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// moltisManifest is manifest.json of Moltis' store, one directory a checkpoint.
type moltisManifest struct {
	ID         string  `json:"id"`
	CreatedAt  int64   `json:"created_at"` // Unix seconds
	Reason     string  `json:"reason"`
	SourcePath string  `json:"source_path"`
	SourceKind *string `json:"source_kind"` // "file", "directory"
	Existed    bool    `json:"existed"`
	BackupPath *string `json:"backup_path"` // "snapshot/file", "snapshot/dir"
}

// moltisTurn is a line of its turns.jsonl.
type moltisTurn struct {
	RunID         string   `json:"run_id"`
	SessionKey    string   `json:"session_key"`
	CheckpointIDs []string `json:"checkpoint_ids"`
}

var moltisID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// importLabel marks what was taken over, so that it is not taken over twice.
const importLabel = "moltis:"

// ImportMoltis takes over the checkpoints of a Moltis folder, oldest first, as operations of KindImport of principal, in the
// session that turns.jsonl names or else "moltis". Moltis records only what was there before a change; what came of it is taken from the next
// checkpoint of the same path, and for the last one of a path it is not known: restoring that says "changed outside" and has to be
// forced. Nothing in dir is changed, nothing outside of dir is read, and links in it are not followed. A directory that is damaged is skipped
// with a reason.
func ImportMoltis(ctx context.Context, d *DB, dir, principal string) (Imported, error) {
	out := Imported{Skipped: []NotTaken{}}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return out, fmt.Errorf("importing: %w", err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return out, fmt.Errorf("importing: %w", err)
	}
	turns := moltisTurns(root)
	var all []*moltisPoint
	for _, e := range entries {
		if !moltisID.MatchString(e.Name()) {
			continue
		}
		p, err := readMoltis(root, e.Name(), d.o.MaxFileBytes)
		if err != nil {
			out.Skipped = append(out.Skipped, NotTaken{e.Name(), err.Error()})
			continue
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b *moltisPoint) int { return a.m.compare(&b.m) })
	if err := d.adoptImports(ctx, principal); err != nil {
		return out, err
	}
	next := map[string]State{} // what a path was before the checkpoint that comes after
	for i := len(all) - 1; i >= 0; i-- {
		for j := range all[i].changes {
			c := &all[i].changes[j]
			c.After = c.Before
			if s, ok := next[c.Path]; ok {
				c.After = s
			}
			next[c.Path] = c.Before
		}
	}
	for i, p := range all {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		label := importLabel + p.m.ID
		page, err := d.List(ctx, Filter{Label: label, AllSessions: true, Limit: 1})
		if err != nil {
			return out, err
		}
		if len(page.Checkpoints) > 0 {
			out.Known++
			continue
		}
		turn := turns[p.m.ID]
		session := turn.SessionKey
		if session == "" {
			session = "moltis"
		}
		if err := p.load(root); err != nil {
			out.Skipped = append(out.Skipped, NotTaken{p.m.ID, err.Error()})
			continue
		}
		_, err = d.Save(ctx, Op{
			Tool: p.m.Reason, Kind: KindImport, Principal: principal, Session: session, Turn: turn.RunID, Label: label,
			Time: time.Unix(p.m.CreatedAt, 0), Changes: p.changes,
		})
		all[i].changes = nil
		var bad *BadOpError
		if errors.As(err, &bad) {
			out.Skipped = append(out.Skipped, NotTaken{p.m.ID, err.Error()})
			continue
		}
		if err != nil {
			return out, err
		}
		out.Imported++
		d.progress("importing checkpoints", i+1, len(all))
	}
	return out, nil
}

// adoptImports gives principal what was taken over before imports belonged to anybody: sessions of nobody that hold nothing else. A
// session that principal has by the same name takes their checkpoints in.
func (d *DB) adoptImports(ctx context.Context, principal string) error {
	if principal == "" {
		return nil
	}
	err := d.com.do(ctx, func(ctx context.Context, c *committer) error {
		kind, err := c.word(ctx, KindImport)
		if err != nil {
			return err
		}
		ids, err := c.ids(ctx, `SELECT id FROM session WHERE principal='' AND EXISTS (SELECT 1 FROM op WHERE session=id AND kind=?1)
			AND NOT EXISTS (SELECT 1 FROM op WHERE session=id AND kind<>?1)`, kind)
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := c.bump(ctx); err != nil { // other processes remember sessions by their names
			return err
		}
		for _, id := range ids {
			var own int64
			err := c.row(ctx, "SELECT id FROM session WHERE principal=? AND name=(SELECT name FROM session WHERE id=?)", principal, id).Scan(&own)
			if errors.Is(err, sql.ErrNoRows) {
				err = c.exec(ctx, "UPDATE session SET principal=? WHERE id=?", principal, id)
			} else if err == nil {
				err = c.exec(ctx, "UPDATE op SET session=? WHERE session=?", own, id)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("importing: %w", err)
	}
	return nil
}

func (m *moltisManifest) compare(o *moltisManifest) int {
	if m.CreatedAt != o.CreatedAt {
		return int(min(max(m.CreatedAt-o.CreatedAt, -1), 1))
	}
	return strings.Compare(m.ID, o.ID)
}

// moltisPoint is a manifest and the states it stands for.
type moltisPoint struct {
	m       moltisManifest
	changes []Change
	files   []string // below root, beside changes; "" for what has no content
}

func readMoltis(root *os.Root, name string, maxFile int64) (*moltisPoint, error) {
	data, err := readBounded(root, name+"/manifest.json", 1<<20)
	if err != nil {
		return nil, err
	}
	p := &moltisPoint{}
	if err := json.Unmarshal(data, &p.m); err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	switch {
	case p.m.ID != name:
		return nil, errors.New("manifest.json is that of another checkpoint")
	case p.m.SourcePath == "" || !rooted(p.m.SourcePath) || filepath.Clean(p.m.SourcePath) != p.m.SourcePath:
		return nil, fmt.Errorf("source_path %q is not an absolute path", p.m.SourcePath)
	}
	if !p.m.Existed {
		p.add(Change{Path: p.m.SourcePath, Role: "target", Before: State{Kind: Absent}}, "")
		return p, nil
	}
	if p.m.BackupPath == nil {
		return nil, errors.New("there is no backup_path")
	}
	switch *p.m.BackupPath {
	case "snapshot/file":
		return p, p.file(root, name+"/snapshot/file", p.m.SourcePath, "target", maxFile)
	case "snapshot/dir":
		return p, p.tree(root, name+"/snapshot/dir", maxFile)
	}
	return nil, fmt.Errorf("backup_path is %q", *p.m.BackupPath)
}

func (p *moltisPoint) add(c Change, file string) {
	p.changes, p.files = append(p.changes, c), append(p.files, file)
}

func (p *moltisPoint) file(root *os.Root, name, path, role string, maxFile int64) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", name)
	}
	c := Change{Path: path, Role: role, Before: State{Kind: File, Mode: info.Mode().Perm(), Size: info.Size()}}
	if info.Size() > maxFile {
		c.Skipped = SkipTooLarge
		p.add(c, "")
		return nil
	}
	content, err := readBounded(root, name, maxFile)
	if err != nil {
		return err
	}
	c.Before.Hash, c.Before.Size = hash(sha256.Sum256(content)).String(), int64(len(content))
	p.add(c, name)
	return nil
}

func (p *moltisPoint) tree(root *os.Root, name string, maxFile int64) error {
	return fs.WalkDir(root.FS(), name, func(at string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path := filepath.Join(p.m.SourcePath, filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(at, name), "/")))
		switch {
		case len(p.changes) >= maxChanges:
			return errors.New("too many files")
		case e.IsDir():
			p.add(Change{Path: path, Role: "target", Before: State{Kind: Dir, Mode: 0o755}}, "") // directories' modes are not kept there
			return nil
		}
		return p.file(root, at, path, "target", maxFile)
	})
}

// load reads the contents, which were only hashed so far: one checkpoint's at a time are in memory.
func (p *moltisPoint) load(root *os.Root) error {
	for i, name := range p.files {
		if name == "" {
			continue
		}
		c := &p.changes[i]
		content, err := readBounded(root, name, c.Before.Size)
		if err != nil {
			return err
		}
		c.Content = content
	}
	return nil
}

// moltisTurns reads turns.jsonl as far as it can be read: it only groups.
func moltisTurns(root *os.Root) map[string]moltisTurn {
	out := map[string]moltisTurn{}
	data, err := readBounded(root, "turns.jsonl", 64<<20)
	if err != nil {
		return out
	}
	sc := bufio.NewScanner(bytes.NewReader(data))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var t moltisTurn
		if json.Unmarshal(sc.Bytes(), &t) != nil {
			continue
		}
		for _, id := range t.CheckpointIDs {
			out[id] = t
		}
	}
	return out
}

func readBounded(root *os.Root, name string, most int64) ([]byte, error) {
	info, err := root.Lstat(name) // a fifo would wait for ever, and a link leads elsewhere
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	if err == nil && data == nil {
		data = []byte{}
	}
	return data, err
}
