package kafka

import (
	"errors"
	"net"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
)

// offer takes what was fetched for a session. What a poll has returned for an earlier one is ignored: it
// follows records that were discarded when that ended, and offsets may have gaps, so that the missing
// ones would not be noticed.
func (s *stream) offer(p *kgo.FetchPartition, topicID [16]byte, session uint64) {
	defer s.signal()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil || !s.fetched.expects(session) {
		return
	}
	if differ(topicID, s.topic) {
		s.failed = recreated(s.topic, topicID)
		return
	}
	if s.r.sub.OnRecreate == subscription.RecreatedFromEarliest && p.Err == nil && topicID == [16]byte{} {
		s.failed = fault(subscription.Failed, "", "on_recreate \"earliest\" needs brokers that fetch by the ID of a topic (Kafka 3.1 and later)")
		return
	}
	if p.Err != nil {
		if err := fetchError(p.Err, s.fetched.next); err != nil {
			s.failed = err
		}
		return
	}
	end := p.HighWatermark
	if !s.r.client.ReadUncommitted && p.LastStableOffset >= 0 {
		end = p.LastStableOffset
	}
	s.status.End = max(end, s.fetched.next)
	for _, rec := range p.Records {
		switch {
		case rec.Offset < s.fetched.next:
			s.failed = truncated("the broker sent the record at offset %d, but records up to offset %d had been read before", rec.Offset, s.fetched.next-1)
			return
		case rec.Offset > s.fetched.next && p.LogStartOffset > s.fetched.next:
			s.failed = expired(s.fetched.next, p.LogStartOffset)
			return
		}
		s.fetched.add(rec)
		size := recordBytes(rec)
		s.bytes += size
		s.r.e.memory.take(size)
	}
	if !s.fetched.paused && (len(s.fetched.records) >= maxStreamRecords || s.bytes >= s.r.e.memory.share()) {
		s.setPaused(true)
	}
}

// setPaused makes the client pause fetching, or continue. The caller holds s.mu: otherwise the client
// could continue before it has paused, and the topic partition would never be fetched again.
func (s *stream) setPaused(paused bool) {
	s.fetched.paused = paused
	at := map[string][]int32{s.at.topic: {s.at.partition}}
	if paused {
		s.client.PauseFetchPartitions(at)
	} else {
		s.client.ResumeFetchPartitions(at)
	}
}

func truncated(format string, args ...any) error {
	return fault(subscription.Blocked, subscription.LogTruncated, format+"; seek to set where to continue", args...)
}

func expired(next, start int64) error {
	return fault(subscription.Blocked, subscription.OffsetOutOfRange,
		"the next record is at offset %d, but the topic partition begins at %d: records have expired before they were read; seek to set where to continue", next, start)
}

// fetchError returns what an error of a fetch means for its stream, nil if the client handles
// it.
func fetchError(err error, next int64) error {
	var loss *kgo.ErrDataLoss
	var large *kgo.ErrDecompressTooLarge
	switch {
	case errors.As(err, &loss):
		return truncated("the broker has lost records: offset %d had been reached, and the log now ends at %d", loss.ConsumedTo, loss.ResetTo)
	case errors.Is(err, kerr.OffsetOutOfRange):
		return fault(subscription.Blocked, subscription.OffsetOutOfRange, "the broker does not have the offset %d; seek to set where to continue", next)
	case errors.Is(err, kerr.UnknownTopicID):
		return fault(subscription.Failed, subscription.TopicRecreated, "the topic was deleted, and perhaps created again; seek to set where to start")
	case errors.As(err, &large):
		return fault(subscription.Blocked, subscription.DecodeFailed, "%v; seek past it", err)
	case errors.Is(err, errInflated):
		return errAgain
	case errors.Is(err, kgo.ErrClientClosed):
		return nil
	}
	return brokerFault(err)
}

// brokerFault classifies an error of a broker or of the connection to it.
func brokerFault(err error) error {
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fault(subscription.Failed, subscription.TopicMissing, "the broker does not know the topic partition")
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed), errors.Is(err, kerr.GroupAuthorizationFailed),
		errors.Is(err, kerr.SaslAuthenticationFailed), errors.Is(err, kerr.UnsupportedSaslMechanism):
		return fault(subscription.Failed, subscription.NotAuthorized, "%v", err)
	case errors.Is(err, kerr.IllegalSaslState):
		return fault(subscription.Failed, subscription.NotAuthorized, "%v This port of the broker does not use SASL, or requires it: check security.protocol.", err)
	case errors.Is(err, kerr.CorruptMessage):
		return fault(subscription.Blocked, subscription.DecodeFailed, "%v", err)
	case kerr.IsRetriable(err):
		return fault(subscription.Failed, subscription.BrokerUnavailable, "the broker cannot serve the request at the moment: %v", err)
	}
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "remote error" { // of crypto/tls: an alert of the broker
		return fault(subscription.Failed, subscription.NotAuthorized, "%v: the broker does not accept the certificate of this client, or requires one: check ssl.certificate.pem and ssl.key.pem, or the files of ssl.certificate.location and ssl.key.location", err)
	}
	if errors.Is(err, errTokenRefused) {
		return fault(subscription.Failed, subscription.NotAuthorized, "%v", err)
	}
	var known *kerr.Error
	if errors.As(err, &known) {
		return fault(subscription.Failed, "", "%v", err)
	}
	return fault(subscription.Failed, subscription.BrokerUnreachable, "%v", err)
}
