package capability

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"moltisfs/config"
	"moltisfs/internal/approval"
	"moltisfs/internal/dialect"
	"moltisfs/internal/engine"
)

// strange are paths that lead out, or nowhere, by every road that is known; O is a directory that
// nothing allows. open ones lie within.
var strange = []struct {
	path string
	open bool
}{
	{"", false}, {"a.txt", false}, {"./a.txt", false}, {"~", false}, {"~/a", false}, {"$HOME", false},
	{`C:\Windows`, false}, {"file:///etc/passwd", false}, {"R/\x00", false}, {"R/a.txt\x00.md", false},
	{"/etc/passwd", false}, {"R/../O/key", false}, {"R/sub/../../O/key", false},
	{"O/key", false}, {"O", false}, {"O/none", false}, {"R/out/key", false}, {"R/out", false},
	{"R/key", false}, {"R/chain/key", false}, {"R/secret/key", false}, {"R/secret", false},
	{"R/SECRET/key", false}, {"R/sec\u200dret/key", false}, {"R/sub/../secret/key", false}, {"R/todir/key", false}, {"R/tofile", false},
	{"/proc/self/environ", false}, {"/proc/self/root/etc/passwd", false}, {"/proc/self/cwd", false},
	{"/dev/zero", false}, {"/dev/stdin", false}, {"trash:tr-9ZZ/key", false},
	{"/", true}, {"R/./a.txt", true}, {"R//a.txt", true}, {"R/sub/../a.txt", true}, {"R/a.txt/", true},
	{"R/loop", true}, {"R/dangling", true}, {"R/fifo", true}, {"R/" + strings.Repeat("x", 300), true},
	{"R/" + strings.Repeat("d/", 2100) + "x", true}, {"R/new\nline", true}, {"R/\u202egnp.exe", true},
}

// Every strange path through every capability that takes one, in each of its arguments. What lies
// outside is neither told nor changed, and no call hangs or breaks the host. That it lies there to be
// told, the first look is the control of.
func TestEveryPathTimesEveryCapability(t *testing.T) {
	t.Parallel()
	outside, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	r := open(t, func(c *config.Config, h *engine.Host) {
		c.Tools.FS.DenyPaths = []string{c.Tools.FS.WorkspaceRoot + "/secret/**"}
		h.Approver = decides(approval.Approved)
	})
	key := filepath.Join(outside, "key")
	must(t, os.WriteFile(key, []byte("KEY OF O"), 0o600))
	r.write(t, "secret/key", "KEY OF O")
	r.write(t, "sub/x", "x")
	links := map[string]string{"out": outside, "key": key, "chain": "out", "loop": "loop", "todir": "secret", "tofile": "secret/key",
		"dangling": "/nowhere/at/all"}
	must(t, syscall.Mkfifo(filepath.Join(r.root, "fifo"), 0o600))
	look := func() map[string]string {
		out := map[string]string{}
		for _, dir := range []string{outside, filepath.Join(r.root, "secret")} {
			all, err := os.ReadDir(dir)
			must(t, err)
			for _, e := range all {
				b, err := os.ReadFile(filepath.Join(dir, e.Name()))
				must(t, err)
				out[dir+"/"+e.Name()] = string(b)
			}
		}
		return out
	}
	before := look()
	if len(before) != 2 || before[key] != "KEY OF O" {
		t.Fatalf("the control reads %v", before)
	}
	for _, one := range table {
		d := known().find(one.name)
		for _, p := range d.Inputs {
			if p.Type != "FilesystemPath" && d.Name != "filesystem.restore" {
				continue
			}
			for _, s := range strange {
				r.write(t, "a.txt", "a") // what earlier calls took away
				for name, to := range links {
					name = filepath.Join(r.root, name)
					os.Remove(name) //nolint:errcheck // it may be gone, or another file
					must(t, os.Symlink(to, name))
				}
				args := map[string]any{}
				for _, other := range d.Inputs {
					if other.Name == "overwrite" {
						args[other.Name] = true
					} else if other.Required {
						args[other.Name] = map[string]string{"source": r.root + "/a.txt", "destination": r.root + "/new.txt",
							"pattern": "*", "content": "CHANGED"}[other.Name]
					}
				}
				if d.Name == "filesystem.edit" { // which says first what is wrong with its arguments
					args["pattern"], args["replace"], args["replace_all"] = "K", "CHANGED", true
				}
				args[p.Name] = strings.NewReplacer("R/", r.root+"/", "O", outside).Replace(s.path)
				if s.path == "$HOME" {
					args[p.Name] = s.path
				}
				os.Remove(filepath.Join(r.root, "new.txt"))
				got := r.as(t, dialect.Call{Session: "s", Tool: d.Name, Args: json.RawMessage(mustJSON(args))})
				text := string(mustJSON(got))
				kind, refused := got["type"].(string)
				refused = refused && got["recovery"] != nil
				if strings.Contains(text, "KEY OF O") || strings.Contains(text, "S0VZIE9G") {
					t.Errorf("%s %s=%q tells %s", d.Name, p.Name, s.path, text)
				}
				if !s.open && !refused && !itself(d.Name, s.path) {
					t.Errorf("%s %s=%q is answered: %s", d.Name, p.Name, s.path, text)
				}
				if kind == "IOError" {
					t.Errorf("%s %s=%q: %s", d.Name, p.Name, s.path, text)
				}
			}
			if now := look(); !maps.Equal(now, before) {
				t.Fatalf("after %s: %v", d.Name, now)
			}
		}
	}
}

// itself says that the capability may look at, take away or rename the link that such a path is.
func itself(name, path string) bool {
	return slices.Contains([]string{"R/out", "R/key", "R/tofile"}, path) &&
		slices.Contains([]string{"filesystem.stat", "filesystem.delete", "filesystem.move"}, name)
}
