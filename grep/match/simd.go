package match

// level says which vector instructions a matcher may use. Each level includes those below it.
type level uint8

const (
	scalar level = iota
	sse2         // pairScan, 16 bytes at a time
	ssse3        // maskScan too
	avx2         // both, 32 bytes at a time
)

func (l level) pairs() bool { return l >= sse2 }
func (l level) masks() bool { return l >= ssse3 }
