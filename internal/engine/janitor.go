package engine

import (
	"sync"
	"time"
)

// janitor sweeps what killed processes have left beside the agent's files, in each directory once per process: when
// something in it is changed for the first time, which is where such files come from.
type janitor struct {
	age time.Duration // of what is swept; litterAge when 0

	mu    sync.Mutex
	swept map[string]bool // true names of directories
	at    time.Time       // of the last look for what has expired
}

const (
	litterAge = time.Hour // no change takes that long
	maxSwept  = 4096      // directories remembered; then some are looked through again
)

// first says whether nothing was changed in dir before.
func (j *janitor) first(dir string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.swept[dir] {
		return false
	}
	if j.swept == nil || len(j.swept) >= maxSwept {
		j.swept = map[string]bool{}
	}
	j.swept[dir] = true
	return true
}

// due says whether the last look for what has expired is long enough ago, and takes this for one.
func (j *janitor) due(now time.Time, every time.Duration) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if age := now.Sub(j.at); age >= 0 && age < every {
		return false
	}
	j.at = now
	return true
}

// again lets the next look come at once: the last one was cut short.
func (j *janitor) again() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.at = time.Time{}
}

// sweep follows a change that is done: its errors cost nothing but litter.
func (e *Engine) sweep(ts targets) {
	for _, t := range ts {
		if t.place == nil || t.Published == nil || !e.janitor.first(t.place.ParentTrue()) {
			continue
		}
		age := e.janitor.age
		if age == 0 {
			age = litterAge
		}
		removed, kept, err := t.place.Sweep(age)
		switch {
		case err != nil:
			e.logger.Debug("a directory could not be swept", "dir", t.place.ParentTrue(), "err", err)
		case removed > 0 || len(kept) > 0:
			e.logger.Info("swept what a killed process left", "dir", t.place.ParentTrue(), "removed", removed, "kept", kept)
		}
	}
}
