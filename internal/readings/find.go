package readings

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"moltisfs/internal/edit"
	"moltisfs/internal/nearest"
)

// A Tree is what a session may see of one. It must not tell of anything else.
type Tree interface {
	// Near is the deepest directory on the way to p that can be listed, how many names above the last
	// one of p are missing in it, and its entries; directories end in a slash.
	Near(p string) (dir string, missing int, names []string)
	// Fits says whether p can be what is wanted.
	Fits(p string) bool
	// Named finds files by the last part of their name, in whatever case, or directories.
	Named(base string) []string
}

const (
	maxPaths = 3  // that are offered
	maxLooks = 40 // into directories, for one path
	maxDeep  = 40 // names in a path; whoever sends more is not mistaken about one
)

type finder struct {
	Tree
	root  string
	looks int // so many more directories may be listed
}

// Find looks for what asked may mean, likeliest first. sure says that the first is asked but for how
// it is written: its quotes, its case, the root before it.
func Find(t Tree, asked, root string) (found []string, sure bool) {
	if strings.Count(asked, "/")+strings.Count(asked, `\`) > maxDeep {
		return nil, false
	}
	f := &finder{t, root, maxLooks}
	readings := Paths(asked, root)
	for _, p := range readings {
		if t.Fits(p) {
			return []string{p}, true
		}
	}
	plain := asked // as simple as it gets
	if n := len(readings); n > 0 {
		plain = readings[n-1]
	}
	if strings.HasPrefix(asked, "/") {
		readings = append([]string{asked}, readings...)
	}
	for _, p := range readings {
		if found = f.like(p, true); len(found) == 1 {
			return found, true
		}
	}
	if found = f.rerooted(readings); len(found) > 0 {
		return found, true
	}
	for _, p := range readings {
		if found = f.like(p, false); len(found) > 0 {
			return found, false
		}
	}
	return f.named(plain), false
}

// like are paths like p: each name that is not there stands for those that are like it, or with
// same are the same but for case and composition.
func (f *finder) like(p string, same bool) (out []string) {
	if f.looks--; f.looks < 0 {
		return nil
	}
	dir, missing, names := f.Near(p)
	parts := strings.Split(strings.Trim(p, "/"), "/")
	if dir == "" || missing >= len(parts) {
		return nil
	}
	rest := parts[len(parts)-1-missing:]
	for _, n := range Similar(rest[0], names) {
		if same && Fold(n) != Fold(rest[0]) {
			continue
		}
		q := path.Join(append([]string{dir, n}, rest[1:]...)...)
		switch {
		case q == p:
		case f.Fits(q):
			out = append(out, q)
		case len(rest) > 1 && strings.HasSuffix(n, "/"):
			out = append(out, f.like(q, same)...)
		}
	}
	return out[:min(len(out), maxPaths)]
}

// rerooted are the longest ends of paths that lie below the root.
func (f *finder) rerooted(readings []string) []string {
	if f.root == "" {
		return nil
	}
	for _, p := range readings {
		for _, end := range Suffixes(p) {
			q := path.Join(f.root, end)
			if q == p || !strings.HasPrefix(q, f.root) {
				continue
			}
			if f.Fits(q) {
				return []string{q}
			}
			if !strings.Contains(end, "/") {
				break // a bare name may be anybody's, in another case
			}
			if found := f.like(q, true); len(found) == 1 {
				return found
			}
		}
	}
	return nil
}

// named are the files of that name anywhere, those first that lie in directories named alike.
func (f *finder) named(p string) []string {
	base := path.Base(p)
	if base == "." || base == "/" || base == ".." {
		return nil
	}
	found := f.Named(base)
	common := func(q string) (n int) {
		a, b := strings.Split(Fold(p), "/"), strings.Split(Fold(q), "/")
		for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
			n++
		}
		return n
	}
	slices.SortStableFunc(found, func(a, b string) int { return common(b) - common(a) })
	return found[:min(len(found), maxPaths)]
}

// Fold is a name as a person might misremember it: no case, composed accents, plain quotes, dashes
// and blanks, nothing that can't be seen, no blank and no slash at its end.
func Fold(s string) string {
	s = strings.ReplaceAll(norm.NFC.String(strings.TrimSuffix(s, "/")), "\u200d", "")
	return strings.ToLower(strings.TrimSpace(string(edit.Plain([]byte(s)))))
}

// Similar picks up to three names that are likely meant by name: the same but for what Fold takes
// away, the same stem with another extension, a typo.
func Similar(name string, names []string) []string {
	type scored struct {
		name  string
		score int
	}
	var best []scored
	folded := Fold(name)
	stem := strings.TrimSuffix(folded, path.Ext(folded))
	for _, n := range names {
		f := Fold(n)
		score := -1
		switch {
		case f == folded:
			score = 0
		case len(f) < 128 && len(folded) < 128 &&
			nearest.Distance(f, folded) <= max(1, len(folded)/3):
			score = 1 + nearest.Distance(f, folded)
		case strings.TrimSuffix(f, path.Ext(f)) == stem && stem != "":
			score = 40
		}
		if score < 0 {
			continue
		}
		at := len(best)
		for at > 0 && best[at-1].score > score {
			at--
		}
		best = slices.Insert(best, at, scored{n, score})
		best = best[:min(len(best), maxPaths)]
	}
	var out []string
	for _, b := range best {
		out = append(out, b.name)
	}
	return out
}
