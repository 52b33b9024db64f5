package engine

import (
	"bytes"
	"io/fs"
	"maps"
	"slices"

	"moltisfs/checkpoint"
	"moltisfs/internal/guardfs"
)

// MetadataOf says of a restored file which pieces of its metadata ("mode", "owner", "group", "xattr:NAME") became what they were (Set), which are
// different because somebody else made them so since and therefore stay (Stays), and which this process can't set (Dropped).
type MetadataOf struct{ Set, Stays, Dropped []string }

// noteMetadata compares what a file has now, what it had, what of that a restore is to give back (meta) and what it can (can).
func (r *Restored) noteMetadata(t *Target, item *checkpoint.Item, meta checkpoint.State, can *guardfs.Metadata) {
	if !item.Recorded() {
		return
	}
	now, was, aim := t.Before.Meta, rawMetadata(item.Want), rawMetadata(meta)
	var of MetadataOf
	for _, piece := range unequal(&now, was) {
		switch {
		case slices.Contains(unequal(aim, was), piece):
			of.Stays = append(of.Stays, piece)
		case slices.Contains(unequal(can, was), piece):
			of.Dropped = append(of.Dropped, piece)
		default:
			of.Set = append(of.Set, piece)
		}
	}
	if of.Set != nil || of.Stays != nil || of.Dropped != nil {
		r.Metadata[t.True] = of
	}
}

// metadataStays says that the target keeps the metadata that it has.
func (r *Restored) metadataStays(t *Target) {
	if of, ok := r.Metadata[t.True]; ok {
		of.Stays, of.Set = append(of.Stays, of.Set...), nil
		r.Metadata[t.True] = of
	}
}

// rawMetadata is s with its set-id bits, which metadata leaves out.
func rawMetadata(s checkpoint.State) *guardfs.Metadata {
	return &guardfs.Metadata{Mode: s.Mode & (fs.ModePerm | fs.ModeSticky | fs.ModeSetuid | fs.ModeSetgid), UID: s.UID, GID: s.GID, Xattrs: s.Xattrs}
}

// sameMetadata compares all but times.
func sameMetadata(a, b *guardfs.Metadata) bool { return len(unequal(a, b)) == 0 }

// unequal names the pieces of metadata that are not the same.
func unequal(a, b *guardfs.Metadata) (out []string) {
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
