package checkpoint_test

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
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

func spawn(t *testing.T, name string, seed int64, dir string) (*exec.Cmd, io.ReadCloser) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %q", roleVar, name, seed, dir))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// child saves edits and says so on stdout after each: id, hash before, hash after. The engine called "ahead" is the one that
// the test must catch: it says so before it saves.
func child(name string, seed int64, dir string) error {
	switch name {
	case "limited":
		return limited(dir, seed)
	case "cutter":
		return cutter(dir, seed)
	case "faulty", "pretender":
		return faulty(dir, seed, name == "pretender")
	}
	d, err := checkpoint.Open(dir, checkpoint.Options{KeepWithin: time.Hour})
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
			fmt.Println("?", sum(b), sum(next))
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
			fmt.Println(s.ID, sum(b), sum(next))
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

// TestKill ends a saving process at a random moment, over and over on the same store. Whatever it had said to be saved must be
// there, whole, and the catalog sound.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: long")
	}
	t.Parallel()
	dir := t.TempDir()
	acks := 0
	for round := range *killRounds {
		if round%100 == 99 {
			dir = t.TempDir()
		}
		missing, n := killOnce(t, "saver", int64(round), dir, round%10 == 9)
		acks += n
		if missing > 0 {
			t.Fatalf("round %d: %d of %d acknowledged saves are not in the store", round, missing, n)
		}
	}
	t.Logf("%d rounds, %d acknowledged saves, all there", *killRounds, acks)
	if acks < *killRounds {
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

func killOnce(t *testing.T, name string, seed int64, dir string, deep bool) (missing, acks int) {
	t.Helper()
	cmd, out := spawn(t, name, seed, dir)
	var lines []string
	done := make(chan struct{})
	first := make(chan struct{})
	var once sync.Once
	go func() {
		defer close(done)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			lines = append(lines, sc.Text())
			once.Do(func() { close(first) })
		}
	}()
	select {
	case <-first:
	case <-time.After(time.Minute):
		cmd.Process.Kill()
		t.Fatal("the process never saved anything")
	}
	time.Sleep(time.Duration(rand.Intn(60_000)) * time.Microsecond)
	cmd.Process.Kill()
	<-done
	cmd.Wait()
	d, err := checkpoint.Open(dir, checkpoint.Options{})
	if err != nil {
		t.Fatal("the store must open after a crash:", err)
	}
	defer d.Close()
	ops, err := d.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	open := map[string]bool{}
	for _, o := range ops {
		open[string(o.ID)] = true
	}
	if err := openAsSaved(d); err != nil {
		t.Error(err)
	}
	for i, l := range lines {
		f := strings.Fields(l)
		if len(f) != 3 {
			continue // cut off
		}
		if acks++; f[0] != "?" && i%3 != 0 && !open[f[0]] {
			t.Errorf("%s was left open, and is not", f[0])
		}
		for _, h := range f[1:] {
			if b, err := d.Content(ctx, h); err != nil || sum(b) != h {
				missing++
				break
			}
		}
		if f[0] != "?" {
			if c, err := d.Get(ctx, checkpoint.ID(f[0]), ann); err != nil || c.Changes[0].Before.Hash != f[1] || c.Changes[0].After.Hash != f[2] {
				missing++
			}
		}
	}
	r, err := d.Check(ctx, deep)
	if err != nil || len(r.Problems) > 0 {
		t.Fatalf("the catalog must be sound after a crash: %+v %v", r, err)
	}
	return missing, acks
}

// openAsSaved looks whether what is open is what was saved with a tag, said or not: those have the
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
	type proc struct {
		cmd   *exec.Cmd
		lines []string
		done  chan struct{}
	}
	var ps []*proc
	for i := range 8 {
		cmd, out := spawn(t, "worker", int64(i), dir)
		p := &proc{cmd: cmd, done: make(chan struct{})}
		ps = append(ps, p)
		go func() {
			defer close(p.done)
			for sc := bufio.NewScanner(out); sc.Scan(); {
				p.lines = append(p.lines, sc.Text())
			}
		}()
	}
	ids := map[string]bool{}
	d := open(t, dir, checkpoint.Options{})
	for i, p := range ps {
		<-p.done
		if err := p.cmd.Wait(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
		if len(p.lines) != 40 {
			t.Errorf("process %d made %d saves of 40", i, len(p.lines))
		}
		for _, l := range p.lines {
			f := strings.Fields(l)
			ids[f[0]] = true
			for _, h := range f[1:] {
				if b, err := d.Content(ctx, h); err != nil || sum(b) != h {
					t.Fatalf("%s: %v", l, err)
				}
			}
		}
	}
	if len(ids) != 8*40 {
		t.Errorf("%d ids for %d saves", len(ids), 8*40)
	}
	sound(t, d)
}
