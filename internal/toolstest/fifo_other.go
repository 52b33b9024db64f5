//go:build !unix

package toolstest

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }
