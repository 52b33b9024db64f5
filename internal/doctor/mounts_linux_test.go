package doctor

import (
	"strings"
	"testing"
)

// The last of the longest mount points is where a root lies.
func TestMounts(t *testing.T) {
	all := parseMounts(`22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:30 / /net rw - nfs4 host:/x rw
31 22 8:1 /srv/in\040side /bound ro,relatime - ext4 /dev/sda1 rw
32 22 0:31 / /over rw - overlay overlay rw
33 32 0:32 / /over/tmp rw - tmpfs tmpfs rw
34 22 0:33 / /ssh rw - fuse.sshfs host rw
35 34 0:34 / /ssh rw - xfs /dev/sdb rw
36 22 0:35 / /odd rw - novelfs x rw
37 22 0:36 /sub /btr rw - btrfs /dev/sdc rw
38 22 0:37 / /proc rw - proc proc rw
broken
`)
	if len(all) != 10 {
		t.Fatalf("%d mounts", len(all))
	}
	for root, want := range map[string]string{
		"/home/u": "ok ext4: every promise", "/net/p": "weaker nfs4: others change it", "/netx": "ok ext4",
		"/bound": "weaker it is mounted read-only\nweaker it shows /srv/in side of", "/over": "weaker overlay: \nweaker other mounts lie in it: /over/tmp",
		"/over/tmp/x": "weaker tmpfs: what it holds", "/ssh": "ok xfs", "/odd": "weaker novelfs: nobody has tried",
		"/btr": "ok btrfs", "/proc/1": "hazard proc: it is the kernel's",
	} {
		var found []Finding
		all.of(func(level Level, about, path, what, hint string) {
			found = append(found, Finding{level, about, path, what, hint})
		}, root)
		got := told(found, "root")
		for w := range strings.SplitSeq(want, "\n") {
			if !strings.Contains(got, w) {
				t.Errorf("%s: %q lacks %q", root, got, w)
			}
		}
		if strings.HasPrefix(want, "ok") && strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %q", root, got)
		}
	}
}
