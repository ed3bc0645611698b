package raftgroup

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"
	"platform/internal/raftgroup/wire"
)

// InstallSnapshot sends the state of this replica, again after a failure: Raft would double
// its delay after each one, up to 10 s.
func (p *port) InstallSnapshot(id raft.ServerID, addr raft.ServerAddress, args *raft.InstallSnapshotRequest,
	resp *raft.InstallSnapshotResponse, data io.Reader,
) error {
	to := p.target(id, addr)
	export, repeatable := data.(*exportReader)
	for delay := minSnapshotRetry; ; delay = min(2*delay, maxSnapshotRetry) {
		err := p.sendSnapshot(to, args, resp, data)
		if err == nil && resp.Success && repeatable {
			export.installed(id, args.Term)
		}
		if err == nil && (resp.Success || resp.Term > args.Term) {
			return nil
		}
		if repeatable {
			_ = export.Close() // retains nothing while it waits
		}
		if err != nil {
			p.awaitPeer(to, args.Term, replicaNotOpen(err))
		}
		if !repeatable || !p.mayRetry(to, args.Term, delay) {
			return err
		}
		if exportErr := export.restart(args); exportErr != nil {
			return errors.Join(err, exportErr)
		}
	}
}

// The delay between attempts to send a snapshot to a connected peer.
const (
	minSnapshotRetry = 10 * time.Millisecond
	maxSnapshotRetry = time.Second
)

// sendSnapshot sends a snapshot once.
func (p *port) sendSnapshot(to target, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	peer, err := p.t.peers.Peer(to.addr)
	if err != nil {
		return err
	}
	req := wire.EncodeSnapshot(p.id, args)
	req.Target = string(to.id)
	sent := p.followers.elapsed()
	abort := func() {}
	if export, ok := data.(*exportReader); ok {
		abort = export.abort
	}
	out, err := peer.SendSnapshot(p.outgoing.Load().ctx, req, data, abort)
	p.group.cfg.Metrics.sentSnapshot(err)
	if err != nil {
		return fmt.Errorf("send snapshot to %s: %w", to.addr, err)
	}
	*resp = wire.DecodeSnapshotResponse(out)
	p.followers.installed(to.id, args, resp, sent)
	return nil
}
