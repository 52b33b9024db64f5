package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"moltisfs/config"
	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/engine"
	"moltisfs/internal/guardfs"
)

// window reads what look takes of a file.
func (x *tree) window(path string, look func(*engine.Source) ([]byte, *engine.ReadRecord, error)) (part string, err error) {
	err = x.call("s").Read(ctx, path, func(_ context.Context, s *engine.Source) (*engine.ReadRecord, error) {
		b, sight, err := look(s)
		part = string(b)
		return sight, err
	})
	return part, err
}

func TestReadLines(t *testing.T) {
	for _, content := range []string{"", "\n", "\n\n", "a", "a\n", "a\nb", "a\r\nb\r\n\r\n", "a\rb\nc", strings.Repeat("x", 200_000) + "\ny\n"} {
		for _, tracked := range []bool{false, true} {
			x := grow(t, func(fs *config.FS) { fs.TrackReads = tracked })
			path := x.write("f", content)
			all := strings.SplitAfter(content, "\n")
			if all[len(all)-1] == "" {
				all = all[:len(all)-1]
			}
			for first := 1; first <= len(all)+2; first++ {
				for n := -1; n <= len(all)+1; n++ {
					want := all[min(first-1, len(all)):]
					if n >= 0 {
						want = want[:min(n, len(want))]
					}
					var sight *engine.ReadRecord
					got, err := x.window(path, func(s *engine.Source) (b []byte, _ *engine.ReadRecord, err error) {
						b, sight, err = s.Lines(ctx, first, n, 1<<20)
						return b, sight, err
					})
					if err != nil || got != strings.Join(want, "") {
						t.Fatalf("%.20q from %d, %d lines: %.20q %v", content, first, n, got, err)
					}
					if sight == nil && tracked {
						t.Fatal("nothing is said of what was seen")
					}
					if tracked && (sight.Lines != len(all) || sight.Whole != (len(got) == len(content)) || sight.Hash != engine.HashOf([]byte(content))) {
						t.Errorf("%.20q from %d, %d lines: %+v", content, first, n, sight)
					}
					if tracked && len(want) > 0 && (len(sight.Ranges) != 1 || sight.Ranges[0].First != first || sight.Ranges[0].Last != first+len(want)-1) {
						t.Errorf("%.20q from %d, %d lines: %+v", content, first, n, sight.Ranges)
					}
				}
			}
		}
	}
}

func TestReadBytes(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.TrackReads = true })
	small, large := "0123456789", strings.Repeat("0123456789", engine.InMemory/5)
	for _, content := range []string{"", small, large} {
		path := x.write("f", content)
		size := int64(len(content))
		for _, c := range []struct{ off, n, most int64 }{
			{0, -1, size}, {0, size, size}, {0, size + 1, size}, {3, 4, 4}, {size, 1, 1}, {size + 9, -1, 0}, {max(size-1, 0), 9, 9}, {0, 0, 0},
		} {
			from := min(c.off, size)
			want := content[from:]
			if c.n >= 0 {
				want = want[:min(c.n, int64(len(want)))]
			}
			got, err := x.window(path, func(s *engine.Source) ([]byte, *engine.ReadRecord, error) {
				b, sight, err := s.Bytes(ctx, c.off, c.n, c.most)
				if err == nil && (sight.Hash != engine.HashOf([]byte(content)) || sight.Whole != (len(b) == len(content)) || s.Info.Size != size) {
					t.Errorf("%d bytes, %+v: %+v", size, c, sight)
				}
				return b, sight, err
			})
			if err != nil || got != want {
				t.Errorf("%d bytes, %+v: %d bytes, %v", size, c, len(got), err)
			}
		}
	}
	for _, c := range []struct {
		look func(*engine.Source) ([]byte, *engine.ReadRecord, error)
		want engine.Code
	}{
		{func(s *engine.Source) ([]byte, *engine.ReadRecord, error) { return s.Bytes(ctx, -1, 1, 1) }, engine.CodeBadRequest},
		{func(s *engine.Source) ([]byte, *engine.ReadRecord, error) { return s.Bytes(ctx, 0, -1, 1) }, engine.CodeTooLarge},
		{func(s *engine.Source) ([]byte, *engine.ReadRecord, error) { return s.Lines(ctx, 0, 1, 1) }, engine.CodeBadRequest},
		{func(s *engine.Source) ([]byte, *engine.ReadRecord, error) { return s.Lines(ctx, 1, 1, 1) }, engine.CodeTooLarge},
	} {
		if _, err := x.window(x.ws+"/f", c.look); code(err) != c.want {
			t.Errorf("%v", err)
		}
	}
	for path, want := range map[string]engine.Code{"none": engine.CodeNotFound, ".": engine.CodeNotRegularFile, "../data": engine.CodePathDenied} {
		if _, err := x.window(x.ws+"/"+path, nil); code(err) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A window is not the whole file: where files must be read, it may not be overwritten.
func TestWindowIsNoWholeRead(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.TrackReads, fs.MustReadBeforeWrite = true, true })
	path := x.write("f", "one\ntwo\n")
	for i, look := range []func(*engine.Source) ([]byte, *engine.ReadRecord, error){
		func(s *engine.Source) ([]byte, *engine.ReadRecord, error) { return s.Bytes(ctx, 0, 4, 4) },
		func(s *engine.Source) ([]byte, *engine.ReadRecord, error) { return s.Lines(ctx, 1, 1, 9) },
		func(s *engine.Source) ([]byte, *engine.ReadRecord, error) { return s.Lines(ctx, 1, -1, 9) },
	} {
		must(t, errOf(x.window(path, look)))
		_, _, err := x.call("s").Write(ctx, engine.WriteArgs{Path: path, Text: "new\ntext\n"})
		if want := i < 2; engine.PartUnread.In(err) != want || !want && err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	x.has("f", "new\ntext\n")
}

