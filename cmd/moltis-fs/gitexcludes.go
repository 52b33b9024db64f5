package main

import (
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"moltisfs/config"
	"moltisfs/grep/ignore"
)

// gitUser says where the user's git configuration is, by the rules of git-config(1). Conditional
// includes are about a repository in the workspace root; whether there is one nobody looks.
func (in *invocation) gitUser(cfg *config.Config) ignore.User {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	u := ignore.User{Home: filepath.ToSlash(home), XDG: filepath.ToSlash(in.env("XDG_CONFIG_HOME")),
		Read: readGitConfig}
	if root := cfg.Tools.FS.WorkspaceRoot; root != "" {
		u.GitDir = path.Join(filepath.ToSlash(root), ".git")
	}
	add := func(name string) { u.Files = append(u.Files, filepath.ToSlash(name)) }
	switch system := in.env("GIT_CONFIG_SYSTEM"); {
	case in.env("GIT_CONFIG_NOSYSTEM") != "":
	case system != "":
		add(system)
	default:
		add("/etc/gitconfig")
	}
	if global := in.env("GIT_CONFIG_GLOBAL"); global != "" {
		add(global)
		return u
	}
	switch {
	case u.XDG != "":
		add(filepath.Join(u.XDG, "git", "config"))
	case home != "":
		add(filepath.Join(home, ".config", "git", "config"))
	}
	if home != "" {
		add(filepath.Join(home, ".gitconfig"))
	}
	return u
}

// readGitConfig reads a configuration file of git's, or as much of it as git's rules may be long.
func readGitConfig(name string) ([]byte, error) {
	i, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !i.Mode().IsRegular() {
		return nil, fs.ErrInvalid // a fifo would have us wait for ever
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return io.ReadAll(io.LimitReader(f, ignore.MaxFile))
}
