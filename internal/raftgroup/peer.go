package raftgroup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"platform/internal/nodelink"
	"platform/proto/node"
)

var (
	errWrongResponse = errors.New("peer sent another kind of response")
	errPeerTimeout   = errors.New("peer did not respond in time")
	errHungUp        = errors.New("stopped before the peer responded")

	errNoMajority      = errors.New("replica does not reach a majority of the voters")
	errNotElected      = errors.New("the successor was not elected in time")
	errTransportClosed = errors.New("raft transport is closed")
	// errNotSent means that a request most probably did not reach the peer, so that retrying
	// an idempotent one is worthwhile.
	errNotSent = errors.New("request was not sent")
)

// streamKind separates traffic by urgency: entries may be large, heartbeats and votes are
// small and urgent.
type streamKind int

const (
	controlStream streamKind = iota
	dataStream
	streamKinds
)

// peer holds the connections to one node.
type peer struct {
	t    *Transport
	addr raft.ServerAddress
	fast *nodelink.Redialer
	bulk *nodelink.Redialer
	used atomic.Int64 // when it was last needed, since the transport was started

	// mu covers the streams.
	mu      sync.Mutex
	streams [streamKinds]*callStream
	greeted chan struct{} // closed when a control stream starts to work
}

func (t *Transport) newPeer(addr raft.ServerAddress) (*peer, error) {
	fast, err := nodelink.NewRedialer(string(addr), t.dial)
	if err != nil {
		return nil, err
	}
	bulk, err := nodelink.NewRedialer(string(addr), t.dial)
	if err != nil {
		return nil, errors.Join(err, fast.Close())
	}
	return &peer{t: t, addr: addr, fast: fast, bulk: bulk, greeted: make(chan struct{})}, nil
}

func (p *peer) close() error { return errors.Join(p.fast.Close(), p.bulk.Close()) }

// connected reports whether the control stream works.
func (p *peer) connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.streams[controlStream]
	return s != nil && s.working()
}

// connection returns nil if the control stream works, and otherwise a channel that is closed
// once it does.
func (p *peer) connection() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.streams[controlStream]; s != nil && s.working() {
		return nil
	}
	return p.greeted
}

// works is called when a stream starts to work.
func (p *peer) works(s *callStream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s == p.streams[controlStream] {
		close(p.greeted)
		p.greeted = make(chan struct{})
	}
}

// stream returns the stream of a kind, opening it if there is none that works.
func (p *peer) stream(kind streamKind) (*callStream, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.streams[kind]; s != nil && !s.calls.Broken() {
		return s, nil
	}
	p.t.mu.RLock() // no stream is started once Close waits for them
	defer p.t.mu.RUnlock()
	if p.t.closed {
		return nil, errTransportClosed
	}
	s := newCallStream(p)
	p.streams[kind] = s
	p.t.wg.Go(s.run)
	return s, nil
}

// call sends a request over the stream of a kind and waits for its response until ctx ends.
func (p *peer) call(ctx context.Context, kind streamKind, timeout time.Duration, f *node.RaftFrame) (*node.RaftFrame, error) {
	s, err := p.stream(kind)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	return s.call(ctx, timer.C, f)
}

// voteRetry is the delay between attempts to reach a peer for a vote.
const voteRetry = 20 * time.Millisecond

// callUntil is call for a request that Raft makes once per election: while the peer cannot
// be reached it retries, with a new dial instead of gRPC's backoff, because the peer may
// just have restarted.
func (p *peer) callUntil(ctx context.Context, timeout time.Duration, f *node.RaftFrame) (*node.RaftFrame, error) {
	deadline := time.Now().Add(timeout)
	for {
		r, err := p.call(ctx, controlStream, time.Until(deadline), f)
		if !errors.Is(err, errNotSent) || time.Until(deadline) < voteRetry {
			return r, err
		}
		select {
		case <-time.After(voteRetry):
		case <-ctx.Done():
			return nil, err
		}
		p.fast.Redial()
	}
}

// seen is called when the peer connected to this node: it is up, so dial it now. A follower
// sends its peers nothing until it needs their votes, and then they must be connected.
func (p *peer) seen() {
	p.fast.Redial()
	p.bulk.Redial()
	_, _ = p.stream(controlStream)
}

// sendSnapshot streams a snapshot over the bulk connection, limited to the node's rate for
// snapshots. It gives up after snapshotStall without progress.
func (p *peer) sendSnapshot(ctx context.Context, req *node.InstallSnapshotRequest, data io.Reader) (*node.InstallSnapshotResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stall := time.AfterFunc(snapshotStall, cancel)
	defer stall.Stop()
	if export, ok := data.(*exportReader); ok {
		defer context.AfterFunc(ctx, export.abort)()
	}

	stream, err := node.NewRaftTransportClient(p.bulk.Conn()).InstallSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&node.SnapshotChunk{Hello: p.t.self.Hello(), Request: req})
	buf := make([]byte, snapshotChunkBytes)
	for err == nil {
		var n int
		n, readErr := io.ReadFull(data, buf)
		if n > 0 {
			if err := p.t.pace.WaitN(ctx, n); err != nil {
				return nil, fmt.Errorf("pace snapshot: %w", err)
			}
			err = stream.Send(&node.SnapshotChunk{Data: buf[:n]})
			stall.Reset(snapshotStall)
		}
		if errors.Is(readErr, io.EOF) || errors.Is(readErr, io.ErrUnexpectedEOF) {
			break
		}
		if readErr != nil { // ends the stream with an error at the receiver
			return nil, fmt.Errorf("read state: %w", readErr)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return stream.CloseAndRecv() // also returns why the receiver ended early
}
