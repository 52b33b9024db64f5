package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"moltisfs/internal/fleetbox"
	"moltisfs/internal/outage"
)

// A moody store answers the first requests of a method in a way of its own, and the others as it should.
type moody struct {
	http.Handler
	method string
	times  atomic.Int64
	asked  atomic.Int64
	answer func(w http.ResponseWriter, r *http.Request, well http.Handler)
}

func (m *moody) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == m.method {
		m.asked.Add(1)
		if m.times.Add(-1) >= 0 {
			m.answer(w, r, m.Handler)
			return
		}
	}
	m.Handler.ServeHTTP(w, r)
}

// says answers with a status and a text that has a key in it.
func says(status int, code string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(status)
		w.Write([]byte("<Error><Code>" + code + "</Code><Message>of thekey with thesecret</Message><AWSAccessKeyId>thekey</AWSAccessKeyId></Error>"))
	}
}

// hangsUp does what was asked, and does not answer.
func hangsUp(_ http.ResponseWriter, r *http.Request, well http.Handler) {
	well.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// never does not answer while the other end waits.
func never(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
	io.Copy(io.Discard, r.Body) // else it would not learn that the other end has given up
	<-r.Context().Done()
}

// short announces all bytes, and sends some.
func short(w http.ResponseWriter, r *http.Request, well http.Handler) {
	rec := httptest.NewRecorder()
	well.ServeHTTP(rec, r)
	w.Header().Set("Content-Length", rec.Header().Get("Content-Length"))
	w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
	panic(http.ErrAbortHandler)
}

// other sends a whole answer that has another length.
func other(w http.ResponseWriter, r *http.Request, well http.Handler) {
	rec := httptest.NewRecorder()
	well.ServeHTTP(rec, r)
	w.Header().Set("Content-Length", "5")
	w.Header().Set("Last-Modified", rec.Header().Get("Last-Modified"))
	w.Write([]byte("short"))
}

// Whatever a store answers: what Put acknowledged is there, what was there stays, and only a content of another length is called wrong. None has a
// key in it.
func TestMoodyS3(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "thekey")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "thesecret")
	body := bytes.Repeat([]byte("body "), 1000)
	name := NewName(sha256.Sum256(body))
	put := func(s *S3) error { return s.Put(t.Context(), name, body) }
	get := func(s *S3) error {
		b, err := s.Get(t.Context(), name, int64(len(body)))
		if err == nil && !bytes.Equal(b, body) {
			t.Error("other bytes")
		}
		return err
	}
	list := func(s *S3) error { return s.List(t.Context(), func(string, int64) error { return nil }) }
	remove := func(s *S3) error { return s.Delete(t.Context(), name) }
	const none, away, wrong = "", "unreachable", "wrong"
	for what, c := range map[string]struct {
		method string
		times  int64
		answer func(http.ResponseWriter, *http.Request, http.Handler)
		do     func(*S3) error
		want   string // error
		asked  int64
	}{
		"put, busy twice":            {"PUT", 2, says(503, "SlowDown"), put, none, 3},
		"put, busy":                  {"PUT", 9, says(503, "SlowDown"), put, away, 3},
		"put, conflict":              {"PUT", 1, says(409, "ConditionalRequestConflict"), put, none, 2},
		"put, no answer once":        {"PUT", 1, never, put, none, 2},
		"put, no answer":             {"PUT", 9, never, put, away, 3},
		"put, the answer is lost":    {"PUT", 1, hangsUp, put, none, 2},
		"put, all answers are lost":  {"PUT", 9, hangsUp, put, away, 3},
		"put, no right":              {"PUT", 9, says(403, "InvalidAccessKeyId"), put, away, 1},
		"get, busy twice":            {"GET", 2, says(500, "InternalError"), get, none, 3},
		"get, busy":                  {"GET", 9, says(500, "InternalError"), get, away, 3},
		"get, no answer once":        {"GET", 1, never, get, none, 2},
		"get, cut off once":          {"GET", 1, short, get, none, 2},
		"get, cut off":               {"GET", 9, short, get, away, 3},
		"get, another length":        {"GET", 9, other, get, wrong, 1},
		"get, no right":              {"GET", 9, says(403, "SignatureDoesNotMatch"), get, away, 1},
		"get, no bucket":             {"GET", 9, says(404, "NoSuchBucket"), get, away, 1},
		"list, busy twice":           {"GET", 2, says(429, "TooManyRequests"), list, none, 3},
		"list, busy":                 {"GET", 9, says(503, "SlowDown"), list, away, 3},
		"delete, busy twice":         {"DELETE", 2, says(503, "SlowDown"), remove, none, 3},
		"delete, the answer is lost": {"DELETE", 1, hangsUp, remove, none, 2},
		"delete, no right":           {"DELETE", 1, says(403, "AccessDenied"), remove, away, 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := &moody{method: c.method, answer: c.answer}
			s, err := OpenS3(fleetbox.Contents(t, func(h http.Handler) http.Handler { m.Handler = h; return m }))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(what, "no answer") {
				s.patience = time.Second
			}
			if c.method != "PUT" {
				if err := put(s); err != nil {
					t.Fatal(err)
				}
			}
			m.asked.Store(0)
			m.times.Store(c.times)
			err = c.do(s)
			unreachable := outage.Is(err)
			if got := map[bool]string{true: away, false: wrong}[unreachable]; err == nil && c.want != none || err != nil && got != c.want {
				t.Errorf("%v, not %q", err, c.want)
			}
			if err != nil && (strings.Contains(err.Error(), "thekey") || strings.Contains(err.Error(), "thesecret") || errors.Is(err, fs.ErrNotExist)) {
				t.Error("it says too much:", err)
			}
			if failed := s.Failed(); unreachable != (failed != nil) {
				t.Errorf("after %v it says %v", err, failed)
			}
			if n := m.asked.Load(); n != c.asked {
				t.Errorf("it was asked %d times, not %d", n, c.asked)
			}
			m.times.Store(0)
			if err := get(s); c.want == none && c.method != "DELETE" && err != nil {
				t.Error("and then:", err)
			}
		})
	}
}

