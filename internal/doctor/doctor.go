// Package doctor says what an operator should know before an agent is let in: what the kernel and
// the file systems below the roots can't do here, and what is dangerous in how things are set up.
//
// For example, a root on NFS is "weaker", because watches do not see what other machines change. A
// configuration that others may write to is a "hazard".
//
// It changes nothing and opens no file of the agent's. Of the trees it looks at names, kinds and
// identities only, through package guardfs.
package doctor

import (
	"cmp"
	"context"
	"errors"
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
	OK     Level = "ok"
	Weaker Level = "weaker" // a promise holds less here, for a reason outside of this program
	Hazard Level = "hazard" // an agent, or another user, could do harm
)

// A Finding is one thing that was looked at.
type Finding struct {
	Level Level  `json:"level"`
	About string `json:"about"`          // kernel, root, config, program, data, policy
	Path  string `json:"path,omitempty"` // absolute
	What  string `json:"what"`
	Hint  string `json:"hint,omitempty"` // the next move
}

// A sayer takes what a Finding holds, in its order.
type sayer = func(level Level, about, path, what, hint string)

// Options is what there is to look at. All paths are absolute.
type Options struct {
	Roots   []string // what an agent may reach; none: everything
	Inside  bool     // no agent reaches this machine: all calls run in a sandbox
	Config  string   // "": the defaults hold
	Program string
	Obeyed  []string // hooks and policies
	Data    string   // it need not be there yet
	Home    string   // "": there is none
	Lifted  string   // what the configuration takes from the protected classes; "": nothing

	// Budget is how many names of each root are looked at for hard links; 200,000 when 0.
	Budget int
}

// Look gives the findings, those of the machine first. The error is that of ctx.
func Look(ctx context.Context, o Options) ([]Finding, error) {
	var found []Finding
	say := func(level Level, about, path, what, hint string) {
		found = append(found, Finding{level, about, path, what, hint})
	}
	kernel(say)
	o.Data, o.Home = guardfs.Canonical(o.Data), guardfs.Canonical(o.Home)
	o.Roots = slices.Clone(o.Roots)
	for i, root := range o.Roots {
		o.Roots[i] = guardfs.Canonical(root)
	}
	o.file(say, "program", o.Program, "whoever writes to it is who runs it")
	o.file(say, "config", o.Config, "whoever writes to it makes the rules")
	for _, name := range o.Obeyed {
		o.file(say, "config", name, "whoever writes to it decides about each call")
	}
	o.data(say)
	o.reach(say)
	mounts := readMounts(say)
	for _, root := range o.Roots {
		if _, err := os.Stat(root); err != nil {
			say(Weaker, "root", root, "nothing can be seen here", "make it, or take the rule away")
			continue
		}
		mounts.of(say, root)
		if err := o.hardLinks(ctx, say, root); err != nil {
			return nil, err
		}
	}
	return found, ctx.Err()
}

// file says whether others may write to a file of the operator's; path is "" for one that is not
// there.
func (o *Options) file(say sayer, about, path, harm string) {
	if path == "" {
		return
	}
	real := guardfs.Canonical(path)
	who := cmp.Or(writable(path), writable(real))
	switch {
	case who != "":
		say(Hazard, about, path, who, "chmod go-w it, or chown it: "+harm)
	case o.inRoot(real) != "":
		say(Hazard, about, path, "it lies in "+o.inRoot(real)+", which an agent may reach",
			"move it out: "+harm)
	default:
		say(OK, about, path, "only its owner may write to it", "")
	}
}

// inRoot is the root that a path lies in; "" for none.
func (o *Options) inRoot(path string) string {
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

// data looks at the data directory: it must be nobody else's, and no agent's.
func (o *Options) data(say sayer) {
	info, err := os.Stat(o.Data)
	switch {
	case err != nil:
		say(OK, "data", o.Data,
			"it is not there yet; the first start makes it, for its owner alone", "")
	case !info.IsDir():
		say(Hazard, "data", o.Data, "it is not a directory", "name another with --data-dir")
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0:
		say(Hazard, "data", o.Data, fmt.Sprintf("others may write in it (%v)", info.Mode()),
			"chmod 700 it; a start refuses it as it is")
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o055 != 0:
		say(Weaker, "data", o.Data, fmt.Sprintf("others may look into it (%v)", info.Mode()),
			"chmod 700 it")
	default:
		say(OK, "data", o.Data, "it is its owner's alone", "")
	}
	if root := o.inRoot(o.Data); root != "" {
		say(Hazard, "data", o.Data, "it lies in "+root+", which an agent may reach",
			"move it out: other programs of the agent's can change it there")
	}
}

// reach says where the roots are more than anybody's work, and what of the classes is lifted.
func (o *Options) reach(say sayer) {
	if o.Lifted != "" {
		say(Weaker, "policy", "", "not protected: "+o.Lifted, "take that out of the configuration")
	}
	if len(o.Roots) == 0 && !o.Inside {
		say(Hazard, "policy", "", "everything is open that is not denied",
			"give --root, or allow_paths in the configuration")
	}
	for _, root := range o.Roots {
		if within(o.Home, root) || within("/root", root) || within("/home", root) {
			say(Hazard, "policy", root,
				"it holds a home directory, with its keys and start-up files",
				"allow the directory of the project only")
		}
	}
}

// within says whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

var errBudget = errors.New("too many names")

// hardLinks counts the files below a root that have names elsewhere: an agent changes or reads them
// under its own name, and the rules for the other name do not hold unless they deny it.
func (o *Options) hardLinks(ctx context.Context, say sayer, root string) error {
	f, err := guardfs.New(guardfs.Options{Judge: policy.AllowAll{}})
	if err != nil {
		say(Weaker, "root", root, "hard links could not be looked for: "+err.Error(), "")
		return nil
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	missing, example := map[guardfs.Identity]uint64{}, map[guardfs.Identity]string{}
	left := o.Budget
	if left == 0 {
		left = 200_000
	}
	err = policy.Census(f)(root, func(path string, k guardfs.Kind, id guardfs.Identity) error {
		if left--; left < 0 {
			return errBudget
		}
		if k != guardfs.KindFile {
			return ctx.Err()
		}
		if n, seen := missing[id]; seen {
			missing[id] = n - 1
			return nil
		}
		if n := links(path); n > 1 {
			missing[id], example[id] = n-1, path
		}
		return nil
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	outside, one := 0, ""
	for id, n := range missing {
		if n > 0 {
			outside++
			if one == "" || example[id] < one {
				one = example[id]
			}
		}
	}
	switch {
	case errors.Is(err, errBudget):
		say(Weaker, "root", root, "it is too large to look for all hard links", "")
	case err != nil:
		say(Weaker, "root", root, "hard links could not be looked for: "+err.Error(), "")
	case outside > 0:
		say(Hazard, "root", root, fmt.Sprintf("files that have other names outside: %d, as %s; "+
			"what an agent reads here is the same file there", outside, one),
			"deny the other names, or copy the files")
	default:
		say(OK, "root", root, "no file has a name outside", "")
	}
	return nil
}
