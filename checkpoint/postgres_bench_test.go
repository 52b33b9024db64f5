package checkpoint

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"moltisfs/checkpoint/blob"
	"moltisfs/internal/fleetbox"
)

// A meter counts what goes over connections: a message is what is sent before an answer is waited for.
type meter struct {
	messages, sent, got atomic.Int64
	latency             time.Duration // of each message, there and back
}

type metered struct {
	net.Conn
	m *meter
}

func (c metered) Write(b []byte) (int, error) {
	c.m.messages.Add(1)
	time.Sleep(c.m.latency)
	c.m.sent.Add(int64(len(b)))
	return c.Conn.Write(b)
}

func (c metered) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.m.got.Add(int64(n))
	return n, err
}

// meteredStore opens a store in PostgreSQL of which m counts the messages.
func meteredStore(tb testing.TB, database string, m *meter) *DB {
	tb.Helper()
	o, err := Options{Database: database, Blobs: &blob.Files{Dir: tb.TempDir()}}.withDefaults()
	if err != nil {
		tb.Fatal(err)
	}
	c, err := newPostgres(o)
	if err != nil {
		tb.Fatal(err)
	}
	dial := c.config.DialFunc
	c.config.DialFunc = func(ctx context.Context, network, at string) (net.Conn, error) {
		conn, err := dial(ctx, network, at)
		return metered{conn, m}, err
	}
	d, err := opened(c, nil, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { d.Close() })
	return d
}

// edits gives one edit of a file of 10 KB after the other, in a tree of its own.
func edits(tree string) func() Op {
	rng := rand.New(rand.NewPCG(uint64(len(tree)), 45))
	var b bytes.Buffer
	for b.Len() < 10<<10 {
		fmt.Fprintf(&b, "func f%d(a, b int) int { return a*%d + b } // a line of source\n", rng.IntN(1e6), rng.IntN(1e6))
	}
	body, n := b.Bytes(), 0
	return func() Op {
		n++
		next := bytes.Replace(body, []byte("return"), fmt.Appendf(nil, "return %d +", n), 1)
		op := Op{Tool: "Edit", Kind: KindEdit, Principal: "ann", Session: "s" + tree, Opening: Opening{Tag: fmt.Sprint("t", n), Steps: []byte(strings.Repeat("s", 200))},
			Changes: []Change{{Path: "/w" + tree + "/a.go", Role: "target", Before: State{Kind: File, Mode: 0o644}, Content: body,
				After: State{Kind: File, Mode: 0o644}, AfterContent: next}}}
		body = next
		return op
	}
}

// A save of an edit asks the database that often, and not once more: each time costs what a message takes there and back.
func TestMessagesOfAnEdit(t *testing.T) {
	t.Parallel()
	const save, settle, large = 10, 4, 15 // large: of a content that goes to the blob store
	var m meter
	d, next := meteredStore(t, fleetbox.Database(t), &m), edits("")
	for i := range 3 {
		m.messages.Store(0)
		s, err := d.Save(t.Context(), next())
		saved := m.messages.Swap(0)
		if err == nil {
			err = d.Settle(t.Context(), s.ID, Committed)
		}
		if err != nil {
			t.Fatal(err)
		}
		if settled := m.messages.Load(); i == 2 && (saved != save || settled != settle) {
			t.Errorf("%d messages to save, %d to settle", saved, settled)
		}
	}
	for i := range 3 {
		if _, err := d.Save(t.Context(), next()); err != nil { // the content before is there then
			t.Fatal(err)
		}
		op := next()
		op.Changes[0].AfterContent = noise(int64(i))
		m.messages.Store(0)
		if _, err := d.Save(t.Context(), op); err != nil {
			t.Fatal(err)
		}
		if saved := m.messages.Load(); i == 2 && saved != large {
			t.Errorf("%d messages to save a large content", saved)
		}
	}
}

// BenchmarkSave saves edits of a file of 10 KB into a store of this machine and into one in PostgreSQL on this machine, in turn. Report: the
// time of a save in µs, and the messages and bytes of one. The latency of a network comes on top once a message.
//
//	go test ./checkpoint -run - -bench Save -benchtime 1000x
func BenchmarkSave(b *testing.B) {
	var m meter
	local, err := Open(b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer local.Close()
	names, stores := []string{"local", "postgres"}, []*DB{local, meteredStore(b, fleetbox.Database(b), &m)}
	next := []func() Op{edits(""), edits("")}
	var took [2][]float64
	b.ResetTimer()
	for i := range b.N + 3 {
		if i == 3 { // the statements are compiled now
			m.messages.Store(0)
			m.sent.Store(0)
			m.got.Store(0)
		}
		for n, d := range stores {
			op := next[n]()
			start := time.Now()
			s, err := d.Save(b.Context(), op)
			took[n] = append(took[n], float64(time.Since(start).Nanoseconds())/1e3)
			if err == nil {
				err = d.Settle(b.Context(), s.ID, Committed)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.StopTimer()
	b.ReportMetric(0, "ns/op")
	for n, name := range names {
		t := took[n][3:]
		slices.Sort(t)
		b.ReportMetric(t[len(t)/2], name+"-p50-µs")
		b.ReportMetric(t[len(t)*99/100], name+"-p99-µs")
	}
	per := func(n *atomic.Int64) float64 { return float64(n.Load()) / float64(b.N) }
	b.ReportMetric(per(&m.messages), "messages/edit")
	b.ReportMetric(per(&m.sent), "B-sent/edit")
	b.ReportMetric(per(&m.got), "B-got/edit")
	used, _, err := stores[1].c.size(b.Context(), stores[1].r)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(used)/float64(b.N), "store-B/edit")
}

// BenchmarkSavers has eight gateways save edits in trees of their own, each half a millisecond from the database. Report: saves a second of all
// together. A save is settled after it, which counts as part of it.
//
//	go test ./checkpoint -run - -bench Savers -benchtime 2000x
func BenchmarkSavers(b *testing.B) {
	database := fleetbox.Database(b)
	m := meter{latency: 500 * time.Microsecond}
	var all sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	begin := make(chan bool)
	for g := range 8 {
		d, next := meteredStore(b, database, &m), edits(strings.Repeat("x", g))
		if _, err := d.Save(b.Context(), next()); err != nil { // the statements are compiled now
			b.Fatal(err)
		}
		all.Go(func() {
			<-begin
			for left.Add(-1) >= 0 {
				s, err := d.Save(b.Context(), next())
				if err == nil {
					err = d.Settle(b.Context(), s.ID, Committed)
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	m.messages.Store(0)
	b.ResetTimer()
	close(begin)
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "saves/s")
	b.ReportMetric(float64(m.messages.Load())/float64(b.N), "messages/save")
}
