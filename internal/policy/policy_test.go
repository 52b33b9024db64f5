package policy

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/testdir"
)

var must = testdir.Must

var accesses = []guardfs.Access{guardfs.Look, guardfs.Walk, guardfs.Read, guardfs.Create, guardfs.Modify, guardfs.Remove}

// linkTo makes a Canonical that knows one symlink.
func linkTo(from, to string) func(string) string {
	return func(p string) string {
		if p == from || strings.HasPrefix(p, from+"/") {
			return to + p[len(from):]
		}
		return p
	}
}

func mustNew(t testing.TB, o Options) *Policy {
	t.Helper()
	p, err := New(o)
	must(t, err)
	return p
}

func ruleOf(err error) string {
	var d *Denied
	if err == nil {
		return ""
	}
	if !errors.As(err, &d) {
		return "not a *Denied: " + err.Error()
	}
	return d.Rule
}

func hops(names ...string) (out []guardfs.Hop) {
	for _, n := range names {
		bare, left := strings.CutSuffix(n, "/..")
		out = append(out, guardfs.Hop{Name: bare, Left: left})
	}
	return out
}

func file(path string) guardfs.Object {
	return guardfs.Object{Spelled: path, True: path, Info: guardfs.Info{Kind: guardfs.KindFile, Links: 1}}
}

// The seed's own example.
var seed = Options{
	Allow: []string{"/home/user/project/**"},
	Deny:  []string{"/home/user/project/.env*", "/home/user/project/secrets/**"},
}

