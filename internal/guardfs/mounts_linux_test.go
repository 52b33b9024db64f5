//go:build !rooted

package guardfs

import (
	"strings"
	"testing"
)

func TestParseMounts(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		names map[string]string // true name → the others
	}{
		"nothing twice": {
			[]string{"27 1 254:0 / / rw - ext4 /dev/vda rw", "22 27 0:21 / /proc rw - proc proc rw", "25 27 0:23 / /dev/shm rw - tmpfs tmpfs rw"},
			map[string]string{"/": "", "/a": "", "/dev/shm/a": ""},
		},
		"directory and file": {
			[]string{"27 1 8:1 / / rw shared:1 - ext4 d rw", "30 27 8:1 /ws/secrets /ws/pub/m rw - ext4 d rw", "31 27 8:1 /ws/secrets/k /ws/pub/f rw - ext4 d rw"},
			map[string]string{
				"/ws/pub/m/k": "/ws/secrets/k /ws/pub/f", "/ws/pub/m": "/ws/secrets", "/ws/pub/m/a/b": "/ws/secrets/a/b",
				"/ws/pub/f": "/ws/secrets/k /ws/pub/m/k", "/ws/secrets/k": "/ws/pub/m/k /ws/pub/f", "/ws/secretsx": "", "/ws/pub/mx": "", "/ws": "",
			},
		},
		"container": { // no mount of the volume shows its root, and the root of all is another device
			[]string{
				"500 400 0:50 / / rw - overlay overlay rw", "501 500 0:60 / /proc rw - proc proc rw",
				"510 500 8:1 /vol/app /app rw - ext4 d rw", "511 500 8:1 /vol/app/keys /keys rw - ext4 d rw", "512 500 8:1 /docker/hosts /etc/hosts rw - ext4 d rw",
			},
			map[string]string{
				"/keys/k": "/app/keys/k", "/app/keys/k": "/keys/k", "/app/a": "", "/etc/hosts": "", "/etc": "", "/": "",
				"/keys/a/long/way": "/app/keys/a/long/way", "/app/keys/a/long/way": "/keys/a/long/way", "/keysx/a/long/way": "", "/a-long-name-at-the-root": "",
			},
		},
		"device whole, elsewhere": {
			[]string{"27 1 8:1 / / rw - ext4 d rw", "30 27 8:2 / /home rw - ext4 d rw", "31 27 8:2 / /mnt rw - ext4 d rw", "32 27 8:1 / /old\\040root rw - ext4 d rw"},
			map[string]string{"/home/u": "/mnt/u", "/mnt": "/home", "/old root/etc": "/etc", "/etc": "/old root/etc", "/": "/old root", "/old root": "/"},
		},
		"subvolumes": {
			[]string{"27 1 0:30 /@ / rw - btrfs d rw", "30 27 0:30 /@home /home rw - btrfs d rw", "31 27 0:30 / /top rw - btrfs d rw"},
			map[string]string{"/home/u": "/top/@home/u", "/top/@/etc": "/etc", "/top/x": "", "/home": "/top/@home"},
		},
		"mount on a mount, the way there covered": {
			// 31 lies at /a/b below 30, which came later and covers /a; 33 covers 32.
			[]string{
				"27 1 8:1 / / rw - ext4 d rw", "31 27 8:2 /x /a/b rw - ext4 d rw", "30 27 8:3 / /a rw - ext4 d rw", "40 27 8:2 / /two rw - ext4 d rw",
				"41 27 8:3 /b /three rw - ext4 d rw", "32 27 8:2 / /s rw - ext4 d rw", "33 32 8:3 / /s rw - ext4 d rw",
			},
			map[string]string{"/a/b/k": "/three/k /s/b/k", "/two/x/k": "/a/b/k /s/x/k", "/s/b": "/a/b /three"},
		},
		"bound to itself": {
			[]string{"27 1 8:1 / / rw - ext4 d rw", "30 27 8:1 /ws /ws rw - ext4 d rw"},
			map[string]string{"/ws/k": "", "/ws": "", "/": ""},
		},
		"odd names": {
			[]string{
				"27 27 8:1 / / rw - ext4 d rw", "30 27 8:1 /a\\011b\\012\\134c /m\\\\x rw - ext4 d rw", "31 27 0:4 net:[40] /run/n rw - nsfs nsfs rw",
				"32 27 8:1 /gone//deleted /d rw - ext4 d rw",
			},
			map[string]string{"/m\\\\x/k": "/a\tb\n\\c/k", "/a\tb\n\\c": "/m\\\\x", "/run/n": "", "/gone": ""},
		},
	} {
		m, err := parseMounts(strings.Join(c.lines, "\n") + "\n")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.names["/"] == "" && name == "nothing twice" && m != nil {
			t.Errorf("%s: %+v", name, m)
		}
		for n, want := range c.names {
			if got := strings.Join(m.others(n), " "); got != want {
				t.Errorf("%s: %q is also %q, want %q", name, n, got, want)
			}
		}
	}
	for _, odd := range []string{"27 1 8:1 /\n", "a 1 8:1 / / rw\n", "1 b 8:1 / / rw\n", "1 2 8:1 / point rw\n", "\n"} {
		if _, err := parseMounts(odd); err == nil {
			t.Errorf("%q is taken", odd)
		}
	}
}

// A reader that can't tell what the names are lets nothing through.
func TestMountsUnknown(t *testing.T) {
	b := base(t)
	lay(t, b, "d/f = A")
	f := open(t, &fence{root: b})
	h, err := f.Resolve(b+"/d", Read)
	must(t, err)
	defer h.Close()
	must(t, f.kernel.table.file.close())
	if d, err := h.Dir(); err == nil {
		d.Close()
		t.Error("a directory is opened")
	}
	for _, err := range []error{
		func() error { _, err := read(f, b+"/d/f"); return err }(),
		func() error { _, err := f.Entry(b + "/d/f"); return err }(),
		func() error { _, _, err := f.Missing(b + "/x/f"); return err }(),
	} {
		if err == nil {
			t.Error("let through")
		}
	}
}

// A type that nobody here knows counts as one that may hang.
func TestMayHang(t *testing.T) {
	t.Parallel()
	const disk = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n22 27 0:21 / /proc rw shared:3 - proc proc rw\n"
	for line, want := range map[string]bool{
		"": false,
		"40 27 0:50 / /mnt rw shared:1 - nfs4 host:/x rw\n":   true,
		"40 27 0:50 / /mnt rw - fuse.sshfs host: rw\n":        true,
		"40 27 0:50 / /mnt rw - fuse srv rw\n":                true,
		"40 27 0:50 / /a\\040-\\040nfs rw - tmpfs tmpfs rw\n": false,
		"40 27 0:50 / /mnt rw - novelfs x rw\n":               true,
		"40 27 0:50 / /mnt rw\n":                              true,
	} {
		if got := mayHang(disk + line); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}
