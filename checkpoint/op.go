package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"moltisfs/checkpoint/blob"
)

const (
	maxChanges   = 1_000_000
	maxPath      = 64 << 10
	maxName      = 2500 // what an index of PostgreSQL takes, as maxSent
	maxSent      = 2500 // bytes of a path in a store that is sent to another one
	maxXattrs    = 1 << 20
	maxTag       = 64
	oldestYear   = 1678 // UnixNano works between these
	youngestYear = 2262
)

// check makes an Op whole: it fills in defaults, computes and compares hashes, and takes out
// content that must not or can't be stored; skips says what. It works on a copy of the changes.
func (op *Op) check(o *Options) (skips []Skip, err error) {
	if len(op.Changes) > maxChanges {
		return nil, &BadOpError{"", "too many changes in one operation"}
	}
	for _, s := range []string{op.Tool, op.Kind, op.Principal, op.Session, op.Turn, op.Label, op.Tag} {
		if why := badName(s); why != "" {
			return nil, &BadOpError{"", why}
		}
	}
	switch {
	case op.Run < 0:
		return nil, &BadOpError{"", "a run has a number above 0"}
	case op.Tag == "" && op.Steps == nil:
	case op.Tag == "" || len(op.Tag) > maxTag:
		return nil, &BadOpError{"", "steps need a tag of reasonable length"}
	case !announces(op.Kind):
		return nil, &BadOpError{"", "only what changes files can be open"}
	}
	if op.Steps == nil {
		op.Steps = []byte{} // not nil: that is NULL
	}
	if op.Time.IsZero() {
		op.Time = o.Now()
	}
	if y := op.Time.Year(); y <= oldestYear || y >= youngestYear {
		return nil, &BadOpError{"", "the time is out of range"}
	}
	for _, id := range []ID{op.UndoOf, op.RestoreOf} {
		if _, err := ParseID(string(id)); id != "" && err != nil {
			return nil, err
		}
	}
	op.Changes = append([]Change(nil), op.Changes...)
	seen := make(map[string]bool, len(op.Changes))
	for i := range op.Changes {
		c := &op.Changes[i]
		bad := func(why string) ([]Skip, error) { return nil, &BadOpError{c.Path, why} }
		switch {
		case c.Path == "" || !rooted(c.Path):
			return bad("path is not absolute")
		case len(c.Path) > maxPath || strings.IndexByte(c.Path, 0) >= 0:
			return bad("path is too long or has a NUL byte")
		case o.Ships && len(c.Path) > maxSent:
			return bad("path is too long for the store that it is to be sent to")
		case filepath.Clean(c.Path) != c.Path:
			return bad("path is not canonical")
		case seen[c.Path]:
			return bad("path appears twice; an operation has one state before and one after")
		}
		seen[c.Path] = true
		names := []string{c.Role, c.Skipped, c.Identity}
		if c.Trash != nil {
			names = append(names, c.Trash.Identity, string(c.Trash.Kind))
		}
		for _, s := range names {
			if why := badName(s); why != "" {
				return bad(why)
			}
		}
		skip, why := c.checkTail(o)
		if why != "" {
			return bad(why)
		}
		if c.Role == RoleAppended {
			skips = append(skips, skip...)
			continue
		}
		if why := c.Before.check(c.Content); why != "" {
			return bad("before: " + why)
		}
		if why := c.After.check(c.AfterContent); why != "" {
			return bad("after: " + why)
		}
		if c.Before.kind() == File && c.Content == nil && c.Skipped == "" && c.Before.Hash == "" {
			return bad("a file needs its content, its hash or a reason why there is none")
		}
		why = c.Skipped
		if c.Content != nil || c.AfterContent != nil {
			switch {
			case o.Exclude != nil && o.Exclude(c.Path):
				if c.Content != nil {
					why = SkipExcluded
				}
				c.Content, c.AfterContent = nil, nil
			case int64(len(c.Content)) > o.MaxFileBytes:
				why, c.Content = SkipTooLarge, nil
			}
			if int64(len(c.AfterContent)) > o.MaxFileBytes {
				c.AfterContent = nil
			}
		}
		c.Skipped = why
		if why != "" {
			skips = append(skips, Skip{c.Path, why, c.Before.Size})
		}
	}
	return skips, nil
}

// badName says why a text can't be kept as a name, "" if it can. A path is no such name, and may have any bytes.
func badName(s string) string {
	switch {
	case len(s) > maxName:
		return "a name is too long"
	case !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0:
		return "a name is no UTF-8, or has a NUL byte"
	}
	return ""
}

// rooted is filepath.IsAbs for the paths of either kind of system: a store may hold what an
// imported one recorded.
func rooted(p string) bool { return filepath.IsAbs(p) || p[0] == '/' }

