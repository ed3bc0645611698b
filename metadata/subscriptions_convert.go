package metadata

import (
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"platform/internal/subscription"
	pb "platform/proto/metadata"
)

func readSubscriptions(tx *bbolt.Tx, st *state) error {
	var bad error
	err := errors.Join(
		each(tx, tableKafkaClusters, func(c *pb.KafkaCluster) { st.clusters = append(st.clusters, kafkaClusterFromProto(c)) }),
		each(tx, tableSubscriptions, func(s *pb.Subscription) {
			sub, err := subscriptionFromProto(s)
			if err != nil {
				bad = errors.Join(bad, fmt.Errorf("%s %s: %w", tableSubscriptions, s.GetId(), err))
			}
			st.subscriptions = append(st.subscriptions, sub)
		}),
	)
	return errors.Join(err, bad)
}

func kafkaClusterToProto(c *subscription.Cluster) *pb.KafkaCluster {
	return &pb.KafkaCluster{
		Name: c.Name, Properties: pairsToProto(c.Properties), CreatedAtMs: millis(c.CreatedAt), ModifiedAtMs: millis(c.ModifiedAt), Version: c.Version,
	}
}

func kafkaClusterFromProto(c *pb.KafkaCluster) subscription.Cluster {
	return subscription.Cluster{
		Name: c.GetName(), Properties: pairsFromProto(c.GetProperties()), CreatedAt: fromMillis(c.GetCreatedAtMs()),
		ModifiedAt: fromMillis(c.GetModifiedAtMs()), Version: c.GetVersion(),
	}
}

func subscriptionToProto(s *subscription.Subscription) *pb.Subscription {
	out := &pb.Subscription{
		Id: s.ID, Cluster: s.Cluster, Topics: s.Topics, Pattern: s.Pattern, Service: s.Service, Handler: s.Handler,
		Properties: pairsToProto(s.Properties), Ordering: uint32(s.Ordering), OnError: uint32(s.OnError), DeadLetterTopic: s.DeadLetterTopic,
		Tombstones: uint32(s.Tombstones), OnRecreate: uint32(s.OnRecreate), AllHeaders: s.AllHeaders, Headers: s.Headers, Scope: s.Scope.String(), LimitKey: s.LimitKey.String(),
		MaxInFlight: s.MaxInFlight, Incarnation: s.Incarnation, Resolved: s.Resolved, Draining: s.Draining,
		CreatedAtMs: millis(s.CreatedAt), ModifiedAtMs: millis(s.ModifiedAt), Version: s.Version,
		Start: &pb.SubscriptionStart{Kind: uint32(s.Start.Kind), Otherwise: uint32(s.Start.Otherwise)},
	}
	if s.Start.Kind == subscription.StartTimestamp {
		out.Start.TimestampMs = s.Start.Timestamp.UnixMilli()
	}
	for i := range s.Start.Offsets {
		out.Start.Offsets = append(out.Start.Offsets, topicOffsetsToProto(&s.Start.Offsets[i]))
	}
	for i := range s.Offsets {
		start := topicOffsetsToProto(&s.Offsets[i].TopicOffsets)
		if s.Offsets[i].ID != [16]byte{} {
			start.TopicId = s.Offsets[i].ID[:]
		}
		out.Offsets = append(out.Offsets, start)
	}
	if s.Paused != nil {
		out.Paused = &pb.SubscriptionPause{By: s.Paused.By, Reason: s.Paused.Reason, AtMs: millis(s.Paused.At)}
	}
	return out
}

func topicOffsetsToProto(t *subscription.TopicOffsets) *pb.TopicStart {
	out := &pb.TopicStart{Topic: t.Topic}
	for _, o := range t.Offsets {
		out.Partitions, out.Offsets = append(out.Partitions, o.Partition), append(out.Offsets, o.Offset)
	}
	return out
}

func subscriptionFromProto(in *pb.Subscription) (subscription.Subscription, error) {
	s := subscription.Subscription{
		ID:         in.GetId(),
		Source:     subscription.Source{Cluster: in.GetCluster(), Topics: in.GetTopics(), Pattern: in.GetPattern()},
		Sink:       subscription.Sink{Service: in.GetService(), Handler: in.GetHandler()},
		Properties: pairsFromProto(in.GetProperties()),
		Options: subscription.Options{
			Ordering: subscription.Ordering(in.GetOrdering()), OnError: subscription.OnError(in.GetOnError()), DeadLetterTopic: in.GetDeadLetterTopic(),
			Tombstones: subscription.Tombstones(in.GetTombstones()), OnRecreate: subscription.OnRecreate(in.GetOnRecreate()), AllHeaders: in.GetAllHeaders(), Headers: in.GetHeaders(),
			MaxInFlight: in.GetMaxInFlight(),
		},
		Incarnation: in.GetIncarnation(), Resolved: in.GetResolved(), Draining: in.GetDraining(),
		CreatedAt: fromMillis(in.GetCreatedAtMs()), ModifiedAt: fromMillis(in.GetModifiedAtMs()), Version: in.GetVersion(),
		Start: subscription.Start{Kind: subscription.StartKind(in.GetStart().GetKind()), Otherwise: subscription.StartKind(in.GetStart().GetOtherwise())},
	}
	if s.Start.Kind == subscription.StartTimestamp {
		s.Start.Timestamp = time.UnixMilli(in.GetStart().GetTimestampMs()).UTC()
	}
	for _, t := range in.GetStart().GetOffsets() {
		s.Start.Offsets = append(s.Start.Offsets, topicOffsetsFromProto(t))
	}
	for _, t := range in.GetOffsets() {
		start := subscription.TopicStart{TopicOffsets: topicOffsetsFromProto(t)}
		copy(start.ID[:], t.GetTopicId())
		s.Offsets = append(s.Offsets, start)
	}
	if p := in.GetPaused(); p != nil {
		s.Paused = &subscription.Pause{By: p.GetBy(), Reason: p.GetReason(), At: fromMillis(p.GetAtMs())}
	}
	var err, err2 error
	s.Scope, err = subscription.ParseTemplate(in.GetScope())
	s.LimitKey, err2 = subscription.ParseTemplate(in.GetLimitKey())
	return s, errors.Join(err, err2)
}

func topicOffsetsFromProto(in *pb.TopicStart) subscription.TopicOffsets {
	out := subscription.TopicOffsets{Topic: in.GetTopic()}
	for i, p := range in.GetPartitions() {
		if i < len(in.GetOffsets()) {
			out.Offsets = append(out.Offsets, subscription.PartitionOffset{Partition: p, Offset: in.GetOffsets()[i]})
		}
	}
	return out
}