func TestSeedExample(t *testing.T) {
	p := mustNew(t, seed)
	for path, want := range map[string]string{
		"/home/user/project":                 "",
		"/home/user/project/a":               "",
		"/home/user/project/a/b/.env":        "",
		"/home/user/project/.env":            ruleDeny,
		"/home/user/project/.env.local":      ruleDeny,
		"/home/user/project/.env.d/x":        ruleDeny,
		"/home/user/project/secrets":         ruleDeny,
		"/home/user/project/secrets/a/b":     ruleDeny,
		"/home/user/project/secrets2":        "",
		"/home/user/projectx":                ruleAllow,
		"/home/user/project-evil/x":          ruleAllow,
		"/home/user":                         ruleAllow,
		"/":                                  ruleAllow,
		"/etc/passwd":                        ruleAllow,
		"/home/user/PROJECT/a":               ruleAllow, // allow is exact
		"/home/user/project/.ENV":            ruleDeny,  // deny is not
		"/home/user/project/Secrets/key":     ruleDeny,
		"/HOME/user/project/secrets/key":     ruleDeny,
		"/home/user/project/.env.":           ruleDeny,
		"/home/user/project/.env . .":        ruleDeny,
		"/home/user/project/secrets /x":      ruleDeny,
		"/home/user/project/.e\u200bnv":      ruleDeny,
		"/home/user/project/\ufeff.env":      ruleDeny,
		"/home/user/project/.env\ufe0f":      ruleDeny,
		"/home/user/project/.e\U000e0041nv":  ruleDeny,
		"/home/user/project/.en\u00adv":      ruleDeny,
		"/home/user/project/ſecretſ/x":       ruleDeny, // long s
		"/home/user/project/.env::$DATA":     ruleDeny,
		"/home/user/project/secrets:x/y":     ruleDeny,
		`/home/user/project\secrets\key`:     ruleDeny,
		`/home/user/project/a\..\secrets\x`:  ruleDeny,
		`/home/user/project/a\.. \secrets\x`: ruleDeny,
		"/home/user/project/a:b":             "",
		`/home/user/project/a\b`:             "",
		"/home/user/project/~":               "",
		"/home/user/project/...":             "",
		"/home/user/project/\xff\xfe":        "",
	} {
		for _, a := range accesses {
			for _, kind := range []guardfs.Kind{guardfs.KindAbsent, guardfs.KindFile, guardfs.KindDir, guardfs.KindSymlink} {
				o := file(path)
				o.Info.Kind = kind
				if (path == "/" || path == "/home/user") && kind == guardfs.KindDir && a <= guardfs.Read {
					continue // directories on the way: see TestWays
				}
				if got := ruleOf(p.Judge(o, a)); got != want {
					t.Errorf("%v of %v %q: %q, want %q", a, kind, path, got, want)
				}
			}
		}
	}
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		name    string
		o       Options
		yes, no string // paths, apart by blanks
	}{
		{"nothing", Options{}, "/ /etc/passwd", ""},
		{"deny a directory by its name alone", Options{Deny: []string{"/ws/secrets"}}, "/ws /ws/secretsx", "/ws/secrets /ws/secrets/a /ws/secrets/a/b"},
		{"allow covers itself only", Options{Allow: []string{"/ws/a"}}, "/ws/a", "/ws /ws/a/b /ws/A"},
		{"allow below, not itself", Options{Allow: []string{"/ws/**/*.go"}}, "/ws/x.go /ws/a/b.go", "/ws /ws/a /ws/x.c"},
		{"parents are not allowed", Options{Allow: []string{"/a/b/**"}}, "/a/b /a/b/c", "/ /a /a/bb"},
		{"any depth", Options{Deny: []string{"**/.env", "**/*.pem"}}, "/env /a/.envx", "/.env /a/.env /a/b/.env/c /k.pem /a/k.PEM /a.pem/b"},
		{"everything", Options{Deny: []string{"/**"}}, "", "/ /a /a/b"},
		{"the root itself", Options{Deny: []string{"/"}}, "", "/ /a"},
		{"braces", Options{Deny: []string{"/{a,b/{c,d}}/x*"}}, "/a /b/c /b/x", "/a/x1 /b/c/x /b/d/xx/y"},
		{"middle", Options{Deny: []string{"/ws/**/node_modules/**/test"}}, "/ws/node_modules /ws/node_modules/a", "/ws/node_modules/test /ws/a/node_modules/b/test/c"},
		{"deny wins", Options{Allow: []string{"/a/**"}, Deny: []string{"/a/**"}}, "", "/a /a/b"},
		{"escaped", Options{Deny: []string{`/ws/\[a\]`}}, "/ws/a", "/ws/[a] /ws/[A]"},
		{"class", Options{Deny: []string{"/ws/[a-c]x"}}, "/ws/dx", "/ws/ax /ws/AX /ws/Bx"},
		{"negated class", Options{Deny: []string{"/ws/[!a]x"}}, "/ws/ax", "/ws/bx /ws/BX /ws/Ax"},
		{"brackets are letters too", Options{Deny: []string{"/ws/[id]/**"}}, "/ws /ws/id /ws/[i] /ws/[idx]", "/ws/[id] /ws/[id]/a /ws/[ID]/a /ws/i /ws/d/a"},
		{"at any depth", Options{Deny: []string{"**/[id]/**"}}, "/ws/id", "/[id] /ws/[id] /ws/a/[id]/b"},
		{"dots in brackets", Options{Deny: []string{"/ws/[...slug]/**", "/ws/[[...opt]]/x", "/ws/[[lang]]"}}, "/ws/[slug] /ws/[...opt]/x", "/ws/[...slug]/p /ws/[[...opt]]/x /ws/[[lang]]"},
		{"braces are letters too", Options{Deny: []string{"/ws/{-$locale}/**", "/ws/back{up}/**", "/ws/{a,b}/x"}}, "/ws/back /ws/{a,b}", "/ws/{-$locale}/p /ws/-$locale/p /ws/back{up}/a /ws/backup/a /ws/{a,b}/x /ws/a/x"},
		{"signs and letters in one rule", Options{Deny: []string{"/ws/[id]/{edit,new}.*", "/v[0-9]/[x]/**", "/w/{[id],b}/**", "/u/[id].{ts,tsx}"}}, "/ws/[id]/list.ts /v[0]/[x] /u/[id].js", "/ws/[id]/edit.ts /ws/i/new.x /ws/[id]/{edit,new}.x /v1/[x]/a /v1/x /v[0-9]/[x] /w/[id]/k /w/i /w/b /u/[id].tsx /u/d.ts"},
		{"more signs than are told apart", Options{Deny: []string{"/[a]/[b]/[c]/[d]/[e]/[f]/{g,h}"}}, "/[a]/b/[c]/d/[e]/f/g", "/[a]/[b]/[c]/[d]/[e]/[f]/g /[a]/[b]/[c]/[d]/[e]/[f]/{g,h} /a/b/c/d/e/f/h"},
		{"a backslash is a letter too", Options{Deny: []string{`/ws/a\b/**`, `/ws/\[c\]`}}, "/ws/c", `/ws/a\b/x /ws/ab /ws/[c] /ws/\[c\]`},
		{"literal dots and blanks", Options{Deny: []string{"/ws/a.", "/ws/b "[:5]}}, "/ws/c", "/ws/a. /ws/a /ws/A.. /ws/b"},
		{"composed", Options{Deny: []string{"/ws/caf\u00e9/**"}}, "/ws/cafe", "/ws/caf\u00e9/x /ws/cafe\u0301/x /ws/CAFE\u0301/x /ws/CAF\u00c9"},
		{"decomposed", Options{Deny: []string{"/ws/cafe\u0301"}}, "/ws/cafe", "/ws/caf\u00e9 /ws/cafe\u0301"},
		{"Turkish", Options{Deny: []string{"/ws/.git/**"}}, "/ws/.gt", "/ws/.G\u0130T/x /ws/.g\u0131t /ws/.GI\u0307T/config"},
		{"Kelvin", Options{Deny: []string{"/ws/key"}}, "", "/ws/\u212aey /ws/KEY"},
		{"sharp s", Options{Deny: []string{"/ws/straße"}}, "", "/ws/STRASSE /ws/STRAẞE"},
		{"HFS and NTFS names of .git", Options{Deny: []string{"**/.git/**", "**/.gitmodules"}}, "/ws/git /ws/git~ /ws/agit~1", "/ws/.g\u200cit/config /ws/GIT~1/config /ws/.git::$INDEX_ALLOCATION/x /ws/.git. /ws/GITMOD~1 /ws/gi7eba~1 /ws/GITMO~12"},
		{"short names with extension", Options{Deny: []string{"/ws/credentials.json"}}, "/ws/CREDEN~1.TXT /ws/CREDEN~x.JSO", "/ws/CREDEN~1.JSO"},
		{"short names in the middle", Options{Deny: []string{"/program files/private stuff/**"}}, "/PROGRA~1/x", "/PROGRA~1/PRIVAT~2/a /program files/PRIVAT~1"},
	} {
		p := mustNew(t, c.o)
		split := func(s string) []string { // blanks are in names, too: apart by " /"
			if s == "" {
				return nil
			}
			parts := strings.Split(s, " /")
			for i := 1; i < len(parts); i++ {
				parts[i] = "/" + parts[i]
			}
			return parts
		}
		for _, path := range split(c.yes) {
			if err := p.Judge(file(path), guardfs.Read); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		for _, path := range split(c.no) {
			if err := p.Judge(file(path), guardfs.Read); err == nil {
				t.Errorf("%s: %q is let through", c.name, path)
			}
		}
	}
}

