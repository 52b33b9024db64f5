package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"moltisfs/config"
	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
	"moltisfs/readers"
)

// TestContentIsShared: those who ask for the same of a document join the one who is at it, and of a text and of a file in an archive they do not.
func TestContentIsShared(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	cfg := config.Default()
	cfg.Tools.FS.WorkspaceRoot, cfg.Tools.FS.AllowPaths = dir+"/ws", []string{dir + "/ws/**"}
	must(t, os.Mkdir(dir+"/ws", 0o700))
	mail := "From: a@x\nTo: b@x\nSubject: c\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n\nd29yZHMK\n"
	for name, content := range map[string]string{"mail": mail, "text": "words\n", "zip": "PK\x03\x04"} {
		must(t, os.WriteFile(dir+"/ws/"+name, []byte(content), 0o600))
	}
	e, err := Open(cfg, Host{DataDir: dir + "/data"})
	must(t, err)
	defer e.Close()
	for _, c := range []struct {
		name, pages string
		shared      bool
	}{{"mail", "", true}, {"text", "", false}, {"zip", "", true}, {"zip", "a.txt", false}} {
		path := dir + "/ws/" + c.name
		raw, err := os.ReadFile(path)
		must(t, err)
		o := readers.Options{Pages: c.pages}
		others := &readers.Binary{}
		begun, end, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			e.documents.reads.Do(context.Background(), contentKey{path, HashOf(raw), o}, false, func() (readers.Content, error) {
				close(begun)
				<-end
				return others, nil
			})
		}()
		<-begun
		call := e.own()
		err = call.Read(t.Context(), path, func(ctx context.Context, s *Source) (*ReadRecord, error) {
			if c.shared {
				close(end)
			}
			got, err := s.Content(ctx, o)
			if shared := got == readers.Content(others); shared && !c.shared {
				t.Errorf("%+v is shared", c)
			}
			return nil, err
		})
		if !c.shared {
			close(end)
		}
		<-done
		if err != nil && c.name != "zip" {
			t.Error(c.name, err)
		}
	}
}

// TestShownMembers: of the text of an archive the files that policy hides are left out, and the places of the others stay right.
func TestShownMembers(t *testing.T) {
	text := "a1\na2\nsecret\nb1\nb2\nc1\n"
	at := func(bytes int, name string) readers.Place {
		return readers.Place{Bytes: bytes, Name: name, Pages: name, Offset: 1, Lines: true, Member: true}
	}
	k := &kept{Places: []readers.Place{at(6, "a"), at(7, "x/.env"), at(6, "b"), at(3, "c")}}
	e := &Engine{}
	var closed []string
	s := searched{&Call{Engine: e, judge: judgeOf{refuses: func(path string) bool { return slices.Contains(closed, path) }}}}
	for names, want := range map[string]string{
		"": "a1 a2 secret b1 b2 c1|b, line 2|0", "x/.env": "a1 a2 b1 b2 c1|c, line 1|1", "a c": "secret b1 b2||2", "a x/.env b c": "||4",
	} {
		closed = nil
		for _, n := range strings.Fields(names) {
			closed = append(closed, "/r/z.zip/"+n)
		}
		out := s.shown("/r/z.zip", []byte(text), k)
		place := ""
		if bytes.Count(out.Content, []byte{'\n'}) >= 5 {
			place = out.Place(5).Name
		}
		if got := fmt.Sprintf("%s|%s|%d", strings.Join(strings.Fields(string(out.Content)), " "), place, out.Denied); got != want {
			t.Errorf("without %q: %s, want %s", names, got, want)
		}
	}
}

// judgeOf refuses the paths for which it is true.
type judgeOf struct {
	policy.AllowAll
	refuses func(path string) bool
}

func (j judgeOf) Judge(o guardfs.Object, _ guardfs.Access) error {
	if j.refuses(o.True) {
		return &policy.Denied{Path: o.True, Rule: "deny_paths"}
	}
	return nil
}

// TestDocumentChangesWhileSearched gives a file the remembered hash of another content: then the text that is made is not of the content that
// was hashed, and is neither searched nor kept.
func TestDocumentChangesWhileSearched(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	cfg := config.Default()
	cfg.Tools.FS.WorkspaceRoot, cfg.Tools.FS.AllowPaths = dir+"/ws", []string{dir + "/ws/**"}
	must(t, os.Mkdir(dir+"/ws", 0o700))
	path := dir + "/ws/mail"
	must(t, os.WriteFile(path, []byte("From: a@x\nTo: b@x\nSubject: c\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n\nd29yZHMK\n"), 0o600))
	e, err := Open(cfg, Host{DataDir: dir + "/data"})
	must(t, err)
	defer e.Close()
	m, err := match.Compile("words", match.Options{})
	must(t, err)
	call := e.own()
	for _, other := range []string{HashOf([]byte("before")), ""} {
		must(t, call.Read(t.Context(), path, func(_ context.Context, s *Source) (*ReadRecord, error) {
			e.sums.known = map[guardfs.Identity]sum{s.Info.ID: {stamp(s.Info, ""), other}}
			return nil, nil
		}))
		r, err := call.Search(t.Context(), dir+"/ws", grep.Query{Matcher: m}, false)
		must(t, err)
		if found := len(r.Files) == 1; found != (other == "") || (r.Skipped.Documents == 1) == found {
			t.Errorf("with the hash %q: %+v", other, r)
		}
	}
}
