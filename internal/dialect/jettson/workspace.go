package jettson

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"moltisfs/approval"
	"moltisfs/dialect"
	"moltisfs/internal/engine"
)

// workspace is where a caller's workspace is, also before it is made.
func (d *Dialect) workspace(principal, session string) string {
	if d.cfg.Workspaces == "" {
		return d.root
	}
	name := dirName(principal, "local")
	if d.cfg.PerSession {
		name += "%" + dirName(session, "default")
	}
	return path.Join(d.cfg.Workspaces, name)
}

var plain = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// dirName is a directory's name for a caller's: two callers never share one, on any file system. A
// name that is not plain is hashed.
func dirName(name, fallback string) string {
	if name == "" {
		name = fallback
	}
	if plain.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "%" + hex.EncodeToString(sum[:16])
}

// within is the workspace as a scope, less what the caller's own scope leaves out.
func within(home string, own *dialect.Scope) *engine.Scope {
	if own == nil {
		return &engine.Scope{Readable: []string{home}, Writable: []string{home}}
	}
	both := func(paths []string) (out []string) {
		for _, p := range paths {
			switch p = path.Clean(p); {
			case inside(home, p):
				return []string{home}
			case inside(p, home):
				out = append(out, p)
			}
		}
		return out
	}
	return &engine.Scope{Readable: both(own.Readable), Writable: both(own.Writable)}
}

func inside(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// resolve makes a path of the host's out of the model's. What would leave /workspace has none.
func (c *call) resolve() {
	c.path = "."
	switch a := c.args.(type) {
	case *pathArgs:
		c.path = a.Path
	case *writeArgs:
		c.path = a.Path
	case *listArgs:
		if a.Path != nil {
			c.path = *a.Path
		}
	}
	rel := c.path
	if rest, ok := strings.CutPrefix(rel, "/workspace"); ok && (rest == "" || rest[0] == '/') {
		rel = "." + rest
	}
	if rel == "" || rel[0] == '/' || strings.ContainsRune(rel, 0) ||
		slices.Contains(strings.Split(rel, "/"), "..") {
		return
	}
	c.at = path.Join(c.home, rel)
	c.Trace.Paths = []string{c.at}
}

// make makes the workspace where it is missing. The operator has asked for that, so nobody else is.
func (c *call) make(ctx context.Context) error {
	if c.d.cfg.Workspaces == "" {
		return nil
	}
	_, err := c.d.e.Stat(ctx, c.Call, c.home, true)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	asked := c.Approver
	defer func() { c.Approver = asked }()
	c.Approver = approval.Yes("tools.jettson.workspaces")
	_, err = c.d.e.Mkdir(ctx, c.Call, engine.MkdirArgs{Path: c.home, Exists: true})
	return err
}

// Events has none: nothing is watched.
func (d *Dialect) Events(ctx context.Context, _, _ string, after int64, _ int) (dialect.Events,
	error) {
	<-ctx.Done()
	return dialect.Events{Next: after}, nil
}

// EndSession moves the workspace of a session to the trash, where each session has one.
func (d *Dialect) EndSession(ctx context.Context, principal, session string) error {
	if !d.cfg.PerSession || d.cfg.Workspaces == "" {
		return nil
	}
	home := d.workspace(principal, session)
	var failed error
	c := &engine.Call{Principal: principal, Session: session, Dialect: "jettson",
		Tool:   "jettson_session_end",
		Client: engine.Client{Approver: approval.Yes("tools.jettson.per_session")}}
	err := d.e.Do(ctx, c, engine.Operation{Changes: true,
		Run: func(ctx context.Context) error {
			_, err := d.e.Delete(ctx, c, home, engine.DeleteOptions{Recursive: true})
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		},
		Refuse: func(_ context.Context, err error) string {
			if r := engine.Reason(err); r != nil {
				failed = err
				return string(r.Code)
			}
			return ""
		},
	})
	return errors.Join(err, failed)
}
