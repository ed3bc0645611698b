package kafka

import (
	"context"
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
type decision uint8

const (
	retryRecord decision = iota + 1
	skipRecord
)

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
	recheck := time.NewTicker(recheckDelay)
	defer recheck.Stop()
	for {
		select {
		case d := <-b.decision:
			return s.unblock(ctx, d)
		case <-recheck.C:
			if b.whole && s.usable(b.rec) || !b.whole && why.reason == subscription.HandlerNotFound && s.hasHandler() || why.room != nil && s.hasRoom(why.room) {
				return s.unblock(ctx, retryRecord)
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
	s.fetching, s.paused = false, false
	released := s.bytes
	s.queue, s.bytes = nil, 0
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
func (s *stream) unblock(ctx context.Context, d decision) error {
	s.mu.Lock()
	offset := s.blocked.rec.Offset
	s.blocked, s.status.Blocked, s.position.Blocked = nil, nil, nil
	s.setState(subscription.Starting, "", "")
	if d == skipRecord {
		s.next = offset + 1
		s.position.Skipped++
		s.status.Skipped = s.position.Skipped
		s.r.e.cfg.Metrics.record(s.r.sub.ID, skipped)
	}
	s.mu.Unlock()
	if !s.store(ctx, true) {
		return errNotStored
	}
	if d == skipRecord {
		s.log.Info("record was skipped by an operator", "offset", offset)
	}
	return errAgain
}

// decide passes an operator's decision about the record that blocks the stream.
func (s *stream) decide(offset int64, d decision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocked == nil || s.blocked.rec.Offset != offset || s.blocked.decided {
		return subscription.ErrNotBlocked
	}
	s.blocked.decided = true
	s.blocked.decision <- d
	return nil
}
