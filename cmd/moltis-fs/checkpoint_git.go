package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"unicode"
)

// gitLink is git's mode of a symbolic link.
const gitLink = "120000"

// A scratch is a bare repository in a temporary directory. Neither the user's repositories nor his
// configuration have a say in it.
type scratch struct {
	ctx          context.Context
	program, dir string
	env          []string
}

// newScratch makes a repository, which the caller removes. path is $PATH.
func newScratch(ctx context.Context, path string) (*scratch, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, misuse("install git", "there is no git program")
	}
	dir, err := os.MkdirTemp("", "moltis-fs-export-")
	if err != nil {
		return nil, fmt.Errorf("making a temporary directory: %w", err)
	}
	s := &scratch{ctx, program, dir, []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "HOME=" + dir, "PATH=" + path}}
	if err = s.run(nil, nil, "init", "--bare", "--quiet", dir); err != nil {
		_ = os.RemoveAll(dir)
	}
	return s, err
}

func (s *scratch) run(stdin io.Reader, out io.Writer, args ...string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(s.ctx, s.program, args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.dir, s.env, stdin, out, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("git: %w %q", err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// take feeds git fast-import with what write writes. A stream that ends early makes nothing.
func (s *scratch) take(write func(*bufio.Writer) error) error {
	in, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		b := bufio.NewWriter(w)
		b.WriteString("feature done\n")
		err := write(b)
		if err == nil {
			b.WriteString("done\n")
			err = b.Flush()
		}
		w.CloseWithError(err)
		written <- err
	}()
	err := s.run(in, nil, "fast-import", "--quiet")
	in.CloseWithError(err)
	if werr := <-written; werr != nil { // git's error, where it ended first
		return werr
	}
	return err
}

// beginCommit begins the only commit of a branch.
func beginCommit(w *bufio.Writer, branch string) {
	fmt.Fprintf(w, "commit refs/heads/%s\ncommitter moltis-fs <moltis-fs@localhost> 0 +0000\ndata 0\n\n", branch)
}

// diff writes to out how the tree of the branch before becomes the tree of the branch after.
func (s *scratch) diff(out io.Writer) error {
	return s.run(nil, out, "diff", "--binary", "--full-index", "--no-renames", "--no-color", "before", "after")
}

// gitModulesName are the names of .gitmodules on NTFS, and some more.
var gitModulesName = regexp.MustCompile(`^(?:\.gitmodules|gitmod~.*|g?i?[0-9a-f]*~[0-9]+)$`)

// gitRefuses says whether git may take no file of that path, which is relative and has slashes. One
// such path, and git apply takes nothing of a whole patch. A name that leads into a repository on
// some file system is refused on all, because nobody knows where the patch goes: with letters that
// HFS+ ignores, or with dots, spaces or a stream behind it, or by its short name, on NTFS.
func gitRefuses(path string, link bool) bool {
	for _, name := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		name = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) {
				return -1
			}
			return unicode.ToLower(r)
		}, name)
		name, _, _ = strings.Cut(name, string(unicode.ReplacementChar)) // git reads no further
		name, _, _ = strings.Cut(name, ":")
		name = strings.TrimRight(name, ". ")
		if name == ".git" || name == "git~1" || link && gitModulesName.MatchString(name) {
			return true
		}
	}
	return path == "" // the root directory itself
}
