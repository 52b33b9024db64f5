package dialect

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestScopeWithin(t *testing.T) {
	for _, c := range []struct{ own, dir, want string }{
		{"/", "/w", "/w"},
		{"/w", "/w", "/w"},
		{"/w/a /x /w/b", "/w", "/w/a /w/b"},
		{"/wide /x", "/w", ""},
		{"/w/a /", "/w", "/w"},
		{"", "/w", ""},
		{"/a", "/", "/a"},
	} {
		own := strings.Fields(c.own)
		got := (&Scope{Readable: own, Writable: own}).Within(c.dir)
		if strings.Join(got.Readable, " ") != c.want || strings.Join(got.Writable, " ") != c.want {
			t.Errorf("%q within %s: %v, want %q", c.own, c.dir, got, c.want)
		}
	}
	var all *Scope
	if got := all.Within("/w"); !reflect.DeepEqual(got, &Scope{[]string{"/w"}, []string{"/w"}}) {
		t.Errorf("all within /w: %v", got)
	}
}

// one is a dialect of one tool, which says who it is.
type one struct{ name, also string }

func (o one) Definitions() []Definition {
	return []Definition{{Name: o.name, Also: []string{o.also}}}
}

func (o one) Call(_ context.Context, c Call) (Answer, error) {
	if c.Tool != o.name && c.Tool != o.also {
		return nil, &UnknownToolError{Tool: c.Tool, Nearest: o.name}
	}
	return nil, errors.New("this is " + o.name)
}

// fed is one that has events and fails at the end of a session.
type fed struct{ one }

func (f fed) Events(context.Context, Call, int64, int) (Events, error) {
	return Events{[]json.RawMessage{json.RawMessage(`"` + f.name + `"`)}, 7}, nil
}

func (f fed) EndSession(context.Context, string, string, bool) error { return errors.New(f.name) }

// Each tool is called by any of its names, and what sessions have is found behind those that have nothing.
func TestJoin(t *testing.T) {
	d := Join(one{"a", "A"}, fed{one{"b", "beta"}})
	for tool, want := range map[string]string{
		"a": "this is a", "A": "this is a", "b": "this is b", "beta": "this is b",
		"c": `there is no tool "c"`, "bete": `there is no tool "bete"; did you mean beta?`,
	} {
		if _, err := d.Call(t.Context(), Call{Tool: tool}); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", tool, err, want)
		}
	}
	if defs := d.Definitions(); len(defs) != 2 || defs[0].Name != "a" || defs[1].Name != "b" {
		t.Errorf("listed %v", defs)
	}
	if e, err := d.(Feed).Events(t.Context(), Call{}, 0, 1); err != nil || e.Next != 7 || string(e.List[0]) != `"b"` {
		t.Errorf("%v, %v", e, err)
	}
	if err := d.(Sessions).EndSession(t.Context(), "", "", false); err == nil || err.Error() != "b" {
		t.Errorf("the end of a session: %v", err)
	}
	over, end := context.WithCancel(t.Context())
	end()
	if e, err := Join(one{"a", ""}, one{"b", ""}).(Feed).Events(over, Call{}, 3, 1); err != nil || e.Next != 3 {
		t.Errorf("without a feed: %v, %v", e, err)
	}
	if single := (one{"a", ""}); Join(single) != Dialect(single) {
		t.Error("a single dialect is not itself")
	}
}
