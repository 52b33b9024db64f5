package engine

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"moltisfs/internal/guardfs"
	"moltisfs/internal/share"
)

// The events. Rescan says that some were dropped: a caller that wants to know looks again. Unwatched is a
// directory whose inside is not watched: it may not be looked into, is on another mount, or is one
// too many. Gone is the end: the directory that was to be watched is there no more.
const (
	EventCreate    = "create"
	EventModify    = "modify"
	EventDelete    = "delete"
	EventRename    = "rename"
	EventRescan    = "rescan"
	EventUnwatched = "unwatched"
	EventGone      = "gone"
)

// An Event is a change at one path. Policy is asked about the path when the event is told: a
// rename out of what may be seen is a delete, and one into it a create.
type Event struct {
	What string
	Path string
	To   string // of a rename
	Dir  bool

	swapped bool // the other name of the rename may not be seen
}

// Watching tells of changes in a directory. Events that come before Events is called wait in the queue
// of the system, which is bounded: it ends in a rescan. Of a directory that appears, what is in it
// by the time that it is found is told as created; a name may be told twice then. Not told are
// stores through memory mappings and what is done behind the system's back.
type Watching struct {
	Root string // canonical path

	c         *Call // a copy that outlives the call
	id        guardfs.Identity
	recursive bool
	watcher   *guardfs.Watcher
	release   func() bool

	mu    sync.Mutex
	dirs  map[int]string   // canonical paths by number of their watch
	moved map[uint32]Event // halves of renames, by cookie
	queue []Event          // not judged yet
	lost  bool
	gone  bool

	count  sync.Mutex
	who    string // whose part of watched is taken
	taken  int64  // of watched
	closed bool
}

// watched are the directories that a process watches, for all principals. It is one for the process,
// as the system's limit is for a user.
var watched = share.New(guardfs.MostWatched())

// take takes room for one more directory, or gives it back. false: there is none.
func (w *Watching) take(n int64) bool {
	w.count.Lock()
	defer w.count.Unlock()
	switch {
	case w.closed || n > 0 && !watched.Try(w.who, n):
		return false
	case n < 0:
		watched.Give(w.who, -n)
	}
	w.taken += n
	return true
}

const maxQueued = 65_536 // events

// Watch begins to watch the entries of a directory, with recursive those of all below it too. It
// must be closed; the end of the engine closes it as well.
func (c *Call) Watch(
	ctx context.Context, dir string, recursive bool,
) (*Watching, error) {
	long := c.lasting(ctx)
	w := &Watching{c: long, recursive: recursive, who: c.Principal, dirs: map[int]string{}, moved: map[uint32]Event{}}
	look := func(ctx context.Context, h *guardfs.Handle) (_ *ReadRecord, err error) {
		d, err := long.openDir(ctx, h)
		if err != nil {
			return nil, err
		}
		defer d.Close() //nolint:errcheck // nothing was written through it
		w.Root, w.id = d.True(), d.Info().ID
		if w.watcher, err = long.fs.NewWatcher(); err != nil {
			return nil, err
		}
		return nil, w.add(ctx, d, false)
	}
	err := c.View(ctx, View{Path: dir, Access: guardfs.Walk, Look: look})
	if errors.Is(err, errTooMany) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) {
		err = Refuse(TooManyWatches, w.Root, err)
	}
	if err != nil {
		w.Close() //nolint:errcheck // the first error is the one that counts
		return nil, err
	}
	end := func() { w.watcher.Close() } //nolint:errcheck // nobody is left to hear it
	w.release = context.AfterFunc(c.calls.closing, end)
	return w, nil
}

// Close ends the watching. An Events that waits ends with fs.ErrClosed.
func (w *Watching) Close() error {
	if w.watcher == nil {
		return nil
	}
	if w.release != nil {
		w.release()
	}
	err := w.watcher.Close()
	w.count.Lock()
	defer w.count.Unlock()
	watched.Give(w.who, w.taken)
	w.taken, w.closed = 0, true
	return err
}

// Events gives the events since the last call, at most so many, and waits for the first.
func (w *Watching) Events(ctx context.Context, most int) (out []Event, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if len(w.queue) == 0 {
			if err := w.drain(); err != nil {
				return nil, err
			}
		}
		for len(w.queue) > 0 && len(out) < most {
			out = w.tell(out, w.queue[0])
			w.queue = w.queue[1:]
		}
		if len(out) > 0 || most <= 0 {
			return out, nil
		}
		if w.gone {
			return nil, &guardfs.PathError{Op: "watch", Path: w.Root, Err: fs.ErrNotExist}
		}
		if err := w.watcher.Wait(ctx); err != nil {
			return nil, err
		}
	}
}

