package pdf

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"slices"
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
		if !isMap(inflate(bytes.NewReader(b[from:min(len(b), from+mapHead)]), 4*mapHead)) {
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

func isMap(head []byte) bool { return bytes.Contains(head, []byte("begincmap")) }

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
		entries := slices.Collect(slices.Chunk(words(section), each))
		if n := len(entries); n > 0 && len(entries[n-1]) < each {
			entries = entries[:n-1]
		}
		if taken := slices.DeleteFunc(slices.Clone(entries), isLong); len(taken) < len(entries) {
			entries, section = taken, fmt.Appendf(nil, "%s %s ", kind, bytes.Join(slices.Concat(taken...), []byte(" ")))
		}
		before = bytes.TrimRight(before, " \t\r\n")
		head, count := bytes.TrimRight(before, "0123456789"), strconv.Itoa(len(entries))
		wrong = wrong || count != string(before[len(head):])
		out = fmt.Appendf(out, "%s%s beginbf%sendbf%s", head, count, section, kind)
		m = bytes.TrimPrefix(after, []byte(kind))
	}
	if !wrong {
		return nil
	}
	return out
}

// words are the strings "<…>" and the lists "[…]" of a section.
func words(section []byte) (all [][]byte) {
	for {
		i := bytes.IndexAny(section, "<[")
		if i < 0 {
			return all
		}
		section = section[i:]
		n := bytes.IndexByte(section, section[0]+2) + 1 // in ASCII the closing ones are two behind
		if n == 0 {
			return all
		}
		all, section = append(all, section[:n]), section[n:]
	}
}

// isLong says that an entry is for a code of more than two bytes.
func isLong(entry [][]byte) bool {
	code, err := strconv.ParseUint(string(bytes.Trim(entry[0], "<>")), 16, 64)
	return err == nil && code > 0xffff
}
