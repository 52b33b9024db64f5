// Package doctor finds faults that an operator should mend before an agent is let in: files that are obeyed
// and that others may write, too much that is open, changes without a question, a kernel that is too old.
//
// For example, a configuration that others may write to is a "hazard". It changes nothing and looks
// at modes and owners of the operator's files only.
package doctor

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// Level is how much a Finding matters.
type Level string

// The levels.
const (
	OK     Level = "ok"     // it was tried, and works
	Weaker Level = "weaker" // a promise holds less here
	Hazard Level = "hazard" // an agent, or another user, could do harm
)

// A Finding is one thing that somebody should mend.
type Finding struct {
	Level Level  `json:"level"`
	About string `json:"about"`          // kernel, config, program, data, policy, sandbox, fleet
	Path  string `json:"path,omitempty"` // absolute
	What  string `json:"what"`
	Hint  string `json:"hint,omitempty"` // the next move
}

// Options names what Look looks at. All paths are absolute.
type Options struct {
	Roots   []string // what an agent may reach; none: everything
	Inside  bool     // no agent reaches this machine: all calls run in a sandbox
	Config  string   // "": the defaults hold
	Program string
	Obeyed  []string // hooks and policies
	Data    string   // it need not be there yet
	Home    string   // "": there is none
	Lifted  string   // what the configuration takes from the protected classes; "": nothing
	Unasked bool     // nobody is asked before a change
	Lasting bool     // a change can't be undone
}

// Look gives the findings; none where nothing is to be mended.
func Look(o Options) (found []Finding) {
	say := func(level Level, about, path, what, hint string) {
		found = append(found, Finding{level, about, path, what, hint})
	}
	tree, err := guardfs.New(guardfs.Options{Judge: policy.AllowAll{}})
	if err == nil {
		defer tree.Close() //nolint:errcheck // nothing was written through it
	}
	if err == nil && tree.Containment() == "walk" {
		say(Weaker, "kernel", "", "openat2 is not there: paths are walked one name after the other",
			"use Linux 5.6 or newer, and a container profile that lets openat2 through")
	}
	o.Data, o.Home = guardfs.Canonical(o.Data), guardfs.Canonical(o.Home)
	o.Roots = slices.Clone(o.Roots)
	for i, root := range o.Roots {
		o.Roots[i] = guardfs.Canonical(root)
	}
	file := func(about, path, harm string) {
		real := guardfs.Canonical(path)
		if path == "" {
			return
		}
		if who := cmp.Or(writable(path), writable(real)); who != "" {
			say(Hazard, about, path, who, "chmod go-w it, or chown it: "+harm)
		} else if root := o.rootOf(real); root != "" {
			say(Hazard, about, path, "it lies in "+root+", which an agent may reach", "move it out: "+harm)
		}
	}
	file("program", o.Program, "whoever writes to it is who runs it")
	file("config", o.Config, "whoever writes to it makes the rules")
	for _, name := range o.Obeyed {
		file("config", name, "whoever writes to it decides about each call")
	}
	if info, err := os.Stat(o.Data); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		say(Hazard, "data", o.Data, fmt.Sprintf("others may write in it (%v)", info.Mode()),
			"chmod 700 it; a start refuses it as it is")
	}
	if root := o.rootOf(o.Data); root != "" {
		say(Hazard, "data", o.Data, "it lies in "+root+", which an agent may reach",
			"move it out: other programs of the agent's can change it there")
	}
	if o.Lifted != "" {
		say(Weaker, "policy", "", "not protected: "+o.Lifted, "take that out of the configuration")
	}
	if o.Unasked {
		say(Weaker, "policy", "", "no approver: changes are made without a question", "require_approval = true")
	}
	if o.Lasting {
		say(Weaker, "policy", "", "undo is off: a change can't be taken back", "checkpoint_before_mutation = true")
	}
	if len(o.Roots) == 0 && !o.Inside {
		say(Hazard, "policy", "", "every path that is not denied is accessible",
			"give --root, or allow_paths in the configuration")
	}
	for _, root := range o.Roots {
		if within(o.Home, root) || within("/root", root) || within("/home", root) {
			say(Hazard, "policy", root, "it holds a home directory, with its keys and start-up files",
				"allow the directory of the project only")
		}
	}
	return found
}

// rootOf is the root that a path lies in; "" for none.
func (o *Options) rootOf(path string) string {
	for _, root := range o.Roots {
		if within(path, root) {
			return root
		}
	}
	return ""
}

// writable says how others may write to a file, or to a directory in which it, or one above it,
// could be replaced; "" for neither. On Windows the modes say nothing.
func writable(path string) string {
	if runtime.GOOS == "windows" {
		return ""
	}
	others := fs.FileMode(0o022)
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err == nil && info.Mode()&others != 0 && !(info.IsDir() && info.Mode()&fs.ModeSticky != 0) {
			return fmt.Sprintf("others may write to %s (%v)", at, info.Mode())
		}
		if err == nil && at == path && !ours(info) {
			return "it is somebody else's"
		}
		if at == filepath.Dir(at) {
			return ""
		}
		if at != path {
			others = 0o002 // farther up a group is mostly that of a single user
		}
	}
}

// Writable says how another user could have written a file that is obeyed: "" for not at all. Root's
// files are nobody else's, and a group is mostly that of a single user.
func Writable(info fs.FileInfo) string {
	switch {
	case runtime.GOOS == "windows":
	case info.Mode().Perm()&0o002 != 0:
		return fmt.Sprintf("can be written by anybody (%v)", info.Mode())
	case !ours(info):
		return "belongs to another user"
	}
	return ""
}

// within says whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
