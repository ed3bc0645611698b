package peers

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

// Kind separates the requests to a peer by urgency, each kind on a stream of its own.
type Kind int

const (
	Control Kind = iota // small and urgent: heartbeats and votes
	Data                // may be large: entries
	kinds
)

// Peer is another node with the connections to it: a fast one for requests, and a bulk
// connection for snapshots.
type Peer struct {
	pool *Pool
	addr raft.ServerAddress
	fast *nodelink.Redialer
	bulk *nodelink.Redialer
	used atomic.Int64 // when it was last needed, since the pool was created

	mu      sync.Mutex // covers the fields below
	streams [kinds]*callStream
	greeted chan struct{} // closed when a control stream starts to work
}

func newPeer(pool *Pool, addr raft.ServerAddress) (*Peer, error) {
	fast, err := nodelink.NewRedialer(string(addr), pool.cfg.Dial)
	if err != nil {
		return nil, err
	}
	bulk, err := nodelink.NewRedialer(string(addr), pool.cfg.Dial)
	if err != nil {
		return nil, errors.Join(err, fast.Close())
	}
	return &Peer{pool: pool, addr: addr, fast: fast, bulk: bulk, greeted: make(chan struct{})}, nil
}

func (p *Peer) close() error { return errors.Join(p.fast.Close(), p.bulk.Close()) }

// connected reports whether the control stream works.
func (p *Peer) connected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.streams[Control]
	return s != nil && s.working()
}

// Reconnected returns nil if the peer is connected, and otherwise a channel that is closed once
// it is.
func (p *Peer) Reconnected() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.streams[Control]; s != nil && s.working() {
		return nil
	}
	return p.greeted
}

// streamWorks is called when the peer has identified itself on a stream.
func (p *Peer) streamWorks(s *callStream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s == p.streams[Control] {
		close(p.greeted)
		p.greeted = make(chan struct{})
	}
}

// stream returns the stream of a kind, opening it if there is none that works.
func (p *Peer) stream(kind Kind) (*callStream, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.streams[kind]; s != nil && !s.calls.Broken() {
		return s, nil
	}
	p.pool.mu.RLock() // no stream is started once Close waits for them
	defer p.pool.mu.RUnlock()
	if p.pool.closed {
		return nil, errClosed
	}
	s := newCallStream(p)
	p.streams[kind] = s
	p.pool.wg.Go(s.run)
	return s, nil
}

// Call sends a request over the stream of a kind and waits for its response until ctx ends.
func (p *Peer) Call(ctx context.Context, kind Kind, timeout time.Duration, f *node.RaftFrame) (*node.RaftFrame, error) {
	s, err := p.stream(kind)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	return s.call(ctx, timer.C, f)
}

// retryDelay is the delay between attempts to reach a peer in CallUntil.
const retryDelay = 20 * time.Millisecond

// CallUntil is Call on the control stream for a request that Raft makes once per election:
// while the peer cannot be reached it retries, with a new dial instead of gRPC's backoff,
// because the peer may just have restarted.
func (p *Peer) CallUntil(ctx context.Context, timeout time.Duration, f *node.RaftFrame) (*node.RaftFrame, error) {
	deadline := time.Now().Add(timeout)
	for {
		r, err := p.Call(ctx, Control, time.Until(deadline), f)
		if !errors.Is(err, errNotSent) || time.Until(deadline) < retryDelay {
			return r, err
		}
		select {
		case <-time.After(retryDelay):
		case <-ctx.Done():
			return nil, err
		}
		p.fast.Redial()
	}
}

// redial dials the peer now, without gRPC's backoff, and opens the control stream.
func (p *Peer) redial() {
	p.fast.Redial()
	p.bulk.Redial()
	_, _ = p.stream(Control)
}

const (
	// snapshotStall is how long a snapshot may make no progress.
	snapshotStall = 30 * time.Second
	// snapshotChunkBytes bounds one message of a snapshot.
	snapshotChunkBytes = 256 << 10
)

// SendSnapshot streams a snapshot over the bulk connection, limited to the rate of the pool for
// snapshots. It gives up after snapshotStall without progress. When the transfer ends early, it calls
// abort, which makes a pending Read of data fail.
func (p *Peer) SendSnapshot(ctx context.Context, req *node.InstallSnapshotRequest, data io.Reader, abort func()) (*node.InstallSnapshotResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stall := time.AfterFunc(snapshotStall, cancel)
	defer stall.Stop()
	defer context.AfterFunc(ctx, abort)()

	stream, err := node.NewRaftTransportClient(p.bulk.Conn()).InstallSnapshot(ctx)
	if err != nil {
		return nil, err
	}
	err = stream.Send(&node.SnapshotChunk{Hello: p.pool.cfg.Hello(), Request: req})
	buf := make([]byte, snapshotChunkBytes)
	for err == nil {
		var n int
		n, readErr := io.ReadFull(data, buf)
		if n > 0 {
			if err := p.pool.pace.WaitN(ctx, n); err != nil {
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
