package rewind

import (
	"bytes"
	"io/fs"
	"maps"
	"slices"

	"moltisfs/checkpoint"
)

// Metadata is about a restored file. Its pieces are "mode", "owner", "group" and "xattr:NAME". Set
// came back. Stays are different because somebody else made them so since. Dropped can't be set by
// this process.
type Metadata struct{ Set, Stays, Dropped []string }

// metadataOf compares what a file has now, what it had, what a restore is to give back of that
// (meta) and what it can (can).
func metadataOf(item *checkpoint.Item, now, meta, can checkpoint.State) (of Metadata) {
	if !item.Recorded() {
		return of
	}
	stays, dropped := unequal(meta, item.Want), unequal(can, item.Want)
	for _, piece := range unequal(now, item.Want) {
		switch {
		case slices.Contains(stays, piece):
			of.Stays = append(of.Stays, piece)
		case slices.Contains(dropped, piece):
			of.Dropped = append(of.Dropped, piece)
		default:
			of.Set = append(of.Set, piece)
		}
	}
	return of
}

// stays says that the file keeps the metadata that it has.
func (m *Metadata) stays() { m.Stays, m.Set = append(m.Stays, m.Set...), nil }

// settable is the metadata that a restored file gets. No setuid or setgid: nobody should get a
// privileged program back. No old time: to builds and editors a restore is a change like any other.
func settable(s checkpoint.State) checkpoint.State {
	return checkpoint.State{Kind: s.Kind, Mode: s.Mode & (fs.ModePerm | fs.ModeSticky), UID: s.UID,
		GID: s.GID, Xattrs: s.Xattrs}
}

// SameMetadata compares all but times.
func SameMetadata(a, b checkpoint.State) bool { return len(unequal(a, b)) == 0 }

// unequal names the pieces of metadata that are not the same.
func unequal(a, b checkpoint.State) (out []string) {
	const bits = fs.ModePerm | fs.ModeSticky | fs.ModeSetuid | fs.ModeSetgid
	if a.Mode&bits != b.Mode&bits {
		out = append(out, "mode")
	}
	if a.UID != b.UID {
		out = append(out, "owner")
	}
	if a.GID != b.GID {
		out = append(out, "group")
	}
	names := map[string]bool{}
	for _, x := range []map[string][]byte{a.Xattrs, b.Xattrs} {
		for name := range x {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		x, here := a.Xattrs[name]
		y, there := b.Xattrs[name]
		if here != there || !bytes.Equal(x, y) {
			out = append(out, "xattr:"+name)
		}
	}
	return out
}
