//go:build !rooted

package guardfs

// Steady says that any change of the file after this call moves its change time: nobody has it
// open for writing, and on its file system a first store through a memory mapping counts as a
// change. It asks for a lease, which the kernel gives where nobody writes, and gives it back at
// once. false where that can't be told, as of somebody else's file.
func (f *File) Steady() bool {
	fd, err := f.fd.use()
	if err != nil {
		return false
	}
	defer f.fd.done() //nolint:errcheck // Close reports it
	calls := f.kernel.calls
	magic, err := calls.Magic(fd)
	if err != nil {
		return false
	}
	switch magic {
	case 0xef53, 0x58465342, 0x9123683e, 0xf2f52010: // ext2 to ext4, xfs, btrfs, f2fs; not tmpfs
	default:
		return false
	}
	return calls.Lease(fd) == nil
}
