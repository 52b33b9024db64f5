// Package gitrepo makes git repositories of our own with the git program, which has to be there.
// Neither the user's repositories nor his configuration have a say, and nothing but the named
// directory is touched. It knows which paths git refuses.
package gitrepo

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Link is git's mode of a symbolic link.
const Link = "120000"

// An Error is about what the caller asked for: no git, or a directory that can't be used.
type Error struct{ Why, Hint string }

func (e *Error) Error() string { return e.Why }

// A Repository is bare. It has a branch "checkpoints" once something is committed to it.
type Repository struct {
	ctx          context.Context
	program, dir string
	env          []string
}

// Scratch runs use with a repository in a temporary directory. path is $PATH.
func Scratch(ctx context.Context, path string, use func(*Repository) error) (err error) {
	dir, err := os.MkdirTemp("", "moltis-fs-export-")
	if err != nil {
		return fmt.Errorf("making a temporary directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r, err := initialise(ctx, path, dir)
	if err == nil {
		err = use(r)
	}
	return err
}

// Create makes a repository of what write writes for git fast-import. It is made beside dir, which
// is empty or not there, and gets its name when it is complete. A failure leaves nothing.
func Create(ctx context.Context, path, dir string, write func(*bufio.Writer) error) (err error) {
	parent := filepath.Dir(dir)
	var made []string // directories, the deepest first
	for at := parent; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = append(made, at)
	}
	defer func() {
		for _, at := range made {
			if err == nil || os.Remove(at) != nil { // others have put something there
				break
			}
		}
	}()
	err = os.MkdirAll(parent, 0o777)
	var aside string
	if err == nil {
		aside, err = os.MkdirTemp(parent, ".export-")
	}
	if err != nil {
		return unusable(dir, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(aside)) }()
	r, err := initialise(ctx, path, filepath.Join(aside, "repository"))
	if err == nil {
		err = r.FastImport(write)
	}
	if err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unusable(dir, err)
	}
	if err := os.Rename(r.dir, dir); err != nil {
		return fmt.Errorf("moving the repository to its place: %w", err)
	}
	return nil
}

func unusable(dir string, err error) error {
	return &Error{fmt.Sprintf("there can be no repository in %s: %v", strconv.Quote(dir), err),
		"name a directory that does not exist yet and can be made"}
}

func initialise(ctx context.Context, path, dir string) (*Repository, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, &Error{"there is no git program", "install git"}
	}
	r := &Repository{ctx, program, dir, []string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "HOME=" + dir, "PATH=" + path,
	}}
	err = r.run(nil, nil, "init", "--bare", "--quiet", "--initial-branch=checkpoints", dir)
	if err != nil {
		return nil, unusable(dir, err)
	}
	return r, nil
}

func (r *Repository) run(stdin io.Reader, out io.Writer, args ...string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(r.ctx, r.program, args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.env, stdin, out, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("git: %w %q", err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// FastImport feeds git fast-import with what write writes. A stream that ends early makes nothing.
func (r *Repository) FastImport(write func(*bufio.Writer) error) error {
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
	err := r.run(in, nil, "-C", r.dir, "fast-import", "--quiet")
	in.CloseWithError(err)
	if werr := <-written; werr != nil { // git's error, where it ended first
		return werr
	}
	return err
}

// Diff writes what makes the tree of the branch after of that of before.
func (r *Repository) Diff(out io.Writer, before, after string) error {
	return r.run(nil, out, "-C", r.dir, "diff", "--binary", "--full-index", "--no-renames",
		"--no-color", before, after)
}
