//go:build nolock

package guardfs

// lockless makes a binary without locks, for the test that must fail with it. No release is built with this tag.
const lockless = true
