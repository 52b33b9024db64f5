package moltisfs

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ownUse are exported names of public packages that speak of internal types: the rest of this module calls them, and their
// comments say so. A host has no use for them.
var ownUse = map[string]string{
	"grep.Guarded":        "the engine's handles",
	"grep.GuardedFile":    "the engine's handles",
	"tools.OpenEngine":    "several dialects over one engine",
	"tools.Over":          "several dialects over one engine",
	"tools.Refusal.Facts": "the command line's own words",
}

// TestPublicNamesAreWhole finds what a host could see and not name: an exported declaration of a public package whose types are
// those of an internal one.
func TestPublicNamesAreWhole(t *testing.T) {
	used := map[string]bool{}
	for _, s := range sources(t) {
		if s.test || s.file.Name.Name == "main" || strings.Contains("/"+s.pkg()+"/", "/internal/") || s.pkg() == "." {
			continue
		}
		hidden := map[string]bool{} // names of imported internal packages
		for _, spec := range s.file.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			if !strings.Contains(imp+"/", "/internal/") {
				continue
			}
			name := imp[strings.LastIndexByte(imp, '/')+1:]
			if spec.Name != nil {
				name = spec.Name.Name
			}
			hidden[name] = true
		}
		for name, node := range exported(s.file) {
			ast.Inspect(node, func(n ast.Node) bool {
				switch x := n.(type) {
				case *ast.Field: // an unexported field is not shown
					if len(x.Names) > 0 && !slices.ContainsFunc(x.Names, (*ast.Ident).IsExported) && isFieldOfStruct(node, x) {
						return false
					}
				case *ast.SelectorExpr:
					if p, ok := x.X.(*ast.Ident); ok && hidden[p.Name] {
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
	for key := range maps.Keys(ownUse) {
		if !used[key] {
			t.Errorf("%s speaks of no internal type any more; take its row away", key)
		}
	}
}

// TestAliasesSayWhatTheyAre: go doc shows nothing of what an alias stands for, so that its comment names each field.
func TestAliasesSayWhatTheyAre(t *testing.T) {
	structs := map[string]*ast.StructType{} // by import path and name
	for _, s := range sources(t) {
		for name, node := range exported(s.file) {
			if st, ok := node.(*ast.StructType); ok && !s.test {
				structs[s.pkg()+"."+name] = st
			}
		}
	}
	seen := 0
	for _, s := range sources(t) {
		if s.test || strings.Contains("/"+s.pkg()+"/", "/internal/") {
			continue
		}
		paths := map[string]string{}
		for _, spec := range s.file.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			paths[imp[strings.LastIndexByte(imp, '/')+1:]] = imp
		}
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				a, ok := spec.(*ast.TypeSpec)
				if !ok || !a.Assign.IsValid() || !a.Name.IsExported() {
					continue
				}
				sel, ok := a.Type.(*ast.SelectorExpr)
				if !ok {
					continue
				}
				_, below, _ := strings.Cut(paths[sel.X.(*ast.Ident).Name], "/")
				of := structs[below+"."+sel.Sel.Name]
				if of == nil {
					continue
				}
				seen++
				text := g.Doc.Text() + a.Doc.Text()
				for _, f := range of.Fields.List {
					for _, name := range f.Names {
						if name.IsExported() && !regexp.MustCompile(`\b`+name.Name+`\b`).MatchString(text) {
							t.Errorf("%s: the comment of %s does not name %s", s.path, a.Name, name)
						}
					}
				}
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d aliases found", seen)
	}
}

// exported gives what go doc shows of a file: signatures, and types with their fields.
func exported(f *ast.File) map[string]ast.Node {
	out := map[string]ast.Node{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				recv := receiver(d.Recv.List[0].Type)
				if !ast.IsExported(recv) {
					continue
				}
				name = recv + "." + name
			}
			if d.Name.IsExported() {
				out[name] = d.Type
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						out[spec.Name.Name] = spec.Type
					}
				case *ast.ValueSpec:
					if spec.Type != nil && spec.Names[0].IsExported() {
						out[spec.Names[0].Name] = spec.Type
					}
				}
			}
		}
	}
	return out
}

// isFieldOfStruct tells a field from a parameter: those have small names too.
func isFieldOfStruct(in ast.Node, f *ast.Field) (yes bool) {
	ast.Inspect(in, func(n ast.Node) bool {
		if s, ok := n.(*ast.StructType); ok && slices.Contains(s.Fields.List, f) {
			yes = true
		}
		return !yes
	})
	return yes
}
