package machine

import "fmt"

// DeadLetter is a record of a stream that could not become an invocation and that was set aside,
// until an operator retries or drops it. The partition that owns the topic partition stores it.
type DeadLetter struct {
	Stream    Stream
	Offset    int64
	Timestamp int64 // of the record, in milliseconds since 1970
	Key       []byte
	NoKey     bool // the record has no key, as opposed to an empty one
	Value     []byte
	NoValue   bool // the record is a tombstone
	Headers   []RecordHeader
	Reason    string // a code
	Message   string
	At        int64 // partition time when it was set aside
}

// RecordHeader is a header of a record.
type RecordHeader struct {
	Name  string
	Value []byte
}

// Size is the size of a dead letter, for the bounds.
func (l *DeadLetter) Size() uint64 {
	n := 256 + len(l.Stream.Topic) + len(l.Key) + len(l.Value) + len(l.Reason) + len(l.Message)
	for i := range l.Headers {
		n += 16 + len(l.Headers[i].Name) + len(l.Headers[i].Value)
	}
	return uint64(n) //nolint:gosec // not negative
}

// DeadLetterID names a dead letter of a subscription.
type DeadLetterID struct {
	Topic     string
	Partition uint32
	Offset    int64
}

// ID returns the name of a dead letter.
func (l *DeadLetter) ID() DeadLetterID {
	return DeadLetterID{l.Stream.Topic, l.Stream.Partition, l.Offset}
}

// DeadLetters are the number and size of the dead letters of a subscription in one partition.
type DeadLetters struct{ Records, Bytes uint64 }

// Holds reports whether there is room for further ones.
func (d DeadLetters) Holds(more, most DeadLetters) bool {
	return d.Records+more.Records <= most.Records && d.Bytes+more.Bytes <= most.Bytes
}

// SetAside stores a dead letter, and the position behind it in the same step: the record is either
// read again or kept. It is refused with DeadLettersFull if there would be more than Most, or if a
// record of an earlier topic of that name has the same offset.
type SetAside struct {
	Position StreamPosition
	Letter   DeadLetter
	Most     DeadLetters
}

// DropDeadLetters deletes dead letters of a subscription. Those that do not exist are ignored.
type DropDeadLetters struct {
	Subscription string
	Letters      []DeadLetterID
}

func (*SetAside) command()        {}
func (*DropDeadLetters) command() {}

// setAside stores a dead letter, once.
func (m *Machine) setAside(c *SetAside) (Outcome, error) {
	letter := c.Letter
	stored, err := m.st.DeadLetter(letter.Stream.Subscription, letter.ID())
	if err != nil {
		return Outcome{}, fmt.Errorf("read a dead letter of %s: %w", letter.Stream.Subscription, err)
	}
	total, err := m.st.DeadLetters(letter.Stream.Subscription)
	if err != nil {
		return Outcome{}, fmt.Errorf("read the size of the dead letters of %s: %w", letter.Stream.Subscription, err)
	}
	if stored != nil { // after a seek, or the outcome of this command was unknown
		if stored.Stream.TopicID != letter.Stream.TopicID {
			return Outcome{Code: DeadLettersFull}, nil
		}
		total.Records, total.Bytes = total.Records-1, total.Bytes-stored.Size()
	}
	if !total.Holds(DeadLetters{1, letter.Size()}, c.Most) {
		return Outcome{Code: DeadLettersFull}, nil
	}
	outcome, err := m.putPosition(&PutPosition{Position: c.Position})
	if err != nil || outcome.Code != OK {
		return outcome, err
	}
	letter.At = m.now
	m.st.PutDeadLetter(&letter)
	m.st.PutDeadLetters(letter.Stream.Subscription, DeadLetters{total.Records + 1, total.Bytes + letter.Size()})
	return outcome, nil
}

// dropDeadLetters deletes dead letters.
func (m *Machine) dropDeadLetters(c *DropDeadLetters) error {
	total, err := m.st.DeadLetters(c.Subscription)
	if err != nil {
		return fmt.Errorf("read the size of the dead letters of %s: %w", c.Subscription, err)
	}
	before := total
	for _, id := range c.Letters {
		letter, err := m.st.DeadLetter(c.Subscription, id)
		if err != nil {
			return fmt.Errorf("read a dead letter of %s: %w", c.Subscription, err)
		}
		if letter != nil {
			m.st.DeleteDeadLetter(c.Subscription, id)
			total.Records, total.Bytes = total.Records-1, total.Bytes-letter.Size()
		}
	}
	if total != before {
		m.st.PutDeadLetters(c.Subscription, total)
	}
	return nil
}
