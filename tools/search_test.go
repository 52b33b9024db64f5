package tools_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/grep/ignore"
	"moltisfs/readers"
	"moltisfs/tools"
)

// TestTheUsersOwnExcludes: what git would not show the user, Grep and Glob leave out, and say so.
func TestTheUsersOwnExcludes(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, ".config", "git", "ignore"), "*.mine\n")
	user := ignore.User{Home: home, Read: os.ReadFile}
	for _, respect := range []bool{true, false} {
		s, root := suite(t, func(fs *config.FS) { fs.RespectGitignore = respect }, tools.Options{GitUser: user})
		write(t, filepath.Join(root, "a.mine"), "needle\n")
		write(t, filepath.Join(root, "b.txt"), "needle\n")
		want, ignored := 2, 0
		if respect {
			want, ignored = 1, 1
		}
		g := call(t, s, "Grep", map[string]any{"pattern": "needle"}).(*tools.Grep)
		if len(g.Files) != want || g.Skipped["ignored"].Count != ignored {
			t.Errorf("respect %v: Grep %v, skipped %v", respect, g.Files, g.Skipped)
		}
		if l := call(t, s, "Glob", map[string]any{"pattern": "*"}).(*tools.Glob); len(l.Paths) != want {
			t.Errorf("respect %v: Glob %v", respect, l.Paths)
		}
	}
}

// TestSearchText: the text that a model sees has the shapes of Claude Code's Grep and Glob, and says what is not there.
func TestSearchText(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	write(t, filepath.Join(root, "a.txt"), "one\nneedle 1\nthree\nfour\nfive\nsix\nneedle needle\r\n")
	write(t, filepath.Join(root, "b.txt"), "needle\n")
	write(t, filepath.Join(root, "bin"), "\x00other\n")
	old := time.Now().Add(-time.Hour)
	for _, f := range []string{"b.txt", "bin"} {
		if err := os.Chtimes(filepath.Join(root, f), old, old); err != nil {
			t.Fatal(err)
		}
	}
	named := "\n[binary file matches: ROOT/bin; Read with encoding: \"utf-8\" shows its text]"
	for _, c := range []struct{ tool, args, want string }{
		{"Grep", `{"pattern":"needle"}`, "Found 2 files in ROOT\na.txt\nb.txt"},
		{"Grep", `{"pattern":"needle","head_limit":1}`, "Found 2 files\nROOT/a.txt\n[1 of 2 files; go on with offset 1]"},
		{"Grep", `{"pattern":"other"}`, "No files found" + named},
		{"Grep", `{"pattern":"other|needle"}`, "Found 2 files in ROOT\na.txt\nb.txt" + named},
		{"Grep", `{"pattern":"other","output_mode":"content","path":"ROOT/bin"}`, "No matches found" + named},
		{"Grep", `{"pattern":"other","output_mode":"content"}`, "No matches found" + named},
		{"Grep", `{"pattern":"needle","offset":7}`, "No entries at this offset, of 2 files"},
		{"Grep", `{"pattern":"nothing","offset":7}`, "No files found"},
		{"Grep", `{"pattern":"needle","output_mode":"content","offset":7}`, "No entries at this offset, of 3 rows"},
		{"Grep", `{"pattern":"nothing","output_mode":"content"}`, "No matches found"},
		{"Grep", `{"pattern":"needle","output_mode":"count","offset":7}`, "No entries at this offset, of 2 files"},
		{"Grep", `{"pattern":"nothing","output_mode":"count"}`, "No matches found"},
		{"Grep", `{"pattern":"needle","output_mode":"count"}`, "In ROOT:\na.txt:2\nb.txt:1\n\nFound 4 total occurrences across 2 files."},
		{"Grep", `{"pattern":"needle$","output_mode":"content"}`, "In ROOT:\na.txt:7:needle needle\nb.txt:1:needle"},
		{"Grep", `{"pattern":"needle","output_mode":"content","-n":false,"-o":true}`,
			"In ROOT:\na.txt:needle\na.txt:needle\na.txt:needle\nb.txt:needle"},
		{"Grep", `{"pattern":"needle","output_mode":"content","-C":1}`,
			"In ROOT:\na.txt-1-one\na.txt:2:needle 1\na.txt-3-three\n--\na.txt-6-six\na.txt:7:needle needle\n--\nb.txt:1:needle"},
		{"Grep", `{"pattern":"needle","output_mode":"content","path":"ROOT/a.txt","-B":1,"-C":3}`,
			"1-one\n2:needle 1\n3-three\n4-four\n5-five\n6-six\n7:needle needle"},
		{"Grep", `{"pattern":"needle","output_mode":"content","-C":1,"head_limit":4}`,
			"In ROOT:\na.txt-1-one\na.txt:2:needle 1\na.txt-3-three\n--\na.txt-6-six\n[4 of 6 rows, cut within a block; go on with offset 4]"},
		{"Grep", `{"pattern":"needle","output_mode":"","glob":"b.txt a"}`,
			"Found 1 file\nROOT/b.txt\n[glob was read as the list b.txt | a, and as one name; within a list a blank of a name is written \"\\ \"]"},
		{"Grep", `{"pattern":"needle","glob":"!a file b.txt"}`, "Found 2 files in ROOT\na.txt\nb.txt"},
		{"Grep", `{"pattern":"needle","glob":"!a.txt !b.txt"}`, "No files found"},
		{"Glob", `{"pattern":"*.txt,!a*"}`, "ROOT/b.txt"},
		{"Glob", `{"pattern":"*.txt"}`, "In ROOT:\na.txt\nb.txt"},
		{"Glob", `{"pattern":"*","limit":1}`, "ROOT/a.txt\n[1 of 3 files; go on with offset 1]"},
		{"Glob", `{"pattern":"*","offset":9}`, "No files at this offset, of 3"},
		{"Glob", `{"pattern":"*.go"}`, "No files found"},
		{"Glob", `{"pattern":"*.go *.md"}`, "No files found"},
		{"Glob", `{"pattern":" "}`, "No files found"},
		{"Glob", `{"pattern":"src"}`, "No files found"},
		{"Grep", `{"pattern":"x","output_mode":"files"}`, "output_mode is \"files\"; it takes files_with_matches, content, count\nUse files_with_matches."},
	} {
		p, err := s.Call(t.Context(), tools.Call{Principal: "local", Session: "s", Tool: c.tool, Args: []byte(strings.ReplaceAll(c.args, "ROOT", root))})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(p.Text(), root, "ROOT"); got != c.want {
			t.Errorf("%s %s:\n%s\nwant\n%s", c.tool, c.args, got, c.want)
		}
	}
}

