package checkpoint_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"filippo.io/age"

	"moltisfs/checkpoint"
	"moltisfs/checkpoint/blob"
	"moltisfs/checkpoint/checkpointtest"
	"moltisfs/internal/fleetbox"
)

func TestFilesConform(t *testing.T) {
	dirs := map[string]string{}
	checkpointtest.Blobs(t, func(t *testing.T) blob.Store {
		if dirs[t.Name()] == "" {
			dirs[t.Name()] = t.TempDir()
		}
		return &blob.Files{Dir: dirs[t.Name()]}
	})
}

func TestS3Conforms(t *testing.T) {
	t.Parallel()
	at := map[string]string{}
	checkpointtest.Blobs(t, func(t *testing.T) blob.Store {
		if at[t.Name()] == "" {
			at[t.Name()] = fleetbox.Contents(t, nil)
		}
		return bucket(t, at[t.Name()])
	})
}

// bucket opens the store of large contents.
func bucket(t testing.TB, address string) *blob.S3 {
	t.Helper()
	s, err := blob.OpenS3(address)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDBConforms(t *testing.T) {
	checkpointtest.Store(t, func(t *testing.T) *checkpoint.DB { return open(t, t.TempDir(), checkpoint.Options{}) })
}

// A content sealed to a key that nobody here has is read back by the store that sealed it.
func TestSealedDBConforms(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	checkpointtest.Store(t, func(t *testing.T) *checkpoint.DB {
		dir := t.TempDir()
		t.Cleanup(func() { // the suite has closed the store
			db, err := sql.Open("sqlite", filepath.Join(dir, "checkpoints.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			var plain int
			if err := db.QueryRow("SELECT count(*) FROM content WHERE codec & 8 = 0").Scan(&plain); err != nil || plain > 0 {
				t.Errorf("%d contents are not sealed: %v", plain, err)
			}
		})
		return open(t, dir, checkpoint.Options{EncryptTo: id.Recipient().String()})
	})
}

func open(t testing.TB, dir string, o checkpoint.Options) *checkpoint.DB {
	t.Helper()
	d, err := openAt(dir, fleetOf(t, dir), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}
