// Package localdir looks whether a directory can hold a database: on a file system of this machine,
// and of our own user.
package localdir

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// networkTypes are file systems where locks, shared memory or fsync do not do what SQLite needs of
// them.
var networkTypes = map[int64]string{
	unix.NFS_SUPER_MAGIC:   "nfs",
	unix.SMB_SUPER_MAGIC:   "smb",
	unix.SMB2_SUPER_MAGIC:  "smb",
	unix.CIFS_SUPER_MAGIC:  "cifs",
	unix.CODA_SUPER_MAGIC:  "coda",
	unix.AFS_SUPER_MAGIC:   "afs",
	unix.AFS_FS_MAGIC:      "afs",
	unix.CEPH_SUPER_MAGIC:  "ceph",
	unix.V9FS_MAGIC:        "9p",
	unix.OCFS2_SUPER_MAGIC: "ocfs2",
	0x01161970:             "gfs2",
	0x0BD00BD0:             "lustre",
	0x47504653:             "gpfs",
	0x786F4256:             "vboxsf",
}

// Network names the kind of network file system that dir is on; "" when it is a local one.
func Network(dir string) (string, error) {
	var st unix.Statfs_t
	for {
		err := unix.Statfs(dir, &st)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return "", &fs.PathError{Op: "statfs", Path: dir, Err: err}
		}
	}
	if st.Type == unix.FUSE_SUPER_MAGIC {
		return fuse(dir)
	}
	return networkTypes[int64(uint32(st.Type))], nil
}

// fuse looks up which file system it is that FUSE serves. A file system that the mount table does not tell is
// taken for local: a store would not open on most of the others.
func fuse(dir string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return "", &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", nil //nolint:nilerr // as said
	}
	return remoteFuse(string(table), fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))), nil
}

// remoteFuse gives the type of the mount on device dev ("0:45") if it is a FUSE file system that
// reaches another machine, by its name or by a source like "user@host:/dir" or "//host/share".
// table is as in proc_pid_mountinfo(5).
func remoteFuse(table, dev string) string {
	for line := range strings.Lines(table) {
		mount, rest, ok := strings.Cut(line, " - ")
		if f := strings.Fields(mount); !ok || len(f) < 3 || f[2] != dev {
			continue
		}
		f := strings.Fields(rest)
		if len(f) < 2 {
			continue
		}
		_, kind, _ := strings.Cut(f[0], ".")
		host := strings.Contains(f[1], ":") || strings.HasPrefix(f[1], "//")
		if remoteKinds[kind] || kind != "" && host {
			return f[0]
		}
	}
	return ""
}

// remoteKinds are the names behind "fuse." of file systems on other machines whose source need not
// look like one.
var remoteKinds = map[string]bool{
	"ceph": true, "ceph-fuse": true, "curlftpfs": true, "davfs": true, "davfs2": true, "gcsfuse": true,
	"geesefs": true, "glusterfs": true, "goofys": true, "google-drive-ocamlfuse": true, "gvfsd-fuse": true,
	"juicefs": true, "lizardfs": true, "mfs": true, "moosefs": true, "mount-s3": true, "mountpoint-s3": true,
	"rclone": true, "s3fs": true, "s3ql": true, "seaweedfs": true, "smbnetfs": true, "sshfs": true,
}
