package index

import (
	"bytes"
	"io"
	"time"
	"unicode/utf8"

	"moltisfs/grep/tree"
	"moltisfs/internal/text"
)

// fileReader reads files for their filters, one at a time.
type fileReader struct {
	buf [256 << 10]byte
	set trigramSet
}

// read fills in what there is to know of f. A file that cannot be opened or read stays unknown: it
// is opened by each search, which says why it could not.
func (r *fileReader) read(h tree.Dir, f *File) {
	began := time.Now()
	file, err := h.OpenFile(f.Name)
	if err != nil {
		return
	}
	defer file.Close()
	info := file.Info()
	n := File{Name: f.Name, Kind: f.Kind, Ignored: f.Ignored, seq: f.seq, known: true, Verify: f.Verify || info.Links != 1}
	n.stamp = stampOf(info)
	n.settled = info.ChangeTime.Add(settledAfter).Before(began) && info.ModTime.Add(settledAfter).Before(began)
	if r.content(file, info.Size, &n) {
		*f = n
	}
}

// content reads one file; false when it could not, or the file changed meanwhile.
func (r *fileReader) content(file tree.File, size int64, f *File) bool {
	r.set.reset()
	f.plain = true
	var tail [utf8.UTFMax]byte // of a character that a buffer cuts
	cut := 0
	total := int64(0)
	lined, line := true, 0 // line: bytes since the last line break
	for first := true; ; first = false {
		copy(r.buf[:], tail[:cut])
		n, err := io.ReadFull(file, r.buf[cut:])
		eof := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !eof {
			return false
		}
		total += int64(n)
		b := r.buf[:cut+n]
		if first {
			if f.Empty = n == 0; f.Empty {
				return size == 0
			}
			switch text.Sniff(b) {
			case text.Plain:
			case text.Binary: // a search looks at its beginning
				r.set.add(b)
				f.Binary, f.filter = true, r.set.filter()
				return true
			default:
				return true
			}
			if size > maxFiltered {
				return true
			}
		}
		lined = lined && line <= maxWhole
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			line = 0
		}
		line += n
		r.set.add(r.buf[cut : cut+n])
		cut = 0
		if !eof {
			for cut < utf8.UTFMax-1 && cut < len(b) && !utf8.RuneStart(b[len(b)-1-cut]) {
				cut++
			}
			cut = copy(tail[:], b[len(b)-1-min(cut, len(b)-1):])
			b = b[:len(b)-cut]
		}
		f.plain = f.plain && text.IsPlainUTF8(b)
		if eof {
			break
		}
		if total > maxFiltered {
			return false // it grows while it is read
		}
	}
	if total != size {
		return false
	}
	if lined && line <= maxWhole {
		f.filter = r.set.filter()
	}
	return true
}

// fill reads the files of a new tree. What was taken over from an older one is read again where
// stat tells a difference, or could not tell one.
func (t *Tree) fill(root tree.Dir) error {
	var dirs []*Dir
	t.each(func(d *Dir) { dirs = append(dirs, d) })
	readers := make(chan *fileReader, builders())
	for range cap(readers) {
		readers <- new(fileReader)
	}
	inParallel(builders(), dirs, func(d *Dir) {
		t.index.drain() //nolint:errcheck // the first use sees it
		if t.index.ctx.Err() != nil || t.bytes.Load() > t.index.o.MaxBytes || d.Err != nil {
			return
		}
		h, err := t.open(root, d)
		if err != nil {
			return // reported as well
		}
		if h != root {
			defer h.Close()
		}
		r := <-readers
		defer func() { readers <- r }()
		for i := range d.Files {
			f := &d.Files[i]
			if f.Kind != tree.KindFile || f.Ignored {
				continue
			}
			if f.known && f.settled {
				if i, err := h.Stat(f.Name); err == nil && stampOf(i) == f.stamp {
					continue
				}
			}
			t.bytes.Add(-f.cost())
			f.known, f.filter = false, nil
			r.read(h, f)
			t.bytes.Add(f.cost())
		}
	})
	if t.bytes.Load() > t.index.o.MaxBytes {
		return errTooLarge
	}
	return t.index.ctx.Err()
}

// refill reads the files that changed since they were last read, in the background.
func (t *Tree) refill() {
	defer func() {
		t.mu.Lock()
		t.filling = false
		t.mu.Unlock()
	}()
	root, err := t.index.o.Open(t.key.Root)
	if err != nil {
		return
	}
	defer root.Close()
	if l, ok := root.(Located); !ok || l.Identity() != t.identity {
		return
	}
	type todo struct {
		dir   *Dir
		files []File
	}
	var all []todo
	t.mu.Lock()
	t.each(func(d *Dir) {
		var files []File
		for i := range d.Files {
			if d.Files[i].Missing() {
				files = append(files, d.Files[i])
			}
		}
		if files != nil {
			all = append(all, todo{d, files})
		}
	})
	t.mu.Unlock()
	r := new(fileReader)
	for _, x := range all {
		if t.index.ctx.Err() != nil {
			return
		}
		h, err := t.open(root, x.dir)
		if err != nil {
			continue
		}
		for i := range x.files {
			r.read(h, &x.files[i])
		}
		if h != root {
			h.Close()
		}
		t.install(x.dir, x.files)
	}
}

// install takes over what was read, but for what changed again meanwhile.
func (t *Tree) install(d *Dir, read []File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if d.dead || t.retired {
		return
	}
	at := map[string]*File{}
	for i := range d.Files {
		at[d.Files[i].Name] = &d.Files[i]
	}
	for _, n := range read {
		f := at[n.Name]
		if !n.known || f == nil || f.seq != n.seq || f.known || f.Kind != n.Kind {
			continue
		}
		t.bytes.Add(n.cost())
		ignored := f.Ignored
		*f = n
		f.Ignored = ignored
	}
}

// Missing: the file should be read for its filter.
func (f *File) Missing() bool { return f.Kind == tree.KindFile && !f.Ignored && !f.known }
