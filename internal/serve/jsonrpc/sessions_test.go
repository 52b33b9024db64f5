package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"moltisfs/internal/dialect"
	"moltisfs/internal/outage"
	"moltisfs/internal/serve"
	"moltisfs/internal/state"
	"moltisfs/internal/testdir"
)

func (r *running) session(secret string) string {
	r.t.Helper()
	_, got := r.send(secret, `{"jsonrpc":"2.0","id":1,"method":"session.create"}`)
	var a struct {
		Result struct {
			ID string `json:"session_id"`
		}
	}
	if err := json.Unmarshal([]byte(got), &a); err != nil || !strings.HasPrefix(a.Result.ID, "s-") {
		r.t.Errorf("no session: %s", got)
	}
	return a.Result.ID
}

func poll(session string, wait int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session.events","params":{"session_id":%q,"cursor":4,"wait_ms":%d}}`, session, wait)
}

func endOfSession(session string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"session.end","params":{"session_id":"` + session + `"}}`
}

// later sends a body aside, and gives what is answered.
func (r *running) later(secret, body string) <-chan string {
	answer := make(chan string, 1)
	go func() {
		status, got := r.send(secret, body)
		answer <- fmt.Sprint(status, " ", got)
	}()
	return answer
}

// soon gives the next value of a channel, before anybody gets impatient.
func soon[T any](t testing.TB, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
	}
	return v
}

// hears waits for an answer, which has to have this status, and want in it.
func hears(t testing.TB, what string, answer <-chan string, status, want string) {
	t.Helper()
	if got := soon(t, answer); !strings.HasPrefix(got, status+" ") || !strings.Contains(got, want) {
		t.Errorf("%s: %s; want %s and %s", what, got, status, want)
	}
}

// A session is its principal's alone; its calls carry its name, and with its end it is gone.
func TestSessions(t *testing.T) {
	t.Parallel()
	r := run(t)
	_, secret := r.token(serve.Token{Principal: "ci"})
	_, same := r.token(serve.Token{Principal: "ci"})
	_, other := r.token(serve.Token{Principal: "other"})
	id := r.session(secret)
	use := invocation("Read", `,"session_id":"`+id+`"`)
	for _, c := range []struct{ secret, body, want string }{
		{secret, use, `"session":"` + id + `"`}, {same, use, `"session":"` + id + `"`},
		{other, use, `"code":-32004`}, {other, poll(id, 0), `"code":-32004`}, {other, endOfSession(id), `"code":-32004`},
		{secret, poll(id, 0), `"result":{"cursor":4,"events":[]}`}, {secret, poll(id, 60_001), `"code":-32602`},
		{secret, endOfSession(id), `"ended":true`},
		{secret, use, `"code":-32004`}, {secret, poll(id, 0), `"code":-32004`}, {secret, endOfSession(id), `"code":-32004`},
	} {
		if _, got := r.send(c.secret, c.body); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s; want %s", c.body, got, c.want)
		}
	}
	if got := r.endedOnes(); !slices.Equal(got, []string{"ci " + id}) {
		t.Errorf("ended are %q", got)
	}
}

// A poll waits for an event, and is woken by the end of its session, by the end of
// its token and by that of the server. In a batch it does not wait.
func TestPolls(t *testing.T) {
	t.Parallel()
	r := run(t)
	_, secret := r.token(serve.Token{Principal: "ci"})
	id := r.session(secret)

	answer := r.later(secret, poll(id, 60_000))
	soon(t, r.begun)
	r.event <- json.RawMessage(`{"type":"created"}`)
	hears(t, "the answer", answer, "200", `"result":{"cursor":5,"events":[{"type":"created"}]}`)
	answer = r.later(secret, "["+poll(id, 60_000)+","+poll(id, 60_000)+"]")
	if got := soon(t, answer); strings.Count(got, `"events":[]`) != 2 {
		t.Error(got)
	}
	answer = r.later(secret, poll(id, 60_000))
	soon(t, r.begun)
	hears(t, "the answer", r.later(secret, endOfSession(id)), "200", "true")
	hears(t, "at the end of the session", answer, "200", `"events":[]`)

	revoked, short := r.token(serve.Token{Principal: "ci"})
	answer = r.later(short, poll(r.session(short), 60_000))
	soon(t, r.begun)
	if _, err := r.tokens.Revoke(revoked); err != nil {
		t.Fatal(err)
	}
	hears(t, "with a token that was revoked", answer, "401", "-32003")
	id = r.session(secret)
	for life := time.Second; ; life *= 2 {
		_, brief := r.token(serve.Token{Principal: "ci", Expires: time.Now().Add(life)})
		answer = r.later(brief, poll(id, 60_000))
		select {
		case <-r.begun:
		case got := <-answer:
			if life > time.Minute {
				t.Fatal("no poll began: " + got)
			}
			continue // a busy machine came too late to the poll
		}
		break
	}
	hears(t, "with a token that has expired", answer, "401", "")

	id = r.session(secret)
	answer = r.later(secret, poll(id, 60_000))
	soon(t, r.begun)
	r.server.stop()
	hears(t, "at the end of the server", answer, "200", `"events":[]`)
	if status, got := r.send(secret, poll(id, 0)); status != 503 {
		t.Errorf("afterwards: %d %s", status, got)
	}
	must(t, r.stop())
	if !slices.Contains(r.endedOnes(), "ci "+id) {
		t.Errorf("ended are %q", r.endedOnes())
	}
}

// faraway are files that can be out of reach, as those of a fleet.
type faraway struct {
	state.Files
	gone  atomic.Bool
	asked atomic.Int64 // while they were
}

func (f *faraway) Open(name string) (io.ReadCloser, error) {
	if f.gone.Load() {
		f.asked.Add(1)
		return nil, outage.OfDatabase(errors.New("cut"))
	}
	return f.Files.Open(name)
}

// While the tokens can't be reached nobody is let in, and what was let in goes on.
func TestTokensOutOfReach(t *testing.T) {
	t.Parallel()
	far := &faraway{Files: state.Dir{Path: t.TempDir(), Temp: "temp"}}
	store := serve.TokensIn(far)
	r := run(t, func(o *Options) { o.Tokens = store })
	_, secret, err := store.Create(serve.Token{Principal: "ci"})
	must(t, err)
	answer := r.later(secret, poll(r.session(secret), 60_000))
	soon(t, r.begun)
	far.gone.Store(true)
	if status, got := r.send(secret, invocation("Read", "")); status != 503 {
		t.Errorf("%d %s", status, got)
	}
	testdir.Until(t, "the look at requests under way", func() bool { return far.asked.Load() > 2 })
	far.gone.Store(false)
	select {
	case r.event <- json.RawMessage(`{"type":"created"}`):
	case got := <-answer:
		t.Fatal("it was ended: ", got)
	}
	hears(t, "the answer", answer, "200", `{"type":"created"}`)
}

// A call under way runs to its end when the server is told to end, or its session; and a token that
// is revoked ends it.
func TestCallsUnderWay(t *testing.T) {
	t.Parallel()
	r := run(t)
	tokenID, brief := r.token(serve.Token{Principal: "ci"})
	_, secret := r.token(serve.Token{Principal: "ci"})
	answer := r.later(brief, invocation("slow", ""))
	soon(t, r.begun)
	if _, err := r.tokens.Revoke(tokenID); err != nil {
		t.Fatal(err)
	}
	hears(t, "with a token that was revoked", answer, "401", "")
	id := r.session(secret)
	answer = r.later(secret, invocation("slow", `,"session_id":"`+id+`"`))
	soon(t, r.begun)
	ended := r.later(secret, endOfSession(id))
	testdir.Until(t, "the end of the session", func() bool {
		_, got := r.send(secret, poll(id, 0))
		return strings.Contains(got, "-32004")
	})
	if got := r.endedOnes(); len(got) > 0 {
		t.Errorf("%q ended before its call", got)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	<-r.server.stopping.Done()
	close(r.finish)
	hears(t, "the answer", answer, "200", `"data":"finished"`)
	hears(t, "the answer", ended, "200", `"ended":true`)
	must(t, soon(t, stopped))
}

// A body has to come in time, and a call may take longer than that.
func TestTimeOfABody(t *testing.T) {
	t.Parallel()
	d := &toy{begun: make(chan struct{}), finish: make(chan struct{})}
	r := runDialect(t, d, func(s *Server) { s.bodyTime = time.Second }) // in which a busy machine still takes a small body
	r.toy = d
	_, secret := r.token(serve.Token{Principal: "ci"})
	answer := r.later(secret, invocation("slow", ""))
	soon(t, r.begun)
	for who, want := range map[string]string{secret: "408", "a stranger": "401"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		must(t, err)
		defer c.Close()
		fmt.Fprintf(c, "POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", who)
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		if got, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 "+want) {
			t.Errorf("%s, %v", got, err)
		}
	}
	close(r.finish) // by now it took longer than a body may
	hears(t, "the answer", answer, "200", "finished")
}

// A client that hangs up ends its call.
func TestHangingUp(t *testing.T) {
	t.Parallel()
	r := run(t)
	_, secret := r.token(serve.Token{Principal: "ci"})
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	must(t, err)
	body := invocation("slow", "")
	fmt.Fprintf(c, "POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", secret, len(body), body)
	soon(t, r.begun)
	c.Close()
	testdir.Until(t, "the end of the call", func() bool {
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		return len(r.server.running) == 0
	})
}

// Calls beyond their number wait for a place, and a principal has its own places.
func TestCallsWaitForAPlace(t *testing.T) {
	t.Parallel()
	s := New(&toy{}, Options{})
	var places []func()
	for range maxCalls {
		done, err := s.load.turn(t.Context(), "ci")
		must(t, err)
		places = append(places, done)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	by := &caller{principal: "ci", calls: true}
	if got, _ := s.answer(ctx, by, []byte(invocation("Read", ""))); !strings.Contains(string(got), `"code":-32603`) {
		t.Errorf("there was a place: %s", got)
	}
	if got, _ := s.answer(t.Context(), &caller{principal: "other", calls: true}, []byte(invocation("Read", ""))); !strings.Contains(string(got), `"success":true`) {
		t.Errorf("another waits too: %s", got)
	}
	places[0]()
	for range 2 { // each gives its place back
		if got, _ := s.answer(t.Context(), by, []byte(invocation("Read", ""))); !strings.Contains(string(got), `"success":true`) {
			t.Errorf("there was no place: %s", got)
		}
	}
	for _, done := range places[1:] {
		done()
	}
	if len(s.load.of) != 0 {
		t.Errorf("of callers that have gone is left %v", s.load.of)
	}
}

// A dialect that keeps nothing for sessions has no events, and that takes as long as asked.
func TestWithoutEvents(t *testing.T) {
	t.Parallel()
	s := New(struct{ dialect.Dialect }{&toy{}}, Options{})
	c := &caller{principal: "ci", calls: true}
	one, leave, err := s.sessions.Use("ci", "s-1", true)
	must(t, err)
	leave()
	id := one.Name
	start := time.Now()
	if got, _ := s.answer(t.Context(), c, []byte(poll(id, 30))); !strings.Contains(string(got), `"result":{"cursor":4,"events":[]}`) || time.Since(start) < 30*time.Millisecond {
		t.Errorf("%s after %v", got, time.Since(start))
	}
	if got, _ := s.answer(t.Context(), c, []byte(endOfSession(id))); !strings.Contains(string(got), `"ended":true`) {
		t.Errorf("%s", got)
	}
}

// A session goes on at another server: under its id, and for its principal. Nothing else can be named so.
func TestSessionGoesOn(t *testing.T) {
	t.Parallel()
	r, other := run(t), run(t)
	_, secret := r.token(serve.Token{Principal: "ci"})
	_, there := other.token(serve.Token{Principal: "ci"})
	_, stranger := other.token(serve.Token{Principal: "bob"})
	id := r.session(secret)
	create := func(id string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session.create","params":{"session_id":%q}}`, id)
	}
	for range 2 {
		if _, got := other.send(there, create(id)); !strings.Contains(got, `"session_id":"`+id+`"`) {
			t.Error(got)
		}
	}
	if _, got := other.send(there, invocation("Read", `,"session_id":"`+id+`"`)); !strings.Contains(got, id) {
		t.Errorf("its calls: %s", got)
	}
	if _, got := other.send(stranger, invocation("Read", `,"session_id":"`+id+`"`)); !strings.Contains(got, "-32004") {
		t.Errorf("another's: %s", got)
	}
	for _, bad := range []string{"s-none", "run-1", "x", "../" + id, id + " ", strings.ToLower(id)} {
		if _, got := other.send(there, create(bad)); !strings.Contains(got, "-32004") {
			t.Errorf("%q: %s", bad, got)
		}
	}
}
