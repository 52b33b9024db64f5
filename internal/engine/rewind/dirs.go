package rewind

import (
	"io/fs"
	"path"
	"slices"
)

// Over finds paths that exclude each other because the plan wants them as they were at different
// times. The key is a wanted file or link, as leaf says; the value is a wanted path below it.
func Over(wanted []string, leaf func(string) bool) map[string]string {
	over := map[string]string{}
	for _, name := range wanted {
		for dir := path.Dir(name); len(dir) > 1; dir = path.Dir(dir) {
			if over[dir] == "" && leaf(dir) {
				over[dir] = name
			}
		}
	}
	return over
}

// Settle picks directories. Those to be made, from the top down, are made if something comes into
// them; not if all of that was skipped. Those to go do so if nothing is in them then; used are the
// others. comes is what is there then.
func Settle(dirs, drop, comes, skipped []string) (made, gone, used []string) {
	full, left := above(map[string]bool{}, comes...), above(map[string]bool{}, skipped...)
	for _, dir := range slices.Backward(dirs) {
		if full[dir] || !left[dir] {
			above(full, dir)
			made = append(made, dir)
		}
	}
	slices.Reverse(made)
	for _, dir := range drop {
		if full[dir] {
			used = append(used, dir)
		} else {
			gone = append(gone, dir)
		}
	}
	return made, gone, used
}

// above adds all directories above names to in.
func above(in map[string]bool, names ...string) map[string]bool {
	for _, name := range names {
		for dir := path.Dir(name); len(dir) > 1 && !in[dir]; dir = path.Dir(dir) {
			in[dir] = true
		}
	}
	return in
}

// ModeOf is the mode of a directory whose own mode is unknown. It is no more open than near, the
// mode of the nearest directory there is, and than seen, the modes of its files together.
func ModeOf(near, seen fs.FileMode) fs.FileMode {
	mode := fs.FileMode(0o700)
	for _, bits := range []fs.FileMode{0o070, 0o007} {
		if seen&bits&0o044 != 0 && near&bits&0o011 != 0 {
			mode |= bits
		}
	}
	return mode
}
