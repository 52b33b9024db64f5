package wasm

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
)

// TestMain lets the test binary compile in a process of its own.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "wasm-compile" {
		if _, _, err := Compile(context.Background(), wazero.NewRuntimeConfig(), os.Args[2], tinyModule()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// tinyModule is gzipped WebAssembly with one function, "f", that gives 42.
func tinyModule() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte("\x00asm\x01\x00\x00\x00\x01\x05\x01\x60\x00\x01\x7f\x03\x02\x01\x00\x07\x05\x01\x01f\x00\x00\x0a\x06\x01\x04\x00\x41\x2a\x0b"))
	z.Close()
	return b.Bytes()
}

// A cache on which something is wrong is never run, and never the end: what was compiled anew takes
// its place.
func TestDamagedCodeCache(t *testing.T) {
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "cache")
	answer := func(what string) {
		t.Helper()
		if !private(dir) {
			t.Fatalf("%s: the directory is not ours", what)
		}
		run, module, err := Compile(ctx, wazero.NewRuntimeConfig(), dir, tinyModule())
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
	if err != nil {
		t.Fatal(err)
	}
	kept := func() bool {
		got, err := os.ReadFile(entry)
		return err == nil && bytes.Equal(got, good) && sound(dir) && len(slices.Collect(cacheEntries(dir))) == 1
	}
	if !kept() {
		t.Fatal("what was compiled is not kept")
	}
	for i := range good { // the table of functions and its length among them, of which wazero has no checksum
		bad := bytes.Clone(good)
		bad[i] ^= 0x80
		if err := os.WriteFile(entry, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		answer("a byte is another")
		if !kept() {
			t.Fatalf("byte %d: the damaged entry is still there", i)
		}
	}
	for _, bad := range []string{"", "WAZ", string(good[:len(good)/2]), string(good) + "x"} {
		if err := os.WriteFile(entry, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		answer("another length")
		if !kept() {
			t.Fatalf("%d bytes: the damaged entry is still there", len(bad))
		}
	}
	if err := os.WriteFile(entry+sealed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	answer("the seal is empty")
	if !kept() {
		t.Error("the seal is not mended")
	}
	// What can't be taken away is passed by.
	if err := os.Remove(entry); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(entry, "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	answer("a directory in its place")
	c := &Cache{Dir: dir}
	if c.Get() == nil {
		t.Error("no cache in memory")
	}
	c.Close()
}

// Where nothing can be stored, as on a full disk, what was compiled is used all the same.
func TestCodeCacheThatCannotBeWritten(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("SKIPPED: no shell to set a limit with")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("sh", "-c", `ulimit -f 0 && exec "$0" wasm-compile "$1"`, os.Args[0], dir).CombinedOutput()
	if err != nil || len(slices.Collect(cacheEntries(dir))) != 0 {
		t.Errorf("%v: %.300s", err, out)
	}
}
