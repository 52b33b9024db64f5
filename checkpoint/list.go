package checkpoint

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// List returns checkpoints in the order in which they were saved, the newest first. Their times may
// say otherwise: a clock may be set back, and what is imported is old.
func (d *DB) List(ctx context.Context, f Filter) (page Page, err error) {
	err = d.view(ctx, func(h *history) error {
		page, err = h.list(ctx, f)
		return err
	})
	return page, err
}

func (h *history) list(ctx context.Context, f Filter) (Page, error) {
	below := int64(afterAll)
	if f.Cursor != "" {
		var err error
		if below, err = strconv.ParseInt(f.Cursor, 10, 64); err != nil {
			return Page{}, &BadOpError{"", "the cursor is none that a list gave out"}
		}
	}
	w, err := h.narrow(ctx, &f)
	if err != nil {
		return Page{}, err
	}
	var p Page
	limit := f.limit()
	p.Checkpoints = make([]Checkpoint, 0, limit)
	part := strings.ToLower(f.PathContains)
	for seq := below; p.Next == ""; {
		es, err := h.below(ctx, &f, w, seq, limit+1)
		if err == nil {
			err = h.fillChanges(ctx, es)
		}
		if err != nil {
			return Page{}, fmt.Errorf("listing checkpoints: %w", err)
		}
		for _, e := range es {
			has := func(c Recorded) bool { return strings.Contains(strings.ToLower(c.Path), part) }
			if part != "" && !slices.ContainsFunc(e.c.Changes, has) {
				seq = e.seq
				continue
			}
			if len(p.Checkpoints) == limit {
				p.Next = strconv.FormatInt(seq, 10) // it stays true when that is removed, or more is added
				break
			}
			p.Checkpoints, seq = append(p.Checkpoints, *e.c), e.seq
		}
		if len(es) <= limit {
			break
		}
	}
	return p, nil
}

// narrow is the condition for the checkpoints of f. Where one of its terms holds for few, these are looked up by its index, and the
// condition has their numbers. Of many, the newest are near: then nothing goes by the index of a term, which would gather all.
func (h *history) narrow(ctx context.Context, f *Filter) (w where, err error) {
	own, err := h.scope(ctx, f.scope(), "session")
	if err != nil {
		return w, err
	}
	mine := ""
	for _, term := range own.terms {
		mine += " AND " + term
	}
	args := func(key any) []any { return append([]any{key}, own.args...) }
	type look struct {
		query string
		args  []any
	}
	var looks []look
	if f.Turn != "" {
		looks = append(looks, look{"SELECT seq FROM op WHERE turn IN (SELECT id FROM turn WHERE name=?" + mine + ")", args(f.Turn)})
		w.and("+op.turn IN (SELECT id FROM turn WHERE name=?)", f.Turn)
	}
	if f.PathContains != "" {
		paths, err := h.pathsContaining(ctx, f.PathContains, own)
		if err != nil {
			return w, err
		}
		if len(paths) <= maxIn { // of more, enough checkpoints have one that none need be looked for
			looks = append(looks, look{"SELECT op FROM change WHERE path" + in(paths), nil})
			w.and("EXISTS (SELECT 1 FROM change x WHERE x.op=op.seq AND x.path" + in(paths) + ")")
		}
	}
	if !f.Since.IsZero() || !f.Until.IsZero() {
		since, until := clampNs(f.Since), int64(math.MaxInt64) // the zero time is before all
		if !f.Until.IsZero() {
			until = clampNs(f.Until)
		}
		looks = append(looks, look{"SELECT seq FROM op WHERE ts >= ? AND ts < ?", []any{since, until}})
		w.and("+op.ts >= ? AND +op.ts < ?", since, until)
	}
	if f.Kind != "" {
		looks = append(looks, look{"SELECT seq FROM op WHERE kind=?" + mine, args(f.Kind)})
		w.and("op.kind || '' = ?", f.Kind)
	}
	if f.Tool != "" {
		looks = append(looks, look{"SELECT seq FROM op WHERE tool=?" + mine + " UNION ALL SELECT seq FROM op WHERE kind=?" + mine,
			slices.Concat(args(f.Tool), args(f.Tool))})
		w.and("(op.tool || '' = ? OR op.kind || '' = ?)", f.Tool, f.Tool)
	}
	if f.AllSessions && len(own.terms) > 0 {
		looks = append(looks, look{"SELECT seq FROM op" + own.sql(), own.args})
	}
	w.when(f.NoReads, "op.kind <> ?", KindRead)
	w.when(f.Label != "", "op.label = ?", f.Label)
	by := "op."
	if f.AllSessions || f.Path != "" || f.Label != "" {
		by = "+op."
	}
	if f.Path != "" || f.Label != "" { // these find them by themselves
		looks = nil
	}
	const few = 1000
	for _, l := range looks {
		seqs, err := column[int64](ctx, h.q, l.query+" LIMIT ?", append(l.args, few+1)...)
		if err != nil {
			return w, err
		}
		if len(seqs) <= few {
			w.when(len(seqs) > 0, "op.seq"+in(seqs))
			w.when(len(seqs) == 0, "op.seq = 0") // one statement, which is compiled once
			by = "+op."
			break
		}
	}
	for _, term := range own.terms {
		w.and(by+term, own.args...)
	}
	return w, nil
}

