package checkpoint

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// noWrites lets no file of this process be written until it is called.
func noWrites(t *testing.T) (again func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 512, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
			t.Fatal(err)
		}
		signal.Reset(syscall.SIGXFSZ)
	}
}

// After a commit that the disk refused nothing is accepted until all of the log is in the database: not as long as a reader
// of an older state keeps a part of it out.
func TestNothingIsSavedInDoubt(t *testing.T) {
	const child = "MOLTIS_FS_TEST_DOUBT"
	if os.Getenv(child) == "" { // the limit would hit the log that go test keeps of this process
		cmd := exec.Command(os.Args[0], "-test.run=^TestNothingIsSavedInDoubt$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	ctx := context.Background()
	d, err := Open(t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	save := func(n int) error { return saveText(d, "/w/a", strconv.Itoa(n-1), strconv.Itoa(n)) }
	if err := save(1); err != nil {
		t.Fatal(err)
	}
	reader := func() *sql.Tx { // of the state now
		tx, err := d.r.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		var n int
		if err := tx.QueryRow("SELECT count(*) FROM op").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return tx
	}
	tx := reader()
	defer func() { tx.Rollback() }()
	if err := save(2); err != nil {
		t.Fatal("beside a reader:", err)
	}
	again := noWrites(t)
	err = save(3)
	again()
	var lost *SyncError
	if !errors.As(err, &lost) {
		t.Fatalf("the disk took nothing, and the save said %v", err)
	}
	if ops, err := d.Open(ctx); err != nil || len(ops) != 2 {
		t.Errorf("%d operations are open, 2 were saved: %v", len(ops), err)
	}
	for range 2 { // it stays in doubt
		if err := save(4); !errors.As(err, &lost) {
			t.Errorf("accepted while what the disk has is in doubt: %v", err)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := save(5); err != nil {
		t.Error("all is on the disk, and yet:", err)
	}
	tx = reader()
	for n := 6; n < 8; n++ {
		if err := save(n); err != nil {
			t.Error("the doubt is over, and yet:", err)
		}
	}
	p, err := d.List(ctx, Filter{AllSessions: true})
	if err != nil || len(p.Checkpoints) != 5 {
		t.Errorf("%d checkpoints, 5 were saved: %v", len(p.Checkpoints), err)
	}
}

// saveText saves the change of a path from one text to another.
func saveText(d *DB, path, before, after string) error {
	state := func(s string) State { return State{Kind: File, Size: int64(len(s))} }
	_, err := d.Save(context.Background(), Op{Tool: "Edit", Kind: KindEdit, Principal: "p", Session: "s", Opening: Opening{Tag: "t"}, Changes: []Change{
		{Path: path, Role: "target", Before: state(before), Content: []byte(before), After: state(after), AfterContent: []byte(after)}}})
	return err
}