// drain takes what the system has to tell. It goes on to the end, or something would be missed.
func (w *Watching) drain() error {
	err := w.watcher.Events(w.hear)
	half := func(e Event) bool { return e.Dir && e.To != "" && guardfs.Temporary(path.Base(e.To)) }
	if err == nil && (len(w.moved) > 0 || slices.ContainsFunc(w.queue, half)) { // the other half may be on its way
		time.Sleep(time.Millisecond)
		err = w.watcher.Events(w.hear)
	}
	for cookie, from := range w.moved {
		delete(w.moved, cookie)
		w.leave(cmp.Or(from.To, from.Path))
		w.put(Event{What: EventDelete, Path: from.Path, Dir: from.Dir})
	}
	if err != nil {
		return err
	}
	h, herr := w.c.fs.Resolve(w.Root, guardfs.Walk)
	if herr == nil {
		defer h.Close() //nolint:errcheck // nothing was written through it
	}
	if herr != nil || h.Object().True != w.Root || h.Object().Info.ID != w.id {
		w.lost = false
		if !w.gone {
			w.gone, w.queue = true, append(w.queue, Event{What: EventGone, Path: w.Root, Dir: true})
		}
		return nil
	}
	if w.lost { // directories may have come that nobody told of
		w.lost, w.queue = false, []Event{{What: EventRescan, Path: w.Root, Dir: true}}
		w.enter(w.Root, false)
	}
	return nil
}

// hear notes one event of the system.
func (w *Watching) hear(e guardfs.Event) {
	dir, known := w.dirs[e.Watch]
	name := joined(dir, e.Name)
	switch {
	case e.Lost:
		w.lost = true
	case !known:
	case e.Ended:
		w.forget(e.Watch)
	case e.Name == "": // the directory above tells of it
	case e.What == guardfs.Created:
		w.appeared(name, e.Dir)
	case e.What == guardfs.Removed:
		w.put(Event{What: EventDelete, Path: name, Dir: e.Dir})
	case e.What == guardfs.Modified:
		w.put(Event{What: EventModify, Path: name, Dir: e.Dir})
	case e.What == guardfs.MovedFrom:
		from := Event{Path: name, Dir: e.Dir}
		// A tree on its way to another name has one of ours in between.
		if i := slices.IndexFunc(w.queue, func(was Event) bool { return e.Dir && was.To == name }); i >= 0 &&
			guardfs.Temporary(e.Name) {
			from.Path, from.To = w.queue[i].Path, name
			w.queue = slices.Delete(w.queue, i, i+1)
		}
		w.moved[e.Cookie] = from
	default:
		from, paired := w.moved[e.Cookie]
		delete(w.moved, e.Cookie)
		if !paired {
			w.appeared(name, e.Dir)
			return
		}
		if from.Path != name { // else it was put back
			w.put(Event{What: EventRename, Path: from.Path, To: name, Dir: e.Dir})
		}
		if e.Dir && !w.follow(cmp.Or(from.To, from.Path), name) {
			w.enter(name, true)
		}
	}
}

// appeared notes a new name.
func (w *Watching) appeared(name string, dir bool) {
	w.put(Event{What: EventCreate, Path: name, Dir: dir})
	if dir {
		w.enter(name, true)
	}
}

// errTooMany says that a principal watches as many directories as it may.
var errTooMany = errors.New("your share of the directories that may be watched is used up")

// add watches d and, where it is to, what lies below. fresh: d appeared under our eyes, and so did
// what is in it.
func (w *Watching) add(ctx context.Context, d *guardfs.Dir, fresh bool) error {
	if !w.take(1) {
		return errTooMany
	}
	id, err := w.watcher.Watch(d)
	if _, again := w.dirs[id]; again || err != nil {
		w.take(-1)
	}
	if err == nil {
		w.dirs[id] = d.True() // from here on nothing is missed, so that the listing may begin
		err = ctx.Err()
	}
	if err != nil || !w.recursive {
		return err
	}
	entries, _, err := d.ListWays(nil)
	if err != nil {
		return err
	}
	for _, n := range entries {
		name := joined(d.True(), n.Name)
		if fresh && !n.Way {
			w.put(Event{What: EventCreate, Path: name, Dir: n.Kind == guardfs.KindDir})
		}
		if n.Kind != guardfs.KindDir {
			continue
		}
		sub, err := d.OpenDir(n.Name, false)
		if err == nil {
			err = w.add(ctx, sub, fresh)
			sub.Close() //nolint:errcheck // nothing was written through it
		}
		if err := w.unwatched(name, err, fresh); err != nil {
			return err
		}
	}
	return nil
}

