package readers

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
)

// Of an ELF file's tables; debug/elf believes a hostile file how long its string tables are, and holds them.
const (
	elfSections = 4096
	elfNames    = 256 << 10 // bytes of section names
	elfDynamic  = 64 << 10  // bytes of the dynamic section
)

// elfSection is what a section header says of where the section is.
type elfSection struct {
	name, kind, link uint32
	offset, size     uint64
}

// describeELF reads the header, the libraries the file needs and its sections.
func (b *Binary) describeELF(f *file) {
	h := f.head
	if len(h) < 64 {
		b.Summary = "ELF file, truncated: it ends within its header"
		return
	}
	var order binary.ByteOrder = binary.LittleEndian
	if h[5] == 2 {
		order = binary.BigEndian
	}
	kind := map[uint16]string{1: "object file", 2: "executable", 3: "shared object or executable", 4: "core dump"}[order.Uint16(h[16:])]
	if kind == "" {
		kind = "file"
	}
	wide, bits := h[4] == 2, "32-bit"
	if wide {
		bits = "64-bit"
	}
	machine := strings.TrimPrefix(elf.Machine(order.Uint16(h[18:])).String(), "EM_")
	b.Summary = fmt.Sprintf("ELF %s, %s, %s, %s", kind, bits, machine, strings.ToLower(strings.TrimSuffix(order.String(), "Endian"))+"-endian")
	sections, names, whole := elfTable(f, order, wide)
	libraries := elfLibraries(f, order, wide, sections)
	for _, l := range libraries {
		b.entry(func() string { return "needs " + graphic(l) })
	}
	for _, s := range sections {
		if s.kind == uint32(elf.SHT_NULL) {
			continue
		}
		if s.kind != uint32(elf.SHT_NOBITS) && (s.offset > uint64(b.Bytes) || s.size > uint64(b.Bytes)-s.offset) {
			whole = false
		}
		b.entry(func() string { return entryLine(cString(names, uint64(s.name)), int64(min(s.size, 1<<62))) })
	}
	if n := b.Entries - len(libraries); n > 0 {
		b.Summary += ", " + plural(n, "section")
	}
	if len(libraries) > 0 {
		b.Summary += ", " + strings.Replace(plural(len(libraries), "library"), "librarys", "libraries", 1)
	}
	if !whole {
		b.Summary += "; truncated: its sections reach beyond its end"
	}
	b.listedAll()
}

// elfTable reads the section headers and their names. whole is false where the file ends before them.
func elfTable(f *file, order binary.ByteOrder, wide bool) (sections []elfSection, names []byte, whole bool) {
	h := f.head
	at, size, n, index := uint64(order.Uint32(h[0x20:])), int(order.Uint16(h[0x2e:])), int(order.Uint16(h[0x30:])), int(order.Uint16(h[0x32:]))
	least := 40
	if wide {
		at, size, n, index = order.Uint64(h[0x28:]), int(order.Uint16(h[0x3a:])), int(order.Uint16(h[0x3c:])), int(order.Uint16(h[0x3e:]))
		least = 64
	}
	if at == 0 || n == 0 || size < least || size > 1024 {
		return nil, nil, true // it has none, as a core dump, or more than a header can say
	}
	table, ok := f.piece(at, uint64(size)*uint64(min(n, elfSections)))
	for i := 0; (i+1)*size <= len(table); i++ {
		e := table[i*size:]
		s := elfSection{name: order.Uint32(e), kind: order.Uint32(e[4:])}
		if wide {
			s.offset, s.size, s.link = order.Uint64(e[24:]), order.Uint64(e[32:]), order.Uint32(e[40:])
		} else {
			s.offset, s.size, s.link = uint64(order.Uint32(e[16:])), uint64(order.Uint32(e[20:])), order.Uint32(e[24:])
		}
		sections = append(sections, s)
	}
	if index < len(sections) {
		names, _ = f.piece(sections[index].offset, min(sections[index].size, elfNames))
	}
	return sections, names, ok
}

// elfLibraries lists the DT_NEEDED entries of the dynamic section.
func elfLibraries(f *file, order binary.ByteOrder, wide bool, sections []elfSection) (libraries []string) {
	for _, s := range sections {
		if s.kind != uint32(elf.SHT_DYNAMIC) || int(s.link) >= len(sections) {
			continue
		}
		table, _ := f.piece(s.offset, min(s.size, elfDynamic))
		names := sections[s.link]
		width := 4
		if wide {
			width = 8
		}
		for ; len(table) >= 2*width && len(libraries) < listed/2; table = table[2*width:] {
			tag, value := uint64(order.Uint32(table)), uint64(order.Uint32(table[width:]))
			if wide {
				tag, value = order.Uint64(table), order.Uint64(table[width:])
			}
			if tag == uint64(elf.DT_NULL) {
				break
			}
			if tag == uint64(elf.DT_NEEDED) && value < names.size {
				name, _ := f.piece(names.offset+value, 256)
				libraries = append(libraries, cString(name, 0))
			}
		}
		break
	}
	return libraries
}

// piece reads some bytes of the file; not ok when it ends before them.
func (f *file) piece(at, n uint64) (b []byte, ok bool) {
	if at > 1<<62 || n > 1<<24 {
		return nil, false
	}
	b = make([]byte, n)
	m, err := readAt(f.R, b, int64(at))
	return b[:m], err == nil && m == len(b)
}

// cString is the text from an offset to the next NUL.
func cString(b []byte, at uint64) string {
	if at >= uint64(len(b)) {
		return "?"
	}
	s, _, _ := bytes.Cut(b[at:], []byte{0})
	return string(s)
}
