package flowcontrol

// Matcher finds the rules for counters in a time that does not depend on how many
// rules there are. It never changes and is safe for any number of readers. The zero
// Matcher has no rules.
type Matcher struct {
	rules map[Pattern]*Rule
	// ranks are the ranks of the patterns of each level, one bit for each, so that
	// forms of patterns which no rule has are not looked for.
	ranks [Levels]uint8
	// bounded says that some rule has a queue limit.
	bounded bool
}

// Match is the best rule of each level, nil where there is none.
type Match [Levels]*Rule

// NewMatcher prepares the rules of a book, which must not change any more. Disabled
// rules are left out.
func NewMatcher(b *Book) *Matcher {
	m := &Matcher{rules: make(map[Pattern]*Rule, len(b.Rules))}
	for i := range b.Rules {
		r := &b.Rules[i]
		if !r.Disabled {
			m.rules[r.Pattern] = r
			m.ranks[r.Pattern.Level()] |= 1 << r.Pattern.rank()
			m.bounded = m.bounded || r.Limits.QueueLimit != nil
		}
	}
	return m
}

// Match finds the rules for an invocation in a scope, with a limit key or none. Levels
// that the limit key does not reach have no rule.
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

// best is the rule with the highest rank at a level.
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
