package guardfs

// Appended tells the fate of a tail that was appended to a file.
type Appended struct {
	At    int64 // where it begins; later than the end that was looked at if others appended too
	Bytes int   // that are there
	Info  Info  // of the file, after it
}

// Append writes tail to the end of the file there, in place, if that is still the one called own
// and has no other name. Not even our own bytes are ever taken away: on an error Appended says how
// many are there. It syncs the file, and with an empty tail does no more.
func (p *Entry) Append(own Identity, tail []byte) (a Appended, err error) {
	if err := p.look(Modify); err != nil {
		return a, err
	}
	if err := p.still(); err != nil {
		return a, err
	}
	return p.append(own, tail)
}
