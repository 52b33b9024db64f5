//go:build !nolock

package guardfs

const lockless = false
