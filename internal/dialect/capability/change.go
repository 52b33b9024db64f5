package capability

import (
	"context"
	"encoding/base64"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"moltisfs/checkpoint"
	"moltisfs/internal/args"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/engine/replace"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/text"
)

type writeArgs struct {
	Path     string  `json:"path"`
	Content  string  `json:"content"`
	Encoding *string `json:"encoding,omitempty" default:"utf-8"`
	Parents  bool    `json:"create_parents,omitempty" default:"false"`
	asBytes  bool    // Content was sent as base64
}

func (a *writeArgs) paths() []string { return []string{a.Path} }

// check takes base64 of text for the text, so that hooks see it.
func (a *writeArgs) check() error {
	if value(a.Encoding, "") != binary {
		return nil
	}
	raw, err := a.bytes()
	if err == nil && utf8.Valid(raw) {
		a.Content, a.Encoding, a.asBytes = string(raw), nil, true
	}
	return err
}

// bytes gives the bytes of the content, whatever the encoding of the file that they replace.
func (a *writeArgs) bytes() (raw []byte, err error) {
	encoding := value(a.Encoding, text.UTF8.Name)
	if encoding == binary {
		if raw, err = base64.StdEncoding.DecodeString(a.Content); err != nil {
			return nil, args.Errorf("send base64 with padding, or leave encoding out",
				"content is no base64: %v", err)
		}
		return append([]byte{}, raw...), nil
	}
	e, _, err := encodingOf(encoding, nil)
	if err != nil {
		return nil, err
	}
	if e == text.UTF8 {
		return []byte(a.Content), nil
	}
	if raw, bad := e.Encode(a.Content); e.Stateful() && bad < 0 {
		return raw, nil
	}
	raw, _, err = edit.Encode(a.Content, nil, encoding)
	return raw, err
}

// runWrite replaces all of a file. The text has no way to say that a strange content is meant.
func runWrite(ctx context.Context, c *call, a *writeArgs) (any, error) {
	raw, err := a.bytes()
	if err != nil {
		return nil, err
	}
	done, _, err := c.Write(ctx, engine.WriteArgs{Path: a.Path, Raw: raw, Binary: a.asBytes || value(a.Encoding, "") == binary,
		Rules: engine.Rules{Parents: a.Parents}})
	if err != nil {
		return nil, err
	}
	t := done.Targets[0]
	return struct {
		Path     string `json:"path"`
		Size     int64  `json:"size"`
		Checksum string `json:"checksum"`
	}{t.True, sizeOf(t), t.After.Hash}, nil
}

type appendArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (a *appendArgs) paths() []string { return []string{a.Path} }

func runAppend(ctx context.Context, c *call, a *appendArgs) (any, error) {
	var done *engine.Done
	var err error
	for range 3 { // the file may come and go meanwhile
		done, err = c.AppendText(ctx, a.Path, a.Content, engine.Rules{})
		if r := engine.Reason(err); err == nil || r == nil || r.Cause != engine.Absent {
			break
		}
		done, err = c.Create(ctx, a.Path, []byte(a.Content), engine.Rules{})
		if !engine.Conflicts.In(err) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	t := done.Targets[0]
	return struct {
		Path string `json:"path"`
		Size int64  `json:"new_size"`
	}{t.True, sizeOf(t)}, nil
}

// pairArgs are the arguments of copy and of move.
type pairArgs struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
	Overwrite   bool   `json:"overwrite,omitempty" default:"false"`
}

func (a *pairArgs) paths() []string { return []string{a.Source, a.Destination} }

