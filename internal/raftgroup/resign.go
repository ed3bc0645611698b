package raftgroup

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// orderlyTransferTimeout is how long a leader with a slow or damaged storage tries Raft's leadership
	// transfer.
	orderlyTransferTimeout = 300 * time.Millisecond
	// timeoutNowTimeout bounds the request for an election to one successor.
	timeoutNowTimeout = time.Second
)

// resign transfers leadership because this replica's log or state is slow or unusable. A
// replica without other voters continues to lead.
// Raft's leadership transfer fails if it waits for that storage itself, or has ended
// because of it; then a successor is sent TimeoutNow directly, as Raft would do.
func (g *Group) resign() {
	if !g.IsLeader() || len(g.successors("")) == 0 {
		return
	}
	g.log.Warn("giving up leadership because the storage is slow or unusable")
	ctx, cancel := context.WithTimeout(context.Background(), orderlyTransferTimeout)
	defer cancel()
	err := g.TransferLeadership(ctx, "")
	if err == nil || !g.IsLeader() {
		return
	}
	for _, s := range g.successors("") {
		var resp raft.TimeoutNowResponse
		timeoutErr := g.port.sendTimeoutNow(s.ID, s.Address, min(timeoutNowTimeout, g.cfg.Profile.ElectionTimeout), &raft.TimeoutNowRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax},
		}, &resp)
		if timeoutErr == nil {
			return
		}
		err = errors.Join(err, timeoutErr)
	}
	g.log.Warn("could not transfer leadership", "err", err)
}