// hashOf is the hash that a window into a large file comes with.
func (x *tree) hashOf(path string) string {
	x.t.Helper()
	var hash string
	must(x.t, errOf(x.window(path, func(s *engine.Source) (_ []byte, _ *engine.ReadRecord, err error) {
		hash, err = s.Hash(ctx)
		return nil, nil, err
	})))
	return hash
}

// The hash of a large file is remembered only where no change can go unnoticed: whatever is done to the
// file, by whoever holds it open, the hash is that of what is there.
func TestRememberedHashIsExact(t *testing.T) {
	x := grow(t, nil)
	content := []byte(strings.Repeat("0123456789", engine.InMemory/5))
	path := x.write("f", string(content))
	right := func(what string) {
		t.Helper()
		now, err := os.ReadFile(path)
		must(t, err)
		for range 2 {
			if got := x.hashOf(path); got != engine.HashOf(now) {
				t.Errorf("%s: an old hash", what)
			}
		}
	}
	right("just written")
	writer, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer writer.Close()
	put := func(b byte) {
		i, _ := os.Stat(path)
		must(t, errOf(writer.WriteAt([]byte{b}, 5)))
		if err := os.Chtimes(path, i.ModTime(), i.ModTime()); err != nil { // whoever hides it
			t.Fatal(err)
		}
	}
	for i := range 20 {
		put(byte(i))
		right("a writer at once")
	}
	if x.Containment() == "best_effort" {
		return
	}
	x.SetClock(func() time.Time { return time.Now().Add(time.Hour) }) // nothing is of this moment any more
	right("open for writing")
	put('x')
	right("changed by whoever had it open")
	writer.Close()
	right("nobody writes")
	stored := x.Sums()
	if writer, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	put('y')
	right("changed after it was remembered")
	t.Logf("%d hashes were remembered", stored)
	must(t, errors.Join(os.Rename(path, path+"2"), os.WriteFile(path, content, 0o600)))
	right("another file of the name")
}

// A file that grows while it is read is as long as it was when it was opened.
func TestReadOfGrowingFile(t *testing.T) {
	x := grow(t, func(fs *config.FS) { fs.TrackReads = true })
	content := strings.Repeat("0123456789\n", engine.InMemory/5)
	path := x.write("log", content)
	got, err := x.window(path, func(s *engine.Source) ([]byte, *engine.ReadRecord, error) {
		x.write("log", content+"more\n")
		part, sight, err := s.Bytes(ctx, 0, 10, 10)
		if err == nil && sight.Hash != engine.HashOf([]byte(content)) {
			err = fmt.Errorf("the hash is that of another content")
		}
		return part, sight, err
	})
	if err != nil || got != "0123456789" {
		t.Errorf("%q %v", got, err)
	}
}

