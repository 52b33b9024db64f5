package fleet

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"moltisfs/internal/fleetbox"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/outage"
	"moltisfs/internal/state"
)

func join(t *testing.T, o Options) *Gateway {
	t.Helper()
	g, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() }) //nolint:errcheck // a test that cares looks itself
	return g
}

// within waits until is holds.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(end) {
			t.Fatal("it never came that ", what)
		}
		<-time.After(time.Millisecond)
	}
}

// taken says whether g gets the locks of keys at once.
func taken(t *testing.T, g *Gateway, keys ...string) bool {
	t.Helper()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	unlock, err := g.Lock(now, "looks", keys...)
	if err == nil {
		unlock()
		return true
	}
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return false
}

func TestLocks(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	a, b := join(t, Options{Database: database, Name: "a"}), join(t, Options{Database: database, Name: "b"})
	ctx := context.Background()
	for _, c := range []struct {
		first, then []string
		want        bool
	}{
		{[]string{"k"}, []string{"k"}, false},
		{[]string{"k"}, []string{"l", "k"}, false},
		{[]string{"k", "k"}, []string{"l"}, true},
		{[]string{guardfs.Shared("k")}, []string{guardfs.Shared("k")}, true},
		{[]string{guardfs.Shared("k")}, []string{"k"}, false},
		{[]string{"k"}, []string{guardfs.Shared("k")}, false},
		{[]string{"k", guardfs.Shared("k")}, []string{guardfs.Shared("k")}, false},
		{[]string{"k"}, nil, true},
	} {
		unlock, err := a.Lock(ctx, "holds", c.first...)
		if err != nil {
			t.Fatal(err)
		}
		for name, g := range map[string]*Gateway{"the same gateway": a, "another": b} {
			if c.want { // the other one may be about to give it back
				within(t, name+" gets its locks", func() bool { return taken(t, g, c.then...) })
			} else if taken(t, g, c.then...) {
				t.Errorf("%s: %q beside %q", name, c.then, c.first)
			}
		}
		soon, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		free, err := b.Lock(soon, "waits", c.then...)
		cancel()
		if err == nil {
			free()
		}
		if locked, ok := errors.AsType[*LockedError](err); !c.want && (!ok || locked.Holder() != "a, holds" || !errors.Is(err, context.DeadlineExceeded)) {
			t.Errorf("%q beside %q: %v", c.then, c.first, err)
		}
		unlock()
		unlock()
		within(t, "a can take what it gave back", func() bool { return taken(t, a, c.first...) })
		within(t, "what a gave back is free for b", func() bool { return taken(t, b, c.first...) })
	}
}

// Many keys in any order: nobody waits for ever, and two are never in one place.
func TestLocksInAnyOrder(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	var inside [5]atomic.Int32
	for g := range 6 {
		gate := join(t, Options{Database: database})
		wg.Go(func() {
			for i := range 20 {
				keys := map[int]bool{(g + i) % 5: true, (g*3 + i*7) % 5: true}
				var names []string
				for k := range keys {
					names = append(names, strconv.Itoa(k))
				}
				unlock, err := gate.Lock(ctx, "counts", names...)
				if err != nil {
					t.Error(err)
					return
				}
				for k := range keys {
					if n := inside[k].Add(1); n != 1 {
						t.Errorf("%d hold lock %d", n, k)
					}
				}
				if err := gate.db.PingContext(ctx); err != nil { // long enough to be met
					t.Error(err)
				}
				for k := range keys {
					inside[k].Add(-1)
				}
				unlock()
			}
		})
	}
	wg.Wait()
}

const short = 1200 * time.Millisecond

