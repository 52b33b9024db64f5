package fleetbox

import (
	"database/sql"
	"testing"
)

// TestCrash looks at a table after a crash of the server: a committed row is there, and one of an unlogged table is not.
func TestCrash(t *testing.T) {
	t.Parallel()
	s := Own(t)
	db, err := sql.Open("pgx", s.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("CREATE TABLE kept (n int); CREATE UNLOGGED TABLE lost (n int)"); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if _, err := db.Exec("INSERT INTO kept VALUES (1); INSERT INTO lost VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		if err := s.Crash(); err != nil {
			t.Fatal(err)
		}
		if err := db.Ping(); err == nil {
			t.Error("it answers still")
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		var kept, lost int
		if err := db.QueryRow("SELECT (SELECT count(*) FROM kept), (SELECT count(*) FROM lost)").Scan(&kept, &lost); err != nil || kept != n+1 || lost != 0 {
			t.Fatal(kept, lost, err)
		}
	}
}
