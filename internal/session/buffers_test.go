package session

import (
	"fmt"
	"slices"
	"testing"
)

// The finds of each look, in order. "disk|shown" is a look, "gave text" what the editor was given, "told"
// that the finding was told.
func TestLook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		looks []string
		want  []BufferState
	}{
		"no buffer":                        {[]string{"a|a", "b|b"}, []BufferState{Saved, Saved}},
		"typed":                            {[]string{"a|a", "a|b", "a|c"}, []BufferState{Saved, Unsaved, Unsaved}},
		"typed before the first look":      {[]string{"a|b"}, []BufferState{Unsaved}},
		"typed and saved":                  {[]string{"a|b", "b|b"}, []BufferState{Unsaved, Saved}},
		"typed, saved, typed on":           {[]string{"a|b", "b|c"}, []BufferState{Unsaved, Unsaved}},
		"given, saved, typed on":           {[]string{"a|b", "gave c", "c|d"}, []BufferState{Unsaved, Unsaved}},
		"typed, saved unseen, typed on":    {[]string{"a|a", "b|c", "b|c"}, []BufferState{Saved, Diverged, Diverged}},
		"the same, told":                   {[]string{"a|a", "b|c", "told", "b|c", "b|d", "e|d"}, []BufferState{Saved, Diverged, Unsaved, Unsaved, Diverged}},
		"not loaded again":                 {[]string{"a|a", "b|a", "c|b", "c|c"}, []BufferState{Saved, Stale, Stale, Saved}},
		"not loaded again, and typed":      {[]string{"a|a", "b|a", "b|ax"}, []BufferState{Saved, Stale, Diverged}},
		"typed, and the disk moved":        {[]string{"a|x", "b|x"}, []BufferState{Unsaved, Diverged}},
		"an undo in the editor":            {[]string{"a|a", "b|b", "b|a"}, []BufferState{Saved, Saved, Unsaved}},
		"a new file":                       {[]string{"|x", "x|x"}, []BufferState{Unsaved, Saved}},
		"an empty answer for no file":      {[]string{"|"}, []BufferState{Saved}},
		"line ends":                        {[]string{"a\r\nb\r\n|a\nb\n", "a\rb|a\nb"}, []BufferState{Saved, Saved}},
		"a last line break":                {[]string{"a\n|a", "a|a\n", "a|a\n\n"}, []BufferState{Saved, Saved, Unsaved}},
		"a mark":                           {[]string{"\uFEFFa|a", "a|\uFEFFa"}, []BufferState{Saved, Saved}},
		"bytes that the editor can't read": {[]string{"\xe9\xe9 a|\uFFFD\uFFFD a", "\xe9\xe9 a|\uFFFD a", "\xe9 a|\uFFFD b"}, []BufferState{Saved, Saved, Damaged}},
		"such a character of its own":      {[]string{"a|\uFFFD"}, []BufferState{Unsaved}},
	} {
		var s Buffers
		var got []BufferState
		for _, l := range c.looks {
			var disk, shown string
			if l == "told" {
				s.Told("f")
			} else if n, _ := fmt.Sscanf(l, "gave %s", &shown); n == 1 {
				s.Gave("f", shown)
			} else {
				for i := range l {
					if l[i] == '|' {
						disk, shown = l[:i], l[i+1:]
					}
				}
				got = append(got, s.Look("f", shown, []byte(disk), disk))
				if last := got[len(got)-1]; s.State("f") != last || (len(s.Paths()) > 0) != (last == Unsaved || last == Diverged) {
					t.Errorf("%s: %v, then %v and %v", name, last, s.State("f"), s.Paths())
				}
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Another encoding is the same text, and what is remembered has an end.
func TestLookAtMany(t *testing.T) {
	t.Parallel()
	var s Buffers
	if got := s.Look("f", "é", []byte("\xe9"), "é"); got != Saved {
		t.Error(got)
	}
	for i := range most + 10 {
		s.Look(fmt.Sprint(i), "b", []byte("a"), "a")
		s.Look("f", fmt.Sprint("x", i), []byte("a"), "a")
	}
	if f := s.files["f"]; len(s.files) > most || f != nil && len(f.texts) > mostTexts {
		t.Errorf("%d files", len(s.files))
	}
}
