package image

import (
	"errors"
	"os"
	"strings"
	"testing"

	"moltisfs/readers/unreadable"
)

// An error of ours in a worker is not the file's, and names no path.
func TestErrorOfAWorker(t *testing.T) {
	var reply workReply
	reply.fail(&os.PathError{Op: "open", Path: "/secret/cache", Err: os.ErrPermission})
	if err := reply.error(); err == nil || errors.As(err, new(*unreadable.Damaged)) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}
