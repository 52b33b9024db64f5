// Package audit records calls and their outcomes: one JSON object per line, in files that
// are only ever appended to.
//
// A Log is two chains of one kind. DIR-changes/audit.jsonl has the records of changes, of what
// operators do and of starts; DIR/audit.jsonl has all others. So records of changes stay, however
// many reads come. Read gives both, in the order of time.
//
// Each record has a number, and the hash of the record before: given the records 1 to 3, record 4 ends
// with "seq":4,"prev":"…", the SHA-256 of the line of record 3 without its line end. So Verify finds
// records that were changed or are missing. DIR/audit.last holds number and hash of the last one. See
// docs/internals/decisions/0042-a-log-that-proves-itself.md.
//
// Many processes may have a Log open at once: the one that writes has the lock of audit.last. When a
// file has grown to its limit, its last record says so, and it is moved to audit.jsonl.1. The former .1
// becomes .2 and so on, and the last one goes. Each record goes to the file that has the name then, whatever was
// moved or removed before. After a crash or on a full disk a line may be broken. The next record
// begins a line of its own.
//
// A record survives the death of the process. A power cut may take the last ones: nothing is
// synced. Records hold names and hashes, never the content of a file. Directories have mode 0700,
// files 0600.
//
// A Log is safe for concurrent use. On Windows only one process at a time may have it open.
package audit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"moltisfs/internal/guardfs/flock"
)

// Record is one line, without the members that bind it to the others. Zero fields are left out, except for Time and
// Phase; a text is cut at 4 KiB.
type Record struct {
	Time  time.Time `json:"time"`
	Phase string    `json:"phase"`          // "intent", before anything is changed, or "outcome"
	Call  string    `json:"call,omitempty"` // joins the two

	Dialect string `json:"dialect,omitempty"` // of the tool; "operator" has deeds of the operator for tools
	Tool    string `json:"tool,omitempty"`

	Principal string `json:"principal,omitempty"`
	Session   string `json:"session,omitempty"`
	Turn      string `json:"turn,omitempty"`

	PID    int    `json:"pid,omitempty"`    // the process that writes; filled in by Append, as User is
	User   string `json:"user,omitempty"`   // of the system, under whom it runs
	Where  string `json:"where,omitempty"`  // the call ran: "host" or the name of a sandbox; "": there are none
	Client string `json:"client,omitempty"` // name and version of the program that called, as it says itself
	By     string `json:"by,omitempty"`     // "agent" or "person"

	Paths      []string      `json:"paths,omitempty"`      // real names
	Injected   []string      `json:"injected,omitempty"`   // arguments that a gateway put beside those of the model
	Pattern    string        `json:"pattern,omitempty"`    // what a search looked for; the program that was to run
	Window     string        `json:"window,omitempty"`     // which part was asked for
	Outcome    string        `json:"outcome,omitempty"`    // "ok", or the kind of the refusal
	DryRun     bool          `json:"dry_run,omitempty"`    // the call only asked what would change
	Decision   string        `json:"decision,omitempty"`   // "allowed" or "denied"
	Rule       string        `json:"rule,omitempty"`       // what denied: "deny_paths", "secret", …
	RuleText   string        `json:"rule_text,omitempty"`  // the pattern of deny_paths that denied
	RuleAt     string        `json:"rule_at,omitempty"`    // where that stands, as /etc/moltis.toml:12
	Approval   string        `json:"approval,omitempty"`   // "approved by terminal", "denied by ann: not that file", "timed_out", …
	Digest     string        `json:"digest,omitempty"`     // of the plan that was approved
	Checkpoint string        `json:"checkpoint,omitempty"` // its id
	Before     string        `json:"before,omitempty"`     // SHA-256 of the content, in hex
	After      string        `json:"after,omitempty"`
	Bytes      int64         `json:"bytes,omitempty"`       // of content written, or given in the answer
	Duration   time.Duration `json:"duration_us,omitempty"` // written in microseconds
	Hooks      []string      `json:"hooks,omitempty"`       // what hooks changed, blocked or failed to do
	Alert      string        `json:"alert,omitempty"`       // that the caller sent to the operator
	Version    string        `json:"version,omitempty"`     // of the program that starts
	Policy     string        `json:"policy,omitempty"`      // SHA-256 of the configuration that holds from here on, in hex
	Error      string        `json:"error,omitempty"`
}

