package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
)

// A verifier goes through the lines of a log in their order.
type verifier struct {
	keys  []Key // those given, and the one that the chain stands at
	given []Key
	state *link  // where the chain stands by audit.key; nil where that can't be told
	steps uint64 // how far keys may still be followed
	proof Proof

	at     Finding // the line that is looked at
	inFile uint64  // records in its file so far
	sealed bool    // the last of them said that it is the last
	loose  hashed  // what stands in the file since the last record, and is none
	lines  []stranger

	chain chain
	gone  uint64 // the records up to this one are rightly missing
}

// A stranger is a line that is no record of the chain where it stands.
type stranger struct {
	at    Finding
	whole bool // it is a JSON object, or a record with a wrong MAC
	ended bool
}

// A chain is what the verifier knows of the one that it follows.
type chain struct {
	name   string // "": none was met
	next   uint64 // number of the record that should come
	head   digest
	sure   bool // head is known: no record is missing right before
	key    digest
	at     uint64 // the record that key is of; 0: no key
	over   uint64 // no key of this record or an earlier one leads further
	last   Finding
	doubt  bool    // the last record does not fit the one before; whose fault that is, the next one tells
	before Finding // the one before
	beyond Finding // the first record behind where the chain stands by audit.key
	gaps   []gap
}

// A gap is records that were not where they belong.
type gap struct {
	first, last uint64
	at          Finding
}

// mostBehind is how many records there can be behind where the chain stands by audit.key. After a
// power cut there may be some.
const mostBehind = 1 << 16

// mostSteps is how far keys are followed, which takes half a minute.
const mostSteps = 1 << 28

