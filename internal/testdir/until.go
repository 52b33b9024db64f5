package testdir

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Until waits until so reports true, and looks each millisecond. After a minute the test fails and says what did not come.
func Until(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// Running waits until a goroutine of this process is in a function whose full name holds name: "grep/match." is any of that package.
func Running(t testing.TB, name string) {
	t.Helper()
	buf := make([]byte, 4<<20)
	Until(t, name+" runs", func() bool { return strings.Contains(string(buf[:runtime.Stack(buf, true)]), name) })
}

// Tick waits until the clock of files has gone on: a file that is made afterwards has a later time than any that was there.
func Tick(t testing.TB) {
	t.Helper()
	made := func() time.Time {
		name := t.TempDir() + "/tick"
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	before := made()
	Until(t, "a tick of the clock of files", func() bool { return made().After(before) })
}
