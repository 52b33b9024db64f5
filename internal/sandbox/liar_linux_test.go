//go:build !rooted

package sandbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"moltisfs/grep"
	"moltisfs/grep/match"
	"moltisfs/internal/guardfs"
	"moltisfs/internal/policy"
)

// lying is a session whose worker, in this process, says what spoil makes of its replies.
func lying(t testing.TB, root string, hang time.Duration, spoil func(n int, frame []byte) []byte) *Session {
	t.Helper()
	pair := func() (a int, b *os.File) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		must(t, err)
		return fds[0], os.NewFile(uintptr(fds[1]), "pair")
	}
	before := openFiles(t)
	ours, client := pair()
	fd, server := pair()
	theirs := os.NewFile(uintptr(fd), "pair")
	end := make(chan struct{}, 3)
	go func() { // requests
		f, out := newFrames(client), sink{w: server}
		for {
			id, body, err := f.next()
			if err != nil || out.send(id, func(b []byte) []byte { return append(b, body...) }) != nil {
				break
			}
		}
		server.Close()
		end <- struct{}{}
	}()
	go func() { // replies
		f, n := newFrames(server), 0
		for {
			id, body, err := f.next()
			if err != nil {
				break
			}
			frame := framed(id, body)
			if n > 0 { // the hello is another matter
				frame = spoil(n, frame)
			}
			n++
			if _, err := client.Write(frame); err != nil {
				break
			}
		}
		client.Close()
		end <- struct{}{}
	}()
	go func() {
		w := &worker{out: sink{w: theirs}, slow: make(chan struct{}, mostSlow)}
		w.run(Work{Root: root, Build: "test"}, theirs)
		for range mostSlow { // its searches have ended
			w.slow <- struct{}{}
		}
		theirs.Close()
		end <- struct{}{}
	}()
	p := newProcess(1, ours, hang)
	p.kill = func() {}
	go p.watch()
	s := &Session{o: Options{Root: root, Build: "test", Starts: -1}, now: p, turn: 1}
	r, err := p.ask(&request{op: opHello, data: []byte(`{"Protocol":4}`)}, nil, nil)
	if err == nil {
		err = p.greeted(&r, s.o)
	}
	if errors.Is(err, guardfs.ErrUnavailable) && hang < time.Second {
		t.Skip("SKIPPED: the machine has no time for us: ", err)
	}
	must(t, err)
	s.first = p.hello
	t.Cleanup(func() {
		p.fail(errClosed)
		for range 3 {
			<-end
		}
		for fd, name := range openFiles(t) { // what a worker holds is closed by its end, as a rule
			if _, ok := before[fd]; !ok && strings.HasPrefix(name, "/") {
				unix.Close(fd)
			}
		}
	})
	return s
}

// openFiles are the descriptors of this process, with what they are.
func openFiles(t testing.TB) map[int]string {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	all := map[int]string{}
	for _, e := range entries {
		fd, _ := strconv.Atoi(e.Name())
		if all[fd], err = os.Readlink("/proc/self/fd/" + e.Name()); err != nil {
			delete(all, fd)
		}
	}
	return all
}

