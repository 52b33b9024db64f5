package guardfs

import "errors"

// ErrUnwatchable: no watcher can tell all changes of this directory.
var ErrUnwatchable = errors.New("changes cannot be watched here")

// Event is one change in a watched directory.
type Event struct {
	Watch int    // of Watcher.Watch
	Name  string // of the entry; "" when it is the directory itself
	Names bool   // the listing changed: a name came, went, or means another object
	Gone  bool   // the directory was removed, renamed or unmounted, or its watch ended
	Lost  bool   // events were dropped; Watch and Name mean nothing
}
