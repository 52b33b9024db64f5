//go:build !rooted

package sandbox

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// query is a search as it travels.
type query struct {
	Rules policy.Rules
	Walk  walk
	Lines *lines // nil: by name
	Names *grep.GlobQuery
	Each  bool          // what is found is wanted file by file
	Named bool          // so are the names of all files that are looked at
	Wait  time.Duration // until the deadline; 0: none
}

// walk is the part of grep.Walk that travels.
type walk struct {
	Root       string // true name
	File       bool   // Root is one
	Spelled    string
	NoIgnore   bool
	Mounts     bool
	MaxDepth   int
	Excludes   []byte
	IgnoreCase *bool
	Home       string
	Documents  bool // which they are is told, but no text is made of them
	Encodings  map[string]string
}

// lines is the part of grep.Query that travels.
type lines struct {
	Pattern       string
	Match         match.Options
	Mode          grep.Mode
	Multiline     bool
	Glob, Type    []string
	Around        [2]int // lines before and after
	OnlyMatching  bool
	Limit, Offset int
	MaxColumns    int
	MaxFileBytes  int64
	Encoding      string
}

// found is the answer.
type found struct {
	Result *grep.Result
	Files  *grep.FilesResult
	Each   []hit
	Named  []byte // each with a 0 behind it
	Come   int64
}

type hit struct {
	File grep.FileHit
	Rows []grep.Row
}

// elsewhere lets the worker search, and judges its hits once more.
type elsewhere struct {
	s     *Session
	rules policy.Rules
	judge guardfs.Judge
}

// Elsewhere searches inside, under rules that are those of judge.
func (c calls) Elsewhere(rules policy.Rules, judge guardfs.Judge) grep.Elsewhere {
	return elsewhere{c.s, rules, judge}
}

func (e elsewhere) Search(ctx context.Context, w grep.Walk, q grep.Query) (*grep.Result, error) {
	if e.above(&w) {
		return grep.Search(ctx, w, q)
	}
	l := &lines{Mode: q.Mode, Multiline: q.Multiline, Glob: q.Glob, Type: q.Type,
		Around: [2]int{q.Before, q.After}, OnlyMatching: q.OnlyMatching, Limit: q.Limit, Offset: q.Offset,
		MaxColumns: q.MaxColumns, MaxFileBytes: q.MaxFileBytes, Encoding: q.Encoding}
	l.Pattern, l.Match = q.Matcher.Source()
	f, err := e.ask(ctx, w, query{Lines: l, Each: q.Found != nil, Named: q.Named != nil})
	if err != nil {
		return nil, err
	}
	for _, h := range f.Each {
		if q.Found != nil {
			q.Found(h.File, h.Rows)
		}
	}
	for name := range bytes.SplitAfterSeq(f.Named, []byte{0}) {
		if q.Named != nil && len(name) > 0 {
			q.Named(string(name[:len(name)-1]))
		}
	}
	return f.Result, nil
}

func (e elsewhere) Files(
	ctx context.Context, w grep.Walk, q grep.GlobQuery,
) (*grep.FilesResult, error) {
	if e.above(&w) {
		return grep.Files(ctx, w, q)
	}
	f, err := e.ask(ctx, w, query{Names: &q})
	if err != nil {
		return nil, err
	}
	return f.Files, nil
}

// above says whether a walk begins above the root, where the worker searches nothing: then it is
// made from here, which takes longer.
func (e elsewhere) above(w *grep.Walk) bool {
	if w.Dir == nil || leads(w.Dir.True(), e.s.Hello().Root) == "" {
		return false
	}
	w.Elsewhere = nil
	return true
}

func (e elsewhere) ask(ctx context.Context, w grep.Walk, q query) (*found, error) {
	q.Rules = e.rules
	q.Walk = walk{File: w.File != nil, Root: w.Name, Spelled: w.Spelled, NoIgnore: w.NoIgnore,
		Mounts: w.CrossMounts, MaxDepth: w.MaxDepth, Excludes: w.Excludes, IgnoreCase: w.IgnoreCase, Home: w.Home, Encodings: w.Encodings,
		Documents: w.Documents != nil}
	if w.Dir != nil {
		q.Walk.Root = w.Dir.True()
	}
	if at, ok := ctx.Deadline(); ok {
		q.Wait = max(time.Until(at), time.Nanosecond)
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(&q); err != nil {
		return nil, err
	}
	if b.Len() > chunk {
		return nil, fmt.Errorf("a search of %d bytes is too large to be told", b.Len())
	}
	p, err := e.s.live()
	if err != nil {
		return nil, err
	}
	// At the deadline the worker answers with what it has.
	wait, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			time.AfterFunc(grace, cancel)
		} else {
			cancel()
		}
	})()
	r, err := p.ask(&request{op: opSearch, data: b.Bytes()}, nil, wait)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case r.errno != 0 && r.bits&hasText != 0:
		return nil, fmt.Errorf("searching: %s", r.text)
	case r.errno != 0:
		return nil, &guardfs.PathError{Op: "search", Path: q.Walk.Root, Err: unix.Errno(r.errno)}
	}
	f := &found{}
	if !fits(r.data) || !decode(r.data, f) || (f.Result != nil) != (q.Lines != nil) || (f.Files != nil) != (q.Names != nil) || !e.check(f, &q.Walk) {
		return nil, p.nonsense()
	}
	if w.Come != nil {
		w.Come.Add(f.Come)
	}
	return f, nil
}

