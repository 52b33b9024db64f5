package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// told is the findings about something, one a line.
func told(found []Finding, about string) string {
	var b strings.Builder
	for _, f := range found {
		if f.About == about {
			b.WriteString(string(f.Level) + " " + f.What + "\n")
		}
	}
	return b.String()
}

// Each hazard is seen, and gone once it is mended.
func TestHazards(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: modes say nothing on Windows")
	}
	for _, c := range []struct {
		name, about, bad, good string
		set                    func(o *Options, bad bool) error
	}{
		{"config for all", "config", "hazard others may write to", "ok only its owner", func(o *Options, bad bool) error {
			return os.Chmod(o.Config, map[bool]os.FileMode{true: 0o666, false: 0o644}[bad])
		}},
		{"config of somebody else", "config", "hazard ", "ok only its owner", func(o *Options, bad bool) error {
			switch {
			case !bad:
				return nil
			case os.Geteuid() == 0:
				return os.Chown(o.Config, 1234, 1234)
			}
			return os.Chmod(o.Config, 0o666)
		}},
		{"directory of the program", "program", "hazard others may write to", "ok only its owner", func(o *Options, bad bool) error {
			return os.Chmod(filepath.Dir(o.Program), map[bool]os.FileMode{true: 0o777, false: 0o755}[bad])
		}},
		{"above the directory of the program", "program", "hazard others may write to", "ok only its owner", func(o *Options, bad bool) error {
			return os.Chmod(filepath.Dir(o.Data), map[bool]os.FileMode{true: 0o777, false: 0o755}[bad])
		}},
		{"link to a config", "config", "hazard others may write to", "ok only its owner", func(o *Options, bad bool) error {
			link := filepath.Join(filepath.Dir(o.Program), "link.toml")
			err := os.Symlink(o.Config, link)
			o.Config = link
			return errors.Join(err, os.Chmod(filepath.Dir(filepath.Dir(link))+"/etc", map[bool]os.FileMode{true: 0o777, false: 0o755}[bad]))
		}},
		{"a hook for all", "config", "hazard others may write to", "ok only its owner", func(o *Options, bad bool) error {
			o.Obeyed = []string{filepath.Join(filepath.Dir(o.Config), "hook")}
			return errors.Join(os.WriteFile(o.Obeyed[0], nil, 0o700), os.Chmod(o.Obeyed[0], map[bool]os.FileMode{true: 0o777, false: 0o755}[bad]))
		}},
		{"config in the root", "config", "hazard it lies in", "ok only its owner", func(o *Options, bad bool) error {
			if bad {
				o.Config = filepath.Join(o.Roots[0], "file")
			}
			return nil
		}},
		{"program in a root by a link", "program", "hazard it lies in", "ok only its owner", func(o *Options, bad bool) error {
			link := filepath.Join(filepath.Dir(o.Data), "link")
			if bad {
				o.Roots = []string{link}
			}
			return os.Symlink(filepath.Dir(o.Program), link)
		}},
		{"the homes", "policy", "hazard it holds a home", "", func(o *Options, bad bool) error {
			if bad {
				o.Roots = []string{"/home"}
			}
			return nil
		}},
		{"sticky directory of the program", "program", "ok only its owner", "ok only its owner", func(o *Options, _ bool) error {
			return os.Chmod(filepath.Dir(o.Program), 0o777|os.ModeSticky)
		}},
		{"data for all", "data", "hazard others may write in it", "ok it is its owner's", func(o *Options, bad bool) error {
			return os.Chmod(o.Data, map[bool]os.FileMode{true: 0o777, false: 0o700}[bad])
		}},
		{"data to look at", "data", "weaker others may look", "ok it is its owner's", func(o *Options, bad bool) error {
			return os.Chmod(o.Data, map[bool]os.FileMode{true: 0o755, false: 0o700}[bad])
		}},
		{"data in the root", "data", "hazard it lies in", "ok it is not there yet", func(o *Options, bad bool) error {
			o.Data = filepath.Join(filepath.Dir(o.Data), "later")
			if bad {
				o.Data = filepath.Join(o.Roots[0], "later")
			}
			return nil
		}},
		{"home", "policy", "hazard it holds a home", "", func(o *Options, bad bool) error {
			o.Home = filepath.Dir(o.Data)
			if bad {
				o.Home = filepath.Join(o.Roots[0], "user")
			}
			return nil
		}},
		{"no wall", "policy", "hazard everything is open", "", func(o *Options, bad bool) error {
			if bad {
				o.Roots = nil
			}
			return nil
		}},
		{"lifted", "policy", "weaker not protected: class exec", "", func(o *Options, bad bool) error {
			if bad {
				o.Lifted = "class exec"
			}
			return nil
		}},
		{"link out", "root", "hazard files that have other names outside: 1", "ok no file has a name outside", func(o *Options, bad bool) error {
			to := filepath.Join(o.Roots[0], "twin")
			if bad {
				to = filepath.Join(filepath.Dir(o.Roots[0]), "twin")
			}
			return os.Link(filepath.Join(o.Roots[0], "file"), to)
		}},
		{"too many names", "root", "weaker it is too large", "ok no file has a name outside", func(o *Options, bad bool) error {
			if bad {
				o.Budget = 1
			}
			return nil
		}},
		{"no root", "root", "weaker nothing can be seen", "ok no file has a name outside", func(o *Options, bad bool) error {
			if bad {
				return os.RemoveAll(o.Roots[0])
			}
			return nil
		}},
	} {
		for _, bad := range []bool{true, false} {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Roots: []string{dir + "/root"}, Config: dir + "/etc/c.toml", Program: dir + "/bin/p", Data: dir + "/data", Home: dir + "/h"}
			for _, d := range []string{"root", "etc", "bin", "data"} {
				err = errors.Join(err, os.Mkdir(filepath.Join(dir, d), 0o700))
			}
			for _, f := range []string{"root/file", "etc/c.toml", "bin/p"} {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
			}
			if err := errors.Join(err, c.set(&o, bad)); err != nil {
				t.Fatal(err)
			}
			found, err := Look(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			want := map[bool]string{true: c.bad, false: c.good}[bad]
			if got := told(found, c.about); !strings.Contains(got, want) || want == "" && got != "" {
				t.Errorf("%s, bad %t: %q; want %q", c.name, bad, got, want)
			}
		}
	}
}

// Whoever hangs up gets no half of an answer.
func TestHungUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if found, err := Look(ctx, Options{Roots: []string{t.TempDir()}}); !errors.Is(err, context.Canceled) || found != nil {
		t.Errorf("%v, %v", found, err)
	}
}
