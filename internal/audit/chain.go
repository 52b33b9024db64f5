package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// The end of line n is ,"seq":n,"prev":"…"} with the SHA-256 of the line before, zeros in the first,
// in hex. The last record of a file has "full":true before prev, and "gone":m where the rotation that
// follows removes the records up to m.
//
// A line that is no record, as the remains of a process that died, binds the next record too: it
// has link(h, line) as prev, where h is what it would have without that line.

type digest = [sha256.Size]byte

// An end is where a chain ends: its last record, and where that stands. audit.last holds one.
type end struct {
	seq      uint64 // number of the record, 0 where there is none
	hash     digest
	from, to int64 // of its line in the file, without the line end
}

const endLen = 20 + 1 + 2*sha256.Size + 2*(1+20) + 1

func (e *end) String() string {
	return fmt.Sprintf("%020d %x %020d %020d\n", e.seq, e.hash, e.from, e.to)
}

// parseEnd reads what String wrote. It is false for anything else.
func parseEnd(text []byte) (e end, ok bool) {
	f := strings.Fields(string(text))
	if len(f) != 4 {
		return e, false
	}
	var errs [3]error
	e.seq, errs[0] = strconv.ParseUint(f[0], 10, 63)
	e.from, errs[1] = strconv.ParseInt(f[2], 10, 64)
	e.to, errs[2] = strconv.ParseInt(f[3], 10, 64)
	return e, errs == [3]error{} && undigest(&e.hash, f[1]) && e.String() == string(text)
}

func undigest(d *digest, text string) bool {
	n, err := hex.Decode(d[:], []byte(text[:min(len(text), 2*len(d))]))
	return err == nil && n == len(d) && len(text) == 2*n
}

// link is the prev of a record that stands behind a line that is no record.
func link(head digest, line []byte) digest {
	return sha256.Sum256(append(hex.AppendEncode(nil, head[:]), line...))
}

// A tie is what a line says of the chain.
type tie struct {
	Seq  uint64 `json:"seq"`
	Full bool   `json:"full"`
	Gone uint64 `json:"gone"`
	Prev string `json:"prev"`
	prev digest
}

// appendTie ends the line of a record that has no end yet.
func appendTie(line []byte, t *tie) []byte {
	line = strconv.AppendUint(append(line, `,"seq":`...), t.Seq, 10)
	if t.Full {
		line = append(line, `,"full":true`...)
	}
	if t.Gone > 0 {
		line = strconv.AppendUint(append(line, `,"gone":`...), t.Gone, 10)
	}
	line = hex.AppendEncode(append(line, `,"prev":"`...), t.prev[:])
	return append(line, "\"}\n"...)
}

// parse reads the end of a line. It is false for what has no such end. No string of a record has a
// bare quotation mark, so that the names of the end can't stand within one.
func parse(line []byte) (t tie, ok bool) {
	at := bytes.LastIndex(line, []byte(`,"seq":`))
	if at < 0 || line[0] != '{' || len(line)-at > 200 {
		return t, false
	}
	if json.Unmarshal(append([]byte{'{'}, line[at+1:]...), &t) != nil || t.Seq == 0 || t.Seq >= 1<<63 {
		return t, false
	}
	return t, undigest(&t.prev, t.Prev)
}

// torn says whether a line that is no record can be the beginning of one.
func torn(line []byte) bool {
	const begin = `{"time":"`
	n := min(len(line), len(begin))
	return string(line[:n]) == begin[:n] && !json.Valid(line)
}

// maxLine is the longest line that is looked at as a record.
const maxLine = 16 << 20

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

// eachLine gives fn the lines of r without their ends, and where each begins.
func eachLine(r io.Reader, fn func(at int64, line []byte, ended bool) error) error {
	b := bufio.NewReaderSize(r, 64<<10)
	for at := int64(0); ; {
		line, err := readLine(b, maxLine)
		if err != nil && err != io.EOF || len(line) == 0 {
			return ignoreEOF(err)
		}
		text, ended := bytes.CutSuffix(line, []byte("\n"))
		if err := fn(at, text, ended); err != nil {
			return err
		}
		at += int64(len(line))
	}
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
