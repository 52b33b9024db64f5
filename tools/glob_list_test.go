package tools_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/tools"
)

// TestGlobList: a list means what each of its globs means alone, or it is refused.
func TestGlobList(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	for _, name := range []string{"proj/main.go", "proj/a.txt", "proj/d", "proj/sub/main.go", "other/b.txt", "other/x.go", "odd", "comma/a,b.txt"} {
		os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755)
		write(t, filepath.Join(root, name), "x\n")
	}
	for pattern, want := range map[string]string{
		"*.go,R/other/*.txt":               "refused",
		"../odd,d":                         "refused",
		"!sub/*,R/other/*":                 "refused",
		"R/comma/a,b.txt":                  "refused", // may be a list
		`R/comma/a\,b.txt`:                 "comma/a,b.txt",
		"*.go,R/proj/*.txt":                "proj/a.txt proj/main.go proj/sub/main.go",
		"R/odd,R/other/*.txt":              "odd other/b.txt",
		"../odd,../other/*.txt":            "odd other/b.txt",
		"*.go,!R/other/b.txt":              "proj/main.go proj/sub/main.go",
		"*.go,!../other/b.txt":             "proj/main.go proj/sub/main.go",
		"*.go,!R/proj/sub/main.go":         "proj/main.go",
		"R/other/*,!R/other/b.txt":         "other/x.go",
		"R/other/*,!b.txt":                 "other/x.go",
		"sub/../*.txt,d":                   "proj/a.txt proj/d",
		"../other/*,!../other/x.go":        "other/b.txt",
		"!R/other/b.txt,!main.go,!R/odd":   "proj/a.txt proj/d",
		"!R/other/b.txt,!R/odd":            "proj/a.txt proj/d proj/main.go proj/sub/main.go",
		"R/other/b.txt,R/proj/{main.go,d}": "other/b.txt proj/d proj/main.go",
	} {
		p := call(t, s, "Glob", map[string]any{"pattern": strings.ReplaceAll(pattern, "R/", root+"/"), "path": filepath.Join(root, "proj")})
		got := "refused"
		if g, ok := p.(*tools.Glob); ok {
			var names []string
			for _, p := range g.Paths {
				rel, _ := filepath.Rel(root, p)
				names = append(names, rel)
			}
			slices.Sort(names)
			got = strings.Join(names, " ")
		}
		if got != want {
			t.Errorf("%s: %s, want %s: %s", pattern, got, want, p.Text())
		}
	}
}