func (v *verifier) flaw(f Flaw, at Finding) {
	for _, was := range v.proof.Flaws {
		if at.Line > 0 && was.File == at.File && was.Line == at.Line && was.Flaw == f {
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

// other is a line that is no record: of a log without a chain, the remains of a record, or foreign.
func (v *verifier) other(line, text []byte, ended bool) {
	_, _ = v.loose.Write(line) // it does not fail
	if len(bytes.TrimSpace(text)) > 0 && len(v.lines) < mostFlaws {
		v.lines = append(v.lines, stranger{v.at, json.Valid(text), ended})
	}
}

// record is a line that claims to be one.
func (v *verifier) record(s *sealed) {
	v.at.First, v.at.Last = s.seq, s.seq
	defer func() { v.at.First, v.at.Last = 0, 0 }()
	c := &v.chain
	if s.mark.Begins != "" && s.mark.Begins != c.name {
		v.begin(s.mark.Begins)
	} else if c.name == "" { // its beginning is not here
		c.name, c.next = "?", 1
		if v.state != nil {
			c.name = v.state.chain
		}
	}
	number := s.seq
	if c.sure && s.prev == c.head { // it is the next one, whatever it says
		number = c.next
	}
	if v.state != nil && c.name == v.state.chain && number > v.state.seq+mostBehind {
		v.lines = append(v.lines, stranger{v.at, true, true})
		return
	}
	key, keyed := v.keyFor(number, v.keys)
	proven := keyed && number == s.seq && s.by(key)
	v.strays(s)
	if keyed && !proven && number > c.next && s.mark.Opens { // the key was changed in between
		v.flaw(KeyState, v.at)
		keyed, c.over = false, number-1
	}
	switch {
	case keyed && !proven:
		v.lines = append(v.lines, stranger{v.at, true, true})
		return
	case number != s.seq: // nothing but its number is wrong, as far as one sees
		v.flaw(Changed, v.at)
	case number < c.next:
		v.late(s)
		return
	case number > c.next:
		v.missing(c.next, number-1)
		c.sure = false
	default:
		v.strange(0)
	}
	if v.accept(s, number, proven); keyed && !s.mark.Key {
		c.key, c.at = key, number
	}
}

// begin is a record that begins a chain.
func (v *verifier) begin(name string) {
	if v.chain.name != "" {
		v.flaw(NewChain, v.at)
	}
	v.endChain()
	v.chain = chain{name: name, next: 1, sure: true}
}

// keyFor is the key of a record, as far as it follows from the keys that there are.
func (v *verifier) keyFor(number uint64, keys []Key) (key digest, ok bool) {
	c := &v.chain
	key, at := c.key, c.at
	for _, k := range keys {
		if k.Chain == c.name && k.From <= number && k.From > max(at, c.over) {
			key, at = k.secret, k.From
		}
	}
	if at == 0 || at > number || number-at > v.steps {
		return key, false
	}
	for v.steps -= number - at; at < number; at++ {
		key = evolved(key)
	}
	return key, true
}

// accept takes a record as the one of its number.
func (v *verifier) accept(s *sealed, number uint64, proven bool) {
	c := &v.chain
	if proven {
		v.proof.Proven++
	}
	fits := !c.sure || s.prev == c.head
	switch {
	case c.doubt && fits: // the last one is as the next one saw it, so the one before is not
		v.flaw(Changed, c.before)
	case c.doubt:
		v.flaw(Changed, c.last)
	}
	c.doubt = !fits && !proven
	if !fits && proven && c.last.Line > 0 {
		v.flaw(Changed, c.last)
	}
	c.before, c.last, c.head, c.sure, c.next = c.last, v.at, s.head(), true, number+1
	if v.proof.Records++; v.proof.First == 0 || number < v.proof.First {
		v.proof.First = number
	}
	v.proof.Last = number
	v.inFile++
	v.gone = max(v.gone, s.mark.Gone)
	v.sealed = s.mark.Seals > 0
	if s.mark.Key {
		c.at, c.over = 0, number
	}
	if v.state != nil && c.name == v.state.chain && number >= v.state.seq && c.beyond.Line == 0 {
		c.beyond = v.at
	}
	if v.sealed && s.mark.Seals > v.inFile && len(v.proof.Flaws)+len(c.gaps) == 0 {
		v.flaw(Dropped, v.at)
	}
}

// late is a record that stands behind one with a higher number.
func (v *verifier) late(s *sealed) {
	v.strange(0)
	for i := range v.chain.gaps {
		g := &v.chain.gaps[i]
		if s.seq < g.first || s.seq > g.last {
			continue
		}
		v.flaw(Reordered, v.at)
		v.proof.Records++
		rest := gap{s.seq + 1, g.last, g.at}
		if g.last = s.seq - 1; rest.first <= rest.last {
			v.chain.gaps = append(v.chain.gaps, rest)
		}
		return
	}
	v.flaw(Inserted, v.at)
}

// strays looks at what stands before a record: what the record tells of, the log itself has seen.
func (v *verifier) strays(s *sealed) {
	told := v.loose.is(s.mark.Stray)
	unchained := s.mark.Begins != ""
	v.loose = hashed{}
	if !told && !(unchained && s.mark.Stray != nil) {
		return
	}
	if unchained && !told && len(v.lines) > 0 {
		v.flaw(Changed, v.lines[0].at)
	}
	for _, l := range v.lines {
		switch {
		case unchained:
			v.note(NotChained, l.at)
		case l.whole:
			v.flaw(Inserted, l.at)
		default:
			v.note(Interrupted, l.at)
		}
	}
	v.lines = v.lines[:0]
}

// missing are records that are not where they belong.
func (v *verifier) missing(first, last uint64) {
	if last -= v.strange(last - first + 1); first <= last {
		v.chain.gaps = append(v.chain.gaps, gap{first, last, v.at})
	}
}

// strange says what the strange lines before here are: as many as records are missing are those
// records, the others were put there. It gives how many were taken for records.
func (v *verifier) strange(missing uint64) (records uint64) {
	for _, l := range v.lines {
		if records < missing {
			records++
			v.flaw(Changed, l.at)
		} else {
			v.flaw(Inserted, l.at)
		}
	}
	v.lines = v.lines[:0]
	return records
}

// fileEnds is the end of a file, which may be the remains of a record.
func (v *verifier) fileEnds(current bool) {
	if n := len(v.lines) - 1; n >= 0 && !v.lines[n].ended && !v.lines[n].whole {
		v.note(Interrupted, v.lines[n].at)
		v.lines = v.lines[:n]
	}
	if v.chain.name == "" {
		for _, l := range v.lines {
			v.note(NotChained, l.at)
		}
		v.lines = v.lines[:0]
	}
	if !current && v.inFile > 0 && !v.sealed {
		v.at.Line = 0
		v.note(Moved, v.at)
	}
}

// endChain says what is missing of the chain for good.
func (v *verifier) endChain() {
	c := &v.chain
	for _, g := range c.gaps {
		if g.first <= v.gone && g.first <= g.last {
			v.note(Gone, Finding{First: g.first, Last: min(g.last, v.gone)})
			g.first = v.gone + 1
		}
		if g.first <= g.last {
			g.at.First, g.at.Last = g.first, g.last
			v.flaw(Dropped, g.at)
		}
	}
	c.gaps = nil
}

// end compares the end of the log with audit.key.
func (v *verifier) end() {
	c, s := &v.chain, v.state
	if s != nil && c.name == "" && s.seq > 1 {
		c.name = s.chain
	}
	v.proof.Chain = c.name
	switch {
	case s == nil && c.name != "":
		v.flaw(KeyState, Finding{})
	case s != nil && c.name != "" && s.chain != c.name:
		v.flaw(KeyState, Finding{})
	case s != nil:
		c.next = max(c.next, 1)
		if left := s.seq; left > c.next {
			taken := v.strange(left - c.next)
			if first := c.next + taken; first < left && first <= v.gone {
				v.note(Gone, Finding{First: first, Last: min(left-1, v.gone)})
			}
			if first := max(c.next+taken, v.gone+1); first < left {
				v.flaw(Truncated, Finding{File: cmp.Or(c.last.File, FileName), Line: c.last.Line,
					First: first, Last: left - 1})
			}
		} else if left == c.next && c.sure && c.head != s.head && !c.doubt {
			v.flaw(Changed, c.last)
		} else if left+1 == c.next {
			v.note(Interrupted, c.beyond)
		} else if left < c.next {
			v.flaw(KeyState, c.beyond)
		}
		if key, ok := v.keyFor(s.seq, v.given); ok && key != s.key {
			v.flaw(KeyState, Finding{})
		}
	}
	if c.doubt && s != nil && c.head == s.head {
		v.flaw(Changed, c.before)
	} else if c.doubt {
		v.flaw(Changed, c.last)
	}
	v.strange(0)
	v.endChain()
}
