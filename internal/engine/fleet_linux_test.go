package engine_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/fleet"
	"moltisfs/internal/fleetbox"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/outage"
)

var (
	edits   = flag.Int("edits", 40, "of each of the gateways that edit one tree at once")
	crashes = flag.Int("crashes", 2, "of the server of the database while they do")
)

// A box is one tree with the database and the bucket of a fleet.
type box struct {
	t                  testing.TB
	ws                 string
	database, contents string
	lease              time.Duration
	durable            string
}

func newBox(t testing.TB, lease time.Duration) *box { return newBoxIn(t, fleetbox.Database(t), lease) }

func newBoxIn(t testing.TB, database string, lease time.Duration) *box {
	t.Helper()
	b := &box{t, t.TempDir() + "/ws", database, fleetbox.Contents(t, nil), lease, "remote"}
	must(t, os.Mkdir(b.ws, 0o700))
	return b
}

// A machine is an engine over the tree of a box, as one machine of the fleet has it.
type machine struct {
	*tree
	*fleet.Gateway
	fleet *engine.Fleet
	wire  *fleetbox.Wire
}

func (m *machine) Close() error { return errors.Join(m.tree.Close(), m.fleet.Close()) }

// sql is the database, for a look that no gateway has.
func (b *box) sql() *sql.DB {
	b.t.Helper()
	db, err := sql.Open("pgx", b.database)
	must(b.t, err)
	b.t.Cleanup(func() { db.Close() }) //nolint:errcheck // it was only looked at
	return db
}

// machine adds one. fault is that of guardfs.Options.
func (b *box) machine(name string, fault func(string) *guardfs.Fault) *machine {
	b.t.Helper()
	return b.machineIn(b.t.TempDir(), name, fault)
}

// machineIn is machine with that data directory.
func (b *box) machineIn(data, name string, fault func(string) *guardfs.Fault) *machine {
	b.t.Helper()
	m := &machine{tree: &tree{t: b.t, ws: b.ws, data: data, cfg: config.Default().Tools.FS, fault: fault}}
	m.cfg.RequireApproval, m.cfg.CheckpointBeforeMutation, m.cfg.WorkspaceRoot = false, true, b.ws
	b.start(m, name)
	b.t.Cleanup(func() { m.Close() }) //nolint:errcheck // a test that cares looks itself
	return m
}

func (b *box) start(m *machine, name string) {
	b.t.Helper()
	var err error
	var address string
	address, m.wire = fleetbox.Wired(b.t, b.database)
	m.Gateway, err = fleet.Open(ctx, fleet.Options{Database: address, Name: name, Lease: b.lease})
	must(b.t, err)
	m.cfg.Fleet = config.Fleet{Database: address, Contents: b.contents, Durable: b.durable}
	m.fleet = engine.FleetOf(m.cfg.Fleet, m.Gateway)
	m.Engine, err = engine.OpenOver(engine.Options{Config: m.cfg, Judge: inside(b.ws, ""), DataDir: m.data, Fault: m.fault, Fleet: m.fleet})
	must(b.t, err)
}

// adds is an edit that adds a line to a file.
func (m *machine) adds(name, line string) error { return m.addsToAll(line, name) }

// surely has a machine make a change that may be without a lease for a moment: leases are short here, and the machine busy.
func (m *machine) surely(change func() error) {
	m.t.Helper()
	err := change()
	for end := time.Now().Add(time.Minute); engine.CutOff(err) && time.Now().Before(end); err = change() {
		<-time.After(10 * time.Millisecond)
	}
	must(m.t, err)
}

func (m *machine) surelyAdds(name, line string) {
	m.t.Helper()
	m.surely(func() error { return m.adds(name, line) })
}

// recovers has a machine that was started recover again until done. Its start may have been without a lease for a moment.
func (m *machine) recovers(done func() bool) {
	for end := time.Now().Add(time.Minute); !done() && time.Now().Before(end); <-time.After(10 * time.Millisecond) {
		m.Recover(ctx) //nolint:errcheck // done tells
		m.EndLate()
	}
}

func (m *machine) addsToAll(line string, names ...string) error {
	f := engine.Files{Next: func(ts []*engine.Target) error {
		for _, t := range ts {
			t.After = engine.After{Kind: guardfs.KindFile, Content: append(slices.Clone(t.Before.Content), line+"\n"...)}
		}
		return nil
	}}
	for _, name := range names {
		f.Paths = append(f.Paths, m.ws+"/"+name)
	}
	return errOf(m.call("s").ChangeFiles(ctx, f))
}

