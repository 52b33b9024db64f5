package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/checkpoint/blob"
	"moltisfs/internal/fleetbox"
)

// TestInsideInPostgres runs these tests on stores in PostgreSQL: see fresh.
func TestInsideInPostgres(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){"LooksThatAreCutOff": TestLooksThatAreCutOff, "UndoPassesByNothing": TestUndoPassesByNothing,
		"KnownWhateverWent": TestKnownWhateverWent, "Indexes": TestIndexes} {
		t.Run(name, test)
	}
}

// A connection that was cut under TLS can't be closed in order. Nothing is lost with it, and Close says nothing of it.
func TestCloseOfACutConnection(t *testing.T) {
	t.Parallel()
	p, err := newPostgres(Options{Database: fleetbox.Database(t), Blobs: &blob.Files{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	p.config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return untidyConn{c}, err
	}
	write, read, err := p.connect()
	for _, pool := range []*pool{write, read} {
		if err := errors.Join(err, pool.DB.Ping(), pool.Close()); err != nil {
			t.Error(err)
		}
	}
}

type untidyConn struct{ net.Conn }

func (c untidyConn) Close() error {
	c.Conn.Close()
	return errors.New("tls: failed to send closeNotify alert")
}

func FuzzXattrs(f *testing.F) {
	f.Add(encodeXattrs(map[string][]byte{"user.a": []byte("x"), "user.b": nil}))
	f.Add([]byte{1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := decodeXattrs(b)
		if err != nil {
			return
		}
		y, err := decodeXattrs(encodeXattrs(x))
		if err != nil || len(x) != len(y) {
			t.Fatalf("%q: %v %v", b, x, y)
		}
	})
}

func fresh(t *testing.T, o Options) *DB {
	t.Helper()
	if strings.HasPrefix(t.Name(), "TestInsideInPostgres/") {
		o.Database, o.Blobs = fleetbox.Database(t), &blob.Files{Dir: t.TempDir()}
	}
	d, err := Open(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// Before 3.51.3 a reset of the write-ahead log could corrupt a database with several connections. Which
// version is linked go.mod says; nobody may go back behind that one.
func TestSQLite(t *testing.T) {
	d := fresh(t, Options{})
	s, err := one[string](t.Context(), d.r, "SELECT sqlite_version()")
	var v [3]int
	if _, err2 := fmt.Sscanf(s, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil || err2 != nil {
		t.Fatal(s, err, err2)
	}
	if slices.Compare(v[:], []int{3, 51, 3}) < 0 {
		t.Errorf("SQLite %s can corrupt a store", s)
	}
}

// Outside of one file there is no SQL that only SQLite has.
func TestPortableSQL(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) < 10 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if name == "sqlite.go" || name == "postgres.go" || name == "schema.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"PRAGMA", "pragma_", "ifnull(", "json_each", "INDEXED BY", "INSERT OR", "CROSS JOIN", "x''", "VACUUM", "rowid", "hex(", "?1"} {
			if strings.Contains(string(text), word) {
				t.Errorf("%s has %s", name, word)
			}
		}
	}
}

// However a look at the catalog ends, the next ones find connections that are in no transaction.
func TestLooksThatAreCutOff(t *testing.T) {
	d := fresh(t, Options{})
	all := func(after string) {
		t.Helper()
		// One within the other: each has a connection of its own.
		var nest func(n int) error
		nest = func(n int) error {
			if n == 0 {
				return nil
			}
			return d.view(t.Context(), func(h *history) error {
				_, err := one[int64](t.Context(), h.q, "SELECT count(*) FROM op")
				return errors.Join(err, nest(n-1))
			})
		}
		if err := nest(8); err != nil {
			t.Fatalf("after %s: %v", after, err)
		}
	}
	for range 10 { // more than may be in use at once
		func() {
			defer func() { recover() }()
			d.view(t.Context(), func(*history) error { panic("in the midst of it") })
		}()
	}
	all("a panic")
	looks := 2000
	if d.o.Database != "" { // each costs a connection there
		looks = 150
	}
	for range looks {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(200_000)))
		err := d.view(ctx, func(h *history) error {
			_, err := one[int64](ctx, h.q, "SELECT v FROM meta")
			return err
		})
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a look that ran out of time: %v", err)
		}
		cancel()
	}
	all("looks that ran out of time")
}

// explained is a querier that notes how SQLite goes about each query.
type explained struct {
	querier
	t        *testing.T
	postgres bool
	plans    map[string][]string
}

func (e *explained) note(q string, args []any) {
	explain := "EXPLAIN QUERY PLAN "
	if e.postgres {
		explain = "EXPLAIN "
	}
	err := each(e.t.Context(), e.querier, explain+q, args, func(row scanner) error {
		var id, parent, unused int
		var detail string
		columns := []any{&id, &parent, &unused, &detail}
		if e.postgres {
			columns = columns[3:]
		}
		err := row.Scan(columns...)
		e.plans[q] = append(e.plans[q], detail)
		return err
	})
	if err != nil {
		e.t.Error(q, err)
	}
}

func (e *explained) QueryContext(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	e.note(q, args)
	return e.querier.QueryContext(ctx, q, args...)
}

func (e *explained) QueryRowContext(ctx context.Context, q string, args ...any) *sql.Row {
	e.note(q, args)
	return e.querier.QueryRowContext(ctx, q, args...)
}

// No list, and nothing that a call of an agent asks, goes through all of a table that grows with the history, or all of a session.
func TestIndexes(t *testing.T) {
	t.Parallel()
	d := fresh(t, Options{})
	me := Scope{Principal: "ann", Session: "s"}
	for i := range 60 {
		o := Op{Tool: "Edit", Kind: KindEdit, Principal: me.Principal, Session: me.Session, Turn: fmt.Sprint("t", i/10), Changes: []Change{{
			Path: fmt.Sprintf("/w/f%d", i%7), Before: State{Kind: Absent}, After: State{Kind: Dir, Mode: 0o755}}}}
		if i%5 == 0 {
			o.Session, o.Tool, o.Run = fmt.Sprint("s", i/30), "Write", int64(1+i/10)
		}
		if _, err := d.Save(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	many := &Filter{Principal: me.Principal, Session: me.Session, Limit: 2}
	with := func(change func(*Filter)) *Filter {
		f := *many
		change(&f)
		return &f
	}
	past := func(f *Filter) { f.Until = time.Unix(1, 0) }
	looks := map[string]any{
		"newest": many, "of all": &Filter{AllSessions: true},
		"of a principal": &Filter{AllSessions: true, Principal: "ann"},
		"of sessions":    &Filter{AllSessions: true, Session: "s1"},
		"a path":         with(func(f *Filter) { f.Path, f.Also = "/w/f1", []string{"/w/f2"} }),
		"a turn":         with(func(f *Filter) { f.Turn = "t1" }),
		"a turn of all":  &Filter{AllSessions: true, Turn: "t1"},
		"a tool":         with(func(f *Filter) { f.Tool = "Write" }),
		"a tool of all":  &Filter{AllSessions: true, Tool: "Write"},
		"a kind":         with(func(f *Filter) { f.Kind = KindRestore }),
		"a kind of all":  &Filter{AllSessions: true, Kind: KindEdit},
		"a label":        with(func(f *Filter) { f.Label = "none" }),
		"a text":         with(func(f *Filter) { f.PathContains = "F3" }),
		"no text":        with(func(f *Filter) { f.PathContains = "F3x" }),
		"a past":         with(past), "a past of all": &Filter{AllSessions: true, Until: time.Unix(1, 0)},
		"a tool in a turn":            with(func(f *Filter) { f.Tool, f.Turn = "Write", "t1" }),
		"a tool in a text":            with(func(f *Filter) { f.Tool, f.PathContains = "Write", "f3" }),
		"a label in a turn":           with(func(f *Filter) { f.Label, f.Turn = "none", "t1" }),
		"a path in a turn":            with(func(f *Filter) { f.Path, f.Turn = "/w/f1", "t1" }),
		"of all, with what is undone": &Filter{AllSessions: true},
		"a label to go to":            Restore{Label: "none"},
		"a turn to go to":             Restore{Turn: "t3"},
		"a time to go to":             Restore{Since: time.Now().Add(time.Hour)},
		"a path's last dir":           func(h *history) error { _, err := h.head(t.Context(), me, "/w/f1", afterAll); return err },
		"what it knows":               func(h *history) error { _, err := h.known(t.Context(), me); return err },
		"what was lost":               func(h *history) error { _, err := h.lost(t.Context(), me); return err },
		"retention, nothing":          func(h *history) error { _, err := column[int64](t.Context(), h.q, agedQuery, 0, 20, 0); return err },
	}
	for name, look := range looks {
		_, postgres := d.c.(*postgres)
		e := &explained{t: t, postgres: postgres, plans: map[string][]string{}}
		err := d.planning(t.Context(), func(h *history) (err error) {
			e.querier, h.q = h.q, e
			switch look := look.(type) {
			case *Filter:
				_, err = h.list(t.Context(), *look)
			case Restore:
				look.Principal, look.Session = me.Principal, me.Session
				_, err = makePlan(t.Context(), h, look)
			case func(*history) error:
				err = look(h)
			}
			return err
		})
		if err != nil && !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		for q, plan := range e.plans {
			for _, step := range plan {
				if _, table, scan := strings.Cut(step, "Seq Scan on "); scan && !slices.Contains([]string{"path", "open_op", "unsent"}, strings.Fields(table)[0]) {
					t.Errorf("%s: %s\n%s", name, strings.Join(plan, "\n"), q)
				}
				table, scan := strings.CutPrefix(step, "SCAN ")
				// These are the names of the subqueries, of the table of paths, which a text is compared with, and of the one of what is not
				// sent yet.
				grows := scan && !slices.Contains([]string{"path", "c", "unsent", "CONSTANT"}, strings.Fields(table)[0]) && !strings.HasPrefix(table, "(subquery-")
				// From a point on it may be gone through: that is what is asked for.
				walk := strings.Contains(step, "op_session") || strings.Contains(step, "op USING INTEGER PRIMARY KEY (rowid<") ||
					strings.Contains(step, "op USING INTEGER PRIMARY KEY (rowid>")
				walk = walk && !postgres && !strings.HasSuffix(step, "(session=? AND rowid>?)") &&
					!strings.HasPrefix(q, "SELECT count(*) FROM op WHERE seq>?") && name != "newest" && !strings.HasPrefix(name, "of ")
				// An operation may have as many changes as a tree has files.
				whole := name == "what it knows" && strings.HasPrefix(step, "SEARCH c USING PRIMARY KEY")
				if grows || walk || whole {
					t.Errorf("%s: %s\n%s", name, strings.Join(plan, "\n"), q)
				}
			}
		}
	}
}

// Whatever the order of changes, runs, reads, undos, redos and aborts: an undo and a redo find what a walk from the newest checkpoint
// down finds.
func TestUndoPassesByNothing(t *testing.T) {
	t.Parallel()
	d := fresh(t, Options{})
	me := Scope{Principal: "ann", Session: "s"}
	rng := rand.New(rand.NewPCG(1, 43))
	var saved []ID
	redos, steps := 0, 120
	for i := range steps {
		o := Op{Tool: "Edit", Kind: KindEdit, Principal: me.Principal, Session: me.Session, Changes: []Change{{
			Path: fmt.Sprintf("/w/f%d", rng.IntN(9)), Before: State{Kind: Absent}, After: State{Kind: Dir, Mode: 0o755}}}}
		plan := func(find func(context.Context, Scope) (*Plan, error)) {
			if p, err := find(t.Context(), me); err == nil {
				o.Kind, o.UndoOf, o.RestoreOf = KindRestore, p.UndoOf, p.RestoreOf
			} else if !errors.Is(err, ErrNothing) {
				t.Fatal(err)
			}
		}
		switch rng.IntN(13) {
		case 0, 1, 2, 3:
			plan(d.Undo)
		case 4, 5:
			plan(d.Redo)
		case 6:
			o.Kind = KindRead
		case 7, 8:
			o.Run = int64(1 + i/20)
		case 9:
			if len(saved) > 0 { // it was not the newest any more when it was saved
				o.Kind, o.UndoOf = KindRestore, saved[max(0, len(saved)-1-rng.IntN(3))]
			}
		case 10:
			o.Kind = KindRead
			if len(saved) > 0 {
				if err := d.Settle(t.Context(), saved[max(0, len(saved)-1-rng.IntN(4))], Aborted); err != nil {
					t.Fatal(err)
				}
			}
		}
		s, err := d.Save(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		saved = append(saved, s.ID)
		var all []entry
		if err := d.view(t.Context(), func(h *history) (err error) {
			all, err = h.those(t.Context(), me, "1=1")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		undo, redo := walk(t, all)
		p, err := d.Undo(t.Context(), me)
		if undo == "" != errors.Is(err, ErrNothing) || err == nil && p.UndoOf != undo {
			t.Fatalf("after %d: undo is %+v %v, not of %s", i, p, err, undo)
		}
		p, err = d.Redo(t.Context(), me)
		if redo == "" != errors.Is(err, ErrNothing) || err == nil && p.UndoOf != redo {
			t.Fatalf("after %d: redo is %+v %v, not of %s", i, p, err, redo)
		}
		redos += count(redo != "")
	}
	// An older store, where no operation says it, comes to the same.
	if err := d.transact(t.Context(), func(ctx context.Context, tx *tx) error {
		return errors.Join(tx.exec(ctx, "UPDATE op SET undone_by=NULL"), tx.undone(ctx))
	}); err != nil {
		t.Fatal(err)
	}
	if err := d.view(t.Context(), func(h *history) error {
		all, err := h.those(t.Context(), me, "1=1")
		walk(t, all)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if redos < steps/10 {
		t.Errorf("there were only %d redos to find", redos)
	}
}

// walk goes through all checkpoints of a session from the newest down, and gives the change that an undo, and the undo that a redo takes back.
// An operation that could cancel another has been seen before that one comes up.
func walk(t *testing.T, all []entry) (undo, redo ID) {
	var holding []entry // undos that are not cancelled themselves, the newest first
	by := map[int64]entry{}
	for _, e := range all {
		by[e.seq] = e
	}
	for _, e := range slices.Backward(all) {
		i := slices.IndexFunc(holding, func(o entry) bool {
			return o.undoOf == e.seq || o.sameRun(e) && e.undoOf == 0 && o.restoreOf != 0 && o.restoreOf <= e.seq && e.seq <= o.undoOf
		})
		want := ID("")
		if i >= 0 {
			want = holding[i].c.ID
		}
		if e.c.UndoneBy != want {
			t.Errorf("%s is said to be undone by %q, not %q", e.c.ID, e.c.UndoneBy, want)
		}
		switch {
		case i >= 0 || !e.changes():
		case e.undoOf != 0:
			holding = append(holding, e)
			if undo == "" && redo == "" && by[e.undoOf].undoOf == 0 {
				redo = e.c.ID
			}
		case undo == "":
			undo = e.c.ID
		}
	}
	return undo, redo
}

// TestKnownWhateverWent: a session knows a path whose newest state is on record, though retention took a change of it by another session that
// came between.
func TestKnownWhateverWent(t *testing.T) {
	t.Parallel()
	d := fresh(t, Options{})
	seqs := map[string]int{}
	for i, session := range []string{"own", "gone", "newest"} {
		seqs[session] = i + 1
		if _, err := d.Save(t.Context(), Op{Tool: "Edit", Kind: KindEdit, Principal: "ann", Session: session, Changes: []Change{{
			Path: "/w/f", Before: State{Kind: Absent}, After: State{Kind: Dir, Mode: 0o755}}}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		gone  string
		known int
	}{{"gone", 1}, {"newest", 1}, {"later", 0}} {
		seqs["later"] = 9
		if err := d.transact(t.Context(), func(ctx context.Context, tx *tx) error {
			return tx.exec(ctx, "UPDATE path SET gone=?", seqs[c.gone])
		}); err != nil {
			t.Fatal(err)
		}
		known, err := d.Known(t.Context(), Scope{Principal: "ann", Session: "own"})
		if err != nil || len(known) != c.known {
			t.Errorf("retention took %s: %+v %v", c.gone, known, err)
		}
	}
}

// A read of SQLite whose caller goes ends before the next row or statement, says so, and leaves its connection as it was: no transaction is open
// on it, which would keep the log.
func TestCancelledReadLeavesNothingOpen(t *testing.T) {
	t.Parallel()
	d := fresh(t, Options{Blobs: &blob.Files{Dir: t.TempDir()}})
	for i := range 3 {
		if _, err := d.Save(t.Context(), becomes("/w/f", nil, []byte{byte(i)})); err != nil {
			t.Fatal(err)
		}
	}
	const rows = "SELECT seq FROM op ORDER BY seq"
	for name, read := range map[string]func(ctx context.Context, h *history, cancel func()) error{
		"in a row": func(ctx context.Context, h *history, cancel func()) error {
			n := 0
			err := each(ctx, h.q, rows, nil, func(scanner) error { n++; cancel(); return nil })
			if n != 1 {
				t.Errorf("%d rows", n)
			}
			return err
		},
		"before a statement": func(ctx context.Context, h *history, cancel func()) error {
			cancel()
			_, err := column[int64](ctx, h.q, rows)
			return err
		},
		"before a statement of one row": func(ctx context.Context, h *history, cancel func()) error {
			cancel()
			_, err := one[int64](ctx, h.q, rows)
			return err
		},
		"in a row, before a statement": func(ctx context.Context, h *history, cancel func()) error {
			return each(ctx, h.q, rows, nil, func(scanner) error {
				cancel()
				_, err := one[int64](ctx, h.q, "SELECT max(seq) FROM op")
				return err
			})
		},
	} {
		caller, cancel := context.WithCancel(t.Context())
		if err := d.view(caller, func(h *history) error { return read(caller, h, cancel) }); !errors.Is(err, context.Canceled) || errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if len(d.r.idle) != 1 {
			t.Errorf("%s: %d connections are kept", name, len(d.r.idle))
		}
		if err := d.view(t.Context(), func(h *history) error { _, err := column[int64](t.Context(), h.q, rows); return err }); err != nil {
			t.Fatalf("%s, after it: %v", name, err)
		}
		if _, err := d.Save(t.Context(), becomes("/w/f", nil, []byte(name))); err != nil {
			t.Fatal(err)
		}
		if err := d.alone(t.Context(), d.c.scour); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
