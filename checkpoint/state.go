package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moltisfs/checkpoint/blob"
)

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

// byCode is what has the code, the first where there is no such.
func byCode[T any](all []T, code int64) T {
	if code < 0 || code >= int64(len(all)) {
		code = 0
	}
	return all[code]
}

const (
	maxChanges   = 1_000_000
	maxPath      = 64 << 10
	maxName      = 4 << 10
	maxXattrs    = 1 << 20
	oldestYear   = 1678 // UnixNano works between these
	youngestYear = 2262
)

// check makes an Op whole: it fills in defaults, computes and compares hashes, and takes out
// content that must not or can't be stored; skips says what. It works on a copy of the changes.
// known, if not nil, knows contents that were hashed before.
func (op *Op) check(o *Options, known func(path string) *blob.Version) (skips []Skip, err error) {
	if len(op.Changes) > maxChanges {
		return nil, &BadOpError{"", "too many changes in one operation"}
	}
	for _, s := range []string{op.Tool, op.Kind, op.Principal, op.Session, op.Turn, op.Label} {
		if len(s) > maxName {
			return nil, &BadOpError{"", "a name is too long"}
		}
	}
	if err := op.checkOpen(); err != nil {
		return nil, err
	}
	if op.Time.IsZero() {
		op.Time = o.Now()
	}
	if y := op.Time.Year(); y <= oldestYear || y >= youngestYear {
		return nil, &BadOpError{"", "the time is out of range"}
	}
	for _, id := range []ID{op.UndoOf, op.RestoreOf} {
		if _, err := id.seq(); id != "" && err != nil {
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
		case filepath.Clean(c.Path) != c.Path:
			return bad("path is not canonical")
		case seen[c.Path]:
			return bad("path appears twice; an operation has one state before and one after")
		}
		seen[c.Path] = true
		skip, why := c.checkTail(o)
		if why != "" {
			return bad(why)
		}
		if c.Role == RoleAppended {
			skips = append(skips, skip...)
			continue
		}
		if v := lastSeen(known, c); v != nil {
			c.Before.Hash, c.Before.Size = v.Hash.String(), int64(len(v.Content))
		} else if why := c.Before.check(c.Content); why != "" {
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

// lastSeen finds the content before the change among those that were hashed when they were saved.
// As a rule it is there: the change before left it behind. To compare bytes is an order of
// magnitude cheaper than to hash them again, and says as much. A state with anything special takes
// the longer way.
func lastSeen(seen func(path string) *blob.Version, c *Change) *blob.Version {
	if seen == nil || c.Content == nil || c.Before.Kind != File || c.Before.Target != "" ||
		len(c.Before.Xattrs) > 0 || c.Before.Size < 0 {
		return nil
	}
	v := seen(c.Path)
	if v == nil || !bytes.Equal(v.Content, c.Content) ||
		c.Before.Hash != "" && c.Before.Hash != v.Hash.String() {
		return nil
	}
	return v
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

func timeNs(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	if y := t.Year(); y <= oldestYear || y >= youngestYear {
		return nil
	}
	return t.UnixNano()
}