// history gives what the fleet knows of the changes of a path, the first one first.
func (b *box) history(m *machine, path string) (changes []checkpoint.Recorded, outcomes []checkpoint.Outcome) {
	b.t.Helper()
	o, err := engine.StoreOptions(m.cfg.Checkpoint, m.fleet)
	must(b.t, err)
	db, err := checkpoint.Open(m.data+"/checkpoints", o)
	must(b.t, err)
	defer db.Close()
	for f := (checkpoint.Filter{Path: path, AllSessions: true, Limit: 1000}); ; {
		page, err := db.List(ctx, f)
		must(b.t, err)
		for _, c := range page.Checkpoints {
			for _, ch := range c.Changes {
				if ch.Path == path {
					changes, outcomes = append(changes, ch), append(outcomes, c.Outcome)
				}
			}
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			break
		}
	}
	slices.Reverse(changes)
	slices.Reverse(outcomes)
	return changes, outcomes
}

// Eight gateways edit one tree at once: each edit that was acknowledged is in the files and in the history, in one order, and nothing else is.
func TestFleetIsOneHistory(t *testing.T) {
	t.Parallel()
	if wrong := raceOf(newBox(t, 0), *edits, nil, nil, 0); wrong != "" {
		t.Error(wrong)
	}
}

// Without the locks of the fleet the same race is lost: gateways take changes of others back that are being made.
func TestFleetWithoutLocks(t *testing.T) {
	t.Parallel()
	for range 5 {
		if wrong := raceOf(newBox(t, 0), 5, (*engine.Engine).Unlocked, nil, 0); wrong != "" {
			line, _, _ := strings.Cut(wrong, "\n")
			t.Log(line)
			return
		}
	}
	t.Error("a race without locks was never lost: the test of the race tests nothing")
}

// The server of the database is killed with all its processes while eight gateways edit one tree, and recovers. They go on by themselves. What was
// acknowledged is there, and what was not is there as the history says.
func TestFleetDatabaseCrashes(t *testing.T) {
	t.Parallel()
	server := fleetbox.Own(t)
	b := newBox(t, short)
	b.database = server.Database(t)
	if wrong := raceOf(b, 3, nil, server, *crashes); wrong != "" {
		t.Error(wrong)
	}
}

// The same crashes of a server that acknowledges what it has not written lose edits that were acknowledged.
func TestFleetHastyDatabaseCrashes(t *testing.T) {
	t.Parallel()
	for range 5 {
		server := fleetbox.Own(t)
		b := newBox(t, short)
		b.database = server.Database(t)
		db := b.sql()
		hasty := func(*engine.Engine) { // no look at the settings of a connection finds it
			for _, do := range []string{`CREATE OR REPLACE FUNCTION hasty() RETURNS trigger LANGUAGE plpgsql AS
				'BEGIN PERFORM set_config(''synchronous_commit'', ''off'', true); RETURN NULL; END'`,
				"CREATE OR REPLACE TRIGGER hasty AFTER INSERT OR UPDATE ON op EXECUTE FUNCTION hasty()",
				"CREATE OR REPLACE TRIGGER hasty AFTER INSERT OR UPDATE ON open_op EXECUTE FUNCTION hasty()",
				"ALTER SYSTEM SET wal_writer_delay = '10s'", "SELECT pg_reload_conf()"} {
				_, err := db.Exec(do)
				must(t, err)
			}
		}
		if wrong := raceOf(b, 3, hasty, server, 1); wrong != "" {
			line, _, _ := strings.Cut(wrong, "\n")
			t.Log(line)
			return
		}
	}
	t.Error("nothing was ever lost: the test of the crashes tests nothing")
}

