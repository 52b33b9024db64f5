// Package parquet tells what is in a Parquet file, from its footer: how many rows it has, and its columns with their types. It unpacks nothing. See
// parquet.apache.org.
package parquet

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"moltisfs/readers/unreadable"
)

const (
	footerBytes = 4 << 20
	maxDepth    = 12
)

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
	var open []group // around the column that is read
	for i, v := range meta.list(2) {
		e, _ := v.(record)
		n := len(open)
		if n > maxDepth {
			return summary, errors.New("its columns nest too deep")
		}
		if children := e.int(5); children > 0 {
			if i > 0 { // the first is the whole row
				open = append(open, group{e.text(4), children})
			}
			continue
		}
		row(func() string { return describe(e, open) })
		for ; n > 0; n-- {
			if open[n-1].left--; open[n-1].left > 0 {
				break
			}
			open = open[:n-1]
		}
	}
	return summary, nil
}

// group is a group of columns, of which so many are left.
type group struct {
	name string
	left int64
}

var types = []string{"boolean", "int32", "int64", "int96", "float", "double", "byte_array", "fixed_len_byte_array"}

// logical are the names of logical types, by their number in LogicalType; and converted those of the older ConvertedType.
var (
	logical   = map[int]string{1: "string", 4: "string", 5: "decimal", 6: "date", 7: "time", 8: "timestamp", 12: "json", 14: "uuid"}
	converted = map[int64]string{0: "string", 4: "string", 5: "decimal", 6: "date", 7: "time", 8: "time", 9: "timestamp", 10: "timestamp", 19: "json"}
)

// describe shows the column e in its groups: "a.name string, optional".
func describe(e record, in []group) string {
	kind := "?"
	if t := e.int(1); t >= 0 && int(t) < len(types) {
		kind = types[t]
	}
	if e.get(6) != nil {
		kind = cmp.Or(converted[e.int(6)], kind)
	}
	for _, f := range e.record(10) {
		kind = cmp.Or(logical[f.number], kind)
	}
	name := e.text(4)
	for _, g := range slices.Backward(in) {
		name = g.name + "." + name
	}
	return unreadable.Clip(unreadable.Graphic(name), 200) + " " + kind + []string{"", ", optional", ", repeated", ""}[e.int(3)&3]
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
	if depth > maxDepth {
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
