// Package issuer checks the access tokens of an issuer that an operator trusts: JWTs, signed with the keys that the issuer publishes
// by OpenID Connect Discovery.
//
// A token holds if the issuer signed it, for this audience, and it has not expired. One claim names the principal. The claim scope, or
// scp, says what it may do: a list, or words with blanks between them.
//
// The keys are fetched with the first token, and again with a token whose key is not known, at most every 5 seconds. Nothing else is
// fetched. Over plain HTTP only loopback addresses are asked.
package issuer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
)

// The scopes of a token that are understood. Write comes with Read.
const (
	Read   = "files:read"
	Write  = "files:write"
	Elicit = "files:elicit" // its client may ask its own user for approvals
)

// Prefix begins the principals of tokens, so that none acts for a principal that the operator has named elsewhere.
const Prefix = "jwt:"

// Metadata is the path of the description of a resource, as RFC 9728 has it. Behind it comes the path of the resource.
const Metadata = "/.well-known/oauth-protected-resource"

var (
	// ErrInvalid is the error of a token that does not hold.
	ErrInvalid = errors.New("the token does not hold")
	// ErrScope is the error of a token that holds and has none of our scopes.
	ErrScope = errors.New("the token has none of the scopes " + Read + " and " + Write)
)

// Unreachable is the error of a token that can't be checked: the issuer's keys can't be had.
type Unreachable struct{ Err error }

func (u *Unreachable) Error() string { return "the keys of the issuer can't be had: " + u.Err.Error() }
func (u *Unreachable) Unwrap() error { return u.Err }

// Options says whose tokens are taken.
type Options struct {
	Issuer   string // its URL
	Audience string // the URL of this resource, as tokens name it
	Claim    string // names the principal
}

// Issuer checks tokens. It is safe for concurrent use.
type Issuer struct {
	o     Options
	fetch *fetcher

	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier // nil: the issuer has not been asked yet
}

// New makes the checker of an issuer, which is asked by transport.
func New(o Options, transport http.RoundTripper) *Issuer {
	return &Issuer{o: o, fetch: &fetcher{by: transport, last: map[string]fetched{}}}
}

// A Grant names the principal of a token, with its scopes and its end.
type Grant struct {
	Principal string
	Scopes    []string
	Expires   time.Time
}

// May reports whether the token has a scope.
func (g Grant) May(scope string) bool { return slices.Contains(g.Scopes, scope) }

// Check finds what a token gives. The error is ErrInvalid, ErrScope or an *Unreachable.
func (i *Issuer) Check(ctx context.Context, raw string) (g Grant, err error) {
	v, err := i.ask(ctx)
	if err != nil {
		return g, &Unreachable{err}
	}
	var unreachable error
	token, err := v.Verify(context.WithValue(ctx, failureKey{}, &unreachable), raw)
	if err != nil {
		if unreachable != nil && !errors.Is(unreachable, errTooSoon) {
			return g, &Unreachable{unreachable}
		}
		return g, ErrInvalid
	}
	claims := map[string]json.RawMessage{}
	var name string
	if token.Claims(&claims) != nil || json.Unmarshal(claims[i.o.Claim], &name) != nil || name == "" || len(name) > 200 ||
		strings.ContainsFunc(name, unicode.IsControl) {
		return g, ErrInvalid
	}
	g = Grant{Principal: Prefix + name, Scopes: append(words(claims["scope"]), words(claims["scp"])...), Expires: token.Expiry}
	if !g.May(Read) && !g.May(Write) {
		return Grant{}, ErrScope
	}
	return g, nil
}

// words gives the words of a claim: a list of them, or one text.
func words(claim json.RawMessage) (list []string) {
	var text string
	if json.Unmarshal(claim, &text) == nil {
		return strings.Fields(text)
	}
	if json.Unmarshal(claim, &list) != nil {
		return nil
	}
	return list
}