// What is binary to Read is binary to Grep, and what is text to one is text to the other, wherever the NULs are.
func TestReadAndGrepAgreeOnBinaries(t *testing.T) {
	s, root := suite(t, nil, tools.Options{})
	code := strings.Repeat("export function fn(){}\n", 600)
	files := map[string]string{
		"end": code + "\x00", "log": strings.Repeat("fn was called\n", 120_000) + "\x00", "block": code + strings.Repeat("\x00", 600) + "fn\n",
		"wide": "\xff\xfef\x00n\x00\x00\x00\n\x00", "archive.sh": "#!/bin/sh\n" + code + "exit é\n" + strings.Repeat("\x1f\x8b\x00\xff", 9000),
		"head": "fn\x00", "7999": strings.Repeat("fn\n", 2666) + "f\x00", "8000": strings.Repeat("fn\n", 2666) + "fn\x00", "zeros": strings.Repeat("\x00", 5000) + code,
		"controls": strings.Repeat("fn\x01=\x02\n", 40), "noise": "fn \xfe\xff\x01\x02\x03\x80\x81\n", "plain": "fn\n",
	}
	for name, content := range files {
		write(t, filepath.Join(root, name), content)
	}
	all := call(t, s, "Grep", map[string]any{"pattern": "fn", "path": root}).(*tools.Grep)
	if len(all.Files)+len(all.Binary) != len(files) {
		t.Errorf("%d files, binary %v, of %d", len(all.Files), all.Binary, len(files))
	}
	for name := range files {
		path := filepath.Join(root, name)
		_, binary := call(t, s, "Read", map[string]any{"file_path": path, "limit": 5}).(*tools.Content).Body.(*readers.Binary)
		one := call(t, s, "Grep", map[string]any{"pattern": "fn", "path": path, "output_mode": "content"}).(*tools.Grep)
		if binary != slices.Contains(all.Binary, path) || binary == slices.Contains(all.Files, path) || binary != (len(one.Matches) == 0) || binary != (len(one.Binary) == 1) {
			t.Errorf("%s is binary to Read: %v; to Grep: %v, %v, by path %d rows", name, binary, all.Binary, all.Files, len(one.Matches))
		}
		if binary { // the argument that the answer names shows it
			if m, ok := call(t, s, "Read", map[string]any{"file_path": path, "encoding": "utf-8"}).(*tools.Content).Body.(*readers.Text); !ok || !strings.Contains(m.Content, "f") {
				t.Errorf("%s with an encoding: %+v", name, m)
			}
		}
	}
}
