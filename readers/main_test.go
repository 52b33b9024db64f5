package readers

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"testing"
)

// TestMain lets the test binary be its own worker.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "readers-worker" {
		if err := RunWorker(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == "readers-workload" {
		runWorkload(os.Args[2])
		os.Exit(0)
	}
	code := m.Run()
	if shared.r != nil {
		shared.r.Close()
	}
	os.Exit(code)
}

// runWorkload does one workload and prints the peaks of memory before and after it.
func runWorkload(name string) {
	r, err := New(testConfig())
	if err != nil {
		panic(err)
	}
	defer r.Close()
	run := workloads[name](panics{})
	debug.FreeOSMemory()
	fmt.Print(peakMemory(true))
	run(r, 0)
	fmt.Println(" " + peakMemory(false))
}

// panics is a testing.TB for a process that is no test.
type panics struct{ testing.TB }

func (panics) Helper()           {}
func (panics) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

var shared struct {
	once sync.Once
	r    *Readers
}

// testReaders is one Readers for all tests, so that the PDF engine is compiled once. Its cache outlives the run.
func testReaders(t testing.TB) *Readers {
	t.Helper()
	shared.once.Do(func() {
		r, err := New(testConfig())
		must(t, err)
		shared.r = r
	})
	return shared.r
}

// opened has its own engines, and is closed when the test ends.
func opened(t testing.TB, c Config) *Readers {
	t.Helper()
	r, err := New(c)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func testConfig() Config {
	return Config{
		CacheDir: filepath.Join(os.TempDir(), "moltisfs-readers-test"),
		Worker:   []string{os.Args[0], "readers-worker"},
	}
}

func readBytes(t testing.TB, b []byte, o Options) (Content, error) {
	t.Helper()
	return testReaders(t).Read(context.Background(), Source{R: bytes.NewReader(b), Size: int64(len(b))}, o)
}

// readAs reads bytes that must be of a kind.
func readAs[T Content](t testing.TB, b []byte, o Options) T {
	t.Helper()
	c, err := readBytes(t, b, o)
	if err != nil {
		t.Fatalf("reading: %v", err)
	}
	got, ok := c.(T)
	if !ok {
		t.Fatalf("read as %T, want %T", c, got)
	}
	return got
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
