package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"moltisfs/internal/approval/queue"
)

// The times of a stream.
const (
	beatEvery = 10 * time.Second
	writeTime = 30 * time.Second // to take an event; a browser that sleeps loses its stream
)

// news are the methods whose answer is sent when it has changed, each after so many looks.
var news = []struct {
	event, method, params string
	looks                 int
}{
	{"checkpoint", "checkpoints.list", `{"limit":1}`, 2},
	{"config", "config.show", `{}`, 10},
}

// Events sends to the operator by what happens, until the request's context ends:
//
//	begin            {}          the lists are to be read anew: first in each stream, so that none has to be replayed
//	approval.asked   {approval}  a change waits
//	approval.over    {approval}  it was answered, has expired, or nobody waits for it any more
//	checkpoint       the newest one, as checkpoints.list has it
//	config           config.show, where it has changed
//	beat             {time}      each 10 s: the stream lives, and so late is it here
func (c *Console) Events(by string, w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.streams++
	full := c.streams > maxStreams
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.streams--
		c.mu.Unlock()
	}()
	if full {
		answer(w, http.StatusServiceUnavailable, problem{"too many pages are open"})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // of a proxy
	s := &stream{c: c, by: by, w: w, follows: queue.Follower{Queue: c.o.Queue}, out: http.NewResponseController(w), said: map[string]string{}}
	_ = s.out.SetReadDeadline(time.Time{}) // a stream outlasts what a request may take to arrive
	_, _, _ = s.follows.Look()             // the page asks for those that wait
	s.send("event: begin\ndata: {}\n\n")
	look, beat := time.NewTicker(queue.LookEvery), time.NewTicker(beatEvery)
	defer look.Stop()
	defer beat.Stop()
	for n := 0; s.err == nil; n++ {
		s.look(r.Context(), n)
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			s.event("beat", map[string]time.Time{"time": time.Now()})
		case <-look.C:
		}
	}
}

// stream is one browser that listens.
type stream struct {
	c       *Console
	by      string
	w       http.ResponseWriter
	out     *http.ResponseController
	follows queue.Follower
	said    map[string]string // the last answer of each method of news
	err     error
}

// look sends what has changed since the last look, the n-th.
func (s *stream) look(ctx context.Context, n int) {
	came, over, _ := s.follows.Look() // where the queue can't be read just now, nothing has changed
	for _, e := range came {
		s.event("approval.asked", map[string]queue.Entry{"approval": e})
	}
	for _, e := range over {
		s.event("approval.over", map[string]queue.Entry{"approval": e})
	}
	for _, one := range news {
		if n%one.looks != 0 {
			continue
		}
		text := string(s.ask(ctx, one.method, one.params))
		before, known := s.said[one.event]
		if s.said[one.event] = text; known && text != "" && text != before {
			s.event(one.event, json.RawMessage(text))
		}
	}
}

// ask gives the answer of a method as JSON; nil if there is none.
func (s *stream) ask(ctx context.Context, method, params string) []byte {
	m := s.c.o.Methods[method]
	if m == nil {
		return nil
	}
	v, err := m(ctx, s.by, json.RawMessage(params))
	if err != nil {
		return nil // the page asks too, and is told why
	}
	text, _ := json.Marshal(v)
	return text
}

func (s *stream) event(name string, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		s.err = err
		return
	}
	s.send(fmt.Sprintf("event: %s\ndata: %s\n\n", name, text))
}

func (s *stream) send(text string) {
	if s.err != nil {
		return
	}
	_ = s.out.SetWriteDeadline(time.Now().Add(writeTime))
	if _, s.err = s.w.Write([]byte(text)); s.err == nil {
		s.err = s.out.Flush()
	}
}

// point is the state of the server at one moment: bytes of the store, the audit log and the trash, and questions that wait.
type point struct {
	Time    time.Time `json:"time"`
	Store   int64     `json:"store"`
	Audit   int64     `json:"audit"`
	Trash   int64     `json:"trash"`
	Waiting int       `json:"waiting"`
}

// The history that the page shows as plots. It begins with the server.
const (
	sampleEvery = 10 * time.Minute
	maxPoints   = 24 * 6
)

// Sample keeps the history of a day, until ctx ends.
func (c *Console) Sample(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		p := c.point(ctx)
		c.mu.Lock()
		c.past = append(c.past, p)
		c.past = c.past[max(0, len(c.past)-maxPoints):]
		c.mu.Unlock()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// history gives what Sample kept, and the present.
func (c *Console) history(ctx context.Context) []point {
	now := c.point(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	return append(slices.Clone(c.past), now)
}

func (c *Console) point(ctx context.Context) point {
	s := stream{c: c, by: c.o.Owner}
	var config struct {
		Waiting int
		Audit   int64 `json:"audit_bytes"`
		Store   *struct {
			Used  int64 `json:"used_bytes"`
			Trash int64 `json:"parked_bytes"`
		}
	}
	p := point{Time: time.Now()}
	if json.Unmarshal(s.ask(ctx, "config.show", `{}`), &config) == nil { // else nothing is known
		p.Waiting, p.Audit = config.Waiting, config.Audit
		if config.Store != nil {
			p.Store, p.Trash = config.Store.Used, config.Store.Trash
		}
	}
	return p
}
