package guardfs

import (
	"errors"
	"testing"
)

func mkfifo(string) error { return errors.New("no fifos here") }

func noLeak(testing.TB) {}