const (
	// FileName is the current file in a directory. Older ones have .1, .2 … at the end.
	FileName = "audit.jsonl"
	// lastName is where the end of the chain is kept. A writer holds its lock.
	lastName = "audit.last"
)

// ChangesDir is the directory, beside dir, of the records of changes.
func ChangesDir(dir string) string { return filepath.Clean(dir) + "-changes" }

// Options says how a log is kept. The zero value is useful.
type Options struct {
	// MaxBytes is the size of one file, 64 MiB when 0; a record may go beyond. Below 0 nothing is
	// moved away: something else does that, as logrotate.
	MaxBytes int64
	Keep     int // older files, 4 when 0
}

// Log appends records.
type Log struct{ calls, changes *chain }

// Open opens the log in dir and in ChangesDir(dir), which it makes if missing.
func (o Options) Open(dir string) (*Log, error) {
	o.MaxBytes, o.Keep = cmp.Or(o.MaxBytes, 64<<20), cmp.Or(o.Keep, 4)
	l := &Log{newChain(dir, o), newChain(ChangesDir(dir), o)}
	for _, c := range []*chain{l.calls, l.changes} {
		err := privateDir(filepath.Dir(c.path))
		if err == nil {
			err = c.open()
		}
		if err != nil {
			_ = l.Close() // nothing was written
			return nil, fmt.Errorf("opening audit log: %w", err)
		}
	}
	return l, nil
}

// Append writes one record. After an error the record is not in the log, or not whole. The caller
// must treat the event as not recorded.
func (l *Log) Append(r Record) error { return l.calls.append(r) }

// AppendChange is Append for a record of a change, of an operator's deed or of a start.
func (l *Log) AppendChange(r Record) error { return l.changes.append(r) }

// The chains of a log, by name.
const (
	Calls   = "calls"
	Changes = "changes"
)

// A Head is the last record of a chain.
type Head struct {
	Chain string // Calls or Changes
	Seen
}

// Heads gives the last record of each chain, whichever process wrote it. The records up to there are on stable storage then.
func (l *Log) Heads() ([]Head, error) {
	calls, err := l.calls.head()
	changes, err2 := l.changes.head()
	return []Head{{Calls, calls}, {Changes, changes}}, errors.Join(err, err2)
}

// Close closes the files. Append fails afterwards, and closing again does nothing.
func (l *Log) Close() error { return errors.Join(l.calls.close(), l.changes.close()) }

// privateDir makes dir. It takes an existing directory as it is, unless anybody may write in it.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "open", Path: dir, Err: errors.New("not a directory")}
	}
	if info.Mode().Perm()&0o002 != 0 && runtime.GOOS != "windows" {
		why := errors.New("anybody may write in it (" + info.Mode().String() + ")")
		return &fs.PathError{Op: "open", Path: dir, Err: why}
	}
	return nil
}

// A chain is the files of one directory: the current one, those that rotation moved away, and
// audit.last.
type chain struct {
	o    Options
	path string // of the current file
	pid  int
	user string

	mu         sync.Mutex
	file, last *os.File
	at         end   // of the chain, when size was that of the file
	size       int64 // below 0: not known
	closed     bool
	step       func()                             // for tests: between any two changes of files
	named      func(f *os.File, path string) bool // isNamed
}

// An end is the last record of a chain: its number, 0 where there is none, its hash, and whether it is the
// last of its file.
type end struct {
	seq  uint64
	hash digest
	full bool
}

type digest = [sha256.Size]byte

