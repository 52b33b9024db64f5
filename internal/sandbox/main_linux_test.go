//go:build !rooted

package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestMain is the worker too. "dies" and "hangs" say at which request the first of them does so,
// negative when the call is made and not answered.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "worker" {
		w := Work{Root: os.Args[2], Build: "test"}
		if len(os.Args) == 6 {
			w.hook = mortal(os.Args[3], os.Args[4], os.Args[5])
		}
		if err := w.Run(0, 1); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func mortal(how, when, marker string) func(*request, bool) {
	f, err := os.OpenFile(marker, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil // it has happened
	}
	f.Close()
	at, _ := strconv.Atoi(when)
	n := 0
	return func(_ *request, made bool) {
		if made != (at < 0) {
			return
		}
		if n++; n != max(at, -at) {
			return
		}
		if how == "hangs" {
			time.Sleep(time.Minute)
		}
		os.Exit(7)
	}
}

func begin(t testing.TB, root string, how ...string) *Session {
	t.Helper()
	s, err := Start(t.Context(), Options{Root: root, Build: "test", Starts: 2, Hang: 2 * time.Second,
		Command: append([]string{os.Args[0], "worker", root}, how...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
