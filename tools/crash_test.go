package tools_test

import (
	"os"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/sandbox"
	"moltisfs/internal/testbox"
	"moltisfs/internal/testdir"
	"moltisfs/tools"
)

// workerArg has the test's program be a sandbox's worker.
const workerArg = "sandbox-worker"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == workerArg {
		if err := (sandbox.Work{Root: os.Args[2], Build: "test"}).Run(0, 1); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	remove := testdir.InMemoryUnlessShort()
	tools.WithPatience(10 * time.Second)
	status := m.Run()
	remove()
	testbox.Stop()
	os.Exit(status)
}

// openTags names the operations that are saved in the store and not settled.
func openTags(t *testing.T, db *checkpoint.DB) (tags []string) {
	t.Helper()
	open, err := db.Open(t.Context())
	must(t, err)
	for _, o := range open {
		tags = append(tags, o.Tag)
	}
	return tags
}

// leftOpen opens the store of dir for a look.
func leftOpen(t *testing.T, dir string) []string {
	t.Helper()
	db, err := checkpoint.Open(dir+"/data/checkpoints", checkpoint.Options{})
	must(t, err)
	defer db.Close()
	return openTags(t, db)
}
