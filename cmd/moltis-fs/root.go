package main

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"moltisfs/config"
)

// root is the directory outside of which nothing may be touched: that of --root, as an absolute
// path, or "". A relative one depends on where we are started, so it may not be too wide.
func (in *invocation) root() (string, error) {
	given := in.option("root")
	if given == "" {
		return "", nil
	}
	abs, err := filepath.Abs(given)
	if err != nil {
		return "", fmt.Errorf("finding the root: %w", err)
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return "", misuse("name a directory that exists", "the root %s is not a directory", given)
	}
	if what := tooWide(abs); what != "" && !filepath.IsAbs(given) {
		return "", in.wide("--root " + visible(given) + " is relative, and from here it is " + what)
	}
	return abs, nil
}

// implyRoot has the working directory for --root where neither that nor a configuration says what is
// open. It refuses one that is more than anybody's work, in which some desktop clients start us.
func (in *invocation) implyRoot() error {
	if in.option("root") != "" || in.configured() {
		return nil
	}
	wd, err := os.Getwd()
	if err != nil {
		return misuse("name a directory with --root", "the working directory can't be told: %v", err)
	}
	if what := tooWide(wd); what != "" {
		return in.wide("there is no --root and no configuration, and the working directory is " + what)
	}
	in.values["root"], in.implied = wd, true
	return nil
}

// wide refuses a root that nobody has named in full.
func (in *invocation) wide(why string) error {
	return misuse(`add the directory of the work, as "args": ["`+in.command.path+
		`", "--root", "/home/you/project"]; --root / opens everything`, "%s", why)
}

// tooWide says what dir is, when it is the root of the file system, a home directory, or above one.
// A home directory is one of homes, or lies in /home or /Users.
func tooWide(dir string) string {
	if filepath.Dir(dir) == dir {
		return dir
	}
	at, err := os.Stat(dir)
	if err != nil {
		return ""
	}
	homes := homes()
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		real = dir
	}
	if up := filepath.Dir(real); up == "/home" || up == "/Users" {
		homes = append(homes, real)
	}
	for _, home := range append(homes, "/home/_", "/Users/_") {
		for up := filepath.Clean(home); filepath.Dir(up) != up; up = filepath.Dir(up) {
			if info, err := os.Stat(up); err != nil || !os.SameFile(info, at) {
				continue
			}
			if up == filepath.Clean(home) {
				return "the home directory " + dir
			}
			return dir + ", which holds home directories"
		}
	}
	return ""
}

// homes gives the home directories of the environment and of the account.
func homes() (dirs []string) {
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		dirs = append(dirs, home)
	}
	if account, err := user.Current(); err == nil && filepath.IsAbs(account.HomeDir) {
		dirs = append(dirs, account.HomeDir)
	}
	return dirs
}

// tellOpen says what is open to agents, by what, and where the data is: one line.
func (in *invocation) tellOpen(cfg config.Config) {
	file, root := in.findConfig(in.option("config")), in.option("root")
	fs, open := cfg.Tools.FS, ""
	if root != "" {
		root = fs.WorkspaceRoot // the same, absolute
	}
	switch {
	case in.implied:
		open = root + ", the working directory, and nothing else (no --root, no configuration)"
	case cfg.Tools.Sandbox.All():
		open = fmt.Sprintf("what %s allows in the sandbox", file)
	case root != "" && file != "":
		open = fmt.Sprintf("what %s allows in %s (--root)", file, root)
	case root != "":
		open = root + " and nothing else (--root)"
	case len(fs.AllowPaths) == 0:
		open = fmt.Sprintf("all that this account reaches and %s does not deny", file)
	default:
		open = fmt.Sprintf("what %s allows: %d allow_paths, %d deny_paths", file, len(fs.AllowPaths),
			len(fs.DenyPaths))
	}
	if what := lifted(fs); what != "" {
		open += "; not protected: " + what
	}
	dir, _, err := in.dataDir()
	if err != nil {
		return // the engine is open, so it was found
	}
	fmt.Fprintf(in.err, "%s: open is %s; data is in %s\n", program, visible(open), visible(dir))
}

// lifted is what a configuration takes from the protected classes; "" for nothing.
func lifted(fs config.FS) string {
	var out []string
	if fs.ProtectSecret == "allow" {
		out = append(out, "class secret")
	}
	if fs.ProtectExec == "allow" {
		out = append(out, "class exec")
	}
	return strings.Join(append(out, fs.Unprotected...), ", ")
}
