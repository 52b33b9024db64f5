package pdf

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"iter"
	"strconv"
)

const (
	// mapHead is how much of a stream is inflated to find out whether it maps a font's codes to characters. A licence may come first.
	mapHead = 1 << 10
	// mapBytes is the longest such map that is mended: one of every code has half of it.
	mapBytes = 4 << 20
	// allMaps is how many bytes of maps are looked at in a file.
	allMaps = 16 * mapBytes
)

// mended is a PDF whose ToUnicode maps say how many entries they have, and have none that PDFium does not take. Where a section of such a
// map counts wrong, or has a code of more than two bytes, PDFium leaves all of it out, and shows the codes as if they were characters; others
// read it to its end. Nothing moves: the file keeps its length. b is not changed.
func mended(b []byte) []byte {
	z, _ := zlib.NewReader(bytes.NewReader([]byte{0x78, 1, 3, 0, 0, 0, 0, 1})) // of nothing
	inflate := func(in *bytes.Reader, most int64) []byte {
		if z.(zlib.Resetter).Reset(in, nil) != nil {
			return nil
		}
		out, _ := io.ReadAll(io.LimitReader(z, most))
		return out
	}
	whole, owned, left := b, false, allMaps
	for from := 0; left > 0; {
		i := bytes.Index(b[from:], []byte("stream"))
		if i < 0 {
			return whole
		}
		from += i + len("stream")
		if bytes.HasSuffix(b[:from], []byte("endstream")) {
			continue
		}
		for from < len(b) && (b[from] == '\r' || b[from] == '\n') {
			from++
		}
		head := inflate(bytes.NewReader(b[from:min(len(b), from+mapHead)]), 4*mapHead)
		if !bytes.Contains(head, []byte("begincmap")) {
			continue
		}
		in := bytes.NewReader(b[from:])
		m := inflate(in, mapBytes)
		left -= len(m)
		right := counted(m)
		if right == nil || len(m) == mapBytes { // or it goes on
			continue
		}
		var packed bytes.Buffer
		w, _ := zlib.NewWriterLevel(&packed, zlib.BestCompression)
		w.Write(right)
		w.Close()
		used := len(b) - from - in.Len()
		if packed.Len() > used {
			continue
		}
		if !owned {
			whole, owned = bytes.Clone(b), true
		}
		clear(whole[from+copy(whole[from:], packed.Bytes()) : from+used])
	}
	return whole
}

// counted is the map with the true counts and without long codes, up to the end of its last section; nil if it has them.
func counted(m []byte) []byte {
	var out []byte
	wrong := false
	for {
		before, rest, ok := bytes.Cut(m, []byte("beginbf"))
		section, after, ended := bytes.Cut(rest, []byte("endbf"))
		if !ok || !ended {
			break
		}
		kind, each := "char", 2
		if bytes.HasPrefix(section, []byte("range")) {
			kind, each = "range", 3
		}
		kept, n, long, leave := []byte(kind), 0, 0, false
		for word := range words(section) {
			if n%each == 0 {
				if leave = isLong(word); leave {
					long++
				}
			}
			if n++; !leave {
				kept = append(append(kept, ' '), word...)
			}
		}
		if long > 0 {
			section = append(kept, ' ')
		}
		before = bytes.TrimRight(before, " \t\r\n")
		head, count := bytes.TrimRight(before, "0123456789"), strconv.Itoa(n/each-long)
		wrong = wrong || count != string(before[len(head):])
		out = fmt.Appendf(out, "%s%s beginbf%sendbf%s", head, count, section, kind)
		m = bytes.TrimPrefix(after, []byte(kind))
	}
	if !wrong {
		return nil
	}
	return out
}

// words yields the strings "<…>" and the lists "[…]" of a section.
func words(section []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			i := bytes.IndexAny(section, "<[")
			if i < 0 {
				return
			}
			section = section[i:]
			n := bytes.IndexByte(section, section[0]+2) + 1 // in ASCII the closing ones are two behind
			if n == 0 || !yield(section[:n]) {
				return
			}
			section = section[n:]
		}
	}
}

// isLong says that a code has more than two bytes.
func isLong(code []byte) bool {
	n, err := strconv.ParseUint(string(bytes.Trim(code, "<>")), 16, 64)
	return err == nil && n > 0xffff
}
