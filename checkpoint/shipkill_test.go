package checkpoint

import (
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"filippo.io/age"

	"moltisfs/checkpoint/blob"
	"moltisfs/internal/fleetbox"
)

// A gateway under test dies at the n-th statement, of either store: the connections are gone, and nothing more is done.
type death struct{ left int }

var errDead = errors.New("the process is dead")

func (d *death) statement() error {
	if d.left--; d.left == 0 || d.left < 0 && d.left > -1<<30 {
		return errDead
	}
	return nil
}

func (d *death) never() { d.left = -1 << 40 }

// A mortal is a driver, and a connection of it, of which death ends the statements.
type mortal struct {
	of  driver.Driver
	dsn string
	d   *death
}

func (m mortal) Driver() driver.Driver { return m.of }

func (m mortal) Connect(context.Context) (driver.Conn, error) {
	c, err := m.of.Open(m.dsn)
	return mortalConn{c, m.d}, err
}

type mortalConn struct {
	driver.Conn
	d *death
}

func (c mortalConn) Prepare(q string) (driver.Stmt, error) {
	st, err := c.Conn.Prepare(q)
	return mortalStmt{st, c.d}, err
}

func (c mortalConn) ExecContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.d.statement(); err != nil {
		return nil, err
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, q, args)
}

func (c mortalConn) QueryContext(ctx context.Context, q string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.d.statement(); err != nil {
		return nil, err
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, q, args)
}

type mortalStmt struct {
	driver.Stmt
	d *death
}

