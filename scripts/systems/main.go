// Command systems checks that the module and its tests compile for the systems that its arguments name, such as "darwin windows". It
// only resolves names and types: "go vet" would first compile every dependency for each system, which takes minutes.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

func main() {
	wrong := false
	for _, system := range os.Args[1:] {
		if err := check(system); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", system, err)
			wrong = true
		}
	}
	if wrong {
		os.Exit(1)
	}
}

// A listed package is one as "go list" has it, after all that it imports.
type listed struct {
	Dir        string
	ImportPath string // "a [b.test]" is a as the tests of b see it
	GoFiles    []string
	ImportMap  map[string]string // from the names of imports to their ImportPath, where they differ
	Module     *struct{ Main bool }
	Error      *struct{ Err string }
}

// check type-checks the packages below the working directory for a system; of those of others it skips the bodies of functions.
func check(system string) error {
	list := exec.Command("go", "list", "-e", "-deps", "-test", "-json=Dir,ImportPath,GoFiles,ImportMap,Module,Error", "./...")
	list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return err
	}
	var errs []error
	known := map[string]*types.Package{"unsafe": types.Unsafe}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			return errors.Join(errs...)
		} else if err != nil {
			return err
		}
		if p.Error != nil {
			errs = append(errs, errors.New(p.Error.Err))
		}
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") { // the main of a test is generated
			continue
		}
		ours := p.Module != nil && p.Module.Main
		conf := types.Config{Importer: imports{known, p.ImportMap}, IgnoreFuncBodies: !ours,
			Sizes: types.SizesFor("gc", runtime.GOARCH), Error: func(err error) { errs = append(errs, err) }}
		fset, files := token.NewFileSet(), []*ast.File(nil)
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			files = append(files, f)
		}
		path, _, _ := strings.Cut(p.ImportPath, " ")
		known[p.ImportPath], _ = conf.Check(path, fset, files, nil) // Error has heard why not
	}
}

// imports finds the packages that one package imports.
type imports struct {
	known  map[string]*types.Package
	mapped map[string]string
}

func (i imports) Import(path string) (*types.Package, error) {
	if to := i.mapped[path]; to != "" {
		path = to
	}
	if p := i.known[path]; p != nil {
		return p, nil
	}
	return nil, errors.New("it is not listed")
}
