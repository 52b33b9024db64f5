package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/internal/fleetbox"
	"moltisfs/tools"
)

// BenchmarkFleetEdit edits a file of 10 KB by a suite of one machine and by one of a fleet, turn about, with the servers on this machine. It
// reports the times of both, and what an edit costs the fleet: transactions, bytes of the log and of the tables, requests to the bucket.
func BenchmarkFleetEdit(b *testing.B) {
	var requests atomic.Int64
	dir, database := realDir(b), fleetbox.OwnDatabase(b)
	contents := fleetbox.Contents(b, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { requests.Add(1); h.ServeHTTP(w, r) })
	})
	suite := func(name string, fleet config.Fleet) func() time.Duration {
		root := filepath.Join(dir, name)
		must(b, os.Mkdir(root, 0o755))
		cfg := config.Default()
		fs := &cfg.Tools.FS
		fs.RequireApproval, fs.CheckpointBeforeMutation = false, true
		fs.Checkpoint.KeepLast = 1 << 20
		if fs.Fleet = fleet; fleet.Durable == "" {
			fs.Fleet.Durable = "remote"
		}
		s, err := tools.Open(cfg, tools.Options{DataDir: filepath.Join(dir, "data-"+name), Root: root})
		must(b, err)
		b.Cleanup(func() { s.Close() })
		file := filepath.Join(root, "x")
		must(b, os.WriteFile(file, []byte(strings.Repeat("one line of a file of ten kilobytes\n", 280)+"version 0\n"), 0o644))
		n := 0
		return func() time.Duration {
			args, err := json.Marshal(map[string]string{"file_path": file, "old_string": fmt.Sprint("version ", n, "\n"), "new_string": fmt.Sprint("version ", n+1, "\n")})
			must(b, err)
			n++
			begun := time.Now()
			p, err := s.Call(b.Context(), tools.Call{Tool: "Edit", Args: args})
			took := time.Since(begun)
			if _, refused := p.(*tools.Refusal); err != nil || refused {
				b.Fatal(p, err)
			}
			return took
		}
	}
	kinds := map[string]func() time.Duration{"local": suite("local", config.Fleet{}), "remote": suite("remote", config.Fleet{Database: database, Contents: contents, Durable: "remote"})}
	db, err := sql.Open("pgx", database)
	must(b, err)
	defer db.Close()
	cost := func() (log, size float64) {
		must(b, db.QueryRow(`SELECT pg_current_wal_insert_lsn() - '0/0', pg_database_size(current_database())`).Scan(&log, &size))
		return log, size
	}
	took := map[string][]time.Duration{}
	for range 20 {
		kinds["local"]()
		kinds["remote"]()
	}
	log, size := cost()
	requests.Store(0)
	for b.Loop() {
		for name, edit := range kinds {
			took[name] = append(took[name], edit())
		}
	}
	log2, size2 := cost()
	n := float64(len(took["remote"]))
	for name, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "ms-p50-"+name)
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "ms-p99-"+name)
	}
	b.ReportMetric((log2-log)/n, "wal-B/edit")
	b.ReportMetric((size2-size)/n, "table-B/edit")
	b.ReportMetric(float64(requests.Load())/n, "requests/edit")
}
