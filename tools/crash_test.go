package tools_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/config"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/sandbox"
	"moltisfs/internal/testbox"
	"moltisfs/internal/testdir"
	"moltisfs/tools"
)

var killRounds = flag.Int("kill", 30, "rounds of TestKilledRewind; 10000 in a soak")

// killVar makes the test binary the process that is killed.
const killVar = "MOLTISFS_TOOLS_TEST_REWIND"

// workerArg has the test's program be a sandbox's worker.
const workerArg = "sandbox-worker"

func TestMain(m *testing.M) {
	if what := os.Getenv(killVar); what != "" {
		from, dir, _ := strings.Cut(what, " ")
		if err := rewindForever(from, dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
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

const rewound = 60 // files

func openRewind(dir string) (*tools.Suite, error) {
	cfg := config.Default()
	fs := &cfg.Tools.FS
	fs.AllowPaths, fs.RequireApproval, fs.CheckpointBeforeMutation, fs.CreateParents = []string{dir + "/ws/**"}, false, true, true
	return tools.Open(cfg, tools.Options{DataDir: dir + "/data"})
}

// rewindForever takes all changes back and forth. Of its files, some are created by the change that is undone, some lie in a directory
// that comes and goes.
func rewindForever(from, dir string) error {
	order := []string{"undo", "redo"}
	if from == "new" {
		order = []string{"redo", "undo"}
	}
	s, err := openRewind(dir)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		for _, id := range order {
			p, err := s.Call(context.Background(), tools.Call{Tool: "checkpoint_restore", Args: json.RawMessage(`{"id":"` + id + `"}`)})
			if err != nil {
				return err
			}
			if tools.Refused(p) {
				return fmt.Errorf("%s: %s", id, p.Text())
			}
		}
	}
}

// generation says which of its two states the tree is in: "old", "new", or "mixed".
func generation(t *testing.T, ws string) string {
	t.Helper()
	counts := map[string]int{}
	for i := range rewound {
		b, err := os.ReadFile(rewoundPath(ws, i))
		switch {
		case os.IsNotExist(err) && i%3 == 0, string(b) == oldContent(i):
			counts["old"]++
		case string(b) == newContent(i):
			counts["new"]++
		default:
			t.Fatalf("%s is neither what it was nor what it became: %q %v", rewoundPath(ws, i), b, err)
		}
	}
	for which, n := range counts {
		if n == rewound {
			return which
		}
	}
	return "mixed"
}

func rewoundPath(ws string, i int) string {
	if i%3 == 0 {
		return fmt.Sprintf("%s/made/d%d/f%d", ws, i%4, i)
	}
	return fmt.Sprintf("%s/f%d", ws, i)
}

func oldContent(i int) string { return strings.Repeat(fmt.Sprintf("old %d\n", i), 100) }
func newContent(i int) string { return strings.Repeat(fmt.Sprintf("new %d\n", i), 120) }

// newRewind makes the files and the history in a fresh directory. From there on one undo is one restore of all of them.
func newRewind(t *testing.T) (dir, ws string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws = dir + "/ws"
	for i := range rewound {
		if i%3 != 0 {
			write(t, rewoundPath(ws, i), oldContent(i))
		}
	}
	s, err := openRewind(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rewound {
		raw, _ := json.Marshal(map[string]any{"file_path": rewoundPath(ws, i), "content": newContent(i)})
		p, err := s.Call(context.Background(), tools.Call{Tool: "Write", Turn: "t", Args: raw})
		if err != nil || tools.Refused(p) {
			t.Fatalf("%v %v", p, err)
		}
	}
	if p := call(t, s, "checkpoint_restore", map[string]any{"turn": "t"}); tools.Refused(p) {
		t.Fatal(p.Text())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, ws
}

// moment is when a rewind is killed: some time, or up to 2 ms after it is announced or one of its
// first files is changed.
type moment int

const (
	anyMoment moment = iota
	announced
	afterFile
	moments
)

// openTags names the operations that are saved in the store and not settled.
func openTags(t *testing.T, db *checkpoint.DB) (tags []string) {
	t.Helper()
	open, err := db.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range open {
		tags = append(tags, o.Tag)
	}
	return tags
}

// leftOpen opens the store of dir for a look.
func leftOpen(t *testing.T, dir string) []string {
	t.Helper()
	db, err := checkpoint.Open(dir+"/data/checkpoints", checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	return openTags(t, db)
}

// killRewind runs a process that rewinds back and forth, and kills it. With few, it may have so few files open that it closes the new ones until they are published.
func killRewind(t *testing.T, dir string, at moment, few bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	if few && guardfs.SharedDirs {
		cmd = exec.Command("sh", "-c", `ulimit -n 130 && exec "$0" -test.run=^$`, os.Args[0])
	}
	cmd.Env = append(os.Environ(), killVar+"="+generation(t, dir+"/ws")+" "+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !bufio.NewScanner(out).Scan() {
		t.Fatal("the process never came up")
	}
	time.Sleep(time.Duration(rand.Intn(30_000)) * time.Microsecond)
	if at != anyMoment {
		first := func() string { b, _ := os.ReadFile(rewoundPath(dir+"/ws", 1)); return string(b) }
		db, err := checkpoint.Open(dir+"/data/checkpoints", checkpoint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		was, before := first(), openTags(t, db)
		came := func() bool {
			if at == afterFile {
				return first() != was
			}
			return slices.ContainsFunc(openTags(t, db), func(tag string) bool { return !slices.Contains(before, tag) })
		}
		for until := time.Now().Add(time.Minute); !came(); {
			if time.Now().After(until) {
				t.Fatalf("the moment %d never came", at)
			}
		}
		time.Sleep(time.Duration(rand.Intn(2_000)) * time.Microsecond)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if cmd.ProcessState.ExitCode() == 1 {
		t.Fatal("the process ended by itself")
	}
}

// A process is killed at a random moment of a rewind of many files, over and over. After the next start all files are old or all are new,
// the directories that were made for them are there or gone with them, and the history goes on from there. The looks at the tree before that start are the proof that the
// kills fall between two files: there it is mixed now and then.
func TestKilledRewind(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: long")
	}
	dir, ws := newRewind(t)
	mixed := 0
	round := 0
	for ; round < *killRounds || mixed == 0 && round < 300; round++ {
		killRewind(t, dir, moment(round)%moments, round/int(moments)%2 == 1)
		if generation(t, ws) == "mixed" {
			mixed++
		}
		s, err := openRewind(dir)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		g := generation(t, ws)
		if g == "mixed" {
			t.Fatalf("round %d: after the next start the files are %s", round, g)
		}
		if _, err := os.Stat(ws + "/made"); (err == nil) != (g == "new") {
			left, _ := filepath.Glob(ws + "/made/*")
			t.Fatalf("round %d: after the next start the files are %s, and their directories are there: %v %v", round, g, err == nil, left)
		}
		for _, in := range []string{"/", "/made/", "/made/*/"} {
			if left, _ := filepath.Glob(ws + in + ".moltis-*"); left != nil {
				t.Fatalf("round %d: temporary files are left: %v", round, left)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if left := leftOpen(t, dir); left != nil {
			t.Fatalf("round %d: operations are left open: %q", round, left)
		}
	}
	t.Logf("%d rounds, %d of them cut a rewind in two", round, mixed)
	if mixed == 0 {
		t.Error("no kill fell between two files: the test tests nothing")
	}
}

// Between the kill and the next start somebody saves, and cleans the store of everything that is older than a moment. The kill is taken back all the
// same.
func TestKilledRewindAndCleanedStore(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: long")
	}
	ctx := context.Background()
	mixed := 0
	for round := 0; round < max(3, *killRounds/10) || mixed == 0 && round < 60; round++ {
		dir, ws := newRewind(t)
		killRewind(t, dir, afterFile, false)
		if generation(t, ws) == "mixed" {
			mixed++
		}
		db, err := checkpoint.Open(dir+"/data/checkpoints", checkpoint.Options{KeepWithin: time.Nanosecond, KeepLast: checkpoint.KeepNone})
		if err != nil {
			t.Fatal(err)
		}
		_, err = db.Save(ctx, checkpoint.Op{Tool: "Write", Kind: checkpoint.KindWrite, Changes: []checkpoint.Change{{Path: ws + "/else", AfterContent: []byte("x"),
			After: checkpoint.State{Kind: checkpoint.File}}}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := db.GC(ctx, checkpoint.GCOptions{})
		if err != nil || r.Checkpoints < rewound {
			t.Fatalf("the history was to go: %+v %v", r, err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		s, err := openRewind(dir)
		if err != nil {
			t.Fatal(err)
		}
		if g := generation(t, ws); g == "mixed" {
			t.Fatal("what was cut off half-way could not be taken back any more")
		}
		for _, in := range []string{"/", "/made/", "/made/*/"} {
			if left, _ := filepath.Glob(ws + in + ".moltis-*"); left != nil {
				t.Fatalf("round %d: temporary files are left: %v", round, left)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if left := leftOpen(t, dir); left != nil {
			t.Fatalf("round %d: operations are left open: %q", round, left)
		}
	}
	if mixed == 0 {
		t.Error("no kill fell between two files: the test tests nothing")
	}
}
