package mcp

import (
	"context"
	"time"
)

// SetTimes sets how long a client may take for a part of an answer, and how long it may stay away from its session.
func (h *HTTP) SetTimes(take, away time.Duration) { h.takes, h.away = take, away }

// SessionsOf gives how many sessions a principal has.
func (h *HTTP) SessionsOf(principal string) int {
	return h.sessions.Count(principal)
}

// Waits reports whether a client waits at a request of this session.
func (h *HTTP) Waits(principal, name string) bool {
	one, leave := h.find(principal, name)
	defer leave()
	one.Of.mu.Lock()
	defer one.Of.mu.Unlock()
	return one.Of.open > 0
}

// Attendance gives attend and turnAway of a session of its own, with the time for which a client may be away.
func Attendance() (attend func() context.Context, leave func()) {
	one := &front{}
	return func() context.Context { return one.attend(context.Background()) }, func() { one.turnAway(absence) }
}

// SetMost sets how many sessions a principal may have.
func (h *HTTP) SetMost(sessions int) { h.sessions.Most = sessions }
