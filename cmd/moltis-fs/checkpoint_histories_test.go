package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/checkpoint"
)

var histories = flag.Int("histories", 10, "how many random histories are exported")

// A history is a tree that calls, and others between them, have changed at random, with a store that knows of the calls.
type randomHistory struct {
	t       *testing.T
	r       *rand.Rand
	root    string
	db      *checkpoint.DB
	touched map[string]bool
	gaps    bool // others have changed something
}

var historyPaths = []string{"a", "b.txt", "d/a", "d/b", "d/e/f", "d", "g h/\"ü\"", "tab\tbed", "-dash"}

func (h *randomHistory) content() []byte {
	switch h.r.IntN(8) {
	case 0:
		return []byte{}
	case 1:
		b := make([]byte, h.r.IntN(3000))
		for i := range b {
			b[i] = byte(h.r.Uint32())
		}
		return b
	case 2:
		return []byte(strings.Repeat("a\rb\r", 1+h.r.IntN(3)))
	}
	var b strings.Builder
	for i := range 3 + h.r.IntN(20) {
		fmt.Fprintf(&b, "line %d\n", i+h.r.IntN(2))
	}
	text := b.String()
	if h.r.IntN(4) == 0 {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return []byte(strings.TrimRight(text, strings.Repeat("\n", h.r.IntN(2))))
}

// edited is content with some lines changed.
func (h *randomHistory) edited(content []byte) []byte {
	lines := bytes.SplitAfter(content, []byte("\n"))
	for range 1 + h.r.IntN(2) {
		i := h.r.IntN(len(lines))
		switch h.r.IntN(3) {
		case 0:
			lines[i] = fmt.Appendf(nil, "changed %d\n", h.r.IntN(100))
		case 1:
			lines = slices.Insert(lines, i, fmt.Appendf(nil, "new %d\n", h.r.IntN(100)))
		case 2:
			lines[i] = nil
		}
	}
	return bytes.Join(lines, nil)
}

// state gives the state and the content at a path.
func (h *randomHistory) state(path string) (s checkpoint.State, content []byte) {
	full := filepath.Join(h.root, path)
	info, err := os.Lstat(full)
	switch {
	case err != nil:
		return checkpoint.State{Kind: checkpoint.Absent}, nil
	case info.IsDir():
		return checkpoint.State{Kind: checkpoint.Dir, Mode: info.Mode().Perm()}, nil
	case info.Mode()&os.ModeSymlink != 0:
		to, err := os.Readlink(full)
		must(h.t, err)
		return checkpoint.State{Kind: checkpoint.Symlink, Target: to}, nil
	}
	if content, err = os.ReadFile(full); err != nil {
		h.t.Fatal(err)
	}
	return checkpoint.State{Kind: checkpoint.File, Mode: info.Mode().Perm()}, content
}

// change makes something else of a path, which is no directory.
func (h *randomHistory) change(path string) {
	s, content := h.state(path)
	full := filepath.Join(h.root, path)
	switch n := h.r.IntN(10); {
	case n == 0 && s.Kind != checkpoint.Absent:
		put(h.t, full, "", nil)
	case n == 1:
		put(h.t, full, gitLink, fmt.Appendf(nil, "to %d", h.r.IntN(9)))
	case n == 2:
		put(h.t, full, "100755", content)
	case n < 8 && s.Kind == checkpoint.File && len(content) > 0:
		put(h.t, full, []string{"100644", "100755"}[s.Mode>>6&1], h.edited(content))
	default:
		put(h.t, full, "100644", h.content())
	}
}

// call changes some paths and saves that before and after.
func (h *randomHistory) call(i int) {
	paths := map[string]bool{}
	for range 1 + h.r.IntN(2) {
		p := historyPaths[h.r.IntN(len(historyPaths))]
		if p == "d" && h.r.IntN(4) > 0 {
			continue
		}
		paths[p] = true
	}
	if paths["d"] {
		paths = map[string]bool{"d": true}
	}
	op := checkpoint.Op{Tool: "Write", Kind: checkpoint.KindWrite, Session: fmt.Sprint("s", h.r.IntN(2)), Turn: fmt.Sprint("t", i/4)}
	if h.r.IntN(3) == 0 {
		op.Turn = ""
	}
	// A file where a directory was takes what was below it away, and the other way round.
	with := map[string]bool{}
	for p := range paths {
		with[p] = true
		for _, other := range historyPaths {
			s, _ := h.state(other)
			if (strings.HasPrefix(other, p+"/") || strings.HasPrefix(p, other+"/")) && s.Kind != checkpoint.Absent && s.Kind != checkpoint.Dir {
				with[other] = true
			}
		}
	}
	for p := range with {
		if s, _ := h.state(p); h.touched[p] && s.Kind != checkpoint.Dir && len(with) == len(paths) && h.r.IntN(5) == 0 {
			h.gaps = true
			h.change(p)
		}
	}
	for _, p := range historyPaths {
		if !with[p] {
			continue
		}
		c := checkpoint.Change{Path: filepath.Join(h.root, p), Role: "target"}
		if c.Before, c.Content = h.state(p); c.Before.Kind == checkpoint.Dir {
			c.Before = checkpoint.State{Kind: checkpoint.Absent} // told by what is below
		}
		op.Changes = append(op.Changes, c)
	}
	for p := range with {
		if !paths[p] {
			put(h.t, filepath.Join(h.root, p), "", nil)
		}
	}
	for p := range paths {
		if s, _ := h.state(p); s.Kind == checkpoint.Dir {
			must(h.t, os.RemoveAll(filepath.Join(h.root, p)))
		}
		h.change(p)
	}
	for j := range op.Changes {
		c := &op.Changes[j]
		p := c.Path[len(h.root)+1:]
		h.touched[p] = true
		if c.After, c.AfterContent = h.state(p); c.After.Kind == checkpoint.Dir {
			c.After = checkpoint.State{Kind: checkpoint.Absent}
		}
	}
	if _, err := h.db.Save(context.Background(), op); err != nil {
		h.t.Fatal(err)
	}
}

// TestExportedHistories: whatever calls, and others between them, did to a tree, git takes the export of it: the patch before and after, plain and with
// the index.
func TestExportedHistories(t *testing.T) {
	for seed := range *histories {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir := realDir(t)
			data := filepath.Join(dir, "data")
			db, err := checkpoint.Open(filepath.Join(data, "checkpoints"), checkpoint.Options{})
			must(t, err)
			h := &randomHistory{t, rand.New(rand.NewPCG(uint64(seed), 1)), filepath.Join(dir, "tree"), db, map[string]bool{}, false}
			for _, p := range historyPaths {
				if p != "d" && h.r.IntN(2) == 0 {
					h.change(p)
				}
			}
			must(t, os.MkdirAll(h.root, 0o700))
			start := filepath.Join(dir, "start")
			must(t, os.CopyFS(start, os.DirFS(h.root)))
			for i := range 1 + h.r.IntN(12) {
				h.call(i)
			}
			must(t, db.Close())
			before, after := files(t, start), files(t, h.root)
			export := func(args ...string) []byte {
				args = append([]string{"store", "export", "--data-dir", data, "--root", h.root}, args...)
				status, out, errs := runWith(t, "", args...)
				if status != exitOK || strings.Contains(errs, "not in the patch") {
					t.Fatalf("%v: status %d: %s", args, status, errs)
				}
				return []byte(out)
			}
			apply := func(where string, patch []byte, args ...string) {
				if bytes.Contains(patch, []byte("\ndiff --git ")) || bytes.HasPrefix(patch, []byte("diff --git ")) {
					gitIn(t, where, patch, slices.Concat([]string{"-c", "core.autocrlf=false", "apply", "--whitespace=nowarn"}, args)...)
				}
			}
			patch := export()
			apply(start, patch)
			compareFiles(t, "applied", files(t, start), after)
			apply(start, patch, "-R")
			compareFiles(t, "taken back", files(t, start), before)

			gitIn(t, start, nil, "init", "--quiet")
			gitIn(t, start, nil, "add", "-A")
			apply(start, patch, "--index")
			compareFiles(t, "applied with the index", files(t, start), after)
			apply(start, patch, "--index", "-R")
			compareFiles(t, "taken back with the index", files(t, start), before)
		})
	}
}
