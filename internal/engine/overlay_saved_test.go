package engine_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"moltisfs/config"
	"moltisfs/internal/edit"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// A saver is an editor that saves what it is given, as Zed and VS Code do: it shows a text with LF and without a
// mark, nothing where no file is, and keeps line ends, mark and encoding of the file.
type saver struct {
	final  bool // it ends a text with a line break at saving
	stores int
}

var bom = []byte("\xef\xbb\xbf")

func latin(text string) (raw []byte) {
	for _, r := range text {
		raw = append(raw, byte(r))
	}
	return raw
}

func (s *saver) Load(_ context.Context, path string) (string, bool, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", true, nil
	} else if err != nil || bytes.IndexByte(raw, 0) >= 0 {
		return "", false, errors.New("that is no text")
	}
	text := string(bytes.TrimPrefix(raw, bom))
	if !utf8.ValidString(text) {
		var b strings.Builder
		for _, c := range raw {
			b.WriteRune(rune(c))
		}
		text = b.String()
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), true, nil
}

func (s *saver) Store(_ context.Context, path, _, text string) error {
	s.stores++
	was, _ := os.ReadFile(path)
	if s.final && text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if bytes.Contains(was, []byte("\r\n")) {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	raw := []byte(text)
	if !utf8.Valid(was) {
		raw = latin(text)
	} else if bytes.HasPrefix(was, bom) {
		raw = append(bytes.Clone(bom), raw...)
	}
	return os.WriteFile(path, raw, 0o600)
}

// What the client saved is undone on the disk to the very bytes that were there, with the client and without it.
func TestOverlaySavedIsUndoneToTheByte(t *testing.T) {
	word := strings.Repeat("Größere Übungen für Leute, die Wörter mögen.\n", 9)
	for name, was := range map[string]string{
		"lf": "one\ntwo\n", "crlf": "one\r\ntwo\r\n", "mark": "\xef\xbb\xbfone\n", "mark and crlf": "\xef\xbb\xbfone\r\ntwo\r\n",
		"latin-1": string(latin(word)), "no end": "one\r\ntwo", "empty": "", "mixed": "one\r\ntwo\nthree\r\n", "cr": "a\rb\n",
	} {
		for _, final := range []bool{false, true} {
			for _, client := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					x := grow(t, func(fs *config.FS) { fs.TrackReads, fs.MustReadBeforeWrite = true, true })
					x.write("f", was)
					s, path := &saver{final: final}, x.ws+"/f"
					c := x.through(s)
					if _, err := x.seen(c, path); err != nil {
						t.Fatal(err)
					}
					if _, _, err := x.Write(ctx, c, engine.WriteArgs{Path: path, Text: "eins\nzwei", Rules: engine.Rules{Meant: true}}); err != nil || s.stores != 1 {
						t.Fatal(err, s.stores)
					}
					after, _ := os.ReadFile(path)
					if !client {
						c = x.call("s")
					}
					if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); err != nil {
						t.Fatal(err)
					}
					x.reads("f", was)
					if _, err := x.Redo(ctx, c, engine.RestoreOptions{}); err != nil {
						t.Fatal(err)
					}
					if got, _ := os.ReadFile(path); !final && name != "mixed" && !bytes.Equal(got, after) {
						t.Errorf("redone %q, was %q", got, after)
					}
					if s.stores != 1 {
						t.Error("a restore of what is saved went to the client")
					}
				})
			}
		}
	}
}

