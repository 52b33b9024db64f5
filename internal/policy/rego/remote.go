package rego

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"moltisfs/internal/policy"
)

const (
	askTime   = 5 * time.Second
	maxAnswer = 1 << 20
)

// remote is a policy of an OPA server.
type remote struct {
	url    string
	client *http.Client
}

func newRemote(base *url.URL, path string) *remote {
	if path == "" {
		path = defaultPath
	}
	to := base.JoinPath("v1", "data", path)
	to.RawQuery, to.Fragment = "", ""
	return &remote{url: to.String(), client: &http.Client{
		Timeout: askTime,
		// a redirect leads to a server that the operator did not name
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
			DialContext: (&net.Dialer{Timeout: askTime}).DialContext},
	}}
}

func (r *remote) decide(ctx context.Context, in *policy.Input) (bool, error) {
	yes, err := r.ask(ctx, in)
	if _, undecided := errors.AsType[*policy.Undecided](err); err == nil || undecided {
		return yes, err
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() && ctx.Err() == nil {
		err = fmt.Errorf("no answer within %s", r.client.Timeout)
	} else if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	u, _ := url.Parse(r.url)
	return false, fmt.Errorf("the policy server %s: %w", u.Redacted(), err)
}

func (r *remote) ask(ctx context.Context, in *policy.Input) (bool, error) {
	body, err := json.Marshal(map[string]*policy.Input{"input": in})
	if err != nil {
		return false, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close() //nolint:errcheck // it is read to its end, or given up
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return false, err
	case resp.StatusCode/100 != 2:
		return false, fmt.Errorf("it answers %s", resp.Status)
	case len(answer) > maxAnswer:
		return false, fmt.Errorf("its answer is longer than %d bytes", maxAnswer)
	}
	var says struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(answer, &says); err != nil {
		return false, errors.New("its answer is not that of OPA: no JSON object")
	}
	if len(says.Result) == 0 || string(says.Result) == "null" {
		return false, &policy.Undecided{Why: "the policy server has no result for this input"}
	}
	var result map[string]json.RawMessage
	if err := json.Unmarshal(says.Result, &result); err != nil {
		return false, fmt.Errorf("its result is %.20s, not an object with allow", says.Result)
	}
	switch allow := strings.TrimSpace(string(result["allow"])); allow {
	case "true", "false":
		return allow == "true", nil
	case "", "null":
		return false, &policy.Undecided{Why: "allow is undefined for this input at the policy server"}
	default:
		return false, fmt.Errorf("its allow is %.20s, not true or false", allow)
	}
}

func (r *remote) String() string {
	u, _ := url.Parse(r.url)
	return u.Redacted()
}
