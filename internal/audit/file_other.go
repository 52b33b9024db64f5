//go:build !unix

package audit

import "os"

const openFlags = 0

// sizeAndName: an open file cannot lose its name here.
func sizeAndName(f *os.File, _ uintptr) (size int64, named bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, false, err
	}
	return info.Size(), true, nil
}

// privateFile: the mode says nothing about who may read here; the directory's access list does.
func privateFile(*os.File) error { return nil }
