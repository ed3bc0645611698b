package flowcontrol

// Matcher finds the rules for counters in a time independent of the number of rules. It is
// immutable and safe for concurrent use. The zero Matcher has no rules.
type Matcher struct {
	rules map[Pattern]*Rule
	// ranks are the ranks of the patterns of each level, one bit for each, so that ranks
	// without a rule are skipped.
	ranks [Levels]uint8
	// bounded means that some rule has a queue limit.
	bounded bool
}

// Match contains the best rule of each level, or nil.
type Match [Levels]*Rule

// NewMatcher indexes the rules of a book, which must not change afterwards. Disabled rules
// are omitted.
func NewMatcher(b *Book) *Matcher {
	m := &Matcher{rules: make(map[Pattern]*Rule, len(b.Rules))}
	for i := range b.Rules {
		r := &b.Rules[i]
		if !r.Disabled {
			m.rules[r.Pattern] = r
			m.ranks[r.Pattern.level()] |= 1 << r.Pattern.rank()
			m.bounded = m.bounded || r.Limits.QueueLimit != nil
		}
	}
	return m
}

// Match finds the rules for an invocation in a scope, optionally with a limit key. Levels
// below the limit key have no rule.
func (m *Matcher) Match(scope string, key LimitKey) (found Match) {
	if scope == "" {
		return found
	}
	found[LevelScope] = m.best(LevelScope, scope, LimitKey{})
	if key.L1 != "" {
		found[Level1] = m.best(Level1, scope, LimitKey{L1: key.L1})
	}
	if key.L2 != "" {
		found[Level2] = m.best(Level2, scope, key)
	}
	return found
}

// best returns the rule with the highest rank at a level.
func (m *Matcher) best(level Level, scope string, key LimitKey) *Rule {
	for rank := exactScope | exactL1 | exactL2; rank >= 0; rank-- {
		if m.ranks[level]&(1<<rank) == 0 {
			continue
		}
		p := Pattern{Scope: scope, L1: key.L1, L2: key.L2}
		if rank&exactScope == 0 {
			p.Scope = Any
		}
		if rank&exactL1 == 0 && level >= Level1 {
			p.L1 = Any
		}
		if rank&exactL2 == 0 && level >= Level2 {
			p.L2 = Any
		}
		if r := m.rules[p]; r != nil {
			return r
		}
	}
	return nil
}

// Bounded reports whether some rule has a queue limit.
func (m *Matcher) Bounded() bool { return m.bounded }