// A hash is streamed: there is no size above which it fails, and it ends with its call.
func TestHashOfALargeFile(t *testing.T) {
	x := grow(t, nil)
	path, size := x.write("f", ""), int64(257<<20)
	must(t, os.Truncate(path, size))
	sum := sha256.New()
	for zeros := make([]byte, 1<<20); size > 0; size -= int64(len(zeros)) {
		sum.Write(zeros)
	}
	if got := x.hashOf(path); got != hex.EncodeToString(sum.Sum(nil)) {
		t.Errorf("%s", got)
	}
	must(t, os.Truncate(path, 256<<20)) // no hash that is remembered
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := x.window(path, func(s *engine.Source) (_ []byte, _ *engine.ReadRecord, err error) {
		_, err = s.Hash(ended)
		return nil, nil, err
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestStat(t *testing.T) {
	x := grow(t, nil)
	was := time.Now().Add(-time.Minute)
	file := x.write("d/f", "four")
	for _, err := range []error{
		os.Chmod(file, 0o440), os.Chtimes(file, was, was), os.Symlink("d/f", x.ws+"/l"), os.Symlink("none", x.ws+"/dangling"),
		os.Symlink("d", x.ws+"/dl"), os.Symlink("loop", x.ws+"/loop"), os.Symlink(x.ws+"/../data", x.ws+"/out"),
		os.WriteFile(x.ws+"/.env", nil, 0o600), os.Symlink(".env", x.ws+"/env"),
	} {
		must(t, err)
	}
	e := under(t, func(fs *config.FS) { fs.AllowPaths, fs.DenyPaths = []string{x.ws + "/**"}, []string{"**/.env"} })
	for _, c := range []struct {
		path   string
		follow bool
		kind   guardfs.Kind
		want   engine.Code
		to     string // where it is
	}{
		{"d/f", true, guardfs.KindFile, "", "d/f"},
		{"d/f", false, guardfs.KindFile, "", "d/f"},
		{"d", false, guardfs.KindDir, "", "d"},
		{"", false, guardfs.KindDir, "", ""},
		{"d/", false, guardfs.KindDir, "", "d"},
		{"d/..", false, guardfs.KindDir, "", ""},
		{"dl/f", false, guardfs.KindFile, "", "d/f"},
		{"dl/", false, guardfs.KindDir, "", "d"},
		{"dl", false, guardfs.KindSymlink, "", "dl"},
		{"l", false, guardfs.KindSymlink, "", "l"},
		{"l", true, guardfs.KindFile, "", "d/f"},
		{"dangling", false, guardfs.KindSymlink, "", "dangling"},
		{"dangling", true, 0, engine.CodeNotFound, ""},
		{"loop", false, guardfs.KindSymlink, "", "loop"},
		{"loop", true, 0, engine.CodeNotFound, ""},
		{"out", false, guardfs.KindSymlink, "", "out"},
		{"out", true, 0, engine.CodePathDenied, ""},
		{"env", false, guardfs.KindSymlink, "", "env"},
		{"env", true, 0, engine.CodePathDenied, ""},
		{".env", false, 0, engine.CodePathDenied, ""},
		{"none/.env", false, 0, engine.CodePathDenied, ""},
		{"none", false, 0, engine.CodeNotFound, ""},
		{"none/none", false, 0, engine.CodeNotFound, ""},
		{"d/f/g", false, 0, engine.CodeNotFound, ""},
		{"../data", false, 0, engine.CodePathDenied, ""},
		{"../none", false, 0, engine.CodePathDenied, ""},
		{"nul\x00", false, 0, engine.CodeBadRequest, ""},
		{strings.Repeat("n", 300), false, 0, engine.CodeBadRequest, ""},
	} {
		t.Run(fmt.Sprintf("%.20q %v", c.path, c.follow), func(t *testing.T) {
			path := x.ws
			if c.path != "" {
				path += "/" + c.path
			}
			var i engine.Entry
			err := through(e, func(ctx context.Context, call *engine.Call) (err error) {
				i, err = call.Stat(ctx, path, c.follow)
				return err
			})
			if code(err) != c.want || i.Kind != c.kind {
				t.Fatalf("%v %s: %v", i, code(err), err)
			}
			if err == nil && i.Path != strings.TrimSuffix(x.ws+"/"+c.to, "/") {
				t.Errorf("%s", i.Path)
			}
			if c.kind == guardfs.KindFile && (i.Size != 4 || i.Mode != 0o440 || !i.ModTime.Equal(was)) {
				t.Errorf("%+v", i)
			}
			if text, _ := os.Readlink(path); c.kind == guardfs.KindSymlink && (i.Target != text || text == "") {
				t.Errorf("%q, and it is %q", i.Target, text)
			}
		})
	}
	if i, err := x.call("s").Stat(ctx, file, true); err != nil || x.Containment() != "best_effort" && !i.AccessTime.Equal(was) {
		t.Errorf("%v %v", i.AccessTime, err)
	}
	if _, err := x.call("s").Stat(ctx, "relative", true); code(err) != engine.CodeBadRequest {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	x := grow(t, nil)
	for _, name := range []string{"b", ".hidden", "d/f", ".env", "way/allowed/f", "way/shut/f", "shut/f"} {
		x.write(name, name)
	}
	must(t, errors.Join(os.Symlink("d", x.ws+"/link"), os.Symlink("none", x.ws+"/dangling"), os.Mkdir(x.ws+"/empty", 0o700)))
	open := under(t, func(fs *config.FS) {
		fs.AllowPaths, fs.DenyPaths = []string{x.ws + "/**"}, []string{"**/.env", x.ws + "/shut"}
	})
	narrow := under(t, func(fs *config.FS) { fs.AllowPaths = []string{x.ws + "/b", x.ws + "/way/al*/**"} })
	for _, c := range []struct {
		e      *engine.Engine
		path   string
		want   string
		denied int
		code   engine.Code
	}{
		{open, "", ".hidden b d dangling empty link way", 2, ""},
		{open, "/d", "f", 0, ""},
		{open, "/link", "f", 0, ""},
		{open, "/empty", "", 0, ""},
		{open, "/b", "", 0, engine.CodeNotFound},
		{open, "/none", "", 0, engine.CodeNotFound},
		{open, "/shut", "", 0, engine.CodePathDenied},
		{open, "/..", "ws", 1, ""}, // leads to it, and shows no more
		{narrow, "", "b way", 7, ""},
		{narrow, "/way", "allowed", 1, ""},
		{narrow, "/d", "", 0, engine.CodePathDenied},
	} {
		var l *engine.Listing
		err := through(c.e, func(ctx context.Context, call *engine.Call) (err error) {
			l, err = call.List(ctx, x.ws+c.path)
			return err
		})
		if code(err) != c.code {
			t.Errorf("%q: %v", c.path, err)
		}
		if err != nil {
			continue
		}
		var names []string
		for _, i := range l.Entries {
			names = append(names, strings.TrimPrefix(i.Path, l.Path+"/"))
			if is, err := os.Lstat(i.Path); err != nil || is.Mode().Perm() != i.Mode.Perm() || is.Mode().IsRegular() && is.Size() != i.Size {
				t.Errorf("%+v, and it is %v %v", i, is, err)
			}
		}
		if got := strings.Join(names, " "); got != c.want || l.Denied != c.denied {
			t.Errorf("%q: %q and %d denied; want %q and %d", c.path, got, l.Denied, c.want, c.denied)
		}
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := x.call("s").List(done, x.ws); code(err) != engine.CodeDeadline {
		t.Error(err)
	}
}

func TestSearchIsOneCall(t *testing.T) {
	x := grow(t, nil)
	x.write("a.go", "needle\n")
	x.write("d/b.txt", "hay\nneedle\n")
	m, err := match.Compile("needle", match.Options{})
	must(t, err)
	r, err := x.call("s").Search(ctx, x.ws, grep.Query{Matcher: m, Mode: grep.Content}, false)
	if err != nil || len(r.Rows) != 2 {
		t.Errorf("%+v %v", r, err)
	}
	f, err := x.call("s").Files(ctx, x.ws, grep.GlobQuery{Pattern: "*.txt"})
	if err != nil || len(f.Files) != 1 {
		t.Errorf("%+v %v", f, err)
	}
	_, bad := x.call("s").Search(ctx, x.ws, grep.Query{Matcher: m, Glob: []string{"[b-a"}}, false)
	_, kind := x.call("s").Search(ctx, x.ws, grep.Query{Matcher: m, Type: []string{"none"}}, false)
	_, file := x.call("s").Files(ctx, x.ws+"/a.go", grep.GlobQuery{})
	_, none := x.call("s").Search(ctx, x.ws+"/none", grep.Query{Matcher: m}, false)
	for what, err := range map[engine.Cause]error{engine.BadGlob: bad, engine.NoFileType: kind, engine.NotADirectory: file, engine.Absent: none} {
		if !what.In(err) {
			t.Errorf("%s: %v", what.Name, err)
		}
	}
}
