package watchdog

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// closeSockets shuts all sockets of the process down. A process that exits keeps them, and accepts further connections,
// until its last thread has ended, which for a thread that waits for a hung disk may take hours. Clients would
// wait for their timeouts, and load balancers that only connect would consider the node healthy.
func closeSockets() {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, f := range files {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > 2 { // the log may be a socket
			_ = unix.Shutdown(fd, unix.SHUT_RDWR) // an error for other files
		}
	}
}
