package main

import (
	"os"
	"path/filepath"

	"moltisfs/grep/ignore"
)

// gitExcludes is where the user's core.excludesFile is, "" when nothing says. Configuration files that cannot be read count as
// empty, as a missing one does: what is at stake is which files a search leaves out.
func (in *invocation) gitExcludes() string {
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	xdg := in.env("XDG_CONFIG_HOME")
	files := []string{"/etc/gitconfig"}
	switch {
	case xdg != "":
		files = append(files, filepath.Join(xdg, "git", "config"))
	case home != "":
		files = append(files, filepath.Join(home, ".config", "git", "config"))
	}
	if home != "" {
		files = append(files, filepath.Join(home, ".gitconfig"))
	}
	var configs [][]byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		configs = append(configs, b)
	}
	return ignore.ExcludesPath(filepath.ToSlash(home), filepath.ToSlash(xdg), configs...)
}
