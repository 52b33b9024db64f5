package policy

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
)

// world makes random rules and paths over few names, so that they meet often.
type world struct{ r *rand.Rand }

func (w world) pick(s ...string) string { return s[w.r.IntN(len(s))] }

func (w world) pattern() string {
	var b strings.Builder
	for range 1 + w.r.IntN(4) {
		b.WriteString("/" + w.pick("a", "B", ".env", "**", "*", "a*", "*b", "[ab]", "{a,.env}", "?", "é", "c.", "c *", "?.*", "long name.json"))
	}
	return b.String()
}

func (w world) options() Options {
	o := Options{Canonical: linkTo("/a", "/b/real")}
	for range w.r.IntN(4) {
		o.Deny = append(o.Deny, w.pattern())
	}
	for range w.r.IntN(3) {
		o.Allow = append(o.Allow, w.pattern())
	}
	for range w.r.IntN(2) {
		o.Protected = append(o.Protected, Protected{Path: "/" + w.pick("a", "B", "zz") + "/" + w.pick("c", "long name.json")})
	}
	return o
}

func (w world) name() string {
	return w.pick("a", "A", "b", "B", "ab", ".env", ".ENV", "c", "C.", "C ", "a.", "é", "e\u0301", "É", "a\u200b", "a:x", `a\b`, "env~1", "longna~1.jso", "zz")
}

