package grep

import (
	"sync"
	"sync/atomic"
)

// sched shares jobs between workers by work stealing. A worker has a stack of its own and takes its
// newest job, so it stays deep in one part of the tree and few directories are open. A worker
// without a job takes half of the oldest job of another, which is the biggest: it is nearest to the
// root.
//
// The counters keep the order "count, then publish": pending and queued never say less than there
// is. A worker that saw queued at 0 may sleep; push wakes it.
type sched struct {
	stacks  []stack
	pending atomic.Int64 // jobs queued or running
	queued  atomic.Int64 // jobs in the stacks
	idle    atomic.Int32
	mu      sync.Mutex
	wake    sync.Cond
}

type stack struct {
	mu   sync.Mutex
	jobs []job
	_    [32]byte // each stack has a cache line of its own
}

func (s *sched) init(n int) {
	s.stacks = make([]stack, n)
	s.wake.L = &s.mu
}

// run starts the workers and waits for all. The first one runs on the caller's goroutine.
func (s *sched) run(body func(id int)) {
	var wg sync.WaitGroup
	for id := 1; id < len(s.stacks); id++ {
		wg.Go(func() { body(id) })
	}
	body(0)
	wg.Wait()
}

func (s *sched) push(id int, jobs ...job) {
	if len(jobs) == 0 {
		return
	}
	n := int64(0)
	for i := range jobs {
		n += jobs[i].takes()
	}
	s.pending.Add(n)
	st := &s.stacks[id]
	st.mu.Lock()
	st.jobs = append(st.jobs, jobs...)
	st.mu.Unlock()
	s.queued.Add(n)
	// No wake-up is lost: a worker first adds itself to idle, then looks at queued, then sleeps; we
	// first add to queued, then look at idle.
	if s.idle.Load() > 0 {
		s.mu.Lock()
		s.wake.Broadcast()
		s.mu.Unlock()
	}
}

// takes is how many times the job will be taken: once for each waiting directory.
func (j *job) takes() int64 { return int64(max(1, len(j.dirs))) }

// next gives the worker something to do. false means that everything is done: nothing is queued,
// and no running job can add more.
func (s *sched) next(id int) (job, bool) {
	for {
		if j, ok := s.stacks[id].pop(); ok {
			s.queued.Add(-1)
			return j, true
		}
		if s.queued.Load() > 0 && s.steal(id) {
			continue
		}
		s.mu.Lock()
		s.idle.Add(1)
		for s.queued.Load() == 0 && s.pending.Load() > 0 {
			s.wake.Wait()
		}
		s.idle.Add(-1)
		s.mu.Unlock()
		if s.pending.Load() == 0 {
			return job{}, false
		}
	}
}

// done says that one job from next is finished. It must come after the job has pushed what follows
// from it: else pending could reach 0 too early, and the others would leave.
func (s *sched) done() {
	if s.pending.Add(-1) == 0 {
		s.mu.Lock()
		s.wake.Broadcast()
		s.mu.Unlock()
	}
}

// pop takes the newest job. Of waiting directories it takes the last one, with a reference of its
// own on the node.
func (s *stack) pop() (job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.jobs) == 0 {
		return job{}, false
	}
	top := &s.jobs[len(s.jobs)-1]
	if n := len(top.dirs); n > 1 {
		j := job{node: top.node, rules: top.rules, dirs: top.dirs[n-1:], way: top.way}
		top.dirs = top.dirs[:n-1]
		top.node.refs.Add(1)
		return j, true
	}
	j := *top
	*top = job{}
	s.jobs = s.jobs[:len(s.jobs)-1]
	return j, true
}

// steal moves half of another worker's oldest job to this one's stack. queued does not change.
func (s *sched) steal(id int) bool {
	for k := 1; k < len(s.stacks); k++ {
		from := &s.stacks[(id+k)%len(s.stacks)]
		from.mu.Lock()
		if len(from.jobs) == 0 {
			from.mu.Unlock()
			continue
		}
		old := &from.jobs[0]
		j := *old
		if n := len(old.dirs); n > 1 {
			j.dirs = old.dirs[:n/2]
			old.dirs = old.dirs[n/2:]
			old.node.refs.Add(1)
		} else {
			from.jobs[0] = job{}
			from.jobs = append(from.jobs[:0], from.jobs[1:]...)
		}
		from.mu.Unlock()
		own := &s.stacks[id]
		own.mu.Lock()
		own.jobs = append(own.jobs, j)
		own.mu.Unlock()
		return true
	}
	return false
}
