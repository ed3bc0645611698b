package machine

import "fmt"

// ingest creates the invocations of the records that follow the last stored one. Records
// that are stored already are ignored, and a gap is refused: accepting what follows it would
// lose the records in between.
func (m *Machine) ingest(c *Ingest) (Outcome, error) {
	row, err := m.st.Ingested(c.Stream)
	if err != nil {
		return Outcome{}, fmt.Errorf("read the last record of %s: %w", c.Stream.Subscription, err)
	}
	first, err := m.st.FirstIncarnation(c.Stream.Subscription)
	if err != nil {
		return Outcome{}, fmt.Errorf("read the first incarnation of %s: %w", c.Stream.Subscription, err)
	}
	switch {
	case c.Stream.Incarnation < first:
		return Outcome{Code: Forgotten, Last: row.Last}, nil
	case c.Generation < row.Generation:
		return Outcome{Code: Superseded, Last: row.Last}, nil
	}
	before := row
	if c.Generation > row.Generation {
		row = Ingested{Generation: c.Generation, Last: NoOffset, Before: row.Last}
	}
	outcome := Outcome{Code: Existing, Last: row.Before}
	if len(c.Records) > 0 {
		if outcome, err = m.ingestAfter(row.Last, c); err != nil {
			return Outcome{}, err
		}
		row.Last = outcome.Last
	}
	if row != before {
		m.st.PutIngested(c.Stream, row)
	}
	return outcome, nil
}

// ingestAfter creates the invocations of the records that follow the one at last.
func (m *Machine) ingestAfter(last int64, c *Ingest) (Outcome, error) {
	before, records := c.Prev, c.Records
	for len(records) > 0 && records[0].Offset <= last {
		before, records = records[0].Offset, records[1:]
	}
	switch {
	case len(records) == 0:
		return Outcome{Code: Existing, Last: last}, nil
	case before != last:
		return Outcome{Code: Gap, Last: last}, nil
	case !ascending(records):
		return Outcome{Code: Invalid, Last: last}, nil
	}
	for i := range records {
		o, err := m.request(&records[i].Invoke)
		if err != nil {
			return Outcome{}, err
		}
		if o.Code == QueueFull {
			return Outcome{Code: QueueFull, Rule: o.Rule, Last: last}, nil
		}
		last = records[i].Offset
	}
	return Outcome{Last: last}, nil
}

func ascending(records []IngestRecord) bool {
	for i := 1; i < len(records); i++ {
		if records[i].Offset <= records[i-1].Offset {
			return false
		}
	}
	return true
}

// putPosition replaces the position of a topic partition.
func (m *Machine) putPosition(c *PutPosition) (Outcome, error) {
	p := c.Position
	stored, err := m.st.Position(p.Stream)
	if err != nil {
		return Outcome{}, fmt.Errorf("read the position of %s: %w", p.Stream.Subscription, err)
	}
	if stored != nil {
		older := stored.Stream.Incarnation > p.Stream.Incarnation
		back := stored.Stream == p.Stream && stored.Next > p.Next
		if older || back {
			return Outcome{Code: Invalid, Last: stored.Next}, nil
		}
	}
	p.At = m.now
	m.st.PutPosition(&p)
	return Outcome{Last: p.Next}, nil
}

// forgetStreams deletes what is stored about earlier incarnations. An older command, which
// another leader proposed, does not make forgotten ones known again.
func (m *Machine) forgetStreams(c *ForgetStreams) error {
	first, err := m.st.FirstIncarnation(c.Subscription)
	if err != nil {
		return fmt.Errorf("read the first incarnation of %s: %w", c.Subscription, err)
	}
	m.st.DeleteStreams(c.Subscription, max(first, c.Before), c.Positions)
	return nil
}