// raceOf has eight gateways edit one tree, each edits times, and says what was lost or wrong after that; "" for nothing. spoil, if it is not nil,
// breaks the engine of each. If server is not nil it crashes so many times as crashes says, and the edits go on until the last crash.
func raceOf(b *box, edits int, spoil func(*engine.Engine), server *fleetbox.Server, crashes int) (wrong string) {
	t := b.t
	t.Helper()
	files := []string{"a", "b", "c"}
	first := b.machine("m0 1", nil)
	for _, f := range files {
		first.write(f, "")
	}
	machines := []*machine{first}
	for i := range 7 {
		machines = append(machines, b.machine(fmt.Sprintf("m%d 1", i+1), nil))
	}
	for _, m := range machines {
		if spoil != nil {
			spoil(m.Engine)
		}
	}
	var mu sync.Mutex
	acknowledged, unknown, refused := map[string][]string{}, map[string]bool{}, map[string]int{}
	var made atomic.Int64
	var goOn atomic.Bool
	goOn.Store(server != nil)
	var wg sync.WaitGroup
	start := time.Now()
	for i, m := range machines {
		wg.Go(func() {
			for k, left := 0, edits; left > 0 || goOn.Load(); k++ {
				line, some := fmt.Sprintf("%d/%d", i, k), []string{files[rand.N(len(files))]}
				if other := files[rand.N(len(files))]; other != some[0] { // a change of two steps
					some = append(some, other)
				}
				err := m.addsToAll(line, some...)
				r := engine.Reason(err)
				mu.Lock()
				switch {
				case err == nil:
					for _, f := range some {
						acknowledged[f] = append(acknowledged[f], line)
					}
					made.Add(1)
					left--
				case r != nil && (r.Code == engine.CodeConflict || server != nil && (engine.CutOff(err) || r.Cause == engine.HalfMade)):
					refused[r.Cause.Name]++
					unknown[line] = r.Cause == engine.HalfMade
				default:
					wrong += fmt.Sprintf("%s: %v\n", line, err)
					left = 0
				}
				mu.Unlock()
				if spoil != nil && server == nil && k > 2*edits {
					left = 0
				}
				if engine.CutOff(err) {
					<-time.After(10 * time.Millisecond)
				}
			}
		})
	}
	if server != nil {
		more := func(n int64) {
			end := time.Now().Add(time.Minute)
			for n += made.Load(); made.Load() < n; <-time.After(time.Millisecond) {
				if time.Now().After(end) {
					t.Error("the gateways do not go on")
					return
				}
			}
		}
		for range crashes {
			more(rand.Int64N(40))
			must(t, server.Crash())
			must(t, server.Start())
			more(8)
		}
		goOn.Store(false)
	}
	wg.Wait()
	t.Logf("%d edits in %v, %d refused: %v", made.Load(), time.Since(start), len(unknown), refused)
	if server != nil {
		for _, f := range files { // what is half-made of a file is ended by the next change of it
			first.surelyAdds(f, "last")
			acknowledged[f] = append(acknowledged[f], "last")
		}
		var open int // what was made, and not settled, is ended by the next start
		db := b.sql()
		b.machine("m8 1", nil).recovers(func() bool {
			must(t, db.QueryRow("SELECT count(*) FROM open_op").Scan(&open))
			return open == 0
		})
		if open > 0 {
			wrong += fmt.Sprintf("%d changes have come to no end\n", open)
		}
	}
	for _, f := range files {
		content, err := os.ReadFile(b.ws + "/" + f)
		must(t, err)
		lines := strings.Fields(string(content))
		got := slices.DeleteFunc(slices.Sorted(slices.Values(lines)), func(line string) bool { return unknown[line] })
		if want := slices.Sorted(slices.Values(acknowledged[f])); !slices.Equal(got, want) {
			wrong += fmt.Sprintf("%s has %d lines, and %d edits of it were acknowledged\n", f, len(got), len(want))
		}
		changes, outcomes := b.history(first, b.ws+"/"+f)
		n := 0 // the lines that the history has made
		for i, ch := range changes {
			before, after := strings.Join(lines[:min(n, len(lines))], "\n"), strings.Join(lines[:min(n+1, len(lines))], "\n")+"\n"
			if n > 0 {
				before += "\n"
			}
			if outcomes[i] == checkpoint.Aborted {
				continue
			}
			if n++; outcomes[i] != checkpoint.Committed || ch.Before.Hash != engine.HashOf([]byte(before)) || ch.After.Hash != engine.HashOf([]byte(after)) {
				wrong += fmt.Sprintf("%s: change %d of the history, %s, is not of line %d\n", f, i, outcomes[i], n)
			}
		}
		if n != len(lines) {
			wrong += fmt.Sprintf("%s has %d lines, and the history has made %d\n", f, len(lines), n)
		}
	}
	if looks := first.looks(); temporaries.MatchString(looks) {
		wrong += "temporary names are left:\n" + looks
	}
	return wrong
}

// stopAt stands still before the n-th call of a change that has its locks, until goOn is closed: a system call, or with dead also a message to the
// database. With dead the calls after that come to nothing.
type stopAt struct {
	n               int64
	dead            bool
	of              atomic.Pointer[fleet.Gateway]
	count, messages atomic.Int64 // that were met; without dead messages are not among the first
	stands, goOn    chan struct{}
}

// begun says that the change has its locks.
func (s *stopAt) begun() bool {
	at := s.of.Load()
	return at != nil && (at.Health().Held > 0 || s.n > 0 && s.count.Load() >= s.n)
}

