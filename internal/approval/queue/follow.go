package queue

import (
	"errors"
	"slices"
	"time"
)

// LookEvery is the time between two looks of a Follower: short for people, long for a machine.
const LookEvery = 500 * time.Millisecond

// A Follower hears of the questions of a Queue as they come and end. It is for one goroutine.
type Follower struct {
	Queue *Queue

	known map[string]bool // the IDs of the questions that waited at the last look, which are all true
}

// Look gives the questions that have come since the last look, the first time all that wait, and those that have ended since. None has its
// diff. A question is read when it comes and when it ends: between, only its lock is looked at.
func (f *Follower) Look() (came, over []Entry, err error) {
	ids, held, err := f.Queue.unanswered()
	if err != nil {
		return nil, nil, err
	}
	waits := map[string]bool{}
	for i, id := range ids {
		if !held[i] {
			continue
		}
		if waits[id] = f.known[id]; waits[id] {
			continue
		}
		if e, err := f.Queue.get(id, nil); err == nil && e.State == Pending {
			waits[id] = true
			came = append(came, e)
		}
	}
	slices.SortFunc(came, older)
	for id := range f.known {
		if waits[id] {
			continue
		}
		switch e, err := f.Queue.get(id, nil); {
		case errors.Is(err, ErrNotFound):
			over = append(over, Entry{ID: id, State: Gone})
		case err != nil || e.State == Pending: // it could not be read just now
			waits[id] = true
		default:
			over = append(over, e)
		}
	}
	f.known = waits
	return came, over, nil
}
