package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Naming counts the records in the logs of dir that hold one of these SHA-256, 64 letters of lower-case hex each. Nothing is changed: a
// record stays what it is.
func Naming(dir string, hashes []string) (n int, err error) {
	if len(hashes) == 0 {
		return 0, nil
	}
	wanted := map[string]bool{}
	for _, h := range hashes {
		wanted[h] = true
	}
	names, err := filepath.Glob(filepath.Join(dir, FileName+"*"))
	if err != nil {
		return 0, fmt.Errorf("searching the audit log: %w", err)
	}
	for _, name := range names {
		f, err := os.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // rotated away
		}
		if err != nil {
			return n, fmt.Errorf("searching the audit log: %w", err)
		}
		r := bufio.NewReaderSize(f, 1<<20)
		for err == nil {
			var line []byte
			line, err = r.ReadSlice('\n')
			if holds(line, wanted) {
				n++
			}
			if errors.Is(err, bufio.ErrBufferFull) { // no record of ours; what is left of it is looked at like another
				err = nil
			}
		}
		f.Close()
		if err != io.EOF {
			return n, fmt.Errorf("searching the audit log: %w", err)
		}
	}
	return n, nil
}

// holds looks at every run of hex digits that is as long as a hash.
func holds(line []byte, wanted map[string]bool) bool {
	run := 0
	for i := 0; i <= len(line); i++ {
		if i < len(line) && (line[i] >= '0' && line[i] <= '9' || line[i] >= 'a' && line[i] <= 'f') {
			run++
			continue
		}
		if run == 64 && wanted[string(line[i-64:i])] {
			return true
		}
		run = 0
	}
	return false
}
