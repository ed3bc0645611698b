package machine

// Tighten lowers the bounds on what an entry does in the tables of flow control, so that small
// histories reach them.
func (m *Machine) Tighten() { m.maxReevaluated, m.maxRingLeaves = 2, 2 }

// MarkFreed calls markFreed, and returns the scopes that have been freed.
func (m *Machine) MarkFreed(scope string) []string {
	m.markFreed(scope)
	return m.freedScopes
}
