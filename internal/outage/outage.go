// Package outage has the error of what a fleet stands on, its database and its store of large contents, while that can't be reached.
package outage

import (
	"errors"
	"strings"
)

// The values of Error.What.
const (
	Database = "database"
	Contents = "store of large contents"
)

// Error: a server does not answer, says that it can't at present, or refuses. Nothing is broken that would not mend. It tells nothing about
// what is stored there, and does not unwrap: the socket of a server that is down is fs.ErrNotExist, which would be taken for a file or a
// content that is gone.
type Error struct {
	What string // Database or Contents
	Err  error
}

func (e *Error) Error() string {
	text := e.Err.Error() // a driver has a line for each attempt to connect; the last one says enough
	return "the " + e.What + " of the fleet can't be reached: " + strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// OfDatabase says that a request to the database failed with err; nil where it did not.
func OfDatabase(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Database, err}
}

// Is reports whether err is an *Error, or wraps one.
func Is(err error) bool { return errors.As(err, new(*Error)) }
