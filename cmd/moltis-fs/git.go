package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"

	"moltisfs/checkpoint"
)

// committer is who makes the commits of an export.
const committer = "moltis-fs <moltis-fs@localhost>"

// A gitProgram is git on a repository of our own. Neither the operator's repositories nor his configuration have a say.
type gitProgram struct {
	ctx          context.Context
	program, dir string
	env          []string
}

// git finds the program and makes a bare repository in dir, which is empty.
func (in *invocation) git(ctx context.Context, dir string) (*gitProgram, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return nil, misuse("install git", "there is no git program")
	}
	g := &gitProgram{ctx, program, dir, []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "HOME=" + dir, "PATH=" + in.env("PATH")}}
	if err := g.run(nil, nil, "init", "--bare", "--quiet", "--initial-branch=checkpoints", dir); err != nil {
		return nil, misuse("name a directory that can be made", "there can be no repository in %s: %v", visible(dir), err)
	}
	return g, nil
}

func (g *gitProgram) run(stdin io.Reader, out io.Writer, args ...string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(g.ctx, g.program, args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = g.env, stdin, out, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("git: %w %s", err, visible(string(bytes.TrimSpace(said.Bytes()))))
	}
	return nil
}

// fastImport feeds git fast-import with what write writes. A stream that ends early makes nothing.
func (g *gitProgram) fastImport(write func(*bufio.Writer) error) error {
	r, w := io.Pipe()
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
	err := g.run(r, nil, "-C", g.dir, "fast-import", "--quiet")
	r.CloseWithError(err)
	if werr := <-written; werr != nil { // git's error, where it ended first
		return werr
	}
	return err
}

// diff writes what makes the tree "after" of the tree "before".
func (g *gitProgram) diff(out io.Writer) error {
	return g.run(nil, out, "-C", g.dir, "diff", "--binary", "--full-index", "--no-renames", "--no-color", "before", "after")
}

const gitLink = "120000"

// gitMode is the mode of what git would store, "" for nothing.
func gitMode(s checkpoint.State) string {
	switch {
	case s.Kind == checkpoint.Symlink:
		return gitLink
	case s.Kind != checkpoint.File:
		return ""
	case s.Mode&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// gitModes are those of both sides of a change. Where nobody recorded the mode of one, it is taken to be that of the other.
func gitModes(c *checkpoint.Recorded) (before, after string) {
	b, a := c.Before, c.After
	if b.Kind == checkpoint.File && a.Kind == checkpoint.File {
		if b.Mode == 0 {
			b.Mode = a.Mode
		}
		if a.Mode == 0 {
			a.Mode = b.Mode
		}
	}
	return gitMode(b), gitMode(a)
}
