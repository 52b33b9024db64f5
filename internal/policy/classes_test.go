package policy

import (
	"errors"
	"testing"

	"moltisfs/internal/guardfs"
)

func classes(t *testing.T, o ClassOptions) *Classes {
	t.Helper()
	c, err := NewClasses(o)
	must(t, err)
	return c
}

var all = Holds{Secret: true, Exec: true}

// TestSecretsAreClosed: under each name, in each spelling, for each access, and whether or not
// something is there. An allow rule does not open them, and without the class they are open.
func TestSecretsAreClosed(t *testing.T) {
	t.Parallel()
	with, err := New(Options{Allow: []string{"/ws/**", "/ws/.env"}, Classes: classes(t, ClassOptions{Holds: all})})
	must(t, err)
	without, err := New(Options{Allow: []string{"/ws/**"}})
	must(t, err)
	for _, o := range []guardfs.Object{
		{Spelled: "/ws/.env", True: "/ws/.env"},
		{Spelled: "/ws/.ENV", True: "/ws/.ENV"},
		{Spelled: "/ws/.env. ", True: "/ws/.env. "},
		{Spelled: "/ws/.e\u200bnv", True: "/ws/.e\u200bnv"},
		{Spelled: "/ws/.env::$DATA", True: "/ws/.env::$DATA"},
		{Spelled: `/ws/a\.env`, True: `/ws/a\.env`},
		{Spelled: "/ws/ENV~1", True: "/ws/ENV~1"},
		{Spelled: "/ws/a/.SSH/x", True: "/ws/a/.SSH/x"},
		{Spelled: "/ws/AWS~1/credentials", True: "/ws/.aws/credentials"},
		{Spelled: "/ws/l", True: "/ws/.ssh/id_rsa", Hops: []guardfs.Hop{{Name: "/ws/l"}}},
		{Spelled: "/ws/l", True: "/ws/plain", Hops: []guardfs.Hop{{Name: "/ws/l"}, {Name: "/ws/.netrc"}}},
		{Spelled: "/ws/.env", True: "/ws/plain", Hops: []guardfs.Hop{{Name: "/ws/.env"}}},
		{Spelled: "/ws/m", True: "/ws/m", Also: []string{"/ws/.ssh/m"}},
	} {
		for a := guardfs.Look; a <= guardfs.Remove; a++ {
			for _, k := range []guardfs.Kind{guardfs.KindAbsent, guardfs.KindFile} {
				o.Info.Kind = k
				var no *Denied
				if err := with.Judge(o, a); !errors.As(err, &no) || no.Rule != "secret" {
					t.Errorf("%v %v: %v", o, a, err)
				}
				if err := without.Judge(o, a); err != nil {
					t.Errorf("without the class: %v", err)
				}
			}
		}
	}
	for _, name := range []string{"/ws/.env.example", "/ws/cert.pem", "/ws/.git/config", "/ws/Makefile"} {
		must(t, with.Judge(guardfs.Object{Spelled: name, True: name}, guardfs.Create))
	}
}

// TestListingsHideSecrets: entry by entry, as Judge says of each name.
func TestListingsHideSecrets(t *testing.T) {
	t.Parallel()
	p, err := New(Options{Deny: []string{"/ws/x/no"}, Root: "/", Classes: classes(t, ClassOptions{Holds: all, Lifted: []string{"/ws/lifted/**"}})})
	must(t, err)
	dirs := []string{"/ws", "/ws/x", "/ws/.aws", "/ws/lifted", "/ws/.Config/GH", "/ws/.aws. ", "/", "/ws/.docker:x"}
	names := []string{"a.go", ".env", ".ENV", ".Env.Local", ".env.example", ".e\u200bnv", "id_rsa", "ID_RSA", "credentials", "Credentials", "hosts.yml",
		"config.json", ".ssh", "ssh~1", "no", "x.KEY", "x.key ", "öffentlich.key", "Makefile", ".git"}
	for _, dir := range dirs {
		v := p.Dir(dir)
		for _, name := range names {
			full := "/" + name
			if dir != "/" {
				full = dir + full
			}
			want := p.Judge(guardfs.Object{Spelled: full, True: full}, guardfs.Look) == nil
			if got := shows(v, name); got != want {
				t.Errorf("%s in %s: shown %v, judged open %v", name, dir, got, want)
			}
			if v.Below == nil {
				continue
			}
			if b, ok := v.Below(name); ok {
				d := p.Dir(full)
				for _, inner := range names {
					if shows(b, inner) != shows(d, inner) {
						t.Errorf("%s in %s: by steps %v, at once not", inner, full, shows(b, inner))
					}
				}
			}
		}
	}
}