// A gateway that is cut off stops by itself before others can have its locks. They have them when its lease is over; what began under that
// lease is refused for ever, and new calls go on under a new one as soon as the database answers.
func TestFence(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	wired, wire := fleetbox.Wired(t, database)
	a, b := join(t, Options{Database: wired, Name: "a", Lease: short}), join(t, Options{Database: database, Name: "b"})
	ctx, err := a.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := a.Lock(ctx, "holds", "k")
	if err != nil || a.Check(ctx) != nil {
		t.Fatal(err)
	}
	first := a.Health().ID
	wire.Cut()
	if _, err := a.Lock(ctx, "asks", "l"); !outage.Is(err) {
		t.Error("cut off, a lock gives ", err)
	}
	free, err := b.Lock(context.Background(), "takes over", "k")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Check(ctx); !errors.Is(err, ErrFenced) {
		t.Error("b has the lock, and a goes on: ", err)
	}
	if err := a.Fenced(); !errors.Is(err, ErrFenced) || !outage.Is(err) {
		t.Errorf("%#v", a.Fenced())
	}
	wire.Mend()
	within(t, "a begins anew", func() bool { return a.Fenced() == nil })
	if h := a.Health(); h.ID == first || h.Begun != 2 || h.Failed == 0 || h.Held != 0 {
		t.Errorf("%+v", h)
	}
	tx, err := a.db.BeginTx(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // it has only asked
	row := func(q string, args ...any) *sql.Row { return tx.QueryRow(q, args...) }
	if err := a.Guard(ctx, row); !errors.Is(err, ErrFenced) {
		t.Error("the save of a call of before: ", err)
	}
	if _, err := a.Lock(ctx, "goes on", "m"); !errors.Is(err, ErrFenced) {
		t.Error("a lock of a call of before: ", err)
	}
	if err := a.Guard(context.Background(), row); err != nil {
		t.Error("a new save: ", err)
	}
	unlock() // of the old lease: it frees nothing of b's
	if taken(t, a, "k") {
		t.Error("two have the lock")
	}
	free()
	within(t, "a gets the lock", func() bool { return taken(t, a, "k") })
}

// A lease that is over is noticed in the database too, by a gateway whose own clock does not say so: here it stands still.
func TestGuard(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	a, b := join(t, Options{Database: database}), join(t, Options{Database: database, Name: "b"})
	tx, err := a.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { tx.Rollback() }() //nolint:errcheck // it has only asked
	row := func(q string, args ...any) *sql.Row { return tx.QueryRow(q, args...) }
	ctx, err := a.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = a.Lock(ctx, "saves", "k"); err != nil {
		t.Fatal(err)
	}
	if err := a.Guard(ctx, row); err != nil {
		t.Fatal(err)
	}
	// A heartbeat does not wait for the save; nobody ends the lease before that; and it can't be renewed when it is over.
	if err := a.renew(ctx, a.Health().ID); err != nil {
		t.Error(err)
	}
	if _, err := b.db.Exec("UPDATE gateway SET lease = clock_timestamp() WHERE id = $1", a.Health().ID); err != nil {
		t.Fatal(err)
	}
	if taken(t, b, "k") {
		t.Error("a lock was taken from a gateway in a save that goes on")
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if !taken(t, b, "k") {
		t.Error("a lease is over, and its lock is not free")
	}
	if tx, err = a.db.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := a.Guard(ctx, row); !errors.Is(err, ErrFenced) {
		t.Error("after its lease a save goes on: ", err)
	}
	if err := a.Check(ctx); !errors.Is(err, ErrFenced) {
		t.Error("the database has said that its lease is over, and it goes on: ", err)
	}
	// A lease that is over is not renewed, though its row is there.
	id := b.Health().ID
	if _, err := a.db.Exec("UPDATE gateway SET lease = clock_timestamp() WHERE id = $1", id); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Lock(context.Background(), "asks", "l"); !errors.Is(err, ErrFenced) {
		t.Error("a gateway whose lease is over gets a lock: ", err)
	}
	if err := b.renew(context.Background(), id); !errors.Is(err, ErrFenced) {
		t.Error("a lease that was over was renewed: ", err)
	}
}

// After a crash of the database leases and locks are gone, and those who held some may be at work until their own clocks stop them.
func TestDatabaseBeginsAnew(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	a, b := join(t, Options{Database: database, Lease: short}), join(t, Options{Database: database, Lease: short})
	ctx, err := a.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Lock(ctx, "holds", "k"); err != nil {
		t.Fatal(err)
	}
	// As PostgreSQL does with unlogged tables.
	if _, err := a.db.Exec("TRUNCATE since, gateway, lock"); err != nil {
		t.Fatal(err)
	}
	for {
		free, err := b.Lock(context.Background(), "waits", "k")
		if errors.Is(err, ErrFenced) {
			continue // it begins anew as well
		}
		if err != nil {
			t.Fatal(err)
		}
		free()
		break
	}
	if err := a.Check(ctx); !errors.Is(err, ErrFenced) {
		t.Error("its lock was given to another, and it goes on: ", err)
	}
}

// Updates that wait for each other keep neither other calls nor heartbeats waiting.
func TestManyWait(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	a, b := join(t, Options{Database: database, Lease: short}), join(t, Options{Database: database})
	in, out := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		if err := b.Files("d").Update(t.Context(), "lock", func(state.Files) error { close(in); <-out; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-in
	ctx, cancel := context.WithCancel(t.Context())
	for range 3 * mostConns {
		all.Go(func() {
			if err := a.Files("d").Update(ctx, "lock", func(state.Files) error { return nil }); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	within(t, "they wait", func() bool { return len(a.turn) == mostUpdates && a.db.Stats().InUse >= mostUpdates })
	if !taken(t, a, "k") || a.Files("d").Append("x", nil) != nil {
		t.Error("another call waits with them")
	}
	first := a.Health()
	within(t, "it has heartbeats all the same", func() bool { return a.Health().Beaten.Sub(first.Beaten) > short })
	cancel()
	close(out)
	all.Wait()
}

func TestListen(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	wired, wire := fleetbox.Wired(t, database)
	a, b := join(t, Options{Database: wired, Lease: short}), join(t, Options{Database: database})
	all, stop := a.Listen("questions/")
	defer stop()
	others, stop2 := a.Listen("tokens/")
	defer stop2()
	<-all // it hears now
	<-others
	if err := b.Files("questions").Replace("1", nil); err != nil {
		t.Fatal(err)
	}
	<-all
	select {
	case <-others:
		t.Error("woken by what does not concern it")
	default:
	}
	wire.Cut()
	wire.Mend()
	<-others // it may have missed something
}

func TestOpen(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	schema := regexp.MustCompile("search_path=[a-z0-9]+").ReplaceAllString(database, "search_path=elsewhere")
	if err := join(t, Options{Database: schema}).Fenced(); err == nil || !strings.Contains(err.Error(), "schema of search_path=elsewhere is not there") {
		t.Error(err)
	}
	if _, err := Open(context.Background(), Options{Database: "postgres://u:secret@[::1"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	closed := join(t, Options{Database: "postgres://u@127.0.0.1:1/x"}).Fenced()
	if closed == nil || strings.Contains(closed.Error(), "\n") || !strings.Contains(closed.Error(), "refused") {
		t.Errorf("not one line with the reason: %v", closed)
	}
	wired, wire := fleetbox.Wired(t, database)
	wire.Cut()
	g := join(t, Options{Database: wired, Lease: short}) // it is there, and may do nothing
	if _, err := g.Lock(context.Background(), "asks", "k"); !errors.Is(err, ErrFenced) || !outage.Is(err) {
		t.Error(err)
	}
	wire.Mend()
	within(t, "it has a lease", func() bool { return g.Fenced() == nil })
	first := g.Health().Beaten
	within(t, "it has another heartbeat", func() bool { return g.Health().Beaten.After(first) })
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var left int
	if err := db.QueryRow("SELECT count(*) FROM gateway").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d leases are left, %v", left, err)
	}
	if _, err := db.Exec("UPDATE fleet SET version = 99"); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), Options{Database: database}); !errors.As(err, new(*VersionError)) {
		t.Error("newer tables: ", err)
	}
}

// An outage is said once, and its end, however many heartbeats fail meanwhile.
func TestOutageIsSaidOnce(t *testing.T) {
	t.Parallel()
	database, wire := fleetbox.Wired(t, fleetbox.Database(t))
	said := &lines{}
	g := join(t, Options{Database: database, Lease: short, Logger: slog.New(slog.NewTextHandler(said, nil))})
	const begins, ends = "a heartbeat of the fleet failed", "confirmed again"
	h, begun, ended := g.Health(), said.count(begins), said.count(ends) // on a busy machine one may have failed before
	wire.Cut()
	within(t, "several heartbeats fail", func() bool { return g.Health().Failed > h.Failed+3 })
	if n := said.count(begins); n > begun+1 || n == 0 {
		t.Errorf("it is said %d times", n-begun)
	}
	wire.Mend()
	within(t, "the end is said", func() bool { return said.count(ends) > ended })
}

type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

// A connection that was cut under TLS can't be closed in order. A gateway has lost nothing with it, and leaves without an error.
func TestCloseOfACutConnection(t *testing.T) {
	t.Parallel()
	g := join(t, Options{Database: fleetbox.Database(t)})
	config := g.config.Copy()
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return cutConn{c}, err
	}
	g.db.Close()
	if g.db = stdlib.OpenDB(*config); g.db.Ping() != nil || g.db.Close() == nil {
		t.Fatal("the test is none: a connection of it closes in order")
	}
	if g.db = stdlib.OpenDB(*config); g.db.Ping() != nil {
		t.Fatal("no connection")
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

type cutConn struct{ net.Conn }

func (c cutConn) Close() error {
	c.Conn.Close()
	return errors.New("tls: failed to send closeNotify alert")
}

// BenchmarkLock takes the locks of an edit of one file five directories deep, and gives them back: one gateway alone, and eight on files of
// their own in one directory. An answer of the database is beside them.
func BenchmarkLock(b *testing.B) {
	database := fleetbox.Database(b)
	var gateways []*Gateway
	for range 8 {
		g, err := Open(context.Background(), Options{Database: database})
		if err != nil {
			b.Fatal(err)
		}
		defer g.Close() //nolint:errcheck // it was only measured
		gateways = append(gateways, g)
	}
	lock := func(b *testing.B, i, n int) {
		keys := []string{"op:" + strconv.Itoa(i) + "/" + strconv.Itoa(n), "place " + strconv.Itoa(i), "name " + strconv.Itoa(i)}
		for d := range 5 {
			keys = append(keys, guardfs.Shared("tree "+strconv.Itoa(d)))
		}
		unlock, err := gateways[i].Lock(context.Background(), "Edit", keys...)
		if err != nil {
			b.Error(err)
			return
		}
		unlock()
	}
	b.Run("question", func(b *testing.B) { // as small as can be
		for range b.N {
			if _, err := gateways[0].db.Exec("SELECT 1"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("one", func(b *testing.B) {
		for n := range b.N {
			lock(b, 0, n)
		}
	})
	b.Run("eight", func(b *testing.B) {
		var wg sync.WaitGroup
		for i := range gateways {
			wg.Go(func() {
				for n := range b.N / len(gateways) {
					lock(b, i, n)
				}
			})
		}
		wg.Wait()
	})
}
