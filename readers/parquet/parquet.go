// Package parquet tells what is in a Parquet file, from its footer: how many rows it has, and its columns with their types and the range of their values. It
// unpacks nothing. See parquet.apache.org.
package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode"

	"moltisfs/readers/unreadable"
)

const footerBytes = 4 << 20

// Describe reads a file of size bytes. It calls row for each column.
func Describe(r io.ReaderAt, size int64, row func(func() string)) (summary string, err error) {
	tail := make([]byte, 8)
	if _, err := r.ReadAt(tail, max(size-8, 0)); err != nil || string(tail[4:]) != "PAR1" {
		return "", errors.New("its end is missing, where its columns are described")
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if n > footerBytes || n > size-12 {
		return "", fmt.Errorf("its footer of %s can't be read", unreadable.Bytes(n))
	}
	c := &cursor{b: make([]byte, n)}
	if _, err := r.ReadAt(c.b, size-8-n); err != nil {
		return "", err
	}
	meta := c.record(0)
	if c.bad {
		return "", errors.New("its footer is damaged")
	}
	groups := meta.list(4)
	summary = fmt.Sprintf("Parquet file, %s in %s", unreadable.Plural(int(meta.int(3)), "row"), unreadable.Plural(len(groups), "group"))
	if by := meta.text(6); by != "" {
		summary += ", written by " + unreadable.Clip(unreadable.Graphic(by), 60)
	}
	column := 0
	for _, v := range meta.list(2) {
		e, _ := v.(record)
		if e.int(5) > 0 {
			continue // a group of columns, which is in their names
		}
		row(func() string { return describe(e, groups, column) })
		column++
	}
	return summary, nil
}

var types = []string{"boolean", "int32", "int64", "int96", "float", "double", "byte_array", "fixed_len_byte_array"}

// describe shows the column of that number: "a.name string, optional: 'Ada' to 'Zoe'".
func describe(e record, groups []any, column int) string {
	kind := "?"
	if t := e.int(1); t >= 0 && int(t) < len(types) {
		kind = types[t]
	}
	switch logical := e.record(10); {
	case e.get(6) != nil && e.int(6) == 0 || logical.get(1) != nil:
		kind = "string"
	case isDecimal(e):
		kind = "decimal"
	case isDate(e):
		kind = "date"
	case unit(e) > 0:
		kind = "timestamp"
	}
	name, least, most := e.text(4), "", ""
	for i, g := range groups {
		group, _ := g.(record)
		chunks := group.list(1)
		if len(chunks) <= column {
			return unreadable.Clip(unreadable.Graphic(name), 200) + " " + kind
		}
		chunk, _ := chunks[column].(record)
		chunk = chunk.record(3)
		var path []string
		for _, p := range chunk.list(3) {
			s, _ := p.([]byte)
			path = append(path, string(s))
		}
		name = strings.Join(path, ".")
		of := chunk.record(12)
		low, high := of.text(6), of.text(5)
		if i == 0 {
			least, most = low, high
		}
		if low == "" || high == "" || e.int(1) == 3 {
			least, most = "", "" // not every group says it
			break
		}
		if less(e, low, least) {
			least = low
		}
		if less(e, most, high) {
			most = high
		}
	}
	shown := unreadable.Clip(unreadable.Graphic(name), 200) + " " + kind + []string{"", ", optional", ", repeated", ""}[e.int(3)&3]
	if least != "" {
		shown += ": " + value(e, least) + " to " + value(e, most)
	}
	return shown
}

func isDecimal(e record) bool { return e.record(10).get(5) != nil || e.get(6) != nil && e.int(6) == 5 }
func isDate(e record) bool    { return e.record(10).get(6) != nil || e.get(6) != nil && e.int(6) == 6 }

// unit is how long one unit of a timestamp is; 0 of any other column.
func unit(e record) time.Duration {
	of := e.record(10).record(8).record(2)
	switch {
	case of.get(1) != nil || e.get(6) != nil && e.int(6) == 9:
		return time.Millisecond
	case of.get(2) != nil || e.get(6) != nil && e.int(6) == 10:
		return time.Microsecond
	case of.get(3) != nil:
		return time.Nanosecond
	}
	return 0
}

// numeric is the value in b, which stands in as many bytes as its type has.
func numeric(e record, b string) (v float64, ok bool) {
	var eight [8]byte
	copy(eight[:], b)
	bits := binary.LittleEndian.Uint64(eight[:])
	switch e.int(1) {
	case 0:
		return float64(bits & 1), true
	case 1:
		return float64(int32(bits)), true
	case 2:
		return float64(int64(bits)), true
	case 4:
		return float64(math.Float32frombits(uint32(bits))), true
	case 5:
		return math.Float64frombits(bits), true
	}
	return 0, false
}

func less(e record, a, b string) bool {
	if x, ok := numeric(e, a); ok {
		y, _ := numeric(e, b)
		return x < y
	}
	return a < b
}

func value(e record, b string) string {
	v, ok := numeric(e, b)
	switch {
	case !ok:
		return quoted([]byte(b))
	case e.int(1) == 2 && len(b) == 8:
		return number(e, int64(binary.LittleEndian.Uint64([]byte(b))))
	case e.int(1) == 1:
		return number(e, int64(v))
	case e.int(1) == 0:
		return fmt.Sprint(v == 1)
	}
	return fmt.Sprint(v)
}

func number(e record, v int64) string {
	switch {
	case isDate(e):
		return time.Unix(v*86400, 0).UTC().Format(time.DateOnly)
	case unit(e) == time.Nanosecond:
		return time.Unix(0, v).UTC().Format(time.RFC3339Nano)
	case unit(e) == time.Microsecond:
		return time.UnixMicro(v).UTC().Format(time.RFC3339Nano)
	case unit(e) == time.Millisecond:
		return time.UnixMilli(v).UTC().Format(time.RFC3339Nano)
	case isDecimal(e):
		return fmt.Sprintf("%de-%d", v, e.int(7))
	}
	return fmt.Sprint(v)
}

func quoted(b []byte) string {
	for _, r := range string(b[:min(len(b), 60)]) {
		if r == unicode.ReplacementChar && len(b) <= 60 || r < ' ' {
			return fmt.Sprintf("x'%x'", b[:min(len(b), 8)])
		}
	}
	return "'" + unreadable.Clip(unreadable.Graphic(string(b)), 60) + "'"
}

// record is a struct of Thrift. Its methods give zero for a field, by its number, that is not there or of another type.
type record []field

// A field has an int64, true for both booleans, []byte, []any or record.
type field struct {
	number int
	value  any
}

func (r record) get(number int) any {
	for _, f := range r {
		if f.number == number {
			return f.value
		}
	}
	return nil
}

func (r record) int(field int) int64     { v, _ := r.get(field).(int64); return v }
func (r record) text(field int) string   { v, _ := r.get(field).([]byte); return string(v) }
func (r record) list(field int) []any    { v, _ := r.get(field).([]any); return v }
func (r record) record(field int) record { v, _ := r.get(field).(record); return v }

// cursor reads Thrift's compact protocol. After a mistake it is bad and gives zeros.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n int64) []byte {
	if n < 0 || n > int64(len(c.b)) {
		c.bad, c.b = true, nil
		return nil
	}
	b := c.b[:n:n]
	c.b = c.b[n:]
	return b
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.bad, c.b = true, nil
		return 0
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) varint() int64 {
	v := c.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (c *cursor) byte() byte {
	if b := c.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (c *cursor) record(depth int) (r record) {
	for number := 0; !c.bad; {
		head := c.byte()
		if head == 0 {
			break
		}
		if head>>4 != 0 {
			number += int(head >> 4)
		} else {
			number = int(c.varint())
		}
		var value any = true
		if head&15 > 2 {
			value = c.value(head&15, depth)
		}
		r = append(r, field{number, value})
	}
	return r
}

func (c *cursor) value(kind byte, depth int) any {
	if depth > 12 {
		c.bad, c.b = true, nil
	}
	switch kind {
	case 1, 2, 3:
		return int64(c.byte())
	case 4, 5, 6:
		return c.varint()
	case 7:
		c.take(8) // no field that is read
		return nil
	case 8:
		return c.take(int64(min(c.uvarint(), math.MaxInt64)))
	case 9, 10:
		head := c.byte()
		n := uint64(head >> 4)
		if n == 15 {
			n = c.uvarint()
		}
		var all []any
		for i := uint64(0); i < n && !c.bad; i++ {
			all = append(all, c.value(head&15, depth+1))
		}
		return all
	case 12:
		return c.record(depth + 1)
	}
	c.bad, c.b = true, nil
	return nil
}
