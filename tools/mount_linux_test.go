package tools_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"moltisfs/tools"
)

// TestOurDataByAMount: the data directory is off limits under whatever name it is mounted.
func TestOurDataByAMount(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	data, at := filepath.Join(filepath.Dir(root), "data"), filepath.Join(root, "innocent")
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(data, at, "", unix.MS_BIND, ""); err != nil {
		t.Skip("SKIPPED: nothing can be mounted here: ", err)
	}
	t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
	for tool, args := range map[string]map[string]any{
		"Glob": {"pattern": "**", "path": at},
		"Grep": {"pattern": ".", "path": at},
	} {
		if p := call(t, s, tool, args); p.Kind() != tools.KindPathDenied {
			t.Errorf("%s: %s", tool, mustEncode(t, p))
		}
	}
}