func (s mortalStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.d.statement(); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s mortalStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.d.statement(); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

// dying opens the store in dir for a gateway that dies as d says.
func dying(t *testing.T, dir string, d *death, o Options) *DB {
	t.Helper()
	db, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	c := db.c.(*sqliteCatalog)
	for p, write := range map[*pool]bool{db.w: true, db.r: false} {
		for _, c := range p.idle {
			c.Conn.Close()
		}
		p.idle = nil
		m := mortal{p.DB.Driver(), c.dsn(write, false), d}
		p.DB.Close()
		p.DB = sql.OpenDB(m)
	}
	return db
}

// TestKilledAtEveryStatement: a gateway saves, settles, marks and ships, and is killed at each of its statements in turn. The next one goes
// on with its store. In the end all that was acknowledged is in the remote store, once and in order. A shipper that takes an operation for
// sent before it is loses some, and is found.
func TestKilledAtEveryStatement(t *testing.T) {
	t.Parallel()
	for name, round := range map[string]func(*Shipper, context.Context) error{"good": (*Shipper).Round, "bad": (*Shipper).BadRound} {
		t.Run(name, func(t *testing.T) {
			dir, remoteDir, d := t.TempDir(), t.TempDir(), &death{}
			var acknowledged []ID
			deaths := 0
			step := 3 // another part of the statements each time
			if name == "bad" || testing.Short() {
				step = 7
			}
			for n := 1 + rand.IntN(step); ; n += step {
				d.never()
				local, remote := dying(t, dir, d, Options{Ships: true}), dying(t, remoteDir, d, Options{})
				s := Sender(local, remote)
				d.left = n
				err := func() error {
					for i := range 2 {
						op, _ := someOp(10*n+i, nil)
						saved, err := local.Save(t.Context(), op)
						if err == nil {
							acknowledged = append(acknowledged, saved.ID)
							err = local.Settle(t.Context(), saved.ID, Committed)
						}
						if err == nil {
							err = round(s, t.Context())
						}
						if err == nil && i == 0 {
							err = local.Label(t.Context(), saved.ID, Scope{Principal: "ann", Session: "s"}, "named")
						}
						if err != nil {
							return err
						}
					}
					return nil
				}()
				d.left = 0 // what Close would do, the dead don't
				local.Close()
				remote.Close()
				d.never()
				settleAll(t, dir)
				if err == nil {
					break
				}
				deaths++
			}
			if deaths < 50/step {
				t.Errorf("only %d statements", deaths)
			}
			arrived(t, dir, remoteDir, acknowledged, name == "bad", round)
		})
	}
}

// settleAll does what a host does when it begins: it brings what is open to its end.
func settleAll(t *testing.T, dir string) {
	t.Helper()
	d, err := Open(dir, Options{Ships: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	open, err := d.Open(t.Context())
	for _, o := range open {
		err = errors.Join(err, d.Settle(t.Context(), o.ID, Committed))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// arrived ships what is left, and looks whether all of local, with what was acknowledged, is in the remote store in the same order and with the
// same marks. lost: some is not.
func arrived(t *testing.T, dir, remoteDir string, acknowledged []ID, lost bool, round func(*Shipper, context.Context) error) {
	t.Helper()
	local, err1 := Open(dir, Options{Ships: true})
	remote, err2 := Open(remoteDir, Options{})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	defer remote.Close()
	if err := round(Sender(local, remote), t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, local, remote, acknowledged, lost)
}

func same(t *testing.T, local, remote *DB, acknowledged []ID, lost bool) {
	t.Helper()
	ctx := t.Context()
	const all = "SELECT id || ' ' || outcome || ' ' || coalesce(label, '') FROM op ORDER BY seq"
	want, err1 := column[string](ctx, local.r, all)
	got, err2 := column[string](ctx, remote.r, all)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if slices.Equal(got, want) == lost {
		t.Errorf("%d operations of %d arrived:\n%v\nof\n%v", len(got), len(want), got, want)
	}
	for _, id := range acknowledged {
		if _, err := local.Get(ctx, id, Scope{AllSessions: true}); err != nil {
			t.Errorf("%s was acknowledged: %v", id, err)
		}
	}
	if n, _, err := local.Behind(ctx); err != nil || n != 0 {
		t.Errorf("%d are unsent: %v", n, err)
	}
	if lost {
		return
	}
	for _, d := range []*DB{local, remote} {
		if r, err := d.Check(ctx, true); err != nil || len(r.Problems) > 0 {
			t.Errorf("%+v %v", r, err)
		}
	}
	hashes, err := column[[]byte](ctx, local.r, "SELECT hash FROM content WHERE codec IS NOT NULL")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hashes {
		if _, err := remote.Content(ctx, blob.Hash(h).String()); err != nil {
			t.Errorf("content %x: %v", h, err)
		}
	}
}

// TestShipmentCutAtEveryMessage: the connection to the database is cut at each message of a shipment in turn, before the message or its
// answer. In the end all is there, once and in order.
func TestShipmentCutAtEveryMessage(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]struct{ lost, bad bool }{"not sent": {}, "answer lost": {lost: true}, "bad": {bad: true}} {
		t.Run(name, func(t *testing.T) {
			database, files := fleetbox.Database(t), &blob.Files{Dir: t.TempDir()}
			f := &fault{lost: kind.lost}
			remote := faulty(t, database, cutBlobs{Store: files, f: f}, f, func(c catalog) catalog { return c })
			local := fresh(t, Options{Ships: true})
			s := Sender(local, remote)
			round := s.Round
			if kind.bad {
				round = s.BadRound
			}
			ctx := t.Context()
			var acknowledged []ID
			step := 4 // another part of the messages each time
			if kind.bad {
				step = 1 // few of them show it
			}
			for n, calm := 1+rand.IntN(step), 0; calm < 2; n += step {
				op, _ := someOp(n, nil)
				saved, err := local.Save(ctx, op)
				if err == nil {
					err = local.Settle(ctx, saved.ID, Committed)
				}
				if err != nil {
					t.Fatal(err)
				}
				acknowledged = append(acknowledged, saved.ID)
				f.arm(n)
				err = round(ctx)
				struck := f.struck.Load()
				f.arm(0)
				if !struck {
					calm++
					if err != nil {
						t.Fatal(n, err)
					}
				}
				if n > 1000 {
					t.Fatal("no end")
				}
			}
			if len(acknowledged)*step < 15 {
				t.Error("a shipment has only", len(acknowledged)*step, "messages")
			}
			if err := round(ctx); err != nil {
				t.Fatal(err)
			}
			same(t, local, remote, acknowledged, kind.bad)
		})
	}
}

// A copy that is killed at any statement goes on where it was.
func TestCopyKilledAtEveryStatement(t *testing.T) {
	t.Parallel()
	from := fresh(t, Options{})
	for i := range 4 {
		op, _ := someOp(i, nil)
		op.Opening = Opening{}
		if _, err := from.Save(t.Context(), op); err != nil {
			t.Fatal(err)
		}
	}
	dir, d, copies := filepath.Join(t.TempDir(), "to"), &death{}, 0
	for n := 1; ; n++ {
		d.never()
		to := dying(t, dir, d, Options{})
		d.left = n
		c, err := Copy(t.Context(), from, to)
		d.left = 0
		to.Close()
		d.never()
		copies += c.Operations
		if err == nil {
			break
		}
	}
	to, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if copies != 4 {
		t.Errorf("%d operations were copied, of 4", copies)
	}
	same(t, from, to, nil, false)
}

// A beside is a catalog in whose next transaction something else happens in another store first.
type beside struct {
	catalog
	happens func()
}

func (b *beside) begin(ctx context.Context, c *conn, synced bool) (func(bool) error, error) {
	end, err := b.catalog.begin(ctx, c, synced)
	if happens := b.happens; happens != nil {
		b.happens = nil
		happens()
	}
	return end, err
}

// TestNothingOldIsCopied marks and purges operations between the time that a copy reads them and the time that it writes them: the target gets
// them as they are then. A copier that reads too early is caught.
func TestNothingOldIsCopied(t *testing.T) {
	t.Parallel()
	for _, far := range []bool{false, true} {
		from, to, ctx := fresh(t, Options{Ships: true}), fresh(t, Options{}), t.Context()
		op, body := someOp(1, nil)
		op.Opening = Opening{}
		saved, err := from.Save(ctx, op)
		if err != nil {
			t.Fatal(err)
		}
		hash := blob.Hash(sha256.Sum256(body)).String()
		round := func(happens func() error) {
			t.Helper()
			to.c = &beside{to.c, func() { err = happens() }}
			c := &copier{from: from, to: to, who: anybody, ships: true, far: far}
			if err := errors.Join(c.run(ctx), err); err != nil {
				t.Fatal(err)
			}
		}
		round(func() error {
			_, err := from.Purge(ctx, Purge{Hash: hash})
			return err
		})
		if _, err := to.Content(ctx, hash); errors.Is(err, ErrNoContent) == far {
			t.Errorf("far %v: %v", far, err)
		}
		if err := from.Label(ctx, saved.ID, anybody, "old"); err != nil {
			t.Fatal(err)
		}
		round(func() error { return from.Label(ctx, saved.ID, anybody, "new") })
		c, err := to.Get(ctx, saved.ID, anybody)
		if n, _, nerr := from.Behind(ctx); errors.Join(err, nerr) != nil || (n == 0) == far || (c.Label == "new") == far {
			t.Errorf("far %v: %d are unsent, %q %v %v", far, n, c.Label, err, nerr)
		}
		if !far {
			same(t, from, to, []ID{saved.ID}, false)
		}
	}
}

// What is saved, and the turn that is begun, while a copy comes to its end, keep their order.
func TestCopyBesideATurn(t *testing.T) {
	t.Parallel()
	from, to, ctx := fresh(t, Options{}), fresh(t, Options{}), t.Context()
	op, _ := someOp(1, nil)
	op.Opening, op.Turn = Opening{}, "0"
	_, err := from.Save(ctx, op)
	if err == nil {
		_, err = from.BeginTurn(ctx, Scope{Principal: op.Principal, Session: op.Session}, "1")
	}
	if err != nil {
		t.Fatal(err)
	}
	begun := func(want ...string) {
		t.Helper()
		turns, err := column[string](ctx, to.r, "SELECT name || ' ' || after FROM turn ORDER BY id")
		if err != nil || !slices.Equal(turns, want) {
			t.Errorf("%q %v, not %q", turns, err, want)
		}
	}
	c := &copier{from: from, to: to, who: anybody} // it has seen no operation yet
	if err := c.rest(ctx); err != nil {
		t.Fatal(err)
	}
	begun()
	if _, err := Copy(ctx, from, to); err != nil {
		t.Fatal(err)
	}
	begun("0 0", "1 1")
}

// A content in clear is a delta on one that the target has in another form: encrypted, or at the end of a chain. It can be read there, and the
// chain gets no longer. A target that encrypts has it encrypted.
func TestCopyOverAnotherForm(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 4000)
	crand.Read(head)
	version := func(n int) []byte { return fmt.Appendf(head[:len(head):len(head)], "version %d", n) }
	saves := func(d *DB, from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			_, err := d.Save(ctx, Op{Tool: "Edit", Kind: KindEdit, Principal: "ann", Session: "s", Changes: []Change{{Path: "/w/f", Role: "target",
				Before: State{Kind: File}, After: State{Kind: File}, Content: version(n), AfterContent: version(n + 1)}}})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	const last = blob.MaxDepth
	sealing := Options{EncryptTo: id.Recipient().String()}
	for name, o := range map[string]struct{ was, is Options }{"encrypted": {was: sealing}, "deep": {}, "encrypting": {is: sealing}} {
		from, dir := fresh(t, Options{}), t.TempDir()
		there, err := Open(dir, o.was)
		if err != nil {
			t.Fatal(err)
		}
		if name != "encrypting" {
			saves(there, 0, last)
		}
		there.Close()
		saves(from, last, last+1)
		to, err := Open(dir, o.is)
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		if c, err := Copy(ctx, from, to); err != nil || c.Sealed > 0 {
			t.Errorf("%s: %+v %v", name, c, err)
		}
		hash := blob.Hash(sha256.Sum256(version(last + 1)))
		if _, err := to.Content(ctx, hash.String()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var was, is int
		var key int64
		err1 := from.r.QueryRowContext(ctx, "SELECT depth FROM content WHERE hash=?", hash[:]).Scan(&was)
		err2 := to.r.QueryRowContext(ctx, "SELECT depth, coalesce(key, 0) FROM content WHERE hash=?", hash[:]).Scan(&is, &key)
		if errors.Join(err1, err2) != nil || was != 1 || is != 0 || (key != 0) != (name == "encrypting") {
			t.Errorf("%s: depth %d, and in the copy %d, by key %d: %v %v", name, was, is, key, err1, err2)
		}
	}
}
