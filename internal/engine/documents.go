package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"time"

	"moltisfs/grep"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/internal/share"
	"moltisfs/internal/texts"
	"moltisfs/readers"
)

// documents are the files that are converted to be read or searched. Their texts are kept, so that the next search costs as much as one of text.
type documents struct {
	texts texts.Cache
	turns *share.Pool // of conversions for a search: each holds its file, and one principal has half of them
	reads texts.Flights[contentKey, readers.Content]
}

// converting is the longest time of a conversion for a search, which goes on when the search's is over.
const converting = 2 * time.Minute

type contentKey struct {
	path, hash string
	readers.Options
}

func (d *documents) open(dir string) {
	d.texts.Dir, d.turns = dir, share.New(4)
}

// Content reads the source with the options o, as Read shows it. Callers that ask for the same of a document or picture at the same time share one
// conversion and its result, which they must not change.
func (s *Source) Content(ctx context.Context, o readers.Options) (readers.Content, error) {
	e := s.c.Engine
	read := func() (readers.Content, error) {
		may := func(member string) error { return s.c.member(s.Path, member) }
		return e.readers.Read(ctx, readers.Source{R: s, Size: s.Info.Size, Name: s.Path, Denied: may, Beside: s.c.beside(s.Path)}, o)
	}
	head := s.held[:min(len(s.held), 4096)]
	if s.held == nil {
		head = make([]byte, 4096)
		n, _ := s.ReadAt(head, 0) // an error comes again
		head = head[:n]
	}
	// A file in an archive is nobody's but his who may see it.
	if !readers.IsConverted(head, s, s.Info.Size) || o.Pages != "" && !bytes.Contains(head, []byte("%PDF-")) {
		return read()
	}
	hash, err := s.Hash(ctx)
	if err != nil {
		return nil, err
	}
	return e.documents.reads.Do(ctx, contentKey{s.Path, hash, o}, false, read)
}

// beside opens files that stand beside the one at path, as a Read of them would.
func (c *Call) beside(path string) func(suffix string) (io.ReadCloser, error) {
	return func(suffix string) (io.ReadCloser, error) {
		h, err := c.fs.Resolve(path+suffix, guardfs.Read)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		defer h.Close()
		return h.Open()
	}
}

// member judges a file in an archive, as if it were unpacked where the archive is. That nothing allows such a path says nothing: the archive is allowed.
func (c *Call) member(archive, name string) error {
	full := path.Join(archive, name)
	err := c.judge.Judge(guardfs.Object{Spelled: full, True: full, Info: guardfs.Info{Kind: guardfs.KindFile, Links: 1}}, guardfs.Read)
	var no *policy.Denied
	if errors.As(err, &no) && no.Rule == "allow_paths" {
		return nil
	}
	return err
}

// searched lets a search of the call have the texts of documents.
type searched struct{ c *Call }

func (searched) Is(f grep.File, head []byte, binary bool) bool {
	return readers.IsDocument(head, f, f.Info().Size, binary)
}

// kept is a text as it is kept: this as a line of JSON, and the text behind it. Why and Do are set where there is none.
type kept struct {
	Places []readers.Place `json:"places,omitempty"`
	Cut    bool            `json:"cut,omitempty"`
	Why    string          `json:"why,omitempty"`
	Do     string          `json:"do,omitempty"`
}

// noText is a document that has no text to be searched.
type noText struct{ why, do string }

func (e *noText) Error() string { return e.why }
func (e *noText) Hint() string  { return e.do }

// Text gives the text of a document.
func (s searched) Text(ctx context.Context, name string, f grep.File) (*grep.DocumentText, error) {
	e, file, size := s.c.Engine, grep.Handle(f), f.Info().Size
	if file == nil || size > readers.MaxDocument {
		return nil, &readers.TooLarge{Size: size, Max: readers.MaxDocument, What: "document"}
	}
	hash, err := e.sums.of(ctx, file, e.now)
	if err != nil {
		return nil, err
	}
	plain := e.cfg.Checkpoint.EncryptTo == "" && !e.excluded(name)
	b, err := e.documents.texts.Get(ctx, "2 "+hash, plain, func() ([]byte, bool, error) {
		who := share.Of(ctx)
		if err := e.documents.turns.Take(ctx, who, 1); err != nil {
			return nil, false, err
		}
		defer e.documents.turns.Give(who, 1)
		content, err := io.ReadAll(io.NewSectionReader(file, 0, size))
		if err == nil && HashOf(content) != hash {
			err = &noText{"the file changed while it was read", "Search it again."}
		}
		if err != nil {
			return nil, false, err
		}
		on, cancel := context.WithTimeout(context.WithoutCancel(ctx), converting)
		defer cancel()
		defer context.AfterFunc(e.calls.closing, cancel)()
		return e.textOf(on, content)
	})
	if err != nil {
		return nil, err
	}
	head, text, _ := bytes.Cut(b, []byte{'\n'})
	var k kept
	if err := json.Unmarshal(head, &k); err != nil {
		return nil, fmt.Errorf("taking a kept text apart: %w", err)
	}
	if k.Why != "" {
		return nil, &noText{k.Why, k.Do}
	}
	return s.shown(name, text, &k), nil
}

// shown is the kept text of the document name, of which the files of an archive that policy hides are left out and counted.
func (s searched) shown(name string, text []byte, k *kept) *grep.DocumentText {
	out := &grep.DocumentText{Cut: k.Cut}
	hides := map[string]bool{}
	var places []readers.Place
	var starts []int // the line of each
	line := 1
	for _, p := range k.Places {
		part := text[:p.Bytes]
		text = text[p.Bytes:]
		if _, known := hides[p.Pages]; p.Member && !known {
			if hides[p.Pages] = s.c.member(name, p.Pages) != nil; hides[p.Pages] {
				out.Denied++
			}
		}
		if p.Member && hides[p.Pages] {
			continue
		}
		places, starts = append(places, p), append(starts, line)
		line += bytes.Count(part, []byte{'\n'})
		out.Content = append(out.Content, part...)
	}
	out.Place = func(line int) grep.Place {
		i := sort.SearchInts(starts, line+1) - 1
		if i < 0 {
			return grep.Place{}
		}
		p := places[i]
		if p.Lines {
			p.Offset += line - starts[i]
			if p.Name != "" {
				p.Name += fmt.Sprintf(", line %d", p.Offset)
			}
		}
		return grep.Place{Name: p.Name, Pages: p.Pages, Offset: p.Offset}
	}
	return out
}

// textOf makes the text of a document as it is kept. That there is none is kept too, unless it may be another time.
func (e *Engine) textOf(ctx context.Context, content []byte) (b []byte, keep bool, err error) {
	p, err := e.readers.Passages(ctx, readers.Source{R: bytes.NewReader(content), Size: int64(len(content))})
	var k kept
	var hint readers.Hinter
	switch {
	case err == nil && len(p.Places) == 0:
		k = kept{Why: "there is no text in it", Do: "Look at it with Read."}
	case err == nil:
		k = kept{Places: p.Places, Cut: p.Cut}
	case errors.As(err, new(*readers.Encrypted)), errors.As(err, new(*readers.Damaged)):
		errors.As(err, &hint)
		k = kept{Why: err.Error(), Do: hint.Hint()}
	default:
		return nil, false, err
	}
	if b, err = json.Marshal(&k); err != nil {
		return nil, false, err
	}
	b = append(b, '\n')
	if k.Why == "" {
		b = append(b, p.Text...)
		keep = !p.Late
	}
	return b, keep || k.Why != "", nil
}
