package jettson

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"moltisfs/internal/args"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
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

// why says in the page's words why a call was refused. It names no path of the host's.
func (c *call) why(err error, r *engine.Refusal) string {
	c.path = fmt.Sprintf("%.1000s", c.path)
	if e, ok := errors.AsType[*args.Error](err); ok {
		if e.Hint != "" {
			return e.What + " — " + e.Hint + "."
		}
		return e.What
	}
	switch f := r.Facts.(type) {
	case *guardfs.NotRegularError:
		if f.Kind == "directory" && c.Tool == "jettson_files_read" {
			return c.path + " is a directory — use jettson_files_list for that."
		}
		return fmt.Sprintf("%s is a %s, not a file.", c.path, f.Kind)
	case *guardfs.TooLargeError:
		return fmt.Sprintf("%s is %d bytes, over the limit of %d.", c.path, f.Size, f.Max)
	}
	text := sentences[r.Code]
	switch inList := c.Tool == "jettson_files_list"; {
	case r.Rule() == policy.RuleChain, r.Cause == engine.ChainFailed:
		text = "the operator's policies do not allow this for {path}."
	case r.Class() != "":
		text = "{path} is closed: names like this are of the class " + r.Class() + lifts
	case r.Cause == engine.RunsCode:
		text = "{path} runs code later, or tells an agent what to do: a change of it takes an " +
			"approval of its own, and nothing was done. It is of the class exec" + lifts
	case r.Code == engine.CodeApprovalDenied && r.Facts != "":
		text = fmt.Sprintf("the change was not approved (%v), and nothing was done — ask before trying again.", r.Facts)
	case r.Cause == engine.NotADirectory && inList:
		text = "{path} is a file — use jettson_files_read for that."
	case r.Cause == engine.NotADirectory:
		text = "a file stands where a directory should be: {path}"
	case r.Code == engine.CodeNotFound && inList:
		text = "no such directory: {path}"
	case r.Cause == engine.DiskFull, r.Cause == engine.StoreDiskFull:
		text = "the disk is full, and nothing was done."
	case r.Cause == engine.HalfMade:
		text = "the change was made in part and could not be taken back — read what is there."
	case r.Cause == engine.Withheld:
		text = "the call has ended, and its answer is withheld: what it changed is changed — do not send it again, tell the user."
	case r.Cause == engine.Unavailable:
		text = "the sandbox where this has to run can't be reached — call again, or tell the user."
	case r.Cause == engine.NoAnswer:
		text = fmt.Sprintf("the file system does not answer; %s.", r.Facts)
	case r.Cause == engine.TooManyCalls:
		text = fmt.Sprintf("too many calls (%v), and nothing was done — wait, then call again.", r.Facts)
	case text == "":
		text = strings.ReplaceAll(r.Cause.Name, "_", " ") + " (" + string(r.Code) +
			"), and nothing was done: {path}"
	}
	return strings.ReplaceAll(text, "{path}", c.path)
}

const (
	unread      = "{path} has to be read as it is now before it is written — use jettson_files_read."
	lifts       = ", which the operator can lift for a path by unprotected in [tools.fs]."
	notApproved = "the change was not approved, and nothing was done — ask before trying again."
)

// sentences are the page's words, where a code says enough.
var sentences = map[engine.Code]string{
	engine.CodePathDenied:      errEscapes.What,
	engine.CodeNotFound:        "no such file: {path}",
	engine.CodeSymlinkRefused:  "{path} is a symbolic link — name the file that it leads to.",
	engine.CodeMustRead:        unread,
	engine.CodeModified:        unread,
	engine.CodeApprovalDenied:  notApproved,
	engine.CodeApprovalTimeout: notApproved,
	engine.CodeApprovalStale:   notApproved,
}
