package process

import (
	"log/slog"
	"math"

	"golang.org/x/sys/unix"
)

// ConnectionLimits are the most connections that clients may have open on each port, and the most connections to the node port
// that may be pending, which means that it is not known yet whether a node has opened them.
type ConnectionLimits struct{ Ingress, Admin, Node, Pending int }

// Connections of clients may use 1/connectionShare of the files that the process may open, and pending ones 1/pendingShare. The
// rest is for the tables and the log, which fail if they cannot open a file, and for connections to nodes and endpoints.
const (
	connectionShare = 2
	pendingShare    = 4
)

// Fit returns the limits, lowered to what the process has room for, see openFiles.
func (c ConnectionLimits) Fit(log *slog.Logger) ConnectionLimits {
	files := openFiles()
	lowered := c.within(files)
	if lowered != c {
		log.Info("connections are limited by the number of files that the process may open (ulimit -n)", "files", files,
			"ingress", lowered.Ingress, "admin", lowered.Admin, "node", lowered.Node, "pending", lowered.Pending)
	}
	return lowered
}

// within returns the limits, lowered to their shares of this number of files; those of clients in proportion.
func (c ConnectionLimits) within(files int) ConnectionLimits {
	c.Pending = max(1, min(c.Pending, files/pendingShare))
	total, sum := files/connectionShare, c.Ingress+c.Admin+c.Node
	if sum <= total {
		return c
	}
	lower := func(n int) int { return max(1, n*total/sum) }
	c.Ingress, c.Admin, c.Node = lower(c.Ingress), lower(c.Admin), lower(c.Node)
	return c
}

// openFiles returns how many files, connections included, the process may open (RLIMIT_NOFILE).
func openFiles() int {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return math.MaxInt32
	}
	return int(min(files.Cur, math.MaxInt32))
}
