package grep

import (
	"cmp"
	"context"
	"errors"
)

// Each calls fn for every file that a search of w would open. rel is the directory of the file from
// the root, "" or with a slash at the end. Each opens no file, so only the names are known, and
// there is no order. Several goroutines call fn at once; worker, below Walk.Workers or 16, says
// which. A context that ends also ends the walk, and is the error.
func Each(ctx context.Context, w Walk, fn func(worker int, rel, name string)) (Skipped, error) {
	if w.Dir == nil {
		return Skipped{}, errors.New("grep: Each needs Walk.Dir")
	}
	skipped, err := walk(ctx, w, each(fn), nil)
	return skipped, cmp.Or(ctx.Err(), err)
}

// each is the visitor of Each.
type each func(worker int, rel, name string)

func (each) descend(string) bool                    { return true }
func (each) picks() bool                            { return false }
func (each) leads(string) bool                      { return false }
func (each) wants(string, string, *worker) bool     { return true }
func (e each) file(w *worker, n *node, name string) { e(w.id, n.rel(), name) }
