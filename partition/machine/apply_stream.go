package machine

import "fmt"

// ingest creates the invocations of the records that follow the last stored one. Records
// that are stored already are ignored, and a gap is refused: accepting what follows it would
// lose the records in between.
func (m *Machine) ingest(c *Ingest) (Outcome, error) {
	last, err := m.st.Ingested(c.Stream)
	if err != nil {
		return Outcome{}, fmt.Errorf("read the last record of %s: %w", c.Stream.Subscription, err)
	}
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
	outcome := Outcome{}
	for i := range records {
		o, err := m.request(&records[i].Invoke)
		if err != nil {
			return Outcome{}, err
		}
		if o.Code == QueueFull {
			outcome.Code, outcome.Rule = QueueFull, o.Rule
			break
		}
		last = records[i].Offset
	}
	if last != before {
		m.st.PutIngested(c.Stream, last)
	}
	outcome.Last = last
	return outcome, nil
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
