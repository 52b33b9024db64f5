// Package buffer tells whether what an editor shows of a file is saved: an editor that is asked
// for a file answers its text, and does not say whether that is a buffer's or the disk's. So it
// compares the two and remembers both. It touches no file, and is safe for concurrent use.
//
// Line ends, a byte order mark and a last line break make no difference: editors have their own.
package buffer

import (
	"crypto/sha256"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// State is what an editor's text is beside the disk.
type State uint8

const (
	Saved   State = iota // the same
	Behind               // what the disk had before: the editor has not loaded the file again
	Own                  // a text of its own
	Apart                // likewise, and the disk has become another since too
	Damaged              // of bytes that it can't read: what is written back would destroy them
)

// most bounds the files that are remembered, and the earlier texts of each.
const most, mostTexts = 10_000, 16

// Seen is what was seen of the files of one editor. The zero value has seen nothing.
type Seen struct {
	mu    sync.Mutex
	files map[string]*file
}

type key [sha256.Size]byte

type file struct {
	agreed, now  pair // when all was well, or was told; and at the last look
	state        State
	disks, texts []key // what they had, the newest last
}

type pair struct{ disk, text key }

// Look compares what the editor shows of a path with what is on the disk: raw, and that as text,
// without a byte order mark. Nothing on the disk is no text.
func (s *Seen) Look(path, shown string, raw []byte, disk string) State {
	now := pair{keyOf(disk), keyOf(shown)}
	damaged, same := Damage(shown, raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[path]
	if f == nil {
		if s.files == nil || len(s.files) >= most {
			s.files = map[string]*file{}
		}
		f = &file{agreed: pair{disk: now.disk}}
		s.files[path] = f
	}
	switch {
	case now.disk == now.text, shown == string(raw), same:
		f.state = Saved
	case damaged:
		f.state = Damaged
	case f.agreed.disk == now.disk: // it is the text that moved
		f.state = Own
	case slices.Contains(f.texts, now.disk): // the editor has saved, and went on
		f.state = Own
	case slices.Contains(f.disks, now.text):
		f.state = Behind
	default:
		f.state = Apart
	}
	if f.state == Saved || f.state == Own {
		f.agreed = now
	}
	f.now = now
	f.disks, f.texts = remember(f.disks, now.disk), remember(f.texts, now.text)
	return f.state
}

// Same says that a text is what an editor shows of the text that is on the disk.
func Same(shown, disk string) bool { return plain(shown) == plain(disk) }

// Damage says that a text is of bytes that its editor can't read, so that to write it back would
// destroy them; same, that it is all of the file else.
func Damage(shown string, raw []byte) (damaged, same bool) {
	if !strings.ContainsRune(shown, utf8.RuneError) || utf8.Valid(raw) {
		return false, false
	}
	return true, lossy(shown) == lossy(string(raw))
}

// State is that of the last look at a path.
func (s *Seen) State(path string) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[path]; f != nil {
		return f.state
	}
	return Saved
}

// Told says that whoever works on a path knows what the last look has found.
func (s *Seen) Told(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[path]; f != nil && f.state == Apart {
		f.agreed, f.state = f.now, Own
	}
}

// Gave says that the editor was given a text of a path: to find that on the disk is no surprise.
func (s *Seen) Gave(path, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[path]; f != nil {
		f.texts = remember(f.texts, keyOf(text))
	}
}

// Changed says that the disk has another text of a path by now, and not from the editor: what that
// shows until it loads the file again is behind.
func (s *Seen) Changed(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[path]; f != nil {
		f.texts = nil
	}
}

// Paths are those with a text of their own at the last look, in order.
func (s *Seen) Paths() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, f := range s.files {
		if f.state == Own || f.state == Apart {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

func remember(keys []key, k key) []key {
	keys = append(slices.DeleteFunc(keys, func(o key) bool { return o == k }), k)
	return keys[max(0, len(keys)-mostTexts):]
}

var (
	ends        = strings.NewReplacer("\r\n", "\n", "\r", "\n")
	replacement = regexp.MustCompile("\uFFFD+")
)

func plain(text string) string {
	return strings.TrimSuffix(ends.Replace(strings.TrimPrefix(text, "\uFEFF")), "\n")
}

func keyOf(text string) key { return sha256.Sum256([]byte(plain(text))) }

// lossy is a text with one mark for all bytes in a row that are no character.
func lossy(text string) string {
	return replacement.ReplaceAllString(strings.ToValidUTF8(plain(text), "\uFFFD"), "\uFFFD")
}
