package kafka

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"platform/internal/subscription"
	"platform/internal/units"
	"platform/partition/machine"
)

// mostDeadLetters bounds what a partition keeps of one subscription.
var mostDeadLetters = machine.DeadLetters{Records: subscription.MaxDeadLetters, Bytes: subscription.MaxDeadLetterBytes}

// setAside stores a record that cannot become an invocation, and moves the position past it. If
// there is no room, the record blocks its topic partition until there is.
func (s *stream) setAside(ctx context.Context, rec *kgo.Record, why *unusable) error {
	letter := deadLetterOf(s.id, rec, why)
	if size := letter.Size(); size > subscription.MaxDeadLetter {
		return s.block(ctx, rec, bad(why.reason, "%s; it has %s, and only records of up to %s are kept as dead letters without a dead_letter_topic",
			why.message, units.ByteSize(size), units.ByteSize(subscription.MaxDeadLetter)))
	}
	s.mu.Lock()
	p := s.position
	s.mu.Unlock()
	p.Next, p.LeaderEpoch, p.Blocked = rec.Offset+1, int64(rec.LeaderEpoch), nil
	p.DeadLettered++
	full, err := s.owner.SetAside(ctx, &machine.SetAside{Position: p, Letter: *letter, Most: mostDeadLetters})
	switch {
	case err != nil:
		s.log.Debug("could not set a record aside", "offset", rec.Offset, "err", err)
		return errNotStored
	case full:
		return s.block(ctx, rec, &unusable{why.reason, why.message + "; there is no room for further dead letters: retry or drop some", roomFor(letter)})
	}
	s.log.Warn("record was set aside as a dead letter", "offset", rec.Offset, "reason", string(why.reason), "err", why.message)
	s.mu.Lock()
	s.window.end(s.take(), deadLettered)
	p.At = s.saved.At
	s.position, s.saved = p, p
	s.status.DeadLettered = p.DeadLettered
	s.settle()
	s.mu.Unlock()
	s.r.toMirror(s.at, p)
	return nil
}

func deadLetterOf(id machine.Stream, rec *kgo.Record, why *unusable) *machine.DeadLetter {
	rec = detached(rec)
	l := &machine.DeadLetter{
		Stream: id, Offset: rec.Offset, Timestamp: rec.Timestamp.UnixMilli(), Key: rec.Key, NoKey: rec.Key == nil, Value: rec.Value, NoValue: rec.Value == nil,
		Reason: string(why.reason), Message: clip(why.message),
	}
	for i := range rec.Headers {
		l.Headers = append(l.Headers, machine.RecordHeader{Name: rec.Headers[i].Key, Value: rec.Headers[i].Value})
	}
	return l
}

// room is the space that a dead letter needs.
type room struct {
	id   machine.DeadLetterID
	size uint64
}

func roomFor(l *machine.DeadLetter) *room { return &room{l.ID(), l.Size()} }

// hasRoom reports whether a dead letter can be stored now.
func (s *stream) hasRoom(r *room) bool {
	other, err := s.owner.DeadLetter(s.id.Subscription, r.id)
	if err != nil || other != nil && other.Stream.TopicID != s.id.TopicID {
		return false
	}
	total, err := s.owner.DeadLetters(s.id.Subscription)
	return err == nil && total.Holds(machine.DeadLetters{Records: 1, Bytes: r.size}, mostDeadLetters)
}

// ListDeadLetters returns up to limit dead letters of a subscription in the partitions that this
// node leads: those after a record, or the first ones if it is nil. They are in the order of topic,
// partition and offset, and lack keys, values and headers.
func (e *Engine) ListDeadLetters(id string, after *subscription.RecordID, limit int) (subscription.DeadLetterPage, error) {
	var from *machine.DeadLetterID
	if after != nil {
		from = deadLetterID(*after)
	}
	var page subscription.DeadLetterPage
	for _, o := range e.leaderships() {
		letters, err := o.DeadLettersAfter(id, from, limit)
		o.streams.Done()
		if err != nil {
			return subscription.DeadLetterPage{}, fmt.Errorf("read the dead letters of %s: %w", id, err)
		}
		for _, l := range letters {
			view := viewDeadLetter(l)
			view.Key, view.Value, view.Headers = nil, nil, nil
			page.Letters = append(page.Letters, view)
		}
		page.Partitions = append(page.Partitions, o.Partition())
	}
	subscription.SortDeadLetters(page.Letters)
	page.Letters = page.Letters[:min(limit, len(page.Letters))]
	return page, nil
}

// DeadLetter returns a dead letter. The error can be subscription.ErrNotRead or ErrNoDeadLetter.
func (e *Engine) DeadLetter(id subscription.RecordID) (subscription.DeadLetter, error) {
	o := e.owner(e.ownerOf(id.Subscription, id.Topic, id.Partition))
	if o == nil {
		return subscription.DeadLetter{}, subscription.ErrNotRead
	}
	defer o.streams.Done()
	l, err := findDeadLetter(o, id)
	if err != nil {
		return subscription.DeadLetter{}, err
	}
	return viewDeadLetter(l), nil
}

func findDeadLetter(o *owner, id subscription.RecordID) (*machine.DeadLetter, error) {
	l, err := o.DeadLetter(id.Subscription, *deadLetterID(id))
	if err == nil && l == nil {
		err = subscription.ErrNoDeadLetter
	}
	return l, err
}

func deadLetterID(id subscription.RecordID) *machine.DeadLetterID {
	return &machine.DeadLetterID{Topic: id.Topic, Partition: uint32(id.Partition), Offset: id.Offset} //nolint:gosec // checked when the request is read
}

func viewDeadLetter(l *machine.DeadLetter) subscription.DeadLetter {
	return subscription.DeadLetter{Record: view(recordOf(l)), Reason: subscription.Reason(l.Reason), Message: l.Message, At: timeOf(l.At)}
}

// countDeadLetters returns the number of dead letters of a subscription that this node stores as a
// leader.
func (e *Engine) countDeadLetters(id string) (n uint64) {
	for _, o := range e.leaderships() {
		if total, err := o.DeadLetters(id); err == nil {
			n += total.Records
		}
		o.streams.Done()
	}
	return n
}