// endLen is the length of audit.last: number, hash and a line end.
const endLen = 20 + 1 + 2*sha256.Size + 1

func (e *end) String() string { return fmt.Sprintf("%020d %x\n", e.seq, e.hash) }

// load reads audit.last; false where that holds no end.
func load(last *os.File) (e end, ok bool, err error) {
	var b [endLen]byte
	n, err := last.ReadAt(b[:], 0)
	if err == io.EOF {
		err = nil
	}
	var hash []byte
	_, bad := fmt.Sscanf(string(b[:n]), "%d %x\n", &e.seq, &hash)
	copy(e.hash[:], hash)
	if bad != nil || e.String() != string(b[:]) {
		e = end{}
	}
	return e, e.seq > 0, err
}

func newChain(dir string, o Options) *chain {
	c := &chain{o: o, path: filepath.Join(dir, FileName), pid: os.Getpid(), user: strconv.Itoa(os.Getuid()), named: isNamed}
	if u, err := user.Current(); err == nil {
		c.user = u.Username
	}
	return c
}

func (c *chain) lastPath() string { return filepath.Join(filepath.Dir(c.path), lastName) }

func (c *chain) older(i int) string { return c.path + "." + strconv.Itoa(i) }

func (c *chain) stepped() {
	if c.step != nil {
		c.step()
	}
}

var errClosed = errors.New("audit log is closed")

// maxAttempts bounds how often a file is opened again because it was removed meanwhile.
const maxAttempts = 8

func (c *chain) append(r Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	r.PID, r.User = cmp.Or(r.PID, c.pid), cmp.Or(r.User, c.user)
	for range maxAttempts {
		written, err := c.write(&r)
		if err == nil && !written {
			err = c.open()
		}
		if err != nil {
			c.size = -1
			return fmt.Errorf("writing audit record: %w", err)
		}
		if written {
			return nil
		}
	}
	return fmt.Errorf("writing audit record: %s is removed again and again", c.path)
}

// write writes r to the current file, and then its number and hash to audit.last. Killed in
// between, the record is there and the next writer takes it as it is. It is false where the files
// that are open have no name any more, so that the record would be nowhere.
func (c *chain) write(r *Record) (written bool, err error) {
	if c.file == nil {
		return false, nil
	}
	if err := lock(c.last); err != nil {
		return false, err
	}
	defer func() {
		if c.last != nil {
			_ = flock.Unlock(c.last) // it is given back with the file in any case
		}
	}()
	if !c.named(c.last, c.lastPath()) || !c.named(c.file, c.path) {
		return false, nil
	}
	begin, err := c.position()
	if err == nil && c.at.full {
		if err = c.rotate(); err == nil {
			begin, err = c.position()
		}
	}
	if err != nil {
		return false, err
	}
	t := tie{Seq: c.at.seq + 1, Prev: hex.EncodeToString(c.at.hash[:])}
	line, err := encode(r, t)
	if t.Full = c.o.MaxBytes > 0 && c.size+int64(len(line)) >= c.o.MaxBytes; t.Full && err == nil {
		t.Gone = c.goes()
		line, err = encode(r, t)
	}
	if err != nil {
		return false, err
	}
	text := append(append(begin, line...), '\n')
	if _, err := c.file.Write(text); err != nil {
		return false, err
	}
	c.stepped()
	c.size += int64(len(text))
	c.at = end{t.Seq, sha256.Sum256(line), t.Full}
	if err := c.save(); err != nil {
		return false, err
	}
	if c.at.full {
		_ = c.rotate() // the record is safe even if this fails; the next one tries again
	}
	return true, nil
}

func (c *chain) save() error {
	_, err := c.last.WriteAt([]byte(c.at.String()), 0)
	c.stepped()
	return err
}

