package fabric

import "sync/atomic"

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