// A denied path is denied by each of its names.
func TestNames(t *testing.T) {
	p := mustNew(t, Options{
		Deny:      []string{"/ws/.env", "/tmp/x/**", "/ws/sub/*/key"},
		Canonical: linkTo("/tmp", "/private/tmp"),
	})
	for _, c := range []struct {
		o    guardfs.Object
		want string
	}{
		{guardfs.Object{Spelled: "/ws/link", True: "/ws/.env"}, ruleDeny},
		{guardfs.Object{Spelled: "/ws/.env", True: "/ws/env.sample"}, ruleDeny},
		{guardfs.Object{Spelled: "/ws/a", True: "/ws/b", Hops: hops("/ws/a", "/ws/.ENV")}, ruleDeny},
		{guardfs.Object{Spelled: "/ws/link/../.env", True: "/elsewhere/.env"}, ruleDeny},
		{guardfs.Object{Spelled: "/ws/./.env", True: "/elsewhere"}, ruleDeny},
		{guardfs.Object{Spelled: "/tmp/x/a", True: "/private/tmp/x/a"}, ruleDeny},
		{guardfs.Object{Spelled: "/private/tmp/x/a", True: "/private/tmp/x/a"}, ruleDeny},
		{guardfs.Object{Spelled: "/Private/TMP/x", True: "/Private/TMP/x"}, ruleDeny},
		{guardfs.Object{Spelled: "/tmp/x", True: "/tmp/x"}, ruleDeny},
		{guardfs.Object{Spelled: "/tmp/y", True: "/private/tmp/y", Hops: hops("/tmp")}, ""},
		{guardfs.Object{Spelled: "/mnt/a", True: "/mnt/a", Also: []string{"/x", "/ws/.ENV/a"}}, ruleDeny},
		{guardfs.Object{Spelled: "/mnt/a", True: "/mnt/a", Also: []string{"/x/.env"}}, ""},
		{guardfs.Object{Spelled: "/mnt/l", True: "/ws/b", Hops: []guardfs.Hop{{Name: "/mnt/l", Also: []string{"/ws/.env"}}}}, ruleDeny},
		{guardfs.Object{Spelled: "/ws/p", True: "pipe:[123]"}, rulePseudo},
		{guardfs.Object{Spelled: "/ws/p", True: "(unreachable)/x"}, rulePseudo},
		{guardfs.Object{Spelled: "/ws/p", True: ""}, rulePseudo},
	} {
		if got := ruleOf(p.Judge(c.o, guardfs.Read)); got != c.want {
			t.Errorf("%+v: %q, want %q", c.o, got, c.want)
		}
	}
	p = mustNew(t, Options{Allow: []string{"/tmp/x/**"}, Canonical: linkTo("/tmp", "/private/tmp")})
	for path, want := range map[string]string{"/private/tmp/x/a": "", "/tmp/x/a": "", "/private/tmp/y": ruleAllow} {
		if got := ruleOf(p.Judge(file(path), guardfs.Read)); got != want {
			t.Errorf("allow through a link: %q: %q, want %q", path, got, want)
		}
	}
	o := file("/private/tmp/x/a")
	o.Spelled = "/tmp/x/a"
	must(t, p.Judge(o, guardfs.Read))
	// Allow looks at the true name alone.
	o = guardfs.Object{Spelled: "/private/tmp/x/link", True: "/etc/passwd", Hops: hops("/private/tmp/x/link")}
	if got := ruleOf(p.Judge(o, guardfs.Read)); got != ruleAllow {
		t.Errorf("a link out of the allowed tree: %q", got)
	}
}

