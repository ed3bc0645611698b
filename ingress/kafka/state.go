package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
)

// faultError is why a subscription or one of its topic partitions is not read.
type faultError struct {
	state   subscription.State
	reason  subscription.Reason
	message string
}

func (f *faultError) Error() string { return f.message }

func fault(state subscription.State, reason subscription.Reason, format string, args ...any) error {
	return &faultError{state, reason, fmt.Sprintf(format, args...)}
}

// asFault returns an error as a fault.
func asFault(err error) *faultError {
	var f *faultError
	if errors.As(err, &f) {
		return f
	}
	return &faultError{subscription.Failed, "", err.Error()}
}

// setState changes the state of a stream. The caller holds s.mu.
func (s *stream) setState(state subscription.State, reason subscription.Reason, message string) {
	if s.status.State != state || s.status.Reason != reason {
		s.status.Since = time.Now()
	}
	s.status.State, s.status.Reason, s.status.Message = state, reason, message
}

// report records why the stream has stopped.
func (s *stream) report(err error) {
	f := asFault(err)
	s.mu.Lock()
	changed := s.status.State != f.state || s.status.Reason != f.reason
	s.setState(f.state, f.reason, f.message)
	s.status.LastError, s.status.LastErrorAt = f.message, time.Now()
	s.mu.Unlock()
	if changed && f.state != subscription.Starting {
		s.log.Warn("subscription does not read a topic partition", "state", string(f.state), "reason", string(f.reason), "err", f.message)
	}
}

// store writes the position, if it has changed. It returns false if that failed.
func (s *stream) store(ctx context.Context, all bool) bool {
	s.mu.Lock()
	p := s.position
	p.Next, p.LeaderEpoch = s.window.next, int64(s.window.epoch)
	saved := s.saved
	s.mu.Unlock()
	p.At = saved.At
	if p == saved || !all && p.Next == saved.Next {
		return true
	}
	began := time.Now()
	if err := s.owner.PutPosition(ctx, p); err != nil {
		if ctx.Err() == nil {
			s.log.Debug("could not store the position in a topic partition", "position", p.Next, "err", err)
		}
		return false
	}
	s.r.e.cfg.Metrics.stored(time.Since(began))
	s.mu.Lock()
	s.saved = p
	s.mu.Unlock()
	s.r.toMirror(s.at, p)
	return true
}

// storeIfDue writes the position if it is far behind.
func (s *stream) storeIfDue(ctx context.Context) {
	s.mu.Lock()
	due := s.window.next-s.saved.Next >= storeRecords
	s.mu.Unlock()
	if due {
		s.store(ctx, false)
	}
}

// unusable handles a record that cannot become an invocation. Everything before it is stored. The
// position moves past it before anything after it is sent, so that no other leader decides
// differently.
func (s *stream) unusable(ctx context.Context, why *unusable) error {
	s.mu.Lock()
	rec := s.fetched.records[0]
	s.mu.Unlock()
	switch s.r.sub.OnError {
	case subscription.Skip:
		s.log.Warn("record was skipped", "offset", rec.Offset, "reason", string(why.reason), "err", why.message)
		return s.leaveOut(ctx, skipped)
	case subscription.DeadLetters:
		if s.r.sub.DeadLetterTopic == "" {
			return s.setAside(ctx, rec, why)
		}
		switch err := s.r.deadLetter(ctx, rec, why); {
		case errors.Is(err, kerr.MessageTooLarge):
			return s.block(ctx, rec, bad(why.reason, "%s; it is also too large for the dead-letter topic: raise max.message.bytes of that topic and retry it, or skip it", why.message))
		case err != nil:
			return s.notWritten(rec, why, err)
		}
		return s.leaveOut(ctx, deadLettered)
	}
	return s.block(ctx, rec, why)
}

// notWritten returns the error about a record that could not be written to the dead-letter topic. Its
// reason is that of the failed write: the record waits for it.
func (s *stream) notWritten(rec *kgo.Record, why *unusable, err error) error {
	reason := why.reason
	if !errors.Is(err, errReadsDeadLetters) {
		reason = cmp.Or(asFault(brokerFault(err)).reason, reason)
	}
	return fault(subscription.Failed, reason, "the record at offset %d cannot be delivered (%s) nor written to the dead-letter topic %s: %v",
		rec.Offset, why.message, s.r.sub.DeadLetterTopicOf(rec.Topic), err)
}

// leaveOut moves the position past the first fetched record.
func (s *stream) leaveOut(ctx context.Context, how outcome) error {
	s.mu.Lock()
	s.window.end(s.take(), how)
	if how == skipped {
		s.position.Skipped++
	} else {
		s.position.DeadLettered++
	}
	s.status.Skipped, s.status.DeadLettered = s.position.Skipped, s.position.DeadLettered
	s.settle()
	s.mu.Unlock()
	if !s.store(ctx, true) {
		return errNotStored
	}
	return nil
}

// errNotStored ends a session, which the next one repeats from the stored position.
var errNotStored = fault(subscription.Failed, "", "the position could not be stored")

// lastTime is the last time that RFC 3339 can express, whose years have four digits.
var lastTime = time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC)

// shown returns the timestamp of a record for operators. Producers can write any; those in
// microseconds are beyond what clients of the API can parse.
func shown(t time.Time) time.Time {
	switch {
	case t.After(lastTime):
		return lastTime
	case t.Year() < 1:
		return time.Time{}
	}
	return t
}

// snapshot describes a stream for operators.
func (s *stream) snapshot() subscription.PartitionStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	st.InFlight = uint32(s.window.inFlight) //nolint:gosec // bounded by max_in_flight
	if st.End >= 0 {
		st.End = max(st.End, st.Position)
	}
	if st.Lag() == 0 && st.State == subscription.Failed && st.Reason == subscription.BrokerUnreachable {
		st.End = -1 // records may have been produced since then; a lag above 0 remains a lower bound
	}
	if st.Lag() > 0 {
		oldest := st.LastRecordAt
		if s.blocked != nil {
			oldest = s.blocked.rec.Timestamp
		} else if len(s.window.records) > 0 {
			oldest = s.window.records[0].timestamp
		} else if len(s.fetched.records) > 0 {
			oldest = s.fetched.records[0].Timestamp
		}
		if !oldest.IsZero() {
			st.LagSeconds = max(0, time.Since(oldest).Seconds())
		}
	}
	return st
}