// everything does all that the engine does with a tree, and tells the names that it was given.
func everything(ctx context.Context, f *guardfs.FS, s *Session, root string) (names []string) {
	for _, name := range []string{root, root + "/f", root + "/l", root + "/d/g", root + "/none"} {
		if o, target, err := f.Lstat(name); err == nil {
			if names = append(names, o.True); strings.IndexByte(target, 0) >= 0 {
				names = append(names, target)
			}
		}
		h, err := f.Resolve(name, guardfs.Read)
		if err != nil {
			continue
		}
		if file, err := h.Open(); err == nil {
			file.ReadAt(make([]byte, 100), 0)
			file.Read(make([]byte, 10))
			file.Close()
		}
		if d, err := h.Dir(); err == nil {
			entries, _, _ := d.List(nil)
			for _, e := range entries {
				names = append(names, root+"/"+e.Name)
				d.ReadSmall(e.Name, 1000)
				d.Readlink(e.Name)
			}
			if below, err := d.OpenDir("d", false); err == nil {
				below.Parent()
				below.Close()
			}
			m, _ := match.Compile("x", match.Options{})
			w := grep.Walk{Dir: grep.Guarded(d), Elsewhere: calls{s}.Elsewhere(policy.Rules{}, anything{})}
			hit := func(name string, counts ...int) {
				if names = append(names, d.True()+"/"+strings.TrimPrefix(name, d.True()+"/")); slices.Min(counts) < 0 {
					names = append(names, "less than none")
				}
			}
			each := func(h grep.FileHit, rows []grep.Row) {
				hit(h.Path, int(h.Size), h.Lines, h.Matches)
				for _, r := range rows {
					hit(h.Path, r.Line, r.Column, r.From, r.Bytes)
				}
			}
			if r, err := grep.Search(ctx, w, grep.Query{Matcher: m, Mode: grep.Content}); err == nil {
				for _, r := range r.Rows {
					hit(r.Path, r.Line, r.Column, r.From, r.Bytes)
				}
				for _, h := range r.Files {
					each(h, nil)
				}
			}
			q := grep.Query{Matcher: m, Mode: grep.Content, Found: each, Named: func(name string) { hit(name, 0) }}
			grep.Search(ctx, w, q) //nolint:errcheck // a liar's
			if r, err := grep.Files(ctx, w, grep.GlobQuery{Pattern: "**"}); err == nil {
				for _, h := range r.Files {
					each(h, nil)
				}
			}
			d.Close()
		}
		h.Close()
	}
	replaced(f, "a", root+"/f", "changed")
	if p, err := f.EntryLink(root + "/made"); err == nil {
		p.Mkdir(0o700)
		p.Close()
	}
	return names
}

// invents puts a hit into the answer of a search: of a file that may be none, n times over.
func invents(frame []byte, name string, n int, where byte) []byte {
	var r reply
	f := &found{}
	if !r.parse(frame[8:]) || gob.NewDecoder(bytes.NewReader(r.data)).Decode(f) != nil {
		return frame
	}
	h, row := grep.FileHit{Path: name, Size: int64(n), Lines: n}, grep.Row{Path: name, Line: n, Bytes: n}
	switch where % 6 {
	case 0:
		f.Named = append(append(f.Named, name...), 0)
	case 1:
		f.Each = append(f.Each, hit{h, []grep.Row{row}})
	case 2:
		f.Each = append(f.Each, hit{grep.FileHit{Path: "f"}, []grep.Row{row}})
	case 3:
		f.Come = int64(n)
	default:
		if f.Result != nil {
			f.Result.Rows, f.Result.Files = append(f.Result.Rows, row), append(f.Result.Files, h)
			f.Result.Totals.Lines = n
		}
		if f.Files != nil {
			f.Files.Files, f.Files.Total = append(f.Files.Files, h), n
		}
		if where%6 == 5 {
			f.Result, f.Files = nil, nil
		}
	}
	var b bytes.Buffer
	if gob.NewEncoder(&b).Encode(f) != nil || b.Len() > chunk {
		return frame
	}
	r.data = b.Bytes()
	return framed(binary.LittleEndian.Uint32(frame[4:]), r.append(nil))
}

