package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
	"platform/partition/machine"
)

// begin finds the position and starts to fetch there.
func (s *stream) begin(ctx context.Context) error {
	stored, err := s.owner.Position(s.id)
	if err != nil {
		return err
	}
	next, epoch, err := s.resume(stored)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.status.Position = next // shown although it is not within the topic partition
	s.mu.Unlock()
	if next, err = s.r.checkRange(ctx, s.at, next, epoch); err != nil {
		return err
	}
	s.mu.Lock()
	if s.routes, err = parseRoutes(s.position.Routing); err != nil {
		s.mu.Unlock()
		return err
	}
	session := s.fetched.begin(next)
	s.window.begin(next, epoch)
	s.failed = nil
	s.status.Position = next
	s.setState(subscription.Running, "", "")
	s.mu.Unlock()
	if s.saved == (machine.StreamPosition{}) && !s.store(ctx, true) { // the start of a topic partition moves when records expire
		return errNotStored
	}
	if stored != nil {
		s.r.toMirror(s.at, s.saved) // the previous leader may have ended before it did
	}
	s.r.assign(s.at, kgo.NewOffset().WithEpoch(epoch).At(next), s, session)
	return nil
}

// resume returns where to continue reading: the stored position or the start of the incarnation.
func (s *stream) resume(stored *machine.StreamPosition) (next int64, epoch int32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored != nil && stored.Stream.Incarnation > s.id.Incarnation {
		return 0, 0, fault(subscription.Starting, "", "a newer incarnation of the subscription exists; this node learns of it shortly")
	}
	again := s.r.sub.OnRecreate == subscription.RecreatedFromEarliest
	current := stored != nil && stored.Stream.Incarnation == s.id.Incarnation
	if current && differ(stored.Stream.TopicID, s.topic) {
		if !again {
			return 0, 0, recreated(stored.Stream.TopicID, s.topic)
		}
		s.log.Warn("topic was deleted and created again; it is read from its oldest record", "position_before", stored.Next)
		s.startAt(s.start)
		return s.start, -1, nil
	}
	if current {
		s.id = stored.Stream // brokers report the ID of the topic only since they were upgraded
		s.position, s.saved = *stored, *stored
		s.status.Skipped, s.status.DeadLettered = stored.Skipped, stored.DeadLettered
		return stored.Next, int32(stored.LeaderEpoch), nil
	}
	next, known := s.r.sub.StartOf(s.at.topic, s.at.partition)
	if before := s.r.startID(s.at.topic); known && differ(before, s.topic) {
		if !again {
			return 0, 0, recreated(before, s.topic)
		}
		known = false
	}
	if !known {
		next = s.start
	}
	s.startAt(next)
	return next, -1, nil
}

// startAt begins a topic partition of which no position is stored.
func (s *stream) startAt(next int64) {
	s.id.TopicID = s.topic
	s.position, s.saved = machine.StreamPosition{Stream: s.id, Next: next, LeaderEpoch: -1}, machine.StreamPosition{}
}

func recreated(before, now [16]byte) error {
	return fault(subscription.Failed, subscription.TopicRecreated,
		"the topic was deleted and created again (its ID was %x and is now %x); seek to set where to start in the new one", before, now)
}

// differ reports whether two topic IDs are known and different.
func differ(a, b [16]byte) bool {
	return a != b && a != [16]byte{} && b != [16]byte{}
}
