//go:build !rooted

package run

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestX(t *testing.T) {
	dir := t.TempDir()
	root, data := filepath.Join(dir, "root"), filepath.Join(dir, "data")
	os.Mkdir(root, 0o755)
	os.Mkdir(data, 0o700)
	os.WriteFile(root+"/a", []byte("x"), 0o644)
	r, err := New(Options{Root: root, Data: data, Network: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 3; i++ {
		var b bytes.Buffer
		p, err := r.Start(t.Context(), Program{Args: []string{"sh", "-c", "id; pwd; ls -la; echo y >> a; ls -la / /tmp /dev; cat /proc/self/status | grep -i cap; cat /proc/mounts; ls -la /proc/1/fd; exit 7"}, Env: os.Environ(), Stdout: &b, Stderr: &b})
		if err != nil {
			t.Fatal(err, err.(*Error).Unwrap())
		}
		s, err := p.Wait()
		t.Log(s, err)
		if i == 0 {
			t.Log(b.String())
		}
	}
	t.Logf("%+v", r.Upper())
	b, _ := os.ReadFile(root + "/a")
	u, _ := os.ReadFile(r.Upper().Dir + "/a")
	t.Logf("%q %q", b, u)
	if err := r.Drop(); err != nil {
		t.Fatal(err)
	}
}
