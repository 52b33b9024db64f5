package queue

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"moltisfs/internal/guardfs/flock"
)

// Bounds of the record of questions that are over: time, number and bytes. The newest are kept.
const (
	keptFor   = 7 * 24 * time.Hour
	keptMost  = 500
	keptBytes = 64 << 20
)

// sweep counts the questions that wait, by principal, and removes what is over and too old, and what killed
// processes left. Nobody waits for what it removes: its lock is free. Errors of single files leave
// them to the next sweep.
func (q *Queue) sweep(now time.Time) (waiting map[string]int, err error) {
	n, err := q.names()
	if err != nil {
		return nil, err
	}
	waiting = map[string]int{}
	type past struct {
		id   string
		info fs.FileInfo
	}
	var over []past
	for _, id := range n.questions {
		if !n.answers[id] && !q.free(id, questionFile, func() {}) {
			r, _, _ := q.readRecord(id) // one that can't be read is nobody's, and waits all the same
			waiting[string(r.Principal)]++
		} else if info, err := os.Lstat(q.file(id, questionFile)); err == nil && plausible(info) {
			over = append(over, past{id, info})
		}
	}
	slices.SortFunc(over, func(a, b past) int { return b.info.ModTime().Compare(a.info.ModTime()) })
	total := int64(0)
	for i, p := range over {
		total += p.info.Size()
		if i >= keptMost || total > keptBytes || now.Sub(p.info.ModTime()) > keptFor {
			q.free(p.id, questionFile, func() {
				q.forget(p.id)
				os.Remove(q.file(p.id, answerFile))   //nolint:errcheck // then the next sweep does it
				os.Remove(q.file(p.id, questionFile)) //nolint:errcheck // the same
			})
		}
	}
	for id := range n.answers {
		if q.none(id) { // a sweep that was killed had the other order
			os.Remove(q.file(id, answerFile)) //nolint:errcheck // then the next sweep does it
		}
	}
	for _, id := range n.diffs {
		if q.none(id) {
			q.forget(id)
		} else {
			q.free(id, questionFile, func() { q.forget(id) }) // its asker was killed
		}
	}
	for _, id := range n.temps {
		q.free(id, tempFile, func() {
			os.Remove(q.file(id, tempFile)) //nolint:errcheck // then the next sweep does it
		})
	}
	return waiting, nil
}

// none says that there is no question with this ID. A list of names need not have all.
func (q *Queue) none(id string) bool {
	_, err := os.Lstat(q.file(id, questionFile))
	return errors.Is(err, fs.ErrNotExist)
}

// free calls do if nobody holds the lock of a file of ours, and says so.
func (q *Queue) free(id, kind string, do func()) bool {
	f, err := q.open(id, kind)
	if err != nil {
		return true // it is none of ours
	}
	defer flock.Close(f) //nolint:errcheck // closing is what lets go
	free, err := flock.TryLockShared(f)
	if err == nil && free {
		do()
	}
	return free
}
