package guardfs

import ("testing";"os";"context")

type yes struct{}
func (yes) Judge(Object, Access) error { return nil }
func (yes) Dir(string) DirVerdict { return DirVerdict{All:true} }

func TestSmoke(t *testing.T) {
	for _, base := range []string{t.TempDir(), shm(t)} {
	f, err := New(Options{Judge: yes{}}); if err != nil { t.Fatal(err) }
	t.Log(f.Containment())
	p := base+"/f"
	for i := range 2 {
		pl, err := f.Place(p); if err != nil { t.Fatal(err) }
		b, err := pl.Load(-1); if err != nil { t.Fatal(err) }
		st, err := pl.Stage(context.Background(), []byte{byte('a'+i)}, StageOptions{Like:b, Sync:true}); if err != nil { t.Fatal(err) }
		pub, err := st.Commit(context.Background(), b); if err != nil { t.Fatal(err) }
		t.Logf("%+v", pub)
		st.Discard(); pl.Close()
	}
	h, err := f.Resolve(p, Read); if err != nil { t.Fatal(err) }
	ff, err := h.Open(); if err != nil { t.Fatal(err) }
	var buf [10]byte
	n, err := ff.ReadAt(buf[:], 0)
	t.Log(string(buf[:n]), err, h.Object())
	h.Close(); ff.Close()
	es, _ := os.ReadDir(base); t.Log(es)
	_, err = f.Resolve("/proc/self/root/etc/passwd", Read); t.Log(err)
	_, err = f.Resolve("/proc/self/nothing", Read); t.Log(err)
	_, err = f.Resolve("/dev/stdin", Read); t.Log(err)
	}
}
func shm(t *testing.T) string { d, err := os.MkdirTemp("/dev/shm","g"); if err != nil { t.Skip() }; t.Cleanup(func(){os.RemoveAll(d)}); return d }
