package audit

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"time"

	"moltisfs/internal/guardfs/flock"
)

// lockWait is how long a record waits for other processes. Each has the lock for some 10 µs; one
// that was stopped has it until it goes on.
const lockWait = 15 * time.Second

var errLocked = errors.New("another process holds the lock of " + keyName)

// lock takes the log for one record.
func (l *Log) lock() error {
	began := time.Time{}
	for wait := 10 * time.Microsecond; ; wait = min(2*wait, 2*time.Millisecond) {
		got, err := flock.TryLock(l.keys.File)
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

func (l *Log) unlock() {
	if l.keys.File != nil {
		_ = flock.Unlock(l.keys.File) // it is given back with the file in any case
	}
}

// load reads where the chain stands; it is false where there is no chain yet, or none any more.
func (l *Log) load() (at link, ok bool, err error) {
	var b [linkLen]byte
	n, err := l.keys.ReadAt(b[:], 0)
	if err != nil && err != io.EOF {
		return at, false, err
	}
	at, ok = parseLink(b[:n])
	return at, ok, nil
}

func (l *Log) save(at *link) error {
	var b [linkLen]byte
	_, err := l.keys.WriteAt(appendLink(b[:0], at), 0)
	if l.at = *at; err != nil {
		l.at = link{}
	}
	return err
}

// position says where the chain stands and what the next record has to say of it. The file that
// takes the record is open then.
func (l *Log) position() (at link, m mark, err error) {
	there, err := l.file.look()
	if err != nil || l.at.ends(there) { // nobody has written since we did
		return l.at, m, err
	}
	at, found, err := l.load()
	if err != nil {
		return at, m, err
	}
	if !found { // saved before its first record, which may be all that there will be
		at = newLink()
		if err := l.save(&at); err != nil {
			return at, m, err
		}
		l.stepped()
	}
	for range 3 {
		if at.ends(there) {
			return at, m, nil
		}
		if at.ended || there.id != at.file || !there.named {
			if there, err = l.moveOn(&at, there); err != nil {
				return at, m, err
			}
		}
		if m, err = l.catchUp(&at, there); err != nil || !at.ended {
			return at, m, err
		}
	}
	at.ended = false
	return at, m, nil
}

// ends says whether the chain goes on right at the end of a file.
func (l *link) ends(there looked) bool {
	return !l.ended && !l.open && l.size > 0 && there == looked{l.size, true, l.file}
}

// moveOn opens the file that takes the next record, when it is not, or not any more, the one that
// is open.
func (l *Log) moveOn(at *link, there looked) (looked, error) {
	if at.ended && there.id == at.file {
		err := l.rotate(at)
		if l.file.File == nil {
			return there, err
		}
		at.ended = false // if it could not be moved, it takes more than it should
	} else if err := l.openLog(); err != nil {
		return there, err
	}
	return l.file.look()
}

// maxLine is the longest line that is looked at as a record.
const maxLine = 16 << 20

// catchUp moves at to the end of the file that is open. Whole records of the chain, of a process
// that was killed before it could save where the chain stands, count as they are. The rest is stray.
func (l *Log) catchUp(at *link, there looked) (m mark, err error) {
	if there.id != at.file && l.holds(at) { // a copy, as after the directory was moved
		at.file = there.id
	}
	if there.id != at.file || there.size == 0 {
		m.Opens, m.Gone = at.seq > 1, at.gone
		at.file, at.size, at.count, at.ended, at.open = there.id, 0, 0, false, false
	}
	if at.seq == 1 {
		m.Begins = at.chain
	}
	if there.size < at.size {
		m.Cut, at.size = at.size-there.size, there.size
	}
	if there.size == at.size {
		return m, nil
	}
	r := bufio.NewReaderSize(io.NewSectionReader(l.file, at.size, there.size-at.size), 64<<10)
	var rest hashed
	was := *at
	for {
		line, err := readLine(r, maxLine)
		if err != nil && err != io.EOF {
			return m, err
		}
		if len(line) == 0 {
			break
		}
		_, _ = rest.Write(line) // it does not fail
		if at.takes(line, rest.n == int64(len(line))) {
			at.size += rest.n
			m, rest = mark{}, hashed{}
		}
	}
	if at.seq > was.seq { // a key that is new now must not be another one next time
		if err := l.save(at); err != nil {
			return m, err
		}
	}
	if rest.n > 0 {
		s := rest.stray()
		m.Stray, at.open = &s, !rest.ended()
		at.size += rest.n
	}
	return m, nil
}

// holds says whether the last record of the chain is where it should be in the file that is open.
func (l *Log) holds(at *link) bool {
	b := make([]byte, min(at.size, maxLine))
	if n, err := l.file.ReadAt(b, at.size-int64(len(b))); n < len(b) || n == 0 || err != nil && err != io.EOF {
		return false
	}
	b = bytes.TrimSuffix(b, []byte("\n"))
	s, ok := parse(b[bytes.LastIndexByte(b, '\n')+1:])
	return ok && s.seq == at.seq-1 && s.head() == at.head
}

// takes follows a line if it is the next record or, right behind the last one, its line end.
func (l *link) takes(line []byte, behind bool) bool {
	text, ended := bytes.CutSuffix(line, []byte("\n"))
	if len(text) == 0 && behind {
		was := l.open
		l.open = false
		return was
	}
	s, ok := parse(text)
	if !ok || s.seq != l.seq || s.prev != l.head || !s.by(l.key) {
		return false
	}
	l.follow(&s)
	l.open = !ended
	return true
}

// readLine reads a line with its end, or as much as most bytes of it.
func readLine(r *bufio.Reader, most int) (line []byte, err error) {
	for len(line) < most {
		piece, err := r.ReadSlice('\n')
		line = append(line, piece...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
	return line, nil
}

// rotate moves the full file away and opens another. The caller has the lock, and path names the
// file that at is about.
func (l *Log) rotate(at *link) error {
	if !isNamed(l.file.File, l.path) {
		return l.openLog() // somebody else moved it
	}
	free := 1 // a process may have died here and left a gap; it is filled
	for ; l.o.Keep < 0 || free < l.o.Keep; free++ {
		if _, err := os.Lstat(l.older(free)); err != nil {
			break
		}
	}
	if gone := lastRecord(l.older(free)); gone > at.gone {
		at.gone = gone
		if err := l.save(at); err != nil {
			return err
		}
		l.stepped()
	}
	for i := free; i > 1; i-- {
		if err := os.Rename(l.older(i-1), l.older(i)); err != nil {
			return err
		}
		l.stepped()
	}
	if err := os.Rename(l.path, l.older(1)); err != nil {
		return err
	}
	l.stepped()
	return l.openLog()
}

// lastRecord is the number of the last record in a file, 0 where there is none.
func lastRecord(path string) (last uint64) {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	for most, from := int64(256<<10), int64(1); last == 0 && from > 0; most *= 8 { // it may be long
		from = max(0, info.Size()-most)
		r := bufio.NewReader(io.NewSectionReader(f, from, info.Size()-from))
		for line, err := readLine(r, maxLine); err == nil; line, err = readLine(r, maxLine) {
			if s, ok := parse(line[:len(line)-1]); ok {
				last = s.seq
			}
		}
	}
	return last
}

func (l *Log) older(i int) string { return l.path + "." + strconv.Itoa(i) }
