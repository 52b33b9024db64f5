package checkpoint_test

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"moltisfs/checkpoint"
)

// BenchmarkList lists the 20 newest checkpoints of a path in a store with a million of them (with -large; 20,000 without), of 1,000 paths
// in 100 sessions. The rows are written straight into the catalog: what is measured is the listing.
//
//	go test ./checkpoint -run - -bench List -benchtime 2000x -large
func BenchmarkList(b *testing.B) {
	n := 20_000
	if *large {
		n = 1_000_000
	}
	dir := b.TempDir()
	d, err := checkpoint.Open(dir, checkpoint.Options{MaxBytes: 8 << 30, KeepWithin: 1000 * time.Hour})
	must(b, err)
	// One true checkpoint for each session and path makes the names; the others refer to them.
	for i := range 1000 {
		o := op(edit(fmt.Sprintf("/w/dir/file%d.go", i), nil, []byte("x")))
		o.Session = fmt.Sprint("s", i%100)
		save(b, d, o)
	}
	must(b, d.Close())
	db, err := sql.Open("sqlite", "file:"+dir+"/checkpoints.db?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
	must(b, err)
	_, err = db.Exec(`INSERT INTO op(seq, ts, session, tool, kind) SELECT value, (SELECT min(ts) FROM op)+value, 1+(value%100), (SELECT tool FROM op LIMIT 1), (SELECT kind FROM op LIMIT 1)
		FROM generate_series(2000, 2000+?1)`, n)
	if err != nil {
		_, err = db.Exec(`WITH RECURSIVE g(value) AS (SELECT 2000 UNION ALL SELECT value+1 FROM g WHERE value < 2000+?1)
			INSERT INTO op(seq, ts, session, tool, kind) SELECT value, (SELECT min(ts) FROM op)+value, 1+(value%100), (SELECT tool FROM op LIMIT 1), (SELECT kind FROM op LIMIT 1) FROM g`, n)
	}
	must(b, err)
	_, err = db.Exec(`INSERT INTO change(op, n, path, role, bkind, bmode, buid, bgid, bobj, akind, aobj)
		SELECT seq, 0, 1+(seq%1000), 'target', 1, 420, 0, 0, 1, 1, 1 FROM op WHERE seq >= 2000`)
	must(b, err)
	must(b, db.Close())
	if d, err = checkpoint.Open(dir, checkpoint.Options{MaxBytes: 8 << 30, KeepWithin: 1000 * time.Hour}); err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	var ts times
	b.ResetTimer()
	for i := range b.N {
		start := time.Now()
		page, err := d.List(ctx, checkpoint.Filter{Path: fmt.Sprintf("/w/dir/file%d.go", i*37%1000), AllSessions: true})
		ts = append(ts, time.Since(start))
		if err != nil || len(page.Checkpoints) != 20 {
			b.Fatalf("%d of 20: %v", len(page.Checkpoints), err)
		}
	}
	b.StopTimer()
	b.ReportMetric(ts.at(.5), "p50-µs")
	b.ReportMetric(ts.at(.99), "p99-µs")
	b.ReportMetric(0, "ns/op")
}
