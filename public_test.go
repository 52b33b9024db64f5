package moltisfs

import (
	"go/ast"
	"go/types"
	"strings"
	"testing"
)

// ownUse are exported names of public packages that speak of internal types: the rest of this module calls them, and their
// comments say so. A host has no use for them.
var ownUse = map[string]string{
	"grep.Guarded":     "the engine's handles",
	"grep.GuardedFile": "the engine's handles",
	"grep.Handle":      "the engine's handles",
	"tools.OpenEngine": "several dialects over one engine",
	"tools.Over":       "several dialects over one engine",
	"tools.Facts":      "the command line's own words",
}

// TestPublicNamesAreWhole finds what a host could see and not name: an exported declaration of a public package whose types are
// of an internal one.
func TestPublicNamesAreWhole(t *testing.T) {
	used := map[string]bool{}
	for _, s := range program(t) {
		if s.file.Name.Name == "main" || strings.Contains("/"+s.pkg()+"/", "/internal/") {
			continue
		}
		names := s.names()
		ast.FileExports(s.file)
		for _, d := range s.file.Decls {
			name := ""
			if f, ok := d.(*ast.FuncDecl); ok {
				if f.Recv != nil && !ast.IsExported(strings.TrimLeft(types.ExprString(f.Recv.List[0].Type), "*")) {
					continue
				}
				name, f.Body = f.Name.Name, nil
			}
			ast.Inspect(d, func(n ast.Node) bool {
				switch x := n.(type) {
				case *ast.TypeSpec:
					if name = x.Name.Name; x.Assign.IsValid() { // an alias is how a host names the type
						return false
					}
				case *ast.ValueSpec:
					name, x.Values = x.Names[0].Name, nil
				case *ast.SelectorExpr:
					if p, ok := x.X.(*ast.Ident); ok && strings.Contains(names[p.Name]+"/", "/internal/") {
						key := s.pkg() + "." + name
						if used[key] = true; ownUse[key] == "" {
							t.Errorf("%s: %s speaks of %s.%s, which no host can name", s.path, name, p.Name, x.Sel.Name)
						}
					}
				}
				return true
			})
		}
	}
	for key := range ownUse {
		if !used[key] {
			t.Errorf("%s speaks of no internal type any more; take its row away", key)
		}
	}
}
