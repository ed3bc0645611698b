package fabric

import (
	"strings"
	"sync/atomic"

	"platform/proto/node"
)

// Stats counts how requests were routed to the leaders of partitions since the start.
type Stats struct {
	// Local and Remote are the requests sent to replicas on this node and on other nodes,
	// including rejected ones.
	Local, Remote uint64
	// Relayed is the part of Remote that was sent to a node that reaches the leader, since
	// this node does not.
	Relayed uint64
	// Rounds is the number of additional lookup rounds.
	Rounds uint64
	// NoLeader is the number of requests that found no leader.
	NoLeader uint64
}

// counters are the values of Stats, allocated separately from read-only data to avoid
// false sharing.
type counters struct{ local, remote, relayed, rounds, noLeader atomic.Uint64 }

// Stats returns the current counts.
func (d *Directory) Stats() Stats {
	c := d.counters
	return Stats{Local: c.local.Load(), Remote: c.remote.Load(), Relayed: c.relayed.Load(), Rounds: c.rounds.Load(), NoLeader: c.noLeader.Load()}
}

// methods is the number of request methods.
const methods = node.PartitionMethod_PARTITION_METHOD_INGEST + 1

// requestCounts counts the requests sent to other nodes by method. Streams of records have
// no method and are counted as UNSPECIFIED.
type requestCounts [methods]atomic.Uint64

// inc counts a request. A relayed one may have a method that this release does not know.
func (c *requestCounts) inc(m node.PartitionMethod) {
	if m >= 0 && m < methods {
		c[m].Add(1)
	}
}

// Requests returns the number of requests sent to other nodes since the start, by method.
func (c *Client) Requests() map[string]uint64 {
	counts := make(map[string]uint64, methods)
	for m := range methods {
		name := strings.ToLower(strings.TrimPrefix(m.String(), "PARTITION_METHOD_"))
		if m == node.PartitionMethod_PARTITION_METHOD_UNSPECIFIED {
			name = "records"
		}
		counts[name] = c.requests[m].Load()
	}
	return counts
}
