package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"
)

// The chain: record n is authenticated with a key k(n) of its own, k(n+1) is a hash of k(n), and
// what came before is forgotten. So who takes the key today can't make another yesterday. It is
// the idea of forward-secure sealing (Bellare and Yee; systemd's journal).
//
// The end of line n is ,"seq":n,"chain":{…},"prev":"…","mac":"…"}, with chain left out where it has
// nothing to say. With d the SHA-256 of the line up to ,"mac",
//
//	mac  = HMAC-SHA256(k(n), d)
//	prev = SHA-256(d, mac) of record n-1, zeros in the first
//
// both in unpadded base64url. docs/operations.md tells operators what that proves.

type digest = [sha256.Size]byte

// A link is where a chain stands. It is all that the file of the key holds.
type link struct {
	chain string // its name, 16 hex digits
	seq   uint64 // number of the next record; the first is 1
	key   digest // of the next record
	head  digest // what the next record has as prev
	gone  uint64 // rotation has removed the records up to this one

	file  fileID // of the last record
	size  int64  // of that file, when it was written
	count uint64 // how many records of the chain are in that file
	ended bool   // that file takes no more
	open  bool   // the last record has no line end
}

// A fileID tells a file from all others that there are. It is zero where the system has none.
type fileID struct{ dev, ino uint64 }

// A mark is what a record says of the chain itself.
type mark struct {
	Begins string `json:"begins,omitempty"` // the name of the chain whose first record this is
	Opens  bool   `json:"opens,omitempty"`  // it is the first of its file
	Gone   uint64 `json:"gone,omitempty"`   // rotation has removed the records up to this one
	Stray  *stray `json:"stray,omitempty"`
	Cut    int64  `json:"cut,omitempty"`   // so many bytes were missing at the end of the file
	Key    bool   `json:"key,omitempty"`   // the records after it have another key
	Seals  uint64 `json:"seals,omitempty"` // it is the last of its file, which has so many
}

// stray is what stands before a record in its file and is no record of the chain: the remains of a
// process that died, or what somebody put there.
type stray struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// newLink begins a chain.
func newLink() link {
	var l link
	var name [8]byte
	_, _ = rand.Read(name[:]) // it does not fail
	_, _ = rand.Read(l.key[:])
	l.chain, l.seq = hex.EncodeToString(name[:]), 1
	return l
}

// evolved is the key after key.
func evolved(key digest) digest {
	const label = "moltis-fs audit key\n"
	var b [len(label) + len(key)]byte
	return sha256.Sum256(append(append(b[:0], label...), key[:]...))
}

// macOf is HMAC-SHA256 (RFC 2104) of a digest. For a key that is used once crypto/hmac takes three
// times as long and makes garbage: a tenth of the time of a record (BenchmarkMac).
func macOf(key, d digest) digest {
	var inner, outer [sha256.BlockSize + sha256.Size]byte
	for i := range sha256.BlockSize {
		inner[i], outer[i] = 0x36, 0x5c
	}
	for i := range key {
		inner[i], outer[i] = inner[i]^key[i], outer[i]^key[i]
	}
	copy(inner[sha256.BlockSize:], d[:])
	sum := sha256.Sum256(inner[:])
	copy(outer[sha256.BlockSize:], sum[:])
	return sha256.Sum256(outer[:])
}

func headOf(d, mac digest) digest {
	var b [2 * sha256.Size]byte
	copy(b[:], d[:])
	copy(b[sha256.Size:], mac[:])
	return sha256.Sum256(b[:])
}

var encoding = base64.RawURLEncoding

const (
	encoded  = 43 // characters of a digest
	prevName = `,"prev":"`
	macName  = `","mac":"`
	tailLen  = len(prevName) + encoded + len(macName) + encoded + len(`"}`)
)

// extend ends the line of a record that has no end yet, and moves l on to the next record.
func (l *link) extend(line []byte, m mark) []byte {
	line = strconv.AppendUint(append(line, `,"seq":`...), l.seq, 10)
	if m != (mark{}) {
		text, _ := json.Marshal(m) // numbers and hex digits
		line = append(append(line, `,"chain":`...), text...)
	}
	line = append(encoding.AppendEncode(append(line, prevName...), l.head[:]), '"')
	d := sha256.Sum256(line)
	mac := macOf(l.key, d)
	line = encoding.AppendEncode(append(line, macName[1:]...), mac[:])
	l.seq, l.head, l.key = l.seq+1, headOf(d, mac), evolved(l.key)
	l.count++
	if m.Key {
		_, _ = rand.Read(l.key[:])
	}
	return append(line, "\"}\n"...)
}

// A sealed is the line of a record as the chain sees it.
type sealed struct {
	seq          uint64
	mark         mark
	prev, d, mac digest
}

// parse takes the end of a line apart. It is false for what has no such end. No string of a record
// has a bare quotation mark, so that the names of the end can't stand within one.
func parse(line []byte) (s sealed, ok bool) {
	at := len(line) - tailLen
	if at < 0 || line[0] != '{' {
		return s, false
	}
	tail := line[at:]
	prev, mac := tail[len(prevName):len(prevName)+encoded], tail[tailLen-2-encoded:tailLen-2]
	if !bytes.HasPrefix(tail, []byte(prevName)) || !bytes.HasSuffix(tail, []byte(`"}`)) ||
		string(tail[len(prevName)+encoded:tailLen-2-encoded]) != macName ||
		!undigest(&s.prev, prev) || !undigest(&s.mac, mac) {
		return s, false
	}
	from := bytes.LastIndex(line[:at], []byte(`,"seq":`))
	if from < 0 {
		return s, false
	}
	number, note, noted := strings.Cut(string(line[from+len(`,"seq":`):at]), `,"chain":`)
	var err error
	if s.seq, err = strconv.ParseUint(number, 10, 63); err != nil || s.seq == 0 {
		return s, false
	}
	if noted && json.Unmarshal([]byte(note), &s.mark) != nil {
		return s, false
	}
	s.d = sha256.Sum256(line[:len(line)-len(macName)+1-encoded-len(`"}`)])
	return s, true
}

