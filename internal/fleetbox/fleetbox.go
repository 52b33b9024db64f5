// Package fleetbox starts the servers that a fleet stands on, for tests: PostgreSQL on a socket of its own, and a store that speaks S3 on
// loopback. Only tests use it.
package fleetbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // registers itself with database/sql under "pgx"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Database gives the address of a new empty schema, "postgres://…". All tests of a process share one server, which ends with the process.
// A test is skipped where there is no PostgreSQL.
func Database(t testing.TB) string { return made(t, "postgres", "SCHEMA") }

// OwnDatabase gives the address of a new empty database, for tests that change its settings or make schemas. It takes a hundred times
// as long to make.
func OwnDatabase(t testing.TB) string { return made(t, "", "DATABASE") }

// Own starts a server of its own for a test, which may crash it.
func Own(t testing.TB) *Server {
	t.Helper()
	s, err := start()
	started(t, err)
	t.Cleanup(func() { errors.Join(s.stdin.Close(), s.shell.Wait()) }) //nolint:errcheck // the test is over
	return s
}

func started(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errMissing) {
		t.Skip("SKIPPED: ", err)
	}
	if err != nil {
		t.Fatal("starting PostgreSQL: ", err)
	}
}

func made(t testing.TB, database, what string) string {
	t.Helper()
	shared.once.Do(func() { shared.Server, shared.err = start() })
	started(t, shared.err)
	return shared.made(t, database, what)
}

// Database gives the address of a new empty schema.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return s.made(t, "postgres", "SCHEMA")
}

func (s *Server) made(t testing.TB, database, what string) string {
	t.Helper()
	name := fmt.Sprintf("t%d", s.count.Add(1))
	admin, err := sql.Open("pgx", address(s.dir, "postgres", ""))
	if err == nil {
		_, err = admin.Exec("CREATE " + what + " " + name)
		err = errors.Join(err, admin.Close())
	}
	if err != nil {
		t.Fatal("making a database: ", err)
	}
	if database == "" {
		return address(s.dir, name, "")
	}
	return address(s.dir, database, name)
}

func address(dir, database, schema string) string {
	q := url.Values{"host": {dir}, "user": {"tester"}}
	if schema != "" {
		q.Set("search_path", schema)
	}
	return "postgres:///" + database + "?" + q.Encode()
}

// A Server is a PostgreSQL on a socket in a directory of its own.
type Server struct {
	dir   string
	count atomic.Int64 // databases and schemas that were made
	shell *exec.Cmd
	stdin io.WriteCloser // of the shell: a line starts the server, and the end stops it
}

// shared is the server of Database. It stays reachable: the collector would close its stdin.
var shared struct {
	once sync.Once
	*Server
	err error
}

// errMissing: there is no PostgreSQL that this process can start.
var errMissing = errors.New("no PostgreSQL here")

// start starts a server. A shell waits for our end of its standard input to close, as it does in whatever way we die, and then stops the
// server and removes the directory.
func start() (*Server, error) {
	bin := func(name string) (string, error) {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
		all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
		if len(all) == 0 {
			return "", fmt.Errorf("%w: there is no %s", errMissing, name)
		}
		return slices.Max(all), nil
	}
	initdb, err1 := bin("initdb")
	postgres, err2 := bin("postgres")
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		return nil, err
	}
	var as *syscall.SysProcAttr
	if os.Getuid() == 0 { // it refuses to be root
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, fmt.Errorf("%w: it has to run as its user: %w", errMissing, err)
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		if err := errors.Join(err1, err2, os.Chown(dir, uid, gid)); err != nil {
			return nil, err
		}
		as = account(uid, gid)
	}
	data := filepath.Join(dir, "data")
	cmd := exec.Command(initdb, "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	cmd.SysProcAttr, cmd.Dir = as, dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	const script = `while read -r _; do wait; "$@" & p=$!; done; kill -QUIT $p; wait $p; rm -rf "$PGTESTDIR"`
	cmd = exec.Command("sh", "-c", script, "sh", postgres, "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "max_connections=400",
		"-c", "shared_buffers=64MB", "-c", "unix_socket_permissions=0777")
	cmd.SysProcAttr, cmd.Dir = as, dir
	cmd.Env = append(os.Environ(), "PGTESTDIR="+dir)
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // it is the server's
	cmd.Stdout, cmd.Stderr = log, log
	s := &Server{dir: dir, shell: cmd}
	if s.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	return s, s.Start()
}

