package capability

import (
	"cmp"
	"context"
	"io/fs"
	"os/user"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

type listArgs struct {
	Path   string  `json:"path"`
	Hidden bool    `json:"include_hidden,omitempty" default:"false"`
	SortBy *string `json:"sort_by,omitempty" default:"name" enum:"name|size|modified|-name|-size|-modified"`
}

func (a *listArgs) paths() []string { return []string{a.Path} }

// An entry is one of a directory.
type entry struct {
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	Size     int64   `json:"size"`
	Modified *string `json:"modified"` // null where the system does not tell
}

func runList(ctx context.Context, c *call, a *listArgs) (any, error) {
	l, err := c.e.List(ctx, c.Call, a.Path)
	if err != nil {
		return nil, err
	}
	by := value(a.SortBy, "name")
	by, down := strings.CutPrefix(by, "-")
	in := l.Entries
	if !a.Hidden {
		in = slices.DeleteFunc(in, func(e engine.Entry) bool {
			return strings.HasPrefix(path.Base(e.Path), ".")
		})
	}
	slices.SortStableFunc(in, func(a, b engine.Entry) int { // by name already
		n := 0
		switch by {
		case "size":
			n = cmp.Compare(size(a.Info), size(b.Info))
		case "modified":
			n = a.ModTime.Compare(b.ModTime)
		default:
			n = cmp.Compare(a.Path, b.Path)
		}
		if down {
			return -n
		}
		return n
	})
	entries, names := make([]entry, len(in)), make([]string, len(in))
	for i, e := range in {
		names[i] = path.Base(e.Path)
		entries[i] = entry{names[i], kindName(e.Kind), size(e.Info), stamp(e.ModTime)}
	}
	return struct {
		Entries []entry  `json:"entries"`
		Total   int      `json:"total"`
		Path    string   `json:"path"`
		Odd     []string `json:"odd_names,omitempty"`
	}{entries, len(entries), l.Path, engine.OddNames("", slices.Values(names))}, nil
}

type statArgs struct {
	Path string `json:"path"`
}

func (a *statArgs) paths() []string { return []string{a.Path} }

// stat is what is told of a path.
type stat struct {
	Exists      bool    `json:"exists"`
	Type        *string `json:"type"`
	Size        *int64  `json:"size"`
	Modified    *string `json:"modified"`
	Created     *string `json:"created"`
	Permissions *string `json:"permissions"`
	Owner       *string `json:"owner"`
}

func runStat(ctx context.Context, c *call, a *statArgs) (any, error) {
	e, err := c.e.Stat(ctx, c.Call, a.Path, false)
	if err != nil {
		r := engine.Reason(err)
		if r != nil && (r.Cause == engine.Absent || r.Cause == engine.ParentMissing ||
			r.Cause == engine.NotADirectory) {
			return &stat{}, nil
		}
		return nil, err
	}
	kind, bytes, mode, owner := kindName(e.Kind), size(e.Info), permissions(e.Mode),
		c.owners.name(e.UID)
	s := &stat{Exists: true, Type: &kind, Size: &bytes, Modified: stamp(e.ModTime),
		Permissions: &mode, Owner: &owner}
	if e.ID.Birth != 0 {
		s.Created = stamp(time.Unix(0, e.ID.Birth))
	}
	return s, nil
}

// kindName is the text's word for a kind, and "other" for what it has none for.
func kindName(k guardfs.Kind) string {
	if k == guardfs.KindOther {
		return "other"
	}
	return k.String()
}

// size is that of what has content.
func size(i guardfs.Info) int64 {
	if i.Kind == guardfs.KindDir {
		return 0
	}
	return i.Size
}

// stamp is a time as RFC 3339 has it; nil for one that is not known.
func stamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format(time.RFC3339Nano)
	return &s
}

// permissions are those of a mode, as ls shows them.
func permissions(m fs.FileMode) string {
	out := []byte(m.Perm().String()[1:])
	for _, special := range []struct {
		bit   fs.FileMode
		at    int
		set   byte
		alone byte
	}{{fs.ModeSetuid, 2, 's', 'S'}, {fs.ModeSetgid, 5, 's', 'S'}, {fs.ModeSticky, 8, 't', 'T'}} {
		switch {
		case m&special.bit == 0:
		case out[special.at] == 'x':
			out[special.at] = special.set
		default:
			out[special.at] = special.alone
		}
	}
	return string(out)
}

// owners remembers the names of users, which the system looks up in a file each time.
type owners struct{ names sync.Map }

// name is that of a user, or the number where there is none.
func (o *owners) name(uid uint32) string {
	if name, ok := o.names.Load(uid); ok {
		return name.(string)
	}
	name := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(name); err == nil && u.Username != "" {
		name = u.Username
	}
	o.names.Store(uid, name)
	return name
}

// value is what an optional argument says.
func value[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}
