package doctor

import (
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
		name, about, bad string      // bad: what is told of it
		at               string      // what has another mode
		mode, good       os.FileMode // bad and good
		spoil            func(o *Options, dir string) error
	}{
		{"config for all", "config", "hazard others may write to", "etc/c.toml", 0o666, 0o644, nil},
		{"config of somebody else", "config", "hazard ", "", 0, 0, func(o *Options, _ string) error {
			if os.Geteuid() != 0 {
				return os.Chmod(o.Config, 0o666)
			}
			return os.Chown(o.Config, 1234, 1234)
		}},
		{"directory of the program", "program", "hazard others may write to", "bin", 0o777, 0o755, nil},
		{"above the directory of the program", "program", "hazard others may write to", "", 0o777, 0o755, nil},
		{"link to a config", "config", "hazard others may write to", "etc", 0o777, 0o755, nil},
		{"a hook for all", "config", "hazard others may write to", "etc/hook", 0o777, 0o755, nil},
		{"config in the root", "config", "hazard it lies in", "", 0, 0, set(func(o *Options) { o.Config = o.Roots[0] + "/file" })},
		{"program in a root by a link", "program", "hazard it lies in", "", 0, 0, func(o *Options, dir string) error {
			o.Roots = []string{dir + "/link"}
			return os.Symlink("bin", o.Roots[0])
		}},
		{"the homes", "policy", "hazard it holds a home", "", 0, 0, set(func(o *Options) { o.Roots = []string{"/home"} })},
		{"sticky directory of the program", "program", "", "bin", 0o777 | os.ModeSticky, 0o755, nil},
		{"data for all", "data", "hazard others may write in it", "data", 0o777, 0o700, nil},
		{"data in the root", "data", "hazard it lies in", "", 0, 0, set(func(o *Options) { o.Data = o.Roots[0] + "/later" })},
		{"home", "policy", "hazard it holds a home", "", 0, 0, set(func(o *Options) { o.Home = o.Roots[0] + "/user" })},
		{"no wall", "policy", "hazard every path that is not denied is accessible", "", 0, 0, set(func(o *Options) { o.Roots = nil })},
		{"lifted", "policy", "weaker not protected: class exec", "", 0, 0, set(func(o *Options) { o.Lifted = "class exec" })},
		{"nobody is asked", "policy", "weaker no approver", "", 0, 0, set(func(o *Options) { o.Unasked = true })},
		{"no undo", "policy", "weaker undo is off", "", 0, 0, set(func(o *Options) { o.Lasting = true })},
		{"all in a sandbox", "policy", "", "", 0, 0, set(func(o *Options) { o.Roots, o.Inside = nil, true })},
	} {
		for _, bad := range []bool{true, false} {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			o := Options{Roots: []string{dir + "/root"}, Config: dir + "/etc/c.toml", Program: dir + "/bin/p", Data: dir + "/data", Home: dir + "/h",
				Obeyed: []string{dir + "/etc/hook"}}
			for _, d := range []string{"root", "etc", "bin", "data"} {
				err = errors.Join(err, os.Mkdir(filepath.Join(dir, d), 0o700))
			}
			for _, f := range []string{"root/file", "etc/c.toml", "etc/hook", "bin/p"} {
				err = errors.Join(err, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
			}
			if c.name == "link to a config" {
				o.Config = dir + "/bin/link.toml"
				err = errors.Join(err, os.Symlink("../etc/c.toml", o.Config))
			}
			want := ""
			if bad {
				want = c.bad
			}
			switch {
			case bad && c.spoil != nil:
				err = errors.Join(err, c.spoil(&o, dir))
			case bad:
				err = errors.Join(err, os.Chmod(filepath.Join(dir, c.at), c.mode))
			case c.spoil == nil:
				err = errors.Join(err, os.Chmod(filepath.Join(dir, c.at), c.good))
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := told(Look(o), c.about); !strings.Contains(got, want) || want == "" && got != "" {
				t.Errorf("%s, bad %t: %q; want %q", c.name, bad, got, want)
			}
		}
	}
}

// set is a change of options that can't fail.
func set(change func(o *Options)) func(*Options, string) error {
	return func(o *Options, _ string) error { change(o); return nil }
}