// below returns the n next checkpoints of f below seq for which w holds too, of whichever of its names where a path is asked for.
func (h *history) below(ctx context.Context, f *Filter, w where, seq int64, n int) (es []entry, err error) {
	if f.Path == "" {
		w.and("op.seq < ?", seq)
		return h.entries(ctx, "op"+opJoins+w.sql()+" ORDER BY op.seq DESC LIMIT ?", append(w.args, n)...)
	}
	add := func(path, term string, args ...any) {
		if err != nil {
			return
		}
		w := w.with(thisPath+term+" AND cp.op < ?", append(append([]any{[]byte(path)}, args...), seq)...)
		more, e := h.entries(ctx, opsOfPath+opJoins+w.sql()+" ORDER BY cp.op DESC LIMIT ?", append(w.args, n)...)
		es, err = append(es, more...), e
	}
	for _, path := range append([]string{f.Path}, f.Also...) {
		add(path, "")
		for dir := above(path); dir != ""; dir = above(dir) { // moves of directories above it
			add(dir, " AND cp.role=?", RoleTree)
		}
	}
	slices.SortFunc(es, func(a, b entry) int { return cmp.Compare(b.seq, a.seq) })
	es = slices.CompactFunc(es, func(a, b entry) bool { return a.seq == b.seq }) // one may be of two of the names
	return es[:min(len(es), n)], err
}

// pathsContaining returns the ids of matching paths of sessions, the rows of table session that own holds for. A database folds
// letters of ASCII only, so that the comparing is done here.
func (h *history) pathsContaining(ctx context.Context, part string, own where) (ids []int64, err error) {
	part = strings.ToLower(part)
	q := "SELECT id, path FROM path"
	if len(own.terms) > 0 {
		q += " WHERE id IN (SELECT path FROM known" + own.sql() + ")"
	}
	err = each(ctx, h.q, q, own.args, func(row scanner) error {
		var id int64
		var p sql.RawBytes
		err := row.Scan(&id, &p)
		if strings.Contains(strings.ToLower(string(p)), part) {
			ids = append(ids, id)
		}
		return err
	})
	return ids, err
}

func clampNs(t time.Time) int64 {
	switch y := t.Year(); {
	case y <= oldestYear:
		return -1 << 63
	case y >= youngestYear:
		return 1<<63 - 1
	}
	return t.UnixNano()
}

// where gathers the terms of a condition. All of them have to hold.
type where struct {
	terms []string
	args  []any
}

// with is w and one more term; w stays as it is.
func (w where) with(term string, args ...any) where {
	return where{append(slices.Clip(w.terms), term), append(slices.Clip(w.args), args...)}
}

