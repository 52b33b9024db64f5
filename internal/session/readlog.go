// Package session remembers what a session has seen. [ReadLog] has the files that its calls have read, [Buffers] the texts that its editor shows.
//
// A ReadLog remembers which object, which content and which lines were read. It answers the questions behind must_read_before_write and
// modified_since_read.
//
// An entry belongs to the identity of the object (device, inode, birth) and to its canonical path.
// Either finds it. So a renamed file keeps what was seen of it, and a file that an editor saved by
// replacing it counts as changed, not as never seen. The hash of the content decides, never a time
// stamp: a touch without a change is no change.
//
// Entries are kept per principal and session, in append-only JSON lines under our own data
// directory or in what the machines of a fleet share, one file for each session. They survive a restart, and the processes of one session
// share them. A torn last line (a crash while appending) is skipped: what was seen is forgotten,
// never invented. A file is open only while it is read or written, and entries are in memory for the sessions that were used last.
//
// Losing the log fails closed: a file counts as unread. All methods are safe for concurrent use.
package session

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"moltisfs/internal/state"
)

// Range is a run of whole lines, or of the things that Unit names. It is 1-based, both ends included.
type Range struct{ First, Last int }

// Seen is the knowledge of a session about one object.
type Seen struct {
	ID   string // identity of the object as guardfs prints it
	Path string // canonical path when it was seen
	Hash string `json:",omitempty"` // SHA-256 of the whole content in hex; "" where the file was too large to hash
	// Stamp stands in for Hash on files too large to hash: size, mtime and ctime.
	Stamp string `json:",omitempty"`
	// Unit names the things that Lines and Ranges count: "line" (also ""), "cell", "page", "byte" …
	Unit  string `json:",omitempty"`
	Lines int    // lines in the file then; below zero: not counted
	// Ranges are the lines shown, sorted and merged. Whole says that everything was shown, or was
	// written by the session itself.
	Ranges []Range `json:",omitempty"`
	Whole  bool    `json:",omitempty"`
	// Lossy says that Ranges count a text made from the file, which leaves things out. Then having
	// seen all of it is not Whole.
	Lossy bool `json:",omitempty"`
	// Sources are the cells of a notebook whose source was shown. Their outputs do not matter.
	Sources []Range `json:",omitempty"`
	// Encoding is the one in which the text was read or written last, with a question mark behind it if it was guessed. A log of
	// encodings has it, which is another one than that of reads.
	Encoding string `json:",omitempty"`
	When     time.Time
}

// FirstUnseen is the first line, or other unit, that was not shown.
func (s *Seen) FirstUnseen() int {
	next := 1
	for _, r := range s.Ranges {
		if r.First > next {
			break
		}
		next = r.Last + 1
	}
	return next
}

// Bounds: a session that reads for weeks must not grow without end, nor many sessions.
const (
	maxEntries   = 10_000              // objects per session; the oldest are forgotten
	maxInMemory  = 100_000             // objects of all sessions in memory, each session as 10 more
	rewriteAfter = 4 << 20             // bytes that a journal grows by until reading compacts it
	staleAfter   = 30 * 24 * time.Hour // journals untouched for so long go
)

// ReadLog is the set of histories under one directory.
type ReadLog struct {
	files    state.Files
	kept     contents
	sessions Recent[*journal]

	mu       sync.Mutex
	closed   bool
	swept    time.Time // when this process last looked whether to sweep
	sweeping sync.WaitGroup
}

// Open uses dir, which it makes with mode 0700 when missing. Once a day, in the background of the first call, journals go that were not
// touched for 30 days, and contents of a week ago.
func Open(dir string) (*ReadLog, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the read log: %w", err)
	}
	return OpenIn(state.Dir{Path: dir}, dir), nil
}

// OpenIn is Open with the journals in files. Contents are kept in dir all the same: they are of this machine.
func OpenIn(files state.Files, dir string) *ReadLog {
	return &ReadLog{files: files, kept: contents{dir: filepath.Join(dir, "content")}, sessions: Recent[*journal]{Most: maxInMemory}}
}

