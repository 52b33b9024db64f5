// Command peers lists a tree by the ignore rules of the two Go packages that the field uses, one process a tree, because one of
// them can bring its process down. It is a module of its own: neither is a dependency of the program.
//
//	peers gocodewalker DIR
//	peers gitignore DIR
package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"

	"github.com/boyter/gocodewalker"
	gitignore "github.com/sabhiram/go-gitignore"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "peers: want gocodewalker or gitignore, and a directory")
		os.Exit(2)
	}
	out := bufio.NewWriterSize(os.Stdout, 64<<10)
	var err error
	switch os.Args[1] {
	case "gocodewalker":
		err = walker(out, os.Args[2])
	case "gitignore":
		err = perDirectory(out, os.Args[2], "", nil)
	default:
		err = fmt.Errorf("there is no %q", os.Args[1])
	}
	if e := out.Flush(); err == nil {
		err = e
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func walker(out *bufio.Writer, root string) error {
	files := make(chan *gocodewalker.File, 1000)
	w := gocodewalker.NewParallelFileWalker([]string{root}, files)
	w.IncludeHidden = true
	w.ExcludeDirectory = []string{".git"}
	done := make(chan error, 1)
	go func() { done <- w.Start() }()
	for f := range files {
		fmt.Fprintln(out, f.Location)
	}
	return <-done
}

// rules are one file's, for the paths below dir.
type rules struct {
	dir  string
	file *gitignore.GitIgnore
}

// perDirectory uses go-gitignore in the way that fits git's rules best: one file a directory, the deepest that says something
// decides, and nothing below an ignored directory is looked at.
func perDirectory(out *bufio.Writer, root, rel string, above []rules) error {
	entries, err := os.ReadDir(filepath.Join(root, rel))
	if err != nil {
		return err
	}
	in := above
	for _, e := range entries {
		if e.Name() == ".gitignore" && e.Type().IsRegular() {
			f, err := gitignore.CompileIgnoreFile(filepath.Join(root, rel, ".gitignore"))
			if err != nil {
				return err
			}
			in = append(in[:len(in):len(in)], rules{rel, f})
		}
	}
	for _, e := range entries {
		path := filepath.Join(rel, e.Name())
		if e.IsDir() && e.Name() == ".git" || ignored(in, path, e.IsDir()) {
			continue
		}
		if e.IsDir() {
			if err := perDirectory(out, root, path, in); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintln(out, filepath.Join(root, path))
	}
	return nil
}

func ignored(in []rules, path string, dir bool) bool {
	for i := len(in) - 1; i >= 0; i-- {
		rel, err := filepath.Rel(in[i].dir, path)
		if err != nil {
			continue
		}
		if dir {
			rel += "/"
		}
		if hit, how := in[i].file.MatchesPathHow(rel); how != nil {
			return hit
		}
	}
	return false
}
