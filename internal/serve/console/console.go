// Package console serves the operators' page at /console/: changes that wait, the timeline of what was changed, refusals, the audit
// log, sessions, trash, tokens, and the state of the server. It opens no file: it is given a queue, and the operators' methods.
//
//	GET  /console/           the page; its scripts and styles are beside it
//	POST /console/sign-in    {code} or {token} → {principal, expires} and a cookie
//	POST /console/sign-out   ends the cookie
//	GET  /console/who        {principal, expires}
//	GET  /console/history    {points}, see [Console.Sample]
//	POST /console/rpc        the operators' methods, as POST /rpc has them
//	GET  /console/events     server-sent events, see [Console.Events]
//
// Signing in: a code is made for whoever started the server: it is used once, within a minute. An operator's token is shown once,
// and exchanged for a cookie. The cookie ends with its token, after 12 hours, or when nobody has used it for an hour; a page that is
// open uses it. It is HttpOnly and SameSite=Strict. Beyond loopback it is Secure, so that the page works there by TLS only.
//
// Pages of others. Requests that change anything are POST, of JSON, with the header X-Moltis, and with our own address as Origin. A
// request that the browser marks as coming from another site is refused. The server has checked the Host.
//
// Text of others. The page makes text nodes of what it is sent, and never HTML; its Content-Security-Policy has the browser hold
// that, and lets it load and ask nothing but this server.
package console

import (
	"cmp"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"moltisfs/internal/approval/queue"
	"moltisfs/internal/outage"
	"moltisfs/internal/serve"
)

// Options says whom to let in, and whom to ask for news.
type Options struct {
	Tokens *serve.TokenStore
	// Owner is the principal of those who come in by a code.
	Owner   string
	Queue   *queue.Queue            // whose questions are news
	Methods map[string]serve.Method // those of the server, of which events asks some
	Logger  *slog.Logger
}

// Console is the page of one server. It is safe for concurrent use.
type Console struct {
	o     Options
	files map[string]file

	mu      sync.Mutex
	codes   map[string]time.Time // when each ends
	cookies map[string]*cookie
	streams int
	past    []point // the oldest first
}

// file is one of the page.
type file struct {
	kind string
	text []byte
}

// cookie is one operator's browser.
type cookie struct {
	principal, token string // the token's id; "" for the owner
	expires, used    time.Time
}

// The bounds.
const (
	codeTime    = time.Minute
	cookieTime  = 12 * time.Hour
	idleTime    = time.Hour
	maxCookies  = 100 // the one that was not used for the longest time goes
	maxCodes    = 8
	maxSignIn   = 4 << 10
	maxStreams  = 32
	base        = "/console/"
	contentRule = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
		"form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)

//go:embed page
var page embed.FS

// New makes the page.
func New(o Options) *Console {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	c := &Console{o: o, files: map[string]file{}, codes: map[string]time.Time{}, cookies: map[string]*cookie{}}
	names, _ := fs.Glob(page, "page/*") // they are in the program
	for _, name := range names {
		text, _ := page.ReadFile(name)
		at := base + strings.TrimSuffix(path.Base(name), "index.html")
		c.files[at] = file{mime.TypeByExtension(path.Ext(name)), text}
	}
	return c
}

// Code makes a code by which somebody may sign in once, within a minute.
func (c *Console) Code() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for code, end := range c.codes {
		if !time.Now().Before(end) || len(c.codes) >= maxCodes {
			delete(c.codes, code)
		}
	}
	code := rand.Text()
	c.codes[code] = time.Now().Add(codeTime)
	return code
}

