//go:build unix

package checkpoint_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// BenchmarkHistory measures what grows with a history, or must not, in one store that has 1,000, then 10,000 checkpoints, with
// -large 100,000 and 500,000 too. Nine of ten are edits of 180 files by one session, with a turn for each 50; the rest are those
// of a new session for each 1,000 checkpoints, with ten paths of its own. It prints the CPU time of the process for one call, medians, and what
// the sizes have to do with one another; and the peak of what the process holds.
//
//	go test ./checkpoint -run - -bench History -benchtime 1x -large
func BenchmarkHistory(b *testing.B) {
	sizes := []int{1_000, 10_000}
	if *large {
		sizes = append(sizes, 100_000, 500_000)
	}
	dir := filepath.Join(b.TempDir(), "store")
	d, err := checkpoint.Open(dir, checkpoint.Options{})
	must(b, err)
	defer func() { d.Close() }()
	rows := map[string][]time.Duration{}
	var names []string
	n := 0
	for _, size := range sizes {
		for ; n < size; n++ {
			save(b, d, historyOp(n))
		}
		runtime.GC()
		for _, r := range historyCalls(b, d, n) {
			var ts []time.Duration
			for i := range r.rounds {
				at := cpuTime()
				r.do(i)
				ts = append(ts, cpuTime()-at)
			}
			slices.Sort(ts)
			if rows[r.name] == nil {
				names = append(names, r.name)
			}
			rows[r.name] = append(rows[r.name], ts[len(ts)/2])
			fmt.Fprintln(os.Stderr, n, r.name, ts[len(ts)/2])
		}
		full := filepath.Join(b.TempDir(), "full")
		_, err := d.Backup(ctx, full)
		must(b, err)
		rows["save, full"] = append(rows["save, full"], whenFull(b, full, n))
		must(b, os.RemoveAll(full))
	}
	var out strings.Builder
	fmt.Fprintf(&out, "\n| CPU ms at %v checkpoints |%s last/first |\n|---|%s---|\n", sizes, strings.Repeat(" |", len(sizes)), strings.Repeat("---|", len(sizes)))
	for _, name := range append(names, "save, full") {
		fmt.Fprintf(&out, "| %s |", name)
		for _, t := range rows[name] {
			fmt.Fprintf(&out, " %.3f |", float64(t.Microseconds())/1000)
		}
		fmt.Fprintf(&out, " %.2f |\n", float64(rows[name][len(sizes)-1])/float64(max(rows[name][0], 1)))
	}
	fmt.Print(out.String())
	b.ReportMetric(0, "ns/op")
}

// historyOp is the i-th checkpoint.
func historyOp(i int) checkpoint.Op {
	text := func(i int) []byte {
		return fmt.Appendf(nil, "package p\n\n// version %d\nfunc F() int { return %d }\n", i, i*7)
	}
	o := op(edit(fmt.Sprintf("/w/dir/file%d.go", i%200), text(i-200), text(i)))
	o.Turn = fmt.Sprintf("t%d", i/50)
	if i%10 == 9 {
		o = op(edit(fmt.Sprintf("/w/more/part%d/file%d.go", i/1000, i%100), nil, text(i)))
		o.Session, o.Turn = fmt.Sprintf("other%d", i/1000), "1"
	}
	switch i {
	case 20:
		o.Label = "early"
	case 21:
		o.Tool, o.Kind = "Once", "once"
	case 22:
		o.Changes[0].Path = "/w/dir/needle.go"
	}
	return o
}

type historyCall struct {
	name   string
	rounds int
	do     func(i int)
}

