package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"moltisfs/checkpoint"
	"moltisfs/internal/engine/rewind"
	"moltisfs/internal/fleet"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// A change that came to no end, because it failed or because its process died, is brought to one by what stands at the two names of each
// step: its path and its temporary name. Each object there is the one that was staged, which its row names, or the one that was there
// before, or somebody else's. A half-made step is renamed back; that needs neither the store nor room. A recovery that is killed is
// continued by the next one.

// journalName is where in the data directory the record is of names that the store has no row of.
const journalName = "temporaries"

// A record is what is kept of a step as long as its change is open.
type record struct {
	N      int // of its temporary name
	Do     Action
	Path   string
	To     string  `json:",omitempty"` // of a rename
	Dir    string  `json:",omitempty"` // of the temporary name. "": nothing of the step is to be taken back
	Before object  `json:",omitzero"`
	After  object  `json:",omitzero"`
	Tree   []entry `json:",omitempty"` // what was staged in a new directory, the topmost first

	// In a fleet, of one step of a change: the machine that makes it, and the lasting identity of the directory above as that one sees it.
	// See otherView.
	By, In string `json:",omitempty"`

	Names   string            `json:",omitempty"` // a digest of what is in a directory that comes as a whole
	Was, Is *guardfs.Metadata `json:",omitempty"` // of a directory that gets another mode, owner or attributes

	begun   bool   // this process has begun to change it in place
	was, is []byte // of a file, with begun
}

// An object is what was, or will be, at a path. The zero object is nothing. Hash is "" where nobody knows the content.
type object struct {
	ID   string       `json:",omitempty"` // guardfs.Identity.Lasting
	Kind guardfs.Kind `json:",omitempty"`
	Hash string       `json:",omitempty"`
	Mode fs.FileMode  `json:",omitempty"`
	Size int64        `json:",omitempty"`
	Time int64        `json:",omitempty"` // of the last modification, in nanoseconds
}

// An entry is an object in a new directory: Path is relative to that.
type entry struct {
	Path string
	object
}

func objectOf(i guardfs.Info, hash string) object {
	if i.Kind == guardfs.KindAbsent {
		return object{}
	}
	return object{i.ID.Lasting(), i.Kind, hash, i.Mode, i.Size, i.ModTime.UnixNano()}
}

// is says that at holds what o describes: kind, content and mode. A directory, and a file whose content nobody knows, has to be that very
// object. now is what was read for that; nil where nothing was.
func (o *object) is(at *guardfs.Entry) (is bool, now *guardfs.Before, err error) {
	var i guardfs.Info
	if at != nil {
		i = at.Object().Info
	}
	switch {
	case i.Kind != o.Kind:
		return false, nil, nil
	case i.Kind == guardfs.KindAbsent:
		return true, nil, nil
	case i.Kind == guardfs.KindDir || i.Kind == guardfs.KindOther:
		return i.ID.Lasting() == o.ID, nil, nil
	case o.Hash == "":
		return i.ID.Lasting() == o.ID && i.Size == o.Size && i.ModTime.UnixNano() == o.Time, nil, nil
	}
	if now, err = at.Sum(); err != nil {
		return false, nil, err
	}
	return now.Hash == o.Hash && (i.Kind == guardfs.KindSymlink || now.Info.Mode == o.Mode), now, nil
}

// A rollback is the steps of one change that is open.
type rollback struct {
	c      *Call
	tag    string
	steps  []record
	before map[string]before // by path, what the store has of it; nil where it has nothing
	db     *checkpoint.DB
	live   bool   // it is taken back by who made it: what has no temporary name was not made
	ended  bool   // others have ended it: what has no temporary name they have taken back
	failed int    // the step that could not be made, with live
	left   string // the lasting name of what could not be put back
	hidden bool   // nothing of it was ever published
	blind  bool   // the identities in its rows mean nothing here: whatever is at a name counts as the thing that they name
}

// before is the state of a path before a change.
type before struct {
	checkpoint.State
	stored bool // its content
}

// stored says that the checkpoint holds what was at name before.
func (p *rollback) stored(name string) (was checkpoint.State, ok bool) {
	b, ok := p.before[name]
	return b.State, ok && (b.stored || b.Kind != checkpoint.File)
}

// single says that the last rename makes the whole change, so that it tells by itself whether that was made: all others bring the
// directories above it. Others may have put something into what it moved; after a kill they find it there, and not in the trash.
func (p *rollback) single() bool {
	last := -1
	for i := range p.steps {
		if p.steps[i].Dir != "" {
			last = i
		}
	}
	for i := range max(last, 0) {
		s := &p.steps[i]
		if s.Dir != "" && (s.Do != Mkdir || !below(cmp.Or(p.steps[last].To, p.steps[last].Path), s.Path)) {
			return false
		}
	}
	return true
}

// paths are all paths that the steps are about.
func (p *rollback) paths() (out []string) {
	for i := range p.steps {
		s := &p.steps[i]
		out = append(out, s.Path)
		if s.To != "" {
			out = append(out, s.To)
		}
		for j := range s.Tree {
			out = append(out, s.Path+"/"+s.Tree[j].Path)
		}
	}
	return slices.DeleteFunc(out, inTrash)
}

// name gives the name of the step in the agent's tree.
func (s *record) name() string {
	if inTrash(s.Path) {
		return s.To
	}
	return s.Path
}

// recover ends what dead processes have left open, the newest first. A change that was made is finished, any other is taken back. It runs
// before the first call, before a restore, and where a change meets one that is open.
//
// A change is left as it is where today's policy denies one of its paths. A process that may reach them all decides, such as the next call with
// another root. recover waits for locks until then, in total. A change that is still locked is left for later.
func (c *Call) recover(ctx context.Context, until time.Time) error {
	ctx, err := c.leased(ctx)
	if err != nil {
		return err
	}
	open, err := c.openOps(ctx)
	if err != nil {
		return err
	}
	for _, o := range open {
		if !c.dead(ctx, o.tag) { // it is being carried out, or taken back
			continue
		}
		// Another start tries again; calls on other paths need not wait for that.
		err := c.recoverOp(ctx, o, until)
		if c.place.Calls != nil && (errors.Is(err, guardfs.ErrUnavailable) || errors.Is(err, errLater)) {
			c.left.Store(true) // the worker has died again: the next call has another one
		} else if CutOff(err) {
			return err // it is open as before
		} else if err != nil {
			c.logUnrecovered(o.key(), err)
		}
	}
	return nil
}

