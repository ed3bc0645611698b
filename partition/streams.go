package partition

import (
	"context"
	"fmt"

	"platform/partition/machine"
	"platform/partition/store"
)

// Ingest creates invocations from records of an event stream, and returns once they are
// durable. The outcome says which record of the stream is the last one here.
func (p *Partition) Ingest(ctx context.Context, c *machine.Ingest) (machine.Outcome, error) {
	l, err := p.leaderWithRoom()
	if err != nil {
		return machine.Outcome{}, err
	}
	return l.propose(ctx, c)
}

// Streams reads the event streams whose positions the partitions store that this node leads.
type Streams interface {
	// Lead reads the streams of a partition until ctx ends, which is when the leadership
	// does.
	Lead(ctx context.Context, o *StreamOwner) error
}

// StreamOwner is one leadership of a partition, for the streams that the partition owns. Its
// methods fail once the leadership has ended.
type StreamOwner struct{ l *leadership }

// Partition returns the number of the partition.
func (o *StreamOwner) Partition() uint32 { return o.l.p.id }

// Epoch returns the leader epoch.
func (o *StreamOwner) Epoch() uint64 { return o.l.epoch }

// Position returns the stored position of a topic partition, of whichever incarnation and
// topic ID; nil if there is none.
func (o *StreamOwner) Position(s machine.Stream) (*machine.StreamPosition, error) {
	view := o.l.p.tables.View()
	defer view.Close()
	return view.Position(s)
}

// Positions returns the positions that the partition stores of a subscription; if that is empty,
// of all.
func (o *StreamOwner) Positions(subscription string) (found []*machine.StreamPosition, err error) {
	view := o.l.p.tables.View()
	defer view.Close()
	for p, err := range view.Positions(subscription) {
		if err != nil {
			return nil, err
		}
		found = append(found, p)
	}
	return found, nil
}

// PutPosition stores a position. It fails if that would move back.
func (o *StreamOwner) PutPosition(ctx context.Context, p machine.StreamPosition) error {
	outcome, err := o.l.propose(ctx, &machine.PutPosition{Position: p})
	if err == nil && outcome.Code != machine.OK {
		err = fmt.Errorf("partition %d rejected position %d of %s/%d: %v, the stored one is %d", o.l.p.id, p.Next, p.Stream.Topic, p.Stream.Partition, outcome.Code, outcome.Last)
	}
	return err
}

// Incarnations returns the incarnations of subscriptions of which the partition has stored
// records.
func (o *StreamOwner) Incarnations() ([]store.Incarnation, error) {
	view := o.l.p.tables.View()
	defer view.Close()
	return view.Incarnations()
}

// Forget deletes what the partition stores about incarnations of a subscription before the given
// one, and refuses their records from then on.
func (o *StreamOwner) Forget(ctx context.Context, c *machine.ForgetStreams) error {
	_, err := o.l.propose(ctx, c)
	return err
}

// SetAside stores a dead letter and the position behind it. full says that it was refused for lack
// of room.
func (o *StreamOwner) SetAside(ctx context.Context, c *machine.SetAside) (full bool, err error) {
	outcome, err := o.l.propose(ctx, c)
	switch {
	case err != nil:
		return false, err
	case outcome.Code == machine.DeadLettersFull:
		return true, nil
	case outcome.Code != machine.OK:
		return false, fmt.Errorf("partition %d rejected a dead letter of %s: %v", o.l.p.id, c.Letter.Stream.Subscription, outcome.Code)
	}
	return false, nil
}

// DropDeadLetters deletes dead letters.
func (o *StreamOwner) DropDeadLetters(ctx context.Context, c *machine.DropDeadLetters) error {
	_, err := o.l.propose(ctx, c)
	return err
}

// DeadLetters returns the number and size of the dead letters that the partition stores of a
// subscription.
func (o *StreamOwner) DeadLetters(subscription string) (machine.DeadLetters, error) {
	view := o.l.p.tables.View()
	defer view.Close()
	return view.DeadLetters(subscription)
}

// DeadLetter returns a dead letter; nil if there is none.
func (o *StreamOwner) DeadLetter(subscription string, id machine.DeadLetterID) (*machine.DeadLetter, error) {
	view := o.l.p.tables.View()
	defer view.Close()
	return view.DeadLetter(subscription, id)
}

// DeadLettersAfter returns up to limit dead letters behind one, or from the first on if that is nil,
// in the order of their IDs.
func (o *StreamOwner) DeadLettersAfter(subscription string, id *machine.DeadLetterID, limit int) (found []*machine.DeadLetter, err error) {
	view := o.l.p.tables.View()
	defer view.Close()
	for l, err := range view.DeadLettersAfter(subscription, id) {
		if err != nil {
			return nil, err
		}
		if len(found) == limit {
			break
		}
		found = append(found, l)
	}
	return found, nil
}