// Look finds what the session knows of the object: by identity first, then by canonical path. ok is
// false when the session never saw it.
func (l *ReadLog) Look(k Key, id, path string) (s Seen, ok bool, err error) {
	ses, done, err := l.session(k)
	if err != nil {
		return Seen{}, false, err
	}
	defer done()
	if e := ses.byID[id]; e != nil && id != "" {
		return *e, true, nil
	}
	if e := ses.byPath[path]; e != nil {
		return *e, true, nil
	}
	return Seen{}, false, nil
}

// Latest gives the objects that the session has seen, those that it saw last first, at most n.
func (l *ReadLog) Latest(k Key, n int) ([]Seen, error) {
	ses, done, err := l.session(k)
	if err != nil {
		return nil, err
	}
	defer done()
	out := make([]Seen, 0, len(ses.byPath))
	for _, s := range ses.byPath {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b Seen) int {
		return cmp.Or(b.When.Compare(a.When), cmp.Compare(a.Path, b.Path))
	})
	return out[:min(n, len(out))], nil
}

// Saw adds what was just shown. If the content is the same as before, the ranges grow. If it is
// another, they are replaced.
func (l *ReadLog) Saw(k Key, s Seen) error {
	ses, done, err := l.session(k)
	if err != nil {
		return err
	}
	defer done()
	old := ses.byPath[s.Path]
	same := old != nil && old.Hash == s.Hash && old.Stamp == s.Stamp
	if same && !s.Whole {
		s.Whole = old.Whole
		s.Sources = merge(append(s.Sources, old.Sources...))
		switch {
		case len(s.Ranges) == 0: // nothing new was shown: what was known stays
			s.Unit, s.Lines, s.Ranges, s.Lossy = old.Unit, old.Lines, old.Ranges, old.Lossy
		case cmp.Or(s.Unit, "line") == cmp.Or(old.Unit, "line"): // cells do not add up with lines
			s.Ranges = merge(append(s.Ranges, old.Ranges...))
			s.Lines = max(s.Lines, old.Lines)
		}
		if s.Whole == old.Whole && s.ID == old.ID && s.Encoding == old.Encoding && s.Lines == old.Lines && s.Lossy == old.Lossy &&
			slices.Equal(s.Ranges, old.Ranges) && slices.Equal(s.Sources, old.Sources) {
			return nil // nothing new: the journal stays as it is
		}
	} else if old != nil && s.Whole && old.Whole && old.Hash == s.Hash &&
		old.ID == s.ID && s.Hash != "" && s.Encoding == old.Encoding {
		return nil
	}
	s.Ranges, s.Sources = merge(s.Ranges), merge(s.Sources)
	if !s.Lossy && len(s.Ranges) == 1 && s.Lines > 0 {
		s.Whole = s.Whole || s.Ranges[0].First <= 1 && s.Ranges[0].Last >= s.Lines
	}
	if s.Whole {
		s.Ranges, s.Sources = nil, nil
	}
	return ses.append(s)
}

// Began says that the session has a journal. Asking makes none.
func (l *ReadLog) Began(k Key) bool {
	f, err := l.files.Open(journalOf(k))
	if err == nil {
		f.Close() //nolint:errcheck // nothing was written to it
	}
	return err == nil
}

// Encodings are the encodings that the session has named for the files that it has read, by path.
func (l *ReadLog) Encodings(k Key) (map[string]string, error) {
	ses, done, err := l.session(k)
	if err != nil {
		return nil, err
	}
	defer done()
	var named map[string]string
	for path, s := range ses.byPath {
		if s.Encoding != "" && s.Encoding[len(s.Encoding)-1] != '?' {
			if named == nil {
				named = map[string]string{}
			}
			named[path] = s.Encoding
		}
	}
	return named, nil
}

// Forget drops what the session knows of a path that is gone.
func (l *ReadLog) Forget(k Key, path string) error {
	ses, done, err := l.session(k)
	if err != nil {
		return err
	}
	defer done()
	if ses.byPath[path] == nil {
		return nil
	}
	return ses.append(Seen{Path: path})
}

// Keep remembers the content of a path that the session was shown, unless it knows that content already: then it was kept before, or written by
// the session itself.
func (l *ReadLog) Keep(k Key, path, hash string, content []byte) error {
	if s, _, err := l.Look(k, "", path); err != nil || s.Hash == hash {
		return err
	}
	return l.kept.keep(hash, content)
}