// head gives the last record that audit.last names. What is in the files before it is synced, also where it was moved away just now.
func (c *chain) head() (Seen, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return Seen{}, errClosed
	}
	if c.last == nil {
		if err := c.open(); err != nil {
			return Seen{}, err
		}
	}
	if err := lock(c.last); err != nil {
		return Seen{}, err
	}
	at, _, err := load(c.last)
	if unlocked := flock.Unlock(c.last); err == nil {
		err = unlocked
	}
	for _, name := range []string{c.path, c.older(1)} {
		if f, gone := os.OpenFile(name, os.O_RDWR, 0); err == nil && gone == nil { // Windows syncs what may be written
			err = errors.Join(f.Sync(), f.Close())
		}
	}
	return Seen{at.seq, hex.EncodeToString(at.hash[:])}, err
}

// position finds the end of the chain. begin is to be written before the next record: a line end where the
// file has none at its own end. The last record of the file is the end of the chain if audit.last does not
// name a later one: its writer may have been killed before it could do so.
func (c *chain) position() (begin []byte, err error) {
	info, err := c.file.Stat()
	if err != nil || info.Size() == c.size { // nobody has written since we did
		return nil, err
	}
	saved, _, err := load(c.last)
	if err != nil {
		return nil, err
	}
	found, open, err := lastRecord(c.file, info.Size())
	if err != nil {
		return nil, err
	}
	if open {
		begin = []byte("\n")
	}
	c.at, c.size = saved, info.Size()
	if c.at.full = found.full; found.seq > saved.seq {
		c.at = found
		err = c.save()
	}
	return begin, err
}

// lastRecord reads the last record of a file of that size: the zero end where there is none. open says
// that the file does not end with a line end. A longer tail than two records can have is no record.
func lastRecord(f io.ReaderAt, size int64) (at end, open bool, err error) {
	for n := int64(4 << 10); ; n *= 16 {
		from := max(size-n, 0)
		tail := make([]byte, size-from)
		if _, err := f.ReadAt(tail, from); err != nil && err != io.EOF {
			return at, false, err
		}
		open = len(tail) > 0 && tail[len(tail)-1] != '\n'
		for len(tail) > 0 {
			tail = bytes.TrimSuffix(tail, []byte("\n"))
			begin := bytes.LastIndexByte(tail, '\n') + 1
			if begin == 0 && from > 0 {
				break // it may begin before
			}
			if t, ok := parse(tail[begin:]); ok {
				return end{t.Seq, sha256.Sum256(tail[begin:]), t.Full}, open, nil
			}
			tail = tail[:begin]
		}
		if from == 0 || n > 2*maxLine {
			return at, open, nil
		}
	}
}

// goes is the number of the last record in the file that the next rotation removes, 0 for none.
func (c *chain) goes() uint64 {
	if c.free() < c.o.Keep {
		return 0
	}
	f, err := os.Open(c.older(c.o.Keep))
	if err != nil {
		return 0
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	at, _, _ := lastRecord(f, info.Size()) // what can't be read is told as missing later
	return at.seq
}

// free is the first number that no older file has: a process may have died and left a gap. If all
// are taken it is the number of the file that goes.
func (c *chain) free() int {
	i := 1
	for ; i < c.o.Keep; i++ {
		if _, err := os.Lstat(c.older(i)); err != nil {
			break
		}
	}
	return i
}

// rotate moves the full file away and opens another. The caller has the lock.
func (c *chain) rotate() error {
	_ = c.file.Close() // nothing is buffered
	c.file, c.size = nil, -1
	var err error
	for i := c.free(); i > 1 && err == nil; i-- {
		err = os.Rename(c.older(i-1), c.older(i))
		c.stepped()
	}
	if err == nil {
		_ = os.Rename(c.path, c.older(1)) // where it could not be moved it takes more than it should
		c.stepped()
	}
	c.file, err = openPrivate(c.path, os.O_APPEND)
	return err
}

// lockWait bounds the time that a record waits for other processes. Each has the lock for some 10 µs; one
// that was stopped has it until it goes on.
const lockWait = 15 * time.Second

var errLocked = errors.New("another process holds the lock of " + lastName)

// lock takes a log for one record.
func lock(last *os.File) error {
	began := time.Time{}
	for wait := 10 * time.Microsecond; ; wait = min(2*wait, 2*time.Millisecond) {
		got, err := flock.TryLock(last)
		if got || err != nil {
			return err
		}
		if began.IsZero() {
			began = time.Now()
		} else if time.Since(began) > lockWait {
			return errLocked
		}
		time.Sleep(wait)
	}
}

func isNamed(f *os.File, path string) bool {
	there, err := os.Lstat(path)
	if err != nil {
		return false
	}
	here, err := f.Stat()
	return err == nil && os.SameFile(there, here)
}

// open opens both files anew. A lock is given back with the old one.
func (c *chain) open() (err error) {
	_ = c.closeFiles() // nothing is buffered
	if c.last, err = openPrivate(c.lastPath(), 0); err == nil {
		c.file, err = openPrivate(c.path, os.O_APPEND)
	}
	if err != nil {
		_ = c.closeFiles()
	}
	return err
}

func (c *chain) closeFiles() (err error) {
	for _, f := range []*os.File{c.file, c.last} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	c.file, c.last, c.size = nil, nil, -1
	return err
}

func (c *chain) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.closeFiles()
}

