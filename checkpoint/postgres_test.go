package checkpoint_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"net"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/blob"
	"moltisfs/checkpoint/checkpointtest"
	"moltisfs/internal/fleetbox"
	"moltisfs/internal/testdir"
)

// TestInPostgres runs these tests on stores in PostgreSQL and S3: see open. Left out are those of what does not know which catalog it has.
func TestInPostgres(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){
		"Conforms": func(t *testing.T) {
			checkpointtest.Store(t, func(t *testing.T) *checkpoint.DB { return open(t, t.TempDir(), checkpoint.Options{}) })
		},
		"GCKeepsWhatRetentionSays": TestGCKeepsWhatRetentionSays, "GCKeepsNone": TestGCKeepsNone, "GCKeepsBases": TestGCKeepsBases,
		"QuotaEvictsOldestFirst": TestQuotaEvictsOldestFirst, "FewLargeCheckpointsGoOneByOne": TestFewLargeCheckpointsGoOneByOne,
		"RandomWhileCleaning": TestRandomWhileCleaning, "Skips": TestSkips,
		"RewindPastWhatRetentionTook":                    TestRewindPastWhatRetentionTook,
		"NoChangeFromOutsideWhereRetentionTookTheNewest": TestNoChangeFromOutsideWhereRetentionTookTheNewest,
		"TurnsOfOneNameGo":                               TestTurnsOfOneNameGo, "Seen": TestSeen,
		"NothingTakesWhatIsOpen": TestNothingTakesWhatIsOpen, "SettledForEveryProcess": TestSettledForEveryProcess,
		"OpenRows":                   TestOpenRows,
		"PurgeBesideSaves":           TestPurgeBesideSaves,
		"PurgeLeavesTheEmptyContent": TestPurgeLeavesTheEmptyContent, "PurgeOfWhatIsOpen": TestPurgeOfWhatIsOpen,
		"PurgedIsNotChangedOutside":       TestPurgedIsNotChangedOutside,
		"UndoOfARunPastWhatRetentionTook": TestUndoOfARunPastWhatRetentionTook, "UndoIsOfTheNewest": TestUndoIsOfTheNewest,
		"WhatAnUndoOfARunTakes": TestWhatAnUndoOfARunTakes,
		"SealedByAnother":       TestSealedByAnother, "SealedStaysSealed": TestSealedStaysSealed, "Encryption": TestEncryption,
		"LookingDoesNotWaitForAWriter": TestLookingDoesNotWaitForAWriter,
		"Appended":                     TestAppended, "Trash": TestTrash, "Kill": TestKill, "KillCatchesABadEngine": TestKillCatchesABadEngine,
		"CopyKeepsSealed": TestCopyKeepsSealed, "KilledBetweenContentAndRow": TestKilledBetweenContentAndRow,
	} {
		t.Run(name, test)
	}
}

var saves = flag.Int("saves", 20, "of each of the gateways that save at once")

