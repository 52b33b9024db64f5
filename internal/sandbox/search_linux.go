//go:build !rooted

package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/readers"
)

// searched answers a search with all that it finds.
func (w *worker) searched(ctx context.Context, q *request, r *reply) error {
	var s query
	if !decode(q.data, &s) {
		return unix.EINVAL
	}
	if s.Wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Wait)
		defer cancel()
	}
	if !w.within(s.Walk.Root) {
		return unix.EACCES
	}
	judge, err := w.judge(s.Rules)
	if err != nil {
		return err
	}
	f, err := w.search(ctx, &s, judge)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	err = gob.NewEncoder(&b).Encode(f)
	r.data = b.Bytes()
	return err
}

// judge makes the policy of rules, once.
func (w *worker) judge(rules policy.Rules) (guardfs.Judge, error) {
	key := fmt.Sprintf("%+v", rules)
	w.tasks.mu.Lock()
	defer w.tasks.mu.Unlock()
	if j := w.judges[key]; j != nil {
		return j, nil
	}
	free, err := guardfs.New(guardfs.Options{Judge: policy.AllowAll{}, Calls: w.calls})
	if err != nil {
		return nil, err
	}
	j, err := rules.Policy(free) // which goes on asking free
	if err != nil {
		return nil, errors.Join(err, free.Close())
	}
	w.judges = map[string]guardfs.Judge{key: j}
	return j, nil
}

func (w *worker) search(ctx context.Context, s *query, judge guardfs.Judge) (*found, error) {
	fs, err := guardfs.New(guardfs.Options{Judge: judge, Calls: w.calls})
	if err != nil {
		return nil, err
	}
	defer fs.Close() //nolint:errcheck // nothing was written through it
	var come atomic.Int64
	g := grep.Walk{Spelled: s.Walk.Spelled, NoIgnore: s.Walk.NoIgnore, CrossMounts: s.Walk.Mounts,
		MaxDepth: s.Walk.MaxDepth, Excludes: s.Walk.Excludes, IgnoreCase: s.Walk.IgnoreCase,
		Home: s.Walk.Home, Encodings: s.Walk.Encodings, Come: &come}
	if s.Walk.Documents {
		g.Documents = unread{}
	}
	access := guardfs.Walk
	if s.Walk.File {
		access = guardfs.Read
	}
	h, err := fs.Resolve(s.Walk.Root, access)
	if err != nil {
		return nil, err
	}
	defer h.Close() //nolint:errcheck // nothing was written through it
	if h.Object().True != s.Walk.Root {
		return nil, unix.ENOENT // it was another thing a moment ago
	}
	if s.Walk.File {
		f, err := h.Open()
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // nothing was written through it
		g.File, g.Name = grep.GuardedFile(f), s.Walk.Root
	} else {
		d, err := h.Dir()
		if err != nil {
			return nil, err
		}
		defer d.Close() //nolint:errcheck // nothing was written through it
		g.Dir = grep.Guarded(d)
	}
	own, full := context.WithCancel(ctx)
	defer full()
	ctx = filled{own, ctx}
	f := &gathered{full: full}
	switch l := s.Lines; {
	case l != nil:
		q := grep.Query{Mode: l.Mode, Multiline: l.Multiline, Glob: l.Glob, Type: l.Type,
			Before: l.Around[0], After: l.Around[1], OnlyMatching: l.OnlyMatching, Limit: l.Limit, Offset: l.Offset,
			MaxColumns: l.MaxColumns, MaxFileBytes: l.MaxFileBytes, Encoding: l.Encoding}
		if s.Each {
			q.Found = func(h grep.FileHit, rows []grep.Row) { f.hit(hit{h, rows}) }
		}
		if s.Named {
			q.Named = func(name string) {
				f.note(len(name)+10, func() { f.Named = append(append(f.Named, name...), 0) })
			}
		}
		if q.Matcher, err = match.Compile(l.Pattern, l.Match); err == nil {
			f.Result, err = grep.Search(ctx, g, q)
		}
	case s.Names != nil:
		f.Files, err = grep.Files(ctx, g, *s.Names)
	default:
		err = unix.EINVAL
	}
	f.Come = come.Load()
	return &f.found, err
}

// unread are the documents of a search in a worker, which makes no text of them: they are counted.
type unread struct{}

func (unread) Is(f grep.File, head []byte, binary bool) bool {
	return readers.IsDocument(head, f, f.Info().Size, binary)
}

func (unread) Text(context.Context, string, grep.File) (*grep.DocumentText, error) {
	return nil, errors.New("no text is made here")
}

// gathered is an answer while it is being found, by many, until it is full.
type gathered struct {
	found
	mu   sync.Mutex
	size int
	full func()
}

// note calls put, which adds n bytes or so, if there is room.
func (g *gathered) note(n int, put func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.size += n; g.size > mostAnswer/4*3 {
		g.full()
		return
	}
	put()
}

func (g *gathered) hit(h hit) {
	n := 100
	for i := range h.Rows {
		n += len(h.Rows[i].Text) + len(h.Rows[i].Path) + 50
	}
	g.note(n, func() { g.Each = append(g.Each, h) })
}

// filled is a context that full has ended as its deadline would: all that was found so far is the
// answer, and says that there may be more.
type filled struct {
	context.Context
	of context.Context
}

func (c filled) Err() error {
	if c.Context.Err() == nil {
		return nil
	}
	return cmp.Or(c.of.Err(), context.DeadlineExceeded)
}
