package fabric

import (
	"context"
	"time"

	"platform/internal/logsample"
	"platform/internal/nodelink"
	"platform/internal/raftgroup"
	"platform/proto/node"
)

// relays sends requests on to leaders that the requesting nodes cannot reach, although this
// node does: two nodes of three may be separated while both are connected to the third.
type relays struct {
	client    *Client // nil: requests are not relayed
	addressOf func(raftgroup.Leader) string
	logged    *logsample.Sampler[relayedPair]
}

// relayedPair is a node that cannot reach another one.
type relayedPair struct{ from, to string }

const (
	relayLogInterval = time.Minute
	maxRelayedPairs  = 64 // more pairs share the interval of the log
)

func newRelays(client *Client, addressOf func(raftgroup.Leader) string) relays {
	return relays{client: client, addressOf: addressOf, logged: logsample.New[relayedPair](1, relayLogInterval, maxRelayedPairs)}
}

// relay sends a request on to the leader that the replica p of this node knows, and returns
// its response. It returns nil if there is no such leader. The leader does not relay it
// further, so that a request cannot circulate.
func (s *Server) relay(ctx context.Context, from *nodelink.Peer, p Local, req *node.PartitionRequest) *node.PartitionResponse {
	leader := p.Leader()
	if s.relays.client == nil || leader.Address == "" || s.self.owns(leader.ID) {
		return nil
	}
	address := s.relays.addressOf(leader)
	to := s.relays.client.Remote(address, req.Partition).withLeaderWatch(leaderWatch{local: p, address: address, addressOf: s.relays.addressOf})
	r, _, err := to.exchange(ctx, relayedRequest(req))
	if err != nil {
		return &node.PartitionResponse{Code: codeOf(err), Message: err.Error()}
	}
	if r.Code == node.PartitionCode_PARTITION_CODE_OK {
		if _, due := s.relays.logged.Admit(relayedPair{from.Address, address}, time.Now()); due {
			s.log.Info("requests of a node that cannot reach the leader of a partition are relayed", "from", from.Address, "to", address, "partition", req.Partition)
		}
	}
	return r
}

// relayedRequest returns the request for the leader. It shares the payload of req.
func relayedRequest(req *node.PartitionRequest) *node.PartitionRequest {
	return &node.PartitionRequest{
		Partition: req.Partition, Method: req.Method, Command: req.Command, Id: req.Id, Journal: req.Journal,
		Object: req.Object, Limit: req.Limit, Scan: req.Scan, List: req.List,
	}
}
