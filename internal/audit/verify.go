package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"moltisfs/internal/ndjson"
)

// A Flaw is a kind of finding of Verify.
type Flaw string

// The flaws: somebody did this to the log, or a disk did.
const (
	Changed   Flaw = "changed"   // a record is not as it was written: the next one has another hash of it
	Dropped   Flaw = "dropped"   // records are missing before this line
	Truncated Flaw = "truncated" // records are missing at the end; a power cut may do that as well
	Inserted  Flaw = "inserted"  // a line that the log did not write here
	NewChain  Flaw = "new_chain" // a chain that is bound to nothing before it
	NoEnd     Flaw = "no_end"    // audit.last is missing or older than the log
	Not       Flaw = "not_seen"  // a record is not the one that an earlier verification saw
	Early     Flaw = "early"     // rotation has removed records of changes that should still be there
)

// Verify notes these besides; they are no flaws.
const (
	Interrupted Flaw = "interrupted" // the remains of a record whose writer was killed
	Gone        Flaw = "gone"        // records that rotation has removed
)

// NotCompared and OtherLog are noted by a caller of Verify that has ends of the log on record elsewhere: the log is not fully verified then.
const (
	NotCompared Flaw = "not_compared" // those ends could not be had
	OtherLog    Flaw = "other_log"    // another log is on record for the same place
)

// Kept is the time for which records of changes should be there. Somebody who makes many may push them out
// earlier.
const Kept = 30 * 24 * time.Hour

// A Finding is one flaw, or one thing to note.
type Finding struct {
	Flaw  Flaw   `json:"flaw"`
	File  string `json:"file,omitempty"` // its name in the directory
	Line  int    `json:"line,omitempty"`
	First uint64 `json:"first_record,omitempty"`
	Last  uint64 `json:"last_record,omitempty"`
}

// A Seen is the last record of a log when it was verified: kept elsewhere, it says later whether that
// record, and all before it, are still what they were.
type Seen struct {
	Number uint64
	Hash   string // 64 hex digits
}

// Known is knowledge of one log from elsewhere.
type Known struct {
	Archived uint64 // the operator took away the records up to this one
	Seen     []Seen
}

// Proof is the result of Verify for one log.
type Proof struct {
	Records uint64    `json:"records"` // that are there
	First   uint64    `json:"first,omitempty"`
	Last    uint64    `json:"last,omitempty"`
	Hash    string    `json:"hash,omitempty"` // of the last one
	Flaws   []Finding `json:"flaws"`
	Notes   []Finding `json:"notes"`
}

// mostFlaws bounds the flaws that are listed; with so many, verification ends.
const mostFlaws = 1000

var errEnough = errors.New("too many flaws")

// Verify follows the chain of the log in dir, while others may write.
func Verify(ctx context.Context, dir string, known Known) (Proof, error) {
	p, _, err := verify(ctx, dir, known)
	return p, err
}

// VerifyChanges is Verify for the log of changes beside dir. Records that rotation removed there too
// early are a flaw.
func VerifyChanges(ctx context.Context, dir string, known Known) (Proof, error) {
	p, oldest, err := verify(ctx, ChangesDir(dir), known)
	if errors.Is(err, fs.ErrNotExist) { // it is made with the other one
		p.Flaws = append(p.Flaws, Finding{Flaw: NoEnd})
		return p, nil
	}
	for _, n := range p.Notes {
		if n.Flaw == Gone && n.Last > known.Archived && time.Since(oldest) < Kept {
			n.Flaw = Early
			p.Flaws = append(p.Flaws, n)
		}
	}
	return p, err
}

// A verifier goes through the lines of a log in their order.
type verifier struct {
	seen   map[uint64][]string // hashes of records that were seen earlier, by number, until the record is met
	last   end                 // as audit.last has it
	proof  Proof
	oldest time.Time // of the first record that is there

	at      Finding   // the line that is looked at
	inFile  int       // records of its file so far
	next    uint64    // number of the record that should come
	head    digest    // hash of the record before, zeros at the beginning
	before  Finding   // where that stands
	differs Finding   // the record that audit.last names, where it has another hash
	gaps    []Finding // records that were not where they belong
	gone    uint64    // the records up to this one are rightly missing
}

func (v *verifier) flaw(f Flaw, at Finding) {
	for _, was := range v.proof.Flaws {
		if at.Line > 0 && was.File == at.File && was.Line == at.Line {
			return
		}
	}
	at.Flaw = f
	v.proof.Flaws = append(v.proof.Flaws, at)
}

func (v *verifier) note(f Flaw, at Finding) {
	if n := len(v.proof.Notes); n > 0 && f != Gone { // lines one after the other are one note
		if was := v.proof.Notes[n-1]; was.Flaw == f && was.File == at.File {
			return
		}
	}
	if at.Flaw = f; len(v.proof.Notes) < mostFlaws {
		v.proof.Notes = append(v.proof.Notes, at)
	}
}

