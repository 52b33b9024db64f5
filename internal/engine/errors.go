package engine

import "errors"

// ErrHost marks trouble of our own: the host is broken, not the request. errors.Is finds it under
// any wrapping.
var ErrHost = errors.New("the host is broken")

// A hostError is our own disk, log or store failing.
type hostError struct {
	doing string
	err   error
}

func (e *hostError) Error() string   { return e.doing + ": " + e.err.Error() }
func (e *hostError) Unwrap() []error { return []error{ErrHost, e.err} }

// notSaved refuses a change whose pre-state could not be stored. Nothing was changed.
func notSaved(err error) error {
	return &Refusal{NotSaved.Code, NotSaved, "", err, &hostError{"storing the checkpoint", err}}
}
