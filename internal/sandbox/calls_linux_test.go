//go:build !rooted

package sandbox

import (
	"os"
	"testing"

	"moltisfs/internal/guardfs"
)

type anything struct{}

func (anything) Judge(guardfs.Object, guardfs.Access) error { return nil }
func (anything) Dir(string, ...string) guardfs.DirVerdict   { return guardfs.DirVerdict{All: true} }

func over(t testing.TB, s *Session) *guardfs.FS {
	t.Helper()
	f, err := guardfs.New(guardfs.Options{Judge: anything{}, Calls: s.Calls()})
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

func TestReadThroughAWorker(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/f", []byte("hello"), 0o600))
	f := over(t, begin(t, dir))
	h, err := f.Resolve(dir+"/f", guardfs.Read)
	must(t, err)
	defer h.Close()
	file, err := h.Open()
	must(t, err)
	defer file.Close()
	p := make([]byte, 10)
	n, err := file.ReadAt(p, 0)
	if string(p[:n]) != "hello" {
		t.Error(n, err)
	}
}
