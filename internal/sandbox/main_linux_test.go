//go:build !rooted

package sandbox

import (
	"fmt"
	"os"
	"testing"
)

// TestMain is the worker too.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "worker" {
		if err := (Work{Root: os.Args[2], Build: "test"}).Run(0, 1); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func begin(t testing.TB, root string) *Session {
	t.Helper()
	s, err := Start(t.Context(), Options{
		Command: []string{os.Args[0], "worker", root}, Root: root, Build: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
