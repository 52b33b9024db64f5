package guardfs

// Appended says what became of a tail that was appended to a file.
type Appended struct {
	At    int64 // where it begins; later than the end that was looked at if others appended too
	Bytes int   // that are there
	Info  Info  // of the file, after it
}
