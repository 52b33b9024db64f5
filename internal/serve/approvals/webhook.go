package approvals

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Webhook is an address that hears of questions, in the form of standardwebhooks.com: each request has the headers webhook-id,
// webhook-timestamp and webhook-signature, which is "v1," and the HMAC-SHA256, in Base64, of "ID.TIMESTAMP.BODY". A receiver that makes the
// same of its copy of the secret knows who sent it, and when.
type Webhook struct {
	URL    string
	Secret []byte // Key makes it of the text of a file
}

// minSecret is how many bytes a secret has at least.
const minSecret = 16

// Key makes a secret of the text of a file: "whsec_" and Base64, or the text as it is, without the blanks around it.
func Key(text string) (secret []byte, err error) {
	text = strings.TrimSpace(text)
	if coded, is := strings.CutPrefix(text, "whsec_"); is {
		if secret, err = base64.StdEncoding.DecodeString(coded); err != nil {
			return nil, fmt.Errorf("behind whsec_ there is no Base64")
		}
	} else {
		secret = []byte(text)
	}
	if len(secret) < minSecret {
		return nil, fmt.Errorf("a secret has at least %d bytes", minSecret)
	}
	return secret, nil
}

// pauses are the times before the second and the later attempts to send.
var pauses = []time.Duration{time.Second, 5 * time.Second}

// Send posts the body, which is about the question of that id. It tries again where nobody answers, or with a status from 500 on; a
// receiver tells repetitions by the id. It follows no redirects.
func (w Webhook) Send(ctx context.Context, id string, body []byte) error {
	for attempt := 0; ; attempt++ {
		again, err := w.send(ctx, id, body)
		if err == nil || !again || attempt == len(pauses) {
			return err
		}
		select {
		case <-time.After(pauses[attempt]):
		case <-ctx.Done():
			return err
		}
	}
}

// attemptTime bounds one attempt.
const attemptTime = 10 * time.Second

func (w Webhook) send(ctx context.Context, id string, body []byte) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	now := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, w.Secret)
	fmt.Fprintf(mac, "%s.%s.%s", id, now, body)
	for name, value := range map[string]string{"Content-Type": "application/json", "User-Agent": "moltis-fs", "webhook-id": id,
		"webhook-timestamp": now, "webhook-signature": "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))} {
		q.Header.Set(name, value)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := client.Do(q)
	if err != nil {
		return true, err
	}
	defer a.Body.Close()
	_, _ = io.CopyN(io.Discard, a.Body, 64<<10) // so that the connection can be used again
	if a.StatusCode/100 != 2 {
		return a.StatusCode >= 500, fmt.Errorf("the receiver answers %s", a.Status)
	}
	return false, nil
}
