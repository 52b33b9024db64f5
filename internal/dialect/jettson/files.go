package jettson

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"unicode/utf8"

	"moltisfs/internal/args"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/refusal"
	"moltisfs/internal/text"
)

// The bounds of the page.
const (
	maxRead  = 1 << 20
	maxWrite = 5 << 20
)

// errEscapes is the page's refusal of a path that leaves the workspace.
var errEscapes = &args.Error{What: "path escapes /workspace or is empty."}

func refuse(format string, a ...any) error { return args.Errorf("", format, a...) }

func read(ctx context.Context, c *call) error {
	return c.e.Read(ctx, c.Call, c.at,
		func(ctx context.Context, s *engine.Source) (*engine.Sight, error) {
			part, sight, err := s.Bytes(ctx, 0, min(s.Info.Size, maxRead), maxRead)
			if err != nil {
				return nil, err
			}
			whole := part
			for cut := 1; cut < utf8.UTFMax && s.Info.Size > maxRead && !utf8.Valid(whole); cut++ {
				whole = part[:len(part)-cut] // the last character may be cut in two
			}
			if !utf8.Valid(whole) {
				return nil, refuse("%s is not UTF-8 text — use Jettson Shell for that.", c.path)
			}
			content := string(whole)
			c.answer = reply{Path: c.path, Content: &content, Size: new(s.Info.Size),
				Truncated: new(s.Info.Size > maxRead)}
			c.answer.Hidden, c.answer.Lines = text.HiddenLines(content)
			return sight, nil
		})
}

func write(ctx context.Context, c *call) error {
	if len(c.content) > maxWrite {
		return refuse("the content is %d bytes, over the limit of 5 MB — use Jettson Shell for that.",
			len(c.content))
	}
	if c.at == c.home {
		return refuse("%s is a directory — name a file in it.", c.path)
	}
	if err := c.homes.Make(ctx, c.Call, c.home); err != nil {
		return err
	}
	_, _, err := c.e.Write(ctx, c.Call, engine.WriteArgs{
		Path: c.at, Raw: []byte(c.content),
		Rules: engine.Rules{Parents: true, Meant: true},
	})
	c.answer = reply{Path: c.path, Written: new(len(c.content))}
	return err
}

// reply is every answer of the page, each with the fields that it has.
type reply struct {
	Error     string   `json:"error,omitempty"`
	Path      string   `json:"path,omitempty"`
	Content   *string  `json:"content,omitempty"`
	Size      *int64   `json:"size_bytes,omitempty"`
	Truncated *bool    `json:"truncated,omitempty"`
	Hidden    int      `json:"hidden_chars,omitempty"` // an extra of ours, as what follows
	Lines     []int    `json:"hidden_lines,omitempty"`
	Written   *int     `json:"bytes_written,omitempty"`
	Entries   *[]entry `json:"entries,omitempty"`
	Odd       []string `json:"odd_names,omitempty"`
	Deleted   bool     `json:"deleted,omitempty"`
}

// entry is one of a listing.
type entry struct {
	Name  string `json:"name"`
	Size  int64  `json:"size_bytes"`
	IsDir bool   `json:"is_dir"`
}

func list(ctx context.Context, c *call) error {
	found, err := c.e.List(ctx, c.Call, c.at)
	if errors.Is(err, fs.ErrNotExist) && c.at == c.home && c.homes.Lazy() {
		found, err = &engine.Listing{}, nil // it is made with its first file
	}
	if err != nil {
		return err
	}
	entries, names := []entry{}, []string(nil)
	for _, e := range found.Entries {
		one := entry{path.Base(e.Path), e.Size, e.Kind == guardfs.KindDir}
		if e.Kind == guardfs.KindSymlink { // what it leads to, if that is in the workspace
			if to, err := c.e.Stat(ctx, c.Call, e.Path, true); err == nil {
				one.Size, one.IsDir = to.Size, to.Kind == guardfs.KindDir
			}
		}
		if one.IsDir {
			one.Size = 0
		}
		entries, names = append(entries, one), append(names, one.Name)
	}
	c.answer = reply{Path: c.path, Entries: &entries,
		Odd: engine.OddNames("", slices.Values(names))}
	c.Trace.Paths = []string{c.at}
	return nil
}

func remove(ctx context.Context, c *call) error {
	what, err := c.e.Stat(ctx, c.Call, c.at, false)
	if err != nil {
		return err
	}
	if what.Kind == guardfs.KindDir {
		return refuse("%s is a directory — use Jettson Shell with rmdir for that.", c.path)
	}
	_, err = c.e.Delete(ctx, c.Call, c.at, engine.DeleteOptions{})
	c.answer = reply{Path: c.path, Deleted: true}
	return err
}

// why says why a call was refused: in the page's words where it has some. It names no path of the host's.
func (c *call) why(r *engine.Refusal) string {
	shown := fmt.Sprintf("%.1000s", c.path)
	inList := c.Tool == "jettson_files_list"
	file, _ := r.Facts.(*guardfs.NotRegularError)
	switch {
	case r.Code == engine.CodePathDenied && r.Class() == "" && r.Rule() != policy.RuleChain:
		return errEscapes.What
	case file != nil && file.Kind == "directory" && c.Tool == "jettson_files_read":
		return shown + " is a directory — use jettson_files_list for that."
	case r.Cause == engine.NotADirectory && inList:
		return shown + " is a file — use jettson_files_read for that."
	case r.Cause == engine.NotADirectory:
	case r.Code == engine.CodeNotFound && inList:
		return "no such directory: " + shown
	case r.Code == engine.CodeNotFound:
		return "no such file: " + shown
	}
	told := refusal.Tell(r, refusal.Voice{Path: shown, Private: true, Now: map[string]string{
		"plain": "yes", "by": " with jettson_files_read"}, Names: func(name string) string {
		return map[string]string{"Glob": "jettson_files_list"}[name]
	}})
	if told.Hint == "" {
		return told.Says
	}
	return told.Says + " — " + refusal.Clause(told.Hint) + "."
}
