package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"moltisfs/internal/engine"
	"moltisfs/internal/run"
)

// hasRun lays a workspace and the upper layer that a program has left over it, as the kernel leaves it: a file is changed, one is new, one is gone,
// a directory is gone, one comes where a file is, a file where a directory is, one gets another mode, two names get one file, and one directory comes
// as a whole.
func (x *tree) hasRun() {
	x.needsTrash()
	for _, name := range []string{"a", "b", "gone", "t/u/f", "turns", "was/dir/f", "mode/f", "l"} {
		x.write(name, name+"\n")
	}
	must(x.t, os.Link(x.ws+"/l", x.ws+"/l2"))
	up := x.data + "/runs/1/" + run.UpperName
	put := func(name, content string) {
		must(x.t, os.MkdirAll(filepath.Dir(up+"/"+name), 0o750))
		must(x.t, os.WriteFile(up+"/"+name, []byte(content), 0o640))
	}
	mark := func(name, is, value string) {
		must(x.t, unix.Setxattr(up+"/"+name, "user.overlay."+is, []byte(value), 0))
	}
	put("a", "changed\n")
	put("new", "new\n")
	put("turns/in/f", "in a directory now\n")
	put("was", "a file now\n")
	put("l", "not linked any more\n")
	put("whole/g", "one file\n")
	must(x.t, os.Link(up+"/whole/g", up+"/whole/h"))
	put("ones", "one file\n")
	must(x.t, os.Link(up+"/ones", up+"/twos"))
	for _, gone := range []string{"gone", "t"} {
		put(gone, "")
		mark(gone, "whiteout", "y")
	}
	mark("turns", "opaque", "y")
	mark("ones", "origin", "")
	must(x.t, os.Mkdir(up+"/mode", 0o700))
	var st unix.Stat_t
	must(x.t, unix.Stat(x.ws, &st))
	must(x.t, os.Chmod(up, os.FileMode(st.Mode&0o777)))
	must(x.t, unix.Stat(x.ws+"/mode", &st))
	must(x.t, os.Chmod(up+"/mode", os.FileMode(st.Mode&0o777)^0o011))
}

// leaves makes of the workspace what the program of hasRun left.
func leaves(ctx context.Context, c *engine.Call, ws string) error {
	u := run.Upper{Root: ws, Dir: filepath.Dir(ws) + "/data/runs/1/" + run.UpperName, User: true, Stamp: time.Now().Add(time.Hour)}
	_, err := c.ApplyRun(ctx, engine.RunArgs{Upper: u, Command: "make"})
	return err
}