// ServeHTTP serves all but /console/rpc and /console/events, which are for those whom Admit lets in.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == strings.TrimSuffix(base, "/") {
		http.Redirect(w, r, base, http.StatusPermanentRedirect)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", contentRule)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "interest-cohort=(), camera=(), microphone=(), geolocation=()")
	f, isFile := c.files[r.URL.Path]
	posts := slices.Contains([]string{base + "sign-in", base + "sign-out"}, r.URL.Path)
	switch {
	case posts && r.Method != http.MethodPost:
		h.Set("Allow", http.MethodPost)
		answer(w, http.StatusMethodNotAllowed, problem{"the method is POST here"})
	case !posts && r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		answer(w, http.StatusMethodNotAllowed, problem{"the method is GET here"})
	case isFile:
		h.Set("Content-Type", f.kind)
		h.Set("Content-Length", strconv.Itoa(len(f.text)))
		_, _ = w.Write(f.text) // a browser that has gone sees no page
	case r.URL.Path == base+"who":
		if k, _, ok := c.admit(w, r); ok {
			answer(w, http.StatusOK, who{k.principal, k.expires})
		}
	case r.URL.Path == base+"history":
		if _, _, ok := c.admit(w, r); ok {
			answer(w, http.StatusOK, map[string][]point{"points": c.history(r.Context())})
		}
	case posts && !ownPage(w, r):
	case r.URL.Path == base+"sign-in":
		c.signIn(w, r)
	case r.URL.Path == base+"sign-out":
		c.mu.Lock()
		delete(c.cookies, secretOf(r))
		c.mu.Unlock()
		http.SetCookie(w, newCookie(r, "", -1))
		answer(w, http.StatusOK, struct{}{})
	default:
		answer(w, http.StatusNotFound, problem{"there is nothing here; the page is at " + base})
	}
}

type (
	problem struct {
		Error string `json:"error"`
	}
	who struct {
		Principal string    `json:"principal"`
		Expires   time.Time `json:"expires"`
	}
)

func answer(w http.ResponseWriter, status int, v any) {
	text, _ := json.Marshal(v) // strings and times
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text) // a browser that has gone hears no more
}

// signIn exchanges a code or a token for a cookie.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	var by struct{ Code, Token string }
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSignIn))
	d.DisallowUnknownFields()
	if err := d.Decode(&by); err != nil || (by.Code == "") == (by.Token == "") {
		answer(w, http.StatusBadRequest, problem{"send a code, or a token"})
		return
	}
	now := time.Now()
	k := &cookie{principal: c.o.Owner, expires: now.Add(cookieTime), used: now}
	if by.Code != "" && !c.spend(by.Code, now) {
		answer(w, http.StatusUnauthorized, problem{"That code was used, or its minute is over. Start moltis-fs console again, or use an operator's token."})
		return
	}
	if by.Token != "" {
		t, err := c.o.Tokens.Check(by.Token, now)
		switch {
		case errors.Is(err, serve.ErrUnknownToken):
			c.o.Logger.Warn("the console refused a token")
			answer(w, http.StatusUnauthorized, problem{"There is no such token, or it has ended."})
			return
		case err != nil:
			c.o.Logger.Error("nobody is let in", "err", err)
			answer(w, http.StatusServiceUnavailable, problem{"The tokens can't be read; the server's log says why."})
			return
		case !t.Operator:
			answer(w, http.StatusForbidden, problem{"This token is for calls. An operator's is made by: moltis-fs token create --operator --principal NAME"})
			return
		}
		k.principal, k.token = t.Principal, t.ID
	}
	secret := rand.Text() + rand.Text()
	c.mu.Lock()
	if len(c.cookies) >= maxCookies {
		oldest := ""
		for s, one := range c.cookies {
			if oldest == "" || one.used.Before(c.cookies[oldest].used) {
				oldest = s
			}
		}
		delete(c.cookies, oldest)
	}
	c.cookies[secret] = k
	c.mu.Unlock()
	http.SetCookie(w, newCookie(r, secret, int(cookieTime.Seconds())))
	answer(w, http.StatusOK, who{k.principal, k.expires})
}

// spend takes a code away, and reports whether it held.
func (c *Console) spend(code string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	end, ok := c.codes[code]
	delete(c.codes, code)
	return ok && now.Before(end)
}