// undigest is strict: a digest has one spelling.
func undigest(d *digest, text []byte) bool {
	n, err := encoding.Strict().Decode(d[:], text)
	return err == nil && n == len(d)
}

func (s *sealed) head() digest { return headOf(s.d, s.mac) }

func (s *sealed) by(key digest) bool {
	mac := macOf(key, s.d)
	return hmac.Equal(mac[:], s.mac[:])
}

// follow moves l on past a record of the file that it stands in.
func (l *link) follow(s *sealed) {
	l.seq, l.head, l.key = l.seq+1, s.head(), evolved(l.key)
	l.count++
	l.ended = s.mark.Seals > 0
	if s.mark.Key { // its writer has told it to nobody
		_, _ = rand.Read(l.key[:])
	}
}

const (
	linkMagic = "MFSAUD1\n"
	linkLen   = len(linkMagic) + 8 + 2*sha256.Size + 7*8 + 8
)

// appendLink writes l in a form of fixed length, so that it is replaced in place: an old key does
// not stay behind in a block that was freed.
func appendLink(b []byte, l *link) []byte {
	from := len(b)
	b = append(b, linkMagic...)
	b, _ = hex.AppendDecode(b, []byte(l.chain))
	b = append(append(b, l.key[:]...), l.head[:]...)
	flags := uint64(0)
	if l.ended {
		flags |= 1
	}
	if l.open {
		flags |= 2
	}
	for _, n := range [...]uint64{l.seq, l.gone, l.file.dev, l.file.ino, uint64(l.size), l.count, flags} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(b[from:])
	return append(b, sum[:8]...)
}

// parseLink is false for what is not whole.
func parseLink(b []byte) (l link, ok bool) {
	if len(b) != linkLen || string(b[:len(linkMagic)]) != linkMagic {
		return l, false
	}
	if sum := sha256.Sum256(b[:linkLen-8]); !bytes.Equal(sum[:8], b[linkLen-8:]) {
		return l, false
	}
	b = b[len(linkMagic):]
	l.chain = hex.EncodeToString(b[:8])
	b = b[8+copy(l.key[:], b[8:]):]
	b = b[copy(l.head[:], b):]
	var n [7]uint64
	for i := range n {
		n[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	l.seq, l.gone, l.file, l.size, l.count = n[0], n[1], fileID{n[2], n[3]}, int64(n[4]), n[5]
	l.ended, l.open = n[6]&1 != 0, n[6]&2 != 0
	return l, l.seq > 0 && l.size >= 0
}

// A Key proves the records of a chain from one on. Whoever has it can also forge them, so it is
// kept where no process of the log's account reaches it.
type Key struct {
	Chain  string
	From   uint64 // number of the first record
	secret digest
}

const keyWord = "moltis-fs-audit-key"

// String is the form that operators keep.
func (k Key) String() string {
	return fmt.Sprintf("%s:%s:%d:%x", keyWord, k.Chain, k.From, k.secret)
}

// ErrBadKey is the error for a text that is no Key.
var ErrBadKey = errors.New("it is not a key as String writes it")

// ParseKey reads what String wrote; blanks around it do not matter.
func ParseKey(text string) (k Key, err error) {
	parts := strings.Split(strings.TrimSpace(text), ":")
	if len(parts) != 4 || parts[0] != keyWord || len(parts[1]) != 16 {
		return k, ErrBadKey
	}
	k.Chain = parts[1]
	k.From, err = strconv.ParseUint(parts[2], 10, 63)
	secret, herr := hex.DecodeString(parts[3])
	if _, cerr := hex.DecodeString(k.Chain); err != nil || herr != nil || cerr != nil || k.From == 0 ||
		len(secret) != len(k.secret) {
		return Key{}, ErrBadKey
	}
	copy(k.secret[:], secret)
	return k, nil
}

// A hashed is the length and the hash of bytes, with and without a line end as the last.
type hashed struct {
	n    int64
	sum  hash.Hash // of all but the last
	last []byte    // at most one
}

func (h *hashed) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if h.sum == nil {
		h.sum = sha256.New()
	}
	h.sum.Write(h.last)
	h.sum.Write(b[:len(b)-1])
	h.last = append(h.last[:0], b[len(b)-1])
	h.n += int64(len(b))
	return len(b), nil
}

// ended says whether the last byte ends a line.
func (h *hashed) ended() bool { return h.n > 0 && h.last[0] == '\n' }

// is says whether s tells of the bytes, or of them without the line end that a record begins with.
func (h *hashed) is(s *stray) bool {
	if h.n == 0 || s == nil {
		return false
	}
	switch {
	case s.Bytes == h.n-1 && h.ended():
		return s.SHA256 == hex.EncodeToString(h.sum.Sum(nil))
	case s.Bytes == h.n:
		return *s == h.stray()
	}
	return false
}

func (h *hashed) stray() stray {
	all, _ := h.sum.(hash.Cloner).Clone() // it does not fail
	all.Write(h.last)
	return stray{h.n, hex.EncodeToString(all.Sum(nil))}
}
