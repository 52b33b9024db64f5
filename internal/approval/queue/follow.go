package queue

import "time"

// LookEvery is the time between two looks of a Follower: short for people, long for a machine.
const LookEvery = 500 * time.Millisecond

// A Follower hears of the questions of a Queue as they come and end. It is for one goroutine.
type Follower struct {
	Queue *Queue

	known map[string]bool // the IDs of the questions that waited at the last look
}

// Look gives the questions that have come since the last look, the first time all that wait, and those that have ended since. None has its
// diff.
func (f *Follower) Look() (came, over []Entry, err error) {
	list, err := f.Queue.List(false)
	if err != nil {
		return nil, nil, err
	}
	waits := map[string]bool{}
	for _, e := range list {
		if waits[e.ID] = true; !f.known[e.ID] {
			came = append(came, e)
		}
	}
	for id := range f.known {
		if waits[id] {
			continue
		}
		switch e, err := f.Queue.get(id, nil); {
		case err != nil:
			over = append(over, Entry{ID: id, State: Gone})
		case e.State == Pending: // it could not be read just now
			waits[id] = true
		default:
			over = append(over, e)
		}
	}
	f.known = waits
	return came, over, nil
}