func verify(ctx context.Context, dir string, known Known) (p Proof, oldest time.Time, err error) {
	seen := map[uint64][]string{}
	for _, s := range known.Seen {
		seen[s.Number] = append(seen[s.Number], s.Hash)
	}
	v := verifier{seen: seen, gone: known.Archived, next: 1, proof: Proof{Flaws: []Finding{}, Notes: []Finding{}}}
	logs, last, err := openLogs(dir)
	defer closeAll(logs)
	sizes := make([]int64, len(logs))
	for i, f := range logs { // later records are not looked at
		info, serr := f.Stat()
		if err = errors.Join(err, serr); serr == nil {
			sizes[i] = info.Size()
		}
	}
	v.last = last
	for i, f := range logs {
		if err == nil {
			v.at, v.inFile = Finding{File: filepath.Base(f.Name())}, 0
			err = v.file(ctx, bufio.NewReaderSize(io.NewSectionReader(f, 0, sizes[i]), 64<<10))
		}
	}
	switch {
	case err == nil:
		v.end()
	case err == errEnough:
		err = nil
	default:
		err = fmt.Errorf("verifying the audit log: %w", err)
	}
	if v.proof.Records > 0 {
		v.proof.Hash = hex.EncodeToString(v.head[:])
	}
	return v.proof, v.oldest, err
}

// file follows the chain through one file. A line that is no record is the rest of one whose writer was
// killed, or somebody put it in.
func (v *verifier) file(ctx context.Context, r *bufio.Reader) error {
	for {
		line, err := ndjson.ReadLine(r, maxLine)
		if err == io.EOF {
			return nil
		}
		if err != nil && err != ndjson.ErrTooLong {
			return err
		}
		v.at.Line++
		line = bytes.TrimSuffix(line, []byte("\n"))
		torn := len(line) < len(begun) && strings.HasPrefix(begun, string(line)) || bytes.HasPrefix(line, []byte(begun))
		switch t, ok := parse(line); {
		case ok:
			v.record(&t, line)
		case err != nil || len(line) > 0 && (!torn || json.Valid(line)):
			v.flaw(Inserted, v.at)
		case len(line) > 0:
			v.note(Interrupted, v.at)
		}
		if len(v.proof.Flaws) >= mostFlaws {
			return errEnough
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// record is a line that claims to be one. Its number is where it stands in the chain: given the record 4
// behind the record 2, the record 3 is missing; behind the record 5, somebody put it in. If it is bound to
// the record before it is the next one, whatever number it has: then the one after it is not bound to it.
func (v *verifier) record(t *tie, line []byte) {
	bound := t.Prev == hex.EncodeToString(v.head[:])
	switch {
	case bound:
	case t.Seq > v.next:
		v.gaps = append(v.gaps, Finding{File: v.at.File, Line: v.at.Line, First: v.next, Last: t.Seq - 1})
		v.next = t.Seq
	case t.Seq == v.next:
		v.flaw(Changed, cmp.Or(v.before, v.at))
	case t.Seq == 1 && v.inFile == 0:
		v.flaw(NewChain, v.at)
		v.next, v.differs = 1, Finding{}
	default:
		v.flaw(Inserted, v.at)
		return
	}
	if v.proof.Records == 0 {
		var r struct{ Time time.Time }
		_ = json.Unmarshal(line, &r) // else it is as old as can be
		v.oldest, v.proof.First = r.Time, v.next
	}
	v.head, v.before = sha256.Sum256(line), v.at
	if v.next == v.last.seq && v.head != v.last.hash {
		v.differs = v.at
	}
	for _, hash := range v.seen[v.next] {
		if hex.EncodeToString(v.head[:]) != hash {
			v.flaw(Not, v.at)
		}
	}
	delete(v.seen, v.next)
	v.gone = max(v.gone, t.Gone)
	v.proof.Last = v.next
	v.proof.Records++
	v.inFile++
	v.next++
}

// end adds the flaws that only the whole log shows: records that are missing, and an end that does not fit.
func (v *verifier) end() {
	for _, g := range v.gaps {
		v.missing(Dropped, g)
	}
	switch last := v.last.seq; {
	case last >= v.next:
		at := v.before
		at.First, at.Last = v.next, last
		v.missing(Truncated, at)
	case last+2 == v.next: // its writer was killed before it could say so
		v.note(Interrupted, v.before)
	case last+2 < v.next && v.proof.Records > 0:
		v.flaw(NoEnd, Finding{})
	}
	if v.differs.Line > 0 {
		v.flaw(Changed, v.differs)
	}
	for _, n := range slices.Sorted(maps.Keys(v.seen)) {
		if n > v.gone && len(v.proof.Flaws) < mostFlaws {
			v.flaw(Not, Finding{First: n})
		}
	}
}

// missing says that records are missing, where rotation has not removed them.
func (v *verifier) missing(f Flaw, at Finding) {
	if at.First <= v.gone {
		v.note(Gone, Finding{First: at.First, Last: min(at.Last, v.gone)})
		at.First = v.gone + 1
	}
	if at.First <= at.Last {
		at.Flaw = f
		v.proof.Flaws = append(v.proof.Flaws, at)
	}
}
