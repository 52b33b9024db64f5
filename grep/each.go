package grep

import (
	"context"
	"errors"
)

// Each calls fn for every file that a search of w would open: rel is its directory from the root, "" or ending in a slash. Nothing
// is opened or looked at, so that nothing but its name is known of a file, and there is no order. fn is called by several
// goroutines at once; worker, below Walk.Workers or 16, says by which. A context that ends makes an end of the walk, and is the error.
func Each(ctx context.Context, w Walk, fn func(worker int, rel, name string)) (Skipped, error) {
	if w.Dir == nil {
		return Skipped{}, errors.New("grep: Each needs Walk.Dir")
	}
	skipped, _ := walk(ctx, w, each(fn), nil)
	return skipped, ctx.Err()
}

// each is the visitor of Each.
type each func(worker int, rel, name string)

func (each) descend(string) bool                    { return true }
func (each) picks() bool                            { return false }
func (each) leads(string) bool                      { return false }
func (each) wants(string, string, *worker) bool     { return true }
func (e each) file(w *worker, n *node, name string) { e(w.id, n.rel(), name) }
