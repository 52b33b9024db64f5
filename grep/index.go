package grep

// Index is reserved.
type Index struct{}
