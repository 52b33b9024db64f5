// Package testbox has the command lines that start a program of a test in a sandbox: bubblewrap, and
// OpenSSH on loopback with keys that nobody else has. Only tests use it.
package testbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Command is the command line of "bwrap" or "ssh", behind which the program and its arguments stand.
// All of this machine is there, so that what lies outside of root could be reached. A test is skipped
// where it can't run.
func Command(t testing.TB, how, root string) []string {
	t.Helper()
	var line []string
	var err error
	switch how {
	case "bwrap":
		line = []string{"bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-add", "ALL", "--ro-bind", "/", "/",
			"--proc", "/proc", "--dev-bind", "/dev", "/dev", "--bind", root, root, "--"} // our temporary directories are in /dev/shm
		var out []byte
		if out, err = exec.Command(line[0], append(line[1:], "true")...).CombinedOutput(); err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
	case "ssh":
		server.once.Do(func() { server.line, server.err = start() })
		line, err = server.line, server.err
	default:
		t.Fatal("there is no sandbox ", how)
	}
	if err != nil {
		t.Skipf("SKIPPED: no %s here: %v", how, err)
	}
	return line
}

var server struct {
	once sync.Once
	line []string
	stop func()
	err  error
}

// Stop ends the server of OpenSSH that a test has started; for TestMain.
func Stop() {
	if server.stop != nil {
		server.stop()
	}
}

func start() ([]string, error) {
	dir, err := os.MkdirTemp("", "ssh")
	if err != nil {
		return nil, err
	}
	server.stop = func() { _ = os.RemoveAll(dir) }
	key := filepath.Join(dir, "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where it lives without rights
			return nil, err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close()
	sshd, err := exec.LookPath("sshd") // which has to be started by its whole name
	if err != nil {
		return nil, err
	}
	c := exec.Command(sshd, "-D", "-e", "-f", "none", "-p", port, "-oListenAddress=127.0.0.1", "-oHostKey="+key,
		"-oAuthorizedKeysFile="+key+".pub", "-oStrictModes=no", "-oPermitRootLogin=yes", "-oUsePAM=no", "-oMaxStartups=100",
		"-oPidFile=none")
	if err := c.Start(); err != nil {
		return nil, err
	}
	server.stop = func() { _ = c.Process.Kill(); _ = c.Wait(); _ = os.RemoveAll(dir) }
	for range 100 {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = c.Close()
			return []string{"ssh", "-F", "none", "-T", "-i", key, "-p", port, "-oBatchMode=yes", "-oStrictHostKeyChecking=no",
				"-oUserKnownHostsFile=/dev/null", "-oLogLevel=ERROR", "127.0.0.1"}, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil, fmt.Errorf("sshd does not listen")
}
