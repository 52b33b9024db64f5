package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"moltisfs/internal/approval"
	"moltisfs/internal/approval/queue"
	"moltisfs/internal/outage"
	"moltisfs/internal/serve"
	"moltisfs/internal/state"
)

// browser sends requests to a console as its page does, and keeps the cookie.
type browser struct {
	t      *testing.T
	c      *Console
	host   string
	cookie *http.Cookie
	change func(*http.Request) // before it is sent
}

func (b *browser) do(method, path, body string) *httptest.ResponseRecorder {
	b.t.Helper()
	host := b.host
	if host == "" {
		host = "127.0.0.1:7780"
	}
	r := httptest.NewRequest(method, "http://"+host+path, strings.NewReader(body))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Moltis", "1")
		r.Header.Set("Origin", "http://"+host)
	}
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	if b.change != nil {
		b.change(r)
	}
	w := httptest.NewRecorder()
	if path == "/console/rpc" { // as a server does
		if by, _, ok := b.c.Admit(w, r); ok {
			fmt.Fprint(w, by)
		}
	} else {
		b.c.ServeHTTP(w, r)
	}
	for _, k := range w.Result().Cookies() {
		b.cookie = k
	}
	return w
}

func (b *browser) wants(status int, method, path, body string) string {
	b.t.Helper()
	w := b.do(method, path, body)
	if w.Code != status {
		b.t.Errorf("%s %s %s: %d %s, and not %d", method, path, body, w.Code, w.Body, status)
	}
	return w.Body.String()
}

func made(t *testing.T) (*Console, *serve.TokenStore) {
	store := serve.Tokens(t.TempDir())
	return New(Options{Tokens: store, Owner: "ann at the console"}), store
}

// A code signs in once, and within its minute.
func TestCodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := made(t)
		b := &browser{t: t, c: c}
		send := func(code string) string { return fmt.Sprintf(`{"code":%q}`, code) }
		b.wants(401, "POST", "/console/rpc", "{}")
		b.wants(401, "POST", "/console/sign-in", send("AAAAAAAAAAAAAAAAAAAAAAAAAA"))
		for _, bad := range []string{``, `{}`, `[]`, `{"code":1}`, `{"code":"a","token":"b"}`, `{"code":"a","x":1}`, `{"code":"` + strings.Repeat("a", 1<<20) + `"}`} {
			b.wants(400, "POST", "/console/sign-in", bad)
		}
		code := c.Code()
		b.wants(200, "POST", "/console/sign-in", send(code))
		if k := b.cookie; k == nil || k.Name != "moltis-7780" || !k.HttpOnly || k.SameSite != http.SameSiteStrictMode || k.Path != "/console" || k.Secure || k.Domain != "" {
			t.Errorf("the cookie is %v", k)
		}
		if got := b.wants(200, "POST", "/console/rpc", "{}"); got != "ann at the console" {
			t.Errorf("the operator is %s", got)
		}
		(&browser{t: t, c: c}).wants(401, "POST", "/console/sign-in", send(code)) // again
		late := c.Code()
		time.Sleep(time.Minute)
		(&browser{t: t, c: c}).wants(401, "POST", "/console/sign-in", send(late))
		for range 100 { // unused ones do not pile up
			late = c.Code()
		}
		if len(c.codes) > maxCodes {
			t.Errorf("%d codes are kept", len(c.codes))
		}
		(&browser{t: t, c: c}).wants(200, "POST", "/console/sign-in", send(late))
	})
}

