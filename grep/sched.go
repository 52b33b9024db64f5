package grep

import "sync"

// sched is the stack of jobs that the workers share. A worker takes the newest one, so the walk
// stays deep in few parts of the tree and few directories are open.
type sched struct {
	mu      sync.Mutex
	wake    sync.Cond
	jobs    []job
	running int // jobs taken and not done: each may push more
}

// run lets n workers take jobs until none is left and none runs. The first one runs on the caller's
// goroutine.
func (s *sched) run(n int, do func(id int, j job)) {
	s.wake.L = &s.mu
	body := func(id int) {
		for {
			j, ok := s.next()
			if !ok {
				return
			}
			do(id, j)
			s.done()
		}
	}
	var wg sync.WaitGroup
	for id := 1; id < n; id++ {
		wg.Go(func() { body(id) })
	}
	body(0)
	wg.Wait()
}

func (s *sched) push(jobs ...job) {
	s.mu.Lock()
	s.jobs = append(s.jobs, jobs...)
	s.mu.Unlock()
	s.wake.Broadcast()
}

// next takes the newest job. Of waiting directories it takes the last one, with a reference of its
// own on the node. false means that everything is done.
func (s *sched) next() (job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.jobs) == 0 && s.running > 0 {
		s.wake.Wait()
	}
	if len(s.jobs) == 0 {
		return job{}, false
	}
	s.running++
	top := &s.jobs[len(s.jobs)-1]
	j := *top
	if n := len(top.dirs); n > 1 {
		j.dirs, top.dirs = top.dirs[n-1:], top.dirs[:n-1]
		j.node.refs.Add(1)
		return j, true
	}
	*top = job{}
	s.jobs = s.jobs[:len(s.jobs)-1]
	return j, true
}

// done says that a job from next is finished, and has pushed what follows from it.
func (s *sched) done() {
	s.mu.Lock()
	s.running--
	last := s.running == 0
	s.mu.Unlock()
	if last {
		s.wake.Broadcast()
	}
}
