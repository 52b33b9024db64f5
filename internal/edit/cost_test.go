package edit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestApplyLooksAtTheClock: between two edits Apply asks whether to go on.
func TestApplyLooksAtTheClock(t *testing.T) {
	var edits []Edit
	for i := range 20 {
		edits = append(edits, Edit{Old: fmt.Sprintf("line %02d", i), New: "x"})
	}
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "line %02d\n", i)
	}
	asked := 0
	r, err := Apply([]byte(text.String()), edits, Options{Err: func() error {
		if asked++; asked > 2 {
			return context.DeadlineExceeded
		}
		return nil
	}})
	if r != nil || !errors.Is(err, context.DeadlineExceeded) || asked > 4 {
		t.Errorf("%v, %v, asked %d times", r, err, asked)
	}
	if r, err := Apply([]byte(text.String()), edits, Options{Err: func() error { return nil }}); err != nil || r.Replacements != 20 {
		t.Errorf("%+v, %v", r, err)
	}
}
