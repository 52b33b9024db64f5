package serve

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Other machines are let in by nobody's mistake.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for addr, c := range map[string]struct {
		beyond bool
		why    string // "" is listened on
	}{
		"127.0.0.1:0": {}, "localhost:0": {}, "127.3.4.5:0": {why: runtimeOnly("linux")},
		"0.0.0.0:0": {why: "no TLS"}, ":0": {why: "no TLS"}, "[::]:0": {why: "no TLS"}, "192.0.2.1:0": {why: "no TLS"},
		"0.0.0.0:00": {beyond: true}, "files.example:0": {why: "is a name"}, "127.0.0.1": {why: "no address"}, "": {why: "no address"},
		"7780": {why: "no address"}, "127.0.0.1:x": {why: "x"}, "127.0.0.1:99999": {why: "9"}, "127.1:0": {why: "is a name"},
		"unix:": {why: "1 to 100 bytes"}, "unix:" + strings.Repeat("x", 101): {why: "1 to 100 bytes"}, "unix:/nowhere/at/all": {why: "no such"},
	} {
		if c.why == "skip" {
			continue
		}
		l, err := Listen(addr, c.beyond)
		if err == nil {
			l.Close()
		}
		e, ok := errors.AsType[*AddressError](err)
		if ok && e.Do == "" || (err == nil) != (c.why == "") || err != nil && (!ok || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

func runtimeOnly(system string) string {
	if runtime.GOOS == system {
		return ""
	}
	return "skip"
}

// A socket is ours alone, and takes no place but that of a dead one.
func TestSocket(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing there")
	}
	path := filepath.Join(t.TempDir(), "s")
	first, err := Listen("unix:"+path, false)
	must(t, err)
	for _, p := range []string{path, path + ".lock"} {
		if info, err := os.Lstat(p); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", p, info.Mode(), err)
		}
	}
	if _, err := Listen("unix:"+path, false); err == nil || !strings.Contains(err.Error(), "somebody serves there") {
		t.Errorf("beside a living one: %v", err)
	}
	c, err := net.Dial("unix", path)
	must(t, err)
	server, err := first.Accept()
	must(t, err)
	if socket, known, ours := Peer(server); !socket || runtime.GOOS == "linux" && (!known || !ours) {
		t.Errorf("the peer: %v %v %v", socket, known, ours)
	}
	c.Close()
	server.Close()
	must(t, first.Close())
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}

	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	dead.SetUnlinkOnClose(false)
	if _, err := Listen("unix:"+path, false); err == nil || !strings.Contains(err.Error(), "somebody serves there") {
		t.Errorf("beside one that is not ours: %v", err)
	}
	dead.Close()
	next, err := Listen("unix:"+path, false)
	if err != nil {
		t.Fatal("in the place of a dead one: ", err)
	}
	next.Close()

	must(t, os.WriteFile(path, []byte("kept"), 0o600))
	if _, err := Listen("unix:"+path, false); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("in the place of a file: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "kept" {
		t.Errorf("the file is %q, %v", text, err)
	}
	must(t, os.Remove(path+".lock"))
	must(t, os.Symlink(path, path+".lock"))
	if _, err := Listen("unix:"+path, false); err == nil {
		t.Error("a link in the place of the lock was followed")
	}
}

func TestPeerOfTCP(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if socket, known, ours := Peer(a); socket || known || ours {
		t.Error("a pipe is no socket of a user")
	}
}