// TestManyGateways: what eight gateways save and settle at once is one history, in the order of each, and retention that some of them run meanwhile
// takes nothing that has to stay.
func TestManyGateways(t *testing.T) {
	t.Parallel()
	database, contents := fleetbox.Database(t), fleetbox.Contents(t, nil)
	const gateways, kept = 8, 3
	each := *saves
	for name, o := range map[string]checkpoint.Options{"all is kept": {}, "little is kept": {KeepWithin: checkpoint.KeepNone, KeepLast: kept}} {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			saved := make([][]checkpoint.ID, gateways)
			bodies := make([][][]byte, gateways)
			var stores []*checkpoint.DB
			for g := range gateways {
				d, err := openAt("", database+" "+contents, o)
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				stores = append(stores, d)
				all.Go(func() {
					own := fmt.Sprint("/w/", name, g)
					last := source(2000, int64(g))
					for i := range each {
						next := nextVersion(rand.New(rand.NewSource(int64(g*1000+i))), last)
						if i%10 == 0 {
							next = randomText(300<<10, int64(g*1000+i))
						}
						o := op(edit(own, last, next), edit("/w/shared "+name, last, next))
						if i%2 == 1 {
							o.Tag = "t"
						}
						s, err := d.Save(ctx, o)
						if err == nil && o.Tag != "" {
							err = d.Settle(ctx, s.ID, checkpoint.Committed)
						}
						if err != nil {
							t.Error(err)
							return
						}
						if g < 2 && i%10 == 9 {
							if _, err := d.GC(ctx, false); err != nil {
								t.Error(err)
							}
						}
						saved[g], bodies[g], last = append(saved[g], s.ID), append(bodies[g], next), next
					}
				})
			}
			all.Wait()
			at := map[checkpoint.ID]int{}
			for f := (checkpoint.Filter{AllSessions: true, PathContains: name, Limit: 1000}); ; {
				p, err := stores[0].List(ctx, f)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range p.Checkpoints {
					at[c.ID] = -len(at) - 1
				}
				if f.Cursor = p.Next; f.Cursor == "" {
					break
				}
			}
			if o.KeepLast == 0 && len(at) != gateways*each {
				t.Errorf("%d are listed", len(at))
			}
			if ops, err := stores[0].Open(ctx); err != nil || len(ops) > 0 {
				t.Errorf("%d are open: %v", len(ops), err)
			}
			for g, ids := range saved {
				first := 0
				if o.KeepLast != 0 {
					first = each - kept
				}
				for i := first; i < len(ids); i++ {
					if at[ids[i]] == 0 || i > first && at[ids[i]] < at[ids[i-1]] {
						t.Errorf("gateway %d: %s is not there, or not in order", g, ids[i])
					}
					got, err := stores[(g+1)%gateways].Content(ctx, sum(bodies[g][i]))
					if err != nil || !bytes.Equal(got, bodies[g][i]) {
						t.Errorf("gateway %d, save %d: %v", g, i, err)
					}
				}
			}
			sound(t, stores[0])
		})
	}
}

// A backup of a store in PostgreSQL is a store of one machine with all that was settled before what is under way.
func TestBackupOfADatabase(t *testing.T) {
	t.Parallel()
	d := inDatabase(t, fleetbox.Database(t), &blob.Files{Dir: t.TempDir()})
	last := source(3000, 1)
	for i := range 8 {
		next := nextVersion(rand.New(rand.NewSource(int64(i))), last)
		if i == 4 {
			next = randomText(300<<10, 4)
		}
		settled(t, d, edit("/w/a", last, next))
		last = next
	}
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	if _, err := d.Backup(ctx, first); err != nil {
		t.Fatal(err)
	}
	sameCopy(t, d, first)
	o := op(edit("/w/b", []byte("1"), []byte("2")))
	o.Tag = "under way"
	save(t, d, o)
	save(t, d, op(edit("/w/c", []byte("1"), []byte("2"))))
	if copied, err := d.Backup(ctx, second); err != nil || copied.Waiting != 2 || copied.Operations != 8 {
		t.Fatal(copied, err)
	}
	for _, dir := range []string{first, second} {
		soundCopy(t, dir)
		if s := stats(t, open(t, dir, checkpoint.Options{})); s.Checkpoints != 8 {
			t.Errorf("%+v", s)
		}
	}
	if _, err := d.Backup(ctx, second); !errors.Is(err, checkpoint.ErrNotEmpty) {
		t.Error("over another backup:", err)
	}
}

