// Command searchbench runs one search as a process of its own, or many times in one process, for scripts/bench-search.sh.
// It prints as ripgrep does, so that the answers can be compared as well as the times.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/guardfs"
)

// anything lets the bench see the whole tree, as ripgrep does.
type anything struct{}

func (anything) Judge(guardfs.Object, guardfs.Access) error { return nil }
func (anything) Dir(string) guardfs.DirVerdict              { return guardfs.DirVerdict{All: true} }

var (
	ignoreCase = flag.Bool("i", false, "ignore case")
	_          = flag.Bool("l", false, "files with matches (the default)")
	count      = flag.Bool("c", false, "count lines")
	content    = flag.Bool("n", false, "lines")
	context_   = flag.Int("C", 0, "lines of context, with -n")
	multiline  = flag.Bool("U", false, "multiline")
	files      = flag.Bool("files", false, "list files; no pattern")
	noIgnore   = flag.Bool("no-ignore", false, "no ignore rules")
	limit      = flag.Int("limit", 0, "rows or files to return")
	workers    = flag.Int("j", 0, "workers")
	repeat     = flag.Int("repeat", 0, "run so often in this process and print the times in ms")
	glob       = flag.String("g", "", "glob")
	cpuprofile = flag.String("cpuprofile", "", "write a profile")
	verbose    = flag.Bool("v", false, "print totals and what was skipped")
)

func main() {
	flag.Parse()
	debug.SetGCPercent(400)
	if err := run(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "searchbench:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if *cpuprofile != "" {
		f, err := os.Create(*cpuprofile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var q grep.Query
	if !*files {
		m, err := match.Compile(args[0], match.Options{IgnoreCase: *ignoreCase, Multiline: *multiline})
		if err != nil {
			return err
		}
		q = grep.Query{Matcher: m, Multiline: *multiline, Before: *context_, After: *context_, Limit: *limit}
		if *glob != "" {
			q.Glob = []string{*glob}
		}
		switch {
		case *count:
			q.Mode = grep.Count
		case *content:
			q.Mode = grep.Content
		}
		args = args[1:]
	}
	root, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	fs, err := guardfs.New(guardfs.Options{Judge: anything{}})
	if err != nil {
		return err
	}
	once := func() (*grep.Result, error) { return search(fs, root, q) }
	if *repeat == 0 {
		r, err := once()
		if err != nil {
			return err
		}
		print(r)
		return nil
	}
	var times []float64
	for range *repeat {
		t := time.Now()
		if _, err := once(); err != nil {
			return err
		}
		times = append(times, float64(time.Since(t).Microseconds())/1000)
	}
	slices.Sort(times)
	fmt.Printf("%.3f\n", times[len(times)/2])
	return nil
}

func search(fs *guardfs.FS, root string, q grep.Query) (*grep.Result, error) {
	h, err := fs.Resolve(root, guardfs.Read)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	w := grep.Walk{NoIgnore: *noIgnore, Workers: *workers}
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
	if *files {
		r, err := grep.Files(context.Background(), w, grep.GlobQuery{Pattern: *glob, Limit: *limit})
		if err != nil {
			return nil, err
		}
		return &grep.Result{Files: r.Files, Skipped: r.Skipped}, nil
	}
	return grep.Search(context.Background(), w, q)
}

func print(r *grep.Result) {
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
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
		fmt.Fprintf(w, "%s%s%d%s%s\n", row.Path, sep, row.Line, sep, strings.TrimSuffix(row.Text, "\n"))
	}
	if *verbose {
		fmt.Fprintf(os.Stderr, "%+v partial=%v truncated=%v\n", r.Totals, r.Partial, r.Truncated)
		for _, n := range r.Skipped.Notes() {
			fmt.Fprintln(os.Stderr, n)
		}
	}
}