// Content finds the content with this hash that was kept. One that does not match its hash counts as missing.
func (l *ReadLog) Content(hash string) ([]byte, bool) { return l.kept.find(hash) }

// End frees what is held in memory for a session. Forever says that none of its name comes again: then its journal goes too.
func (l *ReadLog) End(k Key, forever bool) error {
	l.sessions.End(k)
	if forever {
		if err := l.files.Remove(journalOf(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("ending a read log: %w", err)
		}
	}
	return nil
}

// Close ends the sweep. Calls then fail with fs.ErrClosed. Closing again does nothing.
func (l *ReadLog) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.sweeping.Wait()
	return nil
}

// journalOf is the file of a session. Names come from callers, so they are hashed: no session name may become a path. The NUL
// keeps ("a","bc") apart from ("ab","c").
func journalOf(k Key) string {
	sum := sha256.Sum256([]byte(k.Principal + "\x00" + k.Session))
	return hex.EncodeToString(sum[:16]) + journalSuffix
}

const journalSuffix = ".jsonl"

// session gives the journal of a session as it is now, which is the caller's until done.
func (l *ReadLog) session(k Key) (ses *journal, done func(), err error) {
	if err := l.enter(); err != nil {
		return nil, nil, err
	}
	if ses = l.sessions.Get(k); ses == nil {
		ses = &journal{files: l.files, name: journalOf(k)}
	}
	ses.mu.Lock()
	done = func() {
		l.sessions.SetHeavy(k, ses, 10+len(ses.byPath))
		ses.mu.Unlock()
	}
	if err = ses.catchUp(); err != nil {
		done()
	}
	return ses, done, err
}

// enter lets a call in, and begins the sweep where there was none for a day, by any process.
func (l *ReadLog) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("opening the read log: %w", fs.ErrClosed)
	}
	if time.Since(l.swept) < day {
		return nil
	}
	l.swept = time.Now()
	if was, err := l.files.Look(stampName); err == nil && time.Since(was[0].At) >= day && l.files.Touch(stampName) == nil {
		l.sweeping.Go(l.sweep)
	}
	return nil
}

// stampName is the file whose time is that of the last sweep.
const stampName = "swept"

// sweep removes what is too old, until Close. Losing a journal costs a second reading, no more.
func (l *ReadLog) sweep() {
	l.kept.expire()
	names, err := l.files.List()
	if err != nil {
		return // tomorrow
	}
	for some := range slices.Chunk(names, 256) {
		is, err := l.files.Look(some...)
		if err != nil {
			return
		}
		for i, name := range some {
			l.mu.Lock()
			closed := l.closed
			l.mu.Unlock()
			if closed {
				return
			}
			if !is[i].At.IsZero() && time.Since(is[i].At) > staleAfter {
				_ = l.files.Remove(name)
			}
		}
	}
}

// journal is the file of one session, and its entries. Other processes append to the same file; catchUp reads
// their lines.
type journal struct {
	mu     sync.Mutex
	files  state.Files
	name   string
	mark   state.Mark // how far it has been read
	torn   []byte     // the last of that, which is no whole line yet
	live   int64      // bytes that the last compaction left
	byID   map[string]*Seen
	byPath map[string]*Seen
}

// catchUp reads the lines that are new, and compacts a journal that has grown too long.
func (s *journal) catchUp() error {
	if err := s.read(); err != nil {
		return err
	}
	if s.mark.Bytes > rewriteAfter+2*s.live && len(s.byPath) > 0 {
		return s.compact()
	}
	return nil
}

// read reads the lines that are new.
func (s *journal) read() error {
	tail, anew, err := s.files.Since(s.name, &s.mark)
	if err != nil {
		return fmt.Errorf("reading the read log: %w", err)
	}
	if anew { // another process compacted the journal, or it was removed: start over with what is there
		s.torn, s.live, s.byID, s.byPath = nil, 0, map[string]*Seen{}, map[string]*Seen{}
	}
	if len(tail) == 0 {
		return nil
	}
	tail = append(s.torn, tail...)
	for {
		line, rest, whole := bytes.Cut(tail, []byte("\n"))
		if !whole {
			break // a torn or unfinished line: its rest may come
		}
		tail = rest
		var e Seen
		if json.Unmarshal(line, &e) == nil && e.Path != "" {
			s.apply(e)
		}
	}
	s.torn = bytes.Clone(tail)
	return nil
}

