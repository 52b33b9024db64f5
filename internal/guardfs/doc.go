// Package guardfs is the only road to the agent's tree. A path string is turned into a handle once; a Judge decides by
// the name and identity of the object that the handle really holds; every later step works on the handle.
//
// # What it guarantees
//
//   - Every byte that is returned came from an object that, at an instant within the call, had the reported true
//     name and was allowed there by the Judge. Links, link swaps, "..", magic links of /proc, mounts and unusual
//     spellings do not change that.
//   - A path that the Judge refuses gets the same answer whether or not anything is there.
//   - A published file is whole: readers see the old content or the new, never a mixture. After Sync it survives a
//     power cut once Publish and SyncNames have returned.
//   - A Publish displaces the object that the caller saw (identity and content hash), or the answer is a *ConflictError.
//     Then the objects at the two names tell how to undo it. Nothing of what somebody else wrote is deleted: what
//     can't be put back gets a name ending in ".kept" beside the file (Entry.Preserve).
//   - When staging fails (no space, I/O error, interrupt) no temporary file and no descriptor stays behind. A
//     process killed between two system calls may leave a temporary name: Journal.
//   - Nothing blocks on a fifo, a terminal or a device: they are never opened.
//
// # What it does not
//
//   - It does not decide: that is the Judge's.
//   - Someone who may rename a directory can move the very directory object that was checked; a file published
//     at that moment lands in it, wherever it is. The name is checked immediately before and after; if the new
//     place of it is refused the rename is taken back there and then (*ConflictError), else Published.True tells it.
//   - A foreign process that keeps a file open and writes in place after the file was replaced writes into the
//     replaced object. Nothing can notice that from outside.
//   - Where the file system lacks RENAME_EXCHANGE (NFS, 9p, old FUSE) the last check and the rename are two
//     steps: a file that others rename to the name in between is lost.
//   - A system call on a dead network mount blocks its thread; the kernel offers no way out.
//
// # Platforms
//
//   - Linux 4.11 or later: openat2, else a walk of the components with O_PATH|O_NOFOLLOW; /proc must be mounted, and
//     statx allowed. Containment is "kernel" or "walk".
//   - Elsewhere: os.Root, one component at a time, each compared with what was looked at. "best_effort": names
//     are those of the walk, not the kernel's, and a replacement is a look and a rename over what is there.
//
// # Concurrency
//
// FS, Locks, Handle and File are safe for concurrent use, and so is Dir but for List; an Entry belongs to
// one goroutine at a time. Close may be called at any moment and more than once.
package guardfs
