package fleet

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moltisfs/internal/approval"
	"moltisfs/internal/approval/queue"
	"moltisfs/internal/audit"
	"moltisfs/internal/fleetbox"
	"moltisfs/internal/outage"
	"moltisfs/internal/serve"
	"moltisfs/internal/session"
	"moltisfs/internal/state"
)

var (
	yeses = flag.Int("yeses", 20, "how many questions TestYesAcrossGateways has answered; its times are told with -v")
	asker = flag.String("asker", "", "the database in which a process of a test asks")
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func question(i int) approval.Question {
	return approval.Question{ID: "call", Principal: "agent", Session: "s", Tool: "Write", Paths: []string{"/w/a"}, Diff: "+one\n", Digest: strconv.Itoa(i)}
}

// yes waits for the question with this digest and approves it. It gives the time at which Answer came back.
func yes(t testing.TB, q *queue.Queue, digest string) time.Time {
	t.Helper()
	for {
		list, err := q.List(false)
		must(t, err)
		for _, e := range list {
			if e.Question.Digest == digest {
				_, err := q.Answer(e.ID, approval.Approved, queue.By{Name: "ann", Unseen: true}, "")
				must(t, err)
				return time.Now()
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// A yes of one gateway lets the call of another go on, in this process and in two.
func TestYesAcrossGateways(t *testing.T) {
	if *asker != "" { // the other process: it asks, and tells when it heard the answer
		q := queue.OpenIn(join(t, Options{Database: *asker}).Files("approvals"))
		for i := range *yeses {
			a, err := q.Ask(t.Context(), question(i))
			fmt.Println("heard", time.Now().UnixNano(), a.Decision, err)
		}
		return
	}
	database := fleetbox.Database(t)
	answerer := queue.OpenIn(join(t, Options{Database: database}).Files("approvals"))
	tell := func(what string, took []time.Duration) {
		slices.Sort(took)
		p50, p99 := took[len(took)/2], took[len(took)*99/100]
		t.Logf("%s, %d times: p50 %v, p99 %v", what, len(took), p50, p99)
		if p50 > 100*time.Millisecond {
			t.Errorf("%s: the half of all answers took more than %v", what, p50)
		}
	}
	var took []time.Duration
	a := queue.OpenIn(join(t, Options{Database: database}).Files("approvals"))
	for i := range *yeses {
		heard := make(chan time.Time, 1)
		go func() {
			got, err := a.Ask(t.Context(), question(i))
			if err != nil || got.Decision != approval.Approved || got.By == "" {
				t.Errorf("%+v, %v", got, err)
			}
			heard <- time.Now()
		}()
		answered := yes(t, answerer, strconv.Itoa(i))
		took = append(took, max(0, (<-heard).Sub(answered)))
	}
	tell("two gateways of one process", took)

	cmd := exec.Command(os.Args[0], "-test.run=^TestYesAcrossGateways$", "-asker="+database, "-yeses="+strconv.Itoa(*yeses))
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	took = nil
	for lines, i := bufio.NewScanner(out), 0; i < *yeses; i++ {
		answered := yes(t, answerer, strconv.Itoa(i))
		must(t, nextLine(lines))
		var at int64
		if _, err := fmt.Sscanf(lines.Text(), "heard %d approved <nil>", &at); err != nil {
			t.Fatal(lines.Text(), err)
		}
		took = append(took, max(0, time.Unix(0, at).Sub(answered)))
	}
	must(t, cmd.Wait())
	tell("two processes", took)
}

func nextLine(lines *bufio.Scanner) error {
	if !lines.Scan() {
		return errors.Join(errors.New("it has ended"), lines.Err())
	}
	return nil
}

// The question of a gateway that is cut off is gone for everybody once its lease is over. Then nobody can approve it, and the gateway itself
// takes it for one that was not answered when it is back.
func TestQuestionOfACutGateway(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	wired, wire := fleetbox.Wired(t, database)
	a, b := join(t, Options{Database: wired, Lease: short}), join(t, Options{Database: database, Lease: short})
	q := queue.OpenIn(b.Files("approvals"))
	heard, waits := make(chan error, 1), make(chan bool)
	go func() {
		asks := queue.OpenIn(a.Files("approvals"))
		asks.Waits = func(queue.Entry) { close(waits) }
		got, err := asks.Ask(t.Context(), question(1))
		if got.Decision != approval.TimedOut {
			t.Error("it has not timed out: ", got)
		}
		heard <- err
	}()
	<-waits // else the answer to the question's own commit may be cut off
	list, err := q.List(false)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	wire.Cut()
	within(t, "it is gone", func() bool {
		e, err := q.Get(list[0].ID)
		must(t, err)
		return e.State == queue.Gone
	})
	_, err = q.Answer(list[0].ID, approval.Approved, queue.By{Name: "ann", Unseen: true}, "")
	if over, ok := errors.AsType[*queue.OverError](err); !ok || over.Entry.State != queue.Gone {
		t.Error("it was answered: ", err)
	}
	wire.Mend()
	if err := <-heard; err != nil {
		t.Error(err)
	}
	if list, err := q.List(false); err != nil || len(list) > 0 {
		t.Error(list, err)
	}
}

// So is that of a process that was killed.
func TestQuestionOfAKilledGateway(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	q := queue.OpenIn(join(t, Options{Database: database, Lease: short}).Files("approvals"))
	if *asker != "" {
		queue.OpenIn(join(t, Options{Database: *asker, Lease: short}).Files("approvals")).Ask(t.Context(), question(1)) //nolint:errcheck // it is killed
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestQuestionOfAKilledGateway$", "-asker="+database)
	must(t, cmd.Start())
	var list []queue.Entry
	within(t, "the question", func() bool {
		var err error
		list, err = q.List(false)
		must(t, err)
		return len(list) == 1
	})
	must(t, cmd.Process.Kill())
	cmd.Wait() //nolint:errcheck // it was killed
	within(t, "it is gone", func() bool {
		list, err := q.List(false)
		must(t, err)
		return len(list) == 0
	})
	if e, err := q.Get(list[0].ID); err != nil || e.State != queue.Gone {
		t.Error(e.State, err)
	}
	// The next question puts that on record, and removes the diff of the first.
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	within(t, "a question is put", func() bool {
		_, err := q.Ask(ctx, question(2))
		return err == nil
	})
}

// Of many who answer through several gateways one alone does, and everybody hears who it was. There is a limit to the questions of a
// principal on all gateways together.
func TestOneAnswerWins(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	var all []*queue.Queue
	for range 3 {
		all = append(all, queue.OpenIn(join(t, Options{Database: database}).Files("approvals")))
	}
	for i := range 5 {
		heard := make(chan approval.Answer, 1)
		go func() {
			a, err := all[0].Ask(t.Context(), question(i))
			if err != nil {
				t.Error(err)
			}
			heard <- a
		}()
		var id string
		within(t, "the question", func() bool {
			list, err := all[1].List(false)
			must(t, err)
			for _, e := range list {
				id = e.ID
			}
			return len(list) == 1
		})
		var answering sync.WaitGroup
		won, told := make(chan string, 12), make(chan string, 12)
		for n := range cap(won) {
			answering.Go(func() {
				by := fmt.Sprint("operator ", n)
				_, err := all[n%3].Answer(id, approval.Decision(n%2), queue.By{Name: by, Unseen: true}, "")
				if over, ok := errors.AsType[*queue.OverError](err); ok {
					told <- strings.Split(over.Entry.By, ",")[0]
				} else if err == nil {
					won <- by
				} else {
					t.Error(err)
				}
			})
		}
		answering.Wait()
		if len(won) != 1 {
			t.Fatalf("%d won", len(won))
		}
		winner := <-won
		for len(told) > 0 {
			if by := <-told; by != winner {
				t.Errorf("%s won, and somebody was told that it was %s", winner, by)
			}
		}
		if a := <-heard; strings.Split(a.By, ",")[0] != winner {
			t.Errorf("%s won, and the asker hears %+v", winner, a)
		}
	}
	within(t, "the questions are removed", func() bool {
		names, err := join(t, Options{Database: database}).Files("approvals").List()
		must(t, err)
		return !slices.ContainsFunc(names, func(n string) bool { return !strings.HasSuffix(n, ".answer") })
	})
}

// A gateway that falls silent in the middle of an Update, or that is cut off, keeps the others waiting for as long as a lease, and what it
// has changed is nothing.
func TestUpdateOfASilentGateway(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	wired, wire := fleetbox.Wired(t, database)
	a, b := join(t, Options{Database: wired, Lease: short}).Files("d"), join(t, Options{Database: database, Lease: short}).Files("d")
	for _, cut := range []bool{false, true} {
		in, out, go_on := make(chan struct{}), make(chan error, 1), make(chan struct{})
		go func() {
			out <- a.Update(context.Background(), "lock", func(f state.Files) error {
				err := f.Replace("a", []byte("half"))
				close(in)
				<-go_on
				return err
			})
		}()
		<-in
		if cut {
			wire.Cut()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*short)
		if err := b.Update(ctx, "lock", func(f state.Files) error { return f.Append("a", []byte("b")) }); err != nil {
			t.Error(err)
		}
		cancel()
		close(go_on)
		if err := <-out; err == nil {
			t.Error("it has changed something after the others went on")
		}
		wire.Mend()
	}
	f, err := b.Open("a")
	must(t, err)
	got := make([]byte, 10)
	if n, _ := f.Read(got); n == 0 || strings.Contains(string(got[:n]), "half") {
		t.Errorf("%q", got[:n])
	}
}

// A token that one gateway revokes no other takes any more, from the next call on; and none where the database can't be reached.
func TestTokens(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	wired, wire := fleetbox.Wired(t, database)
	a, b := serve.TokensIn(join(t, Options{Database: wired}).Files("tokens")), serve.TokensIn(join(t, Options{Database: database}).Files("tokens"))
	now := time.Now()
	if _, err := a.Check("mfs_x", now); err != serve.ErrUnknownToken {
		t.Error("before there is any: ", err)
	}
	for i := range 20 {
		made, secret, err := b.Create(serve.Token{Principal: "ci"})
		must(t, err)
		if got, err := a.Check(secret, now); err != nil || got.ID != made.ID {
			t.Fatal(i, got, err)
		}
		if all, err := b.List(); err != nil || len(all) != 1 || time.Since(all[0].LastUsed) > time.Minute {
			t.Error("its last use: ", all, err)
		}
		if _, err := b.Revoke(made.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Check(secret, now); err != serve.ErrUnknownToken {
			t.Fatal(i, "revoked: ", err)
		}
	}
	_, secret, err := b.Create(serve.Token{Principal: "ci"})
	must(t, err)
	var making sync.WaitGroup
	for n := range 4 {
		making.Go(func() {
			for range 5 {
				if _, _, err := []*serve.TokenStore{a, b}[n%2].Create(serve.Token{Principal: "p"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	making.Wait()
	if all, err := a.List(); err != nil || len(all) != 21 {
		t.Error(len(all), err)
	}
	wire.Cut()
	if got, err := a.Check(secret, now); err == nil || errors.Is(err, serve.ErrUnknownToken) || got.ID != "" {
		t.Error("the database is gone: ", got, err)
	}
	if _, _, err := a.Create(serve.Token{Principal: "p"}); err == nil {
		t.Error("made without a database")
	}
	wire.Mend()
	if _, err := a.Check(secret, now); err != nil {
		t.Error(err)
	}
}

// What a session has read through one gateway it has read for all, and what was purged nobody knows.
func TestReadLogs(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	open := func() *session.ReadLog {
		l := session.OpenIn(join(t, Options{Database: database}).Files("ledger"), t.TempDir())
		t.Cleanup(func() { must(t, l.Close()) })
		return l
	}
	a, b, me := open(), open(), session.Key{Principal: "p", Session: "s"}
	look := func(id, path, want string) {
		t.Helper()
		for _, l := range []*session.ReadLog{a, b} {
			if s, ok, err := l.Look(me, id, path); err != nil || ok != (want != "") || s.Hash != want {
				t.Errorf("%s %s: %+v, %v, %v; want %q", id, path, s, ok, err, want)
			}
		}
	}
	must(t, a.Saw(me, session.Seen{ID: "1:1", Path: "/f", Hash: "h", Whole: true}))
	look("1:1", "/renamed", "h") // by identity
	look("2:1", "/f", "h")       // by path, where the volume has another number
	look("2:1", "/renamed", "")
	must(t, b.Saw(me, session.Seen{ID: "1:2", Path: "/g", Hash: "g", Lines: 9, Ranges: []session.Range{{First: 1, Last: 4}}}))
	must(t, a.Saw(me, session.Seen{ID: "1:2", Path: "/g", Hash: "g", Lines: 9, Ranges: []session.Range{{First: 5, Last: 9}}}))
	if s, _, err := b.Look(me, "1:2", "/g"); err != nil || !s.Whole {
		t.Errorf("what both have shown is all: %+v %v", s, err)
	}
	must(t, b.Forget(me, "/f"))
	look("1:1", "/f", "")
	var wg sync.WaitGroup
	for n, l := range []*session.ReadLog{a, b} {
		for k := range 2 {
			wg.Go(func() {
				for i := range 30 {
					if err := l.Saw(me, session.Seen{ID: fmt.Sprint(n, k, i), Path: fmt.Sprint("/", n, k, i), Hash: "x", Whole: true}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	for n := range 2 {
		for k := range 2 {
			for i := range 30 {
				look(fmt.Sprint(n, k, i), "", "x")
			}
		}
	}
	must(t, session.PurgeHashesIn(join(t, Options{Database: database}).Files("ledger"), []string{"x"}))
	look("000", "/000", "")
	look("1:2", "/g", "g")
	must(t, a.End(me, true))
	look("1:2", "/g", "")
}

// A yes for a session holds on every gateway.
func TestGrants(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	var all [2]approval.Grants
	for i := range all {
		all[i].Files = join(t, Options{Database: database}).Files("grants")
	}
	q := question(1)
	_, err := all[0].Add(q, approval.ThisSession, time.Now())
	must(t, err)
	for i := range all {
		if scope, _ := all[i].Holds(q, time.Now()); scope != approval.ThisSession {
			t.Error(i, scope)
		}
		if scope, _ := all[i].Holds(q, time.Now().Add(approval.GrantFor+time.Minute)); scope != approval.Once {
			t.Error(i, scope)
		}
	}
}

// A log that was rewritten, or cut off, with a chain that is whole, is told by the heads that the machine sent before.
func TestHeads(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	g := join(t, Options{Database: database})
	write := func(dir string, names ...string) {
		l, err := audit.Options{}.Open(dir)
		must(t, err)
		defer l.Close()
		for _, n := range names {
			must(t, errors.Join(l.Append(audit.Record{Phase: "outcome", Tool: n}), l.AppendChange(audit.Record{Phase: "outcome", Tool: n})))
		}
		if filepath.Base(filepath.Dir(dir)) == "true" { // the machine's own
			sender := join(t, Options{Database: database})
			sender.SendHeads("m", l.Heads)
			must(t, sender.Close())
		}
	}
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "true"), 0o700))
	dir := func(name string) string { return filepath.Join(root, name, "audit") }
	write(dir("true"), "Read", "Write", "Bash")
	write(dir("rewritten"), "Read", "Read", "Bash")
	write(dir("cut"), "Read", "Write")
	write(dir("longer"), "Read", "Write", "Edit", "Bash")
	for name, flaws := range map[string]int{"true": 0, "rewritten": 1, "cut": 1, "longer": 1} {
		for chain, verify := range map[string]func(context.Context, string, audit.Known) (audit.Proof, error){
			audit.Calls: audit.Verify, audit.Changes: audit.VerifyChanges} {
			p, err := verify(t.Context(), dir(name), audit.Known{})
			if err != nil || len(p.Flaws) > 0 {
				t.Errorf("%s, %s, alone: %+v, %v", name, chain, p.Flaws, err)
			}
			seen, err := g.Heads(t.Context(), "m", chain)
			must(t, err)
			if len(seen) == 0 {
				t.Fatal("there are no heads")
			}
			if p, err = verify(t.Context(), dir(name), audit.Known{Seen: seen}); err != nil || len(p.Flaws) != flaws || flaws > 0 && p.Flaws[0].Flaw != audit.Not {
				t.Errorf("%s, %s: %+v, %v", name, chain, p.Flaws, err)
			}
		}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := g.Heads(gone, "m", audit.Calls); !errors.Is(err, context.Canceled) || outage.Is(err) {
		t.Error("of a caller that is gone: ", err)
	}
	if seen, err := g.Heads(t.Context(), "another", audit.Calls); err != nil || len(seen) > 0 {
		t.Error(seen, err)
	}
}

// Heads are sent as often as was asked for, where they are new, and at the end.
func TestHeadsAreSent(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	g, other := join(t, Options{Database: database}), join(t, Options{Database: database})
	var n, asked atomic.Int64
	g.sendHeads(10*time.Millisecond, "m", func() ([]audit.Head, error) {
		asked.Add(1)
		return []audit.Head{{Chain: audit.Calls, Seen: audit.Seen{Number: uint64(n.Load()), Hash: strings.Repeat("0", 64)}}}, nil
	})
	rows := func() int {
		seen, err := other.Heads(t.Context(), "m", audit.Calls)
		must(t, err)
		return len(seen)
	}
	within(t, "it asks", func() bool { return asked.Load() > 1 })
	if rows() != 0 {
		t.Error("the head of a log without a record")
	}
	n.Store(1)
	within(t, "it is sent", func() bool { return rows() == 1 })
	before := asked.Load()
	within(t, "it asks again", func() bool { return asked.Load() > before+1 })
	other.sendHeads(time.Hour, "m", func() ([]audit.Head, error) {
		return []audit.Head{{Chain: audit.Calls, Seen: audit.Seen{Number: 2, Hash: strings.Repeat("0", 64)}}}, nil
	})
	if got := rows(); got != 1 {
		t.Error(got, "rows of one head, or one before its time")
	}
	must(t, other.Close())
	other = g
	if got := rows(); got != 2 {
		t.Error(got, "rows after the close")
	}
}

// Where the database can't be reached each call says so, and none says that a file is not there.
func TestFilesWithoutDatabase(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	wired, wire := fleetbox.Wired(t, database)
	f := join(t, Options{Database: wired}).Files("d")
	must(t, f.Append("a", []byte("x")))
	release, err := f.Hold("b", []byte("x"))
	must(t, err)
	wire.Cut()
	var m state.Mark
	for what, try := range map[string]func() error{
		"open":    func() error { _, err := f.Open("a"); return err },
		"since":   func() error { _, _, err := f.Since("a", &m); return err },
		"list":    func() error { _, err := f.List(); return err },
		"look":    func() error { _, err := f.Look("a"); return err },
		"held":    func() error { _, err := f.Held("b"); return err },
		"append":  func() error { return f.Append("a", []byte("y")) },
		"replace": func() error { return f.Replace("a", []byte("y")) },
		"touch":   func() error { return f.Touch("a") },
		"remove":  func() error { return f.Remove("a") },
		"hold":    func() error { _, err := f.Hold("c"); return err },
		"update":  func() error { return f.Update(t.Context(), "l", func(state.Files) error { return nil }) },
	} {
		if err := try(); !outage.Is(err) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", what, err)
		}
	}
	release() // it tries again
	wire.Mend()
	within(t, "it is released", func() bool {
		held, err := f.Held("b")
		return err == nil && !held[0]
	})
}

// A database that does not answer at all is not waited for again and again.
func TestFilesOfASilentDatabase(t *testing.T) {
	t.Parallel()
	database := fleetbox.Database(t)
	g, other := join(t, Options{Database: database, Lease: short}), join(t, Options{Database: database})
	tx, err := other.db.Begin()
	must(t, err)
	_, err = tx.Exec("LOCK TABLE gateway, file")
	must(t, err)
	within(t, "a heartbeat fails", func() bool { return g.Health().Err != nil })
	begun := time.Now()
	if _, err := g.Files("d").Open("a"); !outage.Is(err) {
		t.Error(err)
	}
	if took := time.Since(begun); took >= patience {
		t.Error("it has waited for ", took)
	}
	must(t, tx.Rollback())
	within(t, "it answers again", func() bool { _, err := g.Files("d").Open("a"); return errors.Is(err, fs.ErrNotExist) })
}

// BenchmarkShared has what a call costs of what gateways share: the check of its token, a look at what the session has read, and a note of
// what it reads.
func BenchmarkShared(b *testing.B) {
	for kind, in := range map[string]func(dir string) state.Files{
		"directory": func(string) state.Files { return state.Dir{Path: b.TempDir(), Temp: "temp"} },
		"fleet":     func(string) state.Files { return nil },
	} {
		if kind == "fleet" {
			g, err := Open(context.Background(), Options{Database: fleetbox.Database(b)})
			must(b, err)
			defer g.Close()
			in = g.Files
		}
		tokens := serve.TokensIn(in("tokens"))
		_, secret, err := tokens.Create(serve.Token{Principal: "ci"})
		must(b, err)
		log, me := session.OpenIn(in("ledger"), b.TempDir()), session.Key{Principal: "p", Session: "s"}
		i := 0
		for what, do := range map[string]func() error{
			"check a token": func() error { _, err := tokens.Check(secret, time.Now()); return err },
			"look":          func() error { _, _, err := log.Look(me, "1:1", "/f"); return err },
			"saw": func() error {
				i++
				return log.Saw(me, session.Seen{ID: fmt.Sprint("1:", i), Path: fmt.Sprint("/some/where/in/a/tree/file", i, ".go"),
					Hash: strings.Repeat("0", 64), Lines: 100, Whole: true, When: time.Now()})
			},
		} {
			b.Run(kind+"/"+what, func(b *testing.B) {
				for b.Loop() {
					must(b, do())
				}
			})
		}
		must(b, log.Close())
	}
}

// The account of a gateway needs these rights and no others. It can't change what audit logs it has put on record.
func TestRights(t *testing.T) {
	t.Parallel()
	database := fleetbox.OwnDatabase(t)
	owner := join(t, Options{Database: database})
	u, err := url.Parse(database)
	must(t, err)
	role := "gateway_" + strings.Trim(u.Path, "/")
	for _, q := range []string{"CREATE ROLE " + role + " LOGIN", "REVOKE ALL ON SCHEMA public FROM PUBLIC", "GRANT USAGE ON SCHEMA public TO " + role,
		"GRANT SELECT ON fleet TO " + role, "GRANT SELECT, INSERT, UPDATE, DELETE ON since, gateway, lock, file TO " + role,
		"GRANT SELECT, INSERT ON head TO " + role} {
		_, err := owner.db.Exec(q)
		must(t, err)
	}
	q := u.Query()
	q.Set("user", role)
	u.RawQuery = q.Encode()
	g := join(t, Options{Database: u.String()})
	unlock, err := g.Lock(t.Context(), "holds", "k")
	must(t, err)
	unlock()
	f := g.Files("d")
	release, err := f.Hold("a", []byte("x"))
	must(t, err)
	release()
	must(t, errors.Join(f.Append("b", []byte("x")), f.Replace("b", nil), f.Touch("b"), f.Remove("b"),
		f.Update(t.Context(), "lock", func(f state.Files) error { return f.Replace("c", nil) }),
		g.record("m", audit.Head{Chain: audit.Calls, Seen: audit.Seen{Number: 1, Hash: strings.Repeat("0", 64)}})))
	for _, bad := range []string{"UPDATE head SET seq = 2", "DELETE FROM head", "TRUNCATE head", "DROP TABLE file", "UPDATE fleet SET version = 9", "CREATE TABLE x (a int)"} {
		if _, err := g.db.Exec(bad); err == nil {
			t.Errorf("it may %s", bad)
		}
	}
}