// A cookie ends after an hour without use, after 12 hours, by signing out, and with its token.
func TestCookies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, store := made(t)
		in := func(by string) *browser {
			b := &browser{t: t, c: c}
			b.wants(200, "POST", "/console/sign-in", by)
			return b
		}
		token := func(t serve.Token) (serve.Token, string) {
			made, secret, err := store.Create(t)
			if err != nil {
				panic(err)
			}
			return made, fmt.Sprintf(`{"token":%q}`, secret)
		}
		idle := in(fmt.Sprintf(`{"code":%q}`, c.Code()))
		time.Sleep(59 * time.Minute)
		idle.wants(200, "GET", "/console/who", "")
		time.Sleep(time.Hour)
		idle.wants(401, "GET", "/console/who", "")

		used := in(fmt.Sprintf(`{"code":%q}`, c.Code()))
		for range 23 {
			time.Sleep(31 * time.Minute)
			used.wants(200, "GET", "/console/who", "")
		}
		time.Sleep(8 * time.Minute)
		used.wants(401, "GET", "/console/who", "")

		boss, sent := token(serve.Token{Principal: "boss", Operator: true})
		b := in(sent)
		if got := b.wants(200, "GET", "/console/who", ""); !strings.Contains(got, `"principal":"boss"`) {
			t.Errorf("the operator is %s", got)
		}
		if _, err := store.Revoke(boss.ID); err != nil {
			t.Fatal(err)
		}
		b.wants(401, "GET", "/console/who", "")
		b.wants(401, "POST", "/console/sign-in", sent)
		_, sent = token(serve.Token{Principal: "eve", Operator: true, Expires: time.Now().Add(10 * time.Minute)})
		b = in(sent)
		time.Sleep(10 * time.Minute)
		b.wants(401, "GET", "/console/who", "")
		_, sent = token(serve.Token{Principal: "ci"})
		b.wants(403, "POST", "/console/sign-in", sent)

		b = in(fmt.Sprintf(`{"code":%q}`, c.Code()))
		again := &browser{t: t, c: c, cookie: b.cookie}
		b.wants(200, "POST", "/console/sign-out", "{}")
		if b.cookie.MaxAge >= 0 {
			t.Error("the browser keeps the cookie")
		}
		again.wants(401, "GET", "/console/who", "")

		_, sent = token(serve.Token{Principal: "ann", Operator: true})
		for range 3 * maxCookies {
			in(sent)
		}
		if len(c.cookies) > maxCookies {
			t.Errorf("%d cookies are kept", len(c.cookies))
		}
	})
}

// faraway are files that can be out of reach, as those of a fleet.
type faraway struct {
	state.Files
	gone bool
}

func (f *faraway) Open(name string) (io.ReadCloser, error) {
	if f.gone {
		return nil, outage.OfDatabase(errors.New("cut"))
	}
	return f.Files.Open(name)
}

// An operator stays signed in while the tokens can't be reached, and sees nothing meanwhile.
func TestTokensOutOfReach(t *testing.T) {
	far := &faraway{Files: state.Dir{Path: t.TempDir(), Temp: "temp"}}
	store := serve.TokensIn(far)
	_, secret, err := store.Create(serve.Token{Principal: "boss", Operator: true})
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, c: New(Options{Tokens: store})}
	b.wants(200, "POST", "/console/sign-in", fmt.Sprintf(`{"token":%q}`, secret))
	far.gone = true
	b.wants(503, "GET", "/console/who", "")
	b.wants(503, "POST", "/console/rpc", "{}")
	far.gone = false
	b.wants(200, "GET", "/console/who", "")
}

