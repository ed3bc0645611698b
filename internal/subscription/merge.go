package subscription

import (
	"cmp"
	"slices"
)

// Merge combines what nodes report about a subscription. clusterKnown means that its Kafka cluster
// exists. The topic partitions are sorted; if several nodes report the same one, because its leader
// has just changed, the report with the higher position is used.
func Merge(s *Subscription, statuses []Status, clusterKnown bool) Status {
	out := Status{Subscription: s.ID, Incarnation: s.Incarnation}
	for i := range statuses {
		st := &statuses[i]
		if st.Incarnation != s.Incarnation {
			continue // not noticed the seek yet
		}
		out.consider(st.State, st.Reason, st.Message, st)
		out.Partitions = append(out.Partitions, st.Partitions...)
		out.DeadLetters += st.DeadLetters
	}
	slices.SortFunc(out.Partitions, func(a, b PartitionStatus) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(b.Position, a.Position))
	})
	out.Partitions = slices.CompactFunc(out.Partitions, func(a, b PartitionStatus) bool { return a.Topic == b.Topic && a.Partition == b.Partition })
	for i := range out.Partitions {
		p := &out.Partitions[i]
		out.consider(p.State, p.Reason, p.Message, &Status{Since: p.Since})
	}
	switch {
	case s.Draining:
		out.State, out.Reason, out.Message = Draining, "", ""
	case !clusterKnown:
		out.State, out.Reason, out.Message = Orphaned, "", "the Kafka cluster "+s.Cluster+" does not exist; add it again, or delete the subscription"
	case s.Paused != nil:
		out.State, out.Reason, out.Message, out.Since = Paused, "", s.Paused.Reason, s.Paused.At
	case out.State == "":
		out.State = Starting
	}
	return out
}

// consider adopts a state that is more severe.
func (s *Status) consider(state State, reason Reason, message string, from *Status) {
	if state.MoreSevere(s.State) {
		s.State, s.Reason, s.Message, s.Since = state, reason, message, from.Since
	}
}
