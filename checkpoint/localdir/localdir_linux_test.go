package localdir

import "testing"

func TestRemoteFuse(t *testing.T) {
	const table = `22 1 259:1 / / rw,relatime - ext4 /dev/root rw
60 22 0:50 / /mnt/a rw,nosuid - fuse.sshfs me@host:/home/me rw,user_id=0
61 22 0:51 / /mnt/b rw shared:12 master:3 - fuse.s3fs s3fs rw
62 22 0:52 / /mnt/c rw - fuse.own host.example:/x rw
63 22 0:53 / /mnt/d rw - fuse.bindfs /srv/data rw
64 22 8:17 / /mnt/e rw - fuseblk /dev/sdb1 rw
65 22 0:55 / /mnt/f rw - fuse.odd //host/share rw
66 22 0:56 / /mnt/g
`
	for dev, want := range map[string]string{
		"0:50": "fuse.sshfs", "0:51": "fuse.s3fs", "0:52": "fuse.own", "0:53": "", "8:17": "", "0:55": "fuse.odd", "0:56": "", "0:5": "", "259:1": "",
	} {
		if got := remoteFuse(table, dev); got != want {
			t.Errorf("%s: %q, want %q", dev, got, want)
		}
	}
}