func (w *where) and(term string, args ...any) { *w = w.with(term, args...) }

// when adds the term if yes.
func (w *where) when(yes bool, term string, args ...any) {
	if yes {
		w.and(term, args...)
	}
}

func (w where) sql() string {
	if len(w.terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.terms, " AND ")
}

// Get returns the checkpoint id if who may see it.
func (d *DB) Get(ctx context.Context, id ID, who Scope) (*Checkpoint, error) {
	var e entry
	err := d.view(ctx, func(h *history) (err error) {
		e, err = visible(ctx, h, who, id)
		return err
	})
	return e.c, err
}

// Changes lists what the operations ops, oldest first, did to path, in that order. Left out are those that were aborted.
func (d *DB) Changes(ctx context.Context, path string, ops []ID) (out []Recorded, err error) {
	if len(ops) == 0 {
		return nil, nil
	}
	wanted := map[ID]bool{}
	for _, id := range ops {
		wanted[id] = true
	}
	err = d.view(ctx, func(h *history) error {
		first, err := h.entry(ctx, "id", ops[0])
		if err != nil {
			return err
		}
		line, err := h.lineage(ctx, path, first.seq)
		out = nil
		for _, e := range line {
			if wanted[e.c.ID] {
				out = append(out, e.c.Changes...)
			}
		}
		return err
	})
	return out, err
}