func (s *stopAt) fault(string) *guardfs.Fault {
	if !s.begun() {
		return nil
	}
	k := s.count.Add(1)
	if k == s.n {
		close(s.stands)
	}
	if s.n > 0 && k >= s.n {
		<-s.goOn
		if s.dead {
			return &guardfs.Fault{Err: syscall.EIO}
		}
	}
	return nil
}

// message comes before each message. A heartbeat is among them: whoever stands still there and is not dead goes on with the change.
func (s *stopAt) message() {
	switch {
	case s.dead:
		s.fault("")
	case s.begun():
		s.messages.Add(1)
	}
}

// deaths are changes in which a gateway dies, with what is there before.
var deaths = map[string]struct {
	lay    []string
	before act // what was done before; nil: nothing
	run    act
}{
	"one file":                    {[]string{"f"}, nil, writes("new\n", "f")},
	"a new file":                  {[]string{"f"}, nil, writes("new\n", "x/g")},
	"files, new and old":          {[]string{"f", "e", "keep/k"}, nil, writes("new\n", "f", "e", "keep/k", "x/y/g")},
	"a file moves":                {[]string{"f", "e"}, nil, moves("e", "g")},
	"a tree moves":                {[]string{"f", "d/b/c", "d/a"}, nil, moves("d", "x/y/d")},
	"a file goes":                 {[]string{"f", "e"}, nil, deletes("e")},
	"a tree goes":                 {[]string{"f", "d/b/c", "d/a"}, nil, deletes("d")},
	"a tree comes back":           {[]string{"f", "d/b/c", "d/a"}, deletes("d"), undoes},
	"a file moves over another":   {[]string{"f", "e"}, nil, moves("f", "e")},
	"a change is taken back":      {[]string{"f"}, nil, undoes},
	"files are taken back":        {[]string{"f", "e"}, writes("new\n", "f", "e", "x/y/g"), undoes},
	"a line is added to one file": {[]string{"f"}, nil, appends("f", "more\n")},
}

// A gateway is killed before calls of a change, messages to the database included, or stopped and goes on later. Another one finds the tree as before
// or as it should become, and makes it so; it goes on working there, and nothing that the first one does afterwards changes that. When that one's
// machine starts again, nothing is left of it. In a short test every other change is not stopped, only killed, others with each commit.
func TestFleetTakesOver(t *testing.T) {
	for i, name := range slices.Sorted(maps.Keys(deaths)) {
		ways := []bool{true}
		if *every > 0 || uint64(i)%2 == commit()%2 {
			ways = append(ways, false)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			takeOvers(t, name, nil, ways...)
		})
	}
}

// The same where the first one stands still, and meanwhile the server of the database crashes and comes back without its leases and locks. In a
// short test it is one of the changes, another one with each commit.
func TestFleetTakesOverAfterACrash(t *testing.T) {
	t.Parallel()
	server := fleetbox.Own(t)
	for i, name := range slices.Sorted(maps.Keys(deaths)) {
		if *every > 0 || uint64(i) == commit()%uint64(len(deaths)) {
			t.Run(name, func(t *testing.T) { takeOvers(t, name, server, false) })
		}
	}
}

// takeOvers has a gateway stop before calls of a change in each of these ways.
func takeOvers(t *testing.T, name string, crashes *fleetbox.Server, ways ...bool) {
	s := &stopAt{}
	done, _ := takeOver(t, name, crashes, s)
	ends := map[string]int{}
	for _, dead := range ways {
		total := s.count.Load()
		if dead {
			total += s.messages.Load()
		}
		stride := cmp.Or(*every, max(1, total/(killRounds/2)))
		for n := first(t, stride); n <= total; n += stride {
			t.Run("", func(t *testing.T) {
				s := &stopAt{n: n, dead: dead, stands: make(chan struct{}), goOn: make(chan struct{})}
				_, end := takeOver(t, name, crashes, s, done)
				ends[end]++
			})
		}
		t.Logf("of %d calls, before each %d., dead %t: %v", total, stride, dead, ends)
	}
	if ends["as before"] == 0 {
		t.Error("nothing was ever taken back: the test tests nothing")
	}
}

