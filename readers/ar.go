package readers

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// describeAr lists the members of an ar archive: a static library, a Debian package. Long names are written as System V or BSD have them.
func (b *Binary) describeAr(ctx context.Context, f *file) error {
	var long []byte
	total, cut := int64(0), ""
	for at := int64(8); at < b.Bytes; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if b.Entries == b.entries.reach() {
			b.EntriesCut = true
			break
		}
		h, ok := f.piece(uint64(at), 60)
		if !ok || string(h[58:60]) != "`\n" {
			cut = "; damaged or truncated"
			break
		}
		size, err := strconv.ParseInt(strings.TrimSpace(string(h[48:58])), 10, 64)
		if err != nil || size < 0 {
			cut = "; damaged or truncated"
			break
		}
		name := strings.TrimRight(string(h[:16]), " ")
		body := at + 60
		if at = body + size + size&1; body+size > b.Bytes {
			cut = "; truncated"
		}
		shown := size
		switch {
		case name == "/" || name == "/SYM64/" || strings.HasPrefix(name, "__.SYMDEF"):
			continue // the index of symbols
		case name == "//":
			long, _ = f.piece(uint64(body), uint64(min(size, 1<<20)))
			continue
		case strings.HasPrefix(name, "#1/"):
			n, _ := strconv.Atoi(name[3:])
			raw, _ := f.piece(uint64(body), uint64(min(max(n, 0), 4096)))
			name, shown = cString(append(raw, 0), 0), max(size-int64(n), 0)
			if strings.HasPrefix(name, "__.SYMDEF") {
				continue
			}
		case strings.HasPrefix(name, "/"):
			if i, err := strconv.Atoi(name[1:]); err == nil && i >= 0 && i < len(long) {
				name, _, _ = strings.Cut(string(long[i:]), "\n")
			}
		}
		name = strings.TrimSuffix(name, "/")
		total += shown
		b.entry(func() string { return entryLine(name, shown) })
	}
	b.EntriesCut = b.EntriesCut || cut != ""
	b.listedAll()
	b.Summary = strings.Replace(fmt.Sprintf("ar archive, %s, %s%s", plural(b.Entries, "entry"), bytesText(total), cut), "entrys", "entries", 1)
	return nil
}
