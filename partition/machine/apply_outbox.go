package machine

import (
	"fmt"

	"platform/internal/feature"
	"platform/internal/ids"
	"platform/partition/journal"
)

// deliver accepts messages of another partition, each once: the sender resends messages
// that are not acknowledged. Without messages, it skips those that the sender has deleted,
// if there are any: this partition had acknowledged them and has lost its data since.
func (m *Machine) deliver(c *Deliver) (Outcome, error) {
	last, err := m.st.LastDelivered(c.From)
	if err != nil {
		return Outcome{}, fmt.Errorf("read last delivered of partition %d: %w", c.From, err)
	}
	if c.FirstSeq > last+1 && len(c.Messages) == 0 && m.level >= feature.Level4 {
		m.st.PutLastDelivered(c.From, c.FirstSeq-1)
		return Outcome{}, nil
	}
	if c.FirstSeq == 0 || c.FirstSeq > last+1 {
		return Outcome{Code: Invalid}, nil // a gap: accepting these would lose the missing ones
	}
	known := last + 1 - c.FirstSeq
	switch {
	case len(c.Messages) == 0:
		return Outcome{Code: Existing}, nil
	case known >= uint64(len(c.Messages)):
		return Outcome{}, nil
	}
	m.local = append(m.local, c.Messages[known:]...)
	m.st.PutLastDelivered(c.From, c.FirstSeq+uint64(len(c.Messages))-1)
	return Outcome{}, nil
}

// send passes a message to the owner of an invocation. Within the partition it bypasses the
// outbox: the message is processed at the end of the command, so that no record changes
// while it is being modified.
func (m *Machine) send(to ids.Invocation, msg Message) error {
	owner := m.shards.of(to.PartitionKey())
	if owner == m.shards.Self {
		m.local = append(m.local, msg)
		return nil
	}
	last, err := m.st.LastSent(owner)
	if err != nil {
		return fmt.Errorf("read last sent to partition %d: %w", owner, err)
	}
	m.st.PutOutgoing(owner, last+1, msg)
	m.emit(&Send{To: owner, Seq: last + 1, Message: msg})
	return nil
}

// answer sends a result to a waiting invocation.
func (m *Machine) answer(sink Sink, result *journal.Result) error {
	return m.send(sink.Caller, &Complete{Sink: sink, Result: *result})
}

// settle processes the messages within the partition in the order in which they were
// caused, including those that it causes itself.
func (m *Machine) settle() error {
	for i := 0; i < len(m.local); i++ {
		if err := m.receive(m.local[i]); err != nil {
			return err
		}
	}
	clear(m.local)
	m.local = m.local[:0]
	return nil
}

func (m *Machine) receive(msg Message) error {
	switch msg := msg.(type) {
	case *Invoke:
		c, err := m.resolve(msg)
		if err == nil {
			_, err = m.invoke(c)
		}
		return err
	case *Complete:
		return m.completeCall(msg)
	case *Signal:
		_, err := m.signal(msg)
		return err
	case *Kill:
		_, err := m.kill(msg)
		return err
	case *Attach:
		return m.attach(msg)
	case *update:
		return m.updateState(msg)
	}
	return fmt.Errorf("receive %T: %w", msg, errUnknownCommand)
}

// completeCall appends a result to the journal of the caller. By then the caller may have
// ended, or been purged and created again with the same ID: the second run of a workflow
// must not receive results of calls of the first.
func (m *Machine) completeCall(c *Complete) error {
	inv, err := m.invocation(c.Sink.Caller)
	if err != nil || inv == nil || inv.Status == Completed || inv.Life != c.Sink.Life {
		return err
	}
	payload := journal.NewVoid(c.Sink.Completion)
	if !c.Void {
		payload = journal.NewCompletion(c.Sink.Completion, c.Result)
	}
	n := completion(c.Sink.Type, c.Sink.Completion, payload)
	if c.Result.Failure != nil {
		n.settled = journal.Failed
	}
	return m.notify(inv, n)
}
