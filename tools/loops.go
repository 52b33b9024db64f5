package tools

import (
	"fmt"
	"sync"

	"moltisfs/internal/engine"
)

// loops notices a session that reads the same unchanged window again and
// again (docs/rulings.md, loop detection). It only warns: the content is always
// sent. It forgets at a restart, which is harmless.
type loops struct {
	mu       sync.Mutex
	sessions map[[2]string]*lastRead
}

type lastRead struct {
	key   string
	times int
}

const loopAfter = 3 // identical reads in a row

func (l *loops) saw(c *engine.Call, a *ReadArgs, out *Content) string {
	body, err := plainJSON(out.Body)
	if err != nil {
		return ""
	}
	key := fmt.Sprint(out.FilePath, value(a.Offset), value(a.Limit), value(a.Column), value(a.Tail),
		value(a.Pages), engine.HashOf(body))
	l.mu.Lock()
	defer l.mu.Unlock()
	who := [2]string{c.Principal, c.Session}
	last := l.sessions[who]
	if last == nil {
		if len(l.sessions) > 10_000 {
			clear(l.sessions)
		}
		last = &lastRead{}
		l.sessions[who] = last
	}
	if last.key != key {
		last.key, last.times = key, 0
	}
	if last.times++; last.times < loopAfter {
		return ""
	}
	return fmt.Sprintf("this is the same unchanged content, read %d times in a row; work with "+
		"what you have, or read another window", last.times)
}

// reset forgets what the session read last: it changed something meanwhile.
func (l *loops) reset(c *engine.Call) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sessions, [2]string{c.Principal, c.Session})
}
