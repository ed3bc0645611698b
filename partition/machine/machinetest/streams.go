package machinetest

import (
	"cmp"
	"fmt"
	"iter"
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
func (s *State) Ingested(stream machine.Stream) (machine.Ingested, error) {
	if row, ok := s.ingested[stream]; ok {
		return row, nil
	}
	return machine.Ingested{Last: machine.NoOffset, Before: machine.NoOffset}, nil
}

// PutIngested implements machine.State.
func (s *State) PutIngested(stream machine.Stream, row machine.Ingested) {
	if before, ok := s.ingested[stream]; ok && (row.Generation < before.Generation || row.Generation == before.Generation && row.Last <= before.Last) {
		s.fault("row %v of %v after %v", row, stream, before)
	}
	s.ingested[stream] = row
}

// FirstIncarnation implements machine.State.
func (s *State) FirstIncarnation(subscription string) (uint64, error) {
	return s.first[subscription], nil
}

// Position implements machine.State.
func (s *State) Position(stream machine.Stream) (*machine.StreamPosition, error) {
	return s.positions[topicPartitionOf(stream)], nil
}

// Positions returns all positions.
func (s *State) Positions() iter.Seq[*machine.StreamPosition] { return maps.Values(s.positions) }

// PutPosition implements machine.State.
func (s *State) PutPosition(p *machine.StreamPosition) { s.positions[topicPartitionOf(p.Stream)] = p }

// DeleteStreams implements machine.State.
func (s *State) DeleteStreams(subscription string, before uint64, positions bool) {
	maps.DeleteFunc(s.ingested, func(stream machine.Stream, _ machine.Ingested) bool {
		return stream.Subscription == subscription && stream.Incarnation < before
	})
	maps.DeleteFunc(s.positions, func(t topicPartition, _ *machine.StreamPosition) bool {
		return t.subscription == subscription && positions
	})
	if positions {
		delete(s.letters, subscription)
		delete(s.totals, subscription)
	}
	s.first[subscription] = before
}

// DeadLetter implements machine.State.
func (s *State) DeadLetter(subscription string, id machine.DeadLetterID) (*machine.DeadLetter, error) {
	return s.letters[subscription][id], nil
}

// PutDeadLetter implements machine.State.
func (s *State) PutDeadLetter(l *machine.DeadLetter) {
	if s.letters[l.Stream.Subscription] == nil {
		s.letters[l.Stream.Subscription] = map[machine.DeadLetterID]*machine.DeadLetter{}
	}
	s.letters[l.Stream.Subscription][l.ID()] = l
}

// DeadLettersAfter returns up to limit dead letters of a subscription behind one, or from the first
// on if that is nil.
func (s *State) DeadLettersAfter(subscription string, id *machine.DeadLetterID, limit int) (found []*machine.DeadLetter) {
	compare := func(a, b machine.DeadLetterID) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
	}
	for each, l := range s.letters[subscription] {
		if id == nil || compare(each, *id) > 0 {
			found = append(found, l)
		}
	}
	slices.SortFunc(found, func(a, b *machine.DeadLetter) int { return compare(a.ID(), b.ID()) })
	return found[:min(limit, len(found))]
}

// DeleteDeadLetter implements machine.State.
func (s *State) DeleteDeadLetter(subscription string, id machine.DeadLetterID) {
	delete(s.letters[subscription], id)
}

// DeadLetters implements machine.State.
func (s *State) DeadLetters(subscription string) (machine.DeadLetters, error) {
	return s.totals[subscription], nil
}

// PutDeadLetters implements machine.State.
func (s *State) PutDeadLetters(subscription string, total machine.DeadLetters) {
	s.totals[subscription] = total
	if total == (machine.DeadLetters{}) {
		delete(s.totals, subscription)
	}
}

func streamName(s machine.Stream) string {
	return fmt.Sprintf("%s.%d %s-%x/%d", s.Subscription, s.Incarnation, s.Topic, s.TopicID[:2], s.Partition)
}

// streams returns the rows about streams, sorted.
func (s *State) streams() (rows []Row) {
	for stream, row := range s.ingested {
		text := fmt.Sprint(row.Last)
		if row.Generation > 0 {
			text += fmt.Sprintf(" generation=%d before=%d", row.Generation, row.Before)
		}
		rows = append(rows, Row{Key: "ingested " + streamName(stream), Text: text})
	}
	for subscription, first := range s.first {
		rows = append(rows, Row{Key: "forgotten " + subscription, Text: fmt.Sprintf("before %d", first)})
	}
	for t, p := range s.positions {
		text := fmt.Sprintf("%s next=%d skipped=%d dead-lettered=%d at=%d", streamName(p.Stream), p.Next, p.Skipped, p.DeadLettered, p.At)
		if p.Blocked != nil {
			text += fmt.Sprintf(" blocked=%d %s", p.Blocked.Offset, p.Blocked.Reason)
		}
		rows = append(rows, Row{Key: fmt.Sprintf("position %s %s/%d", t.subscription, t.topic, t.partition), Text: text})
	}
	for subscription, all := range s.letters {
		for id, l := range all {
			text := fmt.Sprintf("%s %s key=%q value=%q at=%d", streamName(l.Stream), l.Reason, l.Key, l.Value, l.At)
			rows = append(rows, Row{Key: fmt.Sprintf("dead letter %s %s/%d@%d", subscription, id.Topic, id.Partition, id.Offset), Text: text})
		}
	}
	for subscription, total := range s.totals {
		rows = append(rows, Row{Key: "dead letters " + subscription, Text: fmt.Sprintf("records=%d bytes=%d", total.Records, total.Bytes)})
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.Key, b.Key) })
	return rows
}
