package machine

// Tighten lowers the bounds on what an entry does in the tables of flow control, so that small
// histories reach them.
func (m *Machine) Tighten() { m.maxReevaluated, m.maxRingLeaves = 2, 2 }
