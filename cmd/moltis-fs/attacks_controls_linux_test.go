package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// These engines are no good, each as one that people use was.

var errOutside = errors.New("outside")

// lexical looks at the spelling alone, and at its beginning.
func lexical(w *attacked, p string) ([]byte, error) {
	if clean := filepath.Clean(p); !strings.HasPrefix(clean, w.root) || strings.HasPrefix(clean, w.root+"/secret/") {
		return nil, errOutside
	}
	return os.ReadFile(p)
}

// canonical follows links, and compares the rules with what was asked for. A row that would block says so.
func canonical(w *attacked, p string) ([]byte, error) {
	if strings.HasPrefix(p, w.root+"/secret/") {
		return nil, errOutside
	}
	at, err := filepath.EvalSymlinks(p)
	if err != nil || at != w.root && !strings.HasPrefix(at, w.root+"/") {
		return nil, errOutside
	}
	return inTime(at)
}

// inTime reads a file, and says so if that does not end.
func inTime(p string) ([]byte, error) {
	type result struct {
		b   []byte
		err error
	}
	done := make(chan result, 1)
	go func() { b, err := os.ReadFile(p); done <- result{b, err} }()
	info, err := os.Lstat(p)
	if err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		r := <-done
		return r.b, r.err
	}
	select {
	case r := <-done:
		return r.b, r.err
	case <-time.After(50 * time.Millisecond):
		if f, err := os.OpenFile(p, os.O_RDWR, 0); err == nil { // lets it go
			_ = f.Close()
		}
		return nil, errHangs
	}
}

// contained can't be led out of the root, and knows no names.
func contained(w *attacked, p string) ([]byte, error) {
	name, ok := strings.CutPrefix(p, w.root+"/")
	if !ok {
		return nil, errOutside
	}
	root, err := os.OpenRoot(w.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(name)
}

// talkative denies what is there, and says of all else that it is missing.
func talkative(w *attacked, p string) ([]byte, error) {
	if _, err := os.Stat(p); err != nil {
		return nil, fs.ErrNotExist
	}
	if strings.HasPrefix(p, w.root+"/secret/") || !strings.HasPrefix(p, w.root+"/") {
		return nil, fs.ErrPermission
	}
	return os.ReadFile(p)
}

// controlSwap is canonical with somebody between its look and its use.
func controlSwap(t *testing.T) string {
	w := newAttacked(t)
	p := w.at("race/real/plain")
	at, err := filepath.EvalSymlinks(p)
	if err != nil || !strings.HasPrefix(at, w.root+"/") {
		t.Fatal(err)
	}
	must(t, errors.Join(os.Remove(p), os.Symlink("../../../out/there", p)))
	if b, err := os.ReadFile(at); err != nil || !told(b) {
		return ""
	}
	return "D03"
}

// controlDoubles looks at the argument of that name, and decodes by encoding/json, which takes any case.
func controlDoubles(t *testing.T) string {
	w := newAttacked(t)
	raw := fmt.Appendf(nil, `{"file_path":%q,"FILE_PATH":%q}`, w.at("plain"), w.at("secret/there"))
	var seen map[string]string
	var args struct {
		Path string `json:"file_path"`
	}
	must(t, errors.Join(json.Unmarshal(raw, &seen), json.Unmarshal(raw, &args)))
	if strings.HasPrefix(seen["file_path"], w.root+"/secret/") {
		return ""
	}
	if b, err := os.ReadFile(args.Path); err != nil || !told(b) {
		return ""
	}
	return "F11"
}

// controlIDs looks for a checkpoint by joining its id to a directory.
func controlIDs(t *testing.T) string {
	w := newAttacked(t)
	for _, id := range pathsAsIDs {
		if b, err := os.ReadFile(filepath.Join(w.at("scratch"), id)); err == nil && told(b) {
			return "H10"
		}
	}
	return ""
}

// controlDoor serves whoever comes by the loopback.
func controlDoor(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, canary) }))
	defer s.Close()
	for _, d := range strangers {
		if status, body := knock(t, s.URL, d); status == http.StatusOK && told(body) {
			return d.row
		}
	}
	return ""
}

// controlRules passes over a rule that it can't read.
func controlRules(t *testing.T) string {
	w := newAttacked(t)
	for _, rule := range badRules {
		if closed, err := path.Match(w.written(rule), w.at("secret/there")); err == nil && closed {
			continue
		}
		if b, err := os.ReadFile(w.at("secret/there")); err == nil && told(b) {
			return "J05"
		}
	}
	return ""
}