func runCopy(ctx context.Context, c *call, a *pairArgs) (any, error) {
	var source string
	done, err := c.Copy(ctx, engine.CopyArgs{From: a.Source, To: a.Destination, Overwrite: a.Overwrite})
	if err != nil {
		return nil, err
	}
	if n := len(c.Trace.Paths); n > 0 { // the engine notes it last
		source = c.Trace.Paths[n-1]
	}
	t := done.Targets[0]
	return struct {
		Source      string `json:"source"`
		Destination string `json:"destination"`
		Size        int64  `json:"size"`
		Checksum    string `json:"checksum"`
	}{source, t.True, sizeOf(t), t.After.Hash}, nil
}

func runMove(ctx context.Context, c *call, a *pairArgs) (any, error) {
	done, err := c.Move(ctx, engine.MoveArgs{From: a.Source, To: a.Destination,
		Overwrite: a.Overwrite, NoDirs: true})
	if err != nil {
		return nil, err
	}
	mv := done.Moved[len(done.Moved)-1]
	var beside []string
	for _, t := range done.Trashed {
		if t.Path == mv.Path && t.Parked != "" { // it went to another volume
			beside = append(beside, "the source is in the trash of its volume until "+t.Expires.UTC().Format(time.RFC3339)+
				"; its room is free after that")
		}
	}
	return struct {
		Source      string   `json:"source"`
		Destination string   `json:"destination"`
		Size        int64    `json:"size"`
		Warnings    []string `json:"warnings,omitempty"`
	}{mv.Path, mv.To, mv.Size(), beside}, nil
}

// sizeOf gives the size of a target after its change.
func sizeOf(t *engine.Target) int64 {
	switch {
	case t.Published != nil:
		return t.Published.Info.Size
	case t.After.Kind == guardfs.KindSymlink:
		return int64(len(t.After.Target))
	case t.Unchanged():
		return t.Before.Info.Size
	}
	return int64(len(t.After.Content))
}

type deleteArgs struct {
	Path string `json:"path"`
}

func (a *deleteArgs) paths() []string { return []string{a.Path} }

func runDelete(ctx context.Context, c *call, a *deleteArgs) (any, error) {
	done, err := c.Delete(ctx, a.Path, engine.DeleteOptions{})
	if err != nil {
		return nil, err
	}
	out := struct {
		Deleted string `json:"deleted_path"`
		Trash   string `json:"trash_path"`
		Until   string `json:"recoverable_until"`
	}{Deleted: c.Trace.Paths[0]}
	for _, t := range done.Trashed { // none of an empty directory that can't be renamed
		out.Deleted, out.Trash, out.Until = t.Path, trashPath(t), t.Expires.UTC().Format(time.RFC3339)
	}
	return out, nil
}

// inTrash begins a path in the trash. It is no path of the file system, so that nobody touches the content. The entry of the trash says
// who may restore it: a path that was made up opens nothing.
const inTrash = "trash:"

func trashPath(t checkpoint.Trashed) string {
	return inTrash + string(t.ID) + "/" + path.Base(t.Path)
}

// trashID takes back trashPath. An id is taken as it is.
func trashID(p string) checkpoint.TrashID {
	p, whole := strings.CutPrefix(p, inTrash)
	if whole {
		p, _, _ = strings.Cut(p, "/")
	}
	return checkpoint.TrashID(p)
}

type restoreArgs struct {
	Path string `json:"path"`
}

func runRestore(ctx context.Context, c *call, a *restoreArgs) (any, error) {
	id := trashID(a.Path)
	if strings.HasPrefix(a.Path, "/") { // where it was: the newest that is from there
		page, err := c.Trash(ctx, checkpoint.TrashFilter{Path: path.Clean(a.Path), Limit: 1})
		if err == nil && len(page.Entries) == 0 {
			err = checkpoint.ErrNotFound
		}
		if err != nil {
			return nil, err
		}
		id = page.Entries[0].ID
	}
	done, err := c.Untrash(ctx, id, false)
	if r := engine.Reason(err); r != nil && r.Cause == engine.NotRegular { // what is at its place
		err = engine.Refuse(engine.Conflicts, r.Path, []engine.Blocked{{Path: r.Path, Why: engine.Occupied}})
	}
	if err != nil {
		return nil, err
	}
	t := done.Entry
	size := t.Size
	if t.Kind == checkpoint.Dir {
		size = 0
	}
	return struct {
		Restored string `json:"restored_path"`
		Trash    string `json:"trash_path"`
		Size     int64  `json:"size"`
	}{t.Path, trashPath(t), size}, nil
}

