package approval

// A Tier says how freely a call may change things. It adds to the configuration and takes nothing
// from it: with require_approval every change is asked about, whatever the tier.
type Tier string

// The tiers, each stricter than the one before. "" is the first.
const (
	TierAutonomous Tier = "autonomous" // as the configuration has it
	TierNotify     Tier = "notify"     // a change is a warning in the operator's log
	TierAsk        Tier = "ask"        // a change needs approval
	TierBlocked    Tier = "blocked"    // the call is refused, also where it only reads
)

// Known says whether there is such a tier.
func (t Tier) Known() bool {
	switch t {
	case "", TierAutonomous, TierNotify, TierAsk, TierBlocked:
		return true
	}
	return false
}
