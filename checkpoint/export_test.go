package checkpoint

var LogWait = &logWait

// Mismeasure is what the keeper does that measured when the store was empty, and tells it only now.
func (d *DB) Mismeasure() { d.keep.used.Store(0) }
