package query

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"platform/internal/subscription"
)

// deadLetter is a record that a subscription could not deliver.
type deadLetter struct {
	subscription *SubscriptionState
	subscription.DeadLetter
}

// letterPage is the number of dead letters that are requested from the nodes at a time.
const letterPage = 1000

// deadLetters yields the dead letters of all subscriptions in pages: there can be any number.
func deadLetters(ctx context.Context, s *session, _ *selection) iter.Seq2[[]deadLetter, error] {
	return func(yield func([]deadLetter, error) bool) {
		if s.engine.cfg.DeadLetters == nil {
			return
		}
		states, err := subscriptionStates(ctx, s)
		if err != nil {
			yield(nil, err)
			return
		}
		for i := range states {
			keeps := states[i].OnError == subscription.DeadLetters && states[i].DeadLetterTopic == ""
			if !keeps && states[i].Status.DeadLetters == 0 {
				continue
			}
			for page, err := range lettersOf(ctx, s, &states[i]) {
				if !yield(page, err) || err != nil {
					return
				}
			}
		}
	}
}

// lettersOf yields the dead letters of a subscription in pages.
func lettersOf(ctx context.Context, s *session, state *SubscriptionState) iter.Seq2[[]deadLetter, error] {
	return func(yield func([]deadLetter, error) bool) {
		var after *subscription.RecordID
		for more := true; more && ctx.Err() == nil; {
			letters, silent := s.engine.cfg.DeadLetters(ctx, state.ID, after, letterPage)
			if len(silent) > 0 {
				yield(nil, fmt.Errorf("%w: dead letters of %s: %s", ErrUnavailable, state.ID, strings.Join(silent, "; ")))
				return
			}
			s.countRead(1, len(letters))
			rows := make([]deadLetter, len(letters))
			for i := range letters {
				rows[i] = deadLetter{state, letters[i]}
			}
			if more = len(letters) == letterPage; more {
				last := &letters[letterPage-1]
				after = &subscription.RecordID{Subscription: state.ID, Topic: last.Topic, Partition: last.Partition, Offset: last.Offset}
			}
			if !yield(rows, nil) {
				return
			}
		}
	}
}

func sysDeadLetter() *Table {
	type row = deadLetter
	all := source[row]{pages: deadLetters, identity: func(l *row, b []byte) []byte {
		b = append(append(append(append(b, l.subscription.ID...), '/'), l.Topic...), '/')
		return strconv.AppendInt(append(strconv.AppendInt(b, int64(l.Partition), 10), '/'), l.Offset, 10)
	}}
	return define("sys_dead_letter", "Records of event subscriptions that could not be delivered and that the server keeps until they are retried or dropped.", all, []column[row]{
		plain("subscription_id", Text, "subscription id", func(l *row) value { return l.subscription.ID }),
		plain("topic", Text, "topic", func(l *row) value { return l.Topic }),
		plain("partition", U32, "partition of the topic", func(l *row) value { return number(l.Partition) }),
		plain("record_offset", U64, "offset of the record", func(l *row) value { return number(l.Offset) }),
		plain("timestamp", Timestamp, "timestamp of the record", func(l *row) value { return moment(l.Timestamp) }),
		plain("reason", Text, "code of why it could not be delivered", func(l *row) value { return string(l.Reason) }),
		plain("message", Text, "why it could not be delivered", func(l *row) value { return text(l.Message) }),
		plain("key_bytes", U64, "size of the key", func(l *row) value { return number(l.KeySize) }),
		plain("value_bytes", U64, "size of the value", func(l *row) value { return number(l.ValueSize) }),
		plain("set_aside_at", Timestamp, "when it was set aside", func(l *row) value { return moment(l.At) }),
	})
}
