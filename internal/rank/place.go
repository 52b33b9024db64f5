package rank

import (
	"path"
	"strings"
)

// place is what the path of a file says of its hits.
type place struct {
	stem, dirName string
	prose         bool
	named         int  // points of a hit by name: 70, 30, 5 or 0
	dir           bool // the directory is called so
	penalty       int  // below zero
	more, less    []string
}

// place looks at a path.
func (q *Query) place(f File) place {
	dir, stem := namesOf(f.Path)
	p := place{stem: stem, dirName: dir}
	ext := strings.TrimPrefix(path.Ext(f.Path), ".")
	p.prose = proseExt[strings.ToLower(ext)]
	if p.named = q.namedBy(f, &p); p.named >= 70 {
		p.more = append(p.more, "file name")
	}
	if q.needle != "" && strings.EqualFold(dir, q.needle) {
		if p.dir = true; p.named == 0 {
			p.more = append(p.more, "directory name")
		}
	}
	less := func(points int, why string) {
		p.penalty -= points
		p.less = append(p.less, why)
	}
	parts := strings.Split(strings.ToLower(f.Path), "/")
	base := parts[len(parts)-1]
	parts = parts[:len(parts)-1]
	switch {
	case !q.tests && (anyOf(parts, testDirs) || testName(base, f.Path)):
		less(40, "test")
	case anyOf(parts, vendored):
		less(40, "vendored")
	}
	if generated(base) {
		less(25, "generated")
	}
	if p.prose {
		less(12, "prose")
	}
	if anyOf(parts, inner) {
		less(4, "internal")
	}
	p.penalty -= min(2*len(parts), 16)
	return p
}

// namedBy gives the points of a hit by name.
func (q *Query) namedBy(f File, p *place) int {
	name := path.Base(f.Path)
	best := 0
	for _, s := range f.Named {
		points := 5
		switch {
		case s[0] == 0 && (s[1] == len(name) || s[1] == len(p.stem)):
			points = 70
		case pieceStarts(name, 0, s[0]) && pieceEnds(name, len(name), s[1]):
			points = 30
		}
		best = max(best, points)
	}
	if n := len(q.qualifiers); n > 0 && !strings.EqualFold(p.dirName, q.qualifiers[n-1]) {
		return 0 // server.go is not http.Server, but http/server.go may well be
	}
	if len(q.words) > 0 {
		return 0
	}
	return best
}

// namesOf are the directory of a file and its name up to the first dot, as a name is asked for.
func namesOf(file string) (dir, stem string) {
	if dir = path.Base(path.Dir(file)); dir == "." || dir == "/" {
		dir = ""
	}
	base := path.Base(file)
	if i := strings.IndexByte(base, '.'); i > 0 {
		base = base[:i]
	}
	return dir, base
}

var (
	proseExt = set("md markdown rst txt adoc asciidoc org html htm tex pod rdoc textile")
	testDirs = set(`
		test tests testdata __tests__ __mocks__ spec specs fixture fixtures mocks example
		examples bench benches benchmark benchmarks sample samples demo demos e2e`)
	vendored = set(`
		vendor third_party thirdparty third-party node_modules bower_components site-packages
		dist-packages godeps pods external .venv venv`)
	inner = set("internal private _internal detail")
)

func anyOf(parts []string, words map[string]bool) bool {
	for _, p := range parts {
		if words[p] {
			return true
		}
	}
	return false
}

// testName knows the names of test files: x_test.go, test_x.py, x.spec.ts, XTest.java.
func testName(base, file string) bool {
	stem, _, _ := strings.Cut(base, ".")
	for _, w := range []string{"test", "tests", "spec", "mock", "mocks", "bench"} {
		if strings.HasSuffix(stem, "_"+w) || strings.HasSuffix(stem, "-"+w) ||
			strings.HasPrefix(stem, w+"_") || strings.Contains(base, "."+w+".") {
			return true
		}
	}
	_, asWritten := namesOf(file)
	return strings.HasSuffix(asWritten, "Test") || strings.HasSuffix(asWritten, "Tests") ||
		strings.HasSuffix(asWritten, "Spec")
}

// generated knows the usual names of what programs wrote.
func generated(base string) bool {
	for _, w := range []string{"generated", ".gen.", "_gen.", ".pb.", "_pb2.", ".min.", "bundle."} {
		if strings.Contains(base, w) {
			return true
		}
	}
	return false
}
