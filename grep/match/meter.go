package match

import "errors"

// ErrStopped is what Scanner.Err is once the search was told to stop.
var ErrStopped = errors.New("the search was stopped")

// meterSteps is how much work is done between two looks at whether to stop: well under a millisecond of it. A step is a thread of
// the simulation, an instruction of a state in the making, a candidate compared, or some bytes passed.
const meterSteps = 1 << 15

// meter ends the work of all engines of a Scanner. Whoever does what may take long spends steps on it, and gives up once it is over.
type meter struct {
	stop func() bool // nil: never
	left int
	over bool
}

// spend says whether to give up, after n more steps.
func (m *meter) spend(n int) bool {
	if m.left -= n; m.left <= 0 {
		m.left = meterSteps
		m.over = m.stop != nil && m.stop() || m.over
	}
	return m.over
}

// pass is spend for n bytes that an automaton passed.
func (m *meter) pass(n int) bool { return m.spend(n/16 + 1) }
