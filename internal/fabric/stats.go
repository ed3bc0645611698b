package fabric

import (
	"strings"
	"sync/atomic"

	"platform/proto/node"
)

// Stats count how requests reached the leaders of partitions, since the start.
type Stats struct {
	// Local and Remote are the requests that replicas here and on other nodes were
	// asked, those that they refused included.
	Local, Remote uint64
	// Rounds is how often a request had to wait and look for a leader again.
	Rounds uint64
	// NoLeader is how many found none.
	NoLeader uint64
}

// counters are what Stats shows. They lie apart from what is only read.
type counters struct{ local, remote, rounds, noLeader atomic.Uint64 }

// Stats returns the counts.
func (d *Directory) Stats() Stats {
	c := d.counters
	return Stats{Local: c.local.Load(), Remote: c.remote.Load(), Rounds: c.rounds.Load(), NoLeader: c.noLeader.Load()}
}

// methods bounds the numbers of what can be asked for.
const methods = node.PartitionMethod_PARTITION_METHOD_SCAN + 1

// requestCounts are how many requests were sent to other nodes. Streams of records are
// no method and count under the one that is none.
type requestCounts [methods]atomic.Uint64

func (c *requestCounts) sent(m node.PartitionMethod) { c[m].Add(1) }

// Requests returns how many requests were sent to other nodes since the start, by what
// they ask for.
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
