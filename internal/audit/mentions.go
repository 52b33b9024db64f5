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

// CountMentions counts the records in the logs of dir that hold one of these SHA-256, 64 lower-case
// hex digits each. It changes nothing: a record stays what it is.
func CountMentions(dir string, hashes []string) (n int, err error) {
	if len(hashes) == 0 {
		return 0, nil
	}
	wanted := map[string]bool{}
	for _, h := range hashes {
		wanted[h] = true
	}
	for _, dir := range []string{dir, ChangesDir(dir)} { // the same ones, or older ones
		in, err := mentionsIn(dir, wanted)
		if n = max(n, in); err != nil {
			return n, err
		}
	}
	return n, nil
}

func mentionsIn(dir string, wanted map[string]bool) (n int, err error) {
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
			if holdsHash(line, wanted) {
				n++
			}
			// The line is too long for a record of ours. Search the rest of it like another line.
			if errors.Is(err, bufio.ErrBufferFull) {
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

// holdsHash looks at every run of hex digits that is as long as a hash.
func holdsHash(line []byte, wanted map[string]bool) bool {
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
