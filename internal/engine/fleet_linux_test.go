package engine_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/engine"
	"moltisfs/internal/fleet"
	"moltisfs/internal/fleetbox"
	"moltisfs/internal/guardfs"
)

var edits = flag.Int("edits", 40, "of each of the gateways that edit one tree at once")

// A box is one tree with the database and the bucket of a fleet.
type box struct {
	t                  testing.TB
	ws                 string
	database, contents string
	lease              time.Duration
}

func newBox(t testing.TB, lease time.Duration) *box {
	t.Helper()
	b := &box{t, t.TempDir() + "/ws", fleetbox.Database(t), fleetbox.Contents(t, nil), lease}
	must(t, os.Mkdir(b.ws, 0o700))
	return b
}

// A machine is an engine over the tree of a box, as one machine of the fleet has it.
type machine struct {
	*tree
	*fleet.Gateway
	wire *fleetbox.Wire
}

func (m *machine) Close() error { return errors.Join(m.tree.Close(), m.Gateway.Close()) }

// machine adds one. fault is that of guardfs.Options.
func (b *box) machine(name string, fault func(string) *guardfs.Fault) *machine {
	b.t.Helper()
	m := &machine{tree: &tree{t: b.t, ws: b.ws, data: b.t.TempDir(), cfg: config.Default().Tools.FS, fault: fault}}
	m.cfg.RequireApproval, m.cfg.CheckpointBeforeMutation = false, true
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
	m.cfg.Fleet = config.Fleet{Database: address, Contents: b.contents, Durable: "remote"}
	m.Engine, err = engine.OpenOver(engine.Options{Config: m.cfg, Judge: inside(b.ws, ""), DataDir: m.data, Fault: m.fault,
		Fleet: engine.FleetOf(m.cfg.Fleet, m.Gateway)})
	must(b.t, err)
}

// adds is an edit that adds a line to a file.
func (m *machine) adds(name, line string) error {
	_, err := m.call("s").ChangeFiles(ctx, engine.Files{Paths: []string{m.ws + "/" + name}, Next: func(ts []*engine.Target) error {
		ts[0].After = engine.After{Kind: guardfs.KindFile, Content: append(slices.Clone(ts[0].Before.Content), line+"\n"...)}
		return nil
	}})
	return err
}

// history gives what the fleet knows of the changes of a path, the first one first.
func (b *box) history(m *machine, path string) (changes []checkpoint.Recorded, outcomes []checkpoint.Outcome) {
	b.t.Helper()
	o, err := engine.StoreOptions(m.cfg.Checkpoint, engine.FleetOf(m.cfg.Fleet, m.Gateway))
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
	if wrong := raceOf(t, *edits, nil); wrong != "" {
		t.Error(wrong)
	}
}

// Without the locks of the fleet the same race is lost: gateways take changes of others back that are being made.
func TestFleetWithoutLocks(t *testing.T) {
	t.Parallel()
	for range 5 {
		if wrong := raceOf(t, 20, (*engine.Engine).Unlocked); wrong != "" {
			t.Log(wrong)
			return
		}
	}
	t.Error("a race without locks was never lost: the test of the race tests nothing")
}

// raceOf says what was wrong after eight gateways have made so many edits each. break may be nil.
func raceOf(t *testing.T, edits int, spoil func(*engine.Engine)) (wrong string) {
	t.Helper()
	b := newBox(t, 0)
	files := []string{"a", "b", "c"}
	first := b.machine("m0 1", nil)
	for _, f := range files {
		first.write(f, "")
	}
	machines := []*machine{first}
	for i := range 7 {
		machines = append(machines, b.machine(fmt.Sprintf("m%d 1", i+1), nil))
	}
	var mu sync.Mutex
	acknowledged := map[string][]string{}
	var refused atomic.Int64
	var wg sync.WaitGroup
	start := time.Now()
	for i, m := range machines {
		if spoil != nil {
			spoil(m.Engine)
		}
		wg.Go(func() {
			for k := range edits {
				f, line := files[rand.N(len(files))], fmt.Sprintf("%d/%d", i, k)
				for {
					err := m.adds(f, line)
					if err == nil {
						mu.Lock()
						acknowledged[f] = append(acknowledged[f], line)
						mu.Unlock()
						break
					}
					if refused.Add(1) > int64(edits) && spoil != nil {
						return
					}
					if r := engine.Reason(err); r == nil || r.Code != engine.CodeConflict {
						mu.Lock()
						wrong += fmt.Sprintf("%s: %v\n", line, err)
						mu.Unlock()
						return
					}
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d edits in %v, %d conflicts", 8*edits, time.Since(start), refused.Load())
	for _, f := range files {
		content, err := os.ReadFile(b.ws + "/" + f)
		must(t, err)
		lines := strings.Fields(string(content))
		if got, want := slices.Sorted(slices.Values(lines)), slices.Sorted(slices.Values(acknowledged[f])); !slices.Equal(got, want) {
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
	return wrong
}