// takeOver has a gateway stop in a change, and another one take its place. want is what the tree may look like then, besides as before.
func takeOver(t *testing.T, name string, crashes *fleetbox.Server, s *stopAt, want ...string) (looks, end string) {
	t.Helper()
	b := newBox(t, short)
	if crashes != nil {
		b.database = crashes.Database(t)
	}
	a := b.machine("a 1", s.fault)
	a.wire.Before(s.message)
	d := deaths[name]
	for _, name := range d.lay {
		a.surely(func() error { return a.does(writes(name+"\n", name)) })
	}
	if d.before != nil {
		a.surely(func() error { return a.does(d.before) })
	}
	// What the journal of the stopped one has stays until its machine starts again.
	clean := func(looks string) string { return temporaries.ReplaceAllString(looks, "") }
	old := clean(a.looks())
	s.of.Store(a.Gateway)
	if s.n == 0 {
		a.surely(func() error { return a.does(d.run) })
		return clean(a.looks()), ""
	}
	made := make(chan error, 1)
	go func() { made <- a.does(d.run) }()
	select {
	case <-s.stands:
	case err := <-made: // others come in any order
		if !engine.CutOff(err) {
			must(t, err)
		}
		return "", "over"
	}
	if crashes != nil {
		must(t, crashes.Crash())
		must(t, crashes.Start())
	} else {
		a.wire.Cut()
	}
	other := b.machine("b 1", nil) // it starts while the first one's lease goes on
	for !s.dead && a.Fenced() == nil && a.Health().Begun == 1 {
		<-time.After(time.Millisecond)
	}
	other.surelyAdds("theirs", "begins")
	_, err := b.sql().Exec("UPDATE gateway SET lease = clock_timestamp() WHERE name = 'a 1'") // it would be over soon
	must(t, err)
	third := b.machine("c 1", nil)
	ended := func() string { return theirs.ReplaceAllString(clean(third.looks()), "") }
	third.recovers(func() bool { now := ended(); return now == old || slices.Contains(want, now) })
	switch now := ended(); {
	case now == old:
		end = "as before"
	case slices.Contains(want, now):
		end = "as it should become"
	default:
		t.Fatalf("stopped before call %d: another gateway has\n%s\nit was\n%s\nand should have become\n%s", s.n, now, old, want)
	}
	other.surelyAdds("f", "goes on")
	now := clean(third.looks())
	a.wire.Mend()
	for !s.dead && a.Fenced() != nil { // it goes on under another lease
		<-time.After(time.Millisecond)
	}
	close(s.goOn)
	err = <-made
	r := engine.Reason(err)
	switch {
	case err == nil && end == "as it should become", s.dead && err != nil:
	case r != nil && (r.Cause == engine.HalfMade || end == "as before" && (engine.CutOff(err) || r.Code == engine.CodeConflict)):
	default:
		t.Errorf("stopped before call %d: the tree is %s, and the call ended with %v", s.n, end, err)
	}
	if a.Fenced() != nil || a.Health().Begun > 2 { // it has waited for its lease as long as it does, and tries again with its next call
		a.recovers(func() bool { return clean(third.looks()) == now })
	}
	if is := clean(third.looks()); is != now {
		t.Fatalf("stopped before call %d, the first gateway went on and made\n%s\nof\n%s", s.n, is, now)
	}
	a.Close() //nolint:errcheck // it can't say anything to anybody
	a.fault = nil
	b.start(a, "a 2")
	if is := a.looks(); is != now && clean(is) == is {
		t.Fatalf("stopped before call %d, its next start made\n%s\nof\n%s", s.n, is, now)
	}
	a.recovers(func() bool { is := a.looks(); return clean(is) == is })
	if is := a.looks(); clean(is) != is {
		t.Errorf("stopped before call %d, after its next start a temporary name is there:\n%s", s.n, is)
	}
	if _, outcomes := b.history(third, b.ws+"/f"); slices.Contains(outcomes, checkpoint.Foreign) {
		t.Errorf("stopped before call %d: the history says that it could not be taken back: %q", s.n, outcomes)
	}
	return now, end
}

var temporaries, theirs = regexp.MustCompile(`(?m)^\S*\.moltis-\S* .*\n\n?`), regexp.MustCompile(`(?m)^/theirs .*\n\n`)

const short = 1200 * time.Millisecond

// A change that was cut off on a machine that sees other identities on the volume is left to that machine, which is its data directory: calls on
// its paths are refused here, others are not. Where that machine is gone a person gives the change up, and nothing is lost.
func TestFleetOtherView(t *testing.T) {
	row := func(string) bool { return true }
	has := func(name, content string) func(ws string) bool {
		return func(ws string) bool {
			is, err := os.ReadFile(ws + "/" + name)
			return content == "" && err != nil || content != "" && string(is) == content
		}
	}
	staged := func(ws string) bool {
		names, err := filepath.Glob(ws + "/.moltis-*.tmp")
		return err == nil && len(names) > 0
	}
	for name, c := range map[string]struct {
		path string
		run  act
		dies func(ws string) bool // as soon as there is a row
		back bool                 // the machine
		away bool                 // the trash, while the change is given up
	}{
		"move, back":       {"f", moves("f", "e"), row, true, false},
		"untrash, back":    {"t", untrashes, row, true, false},
		"move":             {"f", moves("f", "e"), row, false, false},
		"move, half-way":   {"f", moves("f", "x"), has("f", ""), false, false},
		"untrash, made":    {"t", untrashes, has("t", "t\n"), false, false},
		"delete, made":     {"f", deletes("f"), has("f", ""), false, false},
		"delete, unseen":   {"f", deletes("f"), has("f", ""), false, true},
		"untrash, unseen":  {"t", untrashes, row, false, true},
		"write, staged":    {"f", writes("new\n", "f"), staged, false, false},
		"writes, half-way": {"f", writes("new\n", "f", "e"), has("f", "new\n"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			otherView(t, c.path, c.run, c.dies, c.back, c.away)
		})
	}
}