// FuzzLiar has a worker whose replies are changed, byte by byte, on their way, and whose searches
// find what somebody made up: nothing panics, nothing waits for ever, and no name comes out that
// could be no name or is of elsewhere, and no count below none.
func FuzzLiar(f *testing.F) {
	f.Add([]byte{}, "", 0, byte(0))
	for i := range 20 {
		f.Add([]byte{byte(2 * i), byte(i), 0xff, byte(i + 1), 9, 1}, "", 0, byte(0))
		f.Add([]byte{byte(i), byte(20 + i), 0x2e ^ byte(i)}, "", 0, byte(0))
	}
	for i, name := range []string{"l", "../x", "/etc/passwd", "d/../../x", "d", "d/g/", ".", "a\x00", "x//y", "f"} {
		for n := range 6 {
			f.Add([]byte{}, name, []int{1, -1, 1 << 60, -1 << 60}[(i+n)%4], byte(n))
		}
	}
	f.Fuzz(func(t *testing.T, lies []byte, made string, count int, where byte) {
		dir, err := os.MkdirTemp("", "liar")
		must(t, err)
		defer os.RemoveAll(dir)
		plant(t, dir, map[string]string{"f": "x\n", "d/g": "xx\n"})
		os.Symlink("d/g", dir+"/l")
		s := lying(t, dir, 300*time.Millisecond, func(n int, frame []byte) []byte {
			if made != "" {
				frame = invents(frame, made, count, where)
			}
			for i := 0; i+2 < len(lies) && i < 60; i += 3 {
				if int(lies[i]) == n {
					frame[int(lies[i+1])%len(frame)] ^= lies[i+2]
				}
			}
			return frame
		})
		g, err := guardfs.New(guardfs.Options{Judge: anything{}, Calls: s.Calls()})
		if err != nil {
			return
		}
		defer g.Close()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		for _, name := range everything(ctx, g, s, dir) {
			base := name[strings.LastIndexByte(name, '/')+1:]
			if strings.IndexByte(name, 0) >= 0 || !strings.HasPrefix(name, "/") || base == ".." || len(name) > 2*maxText ||
				strings.Contains(name, "/../") || strings.HasSuffix(name, "/") && name != "/" || strings.HasSuffix(name, "/.") {
				t.Errorf("a name %q", name)
			}
		}
	})
}

// Each of these is no reply of ours: the worker is ended, and the call with it.
func TestLies(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"f": "x"})
	var given int64 // a descriptor that is open
	change := func(how func(*reply)) func([]byte) []byte {
		return func(b []byte) []byte {
			r := reply{}
			if !r.parse(b[8:]) {
				t.Fatal("not a reply")
			}
			how(&r)
			return framed(binary.LittleEndian.Uint32(b[4:]), r.append(nil))
		}
	}
	for name, lie := range map[string]func([]byte) []byte{
		"too long":                    func(b []byte) []byte { binary.LittleEndian.PutUint32(b, maxFrame+1); return b },
		"too short":                   func([]byte) []byte { return []byte{1, 0, 0, 0, 1} },
		"another request":             func(b []byte) []byte { b[4]++; return b },
		"a name with NUL":             change(func(r *reply) { r.text = "/a\x00b" }),
		"a descriptor that was given": change(func(r *reply) { r.n = given }),
		"cut off":                     func(b []byte) []byte { return framed(binary.LittleEndian.Uint32(b[4:]), b[8:9]) },
		"an errno":                    change(func(r *reply) { r.errno = 4096 }),
	} {
		var on bool
		s := lying(t, dir, 3*time.Second, func(_ int, b []byte) []byte {
			if on {
				return lie(b)
			}
			return b
		})
		f := over(t, s)
		root, err := f.Resolve(dir, guardfs.Read)
		must(t, err)
		for fd := range s.now.known.open {
			given = int64(fd)
		}
		on = true
		if _, err := f.Resolve(dir+"/f", guardfs.Read); !errors.Is(err, guardfs.ErrUnavailable) || !s.now.isDead() {
			t.Errorf("%s: %v", name, err)
		}
		root.Close()
	}
}

// A listing of a directory comes to an end.
func TestEndlessAnswers(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, map[string]string{"f": "x"})
	honest := func(_ int, b []byte) []byte { return b }
	s := lying(t, dir, 3*time.Second, honest)
	c := s.Calls().(calls)
	at, err := c.Openat(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	must(t, err)
	fd, err := c.Reopen(at, unix.O_RDONLY|unix.O_DIRECTORY)
	must(t, err)
	for range 2 { // from its beginning it is another listing
		_, _, o, err := c.known(fd)
		must(t, err)
		if o.pos += endless - 10; o.pos > endless {
			t.Error("what was listed is counted twice")
		}
		if _, err := c.Seek(fd, 0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Getdents(fd, make([]byte, 4096)); n == 0 || err != nil {
			t.Error(n, err)
		}
		if _, err := c.Seek(fd, 0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
	}
	_, _, o, _ := c.known(fd)
	o.pos = endless - 10
	if _, err := c.Getdents(fd, make([]byte, 4096)); !errors.Is(err, guardfs.ErrUnavailable) || !s.now.isDead() {
		t.Error("a listing:", err)
	}
}

func framed(id uint32, body []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(body)+4))
	return append(binary.LittleEndian.AppendUint32(b, id), body...)
}
