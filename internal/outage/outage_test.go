package outage

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

// An outage is known by its type, says why in one line, and is never taken for a file that is not there.
func TestError(t *testing.T) {
	err := fmt.Errorf("saving: %w", OfDatabase(errors.Join(errors.New("host a: refused"), fmt.Errorf("host b: %w", fs.ErrNotExist))))
	if want := "saving: the database of the fleet can't be reached: host b: file does not exist"; err.Error() != want {
		t.Error(err)
	}
	if !Is(err) || errors.Is(err, fs.ErrNotExist) || Is(fs.ErrNotExist) || OfDatabase(nil) != nil {
		t.Errorf("%#v", err)
	}
}