func otherView(t *testing.T, path string, run act, dies func(ws string) bool, back, away bool) {
	b := newBox(t, 0) // the leases that end are ended in the database
	db := b.sql()
	var on atomic.Bool
	stands, goOn := make(chan struct{}), make(chan struct{})
	data := t.TempDir()
	must(t, os.WriteFile(data+"/machine", []byte("elsewhere-1\n"), 0o600))
	a := b.machineIn(data, "a 1", func(string) *guardfs.Fault {
		var open int
		if !on.Load() {
			return nil
		}
		if err := db.QueryRow("SELECT count(*) FROM open_op").Scan(&open); err != nil {
			t.Error(err)
		}
		if open == 0 {
			return nil
		}
		if !dies(b.ws) {
			return nil
		}
		if on.CompareAndSwap(true, false) {
			close(stands)
		}
		<-goOn
		return &guardfs.Fault{Err: syscall.EIO}
	})
	for _, name := range []string{"f", "e"} {
		a.put("s", name, name+"\n")
	}
	a.put("s", "t", "t\n")
	must(t, a.does(deletes("t")))
	on.Store(true)
	over := make(chan error, 1)
	go func() { over <- a.does(run) }()
	select {
	case <-stands:
	case err := <-over:
		t.Fatal("it was over before", err)
	}
	defer func() { close(goOn); <-over }()
	a.wire.Cut()
	if n, err := db.Exec(`UPDATE open_op SET steps = convert_to(replace(convert_from(steps, 'UTF8'), '"In":"', '"In":"7'), 'UTF8')`); err != nil || n == nil {
		t.Fatal(err)
	}
	if !back { // all identities are other ones here
		for _, q := range []string{`UPDATE open_op SET steps = convert_to(replace(convert_from(steps, 'UTF8'), '"ID":"', '"ID":"7'), 'UTF8')`, "UPDATE trash SET ident = '7' || ident"} {
			if _, err := db.Exec(q); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := db.Exec("UPDATE gateway SET lease = clock_timestamp() WHERE name = 'a 1'"); err != nil {
		t.Fatal(err)
	}
	other := b.machine("b 1", nil)
	now := other.looks()
	var facts engine.ViewFacts
	for range 2 {
		r := engine.Reason(other.adds(path, "more"))
		if r == nil || r.Cause != engine.OtherView || r.Path == "" {
			t.Fatalf("%+v", r)
		}
		if facts = r.Facts.(engine.ViewFacts); facts.Machine != "elsewhere-1" {
			t.Fatalf("%+v", facts)
		}
	}
	restore := func(byUser bool, how string) error {
		c := other.call("s")
		c.ByUser = byUser
		_, err := c.Restore(ctx, checkpoint.Restore{ID: facts.ID}, engine.RestoreOptions{OnConflict: how})
		return err
	}
	for _, err := range []error{restore(false, engine.OnConflictSkip), restore(true, engine.OnConflictRefuse)} {
		if !engine.OtherView.In(err) {
			t.Fatal(err)
		}
	}
	if is := other.looks(); is != now {
		t.Errorf("%s\nof\n%s", is, now)
	}
	must(t, other.adds("g", "more"))
	if !back {
		if _, err := os.Lstat(b.ws + "/f"); err != nil { // somebody else has its place by now
			must(t, os.WriteFile(b.ws+"/f", []byte("theirs\n"), 0o600))
		}
		trash, err := filepath.Glob(b.ws + "/.moltis-trash*")
		if must(t, err); away {
			must(t, os.Rename(trash[0], b.ws+"-trash")) // as where its volume is not there
		}
		must(t, restore(true, engine.OnConflictSkip))
		if away {
			must(t, os.Rename(b.ws+"-trash", trash[0]))
		}
		if err := other.adds(path, "more"); engine.OtherView.In(err) {
			t.Fatal(err)
		}
		var outcome int
		if err := db.QueryRow("SELECT outcome FROM op WHERE id = $1", facts.ID).Scan(&outcome); err != nil || outcome != 3 {
			t.Error(outcome, err)
		}
		there := map[string]string{}
		must(t, filepath.WalkDir(b.ws, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				content, rerr := os.ReadFile(name)
				there[strings.TrimSuffix(string(content), "more\n")], err = name, rerr
			}
			return err
		}))
		for _, content := range []string{"f\n", "e\n", "t\n"} {
			if there[content] == "" {
				t.Errorf("%q is lost: %q", content, there)
			}
			rest := strings.TrimPrefix(there[content], b.ws+"/")
			if in, file, ok := strings.Cut(rest, "/files/"); ok { // it is in the trash, with its row
				var rows int
				if err := db.QueryRow("SELECT count(*) FROM trash WHERE convert_from(parked, 'UTF8') LIKE '%' || $1", in+"/files/"+file).Scan(&rows); err != nil || rows != 1 {
					t.Errorf("%d rows of %s: %v", rows, rest, err)
				}
			}
		}
		if is := other.looks(); regexp.MustCompile(`\.moltis-\S+\.(tmp|old|new) `).MatchString(is) {
			t.Errorf("a temporary name is there:\n%s", is)
		}
		return
	}
	again := t.TempDir() // the first process stands still, and has the locks of its data directory
	must(t, os.WriteFile(again+"/machine", []byte("elsewhere-1\n"), 0o600))
	same := &machine{tree: &tree{t: t, ws: b.ws, data: again, cfg: a.cfg}} // another process on its machine, whose host has another name by now
	b.start(same, "a 2")
	defer same.Close()
	must(t, other.adds("f", "more"))
	same.has("f", "f\nmore\n")
	same.has("e", "e\n")
	must(t, other.does(untrashes))
	same.has("t", "t\n")
}

