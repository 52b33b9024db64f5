package fleetbox

import (
	"database/sql"
	"net/http"
	"net/url"
	"testing"
)

func TestDatabase(t *testing.T) {
	t.Parallel()
	plain := Database(t)
	wired, wire := Wired(t, plain)
	for name, at := range map[string]string{"plain": plain, "wired": wired} {
		db, err := sql.Open("pgx", at)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var one int
		if err := db.QueryRow("SELECT 1").Scan(&one); err != nil || one != 1 {
			t.Fatalf("%s: %d %v", name, one, err)
		}
		wire.Cut()
		if err := db.QueryRow("SELECT 1").Scan(&one); (err != nil) != (name == "wired") {
			t.Errorf("%s, cut: %v", name, err)
		}
		wire.Mend()
		if err := db.QueryRow("SELECT 1").Scan(&one); err != nil {
			t.Errorf("%s, mended: %v", name, err)
		}
	}
}

func TestContents(t *testing.T) {
	t.Parallel()
	asked := 0
	at, err := url.Parse(Contents(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked++; h.ServeHTTP(w, r) })
	}))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.Get(at.Query().Get("endpoint") + "/" + at.Host)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK || asked != 1 {
		t.Error(r.Status, asked)
	}
}
