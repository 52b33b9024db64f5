package place

import (
	"strings"
	"testing"

	"moltisfs/config"
)

const self = "/opt/moltis fs/moltis-fs"

func of(t *testing.T, change func(*config.Sandbox)) *Place {
	t.Helper()
	cfg := config.Default().Tools.Sandbox
	change(&cfg)
	p, err := Of(cfg, self, "/home/user/project", "ci", "s-1")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Each ready form's command line, word by word.
func TestReadyForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id     string
		change func(*config.Sandbox)
		want   string
	}{
		{"docker-", func(s *config.Sandbox) { s.Command = []string{"docker:box-{session}"} },
			"docker|exec|-i|box-s-1|moltis-fs|worker|--root|/workspace"},
		{"podman-", func(s *config.Sandbox) { s.Command = []string{"podman:{principal}"} },
			"podman|exec|-i|ci|moltis-fs|worker|--root|/workspace"},
		{"bwrap-", func(s *config.Sandbox) { s.Command = []string{"bubblewrap:${ROOT}"} },
			"bwrap|--unshare-all|--die-with-parent|--new-session|--clearenv|--as-pid-1|--proc|/proc|--dev|/dev|" +
				"--bind|/home/user/project|/workspace|--ro-bind|/opt/moltis fs/moltis-fs|/moltis-fs|--chdir|/|--|" +
				"/moltis-fs|worker|--root|/workspace"},
		{"ssh-", func(s *config.Sandbox) { s.Command, s.Root = []string{"ssh:me@there"}, "/it's here" },
			"ssh|-T|-oBatchMode=yes|-oConnectTimeout=10|-oServerAliveInterval=15|-oServerAliveCountMax=3|--|me@there|" +
				`'moltis-fs'|'worker'|'--root'|'/it'\''s here'`},
		{"nsenter-", func(s *config.Sandbox) {
			s.Command, s.Root = []string{"/usr/bin/nsenter", "-t", "7", "-m", "-p"}, "${ROOT}/src"
		}, "/usr/bin/nsenter|-t|7|-m|-p|moltis-fs|worker|--root|/home/user/project/src"},
	} {
		p := of(t, c.change)
		if (p.Dir == "/home/user/project") != (c.id == "bwrap-") {
			t.Errorf("%s is %q on this machine", c.id, p.Dir)
		}
		if got := strings.Join(p.Worker(), "|"); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
		if !strings.HasPrefix(p.ID, c.id) || len(p.ID) != len(c.id)+16 {
			t.Errorf("its name is %q, want %s and a hash", p.ID, c.id)
		}
	}
}

// The name of a caller must not become an option, a path or a command.
func TestNamesInCommands(t *testing.T) {
	t.Parallel()
	cfg := config.Default().Tools.Sandbox
	cfg.Command = []string{"docker:{session}"}
	for _, name := range []string{"", "-v", "--privileged", "a b", "a;b", "$(id)", "../x", "a/b", "ä", "x\n", ".",
		strings.Repeat("x", 129)} {
		if p, err := Of(cfg, self, "", "local", name); err == nil {
			t.Errorf("session %q gives %q", name, p.Run)
		} else if !strings.Contains(err.Error(), "the name of the session, ") {
			t.Errorf("session %q: %v", name, err)
		}
	}
	cfg.Command = []string{"docker:box"} // then it is nobody's business
	if _, err := Of(cfg, self, "", "local", "--x"); err != nil {
		t.Error(err)
	}
	cfg.Command = []string{"bubblewrap:${ROOT}"}
	if p, err := Of(cfg, self, "", "local", "s"); err == nil {
		t.Errorf("without a root: %q", p.Run)
	}
}

func TestWhichSessions(t *testing.T) {
	t.Parallel()
	cfg := config.Sandbox{Mode: "sessions", Sessions: []string{"ci/*", "untrusted-*", "a*/s?", "team/x/*"}}
	for who, want := range map[[2]string]bool{
		{"ci", "x"}: true, {"ci", "a/b"}: true, {"me", "untrusted-1"}: true, {"me", "untrusted-a/b"}: true,
		{"local", "default"}: false, {"cif", "x"}: false, {"abc", "s1"}: true, {"abc", "s10"}: false,
		{"a/b", "s1"}: true, {"team/x", "s"}: true, {"team", "x/s"}: true, {"team/xy", "s"}: false, {"me", "s"}: false,
	} {
		if got := Has(cfg, who[0], who[1]); got != want {
			t.Errorf("%v: %v", who, got)
		}
	}
	if cfg.Mode = "all"; !Has(cfg, "x", "y") {
		t.Error("all leaves one out")
	}
	if cfg.Mode = "off"; Has(cfg, "ci", "x") {
		t.Error("off takes one in")
	}
}

// Another command or root is another sandbox; where our program lies does not matter.
func TestOneNameOneSandbox(t *testing.T) {
	t.Parallel()
	a := of(t, func(s *config.Sandbox) { s.Command = []string{"bubblewrap:/a"} })
	b := of(t, func(s *config.Sandbox) { s.Command = []string{"bubblewrap:/b"} })
	c := of(t, func(s *config.Sandbox) { s.Command, s.Root = []string{"bubblewrap:/a"}, "/w" })
	if a.ID == b.ID || a.ID == c.ID {
		t.Error("two sandboxes have one name")
	}
	cfg := config.Default().Tools.Sandbox
	cfg.Command = []string{"bubblewrap:/a"}
	if d, _ := Of(cfg, "/elsewhere", "", "x", "y"); d.ID != a.ID {
		t.Error("a newer program is another sandbox")
	}
}
