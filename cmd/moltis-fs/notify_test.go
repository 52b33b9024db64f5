package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"moltisfs/internal/testdir"
)

// A question is told on standard error, to a program and to a webhook, whose signature anybody with the secret can check. What fails is told
// too, and the question waits all the same.
func TestQuestionsAreTold(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	data, root, told := filepath.Join(dir, "data"), filepath.Join(dir, "tree"), filepath.Join(dir, "told")
	must(t, os.Mkdir(root, 0o700))
	secret := []byte("0123456789abcdef0123")
	must(t, os.WriteFile(filepath.Join(dir, "key"), []byte("whsec_"+base64.StdEncoding.EncodeToString(secret)+"\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "open"), secret, 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "hook"), []byte("#!/bin/sh\ncat >"+told+".new && mv "+told+".new "+told+"\n"), 0o700))
	heard, first := make(chan *http.Request, 4), true
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if first {
			first = false
			w.WriteHeader(http.StatusServiceUnavailable) // it is sent again
			return
		}
		heard <- r
	}))
	defer hooks.Close()
	config := filepath.Join(dir, "m.toml")
	must(t, os.WriteFile(config, []byte("[tools.fs]\nallow_paths = ['${ROOT}/**']\n[tools.fs.hooks]\non_question = ['"+dir+"/hook', '/bin/false']\n"+
		"webhooks = ['"+hooks.URL+"/x  "+dir+"/key', '"+hooks.URL+"/y "+dir+"/open']\n"), 0o600))
	agent, operator := newToken(t, data, "--principal", "ci"), newToken(t, data, "--principal", "ann", "--operator")
	s := startServer(t, agent, "--root", root, "--data-dir", data, "--config", config)
	answer := make(chan string, 1)
	go func() {
		answer <- s.ask("capabilities.invoke", `{"capability":"Write","arguments":{"file_path":"`+root+`/a","content":"the content\n"}}`)
	}()
	line := s.says("waits for an answer")
	id := line[len("moltis-fs: "):][:12]
	if !strings.Contains(line, "Write of "+root+"/a, +1 −0, by ci/run-") || !strings.Contains(line, "see moltis-fs approve --config "+config+" --data-dir "+data) {
		t.Error(line)
	}
	s.says("is open to others")
	r := <-heard
	body, _ := io.ReadAll(r.Body)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(r.Header.Get("webhook-id") + "." + r.Header.Get("webhook-timestamp") + "." + string(body)))
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.Header.Get("webhook-signature") != want || r.Header.Get("webhook-id") != id || r.URL.Path != "/x" {
		t.Errorf("%v %s", r.Header, r.URL)
	}
	testdir.Until(t, "the hook", func() bool { _, err := os.Stat(told); return err == nil })
	same, err := os.ReadFile(told)
	must(t, err)
	var says struct {
		Event    string
		Question struct {
			ID, Principal, Client, Diff string
			Paths                       []string
		}
	}
	must(t, json.Unmarshal(same, &says))
	if q := says.Question; strings.TrimSpace(string(body)) != strings.TrimSpace(string(same)) || says.Event != "approval.requested" || q.ID != id ||
		q.Principal != "ci" || !strings.HasPrefix(q.Client, "Go-http") || q.Paths[0] != root+"/a" || strings.Contains(string(same), "the content") {
		t.Errorf("%s\n%s", same, body)
	}
	if got := s.askAs(operator, "approvals.deny", `{"id":"`+id+`","reason":"no"}`); !strings.Contains(got, `"state":"denied"`) {
		t.Error(got)
	}
	if got := <-answer; !strings.Contains(got, "approval_denied") {
		t.Error(got)
	}
}

// A webhook without TLS, without a secret or with half of it is no configuration.
func TestBadWebhooks(t *testing.T) {
	dir := realDir(t)
	for _, line := range []string{"http://example.com/x /k", "https://example.com/x", "https://example.com/x k", "/bin/x /k", "https:///x /k", "ftp://example.com /k", ""} {
		file := filepath.Join(dir, "m.toml")
		must(t, os.WriteFile(file, []byte("[tools.fs.hooks]\nwebhooks = ['"+line+"']\n"), 0o600))
		if status, out, _ := runWith(t, "", "config", "check", file); status != exitRefused || !strings.Contains(out, "tools.fs.hooks.webhooks[0]") {
			t.Errorf("%q: %d %s", line, status, out)
		}
	}
}
