package config

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"moltisfs/internal/glob"
)

// rootVariable begins a rule of allow_paths, deny_paths or unprotected that is about the workspace,
// wherever that is.
const rootVariable = "${ROOT}"

// At gives c for work in root, an absolute directory. The root becomes workspace_root, it stands for ${ROOT} in
// rules, and where allow_paths is empty it alone is allowed. Paths elsewhere that allow_paths opens stay open:
// tools.Options.Root closes them. With root "", ${ROOT} is workspace_root, or the root of the sandbox where no
// call runs elsewhere. The error joins one *Problem for each rule whose ${ROOT} stands for nothing.
func (c Config) At(root string) (Config, error) {
	fs := &c.Tools.FS
	if root != "" {
		fs.WorkspaceRoot = root
	}
	at := fs.WorkspaceRoot
	if at == "" && c.Tools.Sandbox.All() {
		at = c.Tools.Sandbox.Root
	}
	var missing []error
	for _, list := range []struct {
		key   string
		rules *[]string
	}{{"tools.fs.allow_paths", &fs.AllowPaths}, {"tools.fs.deny_paths", &fs.DenyPaths},
		{"tools.fs.unprotected", &fs.Unprotected}} {
		rules := append([]string{}, *list.rules...)
		for i, rule := range rules {
			rest, ok := strings.CutPrefix(rule, rootVariable)
			switch {
			case !ok:
			case at == "":
				missing = append(missing, &Problem{Key: fmt.Sprintf("%s[%d]", list.key, i),
					Why:  rootVariable + " stands for a root, and none is given",
					Hint: "name one with --root, or set workspace_root"})
			default:
				rules[i] = below(at, rest)
			}
		}
		*list.rules = rules
	}
	if root != "" && len(fs.AllowPaths) == 0 {
		fs.AllowPaths = []string{below(root, "/**")}
	}
	return c, errors.Join(missing...)
}

// below is a rule about what is in dir, whatever characters its name has.
func below(dir, rest string) string {
	dir = strings.TrimSuffix(filepath.ToSlash(filepath.Clean(dir)), "/")
	return cmp.Or(glob.Literal(dir)+rest, "/")
}