// Requests of other pages change nothing, and see nothing.
func TestForeignPages(t *testing.T) {
	c, _ := made(t)
	b := &browser{t: t, c: c}
	b.wants(200, "POST", "/console/sign-in", fmt.Sprintf(`{"code":%q}`, c.Code()))
	header := func(name string, values ...string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Del(name)
			for _, v := range values {
				r.Header.Add(name, v)
			}
		}
	}
	for what, change := range map[string]func(*http.Request){
		"another site":          header("Origin", "https://evil.example"),
		"another port":          header("Origin", "http://127.0.0.1:3000"),
		"no origin":             header("Origin"),
		"a null origin":         header("Origin", "null"),
		"two origins":           header("Origin", "http://127.0.0.1:7780", "https://evil.example"),
		"a file as origin":      header("Origin", "file://"),
		"a longer origin":       header("Origin", "http://127.0.0.1:7780.evil.example"),
		"a path in the origin":  header("Origin", "http://127.0.0.1:7780/x"),
		"a form":                header("Content-Type", "application/x-www-form-urlencoded"),
		"text":                  header("Content-Type", "text/plain"),
		"no type":               header("Content-Type"),
		"without our header":    header("X-Moltis"),
		"marked as cross-site":  header("Sec-Fetch-Site", "cross-site"),
		"marked as of the site": header("Sec-Fetch-Site", "same-site"),
		"marked as by a person": header("Sec-Fetch-Site", "none"),
	} {
		b.change = change
		for _, path := range []string{"/console/rpc", "/console/sign-in", "/console/sign-out"} {
			if w := b.do("POST", path, "{}"); w.Code != http.StatusForbidden || w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: %s: %d %s", what, path, w.Code, w.Body)
			}
		}
	}
	b.change = header("Sec-Fetch-Site", "cross-site")
	b.wants(403, "GET", "/console/who", "")
	b.wants(403, "GET", "/console/history", "")
	b.change = nil
	b.wants(200, "POST", "/console/rpc", "{}")
	for _, path := range []string{"/console/sign-in", "/console/sign-out"} {
		b.wants(405, "GET", path, "")
	}
	b.wants(405, "DELETE", "/console/who", "")
	b.wants(404, "GET", "/console/../go.mod", "")
	b.wants(404, "GET", "/console/page/app.js", "")

	far := &browser{t: t, c: c, host: "fs.example.net", change: header("Origin", "http://fs.example.net")}
	far.wants(403, "POST", "/console/sign-in", fmt.Sprintf(`{"code":%q}`, c.Code())) // in the clear
	far.change = header("Origin", "https://fs.example.net")
	far.wants(200, "POST", "/console/sign-in", fmt.Sprintf(`{"code":%q}`, c.Code()))
	if k := far.cookie; k.Name != "__Host-moltis" || !k.Secure || k.Path != "/" {
		t.Errorf("beyond loopback the cookie is %v", k)
	}
}

// The page loads nothing but itself, and its files say what they are.
func TestPage(t *testing.T) {
	c, _ := made(t)
	b := &browser{t: t, c: c}
	for path, kind := range map[string]string{"/console/": "text/html", "/console/app.js": "text/javascript", "/console/style.css": "text/css", "/console/icon.svg": "image/svg+xml"} {
		w := b.do("GET", path, "")
		h := w.Header()
		if w.Code != 200 || !strings.HasPrefix(h.Get("Content-Type"), kind) || !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; ") ||
			strings.Contains(h.Get("Content-Security-Policy"), "unsafe") {
			t.Errorf("%s: %d %v", path, w.Code, h)
		}
	}
	if w := b.do("GET", "/console", ""); w.Code != 308 || w.Header().Get("Location") != "/console/" {
		t.Errorf("/console: %d %v", w.Code, w.Header())
	}
	for at, f := range c.files {
		text := string(f.text)
		for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", " style=", "onclick=\"", "javascript:", "https://", "http://"} {
			if strings.Contains(strings.ReplaceAll(text, "http://www.w3.org/2000/svg", ""), bad) {
				t.Errorf("%s holds %s", at, bad)
			}
		}
	}
}

// store gives the methods of a store with a newest change, and of its sizes.
func store(newest *atomic.Value) map[string]serve.Method {
	return map[string]serve.Method{
		"checkpoints.list": func(context.Context, string, json.RawMessage) (any, error) {
			return map[string]any{"changes": []any{newest.Load()}}, nil
		},
		"config.show": func(context.Context, string, json.RawMessage) (any, error) {
			return map[string]any{"waiting": 2, "audit_bytes": 30, "store": map[string]any{"used_bytes": 500, "parked_bytes": 7}}, nil
		},
	}
}

