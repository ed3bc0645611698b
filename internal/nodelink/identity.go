package nodelink

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"platform/internal/nodetls"
	"platform/proto/node"
)

var (
	// ErrRefused is the response to a node that is refused. It gives unauthenticated
	// clients no details; the log of the refusing node has the reason.
	ErrRefused = status.Error(codes.PermissionDenied, "refused; the log of this node has the reason")
	// ErrNoCluster is the error of requests from and to a node that has no cluster.
	ErrNoCluster = errors.New("this node does not belong to a cluster yet")
)

// Identity is how a node identifies itself to other nodes.
type Identity struct {
	// ClusterID separates clusters. While it is empty, the node does not belong to a
	// cluster, and neither sends nor accepts requests.
	ClusterID func() string
	// Node and Incarnation identify the node and its data directory.
	Node, Incarnation string
	// Address is the host:port where other nodes reach it.
	Address string
}

// Hello returns the first message of a stream.
func (i *Identity) Hello() *node.Hello {
	return &node.Hello{ClusterId: i.ClusterID(), NodeId: i.Node, Incarnation: i.Incarnation, Address: i.Address}
}

// Verify checks that the sender of a hello belongs to this cluster, and that it is the node
// in its certificate. The context is that of the stream.
func (i *Identity) Verify(ctx context.Context, h *node.Hello) (*Peer, error) {
	own, name := i.ClusterID(), nodetls.Peer(ctx)
	switch {
	case h == nil:
		return nil, errors.New("the other node did not identify itself")
	case own == "":
		return nil, ErrNoCluster
	case h.ClusterId != own:
		return nil, fmt.Errorf("node %.64q at %.128q belongs to cluster %.64q, this node to %q", h.NodeId, h.Address, h.ClusterId, own) // %q since another program may have sent them
	case name != "" && name != h.NodeId:
		return nil, fmt.Errorf("node %.64q at %.128q has the certificate of node %s", h.NodeId, h.Address, name)
	}
	return &Peer{Node: h.NodeId, Incarnation: h.Incarnation, Address: h.Address, Authenticated: name != ""}, nil
}

// AuthorizedFor is how long a decision about a peer holds.
const AuthorizedFor = time.Second

// Authorize returns an error if a node may not use a stream.
type Authorize func(node, incarnation string) error

// Peer is the node at the other end of a stream.
type Peer struct {
	Node, Incarnation string
	Address           string
	// Authenticated reports that the node has a certificate. Otherwise nothing is known about
	// it, and it may do everything.
	Authenticated bool

	authorized time.Time // when it was last authorized
}

// Authorize calls authorize for a peer that is authenticated, unless it did so recently.
// authorize may be nil. The method is called by one goroutine at a time, for each message.
func (p *Peer) Authorize(authorize Authorize, now time.Time) error {
	if !p.Authenticated || authorize == nil || now.Sub(p.authorized) < AuthorizedFor {
		return nil
	}
	if err := authorize(p.Node, p.Incarnation); err != nil {
		return err
	}
	p.authorized = now
	return nil
}