// The first name that is refused gives the rule, so that what lies behind it does not show.
func TestFirstRefusalCounts(t *testing.T) {
	p := mustNew(t, Options{
		Allow: []string{"/ws/**"}, Deny: []string{"/ws/secret/**", "/out/secret/**"}, Protected: []Protected{{"/data", "ours"}},
	})
	for _, c := range []struct{ spelled, hops, truth, want string }{
		{"/ws/a/../b", "/ws/a/..", "/ws/b", ""},
		{"/ws/secret/x/../../b", "/ws/secret/x/..", "/ws/b", ruleDeny},
		{"/ws/secret/x/../../b", "/ws/secret/x/.. /ws/c/..", "/ws/b", ruleDeny},
		{"/ws/secret/x/../../b", "/ws/secret/x/.. /data/c/..", "/ws/b", ruleDeny},
		{"/ws/l/../b", "/ws/l /ws/secret/x /data/c", "/ws/b", ruleDeny},
		{"/out/x/../../ws/b", "/out/x/..", "/ws/b", ruleAllow},
		{"/out/x/../../ws/b", "/out/x/.. /ws/secret/..", "/ws/b", ruleAllow},
		{"/out/x/../../ws/b", "/out/x/.. /data/..", "/ws/b", ruleAllow},
		{"/data/x/../../ws/b", "/data/x/.. /ws/secret/..", "/ws/b", ruleProtected},
		// A link outside that leads inside is followed. Where it leads to what is denied, the
		// answer is that of a path that is not there.
		{"/out/l", "/out/l", "/ws/b", ""},
		{"/out/l", "", "/out/l", ruleAllow},
		{"/out/l", "/out/l", "/ws/secret/k", ruleAllow},
		{"/out/l", "/out/l", "/data/k", ruleAllow},
		{"/out/l", "/out/l /ws/secret/l", "/ws/b", ruleAllow},
		{"/ws/secret/l", "/ws/secret/l", "/data/k", ruleDeny},
		{"/ws/l", "/ws/l", "/data/k", ruleProtected},
	} {
		o := guardfs.Object{Spelled: c.spelled, True: c.truth, Hops: hops(strings.Fields(c.hops)...)}
		for _, a := range accesses {
			if got := ruleOf(p.Judge(o, a)); got != c.want {
				t.Errorf("%v %+v: %q, want %q", a, o, got, c.want)
			}
		}
	}
}

