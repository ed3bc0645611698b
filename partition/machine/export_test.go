package machine

// Tighten lowers the bounds on what an entry does in the tables of flow control, so that small
// histories reach them.
func (m *Machine) Tighten() { m.bounds.reevaluated, m.bounds.ringRemovals = 2, 2 }

// TightenAll lowers all bounds, so that timers continue almost everything.
func (m *Machine) TightenAll() {
	m.bounds = bounds{
		admitted: 1, admittedByTimer: 2, admittedByEntry: 1, reevaluated: 2, ringRemovals: 2, kills: 1, journalReads: 700, updateBytes: 1, answerBytes: 300,
		purgedPromises: 1, lookups: 2, sinks: 3,
	}
}

// MarkFreed calls markFreed, and returns the scopes that have been freed.
func (m *Machine) MarkFreed(scope string) []string {
	m.markFreed(scope)
	return m.freedScopes
}
