package jsonrpc

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"

	"moltisfs/internal/serve"
	"moltisfs/internal/share"
)

// connections bounds those that are open: a quarter of the descriptors is for those that have shown no
// token yet, a quarter is shared by principals, and the rest is for work.
type connections struct {
	most  int         // strangers
	known *share.Pool // of connections whose principal is known

	mu        sync.Mutex
	strangers []*connection // the oldest first
}

// A connection knows whose it is, once a request has shown that.
type connection struct {
	net.Conn
	of   *connections
	peer peer
	who  string // "": a stranger, or closed
}

// peer describes the other end of a connection.
type peer struct{ socket, known, ours bool }

func newConnections(descriptors int) *connections {
	most := max(min(descriptors/4, 4096), 2)
	return &connections{most: most, known: share.New(int64(most))}
}

// counted is a listener whose connections are counted.
type counted struct {
	net.Listener
	of *connections
}

func (l counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.of.enter(c), nil
}

// enter takes a stranger in. Where there are too many, the oldest goes: a caller with a token shows it at once,
// and one without can only push out their like.
func (s *connections) enter(c net.Conn) *connection {
	socket, known, ours := serve.Peer(c)
	one := &connection{Conn: c, of: s, peer: peer{socket, known, ours}}
	s.mu.Lock()
	s.strangers = append(s.strangers, one)
	var oldest *connection
	if len(s.strangers) > s.most {
		oldest = s.strangers[0]
	}
	s.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // nobody is to hear more of it
	}
	return one
}

// belongs notes that the connection of a request is the principal who's, and reports whether that may have one more.
// A nil connection is not counted.
func (c *connection) belongs(who string) bool {
	if c == nil {
		return true
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	i := slices.Index(c.of.strangers, c)
	if i < 0 { // it is known, or closed
		return true
	}
	if !c.of.known.Try(who, 1) {
		return false
	}
	c.of.strangers, c.who = slices.Delete(c.of.strangers, i, i+1), who
	return true
}

func (c *connection) Close() error {
	c.of.mu.Lock()
	if i := slices.Index(c.of.strangers, c); i >= 0 {
		c.of.strangers = slices.Delete(c.of.strangers, i, i+1)
	} else if c.who != "" {
		c.of.known.Give(c.who, 1)
		c.who = ""
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite lets the last answer arrive, as package http wants it.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

func connectionOf(r *http.Request) *connection {
	c, _ := r.Context().Value(connectionKey{}).(*connection)
	return c
}
