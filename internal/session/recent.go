package session

import (
	"container/list"
	"sync"
)

// A Key says whose history it is.
type Key struct{ Principal, Session string }

// Recent keeps a value for each of the sessions that were used last. With one more than Most, or 10,000 where that is 0, the session
// that was used longest ago is forgotten. The zero value is ready. It is safe for concurrent use, and as a value its V has to be so by itself.
type Recent[V any] struct {
	Most int // the weights of all values together

	mu     sync.Mutex
	order  list.List // of *recent[V], the one that was used last in front
	of     map[Key]*list.Element
	weight int
}

type recent[V any] struct {
	key    Key
	value  V
	weight int
}

// Get gives the value of a session, and uses it; the zero value where there is none.
func (r *Recent[V]) Get(k Key) (v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.of[k]; e != nil {
		r.order.MoveToFront(e)
		v = e.Value.(*recent[V]).value
	}
	return v
}

// Set gives a session a value, which weighs 1.
func (r *Recent[V]) Set(k Key, v V) { r.SetHeavy(k, v, 1) }

// SetHeavy gives a session a value of some weight. The session that is used last stays, whatever it weighs.
func (r *Recent[V]) SetHeavy(k Key, v V, weight int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[Key]*list.Element{}
	}
	r.drop(r.of[k])
	r.of[k] = r.order.PushFront(&recent[V]{k, v, weight})
	most := r.Most
	if most == 0 {
		most = 10_000
	}
	for r.weight += weight; r.weight > most && r.order.Len() > 1; {
		r.drop(r.order.Back())
	}
}

// End forgets a session.
func (r *Recent[V]) End(k Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(r.of[k])
}

func (r *Recent[V]) drop(e *list.Element) {
	if e != nil {
		one := r.order.Remove(e).(*recent[V])
		delete(r.of, one.key)
		r.weight -= one.weight
	}
}
