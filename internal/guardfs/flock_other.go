//go:build !linux

package guardfs

import (
	"errors"
	"os"
)

func tryLockByte(*os.File, int64, bool) (bool, error) { return false, errors.ErrUnsupported }

func unlockBytes(*os.File) error { return errors.ErrUnsupported }

// canLockBytes says whether the locks can be bytes of one file.
func canLockBytes(*os.File) bool { return false }
