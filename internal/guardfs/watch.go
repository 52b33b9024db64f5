package guardfs

import (
	"errors"
	"os"
	"strconv"
	"strings"
)

// MostWatched is how many directories a process should watch: half of what the system lets a user
// watch, and 80,000 at the most. Other programs of the user need some too.
func MostWatched() int64 {
	const most = 80_000
	text, _ := os.ReadFile("/proc/sys/fs/inotify/max_user_watches") // elsewhere there is none
	if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
		return min(n/2, most)
	}
	return most
}

// ErrUnwatchable: no watcher can tell all changes of this directory, or not as soon as they are
// needed.
var ErrUnwatchable = errors.New("changes cannot be watched here")

// Happening is the fate of an entry.
type Happening uint8

// The happenings. A rename within what is watched is a MovedFrom and a MovedTo with one Cookie.
const (
	Modified Happening = iota // content or metadata
	Created
	Removed
	MovedFrom
	MovedTo
)

// Event is one change in a watched directory.
type Event struct {
	What   Happening
	Cookie uint32
	Dir    bool // the entry is a directory
	Ended  bool // the watch is over

	Watch int    // of Watcher.Watch
	Name  string // of the entry; "" when it is the directory itself
	Lost  bool   // events were dropped; Watch and Name mean nothing
}
