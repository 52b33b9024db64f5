package tools_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/dialect"
	"moltisfs/internal/sandbox"
	"moltisfs/tools"
	"moltisfs/tools/toolstest"
)

var sandboxed = flag.String("sandbox", "", `have the tests of this package make their calls through a worker: "worker", "bwrap" or "ssh"; make interop`)

// openIn is Open where the calls are made by a worker, whose root is the directory of the test.
func openIn(t testing.TB, how string, cfg config.Config, o tools.Options) (*tools.Suite, error) {
	t.Helper()
	root, _, _ := strings.Cut(cmp.Or(cfg.Tools.FS.WorkspaceRoot, strings.Join(cfg.Tools.FS.AllowPaths, "")), "/ws")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	line := []string{self, workerArg, root}
	switch how {
	case "bwrap":
		line = append([]string{"bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-add", "ALL", "--ro-bind", "/", "/",
			"--proc", "/proc", "--dev", "/dev", "--bind", root, root, "--ro-bind", self, self, "--"}, line...)
	case "ssh":
		line = append(slices.Clone(sshd(t)), line...)
	}
	s, err := sandbox.Start(t.Context(), sandbox.Options{Command: line, Root: root, Build: "test",
		Log: func(line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Tools.FS.SearchIndex = "off"
	suite, err := tools.OpenAt(cfg, o, s.Calls(), s.Close)
	if err != nil {
		_ = s.Close()
	}
	return suite, err
}

var sshServer struct {
	once sync.Once
	line []string
	stop func() error
	err  error
}

// sshd is a command line that runs another one through OpenSSH on loopback, with keys that nobody else has.
func sshd(t testing.TB) []string {
	t.Helper()
	sshServer.once.Do(func() { sshServer.line, sshServer.err = startSSH() })
	if sshServer.err != nil {
		t.Fatal(sshServer.err)
	}
	return sshServer.line
}

func startSSH() ([]string, error) {
	dir, err := os.MkdirTemp("", "ssh")
	if err != nil {
		return nil, err
	}
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
	server, err := exec.LookPath("sshd") // which has to be started by its whole name
	if err != nil {
		return nil, err
	}
	c := exec.Command(server, "-D", "-e", "-f", "none", "-p", port, "-oListenAddress=127.0.0.1", "-oHostKey="+key,
		"-oAuthorizedKeysFile="+key+".pub", "-oStrictModes=no", "-oPermitRootLogin=yes", "-oUsePAM=no", "-oMaxStartups=100",
		"-oPidFile=none")
	if err := c.Start(); err != nil {
		return nil, err
	}
	sshServer.stop = c.Process.Kill
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

// stopSSH ends the server that a test has started.
func stopSSH() {
	if sshServer.stop != nil {
		_ = sshServer.stop()
	}
}

// through is the carrier of golden calls through a worker.
func through(how string) toolstest.Carrier {
	return func(t *testing.T, cfg config.Config, o tools.Options) func(tools.Call) (toolstest.Answer, error) {
		s, err := openIn(t, how, cfg, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return func(c tools.Call) (toolstest.Answer, error) {
			p, err := s.Call(context.Background(), c)
			if err != nil {
				return toolstest.Answer{}, err
			}
			raw, err := tools.Encode(p)
			return toolstest.Answer{Payload: raw, Text: p.Text(), Cause: tools.CauseOf(p)}, err
		}
	}
}

// The same calls have the same answers, byte by byte, where a worker makes the system calls. Without -sandbox it is a part
// of them, by a worker beside us.
func TestGoldenCallsInSandbox(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: sandboxes are of Linux")
	}
	t.Parallel()
	how, quick := *sandboxed, *sandboxed == ""
	if quick {
		how = "worker"
	}
	carry := through(how)
	toolstest.Run(t, "../testdata/calls", func(t *testing.T, cfg config.Config, o tools.Options) func(tools.Call) (toolstest.Answer, error) {
		_, of, _ := strings.Cut(t.Name(), "/")
		if quick && !slices.Contains(quickCases, of) {
			t.Skip("SKIPPED: with -sandbox")
		}
		if of == "checkpoints/unheld" { // it looks at the tree, and the trash is in it
			t.Skip("SKIPPED: what the store can't hold goes to a trash inside")
		}
		return carry(t, cfg, o)
	})
}

// quickCases are the golden calls that go through a worker each time: one of each tool.
var quickCases = []string{"edit/unique", "edit/must_read", "write/overwrite", "write/symlink_refused", "read/text",
	"glob/denied", "grep/context", "checkpoints/undo_redo", "policy/narrow_allow"}

// Some strange paths by every tool, through a worker; with -sandbox all of them.
func TestPathsInSandbox(t *testing.T) {
	if runtime.GOOS != "linux" || *sandboxed != "" {
		t.Skip("SKIPPED: TestEveryPathTimesEveryTool has them all")
	}
	t.Parallel()
	everyPathTimesEveryTool(t, "worker", pathCases[:3], func(*config.FS) *dialect.Scope { return nil })
}