// Events begin with begin, so that a page that slept reads all anew; they tell what comes, what is over and what was changed, and end
// with the request. More than so many pages are refused.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var newest atomic.Value
		newest.Store("ck-1")
		q := queue.Open(t.TempDir())
		c := New(Options{Queue: q, Methods: store(&newest)})
		ctx, cancel := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		ask := func() string {
			time.Sleep(time.Millisecond) // by the clock of synctest: the list goes by time, and this one is to be the last
			asking.Go(func() { _, _ = q.Ask(ctx, approval.Question{Tool: "Write", Paths: []string{"/a"}}) })
			synctest.Wait()
			list, err := q.List(false)
			if err != nil {
				t.Fatal(err)
			}
			return list[len(list)-1].ID
		}
		one := ask()
		ask()
		out, in := io.Pipe()
		ended := make(chan bool)
		go func() {
			c.Events("ann", pipe{in, http.Header{}}, httptest.NewRequest("GET", "/console/events", nil).WithContext(ctx))
			in.Close()
			close(ended)
		}()
		lines := make(chan string, 1000)
		go func() {
			for s := bufio.NewScanner(out); s.Scan(); {
				if s.Text() != "" {
					lines <- s.Text()
				}
			}
			close(lines)
		}()
		said := func() (all string) {
			synctest.Wait()
			for len(lines) > 0 {
				all += <-lines + "\n"
			}
			return all
		}
		if got := said(); got != "event: begin\ndata: {}\n" {
			t.Errorf("first comes %s", got)
		}
		time.Sleep(3 * time.Second)
		if got := said(); got != "" {
			t.Errorf("nothing has happened, and it says %s", got)
		}
		newest.Store("ck-2")
		three := ask()
		if _, err := q.Answer(one, approval.Denied, queue.By{Name: "bob"}, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		got := said()
		for _, want := range []string{`event: approval.asked\ndata: {"approval":{[^\n]*"id":"` + three + `",[^\n]*"state":"pending"`,
			`event: approval.over\ndata: {"approval":{[^\n]*"by":"bob",[^\n]*"id":"` + one + `",[^\n]*"state":"denied"`,
			`event: checkpoint\ndata: {"changes":\["ck-2"\]}`} {
			if !regexp.MustCompile(want).MatchString(got) || strings.Count(got, "event: ") != 3 {
				t.Errorf("it does not say %s, or more than that: %s", want, got)
			}
		}
		time.Sleep(time.Hour)
		if got := said(); strings.Count(got, "event: beat\n") != strings.Count(got, "event: ") || !strings.Contains(got, "beat") {
			t.Errorf("in an hour without events it says %.300s", got)
		}
		c.streams = maxStreams
		w := httptest.NewRecorder()
		c.Events("ann", w, httptest.NewRequest("GET", "/console/events", nil))
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("one page too many: %d", w.Code)
		}
		cancel()
		_ = out.Close()
		<-ended
		asking.Wait()
	})
}

// pipe is a browser that reads a stream.
type pipe struct {
	*io.PipeWriter
	header http.Header
}

func (p pipe) Header() http.Header { return p.header }
func (p pipe) WriteHeader(int)     {}
func (p pipe) Flush()              {}

// The history keeps a day.
func TestSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Methods: store(new(atomic.Value))})
		ctx, cancel := context.WithCancel(t.Context())
		go c.Sample(ctx)
		time.Sleep(48 * time.Hour)
		all := c.history(ctx)
		if last := all[len(all)-1]; len(all) != maxPoints+1 || last.Store != 500 || last.Audit != 30 || last.Trash != 7 || last.Waiting != 2 {
			t.Errorf("there are %d points, the last is %+v", len(all), last)
		}
		cancel()
		synctest.Wait()
	})
}