// A guard is asked in each transaction that writes, and what it refuses is not there.
func TestGuard(t *testing.T) {
	t.Parallel()
	fenced := errors.New("fenced off")
	var refuse, asked atomic.Int64
	o := checkpoint.Options{Database: fleetbox.Database(t), Blobs: &blob.Files{Dir: t.TempDir()},
		Guard: func(_ context.Context, row func(string, ...any) *sql.Row) error {
			asked.Add(1)
			var ops int64
			if err := row("SELECT count(*) FROM op WHERE seq >= $1", 0).Scan(&ops); err != nil {
				return err
			}
			if ops >= refuse.Load() && refuse.Load() > 0 { // it sees what the transaction has written
				return fenced
			}
			return nil
		}}
	d := open(t, "", o)
	id := save(t, d, op(edit("/w/a", []byte("1"), []byte("2"))))
	refuse.Store(2)
	big := randomText(300<<10, 1)
	if _, err := d.Save(ctx, op(edit("/w/a", big, []byte("3")))); !errors.Is(err, fenced) {
		t.Error("a save:", err)
	}
	refuse.Store(1)
	before := asked.Load()
	for i, err := range []error{d.Settle(ctx, id, checkpoint.Committed), d.Pin(ctx, id, ann)} {
		if !errors.Is(err, fenced) {
			t.Error(i, err)
		}
	}
	if _, err := d.GC(ctx, false); !errors.Is(err, fenced) || asked.Load() != before+3 {
		t.Error("retention:", err, asked.Load()-before)
	}
	refuse.Store(0)
	if c, err := d.Get(ctx, id, ann); err != nil || c.Outcome != checkpoint.Presumed || c.Pinned {
		t.Errorf("%+v %v", c, err)
	}
	if s := stats(t, d); s.Checkpoints != 1 {
		t.Errorf("%+v", s)
	}
	if _, err := d.Content(ctx, sum(big)); !errors.Is(err, checkpoint.ErrNoContent) {
		t.Error(err)
	}
	sound(t, d)
}

