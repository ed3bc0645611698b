package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
	"platform/partition/machine"
)

// blockedRecord is the record that stops a stream.
type blockedRecord struct {
	rec      *kgo.Record   // without a value, key and headers that are too large to be held
	whole    bool          // rec has all of them
	decision chan decision // has capacity 1
	decided  bool          // covered by stream.mu
}

// decision is an operator's decision about a blocked record.
type decision struct {
	skip   bool       // otherwise it is retried
	stored chan error // receives the outcome; has capacity 1
}

// recheckDelay is how often a blocked record is tried again: its handler may be registered by
// now.
const recheckDelay = 2 * time.Second

// maxHeld bounds what is held of a blocked record. The rest is read again when it is needed.
const maxHeld = 16 << 10

// held returns what is held of a record, which does not share memory with its batch.
func held(rec *kgo.Record) (c *kgo.Record, whole bool) {
	if whole = recordBytes(rec) <= maxHeld; whole {
		return detached(rec), true
	}
	without := *rec
	without.Key, without.Value, without.Headers = nil, nil, nil
	return &without, false
}

// block waits until a record can be converted or an operator decides. Meanwhile no other records of
// the topic partition are held.
func (s *stream) block(ctx context.Context, rec *kgo.Record, why *unusable) error {
	b := &blockedRecord{decision: make(chan decision, 1)}
	b.rec, b.whole = held(rec)
	s.drop()
	size := recordBytes(b.rec)
	s.r.e.memory.take(size)
	defer s.r.e.memory.release(size)
	s.mu.Lock()
	since := time.Now().UnixMilli()
	if old := s.position.Blocked; old != nil && old.Offset == rec.Offset {
		since = old.Since
	}
	s.blocked = b
	s.position.Blocked = &machine.BlockedRecord{Offset: rec.Offset, Reason: string(why.reason), Message: clip(why.message), Since: since}
	s.setState(subscription.Blocked, why.reason, fmt.Sprintf("the record at offset %d cannot be delivered: %s", rec.Offset, why.message))
	s.status.Since = time.UnixMilli(since)
	s.status.LastError, s.status.LastErrorAt = why.message, time.Now()
	s.status.Blocked = &subscription.BlockedRecord{
		Offset: rec.Offset, Timestamp: shown(rec.Timestamp), Reason: why.reason, Message: why.message, KeySize: len(rec.Key), ValueSize: len(rec.Value),
	}
	s.mu.Unlock()
	s.log.Warn("record blocks its topic partition; retry or skip it", "offset", rec.Offset, "reason", string(why.reason), "err", why.message)
	s.store(ctx, true)
	defer s.refuse(b)
	recheck := time.NewTicker(recheckDelay)
	defer recheck.Stop()
	for {
		select {
		case d := <-b.decision:
			err := s.unblock(ctx, d.skip)
			if errors.Is(err, errNotStored) {
				d.stored <- errUnknownOutcome
			} else {
				d.stored <- nil
			}
			return err
		case <-recheck.C:
			if b.whole && s.usable(b.rec) || !b.whole && why.reason == subscription.HandlerNotFound && s.hasHandler() || why.room != nil && s.hasRoom(why.room) {
				return s.unblock(ctx, false)
			}
		case <-s.stopping:
			return errStopped
		case <-ctx.Done():
			return errStopped
		}
	}
}

// maxMessage bounds the messages that positions contain.
const maxMessage = 1000

func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "") }

// drop stops fetching and discards the queue.
func (s *stream) drop() {
	s.mu.Lock()
	s.fetched.end()
	released := s.bytes
	s.bytes = 0
	s.mu.Unlock()
	s.r.e.memory.release(released)
	s.r.unassign(s.at)
}

// usable reports whether a record can be converted now.
func (s *stream) usable(rec *kgo.Record) bool {
	now, bad := s.conv.current()
	if bad == nil {
		_, _, bad = s.conv.convert(&s.id, &now, rec)
	}
	return bad == nil
}

// hasHandler reports whether the handler can be called now.
func (s *stream) hasHandler() bool {
	_, bad := s.conv.handler(s.r.sub.Service, s.r.sub.Handler)
	return bad == nil
}

// unblock ends the wait of a stream. It returns errAgain.
func (s *stream) unblock(ctx context.Context, skip bool) error {
	s.mu.Lock()
	offset := s.blocked.rec.Offset
	s.blocked, s.status.Blocked, s.position.Blocked = nil, nil, nil
	s.setState(subscription.Starting, "", "")
	if skip {
		s.window.next = offset + 1
		s.position.Skipped++
		s.status.Skipped = s.position.Skipped
		s.r.e.cfg.Metrics.record(s.r.sub.ID, skipped)
	}
	s.mu.Unlock()
	if !s.store(ctx, true) {
		return errNotStored
	}
	if skip {
		s.log.Info("record was skipped by an operator", "offset", offset)
	}
	return errAgain
}

// errUnknownOutcome is the outcome of a decision whose position was not stored in time: it may be
// stored later.
var errUnknownOutcome = errors.New("whether the decision is stored is not known; the status of the subscription shows if the record still blocks")

// decide passes an operator's decision about the record that blocks the stream, and waits until it
// is stored.
func (s *stream) decide(ctx context.Context, offset int64, skip bool) error {
	d := decision{skip: skip, stored: make(chan error, 1)}
	s.mu.Lock()
	if s.blocked == nil || s.blocked.rec.Offset != offset || s.blocked.decided {
		s.mu.Unlock()
		return subscription.ErrNotBlocked
	}
	s.blocked.decided = true
	s.blocked.decision <- d
	s.mu.Unlock()
	select {
	case err := <-d.stored:
		return err
	case <-ctx.Done():
		return errUnknownOutcome
	}
}

// refuse ends the wait for a decision about b. One that arrived too late has had no effect.
func (s *stream) refuse(b *blockedRecord) {
	s.mu.Lock()
	if s.blocked == b {
		s.blocked = nil
	}
	s.mu.Unlock()
	select {
	case d := <-b.decision:
		d.stored <- subscription.ErrNotBlocked
	default:
	}
}
