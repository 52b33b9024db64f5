package issuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

const audience = "https://files.example.com/mcp"

// authority is an issuer on loopback.
type authority struct {
	oidctest.Server
	url    string
	asked  atomic.Int32 // for its keys
	broken atomic.Bool
}

func newAuthority(t *testing.T, public ...oidctest.PublicKey) *authority {
	t.Helper()
	a := &authority{Server: oidctest.Server{PublicKeys: public}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case a.broken.Load():
			http.Error(w, "broken", http.StatusInternalServerError)
			return
		case r.URL.Path == "/keys":
			a.asked.Add(1)
		}
		a.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	a.url = s.URL
	a.SetIssuer(s.URL)
	return a
}

// claims gives the claims of a good token with changes; nil as a value takes a claim away.
func (a *authority) claims(changes map[string]any) string {
	all := map[string]any{"iss": a.url, "aud": audience, "sub": "ann", "scope": "openid files:read files:write", "exp": time.Now().Add(time.Hour).Unix()}
	for k, v := range changes {
		if all[k] = v; v == nil {
			delete(all, k)
		}
	}
	b, _ := json.Marshal(all)
	return string(b)
}

// A token holds if all of it is right; of any other nothing holds.
func TestIssuedTokens(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	strange, err2 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	theirs, err3 := rsa.GenerateKey(rand.Reader, 2048)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	a := newAuthority(t, oidctest.PublicKey{PublicKey: key.Public(), KeyID: "k1", Algorithm: "ES256"},
		oidctest.PublicKey{PublicKey: theirs.Public(), KeyID: "k2", Algorithm: "RS256"})
	i := New(Options{Issuer: a.url, Audience: audience, Claim: "sub"}, http.DefaultTransport)
	mail := New(Options{Issuer: a.url, Audience: audience, Claim: "email"}, http.DefaultTransport)
	signed := func(changes map[string]any) string {
		return oidctest.SignIDToken(key, "k1", "ES256", a.claims(changes))
	}
	der, err := x509.MarshalPKIXPublicKey(theirs.Public())
	if err != nil {
		t.Fatal(err)
	}
	type claims = map[string]any
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(a.claims(nil))) + "."
	good := signed(nil)
	at := strings.LastIndex(good, ".") + 10
	for _, c := range []struct {
		name, token string
		by          *Issuer
		principal   string
		err         error
	}{
		{"a good one", good, i, "jwt:ann", nil},
		{"another signature", oidctest.SignIDToken(theirs, "k2", "PS256", a.claims(nil)), i, "jwt:ann", nil},
		{"several audiences", signed(claims{"aud": []string{"x", audience}}), i, "jwt:ann", nil},
		{"scopes in scp", signed(claims{"scope": nil, "scp": []string{"files:read"}}), i, "jwt:ann", nil},
		{"another claim", signed(claims{"email": "ann@example.com"}), mail, "jwt:ann@example.com", nil},
		{"not that claim", good, mail, "", ErrInvalid},
		{"another audience", signed(claims{"aud": "https://other.example.com"}), i, "", ErrInvalid},
		{"no audience", signed(claims{"aud": nil}), i, "", ErrInvalid},
		{"another issuer", signed(claims{"iss": "https://evil.example"}), i, "", ErrInvalid},
		{"expired", signed(claims{"exp": time.Now().Add(-time.Second).Unix()}), i, "", ErrInvalid},
		{"without an end", signed(claims{"exp": nil}), i, "", ErrInvalid},
		{"not yet", signed(claims{"nbf": time.Now().Add(time.Hour).Unix()}), i, "", ErrInvalid},
		{"nobody's", signed(claims{"sub": ""}), i, "", ErrInvalid},
		{"a number for a name", signed(claims{"sub": 7}), i, "", ErrInvalid},
		{"a name of two lines", signed(claims{"sub": "a\nb"}), i, "", ErrInvalid},
		{"a long name", signed(claims{"sub": strings.Repeat("x", 300)}), i, "", ErrInvalid},
		{"no scope of ours", signed(claims{"scope": "openid"}), i, "", ErrScope},
		{"scope of another type", signed(claims{"scope": 7}), i, "", ErrScope},
		{"unsigned", none, i, "", ErrInvalid},
		{"signed with a public key as if it were a secret", oidctest.SignIDToken(any(der).(crypto.PrivateKey), "k2", "HS256", a.claims(nil)), i, "", ErrInvalid},
		{"signed by another under a known name", oidctest.SignIDToken(strange, "k1", "ES256", a.claims(nil)), i, "", ErrInvalid},
		{"a changed one", good[:at] + "AAAA" + good[at+4:], i, "", ErrInvalid},
		{"no token", "..", i, "", ErrInvalid},
	} {
		g, err := c.by.Check(t.Context(), c.token)
		if g.Principal != c.principal || !errors.Is(err, c.err) || c.err == nil && err != nil {
			t.Errorf("%s: %+v, %v", c.name, g, err)
		}
	}
	before := a.asked.Load()
	for n := range 50 {
		if _, err := i.Check(t.Context(), oidctest.SignIDToken(strange, fmt.Sprint("unknown-", n), "ES256", a.claims(nil))); !errors.Is(err, ErrInvalid) {
			t.Fatal(err)
		}
	}
	if n := a.asked.Load() - before; n > 1 {
		t.Errorf("unknown keys had the issuer asked %d times", n)
	}
	if g, err := i.Check(t.Context(), good); err != nil || g.May(Elicit) || !g.May(Write) {
		t.Errorf("afterwards: %+v, %v", g, err)
	}
}

