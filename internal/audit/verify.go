package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Flaw is what Verify can find.
type Flaw string

// The flaws: somebody did this to the log, or a disk did.
const (
	Changed   Flaw = "changed"   // a record is not as it was written
	Dropped   Flaw = "dropped"   // records are missing before this line
	Truncated Flaw = "truncated" // records are missing at the end; a power cut may do that as well
	Inserted  Flaw = "inserted"  // a line that the log did not write, or a record for a second time
	Reordered Flaw = "reordered" // a record stands behind a later one
	NewChain  Flaw = "new_chain" // a chain that is bound to nothing before it
	KeyState  Flaw = "key_state" // audit.key is missing, older than the log, or of another chain
	Early     Flaw = "early"     // rotation has removed records of changes that should still be there
)

// What Verify notes besides, and what is no flaw.
const (
	NotChained  Flaw = "not_chained" // lines of a log that was not chained yet
	Interrupted Flaw = "interrupted" // the remains of a record whose writer was killed
	Moved       Flaw = "moved"       // another program moved this file away
	Gone        Flaw = "gone"        // records that rotation has removed
)

// Kept is how long records of changes should be there. What removes them earlier may be somebody who
// makes many.
const Kept = 30 * 24 * time.Hour

// A Finding is one flaw, or one thing to note.
type Finding struct {
	Flaw  Flaw   `json:"flaw"`
	File  string `json:"file,omitempty"` // its name in the directory
	Line  int    `json:"line,omitempty"` // the first of those that are meant
	First uint64 `json:"first_record,omitempty"`
	Last  uint64 `json:"last_record,omitempty"`
}

// Proof is what Verify found.
type Proof struct {
	Chain   string    `json:"chain,omitempty"` // the last one; "" without any
	Records uint64    `json:"records"`         // that are there
	First   uint64    `json:"first,omitempty"`
	Last    uint64    `json:"last,omitempty"`
	Proven  uint64    `json:"proven"` // how many of them by a key
	Flaws   []Finding `json:"flaws"`
	Notes   []Finding `json:"notes"`
	Changes *Proof    `json:"changes,omitempty"` // of the log of changes; Verify alone gives it

	oldest time.Time // of the first record that is there
}

// Whole says that nothing is wrong.
func (p *Proof) Whole() bool {
	return len(p.Flaws) == 0 && (p.Changes == nil || p.Changes.Whole())
}

// mostFlaws is how many are listed; with so many, verification ends.
const mostFlaws = 1000

var errEnough = errors.New("too many flaws")

// Archived says that the operator took away the records up to these numbers.
type Archived struct{ All, Changes uint64 }

// Verify follows the chains through the logs of dir, while others may write.
func Verify(ctx context.Context, dir string, keys []Key, archived Archived) (Proof, error) {
	p, err := verifyOne(ctx, dir, keys, archived.All)
	if err != nil {
		return p, err
	}
	c, err := verifyOne(ctx, ChangesDir(dir), keys, archived.Changes)
	if err == nil {
		p.Changes = &c
		for _, n := range c.Notes {
			if n.Flaw == Gone && n.Last > archived.Changes && time.Since(c.oldest) < Kept {
				n.Flaw = Early
				c.Flaws = append(c.Flaws, n)
			}
		}
	} else if errors.Is(err, fs.ErrNotExist) { // of before there was one
		err = nil
	}
	for _, k := range keys {
		if k.Chain != p.Chain && k.Chain != c.Chain {
			p.Flaws = append(p.Flaws, Finding{Flaw: NewChain, First: k.From})
		}
	}
	return p, err
}

func verifyOne(ctx context.Context, dir string, keys []Key, archived uint64) (Proof, error) {
	v := verifier{keys: slices.Clone(keys), given: keys, gone: archived, steps: mostBehind,
		proof: Proof{Flaws: []Finding{}, Notes: []Finding{}}}
	logs, err := v.openAll(dir)
	defer func() {
		for _, f := range logs {
			_ = f.Close()
		}
	}()
	for i, f := range logs {
		if err == nil {
			err = v.file(ctx, f, i == len(logs)-1)
		}
	}
	if err == nil {
		v.end()
	}
	if err == errEnough {
		err = nil
	}
	if err != nil {
		return v.proof, fmt.Errorf("verifying the audit log: %w", err)
	}
	return v.proof, nil
}

// openAll opens the logs, the oldest first, and reads where the chain stands, at one moment.
func (v *verifier) openAll(dir string) (logs []sized, err error) {
	l := Log{path: filepath.Join(dir, FileName)}
	keys, err := os.Open(l.keyPath())
	if err == nil {
		defer keys.Close()
		l.keys.File = keys
		if err := l.lock(); err != nil {
			return nil, err
		}
		defer l.unlock()
		at, ok, err := l.load()
		if err != nil {
			return nil, err
		}
		if ok {
			v.state, v.gone, v.steps = &at, max(v.gone, at.gone), mostSteps
			v.keys = append(v.keys, Key{at.chain, at.seq, at.key})
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var older []int
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), FileName+".")
		if n, err := strconv.Atoi(number); ok && err == nil && n > 0 {
			older = append(older, n)
		}
	}
	slices.Sort(older)
	slices.Reverse(older)
	for _, n := range append(older, 0) {
		name := l.older(n)
		if n == 0 {
			name = l.path
		}
		f, err := os.Open(name)
		if n == 0 && errors.Is(err, fs.ErrNotExist) && (v.state != nil || logs != nil) {
			break // it is told as what it holds
		}
		if err != nil {
			return logs, err
		}
		info, err := f.Stat()
		if logs = append(logs, sized{f, 0}); err != nil {
			return logs, err
		}
		logs[len(logs)-1].size = info.Size()
	}
	return logs, nil
}

// sized is a file as long as it was in openAll.
type sized struct {
	*os.File
	size int64
}

// file follows the chain through one file.
func (v *verifier) file(ctx context.Context, f sized, current bool) error {
	v.at = Finding{File: filepath.Base(f.Name())}
	v.inFile, v.sealed, v.loose = 0, false, hashed{}
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, f.size),
		int(min(f.size+1, 256<<10)))
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := readLine(r, maxLine)
		if err != nil && err != io.EOF {
			return err
		}
		if len(line) == 0 {
			break
		}
		v.at.Line++
		text, ended := bytes.CutSuffix(line, []byte("\n"))
		if s, ok := parse(text); ok {
			if v.proof.oldest.IsZero() {
				v.proof.oldest = timeOf(text)
			}
			v.record(&s)
		} else {
			v.other(line, text, ended)
		}
		if len(v.proof.Flaws) >= mostFlaws {
			return errEnough
		}
	}
	v.fileEnds(current)
	return nil
}
