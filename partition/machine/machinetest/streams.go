package machinetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"platform/partition/machine"
)

// topicPartition is the key of a position.
type topicPartition struct {
	subscription, topic string
	partition           uint32
}

func topicPartitionOf(s machine.Stream) topicPartition {
	return topicPartition{s.Subscription, s.Topic, s.Partition}
}

// Ingested implements machine.State.
func (s *State) Ingested(stream machine.Stream) (int64, error) {
	if offset, ok := s.ingested[stream]; ok {
		return offset, nil
	}
	return machine.NoOffset, nil
}

// PutIngested implements machine.State.
func (s *State) PutIngested(stream machine.Stream, offset int64) {
	if last, ok := s.ingested[stream]; ok && offset <= last {
		s.fault("record %d of %v after %d", offset, stream, last)
	}
	s.ingested[stream] = offset
}

// Position implements machine.State.
func (s *State) Position(stream machine.Stream) (*machine.StreamPosition, error) {
	return s.positions[topicPartitionOf(stream)], nil
}

// PutPosition implements machine.State.
func (s *State) PutPosition(p *machine.StreamPosition) { s.positions[topicPartitionOf(p.Stream)] = p }

// DeleteStreams implements machine.State.
func (s *State) DeleteStreams(subscription string, before uint64) {
	maps.DeleteFunc(s.ingested, func(stream machine.Stream, _ int64) bool {
		return stream.Subscription == subscription && (before == 0 || stream.Incarnation < before)
	})
	maps.DeleteFunc(s.positions, func(t topicPartition, _ *machine.StreamPosition) bool {
		return t.subscription == subscription && before == 0
	})
}

func streamName(s machine.Stream) string {
	return fmt.Sprintf("%s.%d %s-%x/%d", s.Subscription, s.Incarnation, s.Topic, s.TopicID[:2], s.Partition)
}

// streams returns the rows about streams, sorted.
func (s *State) streams() (rows []Row) {
	for stream, offset := range s.ingested {
		rows = append(rows, Row{Key: "ingested " + streamName(stream), Text: fmt.Sprint(offset)})
	}
	for t, p := range s.positions {
		text := fmt.Sprintf("%s next=%d skipped=%d dead-lettered=%d at=%d", streamName(p.Stream), p.Next, p.Skipped, p.DeadLettered, p.At)
		if p.Blocked != nil {
			text += fmt.Sprintf(" blocked=%d %s", p.Blocked.Offset, p.Blocked.Reason)
		}
		rows = append(rows, Row{Key: fmt.Sprintf("position %s %s/%d", t.subscription, t.topic, t.partition), Text: text})
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Key, b.Key) })
	return rows
}
