package js

import (
	"container/heap"
	"encoding/binary"
	"time"
)

// alarms are the timers that are to ring. They ring only after the parent has said that it is time,
// so that a timer that is always due keeps no reply from its place.
type alarms struct {
	byID  map[int]*alarm
	order order
	rung  time.Time // what is due by then rings
	asked time.Time // when the parent is to say so
}

type alarm struct {
	id, at int // at is its place in the order
	due    time.Time
}

func (a *alarms) set(id int, in time.Duration) {
	if a.byID == nil {
		a.byID = map[int]*alarm{}
	}
	a.byID[id] = &alarm{id: id, due: time.Now().Add(in)}
	heap.Push(&a.order, a.byID[id])
}

func (a *alarms) stop(id int) {
	if old := a.byID[id]; old != nil {
		heap.Remove(&a.order, old.at)
		delete(a.byID, id)
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

// ask is what the parent is to be told: nanoseconds until the first timer, if it does not know.
func (a *alarms) ask() (in []byte, ok bool) {
	if len(a.order) == 0 || a.order[0].due.Equal(a.asked) {
		return nil, false
	}
	a.asked = a.order[0].due
	return binary.LittleEndian.AppendUint64(nil, uint64(max(time.Until(a.asked), 0))), true
}

func (a *alarms) rang() { a.rung, a.asked = time.Now(), time.Time{} }

// order is a heap: the timer that is due first is the first.
type order []*alarm

func (o order) Len() int { return len(o) }
func (o order) Less(i, j int) bool {
	return o[i].due.Before(o[j].due) || o[i].due.Equal(o[j].due) && o[i].id < o[j].id
}
func (o order) Swap(i, j int) { o[i], o[j] = o[j], o[i]; o[i].at, o[j].at = i, j }
func (o *order) Push(x any)   { x.(*alarm).at = len(*o); *o = append(*o, x.(*alarm)) }
func (o *order) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}
