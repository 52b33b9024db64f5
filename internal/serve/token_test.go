package serve

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"moltisfs/internal/testdir"
)

var must = testdir.Must

func create(t *testing.T, s *TokenStore, like Token) (Token, string) {
	t.Helper()
	made, secret, err := s.Create(like)
	must(t, err)
	return made, secret
}

// A token holds until it is revoked or its time is over, in every store of the directory at once, and
// then there is no telling it from one that never was. Its secret is in no file.
func TestATokenHoldsUntilItEnds(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tokens")
	s, server := Tokens(dir), Tokens(dir)
	now := time.Now()
	if _, err := server.Check("mfs_x", now); err != ErrUnknownToken {
		t.Errorf("before there is any: %v", err)
	}
	a, first := create(t, s, Token{Principal: "ci", Tier: "ask", Scope: &Scope{Readable: []string{"/a"}}})
	_, second := create(t, s, Token{Principal: "ci", ByUser: true, Expires: now.Add(time.Hour)})
	got, err := server.Check(first, now)
	if err != nil || got.ID != a.ID || got.Principal != "ci" || got.Tier != "ask" || got.Scope.Readable[0] != "/a" || got.ByUser {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = server.Check(second, now.Add(time.Hour-time.Second)); err != nil || !got.ByUser {
		t.Errorf("%+v, %v", got, err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil || strings.Contains(string(raw), first) || strings.Contains(string(raw), first[len(prefix):]) {
		t.Errorf("the file holds a secret: %s, %v", raw, err)
	}
	if len(first) != len(prefix)+43 || first == second {
		t.Errorf("secrets are %q and %q", first, second)
	}
	if _, err := s.Revoke(a.ID); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		secret string
		when   time.Time
	}{
		"revoked": {first, now}, "expired": {second, now.Add(time.Hour)}, "unknown": {first + "x", now}, "none": {"", now},
		"endless": {strings.Repeat("x", 1<<20), now}, "by its hash": {got.Hash, now}, "with more": {second + strings.Repeat("x", maxSecret), now},
	} {
		if got, err := server.Check(c.secret, c.when); err != ErrUnknownToken || got.ID != "" {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	if _, err := s.Revoke(a.ID); err != ErrUnknownToken {
		t.Errorf("revoked twice: %v", err)
	}
	for _, p := range []string{"", "a\nb", "\xff", strings.Repeat("x", maxName+1)} {
		if _, _, err := s.Create(Token{Principal: p}); err == nil {
			t.Errorf("there is a principal %.20q", p)
		}
	}
	if all, err := s.List(); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

// A token that has long expired makes place; else there are only so many.
func TestThereAreOnlySoMany(t *testing.T) {
	t.Parallel()
	s := Tokens(t.TempDir())
	if err := s.change(func([]Token) (all []Token, err error) {
		for i := range maxTokens {
			all = append(all, Token{ID: fmt.Sprint(i), Hash: hashOf(fmt.Sprint(i)), Principal: "p"})
		}
		return all, nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Create(Token{Principal: "p"}); !errors.Is(err, ErrTooManyTokens) {
		t.Errorf("one too many: %v", err)
	}
	if err := s.change(func(all []Token) ([]Token, error) {
		all[7].Expires = time.Now().Add(-2 * keepOld)
		return all, nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Create(Token{Principal: "p"}); err != nil {
		t.Error(err)
	}
	long := &Scope{Readable: []string{strings.Repeat("x", maxFile)}}
	if _, _, err := Tokens(t.TempDir()).Create(Token{Principal: "p", Scope: long}); !errors.Is(err, ErrTooManyTokens) {
		t.Errorf("larger than is read: %v", err)
	}
}

// A file that this program did not write, or that others can reach, is no token's friend.
func TestNoTokenHoldsInADoubtfulFile(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(dir, file, text string) error{
		"cut":   func(_, file, text string) error { return os.WriteFile(file, []byte(text[:len(text)/2]), 0o600) },
		"empty": func(_, file, _ string) error { return os.Truncate(file, 0) },
		"more":  func(_, file, text string) error { return os.WriteFile(file, []byte(text+"{}"), 0o600) },
		"unknown key": func(_, file, text string) error {
			return replace(file, text, `"principal"`, `"admin": true, "principal"`)
		},
		"short hash":    func(_, file, text string) error { return replace(file, text, `"sha256": "`, `"sha256": "00`) },
		"no principal":  func(_, file, text string) error { return replace(file, text, `"ci"`, `""`) },
		"other version": func(_, file, text string) error { return replace(file, text, `"version": 1`, `"version": 2`) },
		"open to read":  func(_, file, _ string) error { return os.Chmod(file, 0o640) },
		"open to write": func(_, file, _ string) error { return os.Chmod(file, 0o602) },
		"open directory": func(dir, file, text string) error {
			return errors.Join(os.Chmod(dir, 0o777), os.WriteFile(file, []byte(text+" "), 0o600))
		},
		"a link": func(dir, file, text string) error {
			other := filepath.Join(dir, "other")
			return errors.Join(os.Rename(file, other), os.Symlink(other, file))
		},
		"a directory": func(_, file, _ string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) },
		"too large":   func(_, file, _ string) error { return os.Truncate(file, maxFile+1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" && (strings.HasPrefix(name, "open") || name == "a link") {
				t.Skip("modes and links say nothing there")
			}
			dir := t.TempDir()
			must(t, os.Chmod(dir, 0o700))
			s := Tokens(dir)
			_, secret := create(t, s, Token{Principal: "ci"})
			file := filepath.Join(dir, fileName)
			old := time.Now().Add(-time.Hour) // so that the next look does not read it
			must(t, os.Chtimes(file, old, old))
			if _, err := s.Check(secret, time.Now()); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(file)
			must(t, err)
			must(t, spoil(dir, file, string(text)))
			if got, err := s.Check(secret, time.Now()); err == nil || err == ErrUnknownToken || got.ID != "" {
				t.Errorf("it holds, or is told from nothing: %+v, %v", got, err)
			}
			if _, _, err := s.Create(Token{Principal: "b"}); err == nil {
				t.Error("and it is written over")
			}
		})
	}
}

func replace(file, text, old, now string) error {
	changed := strings.Replace(text, old, now, 1)
	if changed == text {
		return errors.New("nothing to replace")
	}
	return os.WriteFile(file, []byte(changed), 0o600)
}

var child = flag.String("tokens", "", "where a process of TestTwoProcesses makes tokens")

// Processes that make and revoke tokens at the same time lose none of each other's.
func TestTwoProcesses(t *testing.T) {
	const each = 20
	if *child != "" {
		s := Tokens(*child)
		for i := range each {
			made, _, err := s.Create(Token{Principal: "p"})
			if err == nil && i%2 == 0 {
				_, err = s.Revoke(made.ID)
			}
			must(t, err)
		}
		return
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tokens")
	var running []*exec.Cmd
	for range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTwoProcesses$", "-tokens="+dir)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		must(t, cmd.Start())
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if all, err := Tokens(dir).List(); err != nil || len(all) != 3*each/2 {
		t.Errorf("%d tokens, %v; there should be %d", len(all), err, 3*each/2)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("left are %v, %v", entries, err)
	}
}

func BenchmarkCheck(b *testing.B) {
	s := Tokens(b.TempDir())
	secret := ""
	for range 20 {
		_, now, err := s.Create(Token{Principal: "ci"})
		must(b, err)
		secret = now
	}
	for b.Loop() {
		if _, err := s.Check(secret, time.Now()); err != nil {
			b.Fatal(err)
		}
	}
}