// A request that comes late does not overwrite what is there.
func TestLatePut(t *testing.T) {
	first, arrived := make(chan struct{}), make(chan int, 1)
	var puts atomic.Int64
	s, err := OpenS3(fleetbox.Contents(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "-") || strings.Contains(r.URL.Path, s3Probe) || puts.Add(1) > 1 {
				h.ServeHTTP(w, r)
				return
			}
			var body bytes.Buffer
			body.ReadFrom(r.Body)
			r = r.Clone(context.Background())
			r.Body = http.NoBody
			late := httptest.NewRequest(r.Method, r.URL.String(), &body)
			late.Header = r.Header
			go func() {
				<-first
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, late)
				arrived <- rec.Code
			}()
			panic(http.ErrAbortHandler)
		})
	}))
	if err != nil {
		t.Fatal(err)
	}
	body := []byte("one content")
	name := NewName(sha256.Sum256(body))
	if err := s.Put(t.Context(), name, body); err != nil {
		t.Fatal(err)
	}
	close(first)
	if code := <-arrived; code != http.StatusPreconditionFailed {
		t.Error("the late one was answered", code)
	}
	if b, err := s.Get(t.Context(), name, int64(len(body))); err != nil || !bytes.Equal(b, body) {
		t.Error(err)
	}
	if err := s.Put(t.Context(), name, []byte("another one")); !errors.Is(err, fs.ErrExist) {
		t.Error("a name was given twice:", err)
	}
}

func TestS3Refuses(t *testing.T) {
	at := fleetbox.Contents(t, nil)
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	deaf := fleetbox.Contents(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { r.Header.Del("If-None-Match"); h.ServeHTTP(w, r) })
	})
	s, err := OpenS3(deaf)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte("one content")
	name := NewName(sha256.Sum256(body))
	for range 2 {
		if err := s.Put(t.Context(), name, body); err != ErrUnconditional || s.Failed() != err {
			t.Error("a store without conditional writes:", err)
		}
		if _, err := s.Get(t.Context(), name, int64(len(body))); !errors.Is(err, fs.ErrNotExist) || s.Failed() != nil {
			t.Error("it has the content:", err)
		}
	}
	if s, err = OpenS3("s3://no-such-bucket?" + u.RawQuery); err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), name, body); !outage.Is(err) || s.Failed() == nil {
		t.Error("no such bucket:", err)
	}
	for _, bad := range []string{"", "s3://", "https://bucket", "s3:bucket", "s3://key:secret@bucket", at + "&secret=x", "s3://bucket?endpoint=ftp://x",
		"s3://bucket?endpoint=http://key:secret@x", "s3://bucket?endpoint=http://x/path", "s3://bucket/%zz"} {
		if _, err := OpenS3(bad); err == nil || strings.Contains(err.Error(), "secret@") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
