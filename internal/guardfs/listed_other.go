//go:build !linux || rooted

package guardfs

// OpenListed is OpenFile for a name that List gave as KindFile.
func (d *Dir) OpenListed(name string) (*File, error) { return d.OpenFile(name) }