// Admit finds the operator by whose cookie a request comes, and reports whether it is let in; a request that is not has been answered.
// A request that changes something must come from our own page. holds reports from then on whether the cookie still does.
func (c *Console) Admit(w http.ResponseWriter, r *http.Request) (principal string, holds func() bool, ok bool) {
	if r.Method == http.MethodPost && !ownPage(w, r) {
		return "", nil, false
	}
	k, secret, ok := c.admit(w, r)
	if !ok {
		return "", nil, false
	}
	return k.principal, func() bool {
		k, err := c.holds(secret)
		return k != nil || err != nil // nobody knows that its token is revoked
	}, true
}

func (c *Console) admit(w http.ResponseWriter, r *http.Request) (k *cookie, secret string, ok bool) {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		answer(w, http.StatusForbidden, problem{"only the page itself may ask"})
		return nil, "", false
	}
	secret = secretOf(r)
	k, err := c.holds(secret)
	if err != nil {
		answer(w, http.StatusServiceUnavailable, problem{"The database of the fleet can't be reached. You stay signed in."})
		return nil, "", false
	}
	if k == nil {
		answer(w, http.StatusUnauthorized, problem{"You are signed out: an hour without use, 12 hours, a revoked token, or another start of the server ends it."})
		return nil, "", false
	}
	return k, secret, true
}

// holds gives the cookie with this secret while it and its token hold, and notes its use. The error is an outage.Error: whether its
// token holds can't be asked now.
func (c *Console) holds(secret string) (*cookie, error) {
	now := time.Now()
	c.mu.Lock()
	k := c.cookies[secret]
	ok := k != nil && now.Before(k.expires) && now.Sub(k.used) < idleTime
	c.mu.Unlock()
	if ok && k.token != "" {
		all, err := c.o.Tokens.List()
		if outage.Is(err) {
			return nil, err
		}
		ok = err == nil && slices.ContainsFunc(all, func(t serve.Token) bool { return t.ID == k.token && t.Operator && !t.Expired(now) })
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ok {
		delete(c.cookies, secret)
		return nil, nil
	}
	if k = c.cookies[secret]; k != nil { // else somebody signed out meanwhile
		k.used = now
	}
	return k, nil
}

// ownPage reports whether a request that changes something comes from a page of this server, and refuses it if not.
func ownPage(w http.ResponseWriter, r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	origins := r.Header.Values("Origin")
	site := r.Header.Get("Sec-Fetch-Site")
	if err == nil && kind == "application/json" && r.Header.Get("X-Moltis") == "1" && (site == "" || site == "same-origin") &&
		len(origins) == 1 && ownOrigin(origins[0], r.Host) {
		return true
	}
	answer(w, http.StatusForbidden, problem{"only the page itself may ask"})
	return false
}

// ownOrigin reports whether an Origin is that of this server, which requests call host. Beyond loopback that is by TLS.
func ownOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host) && u.Path == "" &&
		(u.Scheme == "https" || u.Scheme == "http" && isLoopback(host))
}

func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}

// cookieName has the port, since browsers send the cookies of a host to all of its ports.
func cookieName(r *http.Request) string {
	if !isLoopback(r.Host) {
		return "__Host-moltis"
	}
	_, port, _ := net.SplitHostPort(r.Host) // "" is a port of its own
	return "moltis-" + port
}

func newCookie(r *http.Request, secret string, seconds int) *http.Cookie {
	k := &http.Cookie{Name: cookieName(r), Value: secret, Path: strings.TrimSuffix(base, "/"), MaxAge: seconds, HttpOnly: true,
		SameSite: http.SameSiteStrictMode}
	if !isLoopback(r.Host) {
		k.Path, k.Secure = "/", true
	}
	return k
}

func secretOf(r *http.Request) string {
	k, err := r.Cookie(cookieName(r))
	if err != nil {
		return ""
	}
	return k.Value
}