type editArgs struct {
	Path     string  `json:"path"`
	Glob     *string `json:"include_glob,omitempty"`
	Pattern  string  `json:"pattern"`
	Replace  string  `json:"replace"`
	Regex    bool    `json:"regex,omitempty" default:"false"`
	Expected *int    `json:"expected_replacements,omitempty" min:"1"`
	All      bool    `json:"replace_all,omitempty" default:"false"`
	DryRun   bool    `json:"dry_run,omitempty" default:"false"`
	Ignored  bool    `json:"include_all,omitempty" default:"false"`
}

func (a *editArgs) paths() []string { return []string{a.Path} }

func (a *editArgs) asked() engine.Asked { return engine.Asked{Pattern: a.Pattern} }

func (a *editArgs) dryRun() bool { return a.DryRun }

func (a *editArgs) check() error {
	switch {
	case a.Pattern == "":
		return args.Errorf("give the text or the regular expression to replace", "pattern is empty")
	case !a.Regex && a.Pattern == a.Replace:
		return args.Errorf("nothing would change", "pattern and replace are the same")
	case (a.Expected != nil) == a.All:
		return args.Errorf("count the matches by filesystem.search_content with total_only=true and "+
			"case_sensitive=true, or say replace_all=true", "give exactly one of expected_replacements and replace_all")
	}
	return nil
}

// perFile is a file that was changed, or would be.
type perFile struct {
	Path  string `json:"path"`
	Count int    `json:"replacements"`
}

// notEdited is a file that has matches and is left alone.
type notEdited struct {
	Path   string `json:"path"`
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// edited are the answer of edit.
type edited struct {
	Applied string         `json:"applied"`
	Total   int            `json:"total_replacements"`
	Changed int            `json:"files_changed"`
	Files   []perFile      `json:"per_file"`
	Skipped []notEdited    `json:"skipped"`
	Missed  map[string]int `json:"not_searched"`
	Diff    string         `json:"diff"`
}

func runEdit(ctx context.Context, c *call, a *editArgs) (any, error) {
	rule, err := replace.Compile(a.Pattern, a.Replace, a.Regex)
	if err != nil {
		return nil, err
	}
	in := engine.ReplaceArgs{Root: a.Path, Rule: rule, Expected: value(a.Expected, 0),
		Ignored: a.Ignored, DryRun: a.DryRun}
	if glob := value(a.Glob, ""); glob != "" {
		in.Glob = []string{glob}
	}
	r, err := c.Replace(ctx, in)
	if err != nil {
		return nil, err
	}
	out := &edited{Applied: "full", Total: r.Total, Changed: len(r.Files), Files: []perFile{},
		Skipped: skippedOf(r), Missed: map[string]int{}, Diff: clip(r.Done.Diff())}
	switch {
	case a.DryRun:
		out.Applied = "preview"
	case len(r.Skipped) > 0:
		out.Applied = "partial"
	}
	for _, f := range r.Files {
		out.Files = append(out.Files, perFile(f))
	}
	for _, n := range r.NotSearched.Notes() {
		out.Missed[n.Reason] = n.Count
	}
	return out, nil
}

// skippedOf are the files that could not be changed, each with the type of its error.
func skippedOf(r *engine.Replacing) []notEdited {
	out := []notEdited{}
	for _, no := range r.Skipped {
		kind := (&definition{}).kindOf(no.Cause)
		out = append(out, notEdited{no.Path, kind, tell(kind, no.Path, no)})
	}
	return slices.Clip(out)
}