// The connection breaks as a change is put on record as made, and nobody knows whether it was. The next change ends it by what the database says.
func TestFleetMadeUnknown(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{true, false} {
		b := newBox(t, 0)
		db := b.sql()
		var a *machine
		var on atomic.Bool
		a = b.machine("a 1", func(string) *guardfs.Fault {
			f, _ := os.ReadFile(b.ws + "/f")
			e, _ := os.ReadFile(b.ws + "/e")
			if string(f)+string(e) != "new\nnew\n" || !on.CompareAndSwap(true, false) {
				return nil
			}
			a.wire.Cut()
			if _, err := db.Exec("UPDATE open_op SET made=$1::boolean::int", made); err != nil {
				t.Error(err)
			}
			return nil
		})
		for _, name := range []string{"f", "e"} {
			a.put("s", name, "old\n")
		}
		on.Store(true)
		if err := a.does(writes("new\n", "f", "e")); !engine.HalfMade.In(err) || on.Load() {
			t.Fatal(err)
		}
		a.wire.Mend()
		for a.adds("g", "more") != nil {
			<-time.After(time.Millisecond)
		}
		want, outcome := "old\n", checkpoint.Aborted
		if made {
			want, outcome = "new\n", checkpoint.Committed
		}
		a.has("f", want)
		a.has("e", want)
		if _, outcomes := b.history(a, b.ws+"/e"); outcomes[len(outcomes)-1] != outcome {
			t.Error(made, outcomes)
		}
	}
}

// The connection breaks as a machine takes the change of a dead one back: it tries again with the next call, and never goes on over half of it.
func TestFleetRecoveryCutOff(t *testing.T) {
	t.Parallel()
	b := newBox(t, 0) // the lease that ends is ended in the database
	s := &stopAt{dead: true, stands: make(chan struct{}), goOn: make(chan struct{})}
	a := b.machine("a 1", func(op string) *guardfs.Fault { // it dies between its two steps
		if f, _ := os.ReadFile(b.ws + "/e"); s.n == 0 && string(f) == "new\n" {
			s.n = 1
		}
		if s.n == 0 {
			return nil
		}
		return s.fault(op)
	})
	for _, name := range []string{"e", "f"} {
		a.put("s", name, "old\n")
	}
	s.of.Store(a.Gateway)
	over := make(chan error, 1)
	go func() { over <- a.does(writes("new\n", "e", "f")) }()
	<-s.stands
	defer func() { close(s.goOn); <-over }()
	a.wire.Cut()
	var other *machine
	var on atomic.Bool
	other = b.machine("b 1", func(string) *guardfs.Fault {
		if now, _ := os.ReadFile(b.ws + "/e"); string(now) == "old\n" && on.CompareAndSwap(true, false) { // it is half-way
			other.wire.Cut()
		}
		return nil
	})
	_, err := b.sql().Exec("UPDATE gateway SET lease = clock_timestamp() WHERE name = 'a 1'")
	must(t, err)
	on.Store(true)
	if err := other.adds("e", "more"); !engine.CutOff(err) || on.Load() {
		t.Fatal(err)
	}
	other.wire.Mend()
	for other.adds("e", "more") != nil {
		<-time.After(time.Millisecond)
	}
	other.has("e", "old\nmore\n")
	other.has("f", "old\n")
	if _, outcomes := b.history(other, b.ws+"/e"); !slices.Contains(outcomes, checkpoint.Aborted) {
		t.Error(outcomes)
	}
}

