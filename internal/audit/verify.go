package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A Flaw is what Verify can find.
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

// What Verify notes besides, and what is no flaw.
const (
	NotChained  Flaw = "not_chained" // lines of a log that was not chained yet
	Interrupted Flaw = "interrupted" // the remains of a record whose writer was killed
	Gone        Flaw = "gone"        // records that rotation has removed
)

// Kept is how long records of changes should be there. Somebody who makes many may push them out
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

// Known is what somebody knows of one log from elsewhere.
type Known struct {
	Archived uint64 // the operator took away the records up to this one
	Seen     []Seen
}

// Proof is what Verify found in one log.
type Proof struct {
	Records uint64    `json:"records"` // that are there
	First   uint64    `json:"first,omitempty"`
	Last    uint64    `json:"last,omitempty"`
	Hash    string    `json:"hash,omitempty"` // of the last one
	Flaws   []Finding `json:"flaws"`
	Notes   []Finding `json:"notes"`
}

// mostFlaws is how many are listed; with so many, verification ends.
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
	known  Known
	last   end // what audit.last says
	proof  Proof
	oldest time.Time // of the first record that is there

	at      Finding // the line that is looked at
	next    uint64  // number of the record that should come; 0: none was met
	head    digest  // the hash of the last record
	bound   digest  // the same behind the lines since, which are no records
	sure    bool    // head is known: no record is missing right before
	before  Finding // the last record
	differs Finding // the record that audit.last names, where it has another hash
	inFile  int     // records of this file so far
	strange []stranger
	gaps    []Finding // records that were not where they belong
	gone    uint64    // the records up to this one are rightly missing
}

// A stranger is a line that is no record of the chain where it stands.
type stranger struct {
	at   Finding
	torn bool
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
	known.Seen = slices.Clone(known.Seen)
	v := verifier{known: known, gone: known.Archived, proof: Proof{Flaws: []Finding{}, Notes: []Finding{}}}
	logs, last, err := openLogs(dir)
	defer closeAll(logs)
	sizes := make([]int64, len(logs))
	for i, f := range logs { // later records are not looked at
		info, serr := f.Stat()
		if err = errors.Join(err, serr); serr == nil {
			sizes[i] = info.Size()
		}
	}
	if last != nil {
		v.last = *last
	}
	for i, f := range logs {
		if err == nil {
			err = v.file(ctx, f, sizes[i])
		}
	}
	if err == nil {
		v.end()
	}
	if err == errEnough {
		err = nil
	}
	if v.proof.Records > 0 {
		v.proof.Hash = hex.EncodeToString(v.head[:])
	}
	if err != nil {
		err = fmt.Errorf("verifying the audit log: %w", err)
	}
	return v.proof, v.oldest, err
}

// file follows the chain through one file.
func (v *verifier) file(ctx context.Context, f *os.File, size int64) error {
	v.at, v.inFile = Finding{File: filepath.Base(f.Name())}, 0
	err := eachLine(io.NewSectionReader(f, 0, size), func(_ int64, line []byte, _ bool) error {
		v.at.Line++
		t, ok := parse(line)
		switch {
		case len(line) == 0:
		case !ok:
			v.stray(line)
		default:
			v.record(&t, line)
		}
		if len(v.proof.Flaws) >= mostFlaws {
			return errEnough
		}
		return ctx.Err()
	})
	for _, s := range v.strange { // nothing is bound to them
		switch {
		case v.next == 0:
			v.note(NotChained, s.at)
		case s.torn:
			v.note(Interrupted, s.at)
		default:
			v.flaw(Inserted, s.at)
		}
	}
	v.strange, v.bound = nil, v.head
	return err
}

func (v *verifier) stray(line []byte) {
	v.bound = link(v.bound, line)
	if len(v.strange) < mostFlaws {
		v.strange = append(v.strange, stranger{v.at, torn(line)})
	}
}

// record is a line that claims to be one.
func (v *verifier) record(t *tie, line []byte) {
	number, first := t.Seq, v.next == 0
	if first {
		v.next, v.sure = 1, true
		var r struct{ Time time.Time }
		_ = json.Unmarshal(line, &r)
		v.oldest = r.Time
	}
	bound, clean := t.prev == v.bound, t.prev == v.head
	if v.sure && (bound || clean) { // it is the next one, whatever it says
		number = v.next
	}
	if number < v.next && (t.Seq > 1 || v.inFile > 0) {
		v.stray(line)
		return
	}
	if number < v.next {
		v.flaw(NewChain, v.at)
		v.next, v.sure, v.strange, v.differs = 1, false, nil, Finding{}
	}
	missing := number - v.next
	for _, s := range v.strange {
		switch {
		case bound && missing == 0 && first:
			v.note(NotChained, s.at)
		case bound && missing == 0 && s.torn:
			v.note(Interrupted, s.at)
		case !bound && (missing > 0 || !clean): // it is one of the records that are missing, or it was torn
			v.flaw(Changed, s.at)
			if missing > 0 {
				v.next, missing = v.next+1, missing-1
				v.sure = false
			}
		default:
			v.flaw(Inserted, s.at)
		}
	}
	if missing > 0 {
		gap := v.at
		gap.First, gap.Last = v.next, number-1
		v.gaps, v.sure = append(v.gaps, gap), false
	}
	if v.sure && !bound && !clean && len(v.strange) == 0 {
		if v.before.Line == 0 {
			v.before = v.at
		}
		v.flaw(Changed, v.before)
	}
	v.head = sha256.Sum256(line)
	v.bound, v.sure, v.next, v.strange = v.head, true, number+1, nil
	if v.before = v.at; number == v.last.seq && v.head != v.last.hash {
		v.differs = v.at
	}
	v.inFile++
	v.gone = max(v.gone, t.Gone)
	if v.proof.Records++; v.proof.First == 0 {
		v.proof.First = number
	}
	v.proof.Last = number
	for i, s := range v.known.Seen {
		if s.Number == number {
			if hex.EncodeToString(v.head[:]) != s.Hash {
				v.flaw(Not, v.at)
			}
			v.known.Seen[i].Number = 0
		}
	}
}

// end adds the flaws that only the whole log shows: records that are missing, and an end that does not fit.
func (v *verifier) end() {
	v.next = max(v.next, 1)
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
	for _, s := range v.known.Seen {
		if s.Number > v.gone {
			v.flaw(Not, Finding{First: s.Number})
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
		v.proof.Flaws = append(v.proof.Flaws, withFlaw(f, at))
	}
}

func withFlaw(f Flaw, at Finding) Finding {
	at.Flaw = f
	return at
}
