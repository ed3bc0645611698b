package datadir

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// While a server uses the directory, its lock file contains a mark with the number of the file's inode.
// A copy of the file has another inode, so the mark in a copied directory tells that the directory was
// copied while its server ran, or after the server was killed. Snapshots of file systems and volumes,
// which are consistent, keep the number.

// markPrefix is followed by the inode number.
const markPrefix = "in use, inode "

// mark writes the mark into the lock file, which this process has locked, and reports whether it
// contained that of another file. Without a stable inode number it does nothing. The mark is a help only:
// an error, such as of a full disk, does not keep the server from starting.
func (d *Dir) mark() (copied bool) {
	inode, err := inodeOf(d.lock)
	if err != nil || inode == 0 {
		return false
	}
	found := make([]byte, 64)
	n, err := d.lock.ReadAt(found, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	before, own := string(found[:n]), fmt.Sprintf("%s%d\n", markPrefix, inode)
	d.marked = true
	if before == own { // the server was killed
		return false
	}
	if d.lock.Truncate(0) == nil {
		_, _ = d.lock.WriteAt([]byte(own), 0)
	}
	return strings.HasPrefix(before, markPrefix)
}