func TestProtected(t *testing.T) {
	p := mustNew(t, Options{
		Allow: []string{"/**"},
		Deny:  []string{"/home/u/.moltis/x"},
		Protected: []Protected{
			{"/home/u/.moltis", "the data directory"}, {"/etc/moltis.toml", "the configuration"}, {"/opt/link/moltis-fs", "the binary"},
		},
		Canonical: linkTo("/opt/link", "/opt/real"),
	})
	for path, want := range map[string]string{
		"/home/u/.moltis":            ruleProtected,
		"/home/u/.moltis/x":          ruleProtected, // the stronger reason
		"/home/u/.moltis/audit/a":    ruleProtected,
		"/home/u/.MOLTIS/audit":      ruleProtected,
		"/home/u/.moltis./a":         ruleProtected,
		"/home/u/MOLTIS~1/a":         ruleProtected,
		"/home/u/.moltis2":           "",
		"/etc/moltis.toml":           ruleProtected,
		"/etc/Moltis.TOML:x":         ruleProtected,
		"/etc/moltis.toml.bak":       "",
		"/opt/real/moltis-fs":        ruleProtected,
		"/opt/link/moltis-fs":        ruleProtected,
		"/opt/real/moltis-fs/absent": ruleProtected,
	} {
		for _, a := range accesses {
			if got := ruleOf(p.Judge(file(path), a)); got != want {
				t.Errorf("%v %q: %q, want %q", a, path, got, want)
			}
			absent := guardfs.Object{Spelled: path, True: path}
			if got := ruleOf(p.Judge(absent, a)); got != want {
				t.Errorf("%v absent %q: %q, want %q", a, path, got, want)
			}
		}
	}
	// A directory that holds something protected can't be removed; every other access to it is open.
	for _, dir := range []string{"/", "/home", "/home/u", "/HOME/u", "/etc", "/opt/real"} {
		for _, a := range accesses {
			want := ""
			if a == guardfs.Remove {
				want = ruleProtected
			}
			o := file(dir)
			o.Info.Kind = guardfs.KindDir
			if got := ruleOf(p.Judge(o, a)); got != want {
				t.Errorf("%v %q: %q, want %q", a, dir, got, want)
			}
		}
	}
	// A link on the way can be looked at, but nothing else may take its name.
	for _, kind := range []guardfs.Kind{guardfs.KindSymlink, guardfs.KindAbsent, guardfs.KindFile} {
		for _, a := range accesses {
			want := ""
			if a > guardfs.Read {
				want = ruleProtected
			}
			o := guardfs.Object{Spelled: "/opt/link", True: "/opt/link", Info: guardfs.Info{Kind: kind}}
			if got := ruleOf(p.Judge(o, a)); got != want {
				t.Errorf("%v %v /opt/link: %q, want %q", a, kind, got, want)
			}
		}
	}
	if got := ruleOf(p.Judge(file("/home/v"), guardfs.Remove)); got != "" {
		t.Errorf("removing an unrelated path: %q", got)
	}
}

// TestNoOracle: the answer about a denied path does not depend on what is there.
func TestNoOracle(t *testing.T) {
	id := guardfs.Identity{Dev: 1, Ino: 7}
	p := mustNew(t, Options{
		Allow: []string{"/ws/**"}, Deny: []string{"/ws/secret", "/other/key"}, Protected: []Protected{{"/ws/data", "the data directory"}},
		Identify: func(string) (guardfs.Identity, bool) { return id, true },
		Census: func(root string, visit func(string, guardfs.Kind, guardfs.Identity) error) error {
			return visit(root, guardfs.KindFile, id)
		},
	})
	for _, path := range []string{"/ws/secret", "/ws/secret/deep", "/ws/data/x", "/elsewhere", "/other/key"} {
		texts := map[string]bool{}
		for _, info := range []guardfs.Info{
			{}, {Kind: guardfs.KindFile, Links: 1}, {Kind: guardfs.KindFile, Links: 3, ID: id}, {Kind: guardfs.KindDir, Links: 2, ID: id}, {Kind: guardfs.KindSymlink, Links: 1}, {Kind: guardfs.KindOther, Links: 1},
		} {
			for _, a := range accesses {
				err := p.Judge(guardfs.Object{Spelled: path, True: path, Info: info}, a)
				if err == nil {
					t.Fatalf("%q is let through", path)
				}
				texts[err.Error()] = true
			}
		}
		if len(texts) != 1 {
			t.Errorf("%q: %d answers: %v", path, len(texts), texts)
		}
	}
	if err := p.Judge(file("/ws/secret"), guardfs.Read); err.Error() != `"/ws/secret" is denied by deny_paths` {
		t.Errorf("%v", err)
	}
}

