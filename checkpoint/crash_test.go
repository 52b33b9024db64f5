package checkpoint_test

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/testdir"
)

var killRounds = flag.Int("kill", 40, "rounds of TestKill; 300 in CI, 10000 in a soak")

// roleVar makes the test binary one of the processes below instead of running tests.
const roleVar = "MOLTISFS_CHECKPOINT_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		var dir string
		var seed int64
		var name string
		if _, err := fmt.Sscanf(role, "%s %d %q", &name, &seed, &dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if err := child(name, seed, dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	remove := testdir.InMemoryUnlessShort() // in memory three handles pass max_bytes at times, under the race detector
	status := m.Run()
	remove()
	os.Exit(status)
}

// A process is a child of the test, and the lines that it has written so far.
type process struct {
	*exec.Cmd
	lines       []string      // to be read when it is done
	first, done chan struct{} // closed after the first line, and after the last one
}

func spawn(t *testing.T, name string, seed int64, dir string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0], "-test.run=^$"), first: make(chan struct{}), done: make(chan struct{})}
	p.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %q", roleVar, name, seed, dir), fleetVar+"="+fleetOf(t, dir))
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			if p.lines = append(p.lines, sc.Text()); len(p.lines) == 1 {
				close(p.first)
			}
		}
	}()
	return p
}

// kill ends p after its first line and a while.
func (p *process) kill(t *testing.T, while time.Duration) {
	t.Helper()
	select {
	case <-p.first:
	case <-time.After(time.Minute):
		t.Error("the process never saved anything")
	}
	time.Sleep(while) // a moment that nobody chose
	p.Process.Kill()
	<-p.done
	p.Wait()
}

// acknowledged counts the saves that lines acknowledge, and lists those that are not in the store, with both contents. A line is
// "ok", an id, and the hashes before and after; other lines are of saves that failed, or are cut off. With "?" for an id only the
// contents are looked for.
func acknowledged(d *checkpoint.DB, lines []string) (acks int, lost []string) {
	for _, l := range lines {
		f := strings.Fields(l)
		if len(f) != 4 || f[0] != "ok" {
			continue
		}
		acks++
		there := true
		if f[1] != "?" {
			c, err := d.Get(ctx, checkpoint.ID(f[1]), ann)
			there = err == nil && c.Changes[0].Before.Hash == f[2] && c.Changes[0].After.Hash == f[3]
		}
		for _, h := range f[2:] {
			b, err := d.Content(ctx, h)
			there = there && err == nil && sum(b) == h
		}
		if !there {
			lost = append(lost, l)
		}
	}
	return acks, lost
}

// child saves edits and acknowledges each on stdout. The engine called "ahead" is the one that
// the test must catch: it says so before it saves.
func child(name string, seed int64, dir string) error {
	switch name {
	case "limited":
		return limited(dir, seed)
	case "cutter":
		return cutter(dir, seed)
	case "uploader":
		return uploader(dir, seed)
	case "shipping":
		return shipping(dir, seed)
	case "faulty", "pretender":
		return faulty(dir, seed, name == "pretender")
	}
	d, err := openAt(dir, os.Getenv(fleetVar), checkpoint.Options{KeepWithin: time.Hour})
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewSource(seed))
	path := fmt.Sprintf("/w/%s-%d", name, seed)
	b := source(10_000, seed)
	if name == "opener" {
		s, err := d.Save(ctx, openedAt(randomText(120_000, seed)))
		if err != nil {
			return err
		}
		fmt.Println(s.ID)
		select {}
	}
	steps := 1 << 30
	if name == "worker" {
		steps = 40
	}
	for i := range steps {
		next := nextVersion(rng, b)
		if i%10 == 9 {
			next = randomText(300<<10, seed+int64(i)) // an external file
		}
		if i%10 == 0 && i > 0 {
			next = source(10_000, seed+int64(i))
		}
		if name == "ahead" {
			fmt.Println("ok ?", sum(b), sum(next))
			time.Sleep(time.Millisecond)
		}
		o := op(edit(path, b, next))
		if i%3 != 0 { // these are not settled
			o.Tag, o.Label = "t", "open"
		}
		s, err := d.Save(ctx, o)
		if err != nil {
			return err
		}
		if name != "ahead" {
			fmt.Println("ok", s.ID, sum(b), sum(next))
		}
		if i%3 == 0 {
			if err := d.Settle(ctx, s.ID, checkpoint.Committed); err != nil {
				return err
			}
		}
		if i%20 == 19 {
			if _, err := d.GC(ctx, false); err != nil {
				return err
			}
		}
		b = next
	}
	return d.Close()
}

