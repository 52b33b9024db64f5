package match

// meterSteps is how much work is done between two calls of stop: well under a millisecond of it. A
// step is a thread of the Pike VM, an instruction of a state under construction, a candidate
// compared, or some bytes passed.
const meterSteps = 1 << 15

// meter stops all engines of a Scanner. Every loop that may take long spends steps on it and gives
// up once it has stopped. A loop that forgets to spend cannot be stopped: a search would outlive
// its deadline.
type meter struct {
	stop    func() bool // nil: never
	left    int
	stopped bool
}

// spend counts n more steps and says whether to give up.
func (m *meter) spend(n int) bool {
	if m.left -= n; m.left <= 0 {
		m.left = meterSteps
		m.stopped = m.stop != nil && m.stop() || m.stopped
	}
	return m.stopped
}

// pass is spend for n bytes that a DFA or a prefilter passed.
func (m *meter) pass(n int) bool { return m.spend(n/16 + 1) }
