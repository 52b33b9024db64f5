package rewind

import (
	"io/fs"
	"path"
	"slices"
)

// Over finds what can't be there together, because the plan wants it back as it was at different times:
// by file or link that is wanted, which leaf tells, something below it that is wanted too.
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

// Settle leaves of the directories to be made, from the top down, those that something comes into, and of
// those to go those that nothing is in then; used are the others. comes is what is there then. A
// directory is not made for what is skipped only.
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

// ModeOf is the mode of a directory of which nobody knows what it had: no more open than the nearest one
// that is there, near, and than the files that it is for: seen are their modes, together.
func ModeOf(near, seen fs.FileMode) fs.FileMode {
	mode := fs.FileMode(0o700)
	for _, bits := range []fs.FileMode{0o070, 0o007} {
		if seen&bits&0o044 != 0 && near&bits&0o011 != 0 {
			mode |= bits
		}
	}
	return mode
}