// TestKill ends a saving process at a random moment, over and over on the same store. Each save that it acknowledged must be
// there, whole, and the catalog sound.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: long")
	}
	t.Parallel()
	dir := t.TempDir()
	acks, rounds := 0, *killRounds
	if fleetOf(t, dir) != "" {
		rounds /= 3
	}
	for round := range rounds {
		if round%100 == 99 {
			dir = t.TempDir()
		}
		missing, n := killOnce(t, "saver", int64(round), dir, round%10 == 9)
		acks += n
		if missing > 0 {
			t.Fatalf("round %d: %d of %d acknowledged saves are not in the store", round, missing, n)
		}
	}
	t.Logf("%d rounds, %d acknowledged saves, all there", rounds, acks)
	if acks < rounds {
		t.Errorf("only %d saves were acknowledged: the test tests nothing", acks)
	}
}

// The test above must be able to fail: an engine that acknowledges before it saves is caught.
func TestKillCatchesABadEngine(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: long")
	}
	t.Parallel()
	for round := range 60 {
		if missing, _ := killOnce(t, "ahead", int64(round), t.TempDir(), false); missing > 0 {
			return
		}
	}
	t.Error("60 rounds of an engine that acknowledges too early, and nothing was found missing")
}

// A process that is killed once it has put a large content, before the row of that, leaves rubbish, which retention takes.
func TestKilledBetweenContentAndRow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := spawn(t, "uploader", 1, dir)
	<-p.done
	p.Wait()
	d := open(t, dir, checkpoint.Options{})
	sound(t, d)
	if s := stats(t, d); len(p.lines) > 0 || s.Checkpoints != 0 || s.Contents != 0 {
		t.Fatalf("%q %+v", p.lines, s)
	}
	for _, files := range []int{1, 0} {
		if r, err := d.GC(ctx, false); err != nil || r.Files != files {
			t.Errorf("%+v, not %d: %v", r, files, err)
		}
	}
}

func killOnce(t *testing.T, name string, seed int64, dir string, deep bool) (missing, acks int) {
	t.Helper()
	p := spawn(t, name, seed, dir)
	p.kill(t, time.Duration(rand.Intn(60_000))*time.Microsecond)
	d, err := openAt(dir, fleetOf(t, dir), checkpoint.Options{})
	if err != nil {
		t.Fatal("the store must open after a crash:", err)
	}
	defer d.Close()
	if fleetOf(t, dir) != "" { // the server may be at the last commit of the dead still: who writes waits for that
		if _, err := d.BeginTurn(ctx, checkpoint.Scope{Session: "after"}, fmt.Sprint(seed)); err != nil {
			t.Fatal(err)
		}
	}
	if err := openAsSaved(d); err != nil {
		t.Error(err)
	}
	ops, err := d.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range p.lines {
		f := strings.Fields(l)
		if len(f) == 4 && f[1] != "?" && i%3 != 0 && !slices.ContainsFunc(ops, func(o checkpoint.OpenOp) bool { return string(o.ID) == f[1] }) {
			t.Errorf("%s was left open, and is not", f[1])
		}
	}
	acks, lost := acknowledged(d, p.lines)
	r, err := d.Check(ctx, deep)
	if err != nil || len(r.Problems) > 0 {
		t.Fatalf("the catalog must be sound after a crash: %+v %v", r, err)
	}
	return len(lost), acks
}

// openAsSaved looks whether the open operations are those that were saved with a tag, acknowledged or not: they have the
// label "open".
func openAsSaved(d *checkpoint.DB) error {
	const most = 1000
	ops, err := d.Open(ctx)
	if err != nil {
		return err
	}
	p, err := d.List(ctx, checkpoint.Filter{Label: "open", AllSessions: true, Limit: most})
	if err != nil {
		return err
	}
	same := func(o checkpoint.OpenOp, c checkpoint.Checkpoint) bool { return o.ID == c.ID }
	if ops = ops[:min(len(ops), most)]; !slices.EqualFunc(ops, p.Checkpoints, same) {
		return fmt.Errorf("%d are open, %d were saved with a tag, or others", len(ops), len(p.Checkpoints))
	}
	return nil
}

// Eight processes save into one store at once.
func TestManyProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: long")
	}
	t.Parallel()
	dir := t.TempDir()
	var ps []*process
	for i := range 8 {
		ps = append(ps, spawn(t, "worker", int64(i), dir))
	}
	ids := map[string]bool{}
	d := open(t, dir, checkpoint.Options{})
	for i, p := range ps {
		<-p.done
		if err := p.Wait(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
		if acks, lost := acknowledged(d, p.lines); acks != 40 || lost != nil {
			t.Errorf("process %d made %d saves of 40, and these are lost: %q", i, acks, lost)
		}
		for _, l := range p.lines {
			ids[strings.Fields(l)[1]] = true
		}
	}
	if len(ids) != 8*40 {
		t.Errorf("%d ids for %d saves", len(ids), 8*40)
	}
	sound(t, d)
}