func (s *journal) apply(e Seen) {
	if old := s.byPath[e.Path]; old != nil && s.byID[old.ID] == old {
		delete(s.byID, old.ID)
	}
	if e.ID == "" {
		delete(s.byPath, e.Path)
		return
	}
	if old := s.byID[e.ID]; old != nil && old.Path != e.Path && s.byPath[old.Path] == old {
		delete(s.byPath, old.Path) // the object was renamed
	}
	s.byPath[e.Path], s.byID[e.ID] = &e, &e
	if len(s.byPath) > maxEntries {
		all := slices.SortedFunc(maps.Values(s.byPath), func(a, b *Seen) int { return a.When.Compare(b.When) })
		for _, old := range all[:maxEntries/10] {
			delete(s.byPath, old.Path)
			delete(s.byID, old.ID)
		}
	}
}

// append writes one line. The maps change when catchUp reads the line back, so that they follow the order in the file.
func (s *journal) append(e Seen) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encoding an entry of the read log: %w", err)
	}
	// A torn line that a crash left would swallow this one. A newline first ends it; empty lines
	// are skipped.
	if len(s.torn) > 0 {
		line = append([]byte("\n"), line...)
	}
	if err := s.files.Append(s.name, append(line, '\n')); err != nil {
		return fmt.Errorf("writing the read log: %w", err)
	}
	return s.catchUp()
}

// compact rewrites the journal with one line for each object. Another process that appends to the
// old file at this moment loses those lines. Its session then counts these files as unread, which
// is safe.
func (s *journal) compact() error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, e := range s.byPath {
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("encoding the read log: %w", err)
		}
	}
	if err := s.files.Replace(s.name, b.Bytes()); err != nil {
		return fmt.Errorf("compacting the read log: %w", err)
	}
	if err := s.read(); err != nil {
		return err
	}
	s.live = s.mark.Bytes
	return nil
}

// PurgeHashes takes every entry of a content with one of these hashes out of the journals under
// dir. Those files then count as unread, or as changed since an earlier reading. Entries that a session
// records at the same moment may be lost too, which is safe.
func PurgeHashes(dir string, hashes []string) error {
	return PurgeHashesIn(state.Dir{Path: dir}, hashes)
}

// PurgeHashesIn is PurgeHashes for the journals in files.
func PurgeHashesIn(files state.Files, hashes []string) error {
	purge := map[string]bool{}
	for _, h := range hashes {
		purge[h] = true
	}
	all, err := files.List()
	for _, name := range all {
		if err == nil && strings.HasSuffix(name, journalSuffix) {
			err = purgeHashes(files, name, purge)
		}
	}
	if err != nil {
		return fmt.Errorf("purging the read log: %w", err)
	}
	return nil
}

func purgeHashes(files state.Files, name string, purge map[string]bool) error {
	old, _, err := files.Since(name, &state.Mark{})
	if err != nil {
		return err
	}
	var kept []byte
	for line := range bytes.Lines(old) {
		var e Seen
		// A torn line says nothing, and may hold a hash that must go: drop it too.
		if json.Unmarshal(line, &e) == nil && !purge[e.Hash] {
			kept = append(kept, line...)
		}
	}
	if len(kept) == len(old) {
		return nil
	}
	return files.Replace(name, kept)
}

// merge sorts the ranges and joins those that touch or overlap. It drops empty ones.
func merge(in []Range) []Range {
	in = slices.DeleteFunc(slices.Clone(in), func(r Range) bool { return r.Last < r.First })
	slices.SortFunc(in, func(a, b Range) int { return a.First - b.First })
	var out []Range
	for _, r := range in {
		if n := len(out); n > 0 && r.First <= out[n-1].Last+1 {
			out[n-1].Last = max(out[n-1].Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return out
}

// Cover says that one of the ranges has all from first to last.
func Cover(ranges []Range, first, last int) bool {
	return slices.ContainsFunc(ranges, func(r Range) bool { return r.First <= first && last <= r.Last })
}

// Shown counts the lines in the ranges of s: all of them when Whole.
func (s Seen) Shown() int {
	if s.Whole {
		return s.Lines
	}
	n := 0
	for _, r := range s.Ranges {
		n += r.Last - r.First + 1
	}
	return n
}