// grace is how long after the deadline an answer may come.
const grace = 3 * time.Second

// check lets no name pass that is not below the root, and takes out names that the rules refuse: the
// worker holds them too, so that this is nothing as a rule. ok is false for names that no walk
// gives.
func (e elsewhere) check(f *found, w *walk) (ok bool) {
	ok = true
	root := w.Root
	if w.File {
		root = path.Dir(root)
	}
	seen := map[string]bool{}
	may := func(name string) bool {
		allowed, known := seen[name]
		if !known {
			full := name
			if !strings.HasPrefix(name, "/") {
				full = path.Join(root, name)
			}
			if full != path.Clean(full) || !absolute(full) || full == root || w.File && full != w.Root ||
				root != "/" && !strings.HasPrefix(full, root+"/") ||
				!strings.HasSuffix(full, name) {
				ok = false
			}
			o := guardfs.Object{Spelled: full, True: full}
			o.Info = guardfs.Info{Kind: guardfs.KindFile, Links: 1}
			allowed = ok && e.judge.Judge(o, guardfs.Read) == nil
			seen[name] = allowed
		}
		return allowed
	}
	count := func(counts ...int) { ok = ok && slices.Min(counts) >= 0 }
	files := func(all []grep.FileHit) []grep.FileHit {
		kept := all[:0]
		for _, h := range all {
			count(int(h.Size), h.Lines, h.Matches)
			if may(h.Path) {
				kept = append(kept, h)
			}
		}
		return kept
	}
	rows := func(all []grep.Row) []grep.Row {
		kept := all[:0]
		for _, r := range all {
			count(r.Line, r.Column, r.From, r.Bytes)
			ok = ok && r.Place == nil
			if may(r.Path) {
				kept = append(kept, r)
			}
		}
		return kept
	}
	if r := f.Result; r != nil {
		r.Files, r.Rows = files(r.Files), rows(r.Rows)
		ok = ok && r.Root == root
		count(r.Totals.Files, r.Totals.Lines, r.Totals.Matches, r.Totals.Rows, r.Totals.Scanned)
	}
	if f.Files != nil {
		f.Files.Files = files(f.Files.Files)
		ok = ok && f.Files.Root == root
		count(f.Files.Total)
	}
	for i := range f.Each {
		h := &f.Each[i]
		for _, r := range h.Rows {
			count(r.Line, r.Column, r.From, r.Bytes)
			ok = ok && r.Place == nil && (r.Path == "" || r.Path == h.File.Path)
		}
	}
	f.Each = slices.DeleteFunc(f.Each, func(h hit) bool {
		return len(files([]grep.FileHit{h.File})) == 0
	})
	named := f.Named[:0]
	for name := range bytes.SplitAfterSeq(f.Named, []byte{0}) {
		if len(name) > 0 && may(string(name[:len(name)-1])) {
			named = append(named, name...)
		}
	}
	f.Named = named
	return ok
}

// fits says that an answer has no more in it than a worker of ours puts in. One byte can stand for
// a row, which takes 80 here: they are counted before there is room for them.
func fits(answer []byte) bool {
	if len(answer) < 64<<10 {
		return true
	}
	type files = []struct{ ModTime nothing }
	type rows = []struct{ Context bool }
	var first struct {
		Result struct {
			Files files
			Rows  rows
		}
		Files struct{ Files files }
		Each  []struct{ File struct{ ModTime nothing } }
		Named []byte
	}
	var second struct{ Each []struct{ Rows rows } }
	const most = mostAnswer / 50 // see gathered
	if !decode(answer, &first) {
		return false
	}
	n := len(first.Result.Files) + len(first.Result.Rows) + len(first.Files.Files) +
		len(first.Each) + bytes.Count(first.Named, []byte{0})/5
	if n > most || !decode(answer, &second) {
		return false
	}
	for _, h := range second.Each {
		n += len(h.Rows)
	}
	return n <= most
}

func decode(b []byte, into any) bool {
	return gob.NewDecoder(bytes.NewReader(b)).Decode(into) == nil
}

// nothing takes no room, for any value that is decoded into it.
type nothing struct{}

func (*nothing) GobDecode([]byte) error { return nil }