func (w world) path() string {
	var b strings.Builder
	for range w.r.IntN(5) {
		b.WriteString("/" + w.name())
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}

// slow is the policy by definition: no tries, no states, no shortcuts.
type slow struct {
	deny, folded, allow []*glob.Glob
	short               []shortName
	protected           []string
	link                func(string) string
}

func newSlow(o Options) *slow {
	s := &slow{link: o.Canonical}
	compile := func(pattern string, fold func(string, bool) string) []*glob.Glob {
		var out []*glob.Glob
		g, err := glob.CompileRule(pattern, fold)
		if err != nil {
			panic(err)
		}
		out = append(out, g)
		// The same with links followed; the only link is /a, and patterns with braces are not given
		// to it.
		if strings.HasPrefix(pattern, "/a/") || pattern == "/a" {
			g, err := glob.CompileRule(s.link("/a")+pattern[2:], fold)
			if err != nil {
				panic(err)
			}
			out = append(out, g)
		}
		return out
	}
	for _, d := range o.Deny {
		s.deny = append(s.deny, compile(d, nil)...)
		s.folded = append(s.folded, compile(d, foldRun)...)
		for _, p := range s.folded[len(s.folded)-1].Patterns() {
			for _, n := range p.Names() {
				if sh, ok := newShortName(n); ok {
					s.short = append(s.short, sh)
				}
			}
		}
	}
	slices.SortFunc(s.short, func(a, b shortName) int { return strings.Compare(a.long, b.long) })
	s.short = slices.Compact(s.short)
	for _, a := range o.Allow {
		s.allow = append(s.allow, compile(a, nil)...)
	}
	for _, p := range o.Protected {
		s.protected = append(s.protected, foldPath(p.Path), foldPath(s.link(p.Path)))
		for _, n := range strings.Split(foldPath(s.link(p.Path)), "/") {
			if sh, ok := newShortName(n); ok {
				s.short = append(s.short, sh)
			}
		}
	}
	return s
}

// upwards are a path and the directories above it.
func upwards(name string) (all []string) {
	for ; name != "/"; name = path.Dir(name) {
		all = append(all, name)
	}
	return append(all, "/")
}

func (s *slow) judge(name string) string {
	verdict := ""
	folded := foldPath(name)
	readings := []string{folded, asNTFS(folded)}
	for _, r := range readings[:2] {
		longer, ok := expandShortNames(r, s.short)
		if !ok {
			verdict = ruleDeny
		}
		readings = append(readings, longer...)
	}
	for bits := 1; bits < 1<<strings.Count(name, "/") && strings.ContainsAny(name, ". "); bits++ { // the ends of each segment dropped, or not
		parts := strings.Split(name, "/")
		for i := range parts {
			parts[i] = foldRun(parts[i], bits>>max(i-1, 0)&1 == 0)
		}
		readings = append(readings, strings.Join(parts, "/"))
	}
	for _, r := range append(readings, name) {
		if slices.ContainsFunc(upwards(r), func(dir string) bool { return slices.Contains(s.protected, dir) }) {
			return ruleProtected
		}
	}
	matches := func(globs []*glob.Glob, name string) bool {
		return slices.ContainsFunc(upwards(name), func(dir string) bool {
			return slices.ContainsFunc(globs, func(g *glob.Glob) bool { return g.Match(dir) })
		})
	}
	if matches(s.deny, name) || slices.ContainsFunc(readings, func(r string) bool { return matches(s.folded, r) }) {
		return ruleDeny
	}
	if verdict != "" {
		return verdict
	}
	for _, g := range s.allow {
		if g.Match(name) {
			return ""
		}
	}
	if len(s.allow) > 0 {
		return ruleAllow
	}
	return ""
}

var definitions = flag.Int("definitions", 120, "how many worlds TestAgainstDefinition makes")

// Judge and Dir say what the definition says, on many small worlds.
func TestAgainstDefinition(t *testing.T) {
	t.Parallel()
	rounds := *definitions
	if testing.Short() {
		rounds = 60
	}
	counts := map[string]int{}
	for seed := range rounds {
		w := world{rand.New(rand.NewPCG(uint64(seed), 1))}
		o := w.options()
		p, s := mustNew(t, o), newSlow(o)
		for range 20 {
			name := w.path()
			got, want := ruleOf(p.Judge(file(name), guardfs.Read)), s.judge(name)
			if got != want {
				t.Fatalf("deny %q allow %q protected %q\n%q: %q, by definition %q", o.Deny, o.Allow, o.Protected, name, got, want)
			}
			counts[got]++
			v := p.Dir(name)
			if got != "" && (v.All || v.Entry != nil && got != ruleAllow) {
				t.Fatalf("deny %q allow %q\n%q is refused and can be listed", o.Deny, o.Allow, name)
			}
			if got != "" && got != ruleAllow {
				continue
			}
			for range 10 {
				entry := w.name()
				full := strings.TrimSuffix(name, "/") + "/" + entry
				shown := v.All || v.Entry != nil && v.Entry(entry, guardfs.KindFile)
				if want := s.judge(full) == ""; shown != want && !(v.All && strings.ContainsAny(entry, `:\~`)) {
					t.Fatalf("deny %q allow %q protected %q\nentry %q of %q: %v, by definition %q", o.Deny, o.Allow, o.Protected, entry, name, shown, s.judge(full))
				}
				if v.All {
					deep := full + w.path()
					if want := s.judge(strings.TrimSuffix(deep, "/")); want != "" && !strings.ContainsAny(deep, `:\~`) {
						t.Fatalf("deny %q allow %q\n%q says All, yet %q: %q", o.Deny, o.Allow, name, deep, want)
					}
				}
			}
		}
	}
	for _, r := range []string{"", ruleDeny, ruleAllow, ruleProtected} {
		if counts[r] < rounds/30 {
			t.Errorf("only %d of %q: the worlds are too poor", counts[r], r)
		}
	}
}

// A directory that is mounted twice is denied what either name denies, and allowed what its true
// name allows.
func TestDirOfManyNames(t *testing.T) {
	p := mustNew(t, Options{Allow: []string{"/ws/**", "/mnt/only"}, Deny: []string{"/vol/Secret/**", "/ws/a/*.pem", "/vol/x:y/z"}})
	for _, c := range []struct {
		dir, also, yes, no string
	}{
		{"/ws/a", "", "k secret", "k.pem"},
		{"/ws/b", "", "k secret k.pem", ""},
		{"/ws/b", "/vol", "k k.pem", "secret Secret SECRET"},
		{"/ws/b", "/vol /ws/a", "k", "secret k.PEM"},
		{"/ws/b", "/vol/secret", "", "k"},
		{"/ws/b", "/vol/secret/deep", "", "k"},
		{"/ws/b", "/vol/x:y", "k", "z"},
		{"/other", "/ws/b", "", "k"},
	} {
		v := p.Dir(c.dir, strings.Fields(c.also)...)
		shows := func(name string) bool { return v.All || v.Entry != nil && v.Entry(name, guardfs.KindFile) }
		for _, name := range strings.Fields(c.yes) {
			if !shows(name) {
				t.Errorf("%s also %s: %s is hidden", c.dir, c.also, name)
			}
		}
		for _, name := range strings.Fields(c.no) {
			if shows(name) {
				t.Errorf("%s also %s: %s is shown", c.dir, c.also, name)
			}
		}
	}
	if !p.Dir("/ws/b").All || p.Dir("/ws/b", "/vol").All {
		t.Error("All does not look at the other name, or at more than that")
	}
}

// TestDirDoesNotAllocatePerEntry: a name in small letters costs no memory.
func TestDirDoesNotAllocatePerEntry(t *testing.T) {
	p := mustNew(t, Options{
		Allow: []string{"/ws/**"},
		Deny:  []string{"/ws/.env*", "**/*.pem", "**/node_modules/**", "/ws/src/secret/**"},
	})
	v := p.Dir("/ws/src")
	names := []string{"main.go", "a_rather_long_name_for_a_file_in_lower_case.json", ".gitignore", "k.pem"}
	if n := testing.AllocsPerRun(100, func() {
		for _, name := range names {
			v.Entry(name, guardfs.KindFile)
		}
	}); n != 0 {
		t.Errorf("%v allocations for %d entries", n, len(names))
	}
	o := file("/ws/src/internal/engine/mutate.go")
	if n := testing.AllocsPerRun(100, func() { _ = p.Judge(o, guardfs.Read) }); n != 0 {
		t.Errorf("%v allocations for a Judge", n)
	}
}

func benchPolicy(b *testing.B, extra int) *Policy {
	o := Options{
		Allow:     []string{"/home/user/project/**"},
		Deny:      []string{"/home/user/project/.env*", "/home/user/project/secrets/**", "**/.git/hooks/**", "**/*.pem", "**/id_rsa*"},
		Protected: []Protected{{"/home/user/.moltis", "data"}, {"/home/user/moltis.toml", "config"}, {"/usr/local/bin/moltis-fs", "binary"}},
	}
	for i := range extra {
		o.Deny = append(o.Deny, fmt.Sprintf("/home/user/project/dir%d/private/**", i))
	}
	return mustNew(b, o)
}

func BenchmarkJudge(b *testing.B) {
	for _, c := range []struct {
		name  string
		extra int
		path  string
	}{
		{"rules=8", 0, "/home/user/project/internal/engine/mutate.go"},
		{"rules=8/upper", 0, "/home/user/Project/README.md"},
		{"rules=1008", 1000, "/home/user/project/internal/engine/mutate.go"},
	} {
		p := benchPolicy(b, c.extra)
		o := file(c.path)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = p.Judge(o, guardfs.Read)
			}
		})
	}
}