// unwatched notes that a directory could not be watched because of err. It returns an error that ends the whole watch.
func (w *Watching) unwatched(name string, err error, fresh bool) error {
	limit := errors.Is(err, errTooMany) || errors.Is(err, syscall.ENOSPC) || TooManyEntries.In(err)
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil // it is gone again, or another thing by now
	case limit && !fresh, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	w.put(Event{What: EventUnwatched, Path: name, Dir: true})
	return nil
}

// enter watches the directory called name, where everything below is watched.
func (w *Watching) enter(name string, fresh bool) {
	if !w.recursive {
		return
	}
	h, err := w.c.fs.Resolve(name, guardfs.Walk)
	if err == nil {
		defer h.Close() //nolint:errcheck // nothing was written through it
		if h.Object().True != name {
			return // a link by now
		}
		var d *guardfs.Dir
		if d, err = h.Dir(); err == nil {
			defer d.Close() //nolint:errcheck // nothing was written through it
			err = w.add(context.Background(), d, fresh)
		}
	}
	w.unwatched(name, err, true) //nolint:errcheck // it is queued
}

// follow gives the watches at and below a directory their new names. any: there are some.
func (w *Watching) follow(from, to string) (any bool) {
	for id, dir := range w.dirs {
		if rest, ok := strings.CutPrefix(dir, from); ok && (rest == "" || rest[0] == '/') {
			w.dirs[id], any = to+rest, true
		}
	}
	return any
}

// leave ends the watches at and below a directory that went elsewhere.
func (w *Watching) leave(name string) {
	for id, dir := range w.dirs {
		if dir == name || below(dir, name) {
			w.watcher.Unwatch(id)
			w.forget(id)
		}
	}
}

// forget gives back the place of a directory.
func (w *Watching) forget(id int) {
	delete(w.dirs, id)
	w.take(-1)
}

// put queues an event. An event beyond the bound is lost, as it is in the queue of the system.
func (w *Watching) put(e Event) {
	if n := len(w.queue); n > 0 && w.queue[n-1] == e {
		return
	}
	if len(w.queue) >= maxQueued {
		w.lost = true
		return
	}
	w.queue = append(w.queue, e)
}

// logCall adds to out what may be told of e.
func (w *Watching) tell(out []Event, e Event) []Event {
	there, seen := w.c.sees(e.Path)
	if e.What == EventRename {
		_, to := w.c.sees(e.To)
		switch {
		case seen && !to && there: // another thing took its place at once, as our own changes do it
			e = Event{What: EventModify, Path: e.Path, Dir: e.Dir, swapped: true}
		case seen && !to:
			e = Event{What: EventDelete, Path: e.Path, Dir: e.Dir}
		case !seen && to:
			e, seen = Event{What: EventCreate, Path: e.To, Dir: e.Dir, swapped: true}, true
		}
	}
	if !seen || e.What == EventModify && !there { // it went, and that is told; or it never had a name
		return out
	}
	if n := len(out); n > 0 && out[n-1].Path == e.Path {
		last := &out[n-1]
		if last.swapped && (e.swapped || e.What == EventModify) {
			if e.swapped {
				last.What = EventModify
			}
			return out
		}
		if last.What == EventModify && e.What == EventModify {
			return out
		}
	}
	return append(out, e)
}

// Tells says whether an event of this path may be told by now: the policy, or what the path leads
// to, may have become another one since it was noticed.
func (w *Watching) Tells(name string) bool {
	_, seen := w.c.sees(name)
	return seen
}

// Sees says of a path whether it may be told of within a scope. A policy chain is not asked: it was
// by the Watching.
func (e *Engine) Sees(s *Scope) (func(name string) bool, error) {
	c := e.own()
	c.Scope = s
	err := c.narrow()
	return func(name string) bool {
		_, seen := c.sees(name)
		return seen
	}, err
}

// sees says whether something is at a path by now, and whether it may be told of.
func (c *Call) sees(name string) (there, seen bool) {
	_, _, err := c.fs.Lstat(name)
	return err == nil, err == nil || Reason(err).is(CodeNotFound)
}