// shows says whether a walk with the verdict shows a name.
func shows(v guardfs.DirVerdict, name string) bool {
	return v.All && (v.Hides == nil || !v.Hides(name)) || v.Entry != nil && v.Entry(name, guardfs.KindFile)
}

// TestLifted: by path, each name by itself.
func TestLifted(t *testing.T) {
	t.Parallel()
	real := func(p string) string {
		if p == "/l" || p == "/l/x" {
			return "/real" + p[2:]
		}
		return p
	}
	c := classes(t, ClassOptions{Holds: all, Lifted: []string{"/ws/certs/**", "/ws/.env", "/l/x/**"}, Root: "/home/.claude/wt", Canonical: real})
	for name, want := range map[string]Class{
		"/ws/certs/a.key": NoClass, "/ws/certs/.git/config": NoClass, "/ws/.env": NoClass, "/ws/.env/x": NoClass,
		"/ws/.ENV": Secret, "/ws/.env.local": Secret, "/ws/Certs/a.key": Secret, "/real/x/.env": NoClass,
		"/home/.claude/wt": NoClass, "/home/.claude/wt/a.go": NoClass, "/home/.claude/wt/.env": Secret,
		"/home/.claude/wt/a~": NoClass, "/home/.claude/wt/a:b": NoClass, "/home/.claude/wt/ENV~1": Secret,
		`/home/.claude/wt/a\..\..\.env`: Secret, "/home/.claude/other~": Exec, "/home/.claude/other": Exec, "/home/.claude/wt/../x": Exec, "relative/.env": NoClass,
	} {
		if got := c.Of(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	// A link on the way to a lifted name is lifted with it, and for that name only.
	p, err := New(Options{Classes: classes(t, ClassOptions{Holds: all, Lifted: []string{"/ws/.ssh/config"}})})
	must(t, err)
	hops := []guardfs.Hop{{Name: "/ws/.ssh"}}
	for name, open := range map[string]bool{"/ws/.ssh/config": true, "/ws/.ssh/other": false, "/ws/.ssh/config/../other": false} {
		if err := p.Judge(guardfs.Object{Spelled: name, True: "/ws/real/x", Hops: hops}, guardfs.Read); (err == nil) != open {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := p.Judge(guardfs.Object{Spelled: "/ws/.ssh/config", True: "/ws/id_rsa", Hops: hops}, guardfs.Read); err == nil {
		t.Error("a lifted name leads to a secret")
	}
	if _, err := NewClasses(ClassOptions{Lifted: []string{"relative"}}); err == nil {
		t.Error("a relative glob is taken")
	}
}

// TestWorst: what runs code does so under each of its names.
func TestWorst(t *testing.T) {
	t.Parallel()
	c := classes(t, ClassOptions{Holds: all})
	for _, o := range []guardfs.Object{
		{Spelled: "/ws/.vscode/tasks.json", True: "/ws/conf/tasks.json"},
		{Spelled: "/ws/l/config", True: "/ws/.git/config"},
		{Spelled: "/ws/a", True: "/ws/b", Hops: []guardfs.Hop{{Name: "/ws/.bashrc"}}},
		{Spelled: "/ws/a", True: "/ws/b", Hops: []guardfs.Hop{{Name: "/ws/c", Also: []string{"/ws/.bashrc"}}}},
		{Spelled: "/ws/a", True: "/ws/b", Also: []string{"/ws/.GIT/hooks/x"}},
		{Spelled: "/ws/GIT~1/config", True: "/ws/GIT~1/config"},
	} {
		if by, got := c.Worst(o); got != Exec || c.Of(by) != got {
			t.Errorf("%v is %q by %s", o, got, by)
		}
	}
	if _, got := c.Worst(guardfs.Object{Spelled: "/ws/a", True: "/ws/b"}); got != NoClass {
		t.Errorf("a plain file is %q", got)
	}
}
