package main

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's names of contents, not ours
	endian "encoding/binary"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"moltisfs/checkpoint"
	"moltisfs/internal/edit/diff"
)

// A filePatch is how one path changed, for git apply.
type filePatch struct {
	name             string // relative, with slashes
	oldMode, newMode string // "" is a side without a file
	before, after    []byte
	utf8             bool // the patch has to be valid UTF-8: what is not goes as binary
}

// write writes it as git does, with its modes, which also tell of files that are empty.
func (p *filePatch) write(w io.Writer) {
	if p.oldMode != "" && p.newMode != "" && (p.oldMode == gitLink) != (p.newMode == gitLink) { // a link and a file are no versions of one another
		from, to := *p, *p
		from.newMode, from.after = "", nil
		to.oldMode, to.before = "", nil
		from.write(w)
		to.write(w)
		return
	}
	same := bytes.Equal(p.before, p.after)
	if p.oldMode == p.newMode && same {
		return
	}
	name := diff.QuotePath(p.name)[1:]
	fmt.Fprintf(w, "diff --git \"a/%s \"b/%s\n", name, name)
	switch {
	case p.oldMode == p.newMode:
	case p.oldMode == "":
		fmt.Fprintf(w, "new file mode %s\n", p.newMode)
	case p.newMode == "":
		fmt.Fprintf(w, "deleted file mode %s\n", p.oldMode)
	default:
		fmt.Fprintf(w, "old mode %s\nnew mode %s\n", p.oldMode, p.newMode)
	}
	switch {
	case same:
	case p.binary():
		// Without both names in full git refuses a binary patch: by them it knows that it has the right file before it.
		fmt.Fprintf(w, "index %s..%s\nGIT binary patch\n", gitBlob(p.oldMode, p.before), gitBlob(p.newMode, p.after))
		binaryHunk(w, p.before, p.after)
		binaryHunk(w, p.after, p.before)
	default:
		io.WriteString(w, diff.Unified(p.name, diff.EndsOf(p.oldMode != "", p.newMode != ""), diff.Patch(p.before, p.after)))
	}
}

func (p *filePatch) binary() bool {
	for _, side := range [][]byte{p.before, p.after} {
		switch {
		case bytes.IndexByte(side, 0) >= 0, p.utf8 && !utf8.Valid(side):
			return true
		case bytes.IndexByte(side, '\n') < 0 && bytes.IndexByte(side, '\r') >= 0: // diff.Patch cuts it at its CRs, for people; to git they end no line
			return true
		}
	}
	return false
}

const gitLink = "120000"

// gitMode is the mode of what git would store, "" for nothing.
func gitMode(s checkpoint.State) string {
	switch {
	case s.Kind == checkpoint.Symlink:
		return gitLink
	case s.Kind != checkpoint.File:
		return ""
	case s.Mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// gitModes are those of both sides of a change. Where nobody recorded the mode of one, it is taken to be that of the other.
func gitModes(c *checkpoint.Recorded) (before, after string) {
	b, a := c.Before, c.After
	if b.Kind == checkpoint.File && a.Kind == checkpoint.File {
		if b.Mode == 0 {
			b.Mode = a.Mode
		}
		if a.Mode == 0 {
			a.Mode = b.Mode
		}
	}
	return gitMode(b), gitMode(a)
}

// gitBlob is git's name of a content: zeros where there is no file.
func gitBlob(mode string, content []byte) string {
	if mode == "" {
		return strings.Repeat("0", 2*sha1.Size)
	}
	h := sha1.New() //nolint:gosec // as above
	fmt.Fprintf(h, "blob %d\x00", len(content))
	h.Write(content)
	return fmt.Sprintf("%x", h.Sum(nil))
}

// binaryHunk writes what makes to of from: a delta, or where that is not the shorter one the content itself, packed by zlib, in lines of base85.
func binaryHunk(w io.Writer, from, to []byte) {
	method, size, packed := "literal", len(to), deflated(to)
	delta := gitDelta(from, to)
	if d := deflated(delta); len(from) > 0 && len(to) > 0 && len(d) < len(packed) {
		method, size, packed = "delta", len(delta), d
	}
	fmt.Fprintf(w, "%s %d\n", method, size)
	const line = 52
	for len(packed) > 0 {
		n := min(line, len(packed))
		length := byte('A' + n - 1)
		if n > 26 {
			length = byte('a' + n - 27)
		}
		w.Write(append(base85([]byte{length}, packed[:n]), '\n'))
		packed = packed[n:]
	}
	io.WriteString(w, "\n")
}

func deflated(content []byte) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	z.Write(content) //nolint:errcheck // a buffer takes everything
	z.Close()        //nolint:errcheck // likewise
	return b.Bytes()
}

// base85 appends four bytes as five digits, the most significant first; the last group is filled up with zeros.
func base85(to, from []byte) []byte {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
	for len(from) > 0 {
		var four [4]byte
		from = from[copy(four[:], from):]
		v := endian.BigEndian.Uint32(four[:])
		var five [5]byte
		for i := 4; i >= 0; i-- {
			five[i] = digits[v%85]
			v /= 85
		}
		to = append(to, five[:]...)
	}
	return to
}

// gitDelta makes to of from by keeping what both begin and end with, in the delta format of git's packs: both lengths, then copies of a
// range of from (0x80 | which bytes of offset and length follow) and inserts of up to 127 bytes.
func gitDelta(from, to []byte) []byte {
	head := 0
	for head < min(len(from), len(to)) && from[head] == to[head] {
		head++
	}
	tail := 0
	for tail < min(len(from), len(to))-head && from[len(from)-1-tail] == to[len(to)-1-tail] {
		tail++
	}
	out := endian.AppendUvarint(endian.AppendUvarint(nil, uint64(len(from))), uint64(len(to)))
	out = appendCopies(out, 0, head)
	for middle := to[head : len(to)-tail]; len(middle) > 0; {
		n := min(127, len(middle))
		out = append(append(out, byte(n)), middle[:n]...)
		middle = middle[n:]
	}
	return appendCopies(out, len(from)-tail, tail)
}

func appendCopies(out []byte, offset, length int) []byte {
	for length > 0 {
		n := min(0xffff, length)
		out = append(out, 0x80|0x0f|0x30, byte(offset), byte(offset>>8), byte(offset>>16), byte(offset>>24), byte(n), byte(n>>8))
		offset, length = offset+n, length-n
	}
	return out
}
