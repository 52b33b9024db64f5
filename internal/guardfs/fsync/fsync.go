// Package fsync puts a file on stable storage while its caller does something else.
//
// A second goroutine could do that as well. But until its thread runs, on a processor that has gone to sleep, half of a sync may
// have passed. Linux has a call that leaves a sync to a thread of the kernel on the same processor, which runs as soon as the caller
// waits for anything (io_submit with IOCB_CMD_FSYNC, since 4.18; see io_submit(2)).
package fsync

// inGoroutine starts sync without the kernel's help.
func inGoroutine(sync func() error) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- sync() }()
	return func() error { return <-done }
}
