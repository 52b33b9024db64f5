// Package place says where a session's calls run: the sandbox that [tools.sandbox] has for it, the
// command line that starts our worker there. It starts programs that the operator
// named, and touches no file.
package place

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"

	"moltisfs/config"
	"moltisfs/internal/lazy"
)

// A Place is one sandbox.
type Place struct {
	// ID names it in answers, in the audit log and as a data directory: the program that leads there,
	// and a hash of the command and the root. Host is this machine's.
	ID      string
	Run     []string // runs a program inside, which stands behind it
	Program string   // ours, inside
	Root    string   // the workspace inside
	Dir     string   // the directory of this machine that Root is; "" where that can't be told
}

// Host is where calls run that go to no sandbox.
const Host = "host"

// inside is the program where bubblewrap: brings it.
const inside = "/moltis-fs"

// plain is a name that is neither an option nor anything to a shell.
var plain = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

// Has says whether the calls of a session belong into a sandbox.
func Has(cfg config.Sandbox, principal, session string) bool {
	if cfg.Mode != "sessions" {
		return cfg.Mode == "all"
	}
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") } // a star takes a slash too
	return slices.ContainsFunc(cfg.Sessions, func(g string) bool {
		name := session
		if strings.Contains(g, "/") {
			name = principal + "/" + session
		}
		is, err := path.Match(flat(g), flat(name))
		return is || err != nil // which config.Check refuses
	})
}

// PerSession says whether the command differs by caller.
func PerSession(cfg config.Sandbox) bool {
	all := strings.Join(cfg.Command, " ")
	return strings.Contains(all, "{session}") || strings.Contains(all, "{principal}")
}

// Of is the sandbox of a session. self is the file of our program on this machine. root is that of this machine, "" for none. The error is that there
// is no command, or that something stands for a root that there is not, or for a name that can't be
// part of one.
func Of(cfg config.Sandbox, self, root, principal, session string) (*Place, error) {
	p := &Place{Root: path.Clean(strings.ReplaceAll(cfg.Root, "${ROOT}", root))}
	words := slices.Clone(cfg.Command)
	if len(words) == 0 {
		return nil, errors.New("[tools.sandbox] has no command")
	}
	for i := range words {
		for _, v := range []struct{ what, variable, name string }{
			{"session", "{session}", session}, {"principal", "{principal}", principal},
		} {
			if strings.Contains(words[i], v.variable) && !plain().MatchString(v.name) {
				return nil, fmt.Errorf("the name of the %s, %q, can't stand in the command of [tools.sandbox]: "+
					"it takes letters, digits, and _ . - behind the first", v.what, v.name)
			}
			words[i] = strings.ReplaceAll(words[i], v.variable, v.name)
		}
		words[i] = strings.ReplaceAll(words[i], "${ROOT}", root)
	}
	if root == "" && strings.Contains(strings.Join(cfg.Command, " ")+cfg.Root, "${ROOT}") {
		return nil, errors.New("[tools.sandbox] has ${ROOT}, and no root is given: name one with --root, " +
			"or set workspace_root")
	}
	cfg.Command = words
	form, name := cfg.Form()
	p.Run, p.Program = words, "moltis-fs"
	switch form {
	case "docker", "podman":
		p.Run = []string{form, "exec", "-i", name}
	case "ssh":
		p.Run = []string{"ssh", "-T", "-oBatchMode=yes", "-oConnectTimeout=10", "-oServerAliveInterval=15",
			"-oServerAliveCountMax=3", "--", name}
	case "bubblewrap":
		p.Run = []string{"bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv",
			"--as-pid-1", "--proc", "/proc", "--dev", "/dev", "--bind", name, p.Root,
			"--ro-bind", self, inside, "--chdir", "/", "--"} // its own init would be left to the system's
		p.Dir = name
		p.Program = inside
	}
	said, err := json.Marshal([]any{words, p.Root})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(said)
	p.ID = base(p.Run) + "-" + hex.EncodeToString(sum[:8])
	return p, nil
}

// base is the program that a command line starts, by a name that can be that of a directory.
func base(run []string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, path.Base(run[0]))
}

// Command is the command line that runs a program of the sandbox with its arguments.
func (p *Place) Command(args ...string) []string {
	if path.Base(p.Run[0]) == "ssh" { // which gives one string to a shell on the other side
		for i, a := range args {
			args[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	return slices.Concat(p.Run, args)
}

// Worker is the command line that starts our worker.
func (p *Place) Worker() []string { return p.Command(p.Program, "worker", "--root", p.Root) }

// Real says why nothing can be started by the command; nil where its program is there.
func (p *Place) Real() error {
	_, err := exec.LookPath(p.Run[0])
	return err
}