// TestDatabaseThatIsRefused opens databases that break a promise of the store, such as one with synchronous_commit=off.
func TestDatabaseThatIsRefused(t *testing.T) {
	t.Parallel()
	exec := func(database string, statements ...string) {
		t.Helper()
		db, err := sql.Open("pgx", database)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, s := range statements {
			if _, err := db.Exec(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	files := &blob.Files{Dir: t.TempDir()}
	with := func(database, query string) string { return database + "&" + query }
	for name, c := range map[string]struct {
		change func(database string) (changed string)
		want   any
	}{
		"synchronous_commit of the account's database": {func(at string) string {
			exec(at, "DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET synchronous_commit=off'; END $$")
			return at
		}, new(*checkpoint.SettingError)},
		"synchronous_commit of the account": {func(at string) string {
			u, err := url.Parse(at)
			if err != nil {
				t.Fatal(err)
			}
			role := "hasty_" + u.Path[1:] // it is of the whole server
			exec(at, "CREATE ROLE "+role+" LOGIN SUPERUSER", "ALTER ROLE "+role+" SET synchronous_commit=off")
			return strings.Replace(at, "user=tester", "user="+role, 1)
		}, new(*checkpoint.SettingError)},
		"synchronous_commit of the address": {func(at string) string { return with(at, "synchronous_commit=off") }, new(*checkpoint.SettingError)},
		"no such schema":                    {func(at string) string { return with(at, "search_path=none") }, new(*checkpoint.SettingError)},
		"tables of something else": {func(at string) string {
			exec(at, "CREATE TABLE meta(k TEXT, v BIGINT)")
			return at
		}, new(*checkpoint.VersionError)},
		"a newer format": {func(at string) string {
			inDatabase(t, at, files).Close()
			exec(at, "UPDATE meta SET v=99 WHERE k='format'")
			return at
		}, new(*checkpoint.VersionError)},
		"a password":          {func(at string) string { return strings.Replace(at, "://", "://tester:secret@", 1) }, new(*checkpoint.BadOpError)},
		"another password":    {func(at string) string { return with(at, "password=secret") }, new(*checkpoint.BadOpError)},
		"no address":          {func(string) string { return "host=/tmp user=secret" }, new(*checkpoint.BadOpError)},
		"nobody listens":      {func(string) string { return "postgres:///x?host=/nowhere&user=tester" }, new(*checkpoint.UnreachableError)},
		"nobody listens, TCP": {func(string) string { return "postgres://127.0.0.1:1/x?user=tester" }, new(*checkpoint.UnreachableError)},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := checkpoint.Open("", checkpoint.Options{Database: c.change(fleetbox.OwnDatabase(t)), Blobs: files})
			if err == nil {
				d.Close()
			}
			if !errors.As(err, c.want) {
				t.Errorf("%v, not a %T", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Error("it tells the password:", err)
			}
		})
	}
	if _, err := checkpoint.Open("", checkpoint.Options{Database: fleetbox.OwnDatabase(t)}); !errors.As(err, new(*checkpoint.BadOpError)) {
		t.Error("without contents of its own:", err)
	}
}

// inDatabase opens the store in the database.
func inDatabase(t *testing.T, database string, blobs blob.Store) *checkpoint.DB {
	t.Helper()
	d, err := checkpoint.Open("", checkpoint.Options{Database: database, Blobs: blobs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// Two schemas of one database are two stores. Who waits for another too long is told so, and goes on after that.
func TestSchemasAndLocks(t *testing.T) {
	t.Parallel()
	database := fleetbox.OwnDatabase(t)
	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	files := &blob.Files{Dir: t.TempDir()}
	var stores []*checkpoint.DB
	for _, schema := range []string{"one", "two"} {
		if _, err := db.Exec("CREATE SCHEMA " + schema); err != nil {
			t.Fatal(err)
		}
		stores = append(stores, inDatabase(t, database+"&lock_timeout=100&search_path="+schema, files))
	}
	id := save(t, stores[0], op(edit("/w/a", []byte("1"), []byte("2"))))
	if _, err := stores[1].Get(ctx, id, ann); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Error("the other schema:", err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("SET search_path=one; BEGIN; SELECT pg_advisory_xact_lock(7411, hashtext(current_schema()::text)), pg_advisory_lock(7412, hashtext(current_schema()::text))"); err != nil {
		t.Fatal(err)
	}
	next := op(edit("/w/a", []byte("2"), []byte("3")))
	if _, err := stores[0].Save(ctx, next); !errors.Is(err, checkpoint.ErrBusy) {
		t.Error("a save:", err)
	}
	if _, err := stores[0].GC(ctx, false); !errors.Is(err, checkpoint.ErrBusy) {
		t.Error("retention:", err)
	}
	if err := stores[0].Settle(ctx, id, checkpoint.Committed); err != nil {
		t.Error("what is made waits for nobody:", err)
	}
	save(t, stores[1], next)
	if _, err := db.Exec("ROLLBACK; SELECT pg_advisory_unlock_all()"); err != nil {
		t.Fatal(err)
	}
	save(t, stores[0], next)
	if _, err := stores[0].GC(ctx, false); err != nil {
		t.Error(err)
	}
	var long *checkpoint.BadOpError
	path := "/" + string(randomText(5000, 1))
	path = strings.NewReplacer("\x00", "x", "/", "y", "\n", "z").Replace(path[1:])
	if _, err := stores[0].Save(ctx, op(edit("/w/"+path, []byte("1"), nil))); !errors.As(err, &long) {
		t.Error("a path that no index takes:", err)
	}
	sound(t, stores[0])
}

// A server that was away is there again for the next call, and a call while it is away ends soon.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	database, wire := fleetbox.Wired(t, fleetbox.Database(t))
	d := inDatabase(t, database, &blob.Files{Dir: t.TempDir()})
	last := []byte("0")
	for i := range 3 {
		next := []byte(fmt.Sprint(i + 1))
		id := save(t, d, op(edit("/w/a", last, next)))
		wire.Cut()
		_, err1 := d.Save(ctx, op(edit("/w/a", next, []byte("x"))))
		_, err2 := d.Get(ctx, id, ann)
		_, err3 := d.Content(ctx, sum(next))
		_, err4 := d.GC(ctx, false)
		_, err5 := d.BeginTurn(ctx, ann, fmt.Sprint(i))
		for n, err := range []error{err1, err2, err3, err4, err5} {
			if !errors.As(err, new(*checkpoint.UnreachableError)) {
				t.Errorf("call %d while it is away: %v", n, err)
			}
		}
		wire.Mend()
		if c, err := d.Get(ctx, id, ann); err != nil || c.ID != id {
			t.Error("after that:", err)
		}
		last = next
	}
	sound(t, d)
}

// fleetVar has a fleet, for the processes of a test.
const fleetVar = "MOLTISFS_CHECKPOINT_TEST_FLEET"

// fleets are the databases and contents, with a space between them, that tests below TestInPostgres have instead of a directory, by that.
var fleets sync.Map

func inPostgres(t testing.TB) bool { return strings.HasPrefix(t.Name(), "TestInPostgres/") }

// fleetOf gives the fleet that has the store which would be in dir, "" for none.
func fleetOf(t testing.TB, dir string) string {
	t.Helper()
	if !inPostgres(t) {
		return ""
	}
	f, ok := fleets.Load(dir)
	if !ok {
		f, _ = fleets.LoadOrStore(dir, fleetbox.Database(t)+" "+fleetbox.Contents(t, nil))
	}
	return f.(string)
}

// openAt opens the store of a fleet, or that in dir if there is none.
func openAt(dir, fleet string, o checkpoint.Options) (*checkpoint.DB, error) {
	if at := strings.Fields(fleet); len(at) == 2 {
		s, err := blob.OpenS3(at[1])
		if err != nil {
			return nil, err
		}
		o.Database, o.Blobs = at[0], s
	}
	return checkpoint.Open(dir, o)
}

// A read ends with its caller, whatever it waits for, and says so. Its connection is of no more use, or as good as before.
func TestReadEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	at := fleetbox.Database(t)
	database, wire := fleetbox.Wired(t, at+"&connect_timeout=600")
	d := inDatabase(t, database, &blob.Files{Dir: t.TempDir()})
	body := []byte("1")
	id := save(t, d, op(edit("/w/a", nil, body)))
	reads := map[string]func(context.Context) error{
		"Get":     func(ctx context.Context) error { _, err := d.Get(ctx, id, ann); return err },
		"Open":    func(ctx context.Context) error { _, err := d.Open(ctx); return err },
		"Content": func(ctx context.Context) error { _, err := d.Content(ctx, sum(body)); return err },
		"List": func(ctx context.Context) error {
			_, err := d.List(ctx, checkpoint.Filter{AllSessions: true})
			return err
		},
	}
	db, err := sql.Open("pgx", at)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	waiting := func() (n int) {
		err := db.QueryRow("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation IN ('op'::regclass, 'open_op'::regclass, 'content'::regclass)").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	ends := func(name string, waits func()) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var over atomic.Pointer[error]
		go func() { err := reads[name](ctx); over.Store(&err) }()
		waits()
		cancel()
		testdir.Until(t, name+" ends", func() bool { return over.Load() != nil })
		if err := *over.Load(); !errors.Is(err, context.Canceled) || errors.As(err, new(*checkpoint.UnreachableError)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name := range reads {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("LOCK TABLE op, open_op, content IN ACCESS EXCLUSIVE MODE"); err != nil {
			t.Fatal(err)
		}
		ends(name, func() { testdir.Until(t, name+" waits", func() bool { return waiting() > 0 }) })
		testdir.Until(t, "the server hears of it", func() bool { return waiting() == 0 })
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err := reads[name](ctx); err != nil {
			t.Errorf("%s after that: %v", name, err)
		}
	}
	wire.Cut()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	mute, err := net.Listen("unix", filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	var held []net.Conn
	for name := range reads {
		ends(name, func() {
			c, err := mute.Accept()
			if err != nil {
				t.Error(err)
			}
			held = append(held, c)
		})
	}
	runtime.KeepAlive(held)
	mute.Close()
	wire.Mend()
	for name, read := range reads {
		if err := read(ctx); err != nil {
			t.Errorf("%s with a server that is back: %v", name, err)
		}
	}
	sound(t, d)
}
