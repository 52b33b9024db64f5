package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
)

// The memory limit is that of the configuration, unless GOMEMLIMIT says something else.
func TestMemoryLimit(t *testing.T) {
	old := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(old)
	for _, row := range []struct {
		toml, env string
		want      int64
	}{
		{"memory = 314572800", "", 300 << 20},
		{"memory = 0", "", math.MaxInt64},
		{"", "", 2 << 30},
		{"memory = 314572800", "1GiB", 7 << 30},
	} {
		debug.SetMemoryLimit(7 << 30)
		dir := t.TempDir()
		file := filepath.Join(dir, "moltis.toml")
		if err := os.WriteFile(file, []byte("[tools.fs.limits]\n"+row.toml+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		run([]string{"call", "--config", file, "--root", dir, "--data-dir", filepath.Join(t.TempDir(), "data"),
			"Glob", `{"pattern":"*"}`}, streams{nil, &out, &out, func(name string) string {
			return map[string]string{"GOMEMLIMIT": row.env, "HOME": dir}[name]
		}})
		if got := debug.SetMemoryLimit(-1); got != row.want {
			t.Errorf("%q, GOMEMLIMIT=%s: %d\n%s", row.toml, row.env, got, out.String())
		}
	}
}
