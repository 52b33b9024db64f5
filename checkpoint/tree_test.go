package checkpoint_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/checkpoint"
)

var (
	ctx = context.Background()
	ann = checkpoint.Scope{Principal: "ann", Session: "s"}
)

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// source is text like that of a program, about n bytes long.
func source(n int, seed int64) []byte {
	rng := rand.New(rand.NewSource(seed))
	words := strings.Fields("if err != nil { return } for range func var const struct string int64 bytes len append error ctx path hash state")
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(strings.Repeat("\t", rng.Intn(3)))
		for range 3 + rng.Intn(6) {
			b.WriteString(words[rng.Intn(len(words))])
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "x%d\n", rng.Intn(1000))
	}
	return []byte(b.String()[:n])
}

// nextVersion is b after a small edit: one to three lines in one place replaced.
func nextVersion(rng *rand.Rand, b []byte) []byte {
	lines := strings.SplitAfter(string(b), "\n")
	at, n := rng.Intn(len(lines)), 1+rng.Intn(3)
	end := min(at+n, len(lines))
	repl := fmt.Sprintf("\tresult, err := compute(ctx, %d, %q)\n", rng.Int31(), words(rng))
	return []byte(strings.Join(lines[:at], "") + repl + strings.Join(lines[end:], ""))
}

func words(rng *rand.Rand) string {
	return fmt.Sprintf("%x", rng.Int63n(1<<40))
}

func file(b []byte) checkpoint.State {
	return checkpoint.State{Kind: checkpoint.File, Mode: 0o644, Size: int64(len(b)), Hash: sum(b)}
}

func edit(path string, before, after []byte) checkpoint.Change {
	c := checkpoint.Change{Path: path, Role: "target", Content: before, AfterContent: after}
	if before != nil {
		c.Before = file(before)
	}
	if after != nil {
		c.After = file(after)
	}
	return c
}

func op(c ...checkpoint.Change) checkpoint.Op {
	return checkpoint.Op{Tool: "Edit", Kind: checkpoint.KindEdit, Principal: ann.Principal, Session: ann.Session, Changes: c}
}

func save(t testing.TB, d interface {
	Save(context.Context, checkpoint.Op) (checkpoint.Saved, error)
}, o checkpoint.Op) checkpoint.ID {
	t.Helper()
	s, err := d.Save(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	return s.ID
}

// settled saves and settles an edit.
func settled(t *testing.T, d *checkpoint.DB, changes ...checkpoint.Change) {
	t.Helper()
	if err := d.Settle(ctx, save(t, d, op(changes...)), checkpoint.Committed); err != nil {
		t.Fatal(err)
	}
}

// series saves n edits of path and returns every version.
func series(t testing.TB, d *checkpoint.DB, path string, size, n int, seed int64) [][]byte {
	t.Helper()
	rng := rand.New(rand.NewSource(seed))
	v := [][]byte{source(size, seed)}
	for range n {
		next := nextVersion(rng, v[len(v)-1])
		save(t, d, op(edit(path, v[len(v)-1], next)))
		v = append(v, next)
	}
	return v
}

func sound(t testing.TB, d *checkpoint.DB) *checkpoint.Report {
	t.Helper()
	r, err := d.Check(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Problems {
		t.Errorf("the store must be sound: %+v", p)
	}
	return r
}

func stats(t testing.TB, d *checkpoint.DB) checkpoint.Stats {
	t.Helper()
	s, err := d.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// contains reports in which files below dir the bytes can be found.
func contains(t *testing.T, dir string, what []byte) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		if strings.Contains(string(b), string(what)) {
			files = append(files, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// randomText is text that no compressor shortens much, so that it can be found again in a file.
func randomText(n int, seed int64) []byte {
	rng := rand.New(rand.NewSource(seed))
	b := make([]byte, n)
	rng.Read(b)
	return b
}

func blobFiles(t *testing.T, dir string) (out []string) {
	t.Helper()
	filepath.WalkDir(filepath.Join(dir, "blobs"), func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			out = append(out, p)
		}
		return err
	})
	return out
}
