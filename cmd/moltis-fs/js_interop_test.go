package main

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var whole = flag.Bool("whole", false, "run all scripts beside Node, not a few")

// nodeScript has what runs a script by Node in a directory: the same contract by another engine.
func nodeScript(t testing.TB, file, dir string) *exec.Cmd {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: there is no node")
	}
	shim, err := filepath.Abs("../../testdata/js/node.mjs")
	must(t, err)
	cmd := exec.Command("node", shim, file)
	cmd.Dir = dir
	return cmd
}

// withFS is a configuration for scripts that change files with nobody to ask.
const withFS = "[tools.fs]\nrequire_approval = false\n[tools.js]\nfilesystem = true\n"

// ourScript has what runs a script by us in a directory.
func ourScript(t testing.TB, file, dir, data string) *exec.Cmd {
	t.Helper()
	config := filepath.Join(filepath.Dir(file), "moltis.toml")
	must(t, os.WriteFile(config, []byte(withFS), 0o600))
	cmd := exec.Command(binary(t), "js", "run", file, "--root", dir, "--data-dir", data, "--config", config)
	cmd.Dir = dir
	return cmd
}

// runOn gives the output of a script, and the tree afterwards.
func runOn(t *testing.T, s script, by func(file, dir string) *exec.Cmd) (string, map[string]string) {
	t.Helper()
	dir, file := makeTree(t, s.tree), filepath.Join(t.TempDir(), "script.mjs")
	must(t, os.WriteFile(file, []byte(s.code), 0o600))
	cmd := by(file, dir)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil || said.Len() > 0 {
		t.Errorf("%v\n%s", err, said.String())
	}
	return string(out), treeOf(t, dir)
}

// unlikeNode are templates whose scripts are known to differ, and why.
var unlikeNode = map[string]string{"urls": "URL leaves the names of hosts as they are written: there is no IDNA"}

// besideNode runs scripts by us and by Node, each on its own copy of a tree, and compares what they
// write and what they leave. It gives how many are the same.
func besideNode(t *testing.T, scripts []script) (same int) {
	data, mu := filepath.Join(t.TempDir(), "data"), sync.Mutex{}
	t.Run("each", func(t *testing.T) {
		for _, s := range scripts {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				want, wantTree := runOn(t, s, func(file, dir string) *exec.Cmd { return nodeScript(t, file, dir) })
				out, tree := runOn(t, s, func(file, dir string) *exec.Cmd { return ourScript(t, file, dir, data) })
				if template, _, _ := strings.Cut(s.name, " "); unlikeNode[template] != "" {
					if out == want && maps.Equal(tree, wantTree) {
						t.Errorf("it is as by Node now; %s holds no more", unlikeNode[template])
					}
					return
				}
				if out != want {
					t.Errorf("it writes\n%.2000s\nand by Node\n%.2000s", out, want)
				}
				for _, name := range slices.Sorted(maps.Keys(wantTree)) {
					if now, ok := tree[name]; !ok || now != wantTree[name] {
						t.Errorf("%s is there: %t, with %.200q; by Node %.200q", name, ok, now, wantTree[name])
					}
					delete(tree, name)
				}
				for name := range tree {
					t.Errorf("%s is there, but not by Node", name)
				}
				if !t.Failed() {
					mu.Lock()
					same++
					mu.Unlock()
				}
			})
		}
	})
	return same
}

// Five hundred scripts of the kind that models write leave the same trees and the same output as by Node.
func TestScriptsBesideNode(t *testing.T) {
	if !*whole {
		t.Skip("SKIPPED: -whole runs all; TestSomeScriptsBesideNode has a few")
	}
	all := scripts(t)
	same := besideNode(t, all)
	t.Logf("\n| scripts | same tree and output as Node |\n|---:|---:|\n| %d | %d |", len(all), same)
}

// A few of them always run: one of each tree and each kind of walk.
func TestSomeScriptsBesideNode(t *testing.T) {
	var some []script
	all := scripts(t)
	for i := 0; i < len(all); i += len(all)/9 + 1 {
		some = append(some, all[i])
	}
	besideNode(t, some)
}