// While the keys can't be had nobody gets in, which is not the token's fault. Then they can.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := newAuthority(t, oidctest.PublicKey{PublicKey: key.Public(), KeyID: "k1", Algorithm: "ES256"})
	i := New(Options{Issuer: a.url, Audience: audience, Claim: "sub"}, http.DefaultTransport)
	token := oidctest.SignIDToken(key, "k1", "ES256", a.claims(nil))
	check := func(when string) {
		t.Helper()
		for range 2 {
			if _, err := i.Check(t.Context(), token); err == nil || errors.Is(err, ErrInvalid) {
				t.Errorf("%s: %v", when, err)
			}
		}
	}
	a.broken.Store(true)
	check("the issuer does not answer")
	a.broken.Store(false)
	clear(i.fetch.last) // time passes
	if _, err := i.ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.broken.Store(true)
	check("its keys can't be had")
	a.broken.Store(false)
	clear(i.fetch.last)
	if _, err := i.Check(t.Context(), token); err != nil {
		t.Error(err)
	}
	a.broken.Store(true)
	clear(i.fetch.last)
	if _, err := i.Check(t.Context(), token); err != nil {
		t.Errorf("with keys that are known: %v", err)
	}
	for _, where := range []string{"http://login.example.com", "ftp://127.0.0.1", "https://127.0.0.1:1"} {
		if _, err := New(Options{Issuer: where, Audience: audience, Claim: "sub"}, http.DefaultTransport).Check(t.Context(), token); err == nil || errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", where, err)
		}
	}
}

// Clients find the issuer by the description of the resource, and that by the challenge.
func TestDescription(t *testing.T) {
	t.Parallel()
	i := New(Options{Issuer: "https://login.example.com", Audience: audience, Claim: "sub"}, http.DefaultTransport)
	for path, is := range map[string]bool{Metadata: true, Metadata + "/mcp": true, Metadata + "/rpc": false, Metadata + "x": false, "/mcp": false} {
		if i.Describes(path) != is {
			t.Errorf("%s: %v", path, !is)
		}
	}
	const where = `Bearer resource_metadata="https://files.example.com/.well-known/oauth-protected-resource/mcp", `
	for err, want := range map[error]string{nil: where + `scope="files:read files:write"`, ErrInvalid: where + `error="invalid_token", scope="files:read files:write"`,
		ErrScope: where + `error="insufficient_scope", scope="files:read files:write"`} {
		if got := i.Challenge(err); got != want {
			t.Errorf("%v: %s", err, got)
		}
	}
	var d struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
	}
	if err := json.Unmarshal(i.Describe(), &d); err != nil || d.Resource != audience || len(d.Servers) != 1 || d.Servers[0] != "https://login.example.com" {
		t.Errorf("%+v, %v", d, err)
	}
}
