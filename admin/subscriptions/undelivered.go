package subscriptions

import (
	"cmp"
	"context"
	"slices"

	"platform/admin/rest"
	"platform/internal/subscription"
)

// BlockedPartition is a topic partition whose delivery is blocked by a record until an operator
// retries or skips it. The failure inbox lists it beside failed invocations.
type BlockedPartition struct {
	Subscription string         `json:"subscription_id"`
	Source       string         `json:"source"`
	Service      string         `json:"service"`
	Handler      string         `json:"handler"`
	Topic        string         `json:"topic"`
	Partition    int32          `json:"partition"`
	Position     int64          `json:"position"`
	Reason       string         `json:"reason"`
	Message      string         `json:"message"`
	Since        rest.Timestamp `json:"since"`
	LagRecords   *int64         `json:"lag_records,omitempty"`
	Record       *blockedView   `json:"record,omitempty"`
}

// DeadLetterCount is a subscription with records that could not be delivered and that the server
// keeps.
type DeadLetterCount struct {
	Subscription string `json:"subscription_id"`
	Source       string `json:"source"`
	Service      string `json:"service"`
	Handler      string `json:"handler"`
	Records      uint64 `json:"records"`
}

// maxBlocked limits the blocked topic partitions in a page of failures.
const maxBlocked = 1000

// Undelivered returns the blocked topic partitions, the most recent first, and the subscriptions
// with dead letters. Those of other services and handlers are omitted, if any are given.
func (s *Server) Undelivered(ctx context.Context, services, handlers []string) (found []BlockedPartition, dead []DeadLetterCount) {
	list, _ := s.registry.Subscriptions()
	if len(list) == 0 {
		return nil, nil
	}
	statuses := s.cfg.Streams.Statuses(ctx, "", false)
	for i := range list {
		sub := &list[i]
		if len(services) > 0 && !slices.Contains(services, sub.Service) || len(handlers) > 0 && !slices.Contains(handlers, sub.Handler) {
			continue
		}
		_, known := s.kafkaCluster(sub.Cluster)
		merged := subscription.Merge(sub, statuses.ByID[sub.ID], known)
		if merged.DeadLetters > 0 {
			dead = append(dead, DeadLetterCount{sub.ID, sub.Source.String(), sub.Service, sub.Handler, merged.DeadLetters})
		}
		for j := range merged.Partitions {
			if merged.Partitions[j].State == subscription.Blocked {
				found = append(found, viewBlocked(sub, &merged.Partitions[j]))
			}
		}
	}
	slices.SortStableFunc(found, func(a, b BlockedPartition) int { return cmp.Compare(b.Since, a.Since) })
	return found[:min(len(found), maxBlocked)], dead
}

func viewBlocked(sub *subscription.Subscription, p *subscription.PartitionStatus) BlockedPartition {
	view := viewTopicPartition(sub, p)
	return BlockedPartition{
		Subscription: sub.ID, Source: sub.Source.String(), Service: sub.Service, Handler: sub.Handler, Topic: p.Topic, Partition: p.Partition,
		Position: p.Position, Reason: view.Reason, Message: view.Message, Since: rest.TimestampOf(p.Since), LagRecords: view.LagRecords, Record: view.Blocked,
	}
}
