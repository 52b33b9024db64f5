package wasm

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
)

// TestMain lets the test binary compile in a process of its own.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "compile" {
		if _, _, err := compile(context.Background(), os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// compile compiles a module with one function, "f", that gives 42.
func compile(ctx context.Context, dir string) (wazero.Runtime, wazero.CompiledModule, error) {
	code := []byte("\x00asm\x01\x00\x00\x00\x01\x05\x01\x60\x00\x01\x7f\x03\x02\x01\x00\x07\x05\x01\x01f\x00\x00\x0a\x06\x01\x04\x00\x41\x2a\x0b")
	return (&Cache{Dir: dir}).Compile(ctx, wazero.NewRuntimeConfig(), code)
}

// A damaged cache is never run: newly compiled code takes its place.
func TestDamagedCodeCache(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "cache")
	answer := func(what string) {
		t.Helper()
		if !private(dir) {
			t.Fatalf("%s: the directory is not ours", what)
		}
		run, module, err := compile(ctx, dir)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		defer run.Close(ctx)
		m, err := run.InstantiateModule(ctx, module, wazero.NewModuleConfig())
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got, err := m.ExportedFunction("f").Call(ctx); err != nil || !slices.Equal(got, []uint64{42}) {
			t.Fatalf("%s: %v %v", what, got, err)
		}
	}
	answer("empty")
	entries := slices.Collect(cacheEntries(dir))
	if len(entries) != 1 {
		t.Fatalf("%d entries: %v", len(entries), entries)
	}
	entry := entries[0]
	good, err := os.ReadFile(entry)
	must(t, err)
	kept := func() bool {
		got, err := os.ReadFile(entry)
		return err == nil && bytes.Equal(got, good) && checked(dir) && len(slices.Collect(cacheEntries(dir))) == 1
	}
	if !kept() {
		t.Fatal("what was compiled is not kept")
	}
	for i := range good { // the table of functions and its length among them, of which wazero has no checksum
		bad := bytes.Clone(good)
		bad[i] ^= 0x80
		must(t, os.WriteFile(entry, bad, 0o600))
		answer("a byte is another")
		if !kept() {
			t.Fatalf("byte %d: the damaged entry is still there", i)
		}
	}
	for _, bad := range []string{"", "WAZ", string(good[:len(good)/2]), string(good) + "x"} {
		must(t, os.WriteFile(entry, []byte(bad), 0o600))
		answer("another length")
		if !kept() {
			t.Fatalf("%d bytes: the damaged entry is still there", len(bad))
		}
	}
	must(t, os.WriteFile(entry+sealed, nil, 0o600))
	answer("the seal is empty")
	if !kept() {
		t.Error("the seal is not mended")
	}
	// An entry that can't be removed is passed by.
	must(t, os.Remove(entry))
	must(t, os.MkdirAll(filepath.Join(entry, "inner"), 0o700))
	answer("a directory in its place")
}

// Where nothing can be stored, as on a full disk, what was compiled is used all the same.
func TestCodeCacheThatCannotBeWritten(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("SKIPPED: no shell to set a limit with")
	}
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o700))
	out, err := exec.Command("sh", "-c", `ulimit -f 0 && exec "$0" compile "$1"`, os.Args[0], dir).CombinedOutput()
	if err != nil || len(slices.Collect(cacheEntries(dir))) != 0 {
		t.Errorf("%v: %.300s", err, out)
	}
}

// TestCacheDirIsOurs: code of the cache is run, so a directory that others could write to is not used.
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
	must(t, os.Mkdir(inner, 0o700))
	if !private(dir) {
		t.Error("a directory of ours in it is refused")
	}
	for _, d := range []string{inner, dir} {
		must(t, os.Chmod(d, 0o777))
		if os.PathSeparator == '/' && private(dir) {
			t.Errorf("%s may be written by everybody, and is used", d)
		}
		os.Chmod(d, 0o700)
	}
	if c := (&Cache{Dir: link}); c.Get() == nil || c.Close() != nil {
		t.Error("without a directory there is no cache in memory")
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestCacheIsBounded: of many versions the newest stay, each with its seal.
func TestCacheIsBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	now := time.Now()
	for i := range entriesKept + 5 {
		version := filepath.Join(dir, fmt.Sprintf("wazero-v%d", i%3))
		must(t, os.MkdirAll(version, 0o700))
		entry := filepath.Join(version, fmt.Sprintf("%02d", i))
		must(t, os.WriteFile(entry, []byte("code"), 0o600))
		must(t, os.Chtimes(entry, now, now.Add(time.Duration(i)*time.Second)))
	}
	(&Cache{Dir: dir}).keep()
	left, seals := slices.Collect(cacheEntries(dir)), 0
	for _, entry := range left {
		if name := filepath.Base(entry); name < "05" {
			t.Errorf("%s is older than others that are gone", name)
		}
	}
	must(t, filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if filepath.Ext(p) == sealed {
			seals++
		}
		return err
	}))
	if len(left) != entriesKept || seals != entriesKept {
		t.Errorf("%d entries and %d seals are left", len(left), seals)
	}
}
