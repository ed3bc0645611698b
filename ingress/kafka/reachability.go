package kafka

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
)

// reachability records to which brokers a client cannot connect. The client retries fetches by
// itself and does not report that it cannot.
type reachability struct {
	mu   sync.Mutex // covers the fields below
	errs map[int32]error
}

var _ kgo.HookBrokerConnect = (*reachability)(nil)

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (r *reachability) OnBrokerConnect(broker kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if errors.Is(err, context.Canceled) {
		return // says nothing about the broker
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		delete(r.errs, broker.NodeID)
	case r.errs == nil:
		r.errs = map[int32]error{broker.NodeID: err}
	default:
		r.errs[broker.NodeID] = err
	}
}

// problem returns why the last connection to a broker failed, nil if it did not.
func (r *reachability) problem(broker int32) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errs[broker]
}

// late returns the error of a request to which no broker responded in time.
func (r *reachability) late() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := "the brokers did not respond in time"
	if brokers := slices.Sorted(maps.Keys(r.errs)); len(brokers) > 0 {
		text += ": " + r.errs[brokers[0]].Error()
	}
	return &subscription.BrokerError{Reason: subscription.BrokerUnreachable, Message: text}
}

// reportUnreachable sets the states of the fetched topic partitions whose brokers cannot be reached,
// and of those whose brokers can be reached again. It returns one of the problems, nil if there is
// none.
func (r *reader) reportUnreachable(topics map[string]topicInfo) (problem error) {
	r.mu.Lock()
	streams := slices.Collect(maps.Values(r.streams))
	r.mu.Unlock()
	for _, s := range streams {
		if err := s.reportReachability(r.unreachable(topics, s.at)); err != nil {
			problem = err
		}
	}
	return problem
}

// unreachable returns why the broker of a topic partition cannot be reached, nil if it can.
func (r *reader) unreachable(topics map[string]topicInfo, at topicPartition) error {
	p, ok := topics[at.topic].details[at.partition]
	switch {
	case !ok:
		return nil
	case p.Leader < 0:
		return fault(subscription.Failed, subscription.BrokerUnreachable, "the topic partition %s/%d has no leader: %v", at.topic, at.partition, p.Err)
	}
	if err := r.reach.problem(p.Leader); err != nil {
		return fault(subscription.Failed, subscription.BrokerUnreachable, "the broker %d, which leads %s/%d, cannot be reached: %v", p.Leader, at.topic, at.partition, err)
	}
	return nil
}

// reportReachability sets the state of a stream that the client fetches, and returns the problem if
// the stream has it.
func (s *stream) reportReachability(problem error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.status.State == subscription.Failed && s.status.Reason == subscription.BrokerUnreachable
	switch {
	case !s.fetched.active || s.failed != nil:
		return nil
	case problem != nil:
		if s.status.State == subscription.Running || known {
			f := asFault(problem)
			s.setState(f.state, f.reason, f.message)
			s.status.LastError, s.status.LastErrorAt = f.message, time.Now()
		}
	case known:
		s.setState(subscription.Running, "", "")
	}
	return problem
}
