package js

import (
	"cmp"
	"slices"
	"time"
)

// alarms are the timers of a script. They ring only after the parent has said that it is time,
// so that a timer that is always due keeps no reply from its place.
type alarms struct {
	byID  map[int]alarm
	order []alarm   // the one that is due first is the first
	rung  time.Time // timers that are due by then ring
	asked time.Time // when the parent is to say so
}

type alarm struct {
	id  int
	due time.Time
}

func (a alarm) compare(b alarm) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.id, b.id)) }

func (a *alarms) set(id int, in time.Duration) {
	if a.byID == nil {
		a.byID = map[int]alarm{}
	}
	n := alarm{id, time.Now().Add(in)}
	at, _ := slices.BinarySearchFunc(a.order, n, alarm.compare)
	a.byID[id], a.order = n, slices.Insert(a.order, at, n)
}

func (a *alarms) stop(id int) {
	if at, ok := slices.BinarySearchFunc(a.order, a.byID[id], alarm.compare); ok {
		delete(a.byID, id)
		a.order = slices.Delete(a.order, at, at+1)
	}
}

// due takes the timer that rings next.
func (a *alarms) due() (id int, ok bool) {
	if len(a.order) == 0 || a.order[0].due.After(a.rung) {
		return 0, false
	}
	id = a.order[0].id
	a.stop(id)
	return id, true
}

// ask gives the time until the first timer, if the parent does not know of it.
func (a *alarms) ask() (in time.Duration, ok bool) {
	if len(a.order) == 0 || a.order[0].due.Equal(a.asked) {
		return 0, false
	}
	a.asked = a.order[0].due
	return max(time.Until(a.asked), 1), true
}

func (a *alarms) rang() { a.rung, a.asked = time.Now(), time.Time{} }