// Start starts the server, at first and after a crash, and waits until it answers.
func (s *Server) Start() error {
	if _, err := io.WriteString(s.stdin, "\n"); err != nil {
		return err
	}
	db, err := sql.Open("pgx", address(s.dir, "postgres", ""))
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // it has only asked
	for end := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		ctx, cancel := context.WithDeadline(context.Background(), end) // a busy machine takes long to answer
		err = db.PingContext(ctx)
		cancel()
		if err == nil || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		err = fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// Contents starts a store that speaks S3, with one empty bucket, until the end of the test. It gives the address of the contents, as
// [tools.fs.fleet] has it: "s3://bucket/prefix?endpoint=http://127.0.0.1:…". Key and secret are set as environment variables. The handler
// that wrap makes stands before the store, so that it can fail, wait or answer something else; nil: none.
func Contents(t testing.TB, wrap func(http.Handler) http.Handler) string {
	t.Helper()
	back := s3mem.New()
	if err := back.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	handler := gofakes3.New(back).Server()
	if wrap != nil {
		handler = wrap(handler)
	}
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	if os.Getenv("AWS_ACCESS_KEY_ID") == "" { // once for all tests of a process: they may run side by side
		os.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
		os.Setenv("AWS_ACCESS_KEY_ID", "key")
	}
	return "s3://bucket/prefix?endpoint=" + s.URL
}

// A Wire stands between a program and the server of a database, and can be cut.
type Wire struct {
	socket string

	mu     sync.Mutex
	cut    bool
	conns  map[net.Conn]bool
	before func()
}

// Before has f called before each message to the server, of any connection.
func (w *Wire) Before(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = f
}

// Cut ends all connections, and refuses new ones until Mend. The socket is gone then, as that of a server that was stopped.
func (w *Wire) Cut() {
	os.Rename(w.socket, w.socket+".cut") //nolint:errcheck // it may be cut already
	w.set(true)
}

// Mend takes connections again.
func (w *Wire) Mend() {
	w.set(false)
	os.Rename(w.socket+".cut", w.socket) //nolint:errcheck // it may not have been cut
}

func (w *Wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut = cut; cut {
		for c := range w.conns {
			c.Close() //nolint:errcheck // it is what the program has to stand
		}
		clear(w.conns)
	}
}

// Wired gives an address of the same database that goes through a Wire.
func Wired(t testing.TB, database string) (string, *Wire) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	to := filepath.Join(q.Get("host"), ".s.PGSQL.5432")
	dir, err := os.MkdirTemp("", "wire")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{socket: filepath.Join(dir, ".s.PGSQL.5432"), conns: map[net.Conn]bool{}}
	l, err := net.Listen("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close() //nolint:errcheck // the test is over
		w.Cut()
		os.RemoveAll(dir) //nolint:errcheck // as is this
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.carry(c, to)
		}
	}()
	q.Set("host", dir)
	u.RawQuery = q.Encode()
	return u.String(), w
}

func (w *Wire) carry(c net.Conn, to string) {
	s, err := net.Dial("unix", to)
	w.mu.Lock()
	if w.cut || err != nil {
		c.Close() //nolint:errcheck // it is refused
		if err == nil {
			s.Close() //nolint:errcheck // and so is this
		}
		w.mu.Unlock()
		return
	}
	w.conns[c], w.conns[s] = true, true
	w.mu.Unlock()
	pass := func(from, to net.Conn) {
		io.Copy(to, from) //nolint:errcheck // a cut is an end
		from.Close()      //nolint:errcheck // both ends go
		to.Close()        //nolint:errcheck // as said
		w.mu.Lock()
		delete(w.conns, from)
		w.mu.Unlock()
	}
	go pass(messages{c, w}, s)
	pass(s, c)
}

// messages is the side of a Wire that the program sends by. One read is one message, unless that is large.
type messages struct {
	net.Conn
	w *Wire
}

func (m messages) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.w.mu.Lock()
	before := m.w.before
	m.w.mu.Unlock()
	if n > 0 && before != nil {
		before()
	}
	return n, err
}