// Each change that the client itself saved is taken back, one after the other, and all of a turn at once.
func TestOverlaySavedManyTimes(t *testing.T) {
	for _, client := range []bool{false, true} {
		for name, was := range map[string]string{"crlf": "one\r\ntwo\r\n", "mark": "\xef\xbb\xbfone\n"} {
			x := grow(t, nil)
			x.write("f", was)
			x.write("g", was)
			c := x.through(&saver{})
			c.Turn = "t"
			for _, text := range []string{"2\n", "3\n\n", "", "4\n"} {
				for _, name := range []string{"/f", "/g"} {
					if _, _, err := x.Write(ctx, c, engine.WriteArgs{Path: x.ws + name, Text: text, Rules: engine.Rules{Meant: true}}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !client {
				c.Overlay = nil
			}
			if _, err := x.Restore(ctx, c, rewindTo("t"), engine.RestoreOptions{}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			x.reads("f", was)
			x.reads("g", was)
			for range 9 { // the rewind, and the eight
				if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			x.reads("f", was)
			x.reads("g", was)
		}
	}
}

// Saved text is no unsaved text: each change that can't be made in the client is made on the disk where it has the
// same as the client, and refused, with nothing done, where the client has another.
func TestOverlaySavedGoesToTheDisk(t *testing.T) {
	removal := func(ts []*engine.Target) error {
		for _, t := range ts {
			t.After = engine.After{Kind: guardfs.KindAbsent}
		}
		return nil
	}
	for what, change := range map[string]func(x *tree, c *engine.Call, path string) error{
		"delete": func(x *tree, c *engine.Call, path string) error {
			return ignore(x.Delete(ctx, c, path, engine.DeleteOptions{}))
		},
		"delete the directory": func(x *tree, c *engine.Call, path string) error {
			return ignore(x.Delete(ctx, c, filepath.Dir(path), engine.DeleteOptions{Recursive: true}))
		},
		"move": func(x *tree, c *engine.Call, path string) error {
			return ignore(x.Move(ctx, c, engine.MoveArgs{From: path, To: x.ws + "/to"}))
		},
		"move over": func(x *tree, c *engine.Call, path string) error {
			return ignore(x.Move(ctx, c, engine.MoveArgs{From: x.ws + "/plain", To: path, Overwrite: true}))
		},
		"move the directory": func(x *tree, c *engine.Call, path string) error {
			return ignore(x.Move(ctx, c, engine.MoveArgs{From: filepath.Dir(path), To: x.ws + "/e"}))
		},
		"copy": func(x *tree, c *engine.Call, path string) error {
			was, _ := os.ReadFile(path)
			err := ignore(x.Copy(ctx, c, engine.CopyArgs{From: filepath.Dir(path), To: x.ws + "/copy", Recursive: true}))
			if got, _ := os.ReadFile(x.ws + "/copy/f"); string(got) != string(was) {
				err = errors.New("not the same bytes")
			}
			return err
		},
		"remove": func(x *tree, c *engine.Call, path string) error {
			return ignore(x.ChangeFiles(ctx, c, engine.Files{Paths: []string{path}, Next: removal}))
		},
		"several": func(x *tree, c *engine.Call, _ string) error {
			return ignore(x.ChangeFiles(ctx, c, x.becomes("x\n", "d/f", "plain", "new")))
		},
		"bytes": func(x *tree, c *engine.Call, path string) error {
			return ignore(x.Append(ctx, c, path, []byte("\xff"), engine.Rules{}))
		},
		"metadata": func(x *tree, c *engine.Call, path string) error {
			return ignore(x.ChangeFiles(ctx, c, engine.Files{Paths: []string{path}, Next: func(ts []*engine.Target) error {
				ts[0].After = engine.After{Kind: guardfs.KindFile, Content: []byte("x"), Meta: &guardfs.Metadata{Mode: 0o700, UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}}
				return nil
			}}))
		},
	} {
		for form, text := range map[string]string{"crlf": "a\r\nb\r\n", "mark": "\xef\xbb\xbfa\n", "lf": "a\n", "empty": ""} {
			for _, typed := range []bool{false, true} {
				t.Run(what+" "+form, func(t *testing.T) {
					t.Parallel()
					x := grow(t, func(fs *config.FS) { fs.TrackReads, fs.MustReadBeforeWrite = true, true })
					x.write("d/f", text)
					x.write("d/bin", "\x00\x01")
					x.write("plain", "p\n")
					path, c := x.ws+"/d/f", x.call("s")
					s := &saver{}
					d := &editor{}
					c.Overlay = d
					sees := true
					d.load = func(ctx context.Context, path string) (string, bool, error) {
						text, held, err := s.Load(ctx, path)
						if strings.HasSuffix(path, "bin") { // one that answers for all
							return "", false, nil
						}
						if typed && !sees && strings.HasSuffix(path, "/d/f") {
							text += "typed\n"
						}
						return text, held, err
					}
					d.store = func(context.Context, string, string, string) error { t.Error("it went to the client"); return nil }
					for _, name := range []string{"/d/f", "/plain", "/d/bin"} {
						if _, err := x.seen(c, x.ws+name); err != nil {
							t.Fatal(err)
						}
					}
					sees = false
					was := x.looks()
					err := change(x, c, path)
					if changed := x.looks() != was; changed == (typed && what != "copy") || (err != nil) != typed {
						t.Fatalf("changed %v: %v", changed, err)
					}
					if typed {
						return
					}
					if what == "bytes" { // which the client can't read
						c.Overlay = nil
					}
					if _, err := x.Undo(ctx, c, engine.RestoreOptions{}); err != nil || x.looks() != was && what != "delete the directory" && what != "move over" {
						t.Errorf("undone: %v\n%s\nwas\n%s", err, x.looks(), was)
					}
				})
			}
		}
	}
}

// Nothing was there, so nothing had to be read, whatever the client says of it.
func TestOverlayOfNothing(t *testing.T) {
	for what, load := range map[string]func(context.Context, string) (string, bool, error){
		"nothing is held": func(context.Context, string) (string, bool, error) { return "", false, nil },
		"no text":         (&saver{}).Load,
	} {
		for _, name := range []string{"new", "x/y/new"} {
			x := grow(t, func(fs *config.FS) { fs.TrackReads, fs.MustReadBeforeWrite = true, true })
			d := &editor{load: load, store: (&saver{}).Store}
			for _, text := range []string{"one\n", "two\n"} { // its own change counts as seen
				if _, _, err := x.Write(ctx, x.through(d), engine.WriteArgs{Path: x.ws + "/" + name, Text: text, Rules: engine.Rules{Parents: true}}); err != nil {
					t.Errorf("%s, %s: %v", what, name, err)
				}
				x.reads(name, text)
			}
			_, _, err := x.Edit(ctx, x.through(d), engine.EditArgs{Path: x.ws + "/" + name, Edits: []edit.Edit{{Old: "two", New: "3"}}})
			if err != nil {
				t.Errorf("%s, %s: %v", what, name, err)
			}
			d.load = func(context.Context, string) (string, bool, error) { return "typed\n", true, nil }
			if _, _, err := x.Write(ctx, x.through(d), engine.WriteArgs{Path: x.ws + "/z/other", Text: "x\n", Rules: engine.Rules{Parents: true}}); !engine.UnsavedText.In(err) {
				t.Errorf("%s: over text that nobody saved: %v", what, err)
			}
		}
	}
}
