package mcp

import (
	"bytes"
	"encoding/json"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// listed holds the tools as a client is told of them, and the names that may be called: some tools have
// one more than is listed.
type listed struct {
	tools []*sdk.Tool
	known map[string][]byte // as JSON
}

// list takes over the definitions as they are now. The SDK tells the client of what differs, if the
// server said that the list may change.
func (s *server) list(srv *sdk.Server) error {
	old, now := s.listed.Load(), &listed{known: map[string][]byte{}}
	var fresh []*sdk.Tool
	for _, d := range s.dialect.Definitions() {
		t := tool(d)
		now.tools = append(now.tools, t)
		for _, name := range append([]string{d.Name}, d.Also...) { // only the first is listed
			called := *t
			called.Name = name
			text, err := json.Marshal(&called)
			if err != nil {
				return err
			}
			now.known[name] = text
			if old == nil || !bytes.Equal(old.known[name], text) {
				fresh = append(fresh, &called)
			}
		}
	}
	s.listed.Store(now)
	for _, t := range fresh {
		srv.AddTool(t, s.call)
	}
	if old != nil {
		for name := range old.known {
			if now.known[name] == nil {
				srv.RemoveTools(name)
			}
		}
	}
	return nil
}

// listAnew does so at each word of o.Changed.
func (s *server) listAnew(srv *sdk.Server) {
	for {
		select {
		case <-s.done.Done():
			return
		case <-s.o.Changed:
			if err := s.list(srv); err != nil {
				s.o.Logger.Warn("the tools could not be listed anew", "err", err)
			}
		}
	}
}