// A session goes from one machine to another and comes back to the first, with a store on each: what was made elsewhere is here.
func TestFleetLocalComesBack(t *testing.T) {
	defer engine.Quiet(0)()
	b := newBox(t, 0)
	b.durable = "local"
	a, other := b.machine("a 1", nil), b.machine("b 1", nil)
	for i, m := range []*machine{a, other, a, other, a} {
		m.call("s").Fetch(ctx)
		must(t, m.adds("f", "more"))
		o, err := engine.StoreOptions(m.cfg.Checkpoint, m.fleet)
		must(t, err)
		db, err := checkpoint.Open(m.data+"/checkpoints", o)
		must(t, err)
		for n := -1; n != 0; <-time.After(time.Millisecond) { // all is sent
			n, _, err = db.Behind(ctx)
			must(t, err)
		}
		must(t, db.Close())
		if changes, _ := b.history(m, b.ws+"/f"); len(changes) != i+1 {
			t.Fatalf("%d changes are here of %d", len(changes), i+1)
		}
	}
}

// What one machine has deleted another one brings back, also after the data directory of the first is gone.
func TestFleetTrash(t *testing.T) {
	t.Parallel()
	b := newBox(t, 0)
	a, other := b.machine("a 1", nil), b.machine("b 1", nil)
	for _, name := range []string{"f", "d/e"} {
		a.put("s", name, name+"\n")
	}
	old := a.looks()
	for _, name := range []string{"f", "d"} {
		must(t, a.does(deletes(name)))
	}
	must(t, a.Close())
	must(t, os.RemoveAll(a.data))
	page, err := other.call("s").Trash(ctx, checkpoint.TrashFilter{})
	must(t, err)
	for _, entry := range page.Entries {
		must(t, errOf(other.call("s").Untrash(ctx, entry.ID, false)))
	}
	if other.same("restored by another machine", old); len(page.Entries) != 2 {
		t.Errorf("%d entries in the trash", len(page.Entries))
	}
}

// Where the database can't be reached an engine starts, reads, and refuses changes with the reason. They go on by themselves.
func TestFleetUnreachable(t *testing.T) {
	t.Parallel()
	b := newBox(t, short)
	a := b.machine("a 1", nil)
	a.write("f", "f\n")
	refused := func(when string, causes ...engine.Cause) {
		t.Helper()
		err := a.adds("f", "more")
		r := engine.Reason(err)
		if r == nil || !slices.Contains(causes, r.Cause) {
			t.Errorf("%s: %v", when, err)
		}
		must(t, a.call("s").Read(ctx, a.ws+"/f", func(context.Context, *engine.Source) (*engine.ReadRecord, error) { return nil, nil }))
	}
	a.wire.Cut()
	refused("cut off", engine.Fenced, engine.FleetGone) // the lease may be over before it is known why
	for !outage.Is(a.Fenced()) {
		<-time.After(time.Millisecond)
	}
	refused("fenced", engine.FleetGone)
	if _, err := a.call("s").Trash(ctx, checkpoint.TrashFilter{}); !errors.Is(err, fleet.ErrFenced) {
		t.Error("a call has asked the database, which may never answer: ", err)
	}
	a.Close() //nolint:errcheck // it can't give its lease back
	var err error
	a.Gateway, err = fleet.Open(ctx, fleet.Options{Database: a.cfg.Fleet.Database, Lease: short})
	must(t, err)
	a.fleet = engine.FleetOf(a.cfg.Fleet, a.Gateway)
	a.Engine, err = engine.OpenOver(engine.Options{Config: a.cfg, Judge: inside(b.ws, ""), DataDir: a.data, Fleet: a.fleet})
	must(t, err)
	refused("started without it", engine.FleetGone)
	a.wire.Mend()
	for a.Fenced() != nil {
		<-time.After(time.Millisecond)
	}
	a.surelyAdds("f", "more")
	a.has("f", "f\nmore\n")
}