// historyCalls are the calls to measure with n checkpoints in d.
func historyCalls(b *testing.B, d *checkpoint.DB, n int) []historyCall {
	ctx := b.Context() // it can end, as that of a call
	list := func(name string, want int, f checkpoint.Filter) historyCall {
		return historyCall{"list: " + name, 20, func(int) {
			if !f.AllSessions {
				f.Principal, f.Session = ann.Principal, ann.Session
			}
			page, err := d.List(ctx, f)
			must(b, err)
			if len(page.Checkpoints) != want {
				b.Fatalf("%s: %d are listed, not %d", name, len(page.Checkpoints), want)
			}
		}}
	}
	undo := func(int) *checkpoint.Plan {
		p, err := d.Undo(ctx, ann)
		must(b, err)
		return p
	}
	undone := func(p *checkpoint.Plan) {
		o := op()
		o.Kind, o.UndoOf = checkpoint.KindRestore, p.UndoOf
		for _, it := range p.Items {
			o.Changes = append(o.Changes, checkpoint.Change{Path: it.Path, Before: it.Head, After: it.Want})
		}
		save(b, d, o)
	}
	const limit = 20
	page, err := d.List(ctx, checkpoint.Filter{AllSessions: true, Limit: 1})
	must(b, err)
	id := page.Checkpoints[0].ID
	turn := fmt.Sprintf("t%d-", n)
	calls := []historyCall{
		{"save", 200, func(i int) {
			o := historyOp(n - i)
			o.Turn = ""
			save(b, d, o)
		}},
		{"first call of a turn: BeginTurn and Known, 181 paths", 20, func(i int) {
			began, err := d.BeginTurn(ctx, ann, turn+fmt.Sprint(i))
			must(b, err)
			known, err := d.Known(ctx, ann)
			must(b, err)
			if !began || len(known) < 181 {
				b.Fatal(began, len(known))
			}
		}},
		list("newest", limit, checkpoint.Filter{Limit: limit}),
		list("newest of all, and what is undone", limit, checkpoint.Filter{AllSessions: true, Limit: limit, NoReads: true}),
		list("oldest, and what is undone", limit-1, checkpoint.Filter{Limit: limit, Cursor: "22"}),
		list("a path", 5, checkpoint.Filter{Path: "/w/dir/file7.go", Limit: 5}),
		list("an old turn", limit, checkpoint.Filter{Turn: "t3", Limit: limit}),
		list("a turn of all", limit, checkpoint.Filter{Turn: "t3", Limit: limit, AllSessions: true}),
		list("no such turn", 0, checkpoint.Filter{Turn: "none", Limit: limit}),
		list("a label", 1, checkpoint.Filter{Label: "early", Limit: limit}),
		list("no such label", 0, checkpoint.Filter{Label: "none", Limit: limit}),
		list("a tool", limit, checkpoint.Filter{Tool: "Edit", Limit: limit}),
		list("a tool that ran once", 1, checkpoint.Filter{Tool: "Once", Limit: limit}),
		list("a kind that came once, of all", 1, checkpoint.Filter{Kind: "once", Limit: limit, AllSessions: true}),
		list("no such kind", 0, checkpoint.Filter{Kind: "none", Limit: limit}),
		list("a text in one old path", 1, checkpoint.Filter{PathContains: "NEEDLE", Limit: limit}),
		list("a text in many paths", limit, checkpoint.Filter{PathContains: "file", Limit: limit}),
		list("a text in no path", 0, checkpoint.Filter{PathContains: "no such", Limit: limit}),
		list("an hour long ago", 0, checkpoint.Filter{Until: time.Unix(0, 0), Limit: limit}),
		list("a time to come", 0, checkpoint.Filter{Since: time.Now().Add(time.Hour), Limit: limit}),
		{"get", 20, func(int) {
			_, err := d.Get(ctx, id, checkpoint.Scope{AllSessions: true})
			must(b, err)
		}},
		{"plan of a restore", 20, func(int) {
			page, err := d.List(ctx, checkpoint.Filter{Principal: ann.Principal, Session: ann.Session, Limit: 1})
			must(b, err)
			_, err = d.Plan(ctx, checkpoint.Restore{ID: page.Checkpoints[0].ID, Principal: ann.Principal, Session: ann.Session})
			must(b, err)
		}},
		{"plan of a rewind by time, nothing to do", 20, func(int) {
			_, err := d.Plan(ctx, checkpoint.Restore{Since: time.Now().Add(time.Hour), Principal: ann.Principal, Session: ann.Session})
			must(b, err)
		}},
		{"plan of an undo", 20, func(i int) { undo(i) }},
		{"the same after n/2 undos, 1,000 at most", 20, func(i int) {
			if i == 0 {
				for range min(n/2, 1000) {
					undone(undo(0))
				}
			}
			undo(i)
		}},
		{"gc, nothing to do", 3, func(int) {
			_, err := d.GC(ctx, false)
			must(b, err)
		}},
		{"check without contents", 1, func(int) {
			_, err := d.Check(ctx, false)
			must(b, err)
		}},
		{"check, every content read and compared", 1, func(int) { sound(b, d) }},
		{"stats", 3, func(int) { stats(b, d) }},
	}
	return calls
}

// whenFull gives the CPU time of a save into the store in dir, of n checkpoints, when it is as large as it may be: of a third of what
// it holds, the mean, so that it has what goes for it.
func whenFull(b *testing.B, dir string, n int) time.Duration {
	d, err := checkpoint.Open(dir, checkpoint.Options{})
	must(b, err)
	limit := held(b, d)
	must(b, d.Close())
	d, err = checkpoint.Open(dir, checkpoint.Options{MaxBytes: limit})
	must(b, err)
	defer d.Close()
	rounds := min(n/3, 20_000)
	at := cpuTime()
	for i := range rounds {
		save(b, d, historyOp(n+i))
	}
	return (cpuTime() - at) / time.Duration(rounds)
}

// cpuTime is the time of processors that this process has had.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it can't fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
