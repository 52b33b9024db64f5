package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"moltisfs/config"
	"moltisfs/tools"
)

// TestCloseTwice: a second Close is harmless to whoever has got the numbers of our descriptors meanwhile, and a call after it is
// refused, whatever the tool.
func TestCloseTwice(t *testing.T) {
	s, root := suite(t, func(fs *config.FS) { fs.CheckpointBeforeMutation, fs.TrackReads = true, true }, tools.Options{})
	f := write(t, root+"/a.txt", "one\n")
	call(t, s, "Read", map[string]any{"file_path": f})
	call(t, s, "Write", map[string]any{"file_path": f, "content": "two\n"})
	call(t, s, "Grep", map[string]any{"pattern": "two"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var theirs []*os.File
	for i := range 60 {
		g, err := os.Create(filepath.Join(t.TempDir(), fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		theirs = append(theirs, g)
	}
	for _, d := range tools.Definitions() {
		p, err := s.Call(context.Background(), tools.Call{Tool: d.Name, Args: json.RawMessage(`{"file_path":"` + f + `","pattern":"two","content":"three\n"}`)})
		if p != nil || !errors.Is(err, tools.ErrClosed) {
			t.Errorf("%s after Close: %v, %v", d.Name, p, err)
		}
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := s.Close(); err != nil {
				t.Errorf("closing again: %v", err)
			}
		})
	}
	wg.Wait()
	for _, g := range theirs {
		if _, err := g.WriteString("still mine"); err != nil {
			t.Errorf("a file of the host's was closed: %v", err)
		}
	}
	if got := content(t, f); got != "two\n" {
		t.Errorf("a call after Close changed the file: %q", got)
	}
}

// unheard waits for a person, and comes back when told, or never.
type unheard struct {
	asked chan struct{}
	obeys bool
	never chan struct{}
}

func (u unheard) Ask(ctx context.Context, _ tools.Question) (tools.Answer, error) {
	close(u.asked)
	if u.obeys {
		<-ctx.Done()
		return tools.Answer{Decision: tools.Approved}, nil // too late
	}
	<-u.never
	return tools.Answer{Decision: tools.Approved}, nil
}

// TestCloseDuringAQuestion: Close takes the question back, also from an approver that hears nothing, and the call changes nothing.
func TestCloseDuringAQuestion(t *testing.T) {
	t.Parallel()
	for _, obeys := range []bool{true, false} {
		for _, own := range []bool{true, false} { // whose approver it is
			u := unheard{make(chan struct{}), obeys, make(chan struct{})}
			defer close(u.never)
			var o tools.Options
			c := tools.Call{Tool: "Write"}
			if own {
				c.Approver = u
			} else {
				o.Approver = u
			}
			s, root := suite(t, func(fs *config.FS) { fs.RequireApproval = true }, o)
			f := write(t, root+"/a.txt", "one\n")
			c.Args = json.RawMessage(`{"file_path":"` + f + `","content":"two\n"}`)
			ended := make(chan error)
			go func() {
				p, err := s.Call(context.Background(), c)
				if p != nil {
					t.Errorf("answered: %s", p.Text())
				}
				ended <- err
			}()
			<-u.asked
			closed := make(chan error)
			go func() { closed <- s.Close() }()
			if err := <-ended; !errors.Is(err, tools.ErrClosed) {
				t.Errorf("obeys %v: the call whose question was taken back: %v", obeys, err)
			}
			if err := <-closed; err != nil {
				t.Error(err)
			}
			if got := content(t, f); got != "one\n" {
				t.Errorf("it changed the file: %q", got)
			}
			log := records(t, filepath.Join(filepath.Dir(root), "data"))
			if !strings.Contains(log, `"tool":"Write"`) {
				t.Errorf("it is not on record: %s", log)
			}
		}
	}
}
