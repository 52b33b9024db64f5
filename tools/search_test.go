package tools_test

import (
	"path/filepath"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// TestTheUsersOwnExcludes: what git would not show the user, Grep and Glob leave out, and say so.
func TestTheUsersOwnExcludes(t *testing.T) {
	mine := write(t, filepath.Join(t.TempDir(), "ignore"), "*.mine\n")
	for _, respect := range []bool{true, false} {
		s, root := suite(t, func(fs *config.FS) { fs.RespectGitignore = respect }, tools.Options{GitExcludes: mine})
		write(t, filepath.Join(root, "a.mine"), "needle\n")
		write(t, filepath.Join(root, "b.txt"), "needle\n")
		want, ignored := 2, 0
		if respect {
			want, ignored = 1, 1
		}
		g := call(t, s, "Grep", map[string]any{"pattern": "needle"}).(*tools.Grep)
		if len(g.Files) != want || g.Skipped["ignored"].Count != ignored {
			t.Errorf("respect %v: Grep %v, skipped %v", respect, g.Files, g.Skipped)
		}
		if l := call(t, s, "Glob", map[string]any{"pattern": "*"}).(*tools.Glob); len(l.Paths) != want {
			t.Errorf("respect %v: Glob %v", respect, l.Paths)
		}
	}
}