func openPrivate(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|flock.NoFollow|flags, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err == nil && info.Mode().Perm() != 0o600 {
		err = f.Chmod(0o600)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// A tie has the members of a line that are about the chain. The last record of a file has Full, and as Gone the number up to
// which the rotation behind it removes records.
type tie struct {
	Seq  uint64 `json:"seq"`
	Full bool   `json:"full,omitempty"`
	Gone uint64 `json:"gone,omitempty"`
	Prev string `json:"prev"` // 64 hex digits
}

// maxText is the most that a record holds of one text.
const maxText = 4 << 10

// encode gives r as a line without its end.
func encode(r *Record, t tie) ([]byte, error) {
	cut := *r
	for f, v := 0, reflect.ValueOf(&cut).Elem(); f < v.NumField(); f++ {
		if s := v.Field(f); s.Kind() == reflect.String {
			s.SetString(truncate(s.String()))
		}
	}
	paths := make([]Name, len(cut.Paths))
	for i, p := range cut.Paths {
		paths[i] = Name(truncate(p))
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Time string `json:"time"` // the first member: see timeIn
		Record
		Paths    []Name `json:"paths,omitempty"`
		Duration int64  `json:"duration_us,omitempty"`
		tie
	}{r.Time.UTC().Format(timeForm), cut, paths, r.Duration.Microseconds(), t})
	line := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if bytes.ContainsFunc(line, obeyed) {
		var out []byte
		for _, c := range string(line) {
			if obeyed(c) {
				out = fmt.Appendf(out, `\u%04x`, c)
			} else {
				out = utf8.AppendRune(out, c)
			}
		}
		line = out
	}
	return line, err
}

const timeForm = "2006-01-02T15:04:05.000000Z"

// obeyed reports whether a terminal or a reader of lines may obey r: DEL, the controls C1 and the line
// separators, which encoding/json leaves as they are.
func obeyed(r rune) bool { return 0x7f <= r && r < 0xa0 || r == 0x2028 || r == 0x2029 }

// truncate cuts a text that could be of any length, never within a character.
func truncate(text string) string {
	if len(text) <= maxText {
		return text
	}
	cut := maxText
	for cut > maxText-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// maxLine is the longest line that is looked at as a record.
const maxLine = 16 << 20

// parse reads the tie of a line; false where it is no record.
func parse(line []byte) (t tie, ok bool) {
	err := json.Unmarshal(line, &t)
	hash, bad := hex.DecodeString(t.Prev)
	return t, err == nil && bad == nil && len(hash) == sha256.Size && 0 < t.Seq && t.Seq < 1<<63
}