func (s *State) check(content []byte) (why string) {
	if s.Kind = s.kind(); kindCode(s.Kind) < 0 {
		return "unknown kind " + string(s.Kind)
	}
	if s.Size < 0 {
		return "negative size"
	}
	n := 0
	for k, v := range s.Xattrs {
		n += len(k) + len(v)
	}
	if n > maxXattrs {
		return "extended attributes are too large"
	}
	if s.Kind != File && (content != nil || s.Hash != "") {
		return "only a file has content"
	}
	if s.Kind != Symlink && s.Target != "" {
		return "only a symlink has a target"
	}
	if s.Kind != File {
		if s.Kind == Absent {
			*s = State{Kind: Absent}
		}
		return ""
	}
	if s.Hash != "" {
		if _, err := blob.ParseHash(s.Hash); err != nil {
			return err.Error()
		}
		s.Hash = strings.ToLower(s.Hash)
	}
	if content != nil {
		// Not to trust the caller costs 13 µs for 10 KB. A wrong hash is refused now; later it would be a
		// loss.
		h := blob.Hash(sha256.Sum256(content)).String()
		if s.Hash != "" && s.Hash != h {
			return "the hash is not that of the content"
		}
		s.Hash, s.Size = h, int64(len(content))
	}
	return ""
}

// RoleAppended is the role of a file too large to be stored that was only appended to, or cut off
// again where that began: of its two states the larger one begins with the smaller one.
const RoleAppended = "appended"

// SkipAppended is why the content before is not stored: nothing of it goes, or only the tail, which
// is stored.
const SkipAppended = "appended"

// larger is the state of an appended file that has the tail.
func (c *Change) larger() *State {
	if c.Before.Size > c.After.Size {
		return &c.Before
	}
	return &c.After
}

// tailSize is the length of the tail.
func (c *Change) tailSize() int64 {
	if n := c.After.Size - c.Before.Size; n > 0 {
		return n
	}
	return c.Before.Size - c.After.Size
}

// checkTail looks at a change of RoleAppended, and puts its tail where a content has its place: the
// store treats it as one, but for the state that says of it that it is none.
func (c *Change) checkTail(o *Options) (skips []Skip, why string) {
	if c.Role != RoleAppended {
		if c.Tail != nil {
			return nil, "only an appended file has a tail"
		}
		c.Before.Tail, c.After.Tail = "", "" // of a state that was read from the store
		return nil, ""
	}
	s := c.larger()
	switch {
	case c.Before.kind() != File || c.After.kind() != File:
		return nil, "only a file is appended to"
	case c.Before.Hash != "" || c.After.Hash != "" || c.Content != nil || c.AfterContent != nil:
		return nil, "nobody read the whole of an appended file"
	case int64(len(c.Tail)) != c.tailSize() || c.Tail == nil:
		return nil, "the sizes do not differ by the tail"
	}
	c.Before.Tail, c.After.Tail = "", ""
	s.Tail = blob.Hash(sha256.Sum256(c.Tail)).String()
	s.Hash, c.Skipped = s.Tail, SkipAppended
	skip := ""
	switch {
	case o.Exclude != nil && o.Exclude(c.Path):
		skip = SkipExcluded
	case int64(len(c.Tail)) > o.MaxFileBytes:
		skip = SkipTooLarge
	case s == &c.Before:
		c.Content = c.Tail
	default:
		c.AfterContent = c.Tail
	}
	if skip != "" {
		c.Skipped, skips = skip, []Skip{{c.Path, skip, c.tailSize()}}
	}
	return skips, cmp.Or(c.Before.check(nil), c.After.check(nil))
}

func timeNs(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	if y := t.Year(); y <= oldestYear || y >= youngestYear {
		return nil
	}
	return t.UnixNano()
}

// encodeXattrs writes names and values, sorted by name: uvarint length, bytes, uvarint length,
// bytes.
func encodeXattrs(x map[string][]byte) []byte {
	out := []byte{} // not nil: that is NULL
	for _, n := range slices.Sorted(maps.Keys(x)) {
		out = binary.AppendUvarint(out, uint64(len(n)))
		out = append(out, n...)
		out = binary.AppendUvarint(out, uint64(len(x[n])))
		out = append(out, x[n]...)
	}
	return out
}

var errXattrs = errors.New("extended attributes are damaged")

func decodeXattrs(b []byte) (map[string][]byte, error) {
	if len(b) == 0 {
		return nil, nil
	}
	next := func() ([]byte, bool) {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return nil, false
		}
		v := b[k : k+int(n)]
		b = b[k+int(n):]
		return v, true
	}
	x := map[string][]byte{}
	for len(b) > 0 {
		name, ok := next()
		value, ok2 := next()
		if !ok || !ok2 {
			return nil, errXattrs
		}
		x[string(name)] = append([]byte{}, value...)
	}
	return x, nil
}

// The codes of these in the catalog are their places here.
var (
	kinds    = []Kind{Absent, File, Symlink, Dir}
	outcomes = []Outcome{Presumed, Committed, Aborted, Foreign}
)

func kindCode(k Kind) int       { return slices.Index(kinds, k) }
func outcomeCode(o Outcome) int { return slices.Index(outcomes, o) }

// byCode gives the entry with the code, or the first if none has it.
func byCode[T any](all []T, code int64) T {
	if code < 0 || code >= int64(len(all)) {
		code = 0
	}
	return all[code]
}

// announces says whether an operation of this kind is saved before a change, which it announces.
func announces(kind string) bool { return mutates(kind) && kind != KindImport }
