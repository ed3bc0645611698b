package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
)

// obstacle is why the next fetched record is not handed over, although everything before it is
// stored. One of the fields is set.
type obstacle struct {
	unusable *unusable // it cannot become an invocation
	routing  *routing  // it needs another routing
}

// overcome removes the obstacle to the next record, or leaves the record out.
func (s *stream) overcome(ctx context.Context, o *obstacle) error {
	if o.routing != nil {
		return s.reroute(ctx, *o.routing)
	}
	return s.unusable(ctx, o.unusable)
}

// handOver passes fetched records to the lanes until none is left, too many are in flight, or
// there is an obstacle. The caller holds s.mu.
func (s *stream) handOver(ctx context.Context) *obstacle {
	limit := int(s.r.sub.MaxInFlight)
	if s.r.sub.Ordering == subscription.OrderByPartition {
		limit = 1
	}
	for len(s.fetched.records) > 0 && s.window.inFlight < limit {
		if s.leftOutFirst() || s.storedBefore() {
			continue
		}
		if o := s.send(ctx); o != nil {
			if s.window.inFlight > 0 {
				return nil
			}
			return o
		}
	}
	return nil
}

// leftOutFirst removes the first fetched record if it does not become an invocation.
func (s *stream) leftOutFirst() bool {
	outcome, ok := s.leftOut(s.fetched.records[0])
	if ok {
		s.window.end(s.take(), outcome)
		s.settle()
	}
	return ok
}

// leftOut reports whether a record does not become an invocation.
func (s *stream) leftOut(rec *kgo.Record) (outcome, bool) {
	switch {
	case rec.Attrs.IsControl():
		return control, true
	case rec.Value == nil && s.r.sub.Tombstones == subscription.SkipTombstones:
		return tombstone, true
	}
	return 0, false
}

// storedBefore removes the first fetched record if it became an invocation before the routing
// changed.
func (s *stream) storedBefore() bool {
	if len(s.routes.Earlier) == 0 {
		return false
	}
	to, id, ok := s.routes.stored(&s.conv, &s.id, s.fetched.records[0])
	if ok {
		it := item{pending: s.take()}
		it.record.Invoke.ID = id
		s.accepted(s.lane(to), it)
		s.settle()
	}
	return ok
}

// send passes the first fetched record to its lane, unless there is an obstacle.
func (s *stream) send(ctx context.Context) *obstacle {
	now, bad := s.conv.current()
	if bad != nil {
		return &obstacle{unusable: bad}
	}
	if s.routes.Current == nil || s.routes.Announcing || s.overtaken || !now.equal(s.routes.Current) {
		return &obstacle{routing: &now}
	}
	to, ingest, bad := s.conv.convert(&s.id, &now, s.fetched.records[0])
	if bad != nil {
		return &obstacle{unusable: bad}
	}
	s.lane(to).add(ctx, s, item{s.take(), ingest})
	return nil
}

// take moves the first fetched record to the window. The caller holds s.mu.
func (s *stream) take() *pending { return s.window.add(s.fetched.take()) }

// accepted marks a stored record as done: immediately, or when its invocation has ended if the next
// record is to wait for that.
func (s *stream) accepted(l *lane, it item) {
	if s.r.sub.Ordering == subscription.OrderByPartition {
		waits := s.waits
		s.awaiting = time.Now()
		s.lanesRun.Go(func() { s.awaitEnd(waits, l, it) })
		return
	}
	s.window.end(it.pending, delivered)
}

// settle moves the window over records that are done.
func (s *stream) settle() {
	done := s.window.advance()
	released := int64(0)
	for _, p := range done {
		released += p.bytes
		s.r.e.cfg.Metrics.record(s.r.sub.ID, p.outcome)
		if p.outcome == delivered {
			s.status.Delivered++
			s.status.LastRecordAt = shown(p.timestamp)
		}
	}
	clear(done)
	s.bytes -= released
	s.status.Position = s.window.next
	if released > 0 {
		s.r.e.memory.release(released)
	}
	if len(s.routes.Earlier) > 0 && len(done) > 0 {
		if s.routes.Earlier = prune(s.routes.Earlier, s.window.next); len(s.routes.Earlier) == 0 {
			s.position.Routing = s.routes.String()
		}
	}
}
