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
	"moltisfs/internal/engine"
)

// workspace is where a caller's workspace is, also before it is made.
func (d *Dialect) workspace(principal, session string) string {
	if d.cfg.Workspaces == "" {
		return d.e.Config().WorkspaceRoot
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

// resolve makes a path of the host's out of the model's. What would leave /workspace has none.
func (c *call) resolve(given any) {
	c.path, c.at = ".", ""
	switch a := given.(type) {
	case *pathArgs:
		c.path = a.Path
	case *writeArgs:
		c.path, c.content = a.Path, a.Content
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
	if c.cfg.Workspaces == "" {
		return nil
	}
	_, err := c.e.Stat(ctx, c.Call, c.home, true)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	asked := c.Approver
	defer func() { c.Approver = asked }()
	c.Approver = approval.Yes("tools.jettson.workspaces")
	_, err = c.e.Mkdir(ctx, c.Call, engine.MkdirArgs{Path: c.home, Exists: true})
	return err
}

// EndSession moves the workspace of a session to the trash, where each session has one.
func (d *Dialect) EndSession(ctx context.Context, principal, session string) error {
	if !d.cfg.PerSession || d.cfg.Workspaces == "" {
		return nil
	}
	c := &engine.Call{Principal: principal, Session: session, Dialect: "jettson",
		Tool:   "jettson_session_end",
		Client: engine.Client{Approver: approval.Yes("tools.jettson.per_session")}}
	return d.e.Do(ctx, c, engine.Operation{Changes: true,
		Run: func(ctx context.Context) error {
			home := d.workspace(principal, session)
			_, err := d.e.Delete(ctx, c, home, engine.DeleteOptions{Recursive: true})
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		},
		Refuse: func(context.Context, error) string { return "" }, // nobody is there to be refused
	})
}
