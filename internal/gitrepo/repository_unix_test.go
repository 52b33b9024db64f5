//go:build unix

package gitrepo

import (
	"bufio"
	"os"
	"path/filepath"
	"testing"
)

// A repository that fails takes away only what it made, not what others put into its directory meanwhile.
func TestAFailureLeavesWhatOthersMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "bare.git")
	theirs := filepath.Join(dir, "HEAD")
	git := filepath.Join(t.TempDir(), "git")
	t.Setenv("PATH", filepath.Dir(git)+":"+os.Getenv("PATH"))
	x := func(script string) error {
		if err := os.WriteFile(git, []byte("#!/bin/sh\nthey() { mkdir -p '"+dir+"'; echo theirs > '"+theirs+"'; }\n"+script), 0o700); err != nil {
			t.Fatal(err)
		}
		return Create(t.Context(), os.Getenv("PATH"), dir, func(*bufio.Writer) error { return nil })
	}
	if err := x("exit 1"); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(filepath.Dir(dir)); err == nil {
		t.Error("what it made on the way is there")
	}
	// Three ways on: it fails at the beginning, at the end, and where its files are to go to their places.
	for _, script := range []string{
		`they; exit 1`,
		`they; case "$1" in init) ;; *) exit 1 ;; esac`,
		`cat > /dev/null; case "$1" in init) mkdir "$5" ;; *) they; echo ours > "$2/A"; echo ours > "$2/HEAD" ;; esac`,
	} {
		if err := x(script); err == nil {
			t.Error("no error")
		}
		entries, err := os.ReadDir(dir)
		if got, _ := os.ReadFile(theirs); err != nil || len(entries) != 1 || string(got) != "theirs\n" {
			t.Errorf("%s: %v %v %q", script, entries, err, got)
		}
		if err := os.RemoveAll(filepath.Dir(dir)); err != nil {
			t.Fatal(err)
		}
	}
}
