package peers

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/time/rate"

	"platform/internal/nodelink"
	"platform/proto/node"
)

var (
	// ErrTimeout means that the peer did not respond in time; it may still act on the request.
	ErrTimeout = errors.New("peer did not respond in time")
	// errClosed is the error of requests after Close.
	errClosed = errors.New("connections to peers are closed")

	// errNotSent means that a request most probably did not reach the peer, so that retrying
	// an idempotent one is worthwhile.
	errNotSent = errors.New("request was not sent")
	errHungUp  = errors.New("stopped before the peer responded")
)

// Config has what a Pool needs to connect to other nodes. All fields are required, except for
// Refused.
type Config struct {
	// Dial prepares a connection to an address, which is dialed when it is used.
	Dial func(address string) (nodelink.Conn, error)
	// Hello is the first message of this node on each stream.
	Hello func() *node.Hello
	// Verify returns an error if the node that sent the first message on a stream to a peer is
	// not one of this cluster. The context is that of the stream.
	Verify func(context.Context, *node.Hello) error
	// Refused is called with the error of Verify.
	Refused func(raft.ServerAddress, error)
	// SnapshotRate bounds the bytes of snapshots that are sent per second, to all peers in total.
	SnapshotRate int
}

// Pool holds the connections of a node to its peers, one Peer for each address.
type Pool struct {
	cfg     Config
	created time.Time
	pace    *rate.Limiter   // of snapshots
	ctx     context.Context //nolint:containedctx // of the streams, which all callers share; ends with Close
	cancel  context.CancelFunc
	wg      sync.WaitGroup // streams

	mu     sync.RWMutex // covers the fields below; locked after Peer.mu
	closed bool
	peers  map[raft.ServerAddress]*Peer
}

// NewPool returns a pool without connections.
func NewPool(cfg Config) *Pool {
	ctx, cancel := context.WithCancel(context.Background())
	return &Pool{
		cfg: cfg, created: time.Now(), ctx: ctx, cancel: cancel,
		pace:  rate.NewLimiter(rate.Limit(cfg.SnapshotRate), snapshotChunkBytes),
		peers: make(map[raft.ServerAddress]*Peer),
	}
}

// Close closes all connections, and waits until their streams have ended.
func (p *Pool) Close() error {
	p.mu.Lock()
	peers := slices.Collect(maps.Values(p.peers))
	p.closed, p.peers = true, nil
	p.mu.Unlock()

	p.cancel()
	var errs error
	for _, peer := range peers {
		errs = errors.Join(errs, peer.close())
	}
	p.wg.Wait()
	return errs
}

// Peer returns the connections to addr, which are dialed when they are used.
func (p *Pool) Peer(addr raft.ServerAddress) (*Peer, error) {
	peer := p.existing(addr)
	if peer == nil {
		var err error
		if peer, err = p.add(addr); err != nil {
			return nil, err
		}
		p.dropUnused()
	}
	peer.used.Store(int64(time.Since(p.created)))
	return peer, nil
}

// existing returns nil if nothing was sent to addr yet.
func (p *Pool) existing(addr raft.ServerAddress) *Peer {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.peers[addr]
}

func (p *Pool) add(addr raft.ServerAddress) (*Peer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if peer, ok := p.peers[addr]; ok {
		return peer, nil
	}
	if p.closed {
		return nil, errClosed
	}
	peer, err := newPeer(p, addr)
	if err != nil {
		return nil, err
	}
	peer.used.Store(int64(time.Since(p.created)))
	p.peers[addr] = peer
	return peer, nil
}

// unusedAfter is the time without requests after which the connections to an address are dropped
// unless they work: a node that is restarted elsewhere has another address.
const unusedAfter = 10 * time.Minute

// dropUnused closes the connections to addresses that are no longer used.
func (p *Pool) dropUnused() {
	limit := int64(time.Since(p.created) - unusedAfter)
	var unused []*Peer
	p.mu.RLock()
	for _, peer := range p.peers {
		if peer.used.Load() < limit {
			unused = append(unused, peer)
		}
	}
	p.mu.RUnlock()
	for _, peer := range unused {
		if peer.connected() { // without p.mu, see Peer.stream
			continue
		}
		p.mu.Lock()
		ours := !p.closed && p.peers[peer.addr] == peer && peer.used.Load() < limit
		if ours {
			delete(p.peers, peer.addr)
		}
		p.mu.Unlock()
		if ours {
			_ = peer.close() // nothing waits for it
		}
	}
}

// Connect opens the control stream to addr, so that the nodes are connected before they need to
// be. It does not wait: an unreachable peer is detected when it is needed.
func (p *Pool) Connect(addr raft.ServerAddress) {
	if peer, err := p.Peer(addr); err == nil {
		_, _ = peer.stream(Control)
	}
}

// Redial is called when the node at addr has connected to this one: it is up, so it is dialed
// now if this node has sent it requests before. A follower sends its peers nothing until it needs
// their votes, and then they must be connected.
func (p *Pool) Redial(addr raft.ServerAddress) {
	if peer := p.existing(addr); peer != nil {
		peer.redial()
	}
}

// Connected reports whether the control stream to addr works.
func (p *Pool) Connected(addr raft.ServerAddress) bool {
	peer := p.existing(addr)
	return peer != nil && peer.connected()
}