// Known lists the paths that this session has read or changed, by path, with their last recorded state. Left out are those
// of which all changes were aborted, and those of which retention took the newest: another state now is nobody's change.
func (d *DB) Known(ctx context.Context, who Scope) (known []Known, err error) {
	err = d.planning(ctx, func(h *history) error {
		known, err = h.known(ctx, who)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing known paths: %w", err)
	}
	return known, nil
}

func (h *history) known(ctx context.Context, who Scope) (out []Known, err error) {
	own := map[string]State{}
	err = h.heads(ctx, who, who, "", func(_ int64, c Recorded) { own[c.Path] = c.After })
	if err != nil {
		return nil, err
	}
	// Where retention took a newer one, the last state is not known any more: another state now is nobody's change.
	const newest = " WHERE coalesce(x.gone, 0) <= x.op"
	err = h.heads(ctx, who, anybody, newest, func(seq int64, c Recorded) {
		if left, ok := own[c.Path]; ok {
			out = append(out, Known{c.Path, c.After, c.AfterStored || c.After.Kind != File, c.Before, !h.open[seq], left})
		}
	})
	return out, err
}

// heads calls fn with the newest change that by has recorded of each path that who knows, in the order of the paths, and the
// number of its checkpoint. bound is a condition on the paths x; "" is none.
func (h *history) heads(ctx context.Context, who, by Scope, bound string, fn func(seq int64, c Recorded)) error {
	knows, err := h.scope(ctx, who, "k.session")
	if err != nil {
		return err
	}
	of, err := h.scope(ctx, by, "+op.session")
	if err != nil {
		return err
	}
	of.and("op.outcome<>?", outcomeCode(Aborted))
	changed, read := of.with("op.kind<>?", KindRead), of.with("op.kind=?", KindRead)
	newest := func(w where) string {
		return "(SELECT cp.op FROM " + opsOfPath + w.with("cp.path=p.id").sql() + " ORDER BY cp.op DESC LIMIT 1)"
	}
	// c.op as a range, as in fillChange.
	q := changeColumns + " FROM (SELECT p.id, p.gone, coalesce(" + newest(changed) + ", " + newest(read) + ") AS op FROM path p" +
		" WHERE p.id IN (SELECT path FROM known k" + knows.sql() + ")) x JOIN change c ON c.path=x.id AND c.op>=x.op AND c.op<=x.op" + changeJoins + bound + " ORDER BY p.path"
	return h.eachChange(ctx, q, fn, slices.Concat(changed.args, read.args, knows.args)...)
}

// Expects reports whether the disk may be in state s without anybody outside having changed it: its
// content, or the mode or the owner of a file of which they were recorded.
func (k *Known) Expects(s State) bool {
	return k.State.likely(s) || (!k.Settled && k.Before.likely(s))
}

// likely reports whether a path that was recorded as s is as it was if it is found as now.
func (s State) likely(now State) bool {
	// Of a content that was purged only the size is known. Were it taken for changed, the next turn
	// would store it again.
	purged := s.kind() == File && now.kind() == File && s.Hash == "" && s.ModTime.IsZero() &&
		s.Size == now.Size
	if !purged && !s.Same(now) {
		return false
	}
	return s.kind() != File || s.bare() || now.bare() ||
		s.Mode.Perm() == now.Mode.Perm() && s.UID == now.UID && s.GID == now.GID
}

// LastDir is the mode of the directory when anybody recorded it last, on its own or because
// something was made, read or removed in it.
func (d *DB) LastDir(ctx context.Context, path string) (mode fs.FileMode, known bool, err error) {
	err = d.view(ctx, func(h *history) error {
		const newest = opsOfPath + opJoins + " WHERE " + thisPath + " AND op.outcome<>? ORDER BY cp.op DESC LIMIT 1"
		es, err := h.entries(ctx, newest, []byte(path), outcomeCode(Aborted))
		if err != nil || len(es) == 0 {
			return err
		}
		if err := h.fillChange(ctx, es[0], path); err != nil {
			return err
		}
		c := es[0].change(path)
		for _, s := range []State{c.After, c.Before} {
			if s.kind() == Dir && s.Mode.Perm() != 0 {
				mode, known = s.Mode, true
				return nil
			}
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("looking up a directory: %w", err)
	}
	return mode, known, err
}

// Seen reports whether the store has ever seen that session of that principal; "" stands for any.
// It remembers for a year one that retention took everything of.
func (d *DB) Seen(ctx context.Context, principal, session string) (seen bool, err error) {
	ses := Scope{Principal: principal, Session: session, AllSessions: true}.sessions()
	var trash where
	trash.when(principal != "", "principal=?", principal)
	trash.when(session != "", "session=?", session)
	q := "SELECT EXISTS (SELECT 1 FROM session" + ses.sql() + ") OR EXISTS (SELECT 1 FROM trash" + trash.sql() + ")"
	err = d.view(ctx, func(h *history) (err error) {
		seen, err = one[bool](ctx, h.q, q, append(ses.args, trash.args...)...)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("looking for a session: %w", err)
	}
	return seen, nil
}

// SessionChanges counts what one session has changed, from First to Last. Restores are no changes of their own here.
type SessionChanges struct {
	Principal, Session string
	Changes            int
	First, Last        time.Time
}

// Sessions lists the sessions that have changed something, the last one first. Of f it takes Principal, Since and Until.
func (d *DB) Sessions(ctx context.Context, f Filter) (out []SessionChanges, err error) {
	w := where{}.with("op.outcome<>? AND op.kind NOT IN (?,?,?,?)", outcomeCode(Aborted), KindRead, KindExternal, KindManual, KindRestore)
	w.when(f.Principal != "", "s.principal=?", f.Principal)
	w.when(!f.Since.IsZero(), "op.ts >= ?", clampNs(f.Since))
	w.when(!f.Until.IsZero(), "op.ts < ?", clampNs(f.Until))
	q := "SELECT s.principal, s.name, count(*), min(op.ts), max(op.ts) AS last FROM op JOIN session s ON s.id=op.session" + w.sql() +
		" GROUP BY s.principal, s.name ORDER BY last DESC, s.principal, s.name"
	err = d.view(ctx, func(h *history) error {
		out = nil
		return each(ctx, h.q, q, w.args, func(row scanner) error {
			var s SessionChanges
			var first, last int64
			err := row.Scan(&s.Principal, &s.Session, &s.Changes, &first, &last)
			s.First, s.Last = time.Unix(0, first), time.Unix(0, last)
			out = append(out, s)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("listing sessions: %w", err)
	}
	return out, nil
}
