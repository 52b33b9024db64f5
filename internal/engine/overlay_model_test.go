package engine_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
)

// Whatever calls and an editor do in whatever order: each text that is read is the whole of what the editor
// holds, or of what is on the disk where it holds nothing; and a change is made in that one place or in none.
func TestOverlayNeverMixes(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 23))
		x, d := edited(t, func(fs *config.FS) { fs.TrackReads, fs.CheckpointBeforeMutation = seed%2 == 0, seed%3 != 0 })
		names := []string{"held", "plain", "d/held", "new"}
		disk := func() map[string]string {
			out := map[string]string{}
			for _, name := range names {
				if b, err := os.ReadFile(x.ws + "/" + name); err == nil {
					out[name] = string(b)
				}
			}
			return out
		}
		for step := range 60 {
			name := names[r.IntN(len(names))]
			path := x.ws + "/" + name
			failing := r.IntN(6) == 0
			if d.load = nil; failing {
				d.load = func(context.Context, string) (string, bool, error) { return "", false, errors.New("gone") }
			}
			was, texts := disk(), maps.Clone(d.texts)
			text, held := texts[path]
			if !held {
				text = was[name]
			}
			c, want, what := x.through(d), "", r.IntN(8)
			var err error
			switch mark := string(rune('a'+r.IntN(26))) + "\n"; what {
			case 0: // the user types, saves or closes
				d.put(path, mark)
				continue
			case 1:
				if held {
					x.write(name, text)
				}
				delete(d.texts, path)
				continue
			case 2:
				delete(d.texts, path)
				continue
			case 3:
				got, rerr := x.seen(c, path)
				if rerr == nil && (failing || got != text) {
					t.Fatalf("seed %d, step %d: %s reads %q, should %q", seed, step, name, got, text)
				}
				continue
			case 4:
				want = text + mark
				_, err = x.Append(ctx, c, path, []byte(mark), engine.Rules{})
			case 5:
				want = mark
				_, _, err = x.Write(ctx, c, engine.WriteArgs{Path: path, Text: mark, Rules: engine.Rules{Meant: true}})
			case 6:
				want = mark + text
				first := text[:min(len(text), 2)]
				_, _, err = x.Edit(ctx, c, engine.EditArgs{Path: path, Edits: []edit.Edit{{Old: first, New: mark + first}}, Rules: engine.Rules{Meant: true}})
			case 7:
				_, err = x.Undo(ctx, c, engine.RestoreOptions{})
			}
			now := disk()
			switch {
			case err != nil || failing:
				if err == nil && what != 7 {
					t.Fatalf("seed %d, step %d: a client that failed was passed by", seed, step)
				}
				if !maps.Equal(now, was) || !maps.Equal(d.texts, texts) {
					t.Fatalf("seed %d, step %d: %v, and all the same %q became %q, %q %q", seed, step, err, was, now, texts, d.texts)
				}
			case what == 7: // of some path: in one of the two places
				if !maps.Equal(now, was) && !maps.Equal(d.texts, texts) {
					t.Fatalf("seed %d, step %d: undone in both: %q became %q, %q %q", seed, step, was, now, texts, d.texts)
				}
				for _, name := range names {
					if _, held := texts[x.ws+"/"+name]; held && now[name] != was[name] {
						t.Fatalf("seed %d, step %d: the disk under %s was undone", seed, step, name)
					}
				}
			case held:
				if texts[path] = want; !maps.Equal(now, was) || !maps.Equal(d.texts, texts) {
					t.Fatalf("seed %d, step %d: %d of %s: %q became %q, editor %q", seed, step, what, name, was, now, d.texts)
				}
			default:
				if was[name] = want; !maps.Equal(now, was) || !maps.Equal(d.texts, texts) {
					t.Fatalf("seed %d, step %d: %d of %s: disk %q, want %q, editor %q", seed, step, what, name, now, was, d.texts)
				}
			}
		}
		if left, err := x.HalfWay(ctx); left != nil || err != nil {
			t.Errorf("seed %d: still half-way: %v", seed, left)
		}
	}
}

// A call that may not reach a path has none of its text, and its editor is not asked for it.
func TestOverlayWithinAScope(t *testing.T) {
	x, d := edited(t, nil)
	c := x.through(d)
	c.Scope = &engine.Scope{Readable: []string{x.ws + "/d"}}
	for _, name := range []string{"held", "new", "d/held"} {
		_, serr := x.Stat(ctx, c, x.ws+"/"+name, true)
		got, err := x.seen(c, x.ws+"/"+name)
		if name == "d/held" && (err != nil || serr != nil || got != "buffer\n") || name != "d/held" && (code(err) != engine.CodePathDenied || code(serr) != engine.CodePathDenied) {
			t.Errorf("%s: %q %v %v", name, got, err, serr)
		}
		_, err = x.Append(ctx, c, x.ws+"/"+name, []byte("x"), engine.Rules{})
		if code(err) != engine.CodePathDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if slices.ContainsFunc(d.asked, func(p string) bool { return p != x.ws+"/d/held" }) || d.texts[x.ws+"/d/held"] != "buffer\n" {
		t.Errorf("asked for %q; %q", d.asked, d.texts)
	}
}

// Links and detours lead to the one true name that the editor knows.
func TestOverlayByItsTrueName(t *testing.T) {
	x, d := edited(t, nil)
	must(t, os.Symlink("d", x.ws+"/to"))
	must(t, os.Symlink("held", x.ws+"/as"))
	for _, name := range []string{"to/held", "d/../d/./held", "as", "to/../new"} {
		if got, err := x.seen(x.through(d), x.ws+"/"+name); err != nil || got != "buffer\n" {
			t.Errorf("%s: %q %v", name, got, err)
		}
		if e, err := x.Stat(ctx, x.through(d), x.ws+"/"+name, true); err != nil || !e.Unsaved {
			t.Errorf("%s: %+v %v", name, e, err)
		}
	}
	if e, err := x.Stat(ctx, x.through(d), x.ws+"/as", false); err != nil || e.Unsaved || e.Target != "held" {
		t.Errorf("%+v %v", e, err)
	}
	if _, err := x.Append(ctx, x.through(d), x.ws+"/to/held", []byte("x"), engine.Rules{}); err != nil || d.texts[x.ws+"/d/held"] != "buffer\nx" {
		t.Errorf("%q %v", d.texts, err)
	}
	if _, err := x.Append(ctx, x.through(d), x.ws+"/as", []byte("x"), engine.Rules{}); code(err) != engine.CodeSymlinkRefused {
		t.Errorf("%v", err)
	}
}