// An openOp is a change whose outcome is not known.
type openOp struct {
	tag   string
	id    checkpoint.ID // "" where the store has no row of it
	made  bool
	steps []record            // none where it was not ready
	names []guardfs.GivenName // that it gave without a row
	db    *checkpoint.DB
	late  bool // this process has made it, and leaveLate has left it
}

// key is its name in a log.
func (o *openOp) key() checkpoint.ID {
	if o.id == "" {
		return checkpoint.ID(o.tag)
	}
	return o.id
}

// openOps lists the changes that are open, the newest first, but for those that this engine carries out.
func (e *Engine) openOps(ctx context.Context) (open []openOp, err error) {
	known := map[string]bool{}
	db, err := e.checkpoints.existing()
	var rows []checkpoint.OpenOp
	if err == nil && db != nil {
		rows, err = db.Open(ctx)
	}
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		known[row.Tag] = true
		o := openOp{tag: row.Tag, id: row.ID, made: row.Made, db: db}
		if err := json.Unmarshal(row.Steps, &o.steps); err != nil {
			e.logUnrecovered(row.ID, fmt.Errorf("what its row says of its steps can't be read: %w", err))
			continue
		}
		open = append(open, o)
	}
	for _, tag := range e.journal.Tags() {
		o := openOp{tag: tag}
		var notes []string
		if o.names, notes, err = e.journal.Names(tag); err != nil {
			return nil, &hostError{"reading the data directory", err}
		}
		for _, note := range notes {
			var s record
			if json.Unmarshal([]byte(note), &s) == nil {
				o.steps = []record{s}
			}
		}
		if !known[tag] {
			open = append(open, o)
		}
	}
	return slices.DeleteFunc(open, func(o openOp) bool { _, ours := e.live.Load(o.tag); return ours }), nil
}

// existing is the store, or nil where none was ever made.
func (s *checkpointStore) existing() (*checkpoint.DB, error) {
	if !s.fleet.HasStore() && !checkpoint.Exists(s.dir) {
		return nil, nil
	}
	return s.open()
}

// underway says of a tag that the temporary names with it are ours for a moment.
func (e *Engine) underway(tag string) bool {
	if _, ours := e.live.Load(tag); ours {
		return true
	}
	db, err := e.checkpoints.existing()
	if db == nil || err != nil {
		return false
	}
	rows, err := db.Open(context.Background())
	return err == nil && slices.ContainsFunc(rows, func(r checkpoint.OpenOp) bool { return r.Tag == tag })
}

