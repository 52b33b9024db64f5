package capability

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/user"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"moltisfs/internal/args"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/refusal"
	"moltisfs/internal/text"
)

// binary is the encoding of bytes that are no text. They come and go as base64.
const binary = "binary"

type readArgs struct {
	Path     string  `json:"path"`
	Encoding *string `json:"encoding,omitempty" default:"utf-8"`
	Offset   *int64  `json:"offset,omitempty" min:"0"`
	Limit    *int64  `json:"limit,omitempty" min:"0"`
}

func (a *readArgs) paths() []string { return []string{a.Path} }

func (a *readArgs) asked() (w engine.Asked) {
	if a.Offset != nil || a.Limit != nil {
		w.Window = fmt.Sprintf("offset %d limit %d bytes", value(a.Offset, 0), value(a.Limit, -1))
	}
	return w
}

// content is a file, or a part of it.
type content struct {
	Content   string  `json:"content"`
	Size      int64   `json:"size"`
	Modified  *string `json:"modified"`
	Checksum  *string `json:"checksum"` // nil: to make it takes more than a second
	Truncated bool    `json:"truncated"`
	Next      int64   `json:"next_offset,omitempty"`
	Hidden    int     `json:"hidden_chars,omitempty"`
	Lines     []int   `json:"hidden_lines,omitempty"`
}

func runRead(ctx context.Context, c *call, a *readArgs) (any, error) {
	var out *content
	err := c.Read(ctx, a.Path, func(ctx context.Context,
		s *engine.Source) (*engine.ReadRecord, error) {
		sum, err := s.QuickHash(ctx)
		if err != nil {
			return nil, err
		}
		out = &content{Size: s.Info.Size, Modified: stamp(s.Info.ModTime)}
		if sum != "" {
			out.Checksum = &sum
		}
		w, cut := window{off: value(a.Offset, 0), n: value(a.Limit, -1)}, false
		for ; ; cut = true {
			part, sight, err := w.read(ctx, s, value(a.Encoding, "utf-8"), c.e.Config().MaxReadBytes)
			if err != nil {
				return nil, err
			}
			out.Content, out.Truncated = part, w.end < s.Info.Size
			if out.Truncated && cut {
				out.Next = w.end
			}
			out.Hidden, out.Lines = text.HiddenLines(part)
			over, n := int64(c.page.Over(textOf(out))), w.end-w.off
			if over <= 0 || n <= utf8.UTFMax {
				return sight, nil
			}
			w.n = max(min(n-1, n*int64(c.page.Bytes)/(int64(c.page.Bytes)+over)), utf8.UTFMax)
		}
	})
	return out, err
}

// A window is n bytes of a file from off on, with n below zero all that follow.
type window struct{ off, n, end int64 }

// read gives a window as text in an encoding: the characters that begin in it, so that windows side by
// side leave nothing out.
func (w *window) read(ctx context.Context, s *engine.Source, encoding string,
	most int64) (string, *engine.ReadRecord, error) {
	if encoding == binary {
		raw, sight, err := s.Bytes(ctx, w.off, w.n, most)
		w.end = w.off + int64(len(raw))
		return base64.StdEncoding.EncodeToString(raw), sight, err
	}
	head := make([]byte, 4) // a mark speaks for all of the file
	n, err := s.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", nil, err
	}
	e, mark, err := encodingOf(encoding, head[:n])
	if err != nil {
		return "", nil, err
	}
	size := s.Info.Size
	off, end := min(max(w.off, mark), size), size
	if w.n >= 0 && w.n < size-w.off {
		end = max(w.off+w.n, off)
	}
	if left := end - off; left > most {
		return "", nil, &guardfs.TooLargeError{Path: s.Path, Size: left, Max: most}
	}
	var raw []byte
	var sight *engine.ReadRecord
	from := off
	for back := int64(4 << 10); ; back *= 16 { // until a character begins for certain
		if back > most+16*4<<10 {
			return "", nil, &guardfs.TooLargeError{Path: s.Path, Size: off, Max: most}
		}
		from = max((off-back)&^3, mark)
		if raw, sight, err = s.Bytes(ctx, from, end-from+utf8.UTFMax, most+back+8); err != nil {
			return "", nil, err
		}
		if from == mark || e.Certain(raw[:min(off-from, int64(len(raw)))]) >= 0 {
			break
		}
	}
	if from > mark {
		cut := e.Certain(raw[:min(off-from, int64(len(raw)))])
		from, raw = from+int64(cut), raw[cut:]
	}
	part, first, last, ok := e.Part(raw, int(off-from), int(end-from), from+int64(len(raw)) == size)
	if !ok {
		return "", nil, engine.Refuse(refusal.Undecodable, s.Path, refusal.EncodingFacts{Name: e.Name})
	}
	if w.end, s.Given = from+int64(last), int64(last-first); w.off > size {
		w.end = w.off
	}
	if sight != nil {
		sight.Whole = from+int64(first) == mark && w.end == size
	}
	return string(part), sight, nil
}

