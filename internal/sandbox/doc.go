// Package sandbox makes the system calls of a session elsewhere: in a container, a namespace or on
// another machine. A worker there, which is this program, makes them and answers; here stands its
// client, which is guardfs.Calls. The guarantees of guardfs are the same code on both ways.
//
// The parent starts the worker by a command of the operator's (docker exec -i, bwrap, ssh) and
// speaks frames with it over its standard input and output. The worker opens nothing outside its
// root, whatever it is asked, and no descriptor counts that it has not given. The parent believes
// nothing that comes back: an impossible answer ends the worker. It touches files of the agent through
// guardfs.Calls alone, and starts one process: the operator's command.
//
//	s, err := sandbox.Start(ctx, sandbox.Options{Command: argv, Root: "/work", Build: version})
//	guardfs.New(guardfs.Options{Calls: s.Calls(), Judge: judge})
//	s.Close()
//
// Its calls search, too: a search below a directory is one request, which the worker makes under
// the same rules.
//
// A worker that dies, hangs, or talks nonsense is killed and reaped. Its calls end with
// guardfs.ErrUnavailable, and so does a call that names a descriptor of it. The next call of a path
// starts another one, a few in a minute.
package sandbox

import (
	"strings"
	"time"

	"moltisfs/internal/guardfs"
)

// Cause is why a sandbox is not available, without saying once more that it is not.
func Cause(err error) string {
	return strings.TrimPrefix(err.Error(), guardfs.ErrUnavailable.Error()+": ")
}

// Options are the arguments of Start.
type Options struct {
	Command []string // of the worker, with all arguments
	Root    string   // where the session works inside: absolute
	Build   string   // of this program; a worker of another one is refused

	Hang   time.Duration     // how long a call may take, ten times as long if it only looks; 0: 30 s
	Starts int               // how often a worker may be started anew within a minute; 0: 3
	Log    func(line string) // of what happens to the worker; nil: nobody reads it
}

// Hello is the first message of a worker, about itself.
type Hello struct {
	Protocol int
	Build    string
	System   string // operating system and processor
	Root     string // its true name
	UID, GID int
	Groups   []int
	Confined bool // by the kernel, too
}