// endLate ends the changes that leaveLate has left. Others may have settled one meanwhile, by what they saw then: it is finished if they
// said that it was made, and taken back if they said that it was not. endLate waits so long for another lease. What can't be ended is
// tried again before the next change.
func (e *Engine) endLate(wait time.Duration) {
	until := time.Now().Add(wait)
	e.late.Range(func(tag, _ any) bool {
		late, ours := e.late.LoadAndDelete(tag)
		if !ours { // another call does that
			return true
		}
		o := late.(openOp)
		var err error
		for tries := 0; tries < 20 || errors.Is(err, fleet.ErrFenced); tries++ { // each may meet another connection that broke since its last use
			var ctx context.Context
			if ctx, err = e.leased(context.Background()); err == nil {
				err = e.own().recoverOp(ctx, o, until)
			}
			if !CutOff(err) || !time.Now().Before(until) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil {
			e.late.Store(tag, o)
		}
		if err != nil && !CutOff(err) {
			e.logUnrecovered(o.key(), err)
		}
		return !CutOff(err)
	})
}

// dead says that nobody carries out the operation of that tag.
func (e *Engine) dead(ctx context.Context, tag string) bool {
	unlock, err := e.lockFor(ctx, "recovery", []string{opKey(tag)}, lockTry)
	if err == nil {
		unlock()
	}
	return err == nil
}

// recoverOp brings one operation to its end.
func (c *Call) recoverOp(ctx context.Context, o openOp, until time.Time) error {
	p := &rollback{c: c, tag: o.tag, steps: o.steps, db: o.db}
	paths := p.paths()
	var changes []checkpoint.Recorded
	if o.id != "" {
		op, err := o.db.Get(ctx, o.id, checkpoint.Scope{AllSessions: true})
		if err != nil {
			return err
		}
		changes, p.before = op.Changes, map[string]before{}
		for i := range changes {
			ch := &changes[i]
			paths, p.before[ch.Path] = append(paths, ch.Path), before{ch.Before, ch.Stored || ch.Role == checkpoint.RoleAppended}
		}
	}
	for _, n := range o.names {
		if !inTrash(n.Beside) {
			paths = append(paths, n.Beside)
		}
	}
	unlock, err := c.lockAll(ctx, p, paths, until)
	if err != nil {
		return err
	}
	defer unlock()
	made := o.made
	if o.id != "" { // it may have waited
		rows, err := o.db.Open(ctx)
		at := slices.IndexFunc(rows, func(r checkpoint.OpenOp) bool { return r.ID == o.id })
		switch {
		case err != nil || at < 0 && !o.late:
			return err
		case at < 0:
			op, err := o.db.Get(ctx, o.id, checkpoint.Scope{AllSessions: true})
			if err != nil {
				return err
			}
			made, p.ended = op.Outcome == checkpoint.Committed, true
		default:
			made = rows[at].Made
		}
	} else if !c.journal.Has(o.tag) {
		return nil
	}
	if err := c.reaches(paths); err != nil {
		return err
	}
	if err := p.otherView(o.id); err != nil {
		if o.id != "" && o.id == c.givesUp {
			err = p.giveUp(ctx, o.id, made)
		}
		return err
	}
	if len(p.steps) == 1 && p.steps[0].Do == Append && len(changes) == 1 && !p.ended {
		return c.recoverAppend(ctx, o.db, o.id, &changes[0], &p.steps[0])
	}
	if !made && !p.ended && p.single() && (o.id != "" || len(p.steps) > 0) {
		if made, err = p.made(); err != nil {
			return err
		}
	}
	if made {
		if err = p.finish(ctx, o.id); err == nil {
			c.journal.Forget(o.tag)
		}
		return err
	}
	stuck, again := p.rollBack(ctx)
	if again != nil {
		return fmt.Errorf("%w: %w", errLater, again)
	}
	outcome := checkpoint.Aborted
	if stuck != nil {
		outcome = checkpoint.Foreign
	}
	if err := c.discardAll(ctx, o.names); err != nil {
		return err
	}
	c.journal.Forget(o.tag)
	switch {
	case o.id == "", p.ended && stuck == nil:
		return nil
	case stuck != nil:
		c.logger.Warn("of an interrupted change not everything could be taken back; "+
			"its checkpoint holds what was there", "id", o.id, "paths", stuck)
	default:
		c.logger.Info("an interrupted change was taken back", "id", o.id, "paths", len(changes))
	}
	return o.db.Settle(ctx, o.id, outcome)
}

// noteView puts into the row how this machine sees the tree, for those who may have to take the change back. It goes by the shortest path: the
// directory above may be one that the change makes or removes for any other.
func (p *rollback) noteView() {
	var top *record
	for i := range p.steps {
		if s := &p.steps[i]; s.Do != "" && (top == nil || len(s.Path) < len(top.Path)) {
			top = s
		}
	}
	if top != nil && p.c.fleet.HasStore() {
		top.By, top.In = p.c.machine, p.parentID(top)
	}
}

// parentID is the lasting identity of the directory that the path of a step is in; "" where it is not there.
func (p *rollback) parentID(s *record) string {
	at, err := p.c.trash.EntryLink(path.Join(cmp.Or(s.Dir, path.Dir(s.Path)), guardfs.TempName(p.tag, s.N)))
	if err != nil {
		return ""
	}
	defer at.Close() //nolint:errcheck // nothing was written through it
	return at.ParentID().Lasting()
}

// otherView refuses to take a change of another machine back where that directory is not the same object here. Recovery goes by inode
// numbers and times of birth; device numbers are no part of that, so that a network volume may have another one on each machine. A volume
// that numbers its files for each machine, or is not there, must not have the recovery guess.
func (p *rollback) otherView(id checkpoint.ID) error {
	for i := range p.steps {
		s := &p.steps[i]
		if s.In != "" && s.In != p.parentID(s) && s.By != p.c.machine {
			return Refuse(OtherView, s.name(), ViewFacts{s.By, id})
		}
	}
	return nil
}

// ViewFacts: a machine that sees the volume in another way has begun a change.
type ViewFacts struct {
	Machine string
	ID      checkpoint.ID
}

// giveUp ends a change that otherView leaves to another machine, since a person restores it with skip or force: that one will not come back.
// Nothing is removed and nothing put back. What stands at its temporary names gets names under which it is kept, and told.
func (p *rollback) giveUp(ctx context.Context, id checkpoint.ID, made bool) error {
	p.blind = true
	for i := range p.steps {
		s := &p.steps[i]
		if s.Dir == "" {
			continue
		}
		if err := p.c.fenced(ctx); err != nil {
			return err
		}
		at, err := p.open(i)
		if err != nil {
			return err
		}
		for _, t := range []*guardfs.Entry{at.temp, at.old, at.fresh} {
			if err == nil && idAt(t) != "" {
				err = p.dispose(t, s.name(), false)
			}
		}
		at.close()
		if err != nil {
			return err
		}
	}
	if err := errors.Join(p.syncNames(), p.settleTrash(ctx)); err != nil {
		return err
	}
	p.c.logger.Warn("an interrupted change of another machine was given up; its checkpoint holds what was there", "id", id, "paths", p.paths())
	outcome := checkpoint.Foreign
	if made {
		outcome = checkpoint.Committed
	}
	return p.db.Settle(ctx, id, outcome)
}

// endGivenUp gives up the change that a restore gives up, should it be open still: then the restore had nothing to do with its paths.
func (c *Call) endGivenUp(ctx context.Context) error {
	ctx, err := c.leased(ctx)
	if err != nil {
		return err
	}
	open, err := c.openOps(ctx)
	for _, o := range open {
		if o.id == c.givesUp && c.dead(ctx, o.tag) {
			err = c.ownFor().recoverOp(ctx, o, time.Now().Add(c.lockWait))
		}
	}
	return err
}

// tailWindow is how much of what others appended is looked through for a tail.
const tailWindow = 16 << 20

// recoverAppend ends the append of a dead process.
func (c *Call) recoverAppend(ctx context.Context, db *checkpoint.DB, id checkpoint.ID, ch *checkpoint.Recorded,
	step *record) error {
	at, size, hash := ch.Before.Size, ch.After.Size-ch.Before.Size, ch.After.Tail
	content, err := db.Content(ctx, cmp.Or(hash, ch.After.Hash))
	if err != nil && !lacking(err) {
		return err
	}
	if hash == "" && err == nil { // the store has the whole file
		content = content[at:]
		hash = HashOf(content)
	}
	is, err := c.endAppend(ctx, step, at, size, hash, content)
	if err != nil {
		return err
	}
	if is == checkpoint.Foreign {
		c.logger.Warn("an append was cut off, and what is there now is left as it is: others have "+
			"changed the file since, or nobody knows what was to be appended",
			"id", id, "path", step.Path, "from", at, "bytes", size)
	} else {
		c.logger.Info("an interrupted append was ended", "id", id, "path", step.Path, "outcome", is)
	}
	return db.Settle(ctx, id, is)
}

// lacking says that the store does not have a content, or not for us.
func lacking(err error) bool {
	_, bad := errors.AsType[*checkpoint.CorruptError](err)
	return bad || errors.Is(err, checkpoint.ErrNoContent) || errors.Is(err, checkpoint.ErrSealed)
}

// endAppend brings an append to its end that was interrupted, and says what became of it: at the size at of the file, size bytes with that hash
// were to come. content is nil where the store must not hold them. It never takes a byte away: others may have appended since. The missing part is
// appended if the file ends with the part that is there. If not, it is left as it is found.
func (c *Call) endAppend(ctx context.Context, step *record, at, size int64, hash string, content []byte) (checkpoint.Outcome, error) {
	place, err := c.placeOf(step.Path)
	if err != nil {
		return "", err
	}
	if place == nil {
		return checkpoint.Foreign, nil
	}
	defer place.Close() //nolint:errcheck // nothing was written through it
	info := place.Object().Info
	if info.Kind != guardfs.KindFile || info.ID.Lasting() != step.Before.ID || info.Size < at {
		return checkpoint.Foreign, nil // another file, or cut off by others
	}
	if info.Size == at {
		return checkpoint.Aborted, nil
	}
	f, err := c.openSame(step.Path, info.ID)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	there := make([]byte, min(info.Size-at, size+tailWindow))
	n, err := f.ReadAt(there, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	there = there[:n]
	whole := int64(n) >= size
	switch {
	case whole && HashOf(there[:size]) == hash, content != nil && bytes.Contains(there, content):
		_, err = place.Append(info.ID, nil) // it syncs: nobody may have come to do that
		return checkpoint.Committed, err
	case whole || !bytes.HasPrefix(content, there):
		return checkpoint.Foreign, nil
	}
	if err := c.fenced(ctx); err != nil {
		return "", err // others may have appended it
	}
	made, err := place.Append(info.ID, content[n:])
	if err != nil {
		return "", err
	}
	if made.At != at+int64(n) { // others came in between; it is all there, in two pieces
		return checkpoint.Foreign, nil
	}
	return checkpoint.Committed, nil
}

// discardAll removes what has the names that were given while a change was made ready. Nobody ever had it by another name.
func (c *Call) discardAll(ctx context.Context, names []guardfs.GivenName) error {
	for _, n := range names {
		at, err := c.placeOf(n.Beside)
		if at == nil || err != nil {
			if err != nil {
				return err
			}
			continue // its directory is gone
		}
		temp, err := at.Temp(n.Base)
		at.Close() //nolint:errcheck // nothing was written through it
		if err == nil {
			err = c.discard(ctx, temp, temp.Object().Info)
			temp.Close() //nolint:errcheck // see above
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// discard removes what is staged at temp, which is i, with all in it.
func (e *Engine) discard(ctx context.Context, temp *guardfs.Entry, i guardfs.Info) error {
	switch i.Kind {
	case guardfs.KindAbsent:
		return nil
	case guardfs.KindDir:
	default:
		return temp.Drop(guardfs.Precondition{ID: i.ID})
	}
	at, err := e.trash.EntryLink(path.Join(temp.ParentTrue(), temp.Base()))
	if err != nil {
		return err
	}
	defer at.Close() //nolint:errcheck // nothing was written through it
	return at.RemoveTree(ctx, i.ID.Lasting())
}

var errLater = errors.New("not everything can be taken back at this time")

// errOutOfReach: policy denies this process a path of an interrupted operation. Another process may
// reach it.
var errOutOfReach = errors.New("some of its paths are out of reach")

// reaches refuses where policy denies any of the paths of an operation.
func (c *Call) reaches(paths []string) error {
	for _, name := range paths {
		place, err := c.fs.EntryLink(name)
		if err == nil {
			place.Close()
		}
		if _, no := errors.AsType[*policy.Denied](err); no {
			return fmt.Errorf("%w: %w", errOutOfReach, err)
		}
	}
	return nil
}

// lockAll locks all paths of an operation, with the keys that a change of them would take, and the operation itself. It waits for others
// until then, but always a moment.
func (c *Call) lockAll(ctx context.Context, p *rollback, paths []string, until time.Time) (func(), error) {
	const rounds = 16 // as often as directories may come and go under us
	keys := c.recoveryKeys(p, paths)
	for range rounds {
		unlock, err := c.lockFor(ctx, "recovery", keys, max(time.Until(until), lockTry))
		if err != nil {
			return nil, err
		}
		held := keys
		if keys = c.recoveryKeys(p, paths); subset(keys, held) {
			return unlock, nil
		}
		unlock()
	}
	return nil, &guardfs.ConflictError{Path: paths[0], Why: guardfs.DirInTurns}
}

// recoveryKeys are the lock keys of an operation's paths, as those of a plan are: of each name, of what is there, and of the directories above.
func (c *Call) recoveryKeys(p *rollback, paths []string) []string {
	keys, dirs := []string{opKey(p.tag)}, map[string]bool{}
	for i := range p.steps {
		for _, name := range []string{p.steps[i].Path, p.steps[i].To} {
			if p.steps[i].Do == Rename && !inTrash(name) {
				keys = append(keys, guardfs.TreeKey(name))
			}
		}
	}
	for _, name := range paths {
		above(name, dirs)
		keys = append(keys, guardfs.NameKey(name))
		if place, err := c.fs.EntryLink(name); err == nil { // any error is met again by the recovery
			keys = append(keys, place.LockKey())
			place.Close() //nolint:errcheck // nothing was written through it
		}
	}
	for dir := range dirs {
		keys = append(keys, guardfs.Shared(guardfs.TreeKey(dir)))
	}
	return keys
}

// made says of a change that its last rename makes that it was made.
func (p *rollback) made() (bool, error) {
	i := len(p.steps) - 1
	for i >= 0 && p.steps[i].Dir == "" {
		i--
	}
	if i < 0 {
		return true, nil
	}
	s := &p.steps[i]
	at, err := p.open(i)
	if err != nil {
		return false, err
	}
	defer at.close()
	st, err := p.stands(s, at)
	made := st == stepMade || st == stepBare
	switch {
	case s.Do == Rename: // whatever has become of its old name
		made = at.it != nil && at.it == at.to && st != stepLinked
	case s.Do == Remove:
		made = idAt(at.place) == ""
	}
	if made && err == nil && s.Do != Rename && at.it != nil { // others have put it there, and it has to come back
		made, _, err = s.Before.is(at.it)
	}
	return made && err == nil, err
}

// ours says that what is at a place is the very object that was staged, and that nobody wrote to it. Of a directory it is that object,
// whatever is in it.
func (s *record) ours(at *guardfs.Entry) (bool, guardfs.Precondition, error) {
	if s.After.ID == "" || idAt(at) != s.After.ID {
		return false, guardfs.Precondition{}, nil
	}
	is, now, err := s.After.is(at)
	if now != nil {
		return is, guardfs.Found(now), err
	}
	return is, guardfs.Precondition{ID: at.Object().Info.ID}, err
}

// finish brings a change to its end that was made: what was there before goes, and directories that were to go if they are empty.
func (p *rollback) finish(ctx context.Context, id checkpoint.ID) error {
	if err := p.settleTrash(ctx); err != nil {
		return err
	}
	for i := range slices.Backward(p.steps) {
		if err := p.tidy(i); err != nil {
			return err
		}
	}
	if err := p.syncNames(); err != nil {
		return err
	}
	for i := range p.steps {
		if s := &p.steps[i]; s.Dir == "" && s.Before.ID != "" {
			if err := p.c.removeEmpty(s.Path, s.Before.ID); err != nil && !errors.Is(err, errNotOurs) && !inUse(err) {
				p.c.logger.Warn("a directory could not be removed", "path", s.Path, "err", err)
			}
		}
	}
	if id == "" {
		return nil
	}
	return p.db.Settle(ctx, id, checkpoint.Committed)
}

// tidy removes the object that the i-th step of a change that was made has displaced. An object that nobody looked at before is kept under another name.
func (p *rollback) tidy(i int) error {
	s := &p.steps[i]
	if s.Dir == "" || s.Do == Rename || s.Do == Overwrite || s.Do == SetDir {
		return nil
	}
	at, err := p.open(i)
	if err != nil {
		return err
	}
	defer at.close()
	for _, t := range []*guardfs.Entry{at.temp, at.old} {
		if idAt(t) == "" {
			continue
		}
		known, _, err := s.Before.is(t)
		if err == nil && !known {
			known, _, err = s.ours(t)
		}
		if err == nil {
			err = p.dispose(t, s.Path, known)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dispose removes what is at a temporary name if it is known, and else keeps it under another one. A directory goes only if it is empty.
func (p *rollback) dispose(temp *guardfs.Entry, of string, known bool) error {
	if known {
		err := temp.Drop(guardfs.Precondition{ID: temp.Object().Info.ID})
		if !inUse(err) {
			return err
		}
	}
	left, err := temp.Preserve()
	p.c.logger.Warn("what was found under a temporary name is kept", "of", of, "as", left, "err", err)
	p.left = left
	return err
}

// syncNames puts the names of all steps on stable storage.
func (p *rollback) syncNames() error {
	synced := map[string]bool{}
	for i := range p.steps {
		if p.steps[i].Dir == "" {
			continue
		}
		at, err := p.open(i)
		if err != nil {
			return err
		}
		for _, place := range []*guardfs.Entry{at.place, at.temp, at.to} {
			if place == nil || err != nil || synced[place.ParentTrue()] {
				continue
			}
			synced[place.ParentTrue()] = true
			err = place.SyncNames()
		}
		at.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// names are the names of a step, opened. One is nil where there is no such directory, or no such name.
type names struct {
	place, temp, old, fresh *guardfs.Entry
	to                      *guardfs.Entry // of a rename

	it  *guardfs.Entry       // where the object is that has to go back; nil: nowhere. See stands
	now guardfs.Precondition // of what the step has brought to place
}

func (n *names) close() {
	for _, place := range []*guardfs.Entry{n.place, n.temp, n.old, n.fresh, n.to} {
		if place != nil {
			place.Close() //nolint:errcheck // nothing was written through it
		}
	}
}

// displaced is where what was displaced is; nil: it is nowhere.
func (n *names) displaced() *guardfs.Entry {
	for _, t := range []*guardfs.Entry{n.old, n.temp} {
		if idAt(t) != "" {
			return t
		}
	}
	return nil
}

// idAt is which object is at a place; "" for none.
func idAt(at *guardfs.Entry) string {
	if at == nil {
		return ""
	}
	return lasting(at.Object().Info)
}

func lasting(i guardfs.Info) string {
	if i.Kind == guardfs.KindAbsent {
		return ""
	}
	return i.ID.Lasting()
}

// open opens the names of the i-th step and looks at what has them.
func (p *rollback) open(i int) (_ *names, err error) {
	s, out := &p.steps[i], &names{}
	defer func() {
		if err != nil {
			out.close()
		}
	}()
	if out.place, err = p.c.placeOf(s.Path); err != nil {
		return nil, err
	}
	if s.Do == Rename {
		if out.to, err = p.c.placeOf(s.To); err != nil || inTrash(s.Path) || inTrash(s.To) || out.place == nil {
			return out, err
		}
	}
	if s.Do == Overwrite || s.Do == SetDir {
		return out, nil
	}
	// Policy was asked about the path in that directory, not about the directory.
	at := out.place
	if below, _, more := strings.Cut(strings.TrimPrefix(s.Path[len(s.Dir):], "/"), "/"); s.Do != Rename && (more || at == nil) {
		if at, err = p.c.placeOf(path.Join(s.Dir, below)); err != nil || at == nil {
			return out, err
		}
		defer at.Close() //nolint:errcheck // nothing was written through it
	}
	temp := guardfs.TempName(p.tag, s.N)
	if out.temp, err = at.Temp(temp); err == nil && s.Do != Rename {
		out.old, err = at.Temp(guardfs.OldName(temp))
	}
	if err == nil && s.Do != Rename {
		out.fresh, err = at.Temp(guardfs.NewName(temp))
	}
	return out, err
}

// treeOf is the tree that a canonical path is in: that of the agent, or our own.
func (c *Call) treeOf(name string) *guardfs.FS {
	if inTrash(name) {
		return c.trash
	}
	return c.fs
}

// placeOf opens the place of a canonical path. It is nil where its directory is not there, or where
// the way to it leads elsewhere by now.
func (c *Call) placeOf(name string) (*guardfs.Entry, error) {
	place, err := c.treeOf(name).EntryLink(name)
	if _, gone := errors.AsType[*guardfs.MissingParentError](err); gone || errors.Is(err,
		syscall.ENOTDIR) {
		return nil, nil
	}
	if err == nil && place.Object().True != name {
		place.Close() //nolint:errcheck // nothing was written through it
		return nil, nil
	}
	return place, err
}

// rollBack takes back every step that was made, the last one first. stuck are the paths where others were in the way. again says why
// something has to be tried later.
func (p *rollback) rollBack(ctx context.Context) (stuck []string, again error) {
	for i := range slices.Backward(p.steps) {
		if p.steps[i].Dir == "" { // it comes after all others, and has no way back
			continue
		}
		held, err := p.undo(ctx, i)
		if held || err != nil {
			stuck = append(stuck, p.steps[i].name())
		}
		if err != nil {
			again = errors.Join(again, err)
			p.c.logger.Error("a step of a change that failed could not be taken back", "path", p.steps[i].Path, "err", err)
		}
	}
	if again == nil && !p.hidden {
		again = p.syncNames()
	}
	if again == nil {
		again = p.settleTrash(ctx)
	}
	return stuck, again
}

// undo takes back one step, by what is at its names now, and by nothing else. It goes from one state to the next, so that it can be begun
// again at any time. stuck: others have put another thing there, which stays.
func (p *rollback) undo(ctx context.Context, i int) (stuck bool, err error) {
	const rounds = 64 // as often as others may come in between
	for range rounds {
		if err := p.c.fenced(ctx); err != nil {
			return false, err // others do that now
		}
		at, err := p.open(i)
		if err != nil {
			return false, err
		}
		more, stuck, err := p.takeBack(ctx, i, at)
		at.close()
		if _, moved := errors.AsType[*guardfs.ConflictError](err); moved {
			more, err = true, nil // the next look tells what is so now
		}
		if err != nil || !more {
			return stuck, err
		}
	}
	return true, &guardfs.ConflictError{Path: p.steps[i].Path, Why: guardfs.ChangedAgain}
}

var errDirGone = errors.New("its directory is gone")

// errNotOurs: another thing is at the path.
var errNotOurs = errors.New("another thing is in its place")

// inUse says that a directory can't be removed because something is in it.
func inUse(err error) bool {
	return errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST)
}

// put gives what is at from the name place, which nobody has.
func put(ctx context.Context, place, from *guardfs.Entry) error {
	_, err := place.Publish(ctx, from, guardfs.Precondition{}, guardfs.Precondition{ID: from.Object().Info.ID})
	return err
}

// A stand is how far a step is, by what stands at its names.
type stand int

const (
	stepUnmade  stand = iota // it was not made, or is taken back
	stepStaged               // what it brings is at its temporary name
	stepLinked               // names.it is a second name of what is at the path, as between the two calls that some systems take for a rename
	stepVacant               // names.it has what was there before, and the path is free
	stepTaken                // likewise, and others have the path
	stepHalf                 // what is changed in place is neither as before nor as after
	stepMade                 // it is made; names.it has what was there before, or was moved
	stepBare                 // likewise, and nobody has what was there before
	stepStays                // others have the path, and what the step has moved is where it was to come
	stepForeign              // others have the path
	stepGone                 // its directory is not there
)

// stands looks how far a step is.
func (p *rollback) stands(s *record, at *names) (st stand, err error) {
	switch s.Do {
	case Rename:
		return s.renamed(at), nil
	case Overwrite, SetDir:
		return p.inPlace(s, at)
	}
	ours, now, err := s.ours(at.place)
	if err != nil {
		return 0, err
	}
	at.it, at.now = at.displaced(), now
	switch here := idAt(at.place); {
	case at.place == nil && s.Before.ID != "":
		return stepGone, nil
	case here != "" && here == idAt(at.old):
		at.it = at.old
		return stepLinked, nil
	case here != "" && here == idAt(at.temp):
		at.it = at.temp
		return stepLinked, nil
	case s.After.ID != "" && idAt(at.temp) == s.After.ID:
		return stepStaged, nil
	case ours && at.it == nil && s.Before.ID != "":
		return stepBare, nil
	case ours:
		return stepMade, nil
	case at.it == nil:
		if is, _, err := s.Before.is(at.place); is || err != nil {
			return stepUnmade, err
		}
		return stepForeign, nil
	case here == "" && s.Before.ID != "":
		return stepVacant, nil
	}
	return stepTaken, nil
}

// renamed is stands of a step that gives something another name, over a private one.
func (s *record) renamed(at *names) stand {
	if at.it = at.temp; idAt(at.it) == "" {
		at.it = at.to
	}
	here := idAt(at.place)
	switch {
	case at.it == at.to && idAt(at.to) != s.Before.ID:
		if at.it = nil; here == s.Before.ID {
			return stepUnmade
		}
		return stepForeign
	case at.place == nil:
		return stepGone
	case here == s.Before.ID && idAt(at.it) == here && at.place.Object().Info.Links > 1 && guardfs.NameKey(s.Path) != guardfs.NameKey(s.To):
		return stepLinked // the same name in another case is the same
	case here == "" && at.it == at.to:
		return stepMade
	case here == "":
		return stepVacant
	case at.it == at.to:
		return stepStays
	}
	return stepTaken
}

// inPlace is stands of a step that changes what is there in place: it syncs what it finds whole, since nobody may have come to do that.
func (p *rollback) inPlace(s *record, at *names) (stand, error) {
	switch {
	case p.live && !s.begun:
		return stepUnmade, nil
	case at.place == nil:
		return stepGone, nil
	case idAt(at.place) != s.Before.ID:
		return stepStays, nil
	}
	var is, was bool
	if s.Do == SetDir { // a name of an attribute that can't be given here was not given
		now, err := at.place.DirMetadata()
		if err != nil {
			return 0, err
		}
		is, was = rewind.SameMetadata(metaState(now), metaState(*s.Is)), rewind.SameMetadata(metaState(now), metaState(*s.Was))
	} else {
		now, err := at.place.Sum()
		if err != nil {
			return 0, err
		}
		if is, was = now.Hash == s.After.Hash, now.Hash == s.Before.Hash; is || was {
			if _, _, err := at.place.Overwrite(guardfs.Found(now), nil); err != nil {
				return 0, err
			}
		}
	}
	switch {
	case was:
		return stepUnmade, nil
	case is:
		return stepMade, nil
	}
	return stepHalf, nil
}

// takeBack is the table of recovery: by what stands at the names of the i-th step it makes one move towards what was there before. more: look
// again. stuck: others' thing stays. Where they are in the way, what was there before gets another name.
func (p *rollback) takeBack(ctx context.Context, i int, at *names) (more, stuck bool, err error) {
	s := &p.steps[i]
	st, err := p.stands(s, at)
	if err != nil {
		return false, false, err
	}
	switch st {
	case stepUnmade, stepForeign:
		if at.fresh != nil {
			err = p.c.discard(ctx, at.fresh, at.fresh.Object().Info)
		}
		return false, st == stepForeign && !p.live && !p.ended, err
	case stepStays:
		return false, true, nil
	case stepGone:
		return false, false, errDirGone
	case stepLinked:
		return true, false, at.place.DropLink(at.it)
	case stepStaged:
		return p.unstage(ctx, s, at)
	case stepBare:
		return p.restage(ctx, s, at)
	case stepVacant:
		return true, false, put(ctx, at.place, at.it)
	case stepHalf:
		stuck, err = p.rewrite(ctx, s, at)
		return false, stuck, err
	case stepMade:
		switch {
		case s.Do == Overwrite || s.Do == SetDir:
			stuck, err = p.rewrite(ctx, s, at)
			return false, stuck, err
		case s.Do == Rename && s.Names != "" && p.used(ctx, s):
			return false, true, nil
		case s.Do == Rename:
			return true, false, put(ctx, at.place, at.it)
		case at.it == nil: // the new one goes
			_, err = at.place.Publish(ctx, at.temp, at.now, guardfs.Precondition{})
		default:
			_, err = at.place.Publish(ctx, at.it, at.now, guardfs.Precondition{ID: at.it.Object().Info.ID})
		}
		return true, false, err
	}
	if s.Do == Rename { // taken
		if at.to != nil && idAt(at.to) == "" {
			return true, true, put(ctx, at.to, at.it)
		}
		return false, true, p.dispose(at.it, s.Path, false)
	}
	known, _, err := s.Before.is(at.it)
	if err == nil {
		_, stored := p.stored(s.Path)
		err = p.dispose(at.it, s.Path, known && stored && !p.live)
	}
	return at.it == at.old && idAt(at.temp) != "", !p.live || i != p.failed, err // of that the cause tells
}

// restage makes the file or link that was displaced anew, from the store. Where the store does not have it, what is there stays.
func (p *rollback) restage(ctx context.Context, s *record, at *names) (more, stuck bool, err error) {
	was, ok := p.stored(s.Path)
	if !ok || at.temp == nil || p.db == nil || !leaf(was.Kind) || was.Kind == checkpoint.File && was.Hash == "" {
		return false, true, nil
	}
	what := guardfs.NewObject{Kind: guardfs.KindSymlink, Content: []byte(was.Target)}
	if was.Kind == checkpoint.File {
		what = guardfs.NewObject{Kind: guardfs.KindFile, Meta: metadata(was), Sync: true}
		if what.Content, err = p.db.Content(ctx, was.Hash); lacking(err) {
			return false, true, nil
		}
	}
	if err == nil {
		err = p.c.discard(ctx, at.fresh, at.fresh.Object().Info) // half of it
	}
	if err != nil {
		return false, false, err
	}
	fresh, made, err := at.temp.Stage(ctx, at.fresh.Base(), what)
	if err != nil {
		return false, false, err
	}
	defer fresh.Close() //nolint:errcheck // it is synced
	if err = fresh.Sync(); err == nil {
		_, err = at.temp.Publish(ctx, fresh, guardfs.Precondition{}, made.Precondition())
	}
	if err != nil {
		fresh.Drop(made.Precondition()) //nolint:errcheck // then the next look finds it
	}
	return true, false, err
}

// unstage removes what was staged and is not published. Of a directory all goes that is as it was staged, and it too if nothing else is
// in it; otherwise others use it, and it stays.
func (p *rollback) unstage(ctx context.Context, s *record, at *names) (more, stuck bool, err error) {
	temp := at.temp
	if s.After.Kind != guardfs.KindDir {
		ours, _, err := s.ours(temp)
		if err == nil {
			err = p.dispose(temp, s.Path, ours)
		}
		return idAt(at.old) != "", false, err // then it was half-way in a trade that takes several renames
	}
	top := temp.ParentTrue() + "/" + temp.Base()
	for i := range slices.Backward(s.Tree) {
		o := &s.Tree[i]
		in, err := p.c.trash.EntryLink(top + "/" + o.Path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return false, false, err
		}
		if idAt(in) == o.ID {
			is, _, ierr := o.is(in)
			if err = ierr; is && err == nil {
				err = in.Drop(guardfs.Precondition{ID: in.Object().Info.ID})
			}
		}
		in.Close() //nolint:errcheck // nothing was written through it
		if err != nil && !inUse(err) {
			return false, false, err
		}
	}
	err = temp.Drop(guardfs.Precondition{ID: temp.Object().Info.ID})
	switch {
	case !inUse(err):
		return false, false, err
	case at.place == nil:
		return false, false, errDirGone
	case idAt(at.place) == "":
		return false, true, put(ctx, at.place, temp)
	}
	return false, true, p.dispose(temp, s.Path, false)
}

// used says that others have put something into a directory that came as a whole, or took something out: then it stays where they find it.
func (p *rollback) used(ctx context.Context, s *record) bool {
	in, err := p.c.walkForDelete(ctx, s.To, true, nil)
	return err != nil || HashOf([]byte(in.names)) != s.Names
}

// rewrite gives what a step has changed in place what it had. Of a file, a mixture of both contents is written over with the old one, the
// same way; any other content is somebody else's, and stays. Where others have changed the attributes of a directory since, theirs can't be
// told from half of ours, and go: nothing but a mode is lost.
func (p *rollback) rewrite(ctx context.Context, s *record, at *names) (stuck bool, err error) {
	if s.Do == SetDir {
		_, err = at.place.SetAttributes(at.place.Object().Info.ID, *s.Was)
		return false, err
	}
	now, err := at.place.Load(maxLoad)
	if _, large := errors.AsType[*guardfs.TooLargeError](err); large {
		return true, nil
	}
	was, is := s.was, s.is
	if was == nil && err == nil {
		was, err = p.db.Content(ctx, s.Before.Hash)
	}
	if is == nil && err == nil {
		is, err = p.db.Content(ctx, s.After.Hash)
	}
	if lacking(err) || err == nil && !mixed(now.Content, was, is) {
		return true, nil
	}
	if err == nil {
		_, _, err = at.place.Overwrite(guardfs.Found(now), nonNil(was))
	}
	return false, err
}

// mixed says that now is what a writing of after over before, or the reverse, leaves when it is cut off: the kernel looks for a kill between
// two blocks, never within one. A block is of the one or of the other; where the shorter one ends within it, the rest may be the longer one's.
// Beyond the old content there may be zeros.
func mixed(now, before, after []byte) bool {
	const block = 4 << 10
	if n := len(now); n < min(len(before), len(after)) || n > max(len(before), len(after)) {
		return false
	}
	part := func(b []byte, i int) []byte { return b[min(len(b), i):min(len(b), i+block)] }
	over := func(short, long []byte) []byte {
		return append(slices.Clone(short), long[min(len(long), len(short)):]...)
	}
	for i := 0; i < len(now); i += block {
		is, old, fresh := part(now, i), part(before, i), part(after, i)
		if !bytes.Equal(is, old) && !bytes.Equal(is, fresh) && !bytes.Equal(is, over(fresh, old)) && !bytes.Equal(is, over(old, fresh)) &&
			(i < len(before) || len(bytes.Trim(is, "\x00")) > 0) {
			return false
		}
	}
	return true
}

// nonNil is b, empty in place of nil.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// settleTrash has the catalog say of each thing that was moved to the trash, or back, where it is.
func (p *rollback) settleTrash(ctx context.Context) error {
	var errs []error
	for i := range p.steps {
		s := &p.steps[i]
		if s.Do != Rename || !inTrash(s.Path) && !inTrash(s.To) || p.db == nil {
			continue
		}
		at, err := p.open(i)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		slot, in := s.To, at.to
		if inTrash(s.Path) {
			slot, in = s.Path, at.place
		}
		is := idAt(in)
		there := is == s.Before.ID || p.blind && (in == nil || is != "") // a directory that is not seen here may have it
		at.close()
		for _, unsettled := range []bool{true, false} {
			entries, err := p.c.entriesAt(ctx, p.db, s.name(), unsettled)
			errs = append(errs, err)
			for j := range entries {
				if t := &entries[j]; t.Parked == slot && (unsettled || !there) {
					errs = append(errs, p.c.settleEntry(ctx, p.db, t, there))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// logUnrecovered warns, once, of an operation that this process could not take back; another process may. No call waits for it here. One
// whose paths are only locked does not count: a call on those paths waits, or is refused.
func (e *Engine) logUnrecovered(id checkpoint.ID, err error) {
	if _, locked := errors.AsType[*guardfs.LockedError](err); locked {
		if _, told := e.waiting.LoadOrStore(id, true); !told {
			e.logger.Warn("an interrupted change has to wait: its paths are locked", "id", id, "err", err)
		}
		return
	}
	switch _, told := e.unrecovered.LoadOrStore(id, err); {
	case told:
	case errors.Is(err, errOutOfReach): // nothing to worry about: it may have ended, and that is about to be written
		e.logger.Info("an interrupted change is left to a start that may reach all its paths", "id", id, "err", err)
	default:
		e.logger.Error("an interrupted change could not be taken back", "id", id, "err", err)
	}
}

// leftAlone says that this process could not take back an operation, and that calls on its paths need not wait for those who can.
func (e *Engine) leftAlone(o *openOp) bool {
	why, left := e.unrecovered.Load(o.key())
	return left && !OtherView.In(why.(error))
}

// interruptedError: another change of these paths died half-way. It has been taken back, or is
// being.
type interruptedError struct {
	err error
	of  openOp
}

func (e *interruptedError) Error() string { return e.err.Error() }
func (e *interruptedError) Unwrap() error { return e.err }

// stands says that the change was made after all: plans that count on it hold.
func (e *interruptedError) stands(ctx context.Context) bool {
	if e.of.id == "" {
		return false
	}
	op, err := e.of.db.Get(ctx, e.of.id, checkpoint.Scope{AllSessions: true})
	return err == nil && op.Outcome == checkpoint.Committed
}

// interrupted finds another change that is open at, above or below the paths of a plan, or of what it looked at. We hold the locks of
// these paths, so mostly its process is dead. Else somebody is taking it back and waits for us, or it was made and is about to say so.
func (c *Call) interrupted(ctx context.Context, p *Plan, looked []string) error {
	open, err := c.openOps(ctx)
	if err != nil {
		return notSaved(err)
	}
	var ours []string
	for _, o := range open {
		if o.made || c.leftAlone(&o) { // one that was made has left no more than temporary names
			continue
		}
		if ours == nil {
			ours = append(p.Paths(), looked...)
		}
		for _, theirs := range (&rollback{steps: o.steps}).paths() {
			if slices.ContainsFunc(ours, func(name string) bool {
				return name == theirs || below(name, theirs) || below(theirs, name)
			}) {
				if why, known := c.unrecovered.Load(o.key()); known && o.id != c.givesUp {
					return why.(error)
				}
				return &interruptedError{&guardfs.ConflictError{Path: p.first(), Why: guardfs.BeingTakenBack}, o}
			}
		}
	}
	return nil
}

// unsettled is an *interruptedError when the plan undoes a change whose outcome is unknown, because its paths are locked or somebody is just
// looking. It is OtherView where nobody here will ever know.
func (c *Call) unsettled(ctx context.Context, plan *checkpoint.Plan) error {
	open, err := c.openOps(ctx)
	for _, o := range open {
		if !slices.Contains(plan.Undoes, o.id) || o.id == c.givesUp || c.leftAlone(&o) {
			continue
		}
		if why, known := c.unrecovered.Load(o.key()); known {
			return why.(error)
		}
		return &interruptedError{Refuse(Unsettled, "", o.id), o}
	}
	return err
}

// keptOnly lets us look at the names under which something is kept beside a file, and at nothing else.
type keptOnly struct{}

func (keptOnly) Judge(o guardfs.Object, _ guardfs.Access) error {
	if guardfs.IsKept(path.Base(o.True)) {
		return nil
	}
	return fs.ErrPermission
}

func (keptOnly) Dir(string, ...string) guardfs.DirVerdict { return guardfs.DirVerdict{} }

// KeptFile is a file that could not be put back at Of and is at Path.
type KeptFile = guardfs.KeptFile

// Kept lists the files that could not be put back in their places, are kept beside them, and still are there.
// With remove it is removed for good. For an operator: nobody is asked, and no policy. at is where it is kept.
func Kept(ctx context.Context, dataDir string, at Location, remove bool) ([]guardfs.KeptFile, error) {
	tree, err := guardfs.New(guardfs.Options{Judge: keptOnly{}, Calls: at.Calls})
	if err != nil {
		return nil, err
	}
	defer tree.Close() //nolint:errcheck // nothing was written through it
	var errs []error
	kept, err := guardfs.OpenJournal(filepath.Join(dataDir, journalName)).Kept(func(k guardfs.KeptFile) bool {
		place, err := tree.EntryLink(k.Path)
		if _, gone := errors.AsType[*guardfs.MissingParentError](err); gone {
			return false
		}
		if err != nil {
			return true // it can't be looked at: that is no reason to forget it
		}
		defer place.Close() //nolint:errcheck // nothing was written through it
		i := place.Object().Info
		if remove && i.Kind != guardfs.KindAbsent {
			errs = append(errs, place.RemoveTree(ctx, i.ID.Lasting()))
		}
		return i.Kind != guardfs.KindAbsent
	})
	return kept, errors.Join(append(errs, err)...)
}