// encodingOf is the encoding of a name for a file that begins with head, and the length of its mark.
// In UTF-8 that is a character.
func encodingOf(name string, head []byte) (*text.Encoding, int64, error) {
	if name == "" {
		name = text.UTF8.Name
	}
	e, mark := text.Of(name, head)
	switch {
	case e.Encoding == nil:
		names, low := append(text.Names(), binary), strings.ToLower(name[:min(len(name), 64)])
		slices.SortStableFunc(names, func(a, b string) int {
			return args.Distance(low, a) - args.Distance(low, b)
		})
		return nil, 0, engine.Refuse(refusal.NoEncoding, "", refusal.EncodingFacts{Name: name, Near: strings.Join(names[:3], ", ")})
	case e.Encoding == text.UTF8:
		mark = 0
	}
	return e.Encoding, int64(mark), nil
}

type listArgs struct {
	Path   string  `json:"path"`
	Hidden bool    `json:"include_hidden,omitempty" default:"false"`
	SortBy *string `json:"sort_by,omitempty" default:"name" enum:"name|size|modified|-name|-size|-modified"`
	Limit  *int    `json:"limit,omitempty" min:"1" max:"10000" default:"1000"`
	Offset *int    `json:"offset,omitempty" min:"0" default:"0"`
}

func (a *listArgs) asked() (w engine.Asked) {
	if a.Offset != nil || a.Limit != nil {
		w.Window = fmt.Sprintf("offset %d limit %d entries", value(a.Offset, 0), value(a.Limit, 1000))
	}
	return w
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
	l, err := c.List(ctx, a.Path)
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
	in = in[min(value(a.Offset, 0), len(in)):]
	n := min(value(a.Limit, 1000), len(in))
	out := &listing{Entries: make([]entry, n), Path: l.Path, LeftOut: len(in) - n, offset: value(a.Offset, 0)}
	names := make([]string, n)
	for i, e := range in[:n] {
		names[i] = path.Base(e.Path)
		out.Entries[i] = entry{names[i], kindName(e.Kind), size(e.Info), stamp(e.ModTime)}
	}
	out.Odd = engine.OddNames("", slices.Values(names))
	return out.first(n), nil
}

// listing is the answer of list.
type listing struct {
	Entries []entry  `json:"entries"`
	Total   int      `json:"total"`
	Path    string   `json:"path"`
	Odd     []string `json:"odd_names,omitempty"`
	LeftOut int      `json:"left_out,omitempty"`
	Next    int      `json:"next_offset,omitempty"`
	offset  int      // of the first
}

func (l *listing) rows() int { return len(l.Entries) }

func (l *listing) first(n int) any {
	out := *l
	out.Entries, out.Total, out.LeftOut, out.Next = l.Entries[:n], n, l.LeftOut+len(l.Entries)-n, 0
	if out.LeftOut > 0 {
		out.Next = l.offset + n
	}
	return &out
}

type statArgs struct {
	Path string `json:"path"`
}

func (a *statArgs) paths() []string { return []string{a.Path} }

// stat is the answer of filesystem.stat.
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
	e, err := c.Stat(ctx, a.Path, false)
	if err != nil {
		r := engine.Reason(err)
		if r != nil && (r.Cause == engine.Absent || r.Cause == engine.ParentMissing ||
			r.Cause == engine.NotADirectory) {
			return &stat{}, nil
		}
		return nil, err
	}
	s := &stat{Exists: true, Type: new(kindName(e.Kind)), Size: new(size(e.Info)), Modified: stamp(e.ModTime),
		Permissions: new(permissions(e.Mode)), Owner: new(owner(e.UID))}
	if e.ID.Birth != 0 {
		s.Created = stamp(time.Unix(0, e.ID.Birth))
	}
	return s, nil
}

// kindName is the text's word for a kind: "other" where it has none.
func kindName(k guardfs.Kind) string {
	if k == guardfs.KindOther {
		return "other"
	}
	return k.String()
}

// size gives the size of a thing that has content.
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
	return new(t.UTC().Format(time.RFC3339Nano))
}

// permissions gives the permissions of a mode, as ls shows them.
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

// owner gives the name of a user, or the number if there is none.
func owner(uid uint32) string {
	name := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(name); err == nil && u.Username != "" {
		return u.Username
	}
	return name
}

// value gives an optional argument, or otherwise.
func value[T any](v *T, otherwise T) T {
	if v == nil {
		return otherwise
	}
	return *v
}
