package raftgroup

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// transfers counts the leadership transfers that a replica has started. Raft refuses entries during a transfer, but the
// proposer learns of a refusal only after the outcomes of earlier entries. So it proposes nothing until the transfer ends.
type transfers struct {
	begun, ended atomic.Uint64
	onEnd        atomic.Pointer[func()] // must not block
}

// state returns the number of transfers that were started, and whether one is in progress.
func (t *transfers) state() (begun uint64, running bool) {
	begun = t.begun.Load()
	return begun, begun != t.ended.Load()
}

// begin counts a transfer until the returned function is called, but no longer than limit: there are transfers that never end
// (see Group.noteTransfer).
func (t *transfers) begin(limit time.Duration) (end func()) {
	t.begun.Add(1)
	once := sync.OnceFunc(func() {
		t.ended.Add(1)
		if f := t.onEnd.Load(); f != nil {
			(*f)()
		}
	})
	timer := time.AfterFunc(limit, once)
	return func() {
		timer.Stop()
		once()
	}
}

// transferTo starts a transfer of leadership.
func (g *Group) transferTo(r *raft.Raft, s raft.Server) raft.Future {
	end := g.transfers.begin(3 * g.cfg.Profile.ElectionTimeout)
	return &transferFuture{r.LeadershipTransferToServer(s.ID, s.Address), end}
}

type transferFuture struct {
	raft.Future
	end func()
}

// Error waits for the end of the transfer.
func (f *transferFuture) Error() error {
	defer f.end()
	return f.Future.Error()
}
