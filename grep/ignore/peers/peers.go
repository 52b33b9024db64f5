// Package peers lists a tree by the ignore rules of the two Go packages that the field uses, for
// comparison with ours in tests and benchmarks. The program does not import it.
//
// Run a listing in a process of its own: a rule file can crash gocodewalker, or never let it end.
package peers

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/boyter/gocodewalker"
	gitignore "github.com/sabhiram/go-gitignore"
)

// Names are the packages that List knows.
var Names = []string{"gocodewalker", "go-gitignore"}

// List writes the files below root that the named package does not ignore, one path a line, in no
// order.
func List(w io.Writer, name, root string) error {
	out := bufio.NewWriterSize(w, 64<<10)
	var err error
	switch name {
	case "gocodewalker":
		err = walker(out, root)
	case "go-gitignore":
		err = perDirectory(out, root, "", nil)
	default:
		err = fmt.Errorf("there is no peer %q", name)
	}
	if e := out.Flush(); err == nil {
		err = e
	}
	return err
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

// perDirectory uses go-gitignore in the way that fits git's rules best: one rule file a directory.
// The deepest file with a matching rule decides, and an ignored directory is not entered.
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