func BenchmarkDir(b *testing.B) {
	p := benchPolicy(b, 0)
	b.Run("verdict", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p.Dir("/home/user/project/internal/engine")
		}
	})
	v := p.Dir("/home/user/project/internal/engine")
	b.Run("entry", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v.Entry("mutate_test.go", guardfs.KindFile)
		}
	})
	b.Run("entry/upper", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v.Entry("README.md", guardfs.KindFile)
		}
	})
	plain := mustNew(b, seed)
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			plain.Dir("/home/user/project/internal/engine")
		}
	})
}

// Below says of a directory what Dir says, all the way down, and goes no longer way for it.
func TestBelowIsDir(t *testing.T) {
	rounds := 600
	if testing.Short() {
		rounds = 60
	}
	steps := 0
	for seed := range rounds {
		w := world{rand.New(rand.NewPCG(uint64(seed), 3))}
		o := w.options()
		p := mustNew(t, o)
		for range 10 {
			dir, v := "/", p.Dir("/")
			for range 5 {
				name := w.name()
				if w.r.IntN(20) == 0 {
					name = w.pick(".moltis-trash-0", ".Moltis-TRASH-1", ".moltis-tra\u200bsh-0")
				}
				below := v.Below
				dir = strings.TrimSuffix(dir, "/") + "/" + name
				want := p.Dir(dir)
				v = want
				if below == nil {
					continue
				}
				got, ok := below(name)
				if !ok {
					continue
				}
				steps++
				v = got
				if got.All != want.All || (got.Entry == nil) != (want.Entry == nil) {
					t.Fatalf("deny %q allow %q protected %q: %q: %+v, Dir says %+v", o.Deny, o.Allow, o.Protected, dir, got, want)
				}
				for range 20 {
					if got.Entry == nil {
						break
					}
					e, k := w.name(), guardfs.KindFile
					if w.r.IntN(2) == 0 {
						k = guardfs.KindDir
					}
					if got.Entry(e, k) != want.Entry(e, k) || got.Way(e) != want.Way(e) {
						t.Fatalf("deny %q allow %q protected %q: %q in %q", o.Deny, o.Allow, o.Protected, e, dir)
					}
				}
			}
		}
	}
	if steps < rounds {
		t.Errorf("%d steps: too few", steps)
	}
}

// A listing says of which files the Judge must still be asked: of a denied one by another name, and of all once a link
// that a rule goes through leads elsewhere.
func TestHeld(t *testing.T) {
	t.Parallel()
	id, now := guardfs.Identity{Dev: 1, Ino: 7}, time.Now()
	far := "/far"
	p := mustNew(t, Options{
		Root: "/ws", Deny: []string{"/ws/secret", "/ws/link/x"}, now: func() time.Time { return now },
		Identify:  func(path string) (guardfs.Identity, bool) { return id, path == "/ws/secret" },
		Canonical: func(path string) string { return strings.Replace(path, "/ws/link", far, 1) },
	})
	v := p.Dir("/ws")
	if v.All || !v.Entry("free", guardfs.KindFile) {
		t.Fatalf("%+v", v)
	}
	held := func(ino uint64) bool { return v.Held(&guardfs.Info{ID: guardfs.Identity{Dev: 1, Ino: ino}}) }
	if !held(7) || held(8) {
		t.Errorf("the denied file %v, another %v", held(7), held(8))
	}
	far, now = "/farther", now.Add(linkCheckInterval)
	if !held(8) {
		t.Error("the rules have changed since")
	}
}
