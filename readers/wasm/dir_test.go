package wasm

import (
	"os"
	"path/filepath"
	"testing"
)

// What lies in the cache is run: it is not used when others could have put it there.
func TestCacheDirIsOurs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	if !private(dir) {
		t.Fatal("a new directory is not ours")
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("made as %v, %v", info.Mode(), err)
	}
	link := filepath.Join(filepath.Dir(dir), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip("SKIPPED: no symbolic links here")
	}
	if private(link) {
		t.Error("a link is followed")
	}
	inner := filepath.Join(dir, "wazero")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if !private(dir) {
		t.Error("a directory of ours in it is refused")
	}
	for _, d := range []string{inner, dir} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
		if os.PathSeparator == '/' && private(dir) {
			t.Errorf("%s may be written by everybody, and is used", d)
		}
		os.Chmod(d, 0o700)
	}
	if c := (&Cache{Dir: link}); c.Get() == nil {
		t.Error("without a directory there is no cache in memory")
	} else {
		c.Close()
	}
}
