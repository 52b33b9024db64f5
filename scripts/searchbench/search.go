package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"sync"

	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/guardfs"
)

// anything lets the bench see the whole tree, as ripgrep does.
type anything struct{}

func (anything) Judge(guardfs.Object, guardfs.Access) error { return nil }
func (anything) Dir(string, ...string) guardfs.DirVerdict   { return guardfs.DirVerdict{All: true} }

// task is one search.
type task struct {
	files     bool // list, no pattern
	pattern   string
	fold      bool
	multiline bool
	mode      grep.Mode
	context   int
	noIgnore  bool
	workers   int
	index     *grep.Index
}

func (t task) query() (grep.Query, error) {
	m, err := match.Compile(t.pattern, match.Options{IgnoreCase: t.fold, Multiline: t.multiline})
	return grep.Query{Matcher: m, Multiline: t.multiline, Mode: t.mode, Before: t.context, After: t.context, Index: t.index}, err
}

// searchOnce is the process that is measured cold.
func searchOnce(args []string) error {
	var t task
	f := flag.NewFlagSet("search", flag.ContinueOnError)
	f.BoolVar(&t.files, "files", false, "list files; there is no pattern")
	f.BoolVar(&t.fold, "i", false, "ignore case")
	f.BoolVar(&t.multiline, "U", false, "matches may span lines")
	f.Bool("l", true, "print files with matches")
	count := f.Bool("c", false, "print counts of lines")
	lines := f.Bool("n", false, "print lines")
	f.IntVar(&t.context, "C", 0, "lines of context, with -n")
	f.BoolVar(&t.noIgnore, "no-ignore", false, "no ignore rules hold")
	f.IntVar(&t.workers, "j", 0, "workers")
	repeat := f.Int("repeat", 1, "search so often, for profiles")
	profile := f.String("cpuprofile", "", "write a profile")
	if err := f.Parse(args); err != nil {
		return err
	}
	rest := f.Args()
	if !t.files && len(rest) > 0 {
		t.pattern, rest = rest[0], rest[1:]
	}
	if len(rest) != 1 {
		return fmt.Errorf("want one directory or file, have %q", rest)
	}
	if *count {
		t.mode = grep.Count
	} else if *lines {
		t.mode = grep.Content
	}
	if *profile != "" {
		p, err := os.Create(*profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(p); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	debug.SetGCPercent(200) // as the program has it for a single call
	fs, err := guardfs.New(guardfs.Options{Judge: anything{}})
	if err != nil {
		return err
	}
	var r *grep.Result
	for range *repeat {
		if r, err = t.run(fs, rest[0], os.Stdout); err != nil {
			return err
		}
	}
	return show(os.Stdout, r)
}

// run searches root, a directory or a file. A list of files goes to out, and there is no result.
func (t task) run(fs *guardfs.FS, root string, out io.Writer) (*grep.Result, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	h, err := fs.Resolve(root, guardfs.Read)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	w := grep.Walk{NoIgnore: t.noIgnore, Workers: t.workers}
	if h.Object().Info.Kind == guardfs.KindDir {
		d, err := h.Dir()
		if err != nil {
			return nil, err
		}
		w.Dir = grep.Guarded(d)
		defer w.Dir.Close()
	} else {
		f, err := h.Open()
		if err != nil {
			return nil, err
		}
		w.File, w.Name = grep.GuardedFile(f), h.Object().True
		defer w.File.Close()
	}
	if t.files {
		return new(grep.Result), list(w, out)
	}
	q, err := t.query()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	r, err := grep.Search(ctx, w, q)
	if err == nil && r.Partial {
		err = fmt.Errorf("`%s` in %s did not end within %v", t.pattern, root, limit)
	}
	return r, err
}

// list writes the paths of all files, in no order, as ripgrep does.
func list(w grep.Walk, to io.Writer) error {
	type page struct {
		text []byte
		_    [40]byte // a cache line each
	}
	var pages [16]page
	var mu sync.Mutex
	root := w.Dir.True() + "/"
	_, err := grep.Each(context.Background(), w, func(k int, rel, name string) {
		p := &pages[k]
		p.text = append(append(append(append(p.text, root...), rel...), name...), '\n')
		if len(p.text) > 32<<10 {
			mu.Lock()
			to.Write(p.text)
			mu.Unlock()
			p.text = p.text[:0]
		}
	})
	for i := range pages {
		if _, e := to.Write(pages[i].text); err == nil {
			err = e
		}
	}
	return err
}

func show(to io.Writer, r *grep.Result) error {
	w := bufio.NewWriterSize(to, 64<<10)
	for _, f := range r.Files {
		w.WriteString(f.Path)
		if f.Lines > 0 {
			fmt.Fprintf(w, ":%d", f.Lines)
		}
		w.WriteByte('\n')
	}
	for _, row := range r.Rows {
		sep := ":"
		if row.Context {
			sep = "-"
		}
		fmt.Fprintf(w, "%s%s%d%s%s\n", row.Path, sep, row.Line, sep, row.Text)
	}
	return w.Flush()
}
