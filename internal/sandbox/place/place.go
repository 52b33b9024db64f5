// Package place says where a session's calls run: the sandbox that [tools.sandbox] has for it, the
// command line that starts our worker there, and how our program comes to be there. It starts
// programs that the operator named, and touches no file.
package place

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"moltisfs/config"
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

// Self is our program on this machine: its file, and the SHA-256 of that in hex where a copy is to be made.
type Self struct{ File, Hash string }

// plain is a name that is neither an option nor anything to a shell.
var plain = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)

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

// PerSession says whether the command differs by who calls.
func PerSession(cfg config.Sandbox) bool {
	all := strings.Join(cfg.Command, " ")
	return strings.Contains(all, "{session}") || strings.Contains(all, "{principal}")
}

// Of is the sandbox of a session. root is that of this machine, "" for none. The error is that there
// is no command, or that something stands for a root that there is not, or for a name that can't be
// part of one.
func Of(cfg config.Sandbox, self Self, root, principal, session string) (*Place, error) {
	p := &Place{Root: path.Clean(strings.ReplaceAll(cfg.Root, "${ROOT}", root))}
	words := slices.Clone(cfg.Command)
	if len(words) == 0 {
		return nil, errors.New("[tools.sandbox] has no command")
	}
	for i := range words {
		for _, v := range []struct{ what, variable, name string }{
			{"session", "{session}", session}, {"principal", "{principal}", principal},
		} {
			if strings.Contains(words[i], v.variable) && !plain.MatchString(v.name) {
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
	p.Run, p.Program = words, cmp.Or(cfg.Program, "moltis-fs")
	switch form {
	case "docker", "podman":
		p.Run = []string{form, "exec", "-i", name}
	case "ssh":
		p.Run = []string{"ssh", "-T", "-oBatchMode=yes", "-oConnectTimeout=10", "-oServerAliveInterval=15",
			"-oServerAliveCountMax=3", "--", name}
	case "bubblewrap":
		p.Run = []string{"bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--clearenv",
			"--as-pid-1", "--proc", "/proc", "--dev", "/dev", "--bind", name, p.Root,
			"--ro-bind", self.File, inside, "--chdir", "/", "--"} // its own init would be left to the system's
		p.Dir = name
		p.Program = cmp.Or(cfg.Program, inside)
	}
	if cfg.CopyBinary {
		p.Program = "/tmp/moltis-fs-" + self.Hash
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

// The scripts that a shell runs inside, to see and to make the copy. It is made aside, and looked at before
// it has its name. One that is another user's is not taken, as that one could trade it.
const (
	looking = `[ -f "$1" ] && [ ! -h "$1" ] && [ -O "$1" ] && sha256sum < "$1"`
	putting = `[ ! -d "$1" ] && t=$(mktemp "$1.XXXXXX") || exit; trap 'rm -f "$t"' EXIT; ` +
		`cat > "$t" && chmod 500 "$t" && [ "$(sha256sum < "$t" | cut -c 1-64)" = "$2" ] && mv -f "$t" "$1"`
)

// Put has a copy of our program, open at its beginning, be inside as p.Program, by a file whose hash is hash:
// one that is there already is taken.
func (p *Place) Put(ctx context.Context, program io.Reader, hash string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if out, err := p.shell(ctx, nil, looking); err == nil && strings.HasPrefix(out, hash) {
		return nil
	}
	if _, err := p.shell(ctx, program, putting, hash); err != nil {
		return fmt.Errorf("copying this program to %s, which takes a shell, sha256sum, mktemp and room in /tmp: %w",
			p.ID, err)
	}
	if out, err := p.shell(ctx, nil, looking); err != nil || !strings.HasPrefix(out, hash) {
		return fmt.Errorf("copying this program to %s: what is there as %s is something else", p.ID, p.Program)
	}
	return nil
}

// shell runs a script inside, with the program's name and args for its own.
func (p *Place) shell(ctx context.Context, in io.Reader, script string, args ...string) (string, error) {
	line := p.Command(append([]string{"sh", "-c", script, "sh", p.Program}, args...)...)
	c := exec.CommandContext(ctx, line[0], line[1:]...)
	var said bytes.Buffer
	c.Stdin, c.Stderr, c.WaitDelay = in, &said, time.Second
	out, err := c.Output()
	if text := strings.TrimSpace(said.String()); err != nil && text != "" {
		err = fmt.Errorf("%w: %.200s", err, text)
	}
	return string(out), err
}