func TestBadRules(t *testing.T) {
	_, err := New(Options{Allow: []string{"/ok", "rel"}, Deny: []string{"/a/[", "~/x"}, Protected: []Protected{{Path: "data"}}})
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 4 {
		t.Fatalf("%v", err)
	}
	for i, want := range []string{"/a/[", "~/x", "data", "rel"} {
		var bad *RuleError
		if !errors.As(joined.Unwrap()[i], &bad) || bad.Rule != want || bad.Why == "" {
			t.Errorf("problem %d: %v, want one with %q", i, joined.Unwrap()[i], want)
		}
	}
	var bad *RuleError
	if err := ruleError("**/x/[", glob.CheckRule("**/x/[")); !errors.As(err, &bad) || bad.Offset != 5 || bad.Rule != "**/x/[" {
		t.Errorf("%+v", bad)
	}
	must(t, glob.CheckRule("/x/**"))
}

// TestTooManyReadings: a path that may stand for more names than are tried is denied, whatever the
// rules speak of.
func TestTooManyReadings(t *testing.T) {
	p := mustNew(t, Options{Deny: []string{"/other/longname1.json", "/other/longname2.json", "/other/longname3.json"}})
	for name, want := range map[string]string{
		"/ws" + strings.Repeat("/longna~1.jso", 3):     "", // 4 × 4 × 4
		"/ws" + strings.Repeat("/longna~1.jso", 4):     ruleDeny,
		"/ws" + strings.Repeat("/dotted.", 6):          "",
		"/ws" + strings.Repeat("/dotted.", 7) + "/end": ruleDeny,
	} {
		if got := ruleOf(p.Judge(file(name), guardfs.Read)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestPathsAreNamedAsADenyListIs(t *testing.T) {
	follow := linkTo("/ws/current", "/ws/rel7")
	for _, c := range []struct{ globs, yes, no string }{
		{".env", "/.env /ws/.env /ws/.env/x", "/ws/.envx /ws/.ENV"},
		{"**/.env", "/.env /ws/.env /ws/.env/x", "/ws/x.env"},
		{"secrets", "/ws/secrets/a/b /secrets", "/ws/secretsx/a"},
		{"**/secrets", "/ws/secrets/a/b /secrets", "/ws/secretsx/a"},
		{"/ws/secrets", "/ws/secrets /ws/secrets/a/b", "/ws /ws/x"},
		{"/ws/current/.env", "/ws/rel7/.env /ws/current/.env", "/ws/rel8/.env /ws/rel7/x"},
		{"/ws/current/**", "/ws/rel7/a /ws/rel7 /ws/current/a", "/ws/rel8/a /ws"},
		{"/ws/{current,b}/*.pem", "/ws/rel7/a.pem /ws/b/a.pem", "/ws/rel7/a"},
		{"[id] /ws/back{up}/**", "/ws/[id]/a /i /ws/back{up}/x /ws/backup", "/ws/id /ws/back"},
		{"*.pem /a/b", "/x/k.pem /a/b/c", "/a/c"},
	} {
		p, err := NewPaths(strings.Fields(c.globs), follow)
		must(t, err)
		for _, name := range strings.Fields(c.yes) {
			if !p.Covers(name) {
				t.Errorf("%s does not cover %s", c.globs, name)
			}
		}
		for _, name := range append(strings.Fields(c.no), "", "relative/.env") {
			if p.Covers(name) {
				t.Errorf("%s covers %s", c.globs, name)
			}
		}
	}
	for _, bad := range []string{"", "a/b", "/a/../b", "~/x", "/["} {
		if _, err := NewPaths([]string{bad}, follow); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// A link that leads elsewhere by now: what is there is named too, and what was there stays it. So
// does a file whose name is a link by now.
func TestPathsFollowLinksAnew(t *testing.T) {
	to := "/rel7"
	p, err := NewPaths([]string{"/current/.env"}, func(name string) string {
		name = path.Clean(linkTo("/current", to)(name))
		return linkTo("/rel9/.env", "/vault/env")(name)
	})
	must(t, err)
	to = "/rel8"
	if p.Covers("/rel8/.env") {
		t.Error("it has not looked yet")
	}
	p.Follow()
	to = "/rel9"
	p.Follow()
	for _, name := range []string{"/current/.env", "/rel7/.env", "/rel8/.env", "/rel9/.env", "/vault/env"} {
		if !p.Covers(name) {
			t.Errorf("%s is not covered", name)
		}
	}
	if p.Covers("/rel9/env") {
		t.Error("too much")
	}
}

// A rule holds wherever the links in its literal beginning lead, or have led since the start.
func TestRulesFollowLinks(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	links := map[string]string{}
	asked := 0
	d := &disk{files: map[string]uint64{"/ws/real/k": 7, "/ws/other": 7}}
	p := mustNew(t, Options{
		Allow: []string{"/ws/**"}, Deny: []string{"/ws/late/**", "/ws/l/*/f?.pem", "**/*.key"}, Protected: []Protected{{"/ws/own", "ours"}},
		Canonical: func(path string) string {
			asked++
			for from, to := range links {
				path = linkTo(from, to)(path)
			}
			return path
		},
		Census: d.census, now: func() time.Time { return now },
	})
	was := p.Dir("/ws/x")
	expect := func(path, want string) {
		t.Helper()
		if got := ruleOf(p.Judge(file(path), guardfs.Read)); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
		dir, name := path[:strings.LastIndexByte(path, '/')], path[strings.LastIndexByte(path, '/')+1:]
		if v := p.Dir(dir); (v.All || v.Entry != nil && v.Entry(name, guardfs.KindFile)) != (want == "") {
			t.Errorf("%s: the verdict on its directory differs", path)
		}
	}
	free := func(paths ...string) {
		t.Helper()
		for _, path := range paths {
			expect(path, "")
		}
	}
	linked := file("/ws/other")
	linked.Info.Links, linked.Info.ID = 2, guardfs.Identity{Dev: 1, Ino: 7}
	free("/ws/real/k", "/ws/REAL", "/ws/m/d/f1.pem", "/ws/o/x", "/ws/x/k")
	must(t, p.Judge(linked, guardfs.Read))
	before := asked
	free("/ws/real/k")
	if asked != before {
		t.Error("links are followed for every path")
	}

	links["/ws/late"], links["/ws/l"], links["/ws/own"] = "/ws/real", "/ws/m", "/ws/o"
	now = now.Add(linkCheckInterval)
	expect("/ws/real/k", ruleDeny)
	expect("/ws/Real/deep/k", ruleDeny)
	expect("/ws/late/k", ruleDeny)
	expect("/ws/m/d/f1.PEM", ruleDeny)
	expect("/ws/o/x", ruleProtected)
	free("/ws/m/d/f1.txt", "/ws/x/k")
	if err := p.Judge(linked, guardfs.Read); err == nil {
		t.Error("a hard link of what is denied since the link was made is let through")
	}
	if was.Entry == nil || !was.Entry("k", guardfs.KindFile) {
		t.Error("a verdict that was given has changed")
	}

	links["/ws/late"] = "/ws/next"
	delete(links, "/ws/l")
	now = now.Add(linkCheckInterval)
	expect("/ws/next/k", ruleDeny)
	expect("/ws/real/k", ruleDeny) // where it led before
	expect("/ws/m/d/f1.pem", ruleDeny)

	for i := range maxFollowed + 2 {
		links["/ws/late"] = fmt.Sprintf("/ws/to%d", i)
		now = now.Add(linkCheckInterval)
		p.Dir("/ws")
	}
	var no *Denied
	if err := p.Judge(file("/ws/x/k"), guardfs.Read); !errors.As(err, &no) || no.Why == "" {
		t.Errorf("links that led to more places than are held: %v", err)
	}
	if v := p.Dir("/ws/x"); v.All || v.Entry != nil {
		t.Error("and directories are shown")
	}
}

// Slow looks, as on a server far away, are rarer.
func TestSlowLinksAreFollowedSeldom(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	asked := 0
	p := mustNew(t, Options{
		Deny: []string{"/far/**"}, now: func() time.Time { return now },
		Canonical: func(path string) string { asked++; now = now.Add(time.Second); return path },
	})
	for range 100 {
		now = now.Add(time.Second)
		p.Dir("/ws")
	}
	if asked > 4 {
		t.Errorf("a look of a second was taken %d times in two minutes", asked)
	}
}
