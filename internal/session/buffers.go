package session

import (
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"moltisfs/internal/lazy"
)

// BufferState compares an editor's text with the disk.
type BufferState uint8

const (
	Saved    BufferState = iota // the same
	Stale                       // a text that the disk had before: the editor has not loaded the file again
	Unsaved                     // a text of its own
	Diverged                    // likewise, and the disk has become another since too
	Damaged                     // of bytes that it can't read: to write them back would destroy them
)

// most bounds the files that are remembered, and the earlier texts of each.
const most, mostTexts = 10_000, 16

// Buffers remembers the texts that one editor has shown. An editor that is asked for a file answers its text, and does not say whether that is a
// buffer or the file on the disk. Buffers compares the two and remembers both. It touches no file, and is safe for concurrent use. Line ends, a
// byte order mark and a last line break make no difference: editors have their own. The zero value has seen nothing.
type Buffers struct {
	mu    sync.Mutex
	files map[string]*bufferFile
}

type textHash [sha256.Size]byte

type bufferFile struct {
	agreed, now  pair // when all was well, or was told; and at the last look
	state        BufferState
	disks, texts []textHash // the earlier ones, the newest last
}

type pair struct{ disk, text textHash }

// Look compares shown, the editor's text of a path, with the disk: raw are its bytes, disk is their text without a byte order mark.
// A file that is not there has no text.
func (s *Buffers) Look(path, shown string, raw []byte, disk string) BufferState {
	now := pair{keyOf(disk), keyOf(shown)}
	damaged, same := Damage(shown, raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[path]
	if f == nil {
		if s.files == nil || len(s.files) >= most {
			s.files = map[string]*bufferFile{}
		}
		f = &bufferFile{agreed: pair{disk: now.disk}}
		s.files[path] = f
	}
	switch {
	case now.disk == now.text, shown == string(raw), same:
		f.state = Saved
	case damaged:
		f.state = Damaged
	case f.agreed.disk == now.disk: // it is the text that moved
		f.state = Unsaved
	case slices.Contains(f.texts, now.disk): // the editor has saved, and went on
		f.state = Unsaved
	case slices.Contains(f.disks, now.text):
		f.state = Stale
	default:
		f.state = Diverged
	}
	if f.state == Saved || f.state == Unsaved {
		f.agreed = now
	}
	f.now = now
	f.disks, f.texts = remember(f.disks, now.disk), remember(f.texts, now.text)
	return f.state
}

// SameText reports whether an editor may show the text disk as shown.
func SameText(shown, disk string) bool { return plain(shown) == plain(disk) }

// Damage says that a text is of bytes that its editor can't read, so that to write it back would
// destroy them; same, that it is all of the file else.
func Damage(shown string, raw []byte) (damaged, same bool) {
	if !strings.ContainsRune(shown, utf8.RuneError) || utf8.Valid(raw) {
		return false, false
	}
	return true, lossy(shown) == lossy(string(raw))
}

// State gives the state of a path at the last look.
func (s *Buffers) State(path string) (state BufferState) {
	s.known(path, func(f *bufferFile) { state = f.state })
	return state
}

// known calls do with a path that was looked at, and not for others.
func (s *Buffers) known(path string, do func(f *bufferFile)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.files[path]; f != nil {
		do(f)
	}
}

// Told notes that the caller who works on a path knows the finding of the last look.
func (s *Buffers) Told(path string) {
	s.known(path, func(f *bufferFile) {
		if f.state == Diverged {
			f.agreed, f.state = f.now, Unsaved
		}
	})
}

// Gave says that the editor was given a text of a path: to find that on the disk is no surprise.
func (s *Buffers) Gave(path, text string) {
	s.known(path, func(f *bufferFile) { f.texts = remember(f.texts, keyOf(text)) })
}

// Changed says that the disk has another text of a path by now, and not from the editor, which shows an older one until
// it loads the file again.
func (s *Buffers) Changed(path string) {
	s.known(path, func(f *bufferFile) { f.texts = nil })
}

// Paths lists the paths with a text of their own at the last look, in order.
func (s *Buffers) Paths() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, f := range s.files {
		if f.state == Unsaved || f.state == Diverged {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

func remember(keys []textHash, k textHash) []textHash {
	keys = append(slices.DeleteFunc(keys, func(o textHash) bool { return o == k }), k)
	return keys[max(0, len(keys)-mostTexts):]
}

var (
	ends        = strings.NewReplacer("\r\n", "\n", "\r", "\n")
	replacement = lazy.Regexp("\uFFFD+")
)

func plain(text string) string {
	return strings.TrimSuffix(ends.Replace(strings.TrimPrefix(text, "\uFEFF")), "\n")
}

func keyOf(text string) textHash { return sha256.Sum256([]byte(plain(text))) }

// lossy is a text with one mark for all bytes in a row that are no character.
func lossy(text string) string {
	return replacement().ReplaceAllString(strings.ToValidUTF8(plain(text), "\uFFFD"), "\uFFFD")
}