// ask gives what checks tokens. The issuer is asked for its addresses once.
func (i *Issuer) ask(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.verifier != nil {
		return i.verifier, nil
	}
	ctx = oidc.ClientContext(context.WithoutCancel(ctx), &http.Client{Transport: i.fetch, Timeout: 10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }})
	p, err := oidc.NewProvider(ctx, i.o.Issuer)
	if err != nil {
		return nil, err
	}
	var where struct {
		Keys string `json:"jwks_uri"`
	}
	if err := p.Claims(&where); err != nil {
		return nil, err
	}
	// Which signatures the issuer gives access tokens, it does not say. All of these need its private key.
	i.verifier = oidc.NewVerifier(i.o.Issuer, keys{oidc.NewRemoteKeySet(ctx, where.Keys)}, &oidc.Config{ClientID: i.o.Audience,
		SupportedSigningAlgs: []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384,
			oidc.PS512, oidc.EdDSA}})
	return i.verifier, nil
}

// keys tells of keys that could not be had, where the verifier says no more than that a token does not hold.
type keys struct{ oidc.KeySet }

type failureKey struct{}

func (k keys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, jwt)
	if err != nil && strings.HasPrefix(err.Error(), "fetching keys ") {
		*ctx.Value(failureKey{}).(*error) = err
	}
	return payload, err
}

// fetcher asks each address at most every few seconds: whoever sends tokens with keys that do not exist has nothing of that.
type fetcher struct {
	by http.RoundTripper

	mu   sync.Mutex
	last map[string]fetched
}

type fetched struct {
	at  time.Time
	err error
}

const (
	notBefore = 5 * time.Second
	maxAnswer = 1 << 20
)

var errTooSoon = errors.New("the issuer was asked just now")

func (f *fetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := allowed(r.URL); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	where := r.URL.String()
	if before := f.last[where]; time.Since(before.at) < notBefore {
		if before.err != nil {
			return nil, before.err
		}
		return nil, errTooSoon
	}
	resp, err := f.by.RoundTrip(r)
	if err == nil && resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		err = fmt.Errorf("%s answers %s", where, resp.Status)
	}
	f.last[where] = fetched{time.Now(), err}
	if err != nil {
		return nil, err
	}
	resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	return resp, nil
}

// allowed refuses addresses at which others could answer in the issuer's place.
func allowed(u *url.URL) error {
	if u.Scheme == "https" {
		return nil
	}
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); u.Scheme == "http" && (host == "localhost" || err == nil && ip.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("%s is not https", u.Redacted())
}

// Describe is the description of the resource for clients that look for the issuer.
func (i *Issuer) Describe() []byte {
	b, _ := json.Marshal(map[string]any{ // strings, and lists of them
		"resource": i.o.Audience, "resource_name": "moltis-fs", "authorization_servers": []string{i.o.Issuer},
		"scopes_supported": []string{Read, Write, Elicit}, "bearer_methods_supported": []string{"header"},
	})
	return b
}

// Describes reports whether the description of the resource is at a path of ours: with the path of the resource behind it, or without.
func (i *Issuer) Describes(path string) bool {
	rest, ok := strings.CutPrefix(path, Metadata)
	u, err := url.Parse(i.o.Audience)
	return ok && (rest == "" || err == nil && rest == strings.TrimSuffix(u.Path, "/"))
}

// Challenge is the header WWW-Authenticate of a request without a token that holds. failed is the error of Check; nil: it came
// without a token.
func (i *Issuer) Challenge(failed error) string {
	said := ""
	if u, err := url.Parse(i.o.Audience); err == nil {
		said = fmt.Sprintf("resource_metadata=%q, ", u.Scheme+"://"+u.Host+Metadata+strings.TrimSuffix(u.Path, "/"))
	}
	switch {
	case errors.Is(failed, ErrScope):
		said += `error="insufficient_scope", `
	case failed != nil:
		said += `error="invalid_token", `
	}
	return "Bearer " + said + fmt.Sprintf("scope=%q", Read+" "+Write)
}
