package datadir

import (
	"os"

	"golang.org/x/sys/unix"
)

// stableInodes are the types of the file systems on which a file keeps its inode number, also after the
// file system is mounted again. Others, such as FUSE, may number files as they are opened.
var stableInodes = []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC, zfsMagic}

const zfsMagic = 0x2fc12fc1

// inodeOf returns the inode number of a file; 0 if its file system may change it.
func inodeOf(f *os.File) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
		return 0, err
	}
	stable := false
	for _, magic := range stableInodes {
		stable = stable || int64(fs.Type) == magic //nolint:unconvert // its type depends on the architecture
	}
	if !stable {
		return 0, nil
	}
	var st unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &st)
	return st.Ino, err
}
