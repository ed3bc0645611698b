package fabric

import (
	"github.com/hashicorp/raft"

	"platform/internal/raftgroup"
)

// watch tells who waits for another node that a different one leads by now, as the
// replica on this node learns. Without that, a caller would wait for a deposed leader
// that is cut off until the connection is given up. The zero watch sees nothing.
type watch struct {
	local   Local
	address string
	at      func(raftgroup.Leader) string
}

func (w watch) changed() <-chan struct{} {
	if w.local == nil {
		return nil
	}
	return w.local.Changed()
}

// away reports whether a leader is known that is not the node that was asked.
func (w watch) away() bool {
	if w.local == nil {
		return false
	}
	l := w.local.Leader()
	return l.Address != "" && w.at(l) != w.address
}

// configured is the address of a leader as the Raft configuration has it.
func configured(l raftgroup.Leader) string { return string(l.Address) }

func leaderOf(id, address string) raftgroup.Leader {
	return raftgroup.Leader{ID: raft.ServerID(id), Address: raft.ServerAddress(address)}
}
