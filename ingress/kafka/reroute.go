package kafka

import (
	"context"
	"fmt"

	"platform/internal/subscription"
	"platform/partition/machine"
)

// errRerouted means that another leader has begun a later generation of the routing.
var errRerouted = fault(subscription.Starting, "", "the routing of records has changed; they are sent again")

// reroute changes the routing of subsequent records; nothing of this leadership is in flight.
// Records may then belong to other partitions than before. A command of an earlier leader that is
// still in flight could create a second invocation of a record, or move the last offset of a
// partition past records that now belong there. So all partitions first learn the next generation;
// from then on they refuse that command. They report what they have stored. The generation is stored
// before it is announced, and the routing before it is used: no two leaders can use one generation
// differently.
func (s *stream) reroute(ctx context.Context, now routing) error {
	s.mu.Lock()
	r, overtaken, next := s.routes, s.overtaken, s.window.next
	s.mu.Unlock()
	if r.Current != nil && (r.Announcing || overtaken || !now.samePartitions(r.Current)) {
		if overtaken && r.Announcing { // others know a later generation than this
			r.Generation++
		}
		if !r.Announcing || overtaken {
			r.Announcing = true
			if err := s.setRoutes(ctx, r); err != nil {
				return err
			}
		}
		stored, err := s.announce(ctx, r.Generation+1, next)
		if err != nil {
			return err
		}
		r.Earlier = prune(r.Earlier, next)
		if len(stored) > 0 {
			r.Earlier = append(r.Earlier, formerRouting{*r.Current, stored})
		}
		r.Generation, r.Announcing = r.Generation+1, false
	}
	r.Current = &now
	return s.setRoutes(ctx, r)
}

// setRoutes stores the routing.
func (s *stream) setRoutes(ctx context.Context, r routes) error {
	s.mu.Lock()
	s.routes, s.position.Routing = r, r.String()
	s.mu.Unlock()
	if !s.store(ctx, true) {
		return errNotStored
	}
	return nil
}

// announce makes a generation known to all partitions, and returns the last offsets of the previous
// generation by partition, from next on.
func (s *stream) announce(ctx context.Context, generation uint64, next int64) (map[uint32]int64, error) {
	stored := map[uint32]int64{}
	for id := range s.r.e.cfg.Partitions.Count() {
		o, err := s.r.e.cfg.Partitions.Ingest(ctx, id, &machine.Ingest{Stream: s.id, Generation: generation, Prev: machine.NoOffset})
		switch {
		case err != nil:
			return nil, fault(subscription.Throttled, "", "partition %d does not accept the new routing of records: %v", id, err)
		case o.Code == machine.Superseded:
			s.mu.Lock()
			s.overtaken = true
			s.mu.Unlock()
			return nil, errRerouted
		case o.Code != machine.Existing:
			return nil, fmt.Errorf("partition %d rejected the new routing of records: outcome %v", id, o.Code)
		case o.Last >= next:
			stored[id] = o.Last
		}
	}
	s.mu.Lock()
	s.overtaken, s.lanes = false, map[uint32]*lane{} // offsets start over
	s.mu.Unlock()
	return stored, nil
}
